"""Proofs of layers that count and of layers that look for a flag: whatever breaks the claim, or
could by rounding, breaks the proof.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from separatrix.checks.verify import verify
from separatrix.constructions import construct
from separatrix.core.errors import CheckFailed
from separatrix.mixers.full import FullMixer
from separatrix.models.model import Block, Model
from separatrix.proofs.arithmetic import FP32
from separatrix.proofs.derivations import DERIVATIONS
from separatrix.proofs.derivations.parts.derivation import adversarial
from separatrix.tasks import parse_task

CASES = {
    "equality": "equality:n=4",
    "pairs": "twosum:n=3,M=6,form=decision",
    "match2-bits": "twosum:n=3,M=6",
    "neighbour": "neighbour:n=3,d=4,V=3,shift=equal",
}


def broken(name: str, edit: Callable[[Model], None]) -> None:
    task = parse_task(CASES[name])
    model = construct(task, kind=name).model
    DERIVATIONS[name].derive(task, model, FP32)
    edit(model)
    derived = DERIVATIONS[name].derive(task, model, FP32)
    if derived.margin <= 0:
        raise CheckFailed("no lead")


def mixer(model: Model, layer: int) -> FullMixer:
    block = model.blocks[layer]
    assert isinstance(block, Block)
    found = block.mixers[0]
    assert isinstance(found, FullMixer)
    return found


def scaled(layer: int, matrix: str, factor: float) -> Callable[[Model], None]:
    def edit(model: Model) -> None:
        mixer(model, layer).get_parameter(f"{matrix}.weight").mul_(factor)

    return edit


def shifted(name: str, index: tuple[int, ...], by: float) -> Callable[[Model], None]:
    def edit(model: Model) -> None:
        model.get_parameter(name)[index] += by

    return edit


def start_key(model: Model) -> None:
    """The start token scores one unit in the last place more than a match."""
    head = mixer(model, 0)
    place = int(head.k.weight[-1].nonzero())
    head.k.weight[-1, place] = torch.nextafter(head.k.weight[-1, place], torch.tensor(1e9))


def last_row(matrix: str, layer: int) -> Callable[[Model], None]:
    """Without the last number of keys, queries or values."""

    def edit(model: Model) -> None:
        mixer(model, layer).get_parameter(f"{matrix}.weight")[-1] = 0.0

    return edit


def row_scaled(matrix: str, layer: int, factor: float) -> Callable[[Model], None]:
    def edit(model: Model) -> None:
        mixer(model, layer).get_parameter(f"{matrix}.weight")[0] *= factor

    return edit


def without_tag(model: Model) -> None:
    mixer(model, 0).k.weight[-1] = 0.0


def places_differ(model: Model) -> None:
    """The value's first bit is blurred at one place."""
    model.position.weight[1, 0] += 0.5


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("match2-bits", scaled(0, "q", 1 / 64)),
        ("match2-bits", scaled(0, "q", -1.0)),
        ("match2-bits", scaled(0, "v", 0.5)),
        ("match2-bits", start_key),
        ("match2-bits", places_differ),
        ("match2-bits", shifted("embed.weight", (2, 0), 2.0)),
        ("match2-bits", shifted("head.bias", (1,), 0.1)),
        ("match2-bits", shifted("head.bias", (1,), -0.1)),
        ("pairs", start_key),
        ("pairs", places_differ),
        ("pairs", scaled(0, "k", 1 / 64)),
        ("pairs", scaled(1, "k", 1 / 64)),
        ("pairs", scaled(1, "k", -1.0)),
        ("pairs", shifted("blocks.0.mlp.up.bias", (0,), 4.0)),
        ("pairs", shifted("blocks.0.mlp.up.bias", (1,), 3.0)),
        ("pairs", shifted("head.bias", (0,), 0.5)),
        ("pairs", shifted("head.bias", (0,), -0.5)),
        ("equality", without_tag),
        ("equality", scaled(0, "q", 1 / 64)),
        ("equality", scaled(1, "q", 1 / 64)),
        ("equality", scaled(1, "v", 0.25)),
        # by 1 a difference is flagged with more than 1, and every answer is right
        ("equality", shifted("blocks.0.mlp.up.bias", (0,), 4.0)),
        ("equality", shifted("position.weight", (0, 0), 2.0)),
        ("equality", shifted("head.bias", (1,), 0.5)),
        ("neighbour", without_tag),
        ("neighbour", last_row("k", 1)),
        ("neighbour", scaled(0, "k", 1 / 64)),
        ("neighbour", scaled(1, "q", 1 / 64)),
        ("neighbour", scaled(1, "q", -1.0)),
        ("neighbour", scaled(1, "v", -1.0)),
        # one bit counts a little more than the others: 4 of them must not outweigh it
        ("neighbour", row_scaled("k", 1, 1.5)),
        # a string's bit says something else
        ("neighbour", shifted("embed.weight", (5, 6), 0.5)),
        # a key that reads two bits at once
        ("neighbour", shifted("blocks.0.mixers.0.v.weight", (0, 6), 1.0)),
        ("neighbour", shifted("position.weight", (2, 0), 2.0)),
        ("neighbour", shifted("blocks.0.mlp.up.bias", (0,), 2.0)),
        ("neighbour", shifted("head.weight", (0, -1), 3.0)),
        # one string alone, as the query, writes into the answer
        ("neighbour", shifted("embed.weight", (3, -1), -2.0)),
    ],
)
def test_weights_that_break_it_are_refused(name: str, edit: Callable[[Model], None]) -> None:
    with pytest.raises(CheckFailed):
        broken(name, edit)


