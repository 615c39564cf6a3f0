"""The audit's own promises: levels and errors by hand, how often luck alone is suspected, what a
probe learns and what it does not see, bad input.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray
from support.each import each
from support.tools import loaded

import separatrix as sx
from separatrix.core.errors import SeparatrixError, SizeError, UnknownNameError
from separatrix.core.evidence.canonical import canonical
from separatrix.tasks import PROBES, TASKS, Batch, Eva, Task, parse_task
from separatrix.tasks.audits import (
    Audit,
    Row,
    accuracies,
    audit,
    audit_texts,
    legend,
    outcome,
    table,
)
from separatrix.tasks.audits.probes import (
    PROBE,
    Prompts,
    _behind_nearest,
    best_column,
    best_of,
    constant,
    counted,
    cut,
    frequent,
    indicated,
    regression,
    shifted,
)
from separatrix.tasks.audits.probes import table as most_frequent
from separatrix.tasks.audits.run import (
    _tokens,
    above,
    largest_above,
    standard_error,
)
from separatrix.tasks.text import TEXT_TASKS, TextItem, parse_text_task

Ints = NDArray[np.int64]
HALF = Fraction(1, 2)


@dataclass(frozen=True, kw_only=True)
class Noise:
    """Uniform tokens; `told(tokens, coins)` makes the answers, by default independent of them."""

    spec: ClassVar[str] = "noise"
    several: ClassVar[bool] = False
    stepwise: ClassVar[bool] = False
    shortcuts: ClassVar[tuple[str, ...]] = ()
    length: int = 6
    vocabulary: int = 8
    answers: int = 2
    chance: Fraction = HALF
    told: Callable[[Ints, Ints, np.random.Generator], Ints] = lambda tokens, coins, rng: coins

    def level(self, probe: str) -> Fraction:
        return self.chance

    def sample(self, batch: int, rng: np.random.Generator) -> Batch:
        tokens = rng.integers(self.vocabulary, size=(batch, self.length))
        coins = rng.integers(self.answers, size=batch)
        return Batch(tokens, self.told(tokens, coins, rng))


def of(noise: Noise, **numbers: int) -> Audit:
    task: Any = noise
    return audit(task, **numbers)


def test_every_probe_of_the_list_is_there() -> None:
    assert list(PROBE) == list(PROBES)
    assert [row.probe for row in audit(Eva(n=6, V=6), fitted=100, tested=100).rows] == [
        "answers",
        *PROBES,
    ]


def test_errors_by_hand() -> None:
    """sqrt(1/5 · 4/5 / 400) = 0.02, so that 100 of 400 lie (0.25 - 0.2)/0.02 = 2.5 above."""
    assert standard_error(Fraction(1, 5), 400) == pytest.approx(0.02)
    assert above(100, 400, Fraction(1, 5)) == pytest.approx(2.5)
    assert above(60, 400, Fraction(1, 5)) == pytest.approx(-2.5)
    assert [
        above(400, 400, Fraction(1)),
        above(0, 400, Fraction(0)),
        above(1, 400, Fraction(0)),
    ] == [0, 0, inf]


def test_the_largest_of_many_answers_is_no_surprise() -> None:
    """One answer more than 3 standard errors above: among 740 answers that is a coin's throw, 1
    - (1 - 0.00135)^740 = 0.63.
    """
    targets = np.repeat([0, 1], [100 + 27, 900 - 27])
    level = Fraction(9, 10)
    assert largest_above(targets, 1, level) == pytest.approx(above(873, 1000, level))
    right = np.repeat([0, 1], [62, 938])  # 0.938 is 4.006 errors of 0.0094868 above 0.9
    assert largest_above(right, 1, level) == pytest.approx(4.006, abs=1e-3)
    tail = 1 - NormalDist().cdf(4.0055)
    assert largest_above(right, 740, level) == pytest.approx(
        -NormalDist().inv_cdf(740 * tail), abs=0.01
    )


@pytest.mark.slow
def test_how_often_luck_is_suspected() -> None:
    """Answers independent of prompts: of 1,500 rows about one in 500 lies above 3 errors once
    (two tests each), and none does twice.
    """
    audits = [of(Noise(), seed=seed, fitted=200, tested=200) for seed in range(250)]
    rows = [row for found in audits for row in found.rows]
    assert [found.leaks for found in audits if found.leaks] == []
    assert sum(row.drawn > 400 for row in rows) <= 12
    first = [row for row in rows if row.drawn == 400 and row.probe != "answers"]
    deviations = np.array([above(row.right, row.judged, row.level) for row in first])
    assert abs(deviations.mean()) < 0.15
    assert 0.9 < deviations.std() < 1.1


@pytest.mark.parametrize(
    ("answers", "values"), [(2, 1), (2, 64), pytest.param(8, 64, marks=pytest.mark.slow)]
)
def test_the_smallest_leak_is_found_nine_times_of_ten(answers: int, values: int) -> None:
    """Planted leaks of the size stated: 40 probes of one token, 36 expected to be suspected; six
    standard deviations of a binomial number are 11. Of a third as large hardly any is.
    """
    half = loaded("audits", "benchmarks").smallest_leak(answers, 1000, 1000, values)
    found = [
        sum(suspected(answers, values, gain, seed) for seed in range(40))
        for gain in (half, half / 3)
    ]
    assert found[0] >= 25
    assert found[1] <= 8


def suspected(answers: int, values: int, gain: float, seed: int) -> bool:
    """Whether a table of a token, of whose values each favours an answer, lies 3 errors above."""
    rng = np.random.default_rng((seed, answers, values))
    token = rng.integers(2 * values if values == 1 else values, size=2000)
    favoured = rng.integers(answers, size=2 * values)
    if values == 1:
        favoured = np.arange(2)
    likelier = rng.random(2000) < gain * answers / (answers - 1)
    told = np.where(likelier, favoured[token], rng.integers(answers, size=2000))
    guess = most_frequent(token[:1000], told[:1000], answers, token[1000:])
    z = above(guess.right(told[1000:]), 1000, Fraction(1, answers))
    return max(z, guess.correlation(told[1000:]) * 1000**0.5 if answers == 2 else 0) > 3


def test_power_by_hand() -> None:
    """One value, two answers, f = t = 4,000: s = 4 d^2 4,000 with s / sqrt(s + 1) = 4.2816 is s =
    19.27, d = 0.0347. Three hundredths over 64 values: z = 14.4 / sqrt(14.4 + 64) = 1.63, above 3
    one time in 12; with 20,000 it is 72 / sqrt(72 + 64) = 6.17.
    """
    audits, pages = loaded("audits", "benchmarks"), loaded("pages")
    smallest_leak, expected = audits.smallest_leak, audits.expected
    for told, answers, number in ((pages._TWO, 2, 1), (pages._MORE, 2, 10), (pages._EIGHT, 8, 1)):
        sizes = (answers, 4000 * number, 4000 * number)
        assert told == tuple(round(smallest_leak(*sizes, values), 3) for values in audits.SPREADS)
    assert smallest_leak(2, 4000, 4000, 1) == pytest.approx((19.27 / 16000) ** 0.5, rel=1e-3)
    assert expected(0.03, 2, 4000, 4000, 64)[0] == pytest.approx(14.4 / 78.4**0.5)
    assert 1 / (1 - NormalDist().cdf(3 - 14.4 / 78.4**0.5)) == pytest.approx(12, abs=0.5)
    assert expected(0.03, 2, 20_000, 20_000, 64)[0] == pytest.approx(72 / 136**0.5)


def test_too_few_different_prompts() -> None:
    """Of 1,000 draws from 1,000 prompts 632 differ on average; from 2 * 16 * 16 at most 512 do."""
    few: Any = Noise(length=2, vocabulary=16)
    with pytest.raises(SizeError, match="1,000"):
        audit(few, fitted=500, tested=500)
    assert audit(few, fitted=100, tested=100).verdict == "within"


def test_suspicion_that_a_second_drawing_does_not_confirm() -> None:
    """A sampler that leaks in the first drawing only: every probe is tried again, on four times
    as many, and is within.
    """

    def first_only(tokens: Ints, coins: Ints, rng: np.random.Generator) -> Ints:
        return tokens[:, 0] // 4 if len(tokens) == 400 else coins

    found = of(Noise(told=first_only), fitted=200, tested=200)
    assert found.verdict == "within"
    assert (found["position"].drawn, found["position"].judged) == (400 + 1600, 800)
    assert (found["constant"].drawn, found["constant"].judged) == (400, 200)


def half_told(tokens: Ints, coins: Ints, rng: np.random.Generator) -> Ints:
    return np.where(rng.integers(2, size=len(coins)) == 1, tokens[:, 0], coins)


def test_what_a_probe_reaches_by_hand() -> None:
    """The answer is token 0 with probability 1/2, else uniform among 8: its place reaches 1/2 +
    1/16, and a task may state that.
    """
    noise = Noise(answers=8, chance=Fraction(1, 8), told=half_told)
    row = of(noise)["position"]
    reached = Fraction(9, 16)
    assert abs(above(row.right, row.judged, reached)) < 4
    assert row.verdict == "leak"
    stated: Any = type(
        "Stated",
        (Noise,),
        {"level": lambda self, probe: reached if probe in ("position", "counts") else self.chance},
    )
    assert of(stated(answers=8, chance=Fraction(1, 8), told=half_told)).verdict == "within"


def test_correlation_tells_what_accuracy_does_not() -> None:
    """Answer 1 has probability 3/5; token 0 moves it by 1/20 either way, so that 1 stays the
    best guess everywhere.
    """

    def moved(tokens: Ints, coins: Ints, rng: np.random.Generator) -> Ints:
        return (rng.random(len(coins)) < np.where(tokens[:, 0] < 4, 0.55, 0.65)).astype(np.int64)

    row = of(Noise(told=moved, chance=Fraction(3, 5)))["position"]
    assert (row.verdict, row.test) == ("leak", "correlation")
    assert above(row.right, row.judged, row.level) < 3


def test_two_answers_of_which_one_is_likelier_than_stated() -> None:
    def uneven_coins(tokens: Ints, coins: Ints, rng: np.random.Generator) -> Ints:
        return (rng.random(len(coins)) < 0.66).astype(np.int64)

    assert of(Noise(told=uneven_coins, chance=Fraction(3, 5))).leaks[:2] == ("answers", "constant")
    assert of(Noise(told=uneven_coins, chance=Fraction(66, 100))).leaks == ()


def test_cut_prompts_by_hand() -> None:
    prompts = cut(np.array([[1, 2, 3], [4, 5, 6]]), np.array([1, 2]), nothing=9)
    assert prompts.front.tolist() == [[1, 2, 9], [4, 5, 6]]
    assert prompts.back.tolist() == [[9, 1, 2], [4, 5, 6]]
    assert prompts.last.tolist() == [2, 6]
    assert prompts.places().tolist() == [[1, 9, 9, 1], [4, 5, 4, 5]]
    assert prompts[1:].places().tolist() == [[4, 5, 4, 5]]
    whole = np.array([[1, 2, 3]])
    assert Prompts(whole, whole, 9)[:1].places().tolist() == [[1, 2]]


def test_tables_by_hand() -> None:
    ids = np.array([5, 5, 5, 7, 7])
    answers = np.array([1, 2, 2, 0, 0])
    guess = most_frequent(ids, answers, 3, np.array([7, 5, 6, -1, 8]))
    assert guess.answers.tolist() == [
        0,
        2,
        0,
        0,
        0,
    ]  # ids never seen: 0, the first of the two most frequent
    assert guess.score.tolist() == pytest.approx([(0 + 0.4) / 4, (1 + 0.4) / 5, 0.2, 0.2, 0.2])
    assert shifted(
        np.array([4, 5, 6]), np.array([1, 2, 0]), 3, np.array([3, 5, 9, 2])
    ).answers.tolist() == [0, 2, 0, 0]
    assert constant(np.array([2, 1, 2]), 2).answers.tolist() == [2, 2]


def test_a_copied_answer_is_found_among_more_ids_than_instances() -> None:
    rng = np.random.default_rng(0)
    tokens = rng.integers(1000, size=(400, 3))
    assert (
        best_column(tokens[:200], tokens[:200, 1], 1000, tokens[200:]).right(tokens[200:, 1]) == 200
    )


def test_the_better_of_two_ways_is_picked() -> None:
    rng = np.random.default_rng(0)
    seen = rng.integers(3, size=(400, 1))
    answers = rng.integers(3, size=400)
    seen[:, 0] = (answers + 1) % 3
    ways: Any = [
        lambda a, right, number, b: constant(right, len(b)),
        lambda a, right, number, b: most_frequent(a[:, 0], right, number, b[:, 0]),
    ]
    for order in (ways, ways[::-1]):
        assert best_of(order, seen[:200], answers[:200], 3, seen[200:]).right(answers[200:]) == 200


def test_nearest_key_by_hand() -> None:
    """Behind 3 and 5, both one away from the last 4, stand 8 and 6; the latest counts. Equal ids
    do not.
    """
    rows = np.array(
        [[3, 8, 5, 6, 4], [5, 6, 3, 8, 4], [4, 9, 4, 1, 4], [4, 4, 4, 4, 4], [9, 9, 9, 3, 4]]
    )
    assert _behind_nearest(Prompts(rows, rows, 10)).tolist() == [
        6,
        8,
        4,
        10,
        4,
    ]  # 10: all are equal to the last
    padded = cut(np.array([[3, 7, 4, 5]]), np.array([2]), nothing=6)
    assert _behind_nearest(padded).tolist() == [7]
    assert _behind_nearest(Prompts(rows[:, -1:], rows[:, -1:], 10)).tolist() == [10] * 5


def test_features_by_hand() -> None:
    tokens = np.array([[5, 5, 2, 9], [7, 5, 9, 9]])
    ids = frequent(tokens, answers=2, nothing=9)
    assert ids.tolist() == [2, 5, 7]
    assert frequent(tokens, answers=1 << 16, nothing=9).tolist() == [5]
    assert counted(tokens, np.array([2, 5]), 9).tolist() == [[1, 2, 0], [0, 1, 1]]
    assert indicated(tokens[:, 2:], np.array([5]), 9).tolist() == [
        [0, 1, 0, 0, 0, 1],
        [0, 0, 1, 0, 0, 1],
    ]


def test_regression_finds_the_probabilities_it_was_drawn_from() -> None:
    """One feature x = 0 or 1, P(answer 1) = 0.3 or 0.8: without a ridge the fit would be the
    shares themselves.
    """
    rng = np.random.default_rng(0)
    x = rng.integers(2, size=20_000)
    answers = (rng.random(len(x)) < np.where(x == 1, 0.8, 0.3)).astype(np.int64)
    guess = regression(x[:, None].astype(float), answers, 2, np.array([[0.0], [1.0]]))
    assert guess.answers.tolist() == [0, 1]
    assert guess.score == pytest.approx([0.3, 0.8], abs=0.015)


def test_words_by_hand() -> None:
    """Candidates in the order they are named in; the other names at random; the sentence behind
    the last name is left out.
    """
    item = TextItem(
        "Mavdok is Fizgub. Bobkug is Jokzub. In short: which is Bobkug?\nAnswer:",
        answer="Jokzub",
        steps=(),
        choices=("Fizgub", "Jokzub"),
    )
    known = frozenset({"Mavdok", "Fizgub", "Bobkug", "Jokzub"})
    task = parse_text_task("multihop:k=2,n=16")
    drawn = [_tokens(task, [item], known, np.random.default_rng(seed)) for seed in range(20)]
    assert {tuple(prompts.front[0].tolist()) for prompts, _ in drawn} == {
        (4, a, 0, 4, 5 - a, 1, 5, 6, 5 - a) for a in (2, 3)
    }
    assert all(answers.tolist() == [1] for _, answers in drawn)


def test_texts() -> None:
    assert audit_texts("eva") == tuple(f"eva:{sizes}" for sizes in Eva.grid[:3])
    assert audit_texts(" eva : n=9 ") == ("eva : n=9",)
    assert all(len(audit_texts(name)) == 3 for name in TASKS | TEXT_TASKS)
    with pytest.raises(UnknownNameError, match="'eva'"):
        audit_texts("evs")
    assert list(accuracies("eva:n=6,V=6")[1]) == list(PROBES)


def test_records() -> None:
    task = parse_task("disjointness:n=16")
    found = audit(task, fitted=200, tested=300)
    plain = json.loads(canonical(found.to_json()))
    assert canonical(found.to_json()) == canonical(audit(task, fitted=200, tested=300).to_json())
    assert plain != audit(task, seed=1, fitted=200, tested=300).to_json()
    assert [plain[key] for key in ("task", "seed", "fitted", "tested", "verdict")] == [
        "disjointness:n=16",
        0,
        200,
        300,
        "within",
    ]
    row = plain["rows"][1]
    assert (row["probe"], row["level"], row["judged"], row["drawn"]) == (
        "constant",
        "1/2",
        300,
        500,
    )
    assert row["accuracy"] == f"{row['right'] / 300:.6f}"
    assert sx.audit(task, fitted=200, tested=300) == found


def test_printed() -> None:
    rows = (
        Row(
            probe="constant",
            sees="nothing",
            right=50,
            judged=100,
            level=HALF,
            z=0.0,
            test="accuracy",
            drawn=200,
        ),
        Row(
            probe="counts",
            sees="all",
            right=300,
            judged=400,
            level=Fraction(1, 3),
            z=5.25,
            test="correlation",
            drawn=1000,
        ),
    )
    found = Audit(task="eva:n=2", seed=7, fitted=100, tested=100, rows=rows)
    lines = table(found).text(100).splitlines()
    assert re.findall(r"\d+", lines[0]) == ["2", "100", "100", "7"]
    assert lines[3].split() == ["constant", "0.5000", "1/2", "=", "0.5000", "+0.0", "within"]
    assert lines[4].split() == [
        "counts",
        "0.7500",
        "1/3",
        "=",
        "0.3333",
        "+5.2",
        "(correlation)",
        "leak",
        "(1,000",
        "drawn)",
    ]
    assert legend(found).cells == [("constant", "nothing"), ("counts", "all")]
    # what a level is stands below, in two lines
    assert lines[-3] == outcome(found)
    assert lines[-3].startswith("eva:n=2: LEAK; counts above ")
    assert lines[-2].startswith("level: ")


@each(
    "numbers, said",
    [
        ({"seed": -1}, "seed is -1"),
        ({"seed": 1.0}, "seed is 1.0"),
        ({"fitted": 99}, "fitted is 99"),
        ({"tested": True}, "tested is True"),
    ],
)
def test_bad_numbers(numbers: dict[str, Any], said: str) -> None:
    with pytest.raises(SizeError, match=said):
        audit(Eva(n=4, V=4), **numbers)


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (Eva(n=4, V=1025), "1,025 answers"),
        (
            Eva(n=5000, V=4),
            ("8,000 prompts of 5,001"),
        ),
        (Eva(n=10**12, V=4), "too much to audit"),
    ],
)
def test_what_is_too_large(task: Task, said: str) -> None:
    with pytest.raises(SeparatrixError, match=said) as caught:
        audit(task)
    assert "\n" not in str(caught.value)
