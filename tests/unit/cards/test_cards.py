"""The lines of a card: sizes by hand, statuses as `judge` gives them, sentences in good English."""

from __future__ import annotations

import math
from functools import cache
from math import log2

import pytest
from support.each import each
from support.paper_sizes import paper_sizes

from separatrix.cards import CardLine, card, card_facts
from separatrix.cards.composition import filling
from separatrix.cards.facts import Row
from separatrix.cards.question import failure
from separatrix.cards.questions import looked_up, values_of
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.resolve import preset
from separatrix.tasks import Eva, Permutation, SeqComp, parse_task
from separatrix.theory import THEOREMS, judge, recheck


def lines(spec: str, context: int = 512) -> dict[str, CardLine]:
    return {line.question: line for line in card(Architecture.parse(spec), context)}


@each(
    "context, steps, m",
    [
        (8, 1, 6),  # 6 + 2 tokens
        (9, 1, 7),
        (100, 1, 98),
        (100, 3, 32),  # 3 * 32 + 2 tokens
        (2, 5, 2),  # no smaller m
    ],
)
def test_the_composition_that_fills_a_context(context: int, steps: int, m: int) -> None:
    assert filling(context, steps) == SeqComp(L=steps, m=m, branching=(1,) * (steps - 1))


def test_two_layers_suffice() -> None:
    """8 bits name 255 values; L + 1 = 3 more tell the steps apart."""
    asked = lines("gdn + full*2").items()
    (solved,) = (line for question, line in asked if ", L <=" in question[:17])
    assert solved.verdict is not None
    assert solved.verdict.numbers["address_bits"] == 8 + 2 + 1


@pytest.mark.slow
def test_as_many_steps_as_judge_says() -> None:
    for spec in ("gdn*2 + full*3 @ head_dim=16", "full*5 @ head_dim=14", "full*4 @ value_dim=8"):
        stack = Architecture.parse(spec)
        solved = [
            steps
            for steps in range(1, 65)
            if judge(stack, filling(300, steps))[0].status == "SOLVABLE"
        ]
        titles = [line.question for line in card(stack, 300)]
        most = max(solved, default=0)
        shown = f"composition, L <= {most} step{'s' if most > 1 else ''}"
        assert (shown in titles) == bool(solved), spec


def test_permutations_against_a_cache_of_a_few_bits() -> None:
    """120 products need 7 bits; a state of two numbers of 3 bits holds 6, of two of 4 bits 8."""
    few = lines("linear @ heads=1, head_dim=1, p3")["permutation tracking (S_5)"]
    assert (few.status, few.n, few.theorem) == ("FAILS", 2, "I")
    assert few.verdict is not None
    assert few.verdict.task == "permutation:n=2,k=5"
    recheck(few.verdict)
    enough = lines("linear @ heads=1, head_dim=1, p4")["permutation tracking (S_5)"]
    assert (enough.status, enough.theorem) == ("OPEN", "none")
    assert enough.verdict is not None
    assert enough.verdict.task == "permutation:n=512,k=5"
    recheck(enough.verdict)


def test_one_full_layer_on_one_step_and_on_two() -> None:
    """The layer reads h bits; of m^m tables it cannot tell all apart once m log2 m > h."""
    found = lines(f"full @ {paper_sizes(1, 4, 8)}")
    h = 5 * 8
    m = next(m for m in range(2, 100) if m * math.log2(m) > h)
    one = found["composition, 1 step"]
    two = found["composition, 2 steps"]
    assert (one.status, one.theorem, one.n) == ("FAILS", "I'", m + 2)
    assert (two.status, two.theorem, two.n) == ("FAILS", "I'", 2 * m + 2)
    for line in (one, two):
        assert line.verdict is not None
        assert parse_task(line.verdict.task).length == line.n


def test_the_card_takes_the_bound_with_the_smallest_n() -> None:
    """A cache that grows by few bits a token is bounded by Theorem I as well."""
    stack = Architecture.parse("full @ heads=1, head_dim=1, format=p1")
    line = {found.question: found for found in card(stack, 64)}["composition, 2 steps"]
    tasks = SeqComp(L=2, m=2, branching=(1,))
    ns = [v.n for v in judge(stack, tasks) if v.n is not None]
    assert len(ns) > 1
    assert line.n == min(ns)
    told = lines("full @ heads=1, head_dim=1, format=p1")
    (recall,) = (line for title, line in told.items() if "(vocabulary 50,000)" in title)
    assert "keys and values" in recall.explain


def test_what_a_bounded_cache_keeps_is_named() -> None:
    explain = lines("linear + window(size=4) @ heads=1, head_dim=1")["composition, 2 steps"].explain
    assert "The last function" in explain
    # two fp32 numbers of linear attention; a window of 4 sees 3 tokens before its own
    assert "back 3 of" in explain
    assert "64 bits" in explain
    explain = lines("linear @ heads=1, head_dim=1")["composition, 2 steps"].explain
    assert "The last function" in explain
    assert "states of" in explain


