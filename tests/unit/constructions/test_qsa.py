"""q-sparse averaging in two full layers: every input of small sizes, hostile sums at larger ones,
edited weights refused.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from support.construction_tools import every, refused
from support.each import each

from separatrix.checks.verify import verify
from separatrix.constructions import Built, construct
from separatrix.core.errors import SizeError
from separatrix.proofs.derivations import DERIVATIONS
from separatrix.proofs.derivations.parts.derivation import adversarial
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import NO_ANSWER, QSA
from separatrix.tasks.base.task import Tokens
from separatrix.theory import judge


def wrong_at(built: Built, tokens: Tokens) -> int:
    """Questions that are answered wrongly, by the logits after every token."""
    targets = built.task.answer(tokens)
    with torch.inference_mode():
        found = built.model.every(torch.from_numpy(tokens)).argmax(-1).numpy()
    return int(((found != targets) & (targets != NO_ANSWER)).sum())


@pytest.mark.parametrize(
    ("task", "stack", "count"),
    [
        (QSA(n=2, q=2, V=2, sets=1), None, 2**2 * 2),
        (QSA(n=3, q=2, V=3, sets=1), "gdn + full(heads=2) + linear + full(head_dim=3)", 3**3 * 6),
        (QSA(n=3, q=3, V=2, sets=1), None, 2**3 * 6),
        (QSA(n=2, q=2, V=3, sets=2), None, 3**2 * 2 * 2),
    ],
    ids=str,
)
def test_every_input_is_answered_right_and_proved(
    task: QSA, stack: str | None, count: int, tmp_path: Path
) -> None:
    built = construct(task, None if stack is None else Architecture.parse(stack))
    asked = DERIVATIONS["qsa"].asked
    assert asked is not None
    tokens = every([task.V] * task.n + [task.vocabulary] * (task.sets * task.q))
    tokens = tokens[asked(task, tokens)]
    assert len(tokens) == count
    assert wrong_at(built, tokens) == 0
    built.save(tmp_path)
    assert "every answer right" in " ".join(verify(built.record, folder=tmp_path).checks)


def test_a_claim_about_no_input_is_run_on_none() -> None:
    task, rng = QSA(n=2, q=2, V=3, sets=2), np.random.default_rng(0)
    own = DERIVATIONS["qsa"]
    assert 0 < len(adversarial(own, task, 8, rng)) <= 8
    nothing = replace(own, about=lambda _, tokens: np.zeros(len(tokens), bool), hard=None)
    with pytest.raises(SizeError, match="n of at least 6"):
        adversarial(nothing, task, 8, rng)


def test_sums_beside_every_multiple_are_right() -> None:
    """Values whose sums are w V - 1, w V and w V + 1 for every w, asked at every set."""
    task = QSA(n=40, q=4, V=5, sets=7)
    built = construct(task)
    rng = np.random.default_rng(3)
    rows = []
    for total in range(task.q * (task.V - 1) + 1):
        values = rng.integers(task.V, size=task.n)
        chosen = rng.permutation(task.n)[: task.q]
        # `total` as q values, as even as they can be
        values[chosen] = total // task.q + (np.arange(task.q) < total % task.q)
        sets = [rng.permutation(chosen) if i % 2 else rng.permutation(task.n)[:4] for i in range(7)]
        rows.append(np.concatenate([values, task.V + np.concatenate(sets)]))
    assert wrong_at(built, np.array(rows)) == 0


@pytest.mark.slow
def test_random_and_extreme_prompts_of_hundreds() -> None:
    task = QSA(n=512, q=8, V=32, sets=64)
    built = construct(task)
    rng = np.random.default_rng(4)
    tokens = task.sample(40, rng).tokens.copy()
    tokens[:8, :512] = 31
    tokens[8:12, :512] = 0
    tokens[12:20, :512] = rng.integers(3, 6, size=(8, 512))
    assert wrong_at(built, tokens) == 0


@pytest.mark.parametrize(
    ("task", "stack", "message"),
    [
        (QSA(n=8, q=2, V=2, sets=4), "full", "full layer"),
        (QSA(n=8, q=2, V=2, sets=4), "full*2 @ head_dim=3", "head_dim >= 4"),
        (QSA(n=8, q=2, V=2, sets=4), "full(conv=2)*2", "full layer"),
        (QSA(n=128, q=64, V=16, sets=2), None, "not proved"),
        (QSA(n=4096, q=64, V=4096, sets=2), None, "smaller V or q"),
    ],
)
def test_what_cannot_hold_it_is_refused(task: QSA, stack: str | None, message: str) -> None:
    with pytest.raises(SizeError, match=message):
        construct(task, None if stack is None else Architecture.parse(stack))


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        # one token of a set is found by another number
        ("position.weight", (5, 5), 1.0, "differently|scores no less"),
        ("position.weight", (4, 5), -0.5, "differently|scores no less"),
        # place 0 gets the address of place 1
        ("position.weight", (0, 0), 1.0, "scores no less"),
        (
            "blocks.1.mixers.0.v.weight",
            (0, 10),
            2.0,
            "no less|sum is not|logit|proof recorded",
        ),
        ("blocks.1.mlp.up.bias", (0,), -3.0, "no less|largest logit"),
        ("head.bias", (1,), -1.5, "largest logit"),
    ],
)
def test_edited_weights_are_refused(
    name: str, place: tuple[int, ...], value: float, message: str, tmp_path: Path
) -> None:
    built = construct(QSA(n=4, q=2, V=3, sets=2))
    refused(built, tmp_path, {name: (place, value)}, message)


@each(
    "task, stack, status",
    [
        (QSA(n=512, q=8, V=32, sets=64), "full*2", "SOLVABLE"),
        (QSA(n=512, q=8, V=32, sets=64), "gdn + full + linear + full", "SOLVABLE"),
        (QSA(n=512, q=8, V=32, sets=64), "full", "OPEN"),
        (QSA(n=512, q=8, V=64, sets=64), "full*2", "OPEN"),
        (QSA(n=512, q=8, V=32, sets=64), "full*2 @ bf16", "OPEN"),
        (QSA(n=512, q=8, V=32, sets=64), "full*2 @ positions=none", "OPEN"),
    ],
)
def test_what_the_theorem_says(task: QSA, stack: str, status: str) -> None:
    found = judge(Architecture.parse(stack), task)
    assert {verdict.status for verdict in found} == {status}
    assert status != "SOLVABLE" or found[0].theorem == "qsa"
