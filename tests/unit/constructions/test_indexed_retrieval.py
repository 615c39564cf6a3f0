"""Eva in one layer of indexed attention: right on every input of small sizes, whatever the number
of tokens read; hostile ones at thousands; edited indexers refused.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from support.construction_tools import every, refused, wrong
from support.each import each

from separatrix.checks.verify import verify
from separatrix.constructions import construct
from separatrix.core.errors import CheckFailed, SizeError
from separatrix.mixers.indexed import IndexedMixer, index_scores
from separatrix.proofs.arithmetic import FP32
from separatrix.proofs.derivations import DERIVATIONS
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Eva
from separatrix.theory import judge


@pytest.mark.parametrize(
    ("n", "V", "stack"),
    [
        (1, 2, None),
        (4, 4, None),
        (5, 3, "indexed(topk=2, index_heads=3)"),
        (3, 3, "gdn + indexed(topk=64, heads=4, kv_heads=2) + window"),
    ],
)
def test_every_input_is_answered_right_and_proved(
    n: int, V: int, stack: str | None, tmp_path: Path
) -> None:
    built = construct(
        Eva(n=n, V=V), None if stack is None else Architecture.parse(stack), "indexed-retrieval"
    )
    tokens = every([V] * n + [n])
    assert not wrong(built, tokens, tokens[np.arange(len(tokens)), tokens[:, -1]])
    built.save(tmp_path)
    assert "every answer right" in " ".join(verify(built.record, folder=tmp_path).checks)
    assert "1 indexed layer" in built.record.statement
    # two tags for the theorem, one for the weights
    wide = Architecture.parse(stack or "indexed(topk=1)")
    # a window that sees the whole prompt retrieves as well
    assert "indexed-retrieval" in {found.theorem for found in judge(wide, built.task)}


def test_the_indexers_scores_are_those_derived_by_hand() -> None:
    """max(0, s^2 (D - 2 hamming + 1)), s = 4, D = 2, the query 2 = (0, 1)."""
    built = construct(Eva(n=4, V=2), kind="indexed-retrieval")
    (mixer,) = [m for m in built.model.modules() if isinstance(m, IndexedMixer)]
    x = built.model._embed(torch.tensor([[0, 1, 0, 1, 2]]))
    (asked, weight), keys = mixer._index(x, 0), mixer._index_keys(x, 0)
    assert weight[0, -1].tolist() == [1.0]
    assert index_scores(asked, weight, keys)[0, -1].tolist() == [16.0, 0.0, 48.0, 16.0, 0.0]
    (layer,) = built.record.proof["layers"]
    assert (layer["index_gap"], layer["score_gap"], layer["topk"]) == ("32", "32", 1)


@pytest.mark.slow
def test_places_that_differ_in_one_bit_are_told_apart_at_4096() -> None:
    built = construct(Eva(n=4096, V=4096), Architecture.parse("indexed(topk=7)"))
    rng = np.random.default_rng(4)
    places = np.unique([0, 4095, *(1 << np.arange(12)), *rng.integers(4096, size=20)])
    tokens = np.full((len(places), 4097), 4095 - 0b101010101010)
    tokens[np.arange(len(places)), places] = 0b101010101010
    tokens[:, -1] = places
    assert not wrong(built, tokens, np.full(len(places), 0b101010101010), batch=5)


@each(
    "stack, message",
    [
        ("indexed(index_dim=4)", "index_dim >= 5"),
        ("indexed(head_dim=4)", "head_dim >= 5"),
        ("indexed(rope=true)", "no option"),
        ("gdn*2", "indexed layer with"),
    ],
)
def test_a_stack_that_cannot_hold_it_is_refused(stack: str, message: str) -> None:
    with pytest.raises(SizeError, match=message):
        construct(Eva(n=16, V=4), Architecture.parse(stack), "indexed-retrieval")


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        # the address bit of places is not looked at
        ("index_k.weight", (0, 0), 0.0, "scores no less"),
        ("index_q.weight", (0, 3), -4.0, "scores no less|proof recorded"),
        ("index_w.weight", (0, 2), 1.0, "power of two"),
        ("index_w.weight", (0, 2), -3.0, "power of two"),
        ("index_w.weight", (0, 3), 0.5, "power of two"),
        # all scores fall by as much: that of the right token to nothing
        ("index_k.weight", (2, 2), -8.0, "may score nothing|scores no less"),
        ("k.weight", (0, 0), 0.0, "scores no less"),
    ],
)
def test_edited_weights_are_refused(
    name: str, place: tuple[int, ...], value: float, message: str, tmp_path: Path
) -> None:
    built = construct(Eva(n=4, V=4), kind="indexed-retrieval")
    refused(built, tmp_path, {f"blocks.0.mixers.0.{name}": (place, value)}, message)


@pytest.mark.parametrize(
    ("queries", "weight", "message"),
    [(-40, -126, "be flushed to zero"), (20, 110, "may overflow fp32")],
)
def test_scores_that_the_format_does_not_hold_are_refused(
    queries: int, weight: int, message: str
) -> None:
    built = construct(Eva(n=16, V=4), kind="indexed-retrieval")
    for name, power in (("index_q", queries), ("index_w", weight)):
        built.model.get_parameter(f"blocks.0.mixers.0.{name}.weight").mul_(2.0**power)
    tokens = built.task.sample(64, np.random.default_rng(0)).tokens
    assert wrong(built, tokens, built.task.answer(tokens))
    with pytest.raises(CheckFailed, match=message):
        DERIVATIONS["indexed-retrieval"].proved(built.task, built.model, FP32)
