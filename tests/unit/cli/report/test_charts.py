"""The charts of the report: where their lines and marks stand."""

from __future__ import annotations

from dataclasses import replace
from math import log2, log10

import pytest

from separatrix.cli.report.charts import accuracy_chart, needed_and_kept
from separatrix.cli.report.view import task_size
from separatrix.core.document.plot import (
    DASHED,
    DOTTED,
    GREEN,
    INK,
    MUTED,
    SOLVES,
    Dot,
    Drawing,
    Stroke,
    Words,
    log_axis,
    named,
    share_axis,
)
from separatrix.core.evidence.records import Measurement
from separatrix.core.numbers.wilson import wilson

NEED = [(16.0, 96.0), (32.0, 192.0), (64.0, 384.0), (128.0, 768.0)]


def bounded(need: list[tuple[float, float]] = NEED, have: float = 320) -> Drawing:
    """Bits needed at some n, and as many kept at each."""
    kept = {"have": [(n, have) for n, _ in need]}
    return needed_and_kept("n", need, kept)


def words(chart: Drawing | None) -> dict[str, tuple[float, float]]:
    """What is written in a chart, and where."""
    assert chart is not None
    return {mark.text: (mark.x, mark.y) for mark in chart.marks if isinstance(mark, Words)}


def strokes(chart: Drawing | None, colour: str, dash: str = "") -> list[Stroke]:
    assert chart is not None
    lines = (mark for mark in chart.marks if isinstance(mark, Stroke) and not mark.fill)
    return [line for line in lines if (line.colour, line.dash) == (colour, dash)]


def dots(chart: Drawing | None, colour: str = INK) -> list[Dot]:
    assert chart is not None
    return [mark for mark in chart.marks if isinstance(mark, Dot) and mark.colour == colour]


def test_a_cross_stands_where_more_is_needed_than_there_is() -> None:
    """384 bits are needed at 64, and 320 are there."""
    chart = bounded()
    (cross,) = dots(chart, SOLVES)
    assert (cross.x, cross.y) == (64, 320)
    assert "128, too small at 64" in chart.words


@pytest.mark.parametrize("have", [1000, 50])
def test_a_cross_stands_only_where_a_line_is_too_small(have: int) -> None:
    chart = bounded(have=have)
    assert set(words(chart)) == {"needed", "have"}
    assert len(dots(chart, SOLVES)) == (have == 50)


def test_many_sizes_get_ticks_at_powers_of_two() -> None:
    chart = bounded([(float(n), float(n)) for n in range(5, 40)], have=9)
    assert [value for value, _ in chart.x.ticks] == [8, 16, 32]


def measured(task: str, correct: tuple[int, ...]) -> Measurement:
    seeds = tuple(range(len(correct)))
    return Measurement(
        architecture="full",
        task=task,
        seeds=seeds,
        correct=correct,
        total=100,
        chance="1/4",
        intervals=tuple(wilson(count, 100) for count in correct),
        budget={},
    )


def test_accuracy_shows_every_seed_with_its_interval_the_median_and_chance() -> None:
    own = [measured("eva:n=16,V=4", (20, 50, 90)), measured("eva:n=8,V=4", (100,))]
    chart = accuracy_chart({"full": own}, {}, intervals=True)
    lines = [line.points for line in strokes(chart, INK)]
    assert lines[0] == [(8, 1.0), (16, 0.5)]
    intervals = {dot.y: line for dot, line in zip(dots(chart), lines[1:], strict=True)}
    assert set(intervals) == {0.2, 0.5, 0.9, 1.0}
    # Wilson, 50 of 100: centre 1/2, half width 1.96 sqrt(0.25/100 + 1.96^2/40000) / (1 +
    # 1.96^2/100) = 0.0962
    assert [y for _, y in intervals[0.5]] == pytest.approx([0.4038, 0.5962], abs=1e-4)
    (chance,) = strokes(chart, MUTED, DASHED)
    assert {y for _, y in chance.points} == {0.25}
    assert "seed 1: 50.00%" in next(dot.told for dot in dots(chart) if dot.y == 0.5)
    assert chart is not None
    assert "100.0 % at n = 8, 50.0 % at n = 16" in chart.words
    assert len(strokes(accuracy_chart({"full": own}, {}), INK)) == 1
    assert accuracy_chart({"full": []}, {}) is None


def test_each_stack_has_a_line_that_no_measurement_may_cross() -> None:
    """Theorem A, one line for each stack; none where it does not speak of the task."""
    stacks = {dim: f"linear @ heads=1, head_dim={dim}" for dim in (1, 2)}
    own = {
        stack: [replace(measured(f"eva:n={n},V=16", (9, 12)), architecture=stack) for n in (16, 64)]
        for stack in stacks.values()
    }
    chart = accuracy_chart(own, {})
    for dim, colour in zip(stacks, (INK, GREEN), strict=True):
        (highest,) = strokes(chart, colour, DOTTED)
        # 64 and 192 bits hold 16 and 48 facts of 4 bits
        facts = {1: 16, 2: 48}[dim]
        assert dict(highest.points)[16] == 1
        # 4 bits of a fact, of which C / 64 are known
        p = dict(highest.points)[64]
        left = -sum(p * log2(p / q) for p, q in ((p, 1 / 16), (1 - p, 15 / 16)))
        assert left == pytest.approx(-4 * facts / 64, abs=1e-4)
    plain = accuracy_chart({"full": [measured("eva:n=8,V=4,shift=zipf", (50,))]}, {})
    assert not strokes(plain, INK, DOTTED)[0].points


@pytest.mark.parametrize("n", [3, 17, 4097])
def test_the_n_of_a_verdict_stands_at_its_place(n: int) -> None:
    own = {"full": [measured(f"eva:n={n},V=4", (50,)) for n in (8, 32)]}
    chart = accuracy_chart(own, {"full": (n, f" from n = {n:,} on")})
    (rule,) = strokes(chart, INK, DASHED)
    assert {x for x, _ in rule.points} == {n}
    assert chart is not None
    assert f"from n = {n:,} on" in chart.words
    assert chart.x.low < n < chart.x.high


def test_the_n_of_a_task() -> None:
    assert task_size("twosum:n=32,M=64,form=query") == 32
    # N_1 = n_1 m = 12, n = N_1 + m + 2
    assert task_size("seqcomp:L=2,m=4,n_1=3") == 18


def test_labels_keep_apart_and_stay_inside() -> None:
    ends = [(1.0, "a", ""), (1.0, "b", ""), (0.5, "c", "")]
    placed = [words.y for words in named(1, share_axis(), ends, gap=0.1)]
    assert placed == pytest.approx([0.5, 0.9, 1.0])
    # on a logarithmic axis as far apart: a tenth of three powers of ten
    high = [(1e3, "a", "")] * 2
    logs = [log10(words.y) for words in named(1, log_axis("", 1, 1e3), high, 0.1)]
    assert logs == pytest.approx([2.7, 3.0])