def test_a_bit_that_moves_another_is_cleaned_away() -> None:
    """By a quarter of what is fetched: the MLP writes +-1 all the same."""
    broken("neighbour", shifted("blocks.0.mixers.0.v.weight", (0, 6), 0.25))


@pytest.mark.parametrize("name", CASES)
def test_the_same_weights_prove_nothing_of_other_sizes(name: str) -> None:
    """A model for one size, proved for another of the same shape of inputs."""
    other = {
        "equality": "equality:n=2",
        "pairs": "twosum:n=3,M=7,form=decision",
        "neighbour": "neighbour:n=3,d=3,V=3,shift=equal",
    }
    task = parse_task(CASES[name])
    model = construct(task, kind=name).model
    wanted = parse_task(other.get(name, "twosum:n=3,M=5"))
    with pytest.raises(CheckFailed):
        DERIVATIONS[name].derive(wanted, model, FP32)


@pytest.mark.parametrize("name", CASES)
def test_what_is_built_is_accepted_by_the_checker(name: str, tmp_path: Path) -> None:
    built = construct(parse_task(CASES[name]), kind=name)
    built.save_weights(tmp_path)
    checked = verify(built.record, folder=tmp_path)
    assert checked.record == built.record
    assert "every answer right" in checked.checks[-1]


SMALL = {
    "equality": "equality:n=2",
    "pairs": "twosum:n=3,M=4,form=decision",
    "match2-bits": "twosum:n=2,M=6",
    "neighbour": "neighbour:n=2,d=3,V=2,shift=equal",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_whatever_is_changed_is_refused_or_right(name: str) -> None:
    """One or two weights at a time, by a sign, a digit or more: what is still proved still answers
    every input.
    """
    task = parse_task(SMALL[name])
    model = construct(task, kind=name).model
    derivation = DERIVATIONS[name]
    tokens = np.array(list(itertools.product(*map(range, derivation.ids(task)))))
    if derivation.asked is not None:
        tokens = tokens[derivation.asked(task, tokens)]
    right = task.answer(tokens)
    rng = np.random.default_rng(11)
    first = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    refused = 0
    for _ in range(50):
        model.load_state_dict(first)
        for key in rng.choice(list(first), size=int(rng.integers(1, 3))):
            flat = model.state_dict()[key].view(-1)
            place = int(rng.integers(len(flat)))
            value = float(flat[place])
            flat[place] = float(
                rng.choice([0.0, -value, value * (1 + 2.0**-20), value + rng.choice([-2, 0.5, 4])])
            )
        try:
            proved = derivation.derive(task, model, FP32).margin > 0
        except CheckFailed:
            proved = False
        refused += not proved
        with torch.inference_mode():
            found = model(torch.from_numpy(tokens)).argmax(-1).numpy()
        assert not proved or (found == right).all()
    assert 0 < refused < 50


def test_hard_inputs_have_several_answers() -> None:
    for name, text in CASES.items():
        task = parse_task(text)
        tokens = adversarial(DERIVATIONS[name], task, 64, np.random.default_rng(0))
        assert len(set(task.answer(tokens).tolist())) > 1