@pytest.mark.parametrize(
    "specs",
    [
        ("full", "gdn", "mlp", "full|gdn", "shortconv"),
        pytest.param(("sparse*3", "loglinear + full*2"), marks=pytest.mark.slow),
    ],
)
def test_every_explanation_is_of_whole_sentences(specs: tuple[str, ...]) -> None:
    for spec in specs:
        for line in card(Architecture.parse(spec), 1000):
            assert line.explain[0].isupper(), line
            assert line.explain.endswith("."), line
            assert not {"{", "}"} & set(line.text + line.explain), line


def test_failure_is_none_where_nothing_fails() -> None:
    stack = Architecture.parse("full")
    assert failure(stack, Eva(n=4, V=4)) is None
    found = failure(Architecture.parse("mlp"), Permutation(n=3, k=3))
    assert found is not None
    assert THEOREMS[found.theorem].after_thought


@pytest.mark.parametrize("context", [200, 1000, 8192])
@pytest.mark.parametrize(
    "spec",
    ["full(head_dim=128)*3", "linear @ heads=1, head_dim=1, p3", "window(size=4) + gdn, fp16"],
)
def test_prompts_with_their_questions_and_what_is_written_fit_the_context(
    spec: str, context: int
) -> None:
    for line in card(Architecture.parse(spec.replace(", fp16", " @ fp16")), context):
        if line.verdict is not None:
            assert parse_task(line.verdict.task).length <= context, line.question
        if line.bound is not None and line.bound.verdict is not None:
            assert parse_task(line.bound.verdict.task).length > context, line.question


def test_a_single_fact_is_one() -> None:
    (recall, *_) = card(Architecture.parse("full"), 2)
    assert "any of 1 fact," in recall.explain


def test_some_layers_by_addresses_and_some_by_rotations() -> None:
    lines = card(Architecture.parse("gdn + full(rope=true) + full"), 100)
    composed = next(line for line in lines if line.question.startswith("composition, L"))
    assert composed.verdict is not None
    assert "address_bits" not in composed.verdict.numbers
    assert sum(text.startswith("positions:") for text in composed.verdict.assumptions) == 2


def test_two_sum_counts_values_and_not_the_query() -> None:
    found = lines("linear @ heads=1, head_dim=1, p1")
    query = next(line for title, line in found.items() if title.startswith("2-Sum per query"))
    assert "prompt of 1 value." in query.explain


def test_narrow_keys_are_not_put_down_to_rotations() -> None:
    found = lines("full*2 @ heads=1, head_dim=8")
    for title, line in found.items():
        if title.startswith("2-Sum"):
            assert "full layers have 8," in line.text
            assert "rotation" not in line.text


def test_of_many_reading_layers_the_card_says_what_was_not_looked_for() -> None:
    found = lines("full|gdn + full*6 @ heads=1, head_dim=64")["composition, 7 steps"]
    assert found.status == "OPEN"
    assert found.bound is not None
    assert (found.bound.n, found.bound.beyond) == (None, 10**12)


@pytest.mark.slow
def test_three_full_layers_with_recurrences_fail_within_a_context() -> None:
    """Theorem VII at three steps, with bounded layers after the last reading layer: a failing size
    below 10^12 tokens, certified again from the record.
    """
    found = lines(f"full*3 + gdn*2 @ {paper_sizes(1, 4, 2)}", 10**12)
    line = found["composition, 3 steps"]
    assert (line.status, line.theorem) == ("FAILS", "VII")
    assert line.n is not None
    assert line.n <= 10**12
    assert line.verdict is not None
    assert line.verdict.status == "FAILS"
    recheck(line.verdict)


def _answers(name: str, context: int) -> dict[str, tuple[str, str, str]]:
    rows = card_facts(preset(name), context).table
    return {row.key: (row.status, row.theorem, row.decides) for row in rows}


def test_a_needle_is_lost_where_windows_end() -> None:
    """32 windows of 4,096 tokens reach 32 x 4,095 = 131,040 tokens back: whatever is said before
    filler of as many tokens is gone, be it two facts only.
    """
    said = "lost behind 131,040 tokens of filler"
    assert _answers("mistral-7b-v0.1", 131_072)["needle"] == ("FAILS", "R", said)
    assert _answers("mistral-7b-v0.1", 131_040)["needle"][0] == "OPEN"


def test_a_copy_fails_one_token_beyond_what_is_kept() -> None:
    """Theorem R: 16,430 tokens within reach, 1,474,560 bits for values of 256,000 kinds."""
    fit = int(1_474_560 / log2(256_000))
    status, theorem, said = _answers("recurrentgemma-2b", 131_072)["copy"]
    # the mark that ends the string, and what is written of the copy, are within reach, too
    assert (status, theorem) == ("OPEN", "R")
    n = 16_430 - 1 + fit + 1
    assert said.endswith(f"n = {n:,} on, {2 * n + 1:,} tokens")
    assert f"at most {fit:,} facts" in card_facts(preset("recurrentgemma-2b"), 131_072).holds


