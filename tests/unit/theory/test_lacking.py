"""No question that designers ask is left without a verdict, a ceiling or the reason for neither."""

from __future__ import annotations

import pytest
from support.each import each

from separatrix.core.evidence.records import Verdict
from separatrix.core.numbers.accuracy import facts_that_fit
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.resolve import preset
from separatrix.tasks import parse_task
from separatrix.theory import judge, recheck
from separatrix.theory.fails.a_accuracy import held_by_state
from separatrix.theory.solves.places import BY_ROTATIONS
from separatrix.theory.solves.room import START

QUESTIONS = {
    "a needle after long filler": "noisy-recall:n=4,noise=2000,K=64,V=16",
    "several needles": "mqar:vocab_size=8192,input_seq_len=8192,num_kv_pairs=1024",
    "facts": "recall:n=1024,K=8192,V=256,form=independent",
    "facts written again": "recall:n=1024,K=8192,V=256,form=last",
    "the question first": "recall:n=1024,K=8192,V=256,question=first",
    "copying": "copying:n=2048,V=256",
    "selective copying": "selective-copying:n=64,T=4096,V=256",
    "c-grams": "cgram:n=4096,V=256,c=2",
    "induction": "khop:n=4096,V=32,k=1",
    "hops": "khop:n=4096,V=32,k=4",
    "states": "state-recall:n=64,V=16,K=100",
    "counting": "counting:n=4096",
}
MODELS = (
    *("llama-3.1-8b", "gemma-3-27b", "gpt-oss-20b", "jamba-1.5-mini", "qwen3-next-80b"),
    *("mistral-7b-v0.1", "recurrentgemma-2b", "mamba-2.8b", "deepseek-v3.2"),
)


def best(stack: Architecture, text: str) -> Verdict:
    verdict = judge(stack, parse_task(text))[0]
    recheck(verdict)
    return verdict


@pytest.mark.parametrize("name", MODELS)
def test_every_question_has_a_verdict_or_a_reason(name: str) -> None:
    stack = preset(name)
    for question, text in QUESTIONS.items():
        verdict = best(stack, text)
        reason = verdict.statement.partition("no theorem here decides it")[2]
        assert verdict.theorem != "none" or len(reason) > 20, (question, verdict.statement)
        # where every token asks for an offset, those that have none there find a start token
        turned = any(said.startswith(BY_ROTATIONS) for said in verdict.assumptions)
        assert START in verdict.assumptions or not turned, (question, verdict.assumptions)


@each(
    "spec, text, said",
    [
        ("full*4 @ fp8", "eva:n=64,V=64", "rounding to fp8"),
        ("full(rope=true)*4 @ int8, positions=none", "eva:n=64,V=64", "rounding to int8"),
        ("full(rope=true)*2 @ positions=none", QUESTIONS["c-grams"], "8 of 16 bits"),
        ("full*2 @ head_dim=8", QUESTIONS["c-grams"], "layers have 8"),
        ("full @ positions=none", QUESTIONS["several needles"], "see no places"),
        ("full(rope=true)*4 @ positions=none", QUESTIONS["hops"], "hop in turn"),
        ("full(rope=true)*4 @ positions=none", QUESTIONS["copying"], "625 of 4,098"),
        ("full(rope=true)*6 @ positions=none", QUESTIONS["copying"], "address places"),
        ("full*3", QUESTIONS["hops"], "takes 4 full"),
        ("full*4 @ bf16, heads=4", QUESTIONS["hops"], "digit by digit"),
        ("gdn*4", QUESTIONS["c-grams"], "here names a size"),
        # 8 ids are 4 for each place of a context: 16 contexts, 16 (2 + 1) + 2 + 2 tokens
        ("gdn*4", "cgram:n=26,V=8,c=2", "c = 2, V = 8 sizes end at n = 52"),
        ("retnet*4", QUESTIONS["the question first"], "to keep a key"),
        ("full*3", "istree:n=64", "for this task"),
        ("full*2 @ positions=none", "neighbour:n=4,d=12,V=2", "construction `neighbour`"),
    ],
)
def test_what_is_missing_is_named(spec: str, text: str, said: str) -> None:
    verdict = best(Architecture.parse(spec), text)
    assert (verdict.status, verdict.theorem) == ("OPEN", "none")
    assert said in verdict.statement


def test_a_needle_is_lost_behind_filler_that_windows_do_not_reach_over() -> None:
    """131,040 tokens of windows: as many stand behind the first of two pairs, the second and 65,519
    slots of filler, before the question.
    """
    stack = preset("mistral-7b-v0.1")
    for noise, status in ((65_518, "OPEN"), (65_519, "FAILS")):
        verdict = best(stack, f"noisy-recall:n=2,noise={noise},K=4,V=2")
        assert (verdict.theorem, verdict.status) == ("R", status)


def test_a_question_that_is_known_before_needs_no_memory_of_the_facts() -> None:
    """Theorem R once spoke of the table here, against the construction."""
    stack = Architecture.parse("rglru(width=400, conv=4)*4")
    verdict = best(stack, "recall:n=90000,K=200000,V=16,question=first")
    assert (verdict.status, verdict.theorem) == ("SOLVABLE", "question-first")


@each("bits", [0, 1, 7, 63, 100])
@each("values", [2, 3, 10, 256])
def test_facts_that_bits_hold_by_counting(bits: int, values: int) -> None:
    assert facts_that_fit(values, bits) == max(N for N in range(bits + 1) if values**N <= 2**bits)


def test_facts_by_kind_of_layer() -> None:
    """RecurrentGemma: 18 states of 2,560 numbers in fp32, 14.97 bits a fact; windows hold none."""
    (held,) = held_by_state(preset("recurrentgemma-2b"), 32_000, 131_072)
    assert held == ("RG-LRU", 18, 98_528)
    assert held_by_state(preset("llama-3.1-8b"), 32_000, 131_072) == []
    # two buckets of a log-linear layer after 2 tokens, each of one number of 2 bits
    (held,) = held_by_state(Architecture.parse("loglinear @ heads=1, head_dim=1, p2"), 2, 2)
    assert held[2] == 4
