"""Leads of codes are those of the table of all scores, by brute force over small keys; what is no
code is left to the table, and what the table cannot hold is refused.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from support.each import each

from separatrix.constructions import construct
from separatrix.core.errors import CheckFailed
from separatrix.proofs.arithmetic import FP32
from separatrix.proofs.derivations import DERIVATIONS
from separatrix.proofs.derivations.parts import queries as compared
from separatrix.proofs.derivations.parts.queries import Codes
from separatrix.tasks import parse_task

EVERY = np.array(list(itertools.product((-4.0, 4.0), repeat=4)))


def brute(keys: np.ndarray, queries: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The lead of each right key, over every other key."""
    scores = queries @ keys.T
    own = scores[np.arange(len(right)), right]
    scores[np.arange(len(right)), right] = -np.inf
    return own - scores.max(1)


def all_used(keys: np.ndarray) -> np.ndarray:
    return np.ones(keys.shape[1], np.bool_)


@each("seed", range(20))
def test_leads_of_every_code_are_those_of_all_scores(seed: int) -> None:
    """All 16 keys of four signs stand there, so that each dimension has a rival of its own."""
    rng = np.random.default_rng(seed)
    strength = rng.integers(1, 9, size=(16, 4)).astype(float)
    found = Codes.of(EVERY, np.ones(16, np.bool_), all_used(EVERY))
    assert found is not None
    right = np.arange(16)
    leads = found.leads(np.sign(EVERY) * strength, right)
    assert leads is not None
    assert leads.tolist() == brute(EVERY, np.sign(EVERY) * strength, right).tolist()


@each("seed", range(20))
def test_leads_are_never_more_than_those_of_all_scores(seed: int) -> None:
    """Some of the codes, among them keys that nobody asks for."""
    rng = np.random.default_rng(seed)
    ours = EVERY[rng.permutation(16)[: rng.integers(2, 16)]]
    rest = rng.integers(-3, 4, size=(int(rng.choice([0, 1, 70])), 4)).astype(float)
    keys = np.concatenate([ours, rest])
    asked = np.arange(len(keys)) < len(ours)
    right = np.arange(len(ours))
    queries = np.sign(ours) * rng.integers(1, 9, size=ours.shape).astype(float)
    found = Codes.of(keys, asked, all_used(keys))
    assert found is not None
    leads = found.leads(queries, right)
    assert leads is not None
    assert (leads <= brute(keys, queries, right)).all()


def test_what_is_no_code_is_none() -> None:
    asked = np.ones(16, np.bool_)
    third = EVERY.copy()
    third[3, 2] = 1.0
    assert Codes.of(third, asked, all_used(third)) is None
    twice = EVERY.copy()
    twice[3] = twice[4]
    assert Codes.of(twice, asked, all_used(twice)) is None
    # told apart only where no query asks
    assert Codes.of(EVERY, asked, np.array([True, True, True, False])) is None
    codes = Codes.of(EVERY, asked, all_used(EVERY))
    assert codes is not None
    # the right key of a query is the one that it likes best
    assert codes.leads(EVERY, np.roll(np.arange(16), 1)) is None


@pytest.mark.parametrize("text", ["eva:n=37,V=5", "eva:n=64,V=3", "index:n=33,V=2"])
def test_codes_prove_what_the_table_does(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task = parse_task(text)
    built = construct(task)
    monkeypatch.setattr(compared, "_TABLE", -1)
    # no score is compared one by one
    monkeypatch.setattr(compared, "_MOST", -1)
    derived = DERIVATIONS[built.record.name].derive(task, built.model, FP32)
    assert derived.layers == built.record.proof["layers"]
    sample = task.sample(8, np.random.default_rng(0)).tokens
    assert (built.model(torch.from_numpy(sample)).argmax(-1).numpy() == task.answer(sample)).all()


@pytest.mark.parametrize(("row", "column"), [(3, 0), (3, 4), (17, 1)])
def test_a_changed_key_is_met_with_codes_too(
    row: int, column: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the table an address with a bit turned around, or none, is refused."""
    task = parse_task("eva:n=32,V=3")
    built = construct(task)
    monkeypatch.setattr(compared, "_TABLE", -1)
    monkeypatch.setattr(compared, "_MOST", -1)
    for change in (-1.0, 0.0):
        weight = built.model.position.weight
        before = weight.clone()
        weight[row, column] *= change
        with pytest.raises(CheckFailed, match="too many"):
            DERIVATIONS["retrieval"].derive(task, built.model, FP32)
        weight.copy_(before)


def test_codes_hold_where_a_table_would_be_too_large() -> None:
    """5,000 arguments: 25 million scores. Address bits +-4: a rival loses 2 x 16."""
    derived = construct(parse_task("eva:n=5000,V=2")).record.proof
    assert derived["layers"][0]["score_gap"] == "32"
