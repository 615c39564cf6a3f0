"""Nearest neighbour: answers and refusals by hand, the laws of strings, labels and ids that the
docstring states, why no count is given.
"""

from __future__ import annotations

import itertools
from math import comb

import networkx
import numpy as np
import pytest
from support.each import each

from separatrix.core.errors import SizeError
from separatrix.tasks import Neighbour


def test_answers_by_hand() -> None:
    """The token table: 010 differs from 001 in two bits, from 110 in one, from 111 in two. Then
    two nearest strings of one label; equal strings.
    """
    prompts = [
        [1, 9, 6, 8, 7, 9, 2],
        [0, 9, 3, 9, 6, 8, 1],
        [5, 8, 5, 8, 4, 9, 5],
        [5, 8, 4, 9, 2, 8, 4],
    ]
    assert Neighbour(n=3, d=3, V=2).answer(np.array(prompts)).tolist() == [0, 1, 0, 1]


@each(
    "prompt, said",
    [
        ([0, 9, 3, 8, 6, 8, 1], "different labels"),
        ([5, 8, 5, 9, 4, 9, 5], "different labels"),
        ([8, 8, 1, 9, 4, 9, 5], r"8; it must lie in \[0, 8\)"),
        ([0, 8, 1, 9, 4, 9, 9], r"9; it must lie in \[0, 8\)"),
        ([0, 8, 1, 7, 4, 9, 5], r"7; it must lie in \[8, 10\)"),
    ],
)
def test_what_is_no_instance(prompt: list[int], said: str) -> None:
    with pytest.raises(SizeError, match=said):
        Neighbour(n=3, d=3, V=2).answer(np.array([prompt]))


def test_more_prefixes_are_told_apart_than_labels_can_be_given() -> None:
    """d = 3, n = V = 2, by brute force: 16 prefixes are told apart two by two, and no more,
    where V^n = 4.
    """
    rows: set[frozenset[tuple[int, int]]] = set()
    for one, other in itertools.product(itertools.product(range(8), range(2)), repeat=2):
        row = {}
        for query in range(8):
            distance = [bin(string ^ query).count("1") for string, _ in (one, other)]
            labels = {
                label
                for (_, label), far in zip((one, other), distance, strict=True)
                if far == min(distance)
            }
            if len(labels) == 1:
                row[query] = labels.pop()
        rows.add(frozenset(row.items()))
    apart = networkx.Graph()
    for first, second in itertools.combinations(map(dict, rows), 2):
        if any(second.get(query, label) != label for query, label in first.items()):
            apart.add_edge(frozenset(first.items()), frozenset(second.items()))
    assert max(map(len, networkx.find_cliques(apart))) == 16


DRAWN = [
    Neighbour(n=4, d=7, V=2),
    Neighbour(n=8, d=9, V=4),
    Neighbour(n=3, d=30, V=2),
    pytest.param(Neighbour(n=11, d=10, V=3), marks=pytest.mark.slow),
]
TOTAL = 6_000


