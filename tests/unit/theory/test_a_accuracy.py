"""Theorem A: where it speaks, what it says there, and that forged ceilings are refused."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from separatrix.core.errors import CheckFailed
from separatrix.core.evidence.records import from_envelope
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.resolve import preset
from separatrix.tasks import Eva, SeqComp, Task, parse_task
from separatrix.theory import THEOREMS, judge, recheck
from separatrix.theory.fails.a_accuracy import trained_ceiling
from separatrix.theory.judge import graded

TINY = Architecture.parse("linear @ heads=1, head_dim=1")
"""64 bits: two fp32 numbers."""
A = THEOREMS["A"]


def test_the_issue_in_one_sentence() -> None:
    model = preset("recurrentgemma-2b")
    task = Eva(n=10_000_000, V=256_000)
    (verdict,) = judge(model, task, among=lambda theorem: theorem is A)
    assert "at 10,000,000 facts" in verdict.statement
    assert "more than 80.7 %" in verdict.statement
    assert verdict.numbers["cache_bits"] == 137_904_128  # ux.md
    assert (verdict.status, verdict.theorem, verdict.n) == ("FAILS", "A", task.n)
    # from which n it fails comes first, how badly second
    assert [(v.theorem, v.n) for v in judge(model, task)] == [
        ("R", 98_507),
        ("I", 7_675_932),
        ("A", task.n),
        ("R-accuracy", task.n),
    ]
    recheck(verdict)
    assert from_envelope(verdict.envelope()) == verdict
    words = A.told(verdict, task, model)
    assert re.findall(r"\d[\d,.]*", words.text) == ["10,000,000", "80.7"]
    # 7,675,931 facts fit (ux.md), and of 256,000 values one is guessed
    assert "reaches 76.7 %" in words.why


def test_it_never_comes_first() -> None:
    """Also where Theorem I names no n: the keys of this stack grow nearly as fast as what it is
    asked, so that no first size is searched for.
    """
    model = Architecture.parse("mlp + moba @ heads=1, head_dim=4, p4")
    found = judge(model, SeqComp(L=1, m=788_935_385_053))
    assert [(v.theorem, v.status) for v in found] == [("I", "FAILS"), ("A", "FAILS")]
    assert found[0].n is None


@pytest.mark.parametrize(
    "text",
    [
        "eva:n=100,V=100",
        "index:n=1000,V=9,shift=local",
        "recall:n=64,K=64,V=99",
        "mqar:vocab_size=64,input_seq_len=100,num_kv_pairs=20",
        "seqcomp:L=2,m=9,n_1=3",
        "seqcomp:L=2,m=40,n_1=1,thought=pairs",
    ],
)
def test_forged_ceilings_are_refused(text: str) -> None:
    verdict = graded(TINY, parse_task(text))
    assert verdict is not None
    recheck(verdict)
    for name, value in verdict.numbers.items():
        for other in (value - 1, value + 1):
            forged = replace(verdict, numbers=verdict.numbers | {name: other})
            with pytest.raises(CheckFailed, match="another numbers"):
                recheck(forged)
    for other in (replace(verdict, statement="all is well"), replace(verdict, n=2)):
        with pytest.raises(CheckFailed, match="another"):
            recheck(other)
    with pytest.raises(CheckFailed, match="another"):
        recheck(replace(verdict, architecture=Architecture.parse(f"{TINY.spec}, p31").spec))


def test_a_ceiling_where_none_is_proved_is_refused() -> None:
    verdict = graded(TINY, Eva(n=100, V=100))
    assert verdict is not None
    for text in ("eva:n=100,V=100,shift=zipf", "eva:n=5,V=3", "recall:n=64,K=64,V=9"):
        with pytest.raises(CheckFailed, match="says nothing about"):
            recheck(replace(verdict, task=parse_task(text).spec))


def test_of_absent_keys_only_questions_whose_key_is_there_are_graded() -> None:
    """theory.md, section 9. What share of all questions is answered is not bounded by it."""
    here = parse_task("recall:n=64,K=64,V=99")
    absent = parse_task("recall:n=64,K=65,V=99,form=absent")
    ask = [v for task in (here, absent) for v in judge(TINY, task) if v.theorem == "A"]
    assert [v.numbers for v in ask] == [ask[0].numbers] * 2
    assert "key is there" in ask[1].statement
    assert "random questions, with" in ask[0].statement
    recheck(ask[1])
    assert (graded(TINY, here), graded(TINY, absent)) == (ask[0], None)
    assert trained_ceiling(TINY, absent) is None


BOUNDED = st.builds(
    lambda kind, dim, bits: Architecture.parse(f"{kind} @ heads=1, head_dim={dim}, p{bits}"),
    st.sampled_from(["linear", "loglinear", "gdn*2", "window(size=3)", "linear + full", "full"]),
    st.integers(1, 4),
    st.integers(1, 9),
)
ASKED = st.one_of(
    st.builds(
        lambda n, V, shift: Eva(n=n, V=V, shift=shift),
        st.integers(1, 3000),
        st.integers(2, 3000),
        st.sampled_from(["none", "few", "local"]),
    ),
    st.builds(
        lambda n, V, shift: parse_task(f"recall:n={n},K={2 * n},V={V}{shift}"),
        st.integers(2, 300),
        st.integers(2, 900),
        st.sampled_from(["", ",shift=few"]),
    ),
    st.builds(
        lambda k, more: parse_task(
            f"mqar:vocab_size={2 * k + more},input_seq_len={4 * k},num_kv_pairs={k}"
        ),
        st.integers(1, 200),
        st.integers(2, 500),
    ),
    st.builds(
        lambda m, n: SeqComp(L=2, m=m, branching=(n,)), st.integers(2, 90), st.integers(1, 9)
    ),
)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(BOUNDED, ASKED)
def test_it_fails_only_where_theorem_i_fails(architecture: Architecture, task: Task) -> None:
    """And wherever it does for independent facts of all values, all of which may be asked for."""
    alone = judge(architecture, task, among=lambda theorem: theorem is A)
    verdict = alone[0] if alone else None
    failing = {v.theorem for v in judge(architecture, task) if v.status == "FAILS"}
    facts = task.facts()
    if verdict is None:
        plain = facts is not None and str(facts.contents) == str(task.prefix_classes())
        sign = task.prefix_classes()
        assert sign is not None
        assert not (plain and sign.exceeds_bits(architecture.cache_bits(task.prefix_length)))
        return
    assert {"A", "I"} <= failing
    assert facts is not None
    numbers = verdict.numbers
    assert 10**6 >= numbers["ceiling_millionths"] >= numbers["stored_millionths"]
    assert Fraction(numbers["ceiling_millionths"], 10**6) >= Fraction(1, facts.values)
    recheck(verdict)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(1, 6), st.integers(2, 500), st.integers(1, 500))
def test_more_bits_never_lower_it_and_more_facts_never_raise_it(dim: int, V: int, n: int) -> None:
    def ceiling(architecture: str, task: Task) -> int:
        verdict = graded(Architecture.parse(architecture), task)
        return 10**6 if verdict is None else verdict.numbers["ceiling_millionths"]

    one = ceiling(f"linear @ heads=1, head_dim={dim}, p3", Eva(n=n, V=V))
    assert one <= ceiling(f"linear @ heads=1, head_dim={dim}, p4", Eva(n=n, V=V))
    assert one <= ceiling(f"linear*2 @ heads=1, head_dim={dim}, p3", Eva(n=n, V=V))
    assert one >= ceiling(f"linear @ heads=1, head_dim={dim}, p3", Eva(n=2 * n, V=V))
