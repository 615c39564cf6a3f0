"""Copying in two full layers: every string of small sizes, whatever fills the rest, strings of all
lengths in stacks with options, edited weights refused.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from support.construction_tools import every, refused
from support.each import each

from separatrix.constructions import Built, construct
from separatrix.core.errors import SizeError
from separatrix.proofs.derivations.copying import of_any_length
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Copying, parse_task
from separatrix.tasks.base.task import Tokens


def prompt(task: Copying, values: Tokens) -> Tokens:
    """The string, the mark, its blanks, and what fills the rest."""
    behind = np.full(task.length - len(values), task.V + 2)
    behind[0], behind[1 : len(values) + 1] = task.V, task.V + 1
    return np.concatenate([values, behind])


def wrong_at(built: Built, strings: list[Tokens]) -> int:
    """Values that are copied wrongly."""
    assert isinstance(built.task, Copying)
    tokens = np.array([prompt(built.task, values) for values in strings])
    with torch.inference_mode():
        found = built.model.every(torch.from_numpy(tokens)).argmax(-1).numpy()
    copies = (row[len(x) + 1 :][: len(x)] for x, row in zip(strings, found, strict=True))
    return sum(int((copy != x).sum()) for copy, x in zip(copies, strings, strict=True))


@pytest.mark.parametrize(("n", "V"), [(2, 2), (5, 3), pytest.param(9, 2, marks=pytest.mark.slow)])
def test_every_string_is_copied(n: int, V: int) -> None:
    strings = [row for m in range(1, n + 1) for row in every([V] * m)]
    assert wrong_at(construct(Copying(n=n, V=V)), strings) == 0


@pytest.mark.parametrize(
    "stack",
    [
        "gdn + full(sink=true, gate=sigmoid) + linear + full(sink=true)",
        "full(qk_norm=head) + full",
        # the first finds the mark by a pair that turns slowly
        "full(rope=true, head_dim=64) + full(rope=true, rope_dim=8)",
        "fox + full(conv=4)",
    ],
)
@pytest.mark.parametrize("n", [40, pytest.param(1024, marks=pytest.mark.slow)])
def test_strings_of_all_lengths(stack: str, n: int) -> None:
    rng = np.random.default_rng(n)
    built = construct(Copying(n=n, V=9), Architecture.parse(f"{stack} @ head_dim=16"))
    lengths = [1, 2, 3, n - 1, n, *rng.integers(1, n + 1, size=6).tolist()]
    strings = [rng.integers(9, size=m) for m in lengths] + [np.full(m, 8) for m in lengths]
    assert wrong_at(built, strings) == 0


def test_hard_inputs_are_instances() -> None:
    task = Copying(n=21, V=3)
    tokens = of_any_length(task, np.random.default_rng(1))
    task.answer(tokens)
    assert (tokens == task.V + 1).sum(1).tolist() == [1, 2, 4, 8, 16]


@each(
    "stack, task, message",
    [
        ("full", "n=8,V=4", "full layer"),
        ("full + full(qk_norm=head)", "n=8,V=4", "no norm"),
        ("full*2 @ head_dim=1", "n=8,V=4", "head_dim >= 2"),
        ("full(rope=true)*2 @ head_dim=32", "n=8,V=4", "beside what rotations turn"),
        ("full*2 @ positions=none", "n=8,V=4", "positions=embedded"),
        ("full*2", "n=1025,V=4", "n = 1,024"),
        ("full*2 @ bf16", "n=1000,V=4", "bfloat16"),
    ],
)
def test_a_stack_that_cannot_hold_it_is_refused(stack: str, task: str, message: str) -> None:
    with pytest.raises(SizeError, match=message):
        construct(parse_task(f"copying:{task}"), Architecture.parse(stack))


NUMBER, SQUARE, ONE, MARK, VALUE, FOUND, ANSWER = 0, 1, 2, 3, 4, 6, 9
"""Numbers of the stream where values have two bits."""


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        # a token that is taken for the mark, a mark that is hardly one
        ("embed.weight", (1, MARK), 1.0, "flagged"),
        ("embed.weight", (4, MARK), -0.9, "scores? no less"),
        # places that say they are others, or win for others
        ("position.weight", (3, NUMBER), -4.5, "scores? no less"),
        ("position.weight", (6, SQUARE), 0.0, "scores? no less"),
        # a blank that asks for another place, all of them, and those far behind the mark
        ("position.weight", (11, ONE), 0.5, "scores? no less"),
        ("blocks.1.mixers.0.q.weight", (0, ONE), -32.0, "scores? no less"),
        ("blocks.1.mixers.0.q.weight", (0, FOUND), -4.5, "scores? no less"),
        # a value for another, when it is read and when it is told
        ("embed.weight", (1, VALUE), -1.0, "answer 1"),
        ("head.weight", (2, ANSWER), 1.0, "answer [23]"),
    ],
)
def test_edited_weights_are_refused(
    name: str, place: tuple[int, int], value: float, message: str, tmp_path: Path
) -> None:
    refused(construct(Copying(n=8, V=4)), tmp_path, {name: (place, value)}, message)
