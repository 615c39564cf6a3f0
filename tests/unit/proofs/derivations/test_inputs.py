"""What is drawn against constructions: every kind, within the ids of each position, and told right
by the oracle; constructions of one layer and of several answer all of it.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from separatrix.constructions import construct
from separatrix.proofs.derivations import DERIVATIONS
from separatrix.proofs.derivations.parts.derivation import adversarial
from separatrix.tasks import parse_task

TEXTS = [
    "eva:n=21,V=6",
    "seqcomp:L=2,m=4,n_1=2",
    "twosum:n=12,M=10",
    "parity:n=15",
    "permutation:n=9,k=4,shift=swaps",
]


@pytest.mark.parametrize("text", TEXTS)
def test_hard_inputs_are_answered_right(text: str) -> None:
    task = parse_task(text)
    built = construct(task)
    derivation = DERIVATIONS[built.record.name]
    rng = np.random.default_rng(8)
    tokens = adversarial(derivation, task, 300, rng)
    assert tokens.shape == (300, task.length)
    assert (tokens >= 0).all()
    assert (tokens < derivation.ids(task)).all()
    if derivation.asked is not None:
        assert derivation.asked(task, tokens).all()
    with torch.inference_mode():
        found = built.model(torch.from_numpy(tokens)).argmax(-1).numpy()
    assert (found == task.answer(tokens)).all()


def test_every_kind_is_drawn() -> None:
    """Of 400 inputs of 21 places and 6 values: all places alike but for one, or the least and the
    greatest value alone, are never drawn at random (6^-20).
    """
    task = parse_task("eva:n=21,V=6")
    tokens = adversarial(DERIVATIONS["retrieval"], task, 400, np.random.default_rng(1))
    table = tokens[:, :-1]
    kinds = np.array([len(np.unique(row)) for row in table])
    most = np.array([np.bincount(row).max() for row in table])
    assert (kinds == 1).sum() > 20
    assert (most == 20).sum() > 20
    assert ((table == 0) | (table == 5)).all(1).sum() > 20
    assert (np.diff(table) % 6 == 1).all(1).sum() > 5
    assert (np.diff(table) % 6 == 5).all(1).sum() > 5
    assert len(np.unique(tokens[:, -1])) == 21


def test_a_broken_construction_is_found() -> None:
    """One bit of one address turned around: hard inputs meet it."""
    task = parse_task("eva:n=64,V=2")
    built = construct(task)
    built.model.position.weight[37, 0] *= -1
    tokens = adversarial(DERIVATIONS["retrieval"], task, 400, np.random.default_rng(2))
    with torch.inference_mode():
        found = built.model(torch.from_numpy(tokens)).argmax(-1).numpy()
    assert (found != task.answer(tokens)).any()
