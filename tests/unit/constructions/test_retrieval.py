"""Eva in one layer: right on every input of small sizes, on adversarial and random ones at n =
4,096; scores as derived by hand.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from support.construction_tools import every, wrong
from support.each import each

from separatrix.constructions import construct, load
from separatrix.core.errors import EvidenceError, OutputError, SizeError
from separatrix.mixers.full import FullMixer
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Eva


def every_eva(n: int, V: int) -> tuple[np.ndarray, np.ndarray]:
    tokens = every([V] * n + [n])
    return tokens, tokens[np.arange(len(tokens)), tokens[:, -1]]


@pytest.mark.parametrize(("n", "V"), [(1, 2), (2, 2), (3, 5), (4, 4), (5, 3), (8, 2)])
def test_every_input_is_answered_right(n: int, V: int) -> None:
    built = construct(Eva(n=n, V=V))
    assert not wrong(built, *every_eva(n, V))


def test_scores_are_those_derived_by_hand() -> None:
    built = construct(Eva(n=4, V=2))
    (head,) = [m for m in built.model.modules() if isinstance(m, FullMixer)]
    x = built.model._embed(torch.tensor([[0, 1, 0, 1, 2]]))
    scores = (head.q(x)[0, -1] @ head.k(x)[0].T).tolist()
    # s^2 (D - 2 hamming + 1) with s = 4, D = 2, the query 2 = (0, 1), and -s^2 for the query's own
    # key
    assert scores == [16.0, -16.0, 48.0, 16.0, -16.0]


def test_the_proof_holds_the_numbers_of_the_derivation() -> None:
    record = construct(Eva(n=8, V=4)).record
    (layer,) = record.proof["layers"]
    assert (layer["score_gap"], layer["queries"], layer["keys"]) == ("32", 8, 9)
    # n e^(-2 s^2), up to the rounding of scores
    assert 8 * math.exp(-32) <= float(layer["off_target_mass"]) <= 8 * math.exp(-32) * 1.001
    assert 1.9999 < float(record.proof["final_margin"]) < 2
    assert record.sizes["head_dim"] == 3 + 1
    assert record.sizes["value_dim"] == 2


@pytest.mark.slow
def test_adversarial_inputs_at_4096() -> None:
    task = Eva(n=4096, V=4096)
    built = construct(task)
    rng = np.random.default_rng(8)
    tokens = []
    for x in [0, 4095, *rng.integers(4096, size=12).tolist()]:
        for value in (0, 4095, int(rng.integers(4096))):
            same = np.full(4097, value)  # all equal
            lonely = np.full(4097, 4095 - value)  # every other entry holds the complement
            lonely[x] = value
            near = rng.integers(
                4096, size=4097
            )  # the twelve addresses at distance 1 hold the complement
            near[[x ^ (1 << bit) for bit in range(12)]] = 4095 - value
            near[x] = value
            for row in (same, lonely, near):
                row[4096] = x
                tokens.append(row)
    array = np.array(tokens)
    assert not wrong(built, array, array[np.arange(len(array)), array[:, -1]], batch=5)


@each(
    "architecture, message",
    [
        ("gdn*4", "full layer with head_dim >= 5"),
        ("full(head_dim=4)", "full layer with head_dim >= 5"),
        ("full(value_dim=3)", "value_dim >= 4"),
        ("full @ fp8", "at least 32 bits"),
        ("full(accumulator=bf16)", "at least 32 bits"),
        ("full + rwkv4", "rwkv4"),
        ("full(softcap=30)", "softcap"),
    ],
)
def test_a_stack_that_cannot_hold_it_is_refused(architecture: str, message: str) -> None:
    with pytest.raises(SizeError, match=message):
        construct(Eva(n=16, V=16), Architecture.parse(architecture))


def test_an_n_beyond_float32_bounds_is_refused() -> None:
    with pytest.raises(SizeError, match="smaller n"):
        construct(Eva(n=10**8, V=2))


def test_saving_and_loading_keeps_everything(tmp_path: Path) -> None:
    built = construct(Eva(n=5, V=3))
    path = built.save(tmp_path / "deep" / "folder")
    assert sorted(p.name for p in path.parent.iterdir()) == [
        "config.json",
        "construction.json",
        built.record.weights,
    ]
    for place in (path, path.parent):
        record, model = load(place)
        assert record == built.record
        tokens = torch.tensor([[2, 1, 0, 2, 1, 3]])
        assert torch.equal(model(tokens), built.model(tokens))


def test_building_twice_gives_the_same_record_and_draws_nothing() -> None:
    torch.manual_seed(0)
    first = construct(Eva(n=6, V=6)).record.digest
    state = torch.get_rng_state()
    assert construct(Eva(n=6, V=6)).record.digest == first
    assert torch.equal(torch.get_rng_state(), state)


def test_a_place_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="file"):
        construct(Eva(n=2, V=2)).save(tmp_path / "file")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_loading_changed_weights_is_refused(tmp_path: Path) -> None:
    built = construct(Eva(n=2, V=2))
    path = built.save(tmp_path)
    weights = tmp_path / built.record.weights
    weights.write_bytes(weights.read_bytes()[:-1] + b"\1")
    with pytest.raises(EvidenceError, match="sha256"):
        load(path)
    weights.unlink()
    with pytest.raises(EvidenceError, match="cannot be read"):
        load(path)