@pytest.mark.parametrize("task", DRAWN, ids=str)
def test_what_is_drawn(task: Neighbour) -> None:
    tokens, answers = task.sample(TOTAL, np.random.default_rng(0))
    strings = tokens[:, :-1:2]
    labels = tokens[:, 1::2] - 2**task.d
    query = tokens[:, -1:]
    distance = np.bitwise_count(strings ^ query).astype(int)
    nearest = distance.argmin(1)
    r = distance.min(1)
    assert ((distance == r[:, None]).sum(1) == 1).all()
    assert (labels[np.arange(TOTAL), nearest] == answers).all()
    assert abs((r % 2).mean() - 1 / 2) < 4.5 * (0.25 / TOTAL) ** 0.5
    assert set(r.tolist()) <= set(range(1, (task.d - 1) // 2 + 1))
    assert (
        abs(np.bincount(nearest, minlength=task.n) / TOTAL - 1 / task.n).max()
        < 4.5 * (0.25 / TOTAL) ** 0.5
    )
    apart = np.bitwise_count(strings[:, :, None] ^ strings[:, None]).astype(int) + 99 * np.eye(
        task.n, dtype=int
    )
    assert apart.min() >= 3
    counts = np.apply_along_axis(np.bincount, 1, labels, minlength=task.V)
    assert set(counts.ravel().tolist()) <= {task.n // task.V, -(-task.n // task.V)}


@pytest.mark.parametrize("task", DRAWN, ids=str)
def test_every_bit_is_flipped_as_often(task: Neighbour) -> None:
    """In (R - 1/2)/d of the prompts; R is the largest number of which n - 1 balls hold at most 2^d
    strings.
    """
    tokens, _ = task.sample(TOTAL, np.random.default_rng(1))
    differing = tokens[:, :-1:2] ^ tokens[:, -1:]
    flips = differing[np.arange(TOTAL), np.bitwise_count(differing).argmin(1)]
    share = np.array([(flips >> bit & 1).mean() for bit in range(task.d)])
    most = np.bitwise_count(flips).max()
    ball = [sum(comb(task.d, ones) for ones in range(r + 1)) for r in range(task.d)]
    fits = [r for r in range((task.d - 1) // 2 + 1) if (task.n - 1) * ball[r] <= 2**task.d]
    assert most == max(2, *fits)
    assert abs(share - (most - 1 / 2) / task.d).max() < 4.5 * (0.25 / TOTAL) ** 0.5


def test_the_lowest_bits_are_no_key() -> None:
    """Nine lowest bits, looked up exactly, at n = 128, d = 15, V = 8: their flips leave the string
    found where r = 1 in 6 of 15 cases and r = 2 in 6/15 5/14, and 1 in 512 of the 127 others too.
    """
    tokens, answers = Neighbour(n=128, d=15, V=8).sample(2000, np.random.default_rng(0))
    found = (tokens[:, :-1:2] ^ tokens[:, -1:]) & 511 == 0
    label = tokens[np.arange(2000), 1 + 2 * found.argmax(1)] - 2**15
    right = (label == answers)[found.any(1)].sum() / 2000
    whole = (6 / 15 + 6 / 15 * 5 / 14) / 2
    assert right < whole + (1 - whole) / 8 + 4.5 * (0.25 / 2000) ** 0.5


@pytest.mark.parametrize("task", [*DRAWN[:2], DRAWN[3]], ids=str)
def test_no_string_is_asked_for_more_often_than_others(task: Neighbour) -> None:
    """Neither that farthest from all others, nor that nearest to them, nor one by its bits, nor
    one with as many bits as the query modulo 2.
    """
    tokens, answers = task.sample(2 * TOTAL, np.random.default_rng(4))
    strings = tokens[:, :-1:2]
    labels = tokens[:, 1::2] - 2**task.d
    rows = np.arange(2 * TOTAL)
    apart = np.bitwise_count(strings[:, :, None] ^ strings[:, None]).astype(int).sum(2)
    bits = np.bitwise_count(strings).astype(int)
    like = (bits + np.bitwise_count(tokens[:, -1:])) % 2
    for score in (apart, -apart, bits, like, -like, strings, -strings):
        right = (labels[rows, score.argmax(1)] == answers).mean()
        assert abs(right - 1 / task.V) < 4.5 * (0.25 / (2 * TOTAL)) ** 0.5


@pytest.mark.slow
def test_labels_and_query_together_do_not_tell() -> None:
    """n = 2, d = 4, V = 2: of the prompts with any given labels and query, about half have
    either answer.
    """
    tokens, answers = Neighbour(n=2, d=4, V=2).sample(60_000, np.random.default_rng(2))
    seen = (tokens[:, 1] - 16) * 32 + (tokens[:, 3] - 16) * 16 + tokens[:, 4]
    total = np.bincount(seen, minlength=64)
    ones = np.bincount(seen, weights=answers, minlength=64)
    met = total > 0
    assert met.sum() > 8
    assert (abs(ones - total / 2)[met] < 4.5 * (total[met] / 4) ** 0.5).all()


def test_too_short_to_draw() -> None:
    """Seven balls of 37 strings fill 256; of 46, not 512. Two bits from 000 is one from 111."""
    with pytest.raises(SizeError, match="of at least 9"):
        Neighbour(n=8, d=8, V=4).sample(1, np.random.default_rng(0))
    with pytest.raises(SizeError, match="of at least 4"):
        Neighbour(n=2, d=3, V=2).sample(1, np.random.default_rng(0))
    with pytest.raises(SizeError, match="only 8 strings differ"):
        Neighbour(n=9, d=3, V=2, shift="equal").sample(1, np.random.default_rng(0))


def test_equal_strings() -> None:
    equal, _ = Neighbour(n=6, d=4, V=2, shift="equal").sample(500, np.random.default_rng(3))
    assert ((equal[:, :-1:2] == equal[:, -1:]).sum(1) == 1).all()
