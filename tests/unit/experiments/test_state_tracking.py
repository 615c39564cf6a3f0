"""What is said of state tracking: by tables written by hand, with nothing trained."""

from __future__ import annotations

import pytest
from support.practice_tables import row, table, trial

from separatrix.experiments.state_tracking import StateTracking, fails_from, last_places, turns
from separatrix.practice.table import Longer, Row, Trial

SIZES = ("queries=8", "n=32,queries=8", "n=64,queries=8")
PARITY = "parity:n=16,queries=all"


def seed(number: int, *rights: int) -> Trial:
    """A seed with so many right of 1,000 answers at the last places of each length; over all
    places half of the answers are right.
    """
    longer = tuple(Longer(size, 0, right, 1000) for size, right in zip(SIZES, rights, strict=True))
    return trial(number, 500, longer=longer)


def tracking(mechanism: str, stack: str, *seeds: Trial, task: str = PARITY, **labels: str) -> Row:
    named = {"mechanism": mechanism, "group": "parity", "layers": 1, "stack": stack} | labels
    return row(named, {1e-2: seeds}, architecture=f"{stack} @ positions=none", task=task)


def of(right: int, twice: int, four: int) -> tuple[Trial, ...]:
    return tuple(seed(number, right, twice, four) for number in range(3))


LEARNED = tracking("gdn(negative=true)", "gdn(negative=true)", *of(1000, 990, 750))
CHANCE = tracking("linear", "linear", *of(510, 500, 490))


def test_the_last_places_count() -> None:
    """All places together are half right in every row here."""
    assert (LEARNED.solved, last_places(LEARNED).solved) == (0, 3)
    assert last_places(LEARNED).median == 1


def test_theorem_p_is_asked_and_its_n_is_two_standstills_and_one() -> None:
    """A float32 state stands still after c = 2^32 - 1 tokens, so that T = 2^32 and n = 2T + 1."""
    assert fails_from(CHANCE) == 2 * 2**32 + 1
    assert fails_from(LEARNED) is None
    (text,) = [
        line.text
        for line in StateTracking().lines(table("t", CHANCE, LEARNED))
        if line.label == "Theorem P"
    ]
    assert text == "Theorem P: from n = 8,589,934,593 on no weights of linear follow it."


@pytest.mark.parametrize(
    ("stack", "task", "expected"),
    [
        ("gdn(negative=true)", PARITY, True),
        ("gdn", PARITY, False),
        # three things take two exchanges: one reflection per token is not enough
        ("gdn(negative=true)", "permutation:n=16,k=3,queries=all", False),
        ("deltaproduct", "permutation:n=16,k=3,queries=all", True),
        ("gdn(negative=true)", "permutation:n=16,k=5,shift=swaps,queries=all", True),
        ("deltaproduct", "permutation:n=16,k=5,queries=all", False),
    ],
)
def test_who_can_reflect_often_enough(stack: str, task: str, expected: bool) -> None:
    assert turns(tracking(stack, stack, *of(1, 1, 1), task=task)) is expected


def test_findings_of_what_was_expected() -> None:
    learned, rest = StateTracking().findings(table("t", LEARNED, CHANCE))
    assert "3 of 3 seeds of gdn(negative=true) learned it" in learned
    assert "16 tokens the median is 100.0 %" in learned
    assert "99.0 % at 32 tokens and 75.0 % at 64 tokens" in learned
    assert "no seed of linear learned it; the best median is 51.0 % (linear; chance 50.0 %)" in rest
    assert "not cannot" in rest
    assert "8,589,934,593" in rest


def test_what_contradicts_comes_first() -> None:
    surprising = tracking("gdn", "gdn", *of(1000, 600, 500))
    failed = tracking("kda(negative=true)", "kda(negative=true)", *of(600, 500, 500))
    first, second, *others = StateTracking().findings(table("t", LEARNED, surprising, failed))
    assert "gdn (3 of 3 seeds) learned it" in first
    assert "without the reflections" in first
    assert "kda(negative=true) (median 60.0 %)" in second
    assert "no seed learned it in 500 steps" in second
    assert len(others) == 2


def test_following_the_sign_alone_is_told_from_chance() -> None:
    """Of six permutations three have either sign: 1/3 against 1/6."""
    task = "permutation:n=16,k=3,queries=all"
    signs = tracking(
        "gdn(negative=true)",
        "gdn(negative=true)",
        *(seed(0, 340, 1, 1), seed(1, 330, 1, 1), seed(2, 300, 1, 1)),
        task=task,
    )
    guesses = tracking("gdn", "gdn", *of(170, 160, 160), task=task)
    signs.labels["group"] = guesses.labels["group"] = "S3"
    told, rest = StateTracking().findings(table("t", signs, guesses))
    assert "every seed of gdn(negative=true) (median 33.0 %) answers about as often" in told
    assert "33.3 %" in told
    assert "no seed of gdn(negative=true) and gdn learned it" in rest


def test_too_few_seeds_say_nothing() -> None:
    two = tracking("gdn", "gdn", *of(1000, 1000, 1000)[:2])
    assert StateTracking().findings(table("t", two)) == ()


def test_a_table_has_every_length_and_the_theorem() -> None:
    shown = StateTracking().tables(table("state-tracking", LEARNED, CHANCE))[0]
    assert shown.columns[4:7] == ("at 16 tokens", "at 32 tokens", "at 64 tokens")
    assert [line[-1] for line in shown.rows] == [
        "no theorem",
        "from n = 8,589,934,593 (Theorem P)",
    ]
