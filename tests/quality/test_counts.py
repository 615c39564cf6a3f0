"""Every count of theory.md, section 3, against brute force: all prefixes, all continuations, an oracle written from the task's definition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, permutations, product
from typing import Any

import pytest

from separatrix.errors import SizeError
from separatrix.theory.counts import COUNTS

Word = tuple[Any, ...]


def classes(prefixes: Iterable[Word], continuations: Sequence[Word], answer: Callable[[Word, Word], object]) -> int:
    """Number of different rows of answers."""
    return len({tuple(answer(prefix, end) for end in continuations) for prefix in prefixes})


def words(alphabet: int, length: int) -> Iterable[Word]:
    return product(range(alphabet), repeat=length)


def cancels(values: Word, M: int) -> bool:
    return any((a + b) % M == 0 for a, b in combinations(values, 2))


def written(pairs: Word, key: int) -> object:
    """The last value written under the key, or "none"."""
    return next((value for k, value in reversed(pairs) if k == key), "none")


def balanced(brackets: Word, k: int, D: int) -> bool:
    stack: list[int] = []
    for bracket in brackets:
        if bracket < k:
            stack.append(bracket)
        elif not stack or stack.pop() != bracket - k:
            return False
        if len(stack) > D:
            return False
    return not stack


def eva(n: int, V: int) -> int:
    return classes(words(V, n), list(words(n, 1)), lambda f, x: f[x[0]])


def equality(n: int) -> int:
    return classes(words(2, n), list(words(2, n)), lambda u, v: u == v)


def disjointness(n: int) -> int:
    return classes(words(2, n), list(words(2, n)), lambda u, v: not any(a and b for a, b in zip(u, v, strict=True)))


def two_sum(n: int, M: int) -> int:
    ends = [end for length in (0, 1) for end in words(M, length)]
    return classes(permutations(range(1, (M - 1) // 2 + 1), n), ends, lambda x, y: cancels(x + y, M))


def match2_distinct(n: int, M: int) -> int:
    return classes(permutations(range(M), n), list(words(M, 1)), lambda x, q: any((a + q[0]) % M == 0 for a in x))


def match2(n: int, M: int) -> int:
    return classes(words(M, n), list(words(M, 1)), lambda x, q: any((a + q[0]) % M == 0 for a in x))


def recall_distinct(n: int, K: int, V: int) -> int:
    pairs = (tuple(zip(keys, values, strict=True)) for keys in permutations(range(K), n) for values in words(V, n))
    return classes(pairs, list(words(K, 1)), lambda written_pairs, q: written(written_pairs, q[0]))


def recall(n: int, K: int, V: int) -> int:
    return classes(product(product(range(K), range(V)), repeat=n), list(words(K, 1)), lambda pairs, q: written(pairs, q[0]))


def counting(n: int) -> int:
    ends = [end for length in (0, 1, 2) for end in words(2, length)]
    return classes(words(2, n), ends, lambda u, v: sum(u + v))


def counting_queried(n: int, V: int) -> int:
    return classes(words(V, n), list(words(V, 1)), lambda u, q: u.count(q[0]))


def dyck(k: int, D: int, n: int, *, invalid: bool) -> int:
    ends = [end for length in range(min(D, n) + 1) for end in words(2 * k, length)]
    prefixes = [prefix for prefix in words(2 * k, n) if invalid or any(balanced(prefix + end, k, D) for end in ends)]
    return classes(prefixes, ends, lambda u, v: balanced(u + v, k, D))


BRUTE: dict[str, Callable[..., int]] = {
    "eva": eva,
    "equality": equality,
    "disjointness": disjointness,
    "two-sum": two_sum,
    "match2-distinct": match2_distinct,
    "match2": match2,
    "recall-distinct": recall_distinct,
    "recall": recall,
    "counting": counting,
    "counting-queried": counting_queried,
    "dyck-valid": lambda k, D, n: dyck(k, D, n, invalid=False),
    "dyck": lambda k, D, n: dyck(k, D, n, invalid=True),
}
CASES: dict[str, list[tuple[int, ...]]] = {
    "eva": [(1, 2), (2, 2), (3, 3), (2, 5), (6, 2)],
    "equality": [(1,), (2,), (3,), (6,)],
    "disjointness": [(1,), (2,), (3,), (6,)],
    "two-sum": [(1, 3), (2, 5), (2, 9), (3, 8), (3, 11), (4, 10)],
    "match2-distinct": [(1, 3), (2, 5), (3, 6), (4, 4), (5, 7)],
    "match2": [(1, 3), (2, 3), (5, 3), (3, 5), (4, 6)],
    "recall-distinct": [(1, 1, 2), (2, 3, 2), (3, 3, 2), (2, 4, 3)],
    "recall": [(1, 2, 2), (3, 2, 2), (2, 3, 3), (4, 2, 3)],
    "counting": [(1,), (2,), (7,)],
    "counting-queried": [(1, 2), (3, 2), (4, 3), (3, 4)],
    "dyck-valid": [(1, 1, 1), (1, 2, 5), (1, 3, 4), (2, 1, 3), (2, 2, 3), (2, 2, 4), (2, 3, 3), (3, 2, 3)],
    "dyck": [(1, 1, 1), (1, 2, 5), (1, 3, 4), (2, 1, 3), (2, 2, 3), (2, 2, 4), (2, 3, 3), (3, 2, 3)],
}


@pytest.mark.parametrize(("key", "sizes"), [(key, sizes) for key, cases in CASES.items() for sizes in cases])
def test_the_formula_is_the_number_of_classes(key: str, sizes: tuple[int, ...]) -> None:
    assert COUNTS[key](**dict(zip(COUNTS[key].sizes, sizes, strict=True))).exact() == BRUTE[key](*sizes)


@pytest.mark.parametrize(("n", "K", "V"), [(1, 2, 2), (1, 3, 2), (2, 2, 2), (2, 3, 2), (1, 2, 3)])
def test_a_promise_leaves_v_to_the_n_prefixes_told_apart_two_by_two(n: int, K: int, V: int) -> None:
    """MQAR: prefixes with different values under a key both hold are told apart. The largest set of such, by exhaustive search."""
    nodes = [dict(zip(keys, values, strict=True)) for keys in combinations(range(K), n) for values in words(V, n)]
    apart = [{j for j, b in enumerate(nodes) if any(b.get(key, value) != value for key, value in a.items())} for a in nodes]

    def largest(candidates: set[int]) -> int:
        best = 0
        for i in sorted(candidates):
            best = max(best, 1 + largest({j for j in candidates & apart[i] if j > i}))
        return best

    assert COUNTS["recall-promise"](n=n, V=V).exact() == largest(set(range(len(nodes))))


def test_every_count_is_covered() -> None:
    assert set(BRUTE) | {"recall-promise"} == set(COUNTS) == set(CASES) | {"recall-promise"}
    assert all(count.formula and count.sketch and count.source for count in COUNTS.values())


@pytest.mark.parametrize("text", ["01", "0110", "000"])
def test_a_quotient_automaton_with_as_many_states_as_classes_solves_a_total_task(text: str) -> None:
    """Tightness of Theorem I, on substring search: states are the classes of prefixes of each length, at most max_t C(t) of them."""
    length = 6
    ends = {t: list(words(2, length - t)) for t in range(length + 1)}

    def row(prefix: Word) -> Word:
        return tuple(text in "".join(map(str, prefix + end)) for end in ends[len(prefix)])

    states = {t: {row(prefix): index for index, prefix in enumerate(sorted(words(2, t), key=row))} for t in range(length + 1)}
    numbered = {t: {key: number for number, key in enumerate(sorted(states[t]))} for t in states}
    step = {
        (t, numbered[t][row(prefix)], bit): numbered[t + 1][row((*prefix, bit))]
        for t in range(length)
        for prefix in words(2, t)
        for bit in (0, 1)
    }
    final = {numbered[length][row(word)]: row(word)[0] for word in words(2, length)}
    bits = (max(map(len, numbered.values())) - 1).bit_length()
    for word in words(2, length):
        state = 0
        for t, bit in enumerate(word):
            state = step[t, state, bit]
            assert state < 2**bits
        assert final[state] == (text in "".join(map(str, word)))


@pytest.mark.parametrize(
    ("key", "sizes"),
    [
        ("eva", {"n": 3}),
        ("eva", {"n": 3, "V": 0}),
        ("eva", {"n": 3, "V": 2, "K": 1}),
        ("two-sum", {"n": 3, "M": 5}),
        ("match2-distinct", {"n": 4, "M": 3}),
    ],
)
def test_sizes_that_are_none(key: str, sizes: dict[str, int]) -> None:
    with pytest.raises(SizeError):
        COUNTS[key](**sizes)
