"""Total tasks by the automaton of their prefixes' classes: right on every input, with as many bits
as Theorem I asks for, and with one bit less refuted by it.
"""

from __future__ import annotations

from itertools import product
from math import ceil, log2
from pathlib import Path

import numpy as np
import pytest
from support.construction_tools import refused, wrong

import separatrix as sx
from separatrix.checks.verify.construction import verify_construction
from separatrix.constructions import Built, construct
from separatrix.constructions.multiplied import Quotient, machine
from separatrix.core.errors import CheckFailed, SizeError
from separatrix.proofs.arithmetic import BF16, FP32
from separatrix.proofs.derivations.tracked import derive_machine
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Eva, Task, parse_task

TASKS = {
    "eva:n=1,V=2": ([2, 1], 1),
    "eva:n=2,V=3": ([3, 3, 2], 4),
    "eva:n=3,V=2": ([2, 2, 2, 3], 3),
    "eva:n=4,V=3": ([3, 3, 3, 3, 4], 7),
    "equality:n=2": ([2] * 4, 2),
    "equality:n=3": ([2] * 6, 3),
    "disjointness:n=3": ([2] * 6, 3),
    "parity:n=7": ([2] * 7, 1),
    "modular:n=5,m=3": ([2] * 5, 2),
    "modular:n=6,m=5": ([2] * 6, 3),
}
"""Task -> ids at each place, and ceil(log2 max C), by hand: n log2 V, n, n, 1 and log2 m."""


def classes(task: Task, ids: list[int], t: int) -> int:
    """C(t) by its definition: different columns of answers, over all continuations."""
    rows = set()
    for prefix in product(*map(range, ids[:t])):
        rest = np.array(list(product(*map(range, ids[t:]))), np.int64)
        whole = np.concatenate([np.tile(np.array(prefix, np.int64), (len(rest), 1)), rest], 1)
        rows.add(tuple(task.answer(whole).tolist()))
    return len(rows)


@pytest.mark.parametrize("spec", TASKS)
def test_both_sides_meet(spec: str) -> None:
    """The machine of b bits is right on every input and its cache is b bits; of b - 1 bits Theorem
    I says that it fails, and the construction says that it does not fit.
    """
    task = parse_task(spec)
    ids, bits = TASKS[spec]
    model = machine(task, ids, None)
    inputs = np.array(list(product(*map(range, ids))), np.int64)
    assert not wrong(Built(task, model, None), inputs, task.answer(inputs))  # type: ignore[arg-type]
    assert model.architecture.cache_bits(task.length) == bits
    assert derive_machine(task, model, ids, FP32).margin == 2
    assert derive_machine(task, model, ids, BF16).formats == ("bf16",)
    rules = task.length * task.vocabulary
    (verdict,) = sx.judge(Architecture.parse(f"automaton(bits={bits}, rules={rules})"), task)
    assert (verdict.theorem, verdict.status, verdict.numbers["bits"]) == (
        "tightness",
        "SOLVABLE",
        bits,
    )
    if bits > 1:
        less = Architecture.parse(f"automaton(bits={bits - 1}, rules={rules})")
        assert {v.status for v in sx.judge(less, task)} == {"FAILS"}
        assert "I" in {v.theorem for v in sx.judge(less, task)}
        with pytest.raises(SizeError, match=f"bits >= {bits}"):
            machine(task, ids, less)


@pytest.mark.parametrize("spec", ["eva:n=2,V=3", "equality:n=2", "modular:n=6,m=5"])
def test_classes_are_those_of_the_definition(spec: str) -> None:
    task = parse_task(spec)
    ids, bits = TASKS[spec]
    counts = [classes(task, ids, t) for t in range(len(ids) + 1)]
    assert Quotient.of(task, ids).counts == counts
    assert ceil(log2(max(counts))) == bits


@pytest.mark.parametrize(
    ("n", "V"),
    [
        (6, 4),
        pytest.param(8, 4, marks=pytest.mark.slow),
        pytest.param(12, 2, marks=pytest.mark.slow),
    ],
)
def test_eva_with_a_bit_for_a_bit(n: int, V: int) -> None:
    """n log2 V bits and no more, on inputs drawn at random and on constant ones; a retrieval head
    would keep them in a growing cache.
    """
    task = Eva(n=n, V=V)
    built = construct(task, kind="automaton")
    assert built.model.architecture.cache_bits(10**6) == n * (V - 1).bit_length()
    tokens = task.sample(500, np.random.default_rng(0)).tokens
    tokens[:V, :-1] = np.arange(V)[:, None]
    assert not wrong(built, tokens, task.answer(tokens))


def test_the_record_is_verified_and_says_how_many_states(tmp_path: Path) -> None:
    built = construct(Eva(n=3, V=3), kind="automaton")
    assert built.record.proof["layers"][0]["states"] == 27
    said = verify_construction(built.record, built.save(tmp_path).parent)
    assert any("all 81 inputs" in line for line in said)


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ({"blocks.0.mixers.0.table": ((0, 0, 0), 1.0)}, "has not the largest logit"),
        ({"blocks.0.mixers.0.rules.bias": ((3,), 4.0)}, "largest logit|score alike|states"),
        ({"head.weight": ((0, 3), -1.0)}, "largest logit|final_margin"),
        ({"position.weight": ((1, 0), -2.0)}, "has not the largest logit"),
    ],
)
def test_edited_weights_are_refused(
    edits: dict[str, tuple[tuple[int, ...], float]], message: str, tmp_path: Path
) -> None:
    built = construct(Eva(n=2, V=3), kind="automaton")
    refused(built, tmp_path, edits, message)


def test_what_does_not_fit_is_said() -> None:
    with pytest.raises(SizeError, match="from all inputs"):
        construct(Eva(n=16, V=16), kind="automaton")
    with pytest.raises(SizeError, match="rules >= 12"):
        construct(Eva(n=3, V=3), Architecture.parse("automaton(bits=8, rules=11)"), "automaton")
    model = construct(Eva(n=3, V=3)).model
    with pytest.raises(CheckFailed, match="an MLP"):
        derive_machine(Eva(n=3, V=3), model, [3, 3, 3, 3], FP32)
