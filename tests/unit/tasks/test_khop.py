"""k-hop induction heads: the paper's example, repeats and absent hops by hand, and how evenly
the sampler hides the answer.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from support.each import each
from support.task_cases.khop import hopped

from separatrix.core.errors import SizeError
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import KHop, Thought, parse_task
from separatrix.tasks.audits import audit
from separatrix.tasks.audits.run import above
from separatrix.tasks.audits.shortcuts import walks
from separatrix.tasks.khop import path
from separatrix.theory.judge import judge


def free(n: int, V: int, k: int) -> KHop:
    return KHop(n=n, V=V, k=k, shift="random")


def test_the_example_of_the_paper() -> None:
    """baebcabebdea: one hop from the last a gives b, two give c; c has no earlier occurrence."""
    prompt = np.array([["abcde".index(letter) for letter in "baebcabebdea"]])
    assert free(12, 5, 3).chain(prompt).tolist() == [[1, 2, 5]]
    assert [int(free(12, 5, k).answer(prompt)[0]) for k in (1, 2, 3, 4)] == [1, 2, 5, 5]


@each(
    "prompt, chain",
    [
        ([0, 0], [0, 0, 0]),  # the hop stays where a token repeats the one before
        ([1, 0], [2, 2, 2]),
        ([0, 1, 0], [1, 2, 2]),
        ([0, 1, 1, 0], [1, 2, 2]),  # behind the first 0 stands the first 1, which has none before
        ([1, 0, 1, 1, 0], [1, 0, 2]),
        (
            [0, 1, 1, 0, 1],
            [0, 1, 2],
        ),  # behind the second 1 stands 0; behind the first 0 stands the first 1
    ],
)
def test_chains_by_hand(prompt: list[int], chain: list[int]) -> None:
    assert free(len(prompt), 2, 3).chain(np.array([prompt])).tolist() == [chain]


@each("n, V, k", [(2, 2, 1), (5, 2, 2), (6, 3, 1), (6, 3, 2), (7, 3, 4), (5, 4, 2)])
def test_chance_of_random_letters_by_counting(n: int, V: int, k: int) -> None:
    """All sequences without equal neighbours are equally likely."""
    task = free(n, V, k)
    answers = [
        hopped(task, list(row))
        for row in itertools.product(range(V), repeat=n)
        if all(a != b for a, b in itertools.pairwise(row))
    ]
    assert task.chance == Fraction(max(map(answers.count, range(V + 1))), len(answers))
    law = {answer: share for ids, share in task.law(k) for answer in ids}
    assert law == {answer: Fraction(answers.count(answer), len(answers)) for answer in range(V + 1)}


def test_chance_of_long_random_prompts_is_exact() -> None:
    assert free(1 << 16, 4, 16).chance.denominator > 10**10000
    with pytest.raises(SizeError, match="n is 65537"):
        free((1 << 16) + 1, 4, 2)


SIZES = [KHop(n=12, V=4, k=2), KHop(n=18, V=4, k=3), KHop(n=24, V=8, k=2), KHop(n=31, V=5, k=5)]


@pytest.mark.parametrize("task", SIZES, ids=str)
def test_how_often_the_answer_stands_at_each_place(task: KHop) -> None:
    """1/V but for block k, whose first place has 1/(V (V-1)), the last 1/V, the others 1/(V-1):
    within 4.5 standard errors.
    """
    total = 60_000
    V = task.V
    tokens, targets = task.sample(total, np.random.default_rng(1))
    expected = np.full(task.n, 1 / V)
    start = task.n - (task.k + 1) * V
    expected[start : start + V] = [1 / V / (V - 1), *[1 / (V - 1)] * (V - 2), 1 / V]
    share = (tokens == targets[:, None]).mean(0)
    assert (np.abs(share - expected) < 4.5 * (expected * (1 - expected) / total) ** 0.5).all()
    assert task.level("position") == Fraction(1, V - 1)
    assert (
        task.level("last tokens")
        == task.level("nearest key")
        == task.level("counts")
        == Fraction(1, V)
    )


@pytest.mark.slow
@pytest.mark.parametrize("task", SIZES[2:], ids=str)
def test_two_places_that_agree_tell_nothing(task: KHop) -> None:
    """Where two places agree, the answer is that letter about as often as a single place may
    say, 1/(V-1), and not in every second case.
    """
    total = 60_000
    tokens, targets = task.sample(total, np.random.default_rng(2))
    for one, two in itertools.combinations(range(task.n), 2):
        agree = tokens[:, one] == tokens[:, two]
        if agree.sum() < 1000:
            continue
        share = float((tokens[agree, one] == targets[agree]).mean())
        most = 1 / (task.V - 1)
        assert share < most + 0.1 * most + 5 * (most / agree.sum()) ** 0.5


@pytest.mark.parametrize("task", [KHop(n=24, V=4, k=2), KHop(n=15, V=4, k=1)], ids=str)
def test_blocks_are_permutations(task: KHop) -> None:
    tokens = task.sample(500, np.random.default_rng(3)).tokens[:, task.n % task.V :]
    assert (np.sort(tokens.reshape(500, -1, task.V), axis=2) == np.arange(task.V)).all()


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_ways_between_letters_are_equally_likely(k: int) -> None:
    """All sequences of k steps, neighbours unlike, from start to end; and how often a letter on
    the way is the end.
    """
    V = 4
    total = 40_000
    rng = np.random.default_rng(4)
    start = rng.integers(V, size=total)
    end = (start + rng.integers(1, V, size=total)) % V if k == 1 else rng.integers(V, size=total)
    chain, met = path(start, end, V, k, rng)
    assert (chain[:, 1:] != chain[:, :-1]).all()
    assert (chain[:, [0, k]] == np.column_stack((start, end))).all()
    ways = [
        way
        for way in itertools.product(range(V), repeat=k + 1)
        if all(a != b for a, b in itertools.pairwise(way))
    ]
    ids = {way: number for number, way in enumerate(ways)}
    seen = np.bincount([ids[way] for way in map(tuple, chain.tolist())], minlength=len(ways))
    ends: dict[tuple[int, int], int] = {}
    for way in ways:
        ends[way[0], way[-1]] = ends.get((way[0], way[-1]), 0) + 1
    expected = np.array([total / len(ends) / ends[way[0], way[-1]] for way in ways])
    assert ((seen - expected) ** 2 / expected).sum() < len(ways) + 6 * (2 * len(ways)) ** 0.5
    if k > 1:
        for b, share in enumerate(met):
            weight = sum(
                Fraction(1, 16 * ends[way[0], way[-1]]) for way in ways if way[b] == way[-1]
            )
            assert share == weight


def test_one_hop_is_never_to_the_last_token() -> None:
    task = KHop(n=16, V=8, k=1)
    tokens, targets = task.sample(2000, np.random.default_rng(5))
    assert (tokens[:, -1] != targets).all()
    assert task.level("last tokens") == Fraction(1, 7)


def test_families() -> None:
    family = parse_task("khop:n=64,V=8,k=3").family()
    assert (family.smallest, family.at(40)) == (32, KHop(n=40, V=8, k=3))
    assert free(64, 8, 3).family().at(40) == KHop(n=40, V=8, k=3)
    assert free(6, 3, 1).family().at(5) == free(5, 3, 1)
    assert free(6, 3, 2).family().smallest == 2
    assert [free(n, 5, 1).family().smallest for n in (4, 9, 10)] == [9, 9, 10]


ARCHITECTURES = [
    "gdn*2 @ heads=1, head_dim=4, value_dim=4, format=p8, state_format=p8",
    "full*1 @ heads=1, head_dim=1, format=p1",
    "loglinear*1 @ heads=1, head_dim=1",
    "window*1 @ heads=1, head_dim=1, size=2, format=p1",
]


@pytest.mark.parametrize("text", ARCHITECTURES)
def test_theorem_i_finds_a_count_wherever_it_looks(text: str) -> None:
    """k = 1 has a count from n = 2V - 1 on, and so has every member of its family; no size makes
    a verdict impossible, with a chain or without.
    """
    model = Architecture.parse(text)
    for V, k, n in itertools.product(range(2, 7), (1, 2), (2, 3, 5, 8, 9, 10, 14)):
        task = free(n, V, k)
        assert (task.prefix_classes() is not None) == (k == 1 and n >= 2 * V - 1)
        if k == 1:
            assert task.family().at(task.family().smallest).prefix_classes() is not None
        for asked in (task, Thought(task=task)):
            assert {verdict.status for verdict in judge(model, asked)} <= {"FAILS", "OPEN"}


def test_theorem_i_at_the_first_size_that_has_a_count() -> None:
    """V = 3: 3 + 3 x 2 + 9 = 18 trees, more than 2^4; the window holds 4 bits: a key and a
    value, of one bit, for two tokens. Each size is judged alone, so none is named.
    """
    for n in (5, 10):
        (verdict,) = judge(Architecture.parse(ARCHITECTURES[3]), free(n, 3, 1))
        assert (verdict.status, verdict.theorem, verdict.n) == ("FAILS", "I", None)
    (verdict,) = judge(Architecture.parse(ARCHITECTURES[3]), free(4, 3, 1))
    assert verdict.status == "OPEN"


def behind_the_last_letter(task: KHop, total: int) -> tuple[float, float]:
    """How often the letter that stands behind c_0 least often, or most often, is the answer,
    ties broken at random.
    """
    rng = np.random.default_rng(6)
    tokens, targets = task.sample(total, rng)
    often = np.zeros((total, task.V))
    for place in range(task.n - 1):
        rows = np.flatnonzero(tokens[:, place] == tokens[:, -1])
        often[rows, tokens[rows, place + 1]] += 1
    luck = rng.random(often.shape) / 2
    return tuple(float(((sign * often + luck).argmax(1) == targets).mean()) for sign in (-1, 1))  # type: ignore[return-value]


@pytest.mark.parametrize("V", [4, 8])
def test_two_hops_leave_few_letters_that_do_not_follow_the_last(V: int) -> None:
    total = 10_000
    least, _ = behind_the_last_letter(KHop(n=3 * V, V=V, k=2), total)
    error = (1 / V / total) ** 0.5
    assert 1 / (V - 1) - 3 * error < least < 1 / (V - 2) + 3 * error


@pytest.mark.parametrize("text", KHop.grid[:3])
def test_neighbours_of_the_last_letter_say_no_more_than_a_single_place_at_the_sizes_of_the_grid(
    text: str,
) -> None:
    task = parse_task(f"khop:{text}")
    total = 10_000
    assert isinstance(task, KHop)
    most = 1 / (task.V - 1)
    assert max(behind_the_last_letter(task, total)) < most + 3 * (most / total) ** 0.5


@pytest.mark.parametrize(("k", "n", "told"), [(2, 24, True), (3, 32, True), (7, 64, False)])
def test_walks_along_pairs_tell_few_hops_in_part(k: int, n: int, told: bool) -> None:
    found = audit(KHop(n=n, V=8, k=k), fitted=500, tested=500)["walks"]
    assert (above(found.right, found.judged, Fraction(1, 7)) > 3) == told


def test_walks_along_pairs_by_hand() -> None:
    """From 3 to 0 and on to 1, whatever the age of the pairs; behind 0 stands 1 twice, 2 once."""
    rows = np.array([[0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3], [1, 0, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]])
    assert walks(KHop(n=12, V=4, k=2), rows).tolist() == [[1], [1]]