@pytest.mark.parametrize("context", [1, 4, 11, 12, 35, 36, 100, 10**12])
def test_every_context_has_a_card(context: int) -> None:
    found = {row.key for row in card_facts(preset("jamba-v0.1"), context).table}
    assert ("needle" in found) == (context >= 12)
    assert ("hops" in found) == (context >= 36)


@each("name", ["llama-3.1-8b", "jamba-v0.1", "mistral-7b-v0.1", "deepseek-v3"])
@each("context", [12, 4096, 131_072])
def test_questions_fit_the_context(name: str, context: int) -> None:
    for question in looked_up(context, values_of(preset(name))).values():
        assert context - 4 <= question.task.length <= context


def test_a_copy_asks_for_two_layers_that_see_places() -> None:
    """Addresses count tokens in Jamba, whose recurrences supply them, and in SmallThinker, whose
    full layers do; in Llama layers look back; in Gemma 2 scores are capped.
    """
    assert _answers("jamba-v0.1", 131_072)["copy"][0] == "SOLVABLE"
    assert _answers("llama-3.1-8b", 131_072)["copy"][0] == "SOLVABLE"
    assert _answers("smallthinker-21b", 131_072)["copy"][0] == "SOLVABLE"
    assert _answers("gemma-2-9b", 131_072)["copy"][0] == "OPEN"


def test_what_is_lost_does_not_depend_on_the_context_asked_at() -> None:
    """All facts in turn: the vocabulary stays, and with it the n."""
    said = [_answers("recurrentgemma-2b", context)["needles"][2] for context in (8_192, 131_072)]
    assert said[1].startswith(said[0])


def test_windows_know_counted_places_of_the_whole_prompt_only() -> None:
    """What is counted ends at 2^20 tokens, however few a window sees."""
    stack = "mamba2(conv=1)*4 + window(size=8) + full @ positions=none"
    for context, status in ((1 << 19, "SOLVABLE"), ((1 << 20) + 2, "OPEN")):
        rows = card_facts(Architecture.parse(stack), context).table
        asked = ("recall-2", "needles", "induction")
        assert {row.status for row in rows if row.key in asked} == {status}, context


def test_more_ids_at_a_long_context_do_not_hide_where_failure_begins() -> None:
    """From 6 * 10^8 tokens on 50,000 ids do not make as many contexts of two."""
    stack = Architecture.parse("gdn*2 @ heads=1, head_dim=8")
    found = [
        next(line for line in card(stack, context) if line.key == "induction")
        for context in (8_192, 10**9)
    ]
    assert {line.status for line in found} == {"FAILS"}
    assert len({line.n for line in found}) == 1


def test_a_shorter_copy_is_no_harder() -> None:
    """Places that recurrences count serve short strings as they serve long ones."""
    for context in (16, 4_096, 131_072, 1 << 19):
        assert _answers("qwen3-next-80b", context)["copy"][0] == "SOLVABLE"


def test_eight_hops_take_five_full_layers() -> None:
    """floor(log2 8) + 2, where embeddings give places."""
    for layers, status in ((4, "OPEN"), (5, "SOLVABLE")):
        stack = Architecture.parse(f"full*{layers} @ heads=16, head_dim=64")
        (row,) = (row for row in card_facts(stack, 4096).table if row.key == "hops")
        assert row.status == status


@pytest.mark.slow
def test_what_ends_a_chain_of_thought() -> None:
    """More of it, and more steps are written: heads that ask for offsets, or room for tokens."""
    by_offset = "full*2 @ rope=true, positions=none, head_dim=128"
    few, more = (_written(f"{by_offset}, heads={heads}", 4096) for heads in (8, 10))
    assert (few.steps, more.steps) == ((0, 4), (0, 5))  # 2 L - 1 heads
    short, longer = (_written("full*2", context) for context in (40, 43))
    # 12 steps of tables of 2 entries, 2 tokens more, and 12 that are written
    assert (short.steps, longer.steps) == ((0, 12), (0, 13))


def _written(spec: str, context: int) -> CardLine:
    lines = card(Architecture.parse(spec), context)
    return next(line for line in lines if line.key == "composition" and line.thought)


@cache
def _table(spec: str, context: int) -> tuple[Row, ...]:
    return card_facts(Architecture.parse(spec), context).table


@each("key", ["recall-2", "needle", "needles", "induction", "pairs", "equality"])
def test_what_a_second_full_layer_adds_is_named(key: str) -> None:
    """No construction is named by its premises: one layer lacks another one before it."""
    for context in (64, 4096):
        one, two = (
            next(row for row in _table(spec, context) if row.key == key)
            for spec in ("gdn + full", "gdn + full*2")
        )
        assert (one.status, two.status) == ("OPEN", "SOLVABLE")
        assert "premises" not in one.decides + one.lines[0].text
        assert "layer" in one.decides


def test_a_window_that_sees_the_whole_context_forgets_nothing_of_it() -> None:
    stack = Architecture.parse("window(size=64)*2")
    seen, whole, beyond = (card_facts(stack, context).forgets for context in (63, 64, 65))
    assert seen == whole == ""
    assert "after 126 tokens" in beyond
