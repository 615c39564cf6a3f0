"""Index lookup in one full layer: every input of small sizes, hostile ones at thousands of places,
and edited weights refused.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.construction_tools import every, refused, wrong
from support.each import each

from separatrix.checks.verify import verify
from separatrix.constructions import construct
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Index
from separatrix.theory import judge


@pytest.mark.parametrize(
    ("n", "V", "stack"),
    [
        (1, 2, None),
        (3, 5, None),
        (5, 3, None),
        (3, 3, "gdn*2 + full(heads=4, kv_heads=2) + linear"),
    ],
)
def test_every_input_is_answered_right_and_proved(
    n: int, V: int, stack: str | None, tmp_path: Path
) -> None:
    built = construct(Index(n=n, V=V), None if stack is None else Architecture.parse(stack))
    tokens = every([V] * n + [n])
    answers = tokens[np.arange(len(tokens)), tokens[:, -1]]
    tokens[:, -1] += V
    assert not wrong(built, tokens, answers)
    built.save(tmp_path)
    assert "every answer right" in " ".join(verify(built.record, folder=tmp_path).checks)


@each(
    "stack, theorem",
    [
        ("full", "retrieval"),
        ("sparse", "block-retrieval"),
        ("indexed", "indexed-retrieval"),
        ("full(rope=true) @ positions=none", "retrieval"),
    ],
)
def test_what_retrieves_looks_places_up_too(stack: str, theorem: str) -> None:
    (verdict,) = judge(Architecture.parse(stack), Index(n=300, V=7))
    assert (verdict.status, verdict.theorem) == ("SOLVABLE", theorem)


def test_the_lead_is_the_one_derived_by_hand() -> None:
    """2 s^2 = 32 in scores; 2 in logits of +-1 codes, less what rounding takes."""
    record = construct(Index(n=37, V=9)).record
    (layer,) = record.proof["layers"]
    assert (layer["score_gap"], layer["queries"], layer["keys"]) == ("32", 37, 38)
    assert 1.9999 < float(record.proof["final_margin"]) < 2


@pytest.mark.slow
def test_places_that_differ_in_one_bit_are_told_apart_at_4096() -> None:
    built = construct(Index(n=4096, V=4096))
    rng = np.random.default_rng(4)
    places = np.unique([0, 4095, *(1 << np.arange(12)), *rng.integers(4096, size=20)])
    tokens = np.full((len(places), 4097), 4095 - 0b101010101010)
    tokens[np.arange(len(places)), places] = 0b101010101010
    tokens[:, -1] = 4096 + places
    assert not wrong(built, tokens, np.full(len(places), 0b101010101010), batch=5)


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        # place 2 gets the address of place 0
        ("position.weight", (2, 1), -1.0, "scores no less"),
        # id V + 1 asks like id V
        ("embed.weight", (6, 3), -1.0, "scores no less"),
        ("head.weight", (0, -1), 0.25, "proof recorded|largest logit"),
    ],
)
def test_edited_weights_are_refused(
    name: str, place: tuple[int, ...], value: float, message: str, tmp_path: Path
) -> None:
    refused(construct(Index(n=4, V=5)), tmp_path, {name: (place, value)}, message)
