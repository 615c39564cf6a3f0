"""What every construction must do: builder and checker know it alike, each from a table of its own,
and a new one takes one entry on either side.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterator
from functools import cache
from math import prod
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from support.task_cases import CASES
from support.thought_case import THOUGHT

import separatrix as sx
from separatrix.checks.verify import verify, verify_path
from separatrix.constructions import CONSTRUCTIONS, Built, construct
from separatrix.core.errors import CheckFailed, SeparatrixError, SizeError, UnknownNameError
from separatrix.proofs.derivations import DERIVATIONS
from separatrix.stacks.architecture import MECHANISMS, Architecture
from separatrix.tasks import Eva, IsTree, SeqComp, TwoSum
from separatrix.theory import THEOREMS, written
from separatrix.theory import written as known
from separatrix.theory.solves.room import START

NAMES = sorted(CONSTRUCTIONS)
CASES_OF = CASES | {"thought": THOUGHT}
"""A chain of thought is no task of its own, and has its sizes from one that is."""


@cache
def builds(name: str) -> list[Built]:
    """The construction at every tiny size of its task that it takes."""
    recipe = CONSTRUCTIONS[name]
    case = CASES_OF[recipe.task.name]
    # of some tasks every size has too many inputs to try all
    tiny = [task for task in case.tiny or case.examples[:2] if type(task) is recipe.task]
    # some are about prompts of one shift alone
    return _made(name, tiny) or _made(name, list(_shifted(tiny)))


def _shifted(tasks: list[Any]) -> Iterator[Any]:
    for task in tasks:
        for shift in task.shifts:
            yield dataclasses.replace(task, shift=shift)


def _made(name: str, tasks: list[Any]) -> list[Built]:
    made = []
    for task in tasks:
        try:
            made.append(construct(task, kind=name))
        except SizeError:
            continue
    return made


def test_builder_and_checker_know_the_same_constructions() -> None:
    built = {name: recipe.task for name, recipe in CONSTRUCTIONS.items()}
    checked = {name: derivation.task for name, derivation in DERIVATIONS.items()}
    assert built == checked
    assert all(recipe.name == name for name, recipe in CONSTRUCTIONS.items())
    assert all(derivation.name == name for name, derivation in DERIVATIONS.items())


def test_cards_know_which_constructions_are_built() -> None:
    """Theory keeps names of recipes and their limits, since it may not import them."""
    assert sorted(sum(known.BUILT.values(), ())) == sorted(CONSTRUCTIONS)
    for mechanism in MECHANISMS:
        stack = Architecture.parse(f"{mechanism} + full*2")
        task = SeqComp(L=2, m=3, branching=(1,))
        try:
            construct(task, stack, "carried")
        except SizeError:
            assert mechanism not in written.CARRIERS, mechanism
        else:
            assert mechanism in written.CARRIERS, mechanism


@pytest.mark.parametrize(
    ("spec", "task", "name"),
    [
        ("full", "eva:n=8,V=8", "retrieval"),
        ("full(rope=true, qk_norm=head, gate=head)", "eva:n=8,V=8", "retrieval"),
        ("mla(rope_dim=4, latent=32) @ positions=none", "eva:n=8,V=8", "retrieval"),
        ("fox(conv=4)", "eva:n=8,V=8", "retrieval"),
        ("full(rope=true, rope_dim=4)", "index:n=8,V=8", "index"),
        ("full*2 + full(head_dim=4, rope=true)", "seqcomp:L=2,m=16,n_1=1", "seqcomp"),
        ("full(sink=true, rope=true, rope_dim=4)", "twosum:n=8,M=9,form=query", "match2"),
        ("sparse(block=4) @ head_dim=32", "eva:n=16,V=8", "sparse-retrieval"),
        ("gdn + indexed(topk=3)", "eva:n=8,V=8", "indexed-retrieval"),
        ("full", "index:n=8,V=8", "index"),
        ("full(conv=2)", "recall:n=8,K=9,V=8,form=last", "recall"),
        ("full @ positions=none", "counting:n=40,V=6,form=queried", "counting"),
        ("shortconv + full", "recall:n=8,K=9,V=8,form=last", "carried-recall"),
        (
            "shortconv + gdn + full",
            "mqar:vocab_size=16,input_seq_len=16,num_kv_pairs=4",
            "carried-mqar",
        ),
        ("shortconv + full @ positions=none", "cgram:n=26,V=8,c=2", "cgram"),
        ("full*2 @ heads=2", "cgram:n=26,V=8,c=2", "induction-cgram"),
        ("full*2 @ head_dim=8", "recall:n=8,K=9,V=8", "induction-recall"),
        (
            "gdn + full(rope=true, rope_dim=16)*2 @ head_dim=32, positions=none",
            "noisy-recall:n=4,noise=4,K=7,V=4",
            "induction-noisy-recall",
        ),
        (
            "full(rope=true, rope_dim=16, qk_norm=head, gate=sigmoid) + gdn + full(rope=true,"
            " rope_dim=16, gate=sigmoid) @ heads=2, kv_heads=1, head_dim=32, positions=none",
            "mqar:vocab_size=16,input_seq_len=16,num_kv_pairs=4",
            "induction-mqar",
        ),
        ("full(rope=true)*2 @ head_dim=32", "twosum:n=8,M=13,form=query", "induction-twosum"),
        ("full*2", "qsa:n=12,q=3,V=4,sets=5", "qsa"),
        ("gdn + full(sink=true, gate=sigmoid)*2", "copying:n=12,V=4", "copying"),
        ("full(conv=3)", "mqar:vocab_size=16,input_seq_len=16,num_kv_pairs=4", "mqar"),
        ("full*3", "seqcomp:L=2,m=4,n_1=2", "seqcomp"),
        ("gdn + full*2", "seqcomp:L=2,m=4,n_1=2", "carried"),
        ("full + rglru + full", "seqcomp:L=2,m=4,n_1=2", "carried"),
        ("full", "twosum:n=8,M=754,form=query", "match2"),
        ("full(heads=7) + gdn + full*3", "khop:n=90,V=10,k=7", "khop"),
        ("full(causal=false)*3", "seqcomp:L=3,m=4,n_1=2,n_2=2", "encoder"),
        ("gdn + full", "seqcomp:L=3,m=4,n_1=2,n_2=2,thought=pairs", "thought"),
        ("full", "twosum:n=8,M=5755,form=query", "match2-bits"),
        ("full(positions=none)", "twosum:n=8,M=5,form=query", "match2-bits"),
        ("gdn + full*2 @ positions=none", "twosum:n=8,M=64,form=decision", "pairs"),
        # the second one need only find a flag
        ("full + full(head_dim=1)", "twosum:n=8,M=64,form=decision", "pairs"),
        ("full + full(head_dim=1)", "equality:n=8", "equality"),
        ("full*2 + linear", "equality:n=8", "equality"),
        ("full(rope=true, rope_dim=32)*2", "equality:n=8", "equality"),
        ("full(sink=true, gate=sigmoid)*2", "twosum:n=8,M=64,form=decision", "pairs"),
        ("fox*2", "twosum:n=8,M=64,form=decision", "pairs"),
        ("full(rope=true, rope_dim=16, conv=4)", "twosum:n=8,M=5755,form=query", "match2-bits"),
        ("gdn + full*2 @ head_dim=11", "neighbour:n=7,d=9,V=3", "neighbour"),
        ("mamba2 + deltanet(negative=true)", "parity:n=40", "parity"),
        ("gdn(negative=true) + full(positions=none)", "permutation:n=9,k=2", "permutation"),
        ("deltaproduct(householders=4)", "permutation:n=9,k=5", "permutation"),
        ("deltaproduct(householders=4)", "permutation:n=9,k=5,shift=swaps", "permutation"),
        ("deltaproduct", "permutation:n=9,k=5,shift=swaps", "swaps"),
        ("deltaproduct(householders=4, format=bf16)", "group:n=9,G=A5", "group"),
        ("deltaproduct(householders=4)|full", "modular:n=9,m=6", "modular"),
        # not into the first of its layers that could hold it
        ("gdn(negative=true, conv=4) + gdn(negative=true)", "parity:n=40", "parity"),
    ],
)
def test_what_a_card_says_is_built_is_built(spec: str, task: str, name: str) -> None:
    model = Architecture.parse(spec)
    verdict = sx.judge(model, sx.parse_task(task))[0]
    assert known.built_by(verdict) == (name,)
    assert construct(sx.parse_task(task), kind=name).record.name == name
    assert known.in_construct(verdict)
    if verdict.theorem != "block-retrieval":
        assert construct(sx.parse_task(task), model).record.name == name


@pytest.mark.parametrize(("m", "name"), [(9, "bf16"), (11, "bf16"), (11, "fp16")])
def test_a_narrow_format_is_built_where_it_holds_the_answers(m: int, name: str) -> None:
    """Of 9 things 8 x 8 + 8 x 8 / 2 = 96, in halves at most 192: 8 digits; of 11, 300."""
    sizes = f"heads=1, head_dim={2 * m}, value_dim=1, householders={m - 1}, format={name}"
    stack = Architecture.parse(f"deltaproduct({sizes})")
    task = sx.parse_task(f"modular:n={m},m={m}")
    if (m, name) != (11, "bf16"):
        assert construct(task, stack).record.name == "modular"
    else:
        with pytest.raises(SeparatrixError, match=f"declares {name}"):
            construct(task, stack)


@pytest.mark.parametrize("spec", ["mlp|full", "mlp|sparse @ block=4, head_dim=32"])
def test_position_wise_parts_beside_a_mixer_are_stepped_over(spec: str) -> None:
    assert construct(Eva(n=8, V=8), Architecture.parse(spec)).record.architecture == spec


@pytest.mark.parametrize(
    ("spec", "task"),
    [
        # keys that hold a circle and a blank, but not the bits of a value
        ("full(format=fp64, head_dim=3)", "twosum:n=8,M=5755,form=query"),
        ("full(qk_norm=head)*2", "twosum:n=8,M=64,form=decision"),
        ("full(qk_norm=head)*2", "equality:n=8"),
        ("indexed(conv=4)", "eva:n=8,V=8"),
        ("indexed", "index:n=8,V=8"),
        ("full*2", "copying:n=1025,V=4"),
        ("full(rope=true)*2", "copying:n=100,V=16"),
        ("dsa", "eva:n=8,V=8"),
        ("sparse(block=4) @ head_dim=32", "index:n=16,V=8"),
        ("lightning(rotated=true) + full*2", "seqcomp:L=2,m=4,n_1=2"),
        ("deltanet(negative=true, conv=4)", "parity:n=40"),
        ("gdn(negative=true, gate=silu)", "group:n=40,G=C2"),
        # more things than MOST_FOLLOWED
        pytest.param(
            "deltaproduct(householders=46, heads=1, head_dim=94)",
            "modular:n=47,m=47",
            marks=pytest.mark.slow,
        ),
        ("gdn(negative=true) + full(positions=alibi)", "parity:n=40"),
        # counted places, and gates that forget
        ("gdn + full @ positions=none", "eva:n=8,V=8"),
        # a layer without a mixer, formats that nothing computes in
        ("compressed + full", "eva:n=8,V=8"),
        ("full(format=bf16) + window(format=fp8)", "eva:n=8,V=8"),
        ("automaton(format=fp8)", "eva:n=4,V=4"),
        # half formats that eat the lead of a place
        (
            "full*3 @ format=bf16, gate=sigmoid, head_dim=16, heads=1, rope=true",
            "seqcomp:L=2,n=400",
        ),
    ],
)
def test_what_a_card_says_is_not_built_is_refused(spec: str, task: str) -> None:
    model = Architecture.parse(spec)
    verdict = sx.judge(model, sx.parse_task(task))[0]
    assert verdict.status == "SOLVABLE"
    assert known.built_by(verdict) == ()
    assert known.in_construct(verdict) == ""
    with pytest.raises(SizeError):
        construct(sx.parse_task(task), model)


def test_a_layer_that_fixes_the_width_has_room_for_it_or_not() -> None:
    """Cards promise nothing of such stacks: theory does not know the width that weights take."""
    task = sx.parse_task("equality:n=8")
    stack = Architecture.parse("rwkv + full*4 @ heads=1, head_dim=32")
    assert known.in_construct(sx.judge(stack, task)[0]) == ""
    assert construct(task, stack).model.config.width == 32
    with pytest.raises(SizeError, match="4; the construction needs 9"):
        construct(task, Architecture.parse("rwkv(heads=1, head_dim=4) + full*4 @ head_dim=8"))


SLOW = (
    "brackets",
    "match2",
    "match2-bits",
    "pairs",
    "khop",
    "encoder",
    "qsa",
    "counting",
    "carried",
    "carried-recall",
    "carried-mqar",
    "induction-recall",
    "induction-mqar",
    "induction-noisy-recall",
    "induction-twosum",
)
"""Of these tasks there are many tiny sizes with thousands of inputs, or many layers."""
EACH = pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in NAMES],
)


@EACH
def test_what_is_built_is_what_the_checker_derives(name: str, tmp_path: Path) -> None:
    made = builds(name)
    assert made
    for built in made:
        assert built.record.name == name
        built.save_weights(tmp_path)
        assert verify(built.record, folder=tmp_path).record == built.record


@EACH
def test_the_checker_knows_every_input_of_the_task(name: str) -> None:
    case = CASES_OF[CONSTRUCTIONS[name].task.name]
    if case.ranges is not None:
        for built in builds(name):
            assert DERIVATIONS[name].ids(built.task) == case.ranges(built.task)
        return
    # not every id may stand beside every other
    asked = DERIVATIONS[name].asked
    assert asked is not None
    few = [b.task for b in builds(name) if prod(DERIVATIONS[name].ids(b.task)) <= 60_000]
    assert few or not case.tiny
    for task in few:
        tokens = np.array(list(itertools.product(*map(range, DERIVATIONS[name].ids(task)))))
        kept = tokens[asked(task, tokens)].tolist()
        assert sorted(kept) == sorted(map(list, case.all_instances(task)))


@EACH
def test_the_theorem_behind_it_sees_room_where_heads_are_wide(name: str) -> None:
    recipe = CONSTRUCTIONS[name]
    assert recipe.takes
    for built in builds(name)[:2]:
        wide = re.sub(r"(head|value|index)_dim=\d+", r"\1_dim=32", built.record.architecture)
        # the theorem is about blocks of two tokens or more
        wide = wide.replace("block=1,", "block=2,")
        stack = Architecture.parse(wide)
        assert construct(built.task, stack, name).record.name == name
        verdict = THEOREMS[recipe.theorem].judge(stack, built.task)
        assert verdict is not None
        assert (verdict.status, verdict.theorem) == ("SOLVABLE", recipe.theorem)
        # a token that the recipe puts before the prompt is told
        assert START in verdict.assumptions or not built.model.config.bos
        assert THEOREMS[recipe.theorem].judge(Architecture.parse("gdn"), built.task) is None


# ---- which one is built


def test_the_kind_may_be_named() -> None:
    task = Eva(n=4, V=4)
    stack = Architecture.parse("sparse + full")
    assert construct(task, stack).record.name == "retrieval"
    assert construct(task, stack, "sparse-retrieval").record.name == "sparse-retrieval"
    assert construct(task, kind="sparse-retrieval").record.name == "sparse-retrieval"
    carried = construct(SeqComp(L=1, m=2), kind="carried").record
    assert (carried.name, carried.sizes["carriers"], carried.sizes["layers"]) == ("carried", 1, 1)


def test_a_kind_that_does_not_fit_is_not_replaced_by_another() -> None:
    with pytest.raises(SizeError, match="sparse layer"):
        construct(Eva(n=4, V=4), Architecture.parse("full"), "sparse-retrieval")
    with pytest.raises(SizeError, match="'match2'"):
        construct(Eva(n=4, V=4), kind="match2")
    with pytest.raises(SizeError, match="'retrieval'"):
        construct(TwoSum(n=4, M=5), kind="retrieval")


def test_bad_kinds_and_tasks_are_named() -> None:
    with pytest.raises(UnknownNameError, match="'match2'"):
        construct(TwoSum(n=4, M=5), kind="match")
    with pytest.raises(SizeError, match="'istree'"):
        construct(IsTree(n=4))


# ---- a new one


TOY = dataclasses.replace(CONSTRUCTIONS["retrieval"], name="toy")
"""The retrieval head under another name."""


@pytest.fixture
def builder_knows_toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CONSTRUCTIONS, "toy", TOY)


@pytest.fixture
def checker_knows_toy(monkeypatch: pytest.MonkeyPatch) -> None:
    half: Any = dataclasses.replace(DERIVATIONS["retrieval"], name="toy")
    monkeypatch.setitem(DERIVATIONS, "toy", half)


@pytest.mark.usefixtures("builder_knows_toy", "checker_knows_toy")
def test_one_entry_on_either_side_makes_a_construction(tmp_path: Path) -> None:
    built = sx.construct(Eva(n=3, V=4), kind="toy")
    path = built.save(tmp_path)
    (checked,) = verify_path(path)
    assert checked.record == built.record
    assert any("every answer right" in line for line in checked.checks)
    with pytest.raises(UnknownNameError, match=r"Known: .*retrieval"):
        sx.construct(Eva(n=3, V=4), kind="zzzzzz")


@pytest.mark.usefixtures("builder_knows_toy", "checker_knows_toy")
def test_a_new_construction_is_tried_in_its_turn(tmp_path: Path) -> None:
    task = Eva(n=3, V=4)
    assert sx.construct(task).record.name == "retrieval"
    # the whole table, so that it gets its order back
    with patch.dict(CONSTRUCTIONS, {"toy": TOY}, clear=True):
        built = sx.construct(task)
    assert built.record.name == "toy"
    built.save_weights(tmp_path)
    assert sx.verify(built.record, folder=tmp_path).record == built.record


@pytest.mark.usefixtures("builder_knows_toy", "checker_knows_toy")
def test_a_checker_that_does_not_know_it_refuses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = sx.construct(Eva(n=3, V=4), kind="toy")
    built.save_weights(tmp_path)
    monkeypatch.delitem(DERIVATIONS, "toy")
    with pytest.raises(CheckFailed, match="'toy'"):
        sx.verify(built.record, folder=tmp_path)


@pytest.mark.usefixtures("builder_knows_toy", "checker_knows_toy")
def test_a_new_construction_is_not_believed_either(tmp_path: Path) -> None:
    built = sx.construct(Eva(n=3, V=4), kind="toy")
    built.save_weights(tmp_path)
    wrong = dataclasses.replace(built.record, task="eva:n=3,V=3")
    with pytest.raises(CheckFailed, match="eva:n=3,V=3"):
        sx.verify(wrong, folder=tmp_path)
