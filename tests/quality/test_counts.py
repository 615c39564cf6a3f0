"""Every count of theory.md, section 3, against brute force: all prefixes, all continuations, an
oracle written from the task's definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, permutations, product
from math import comb, inf, perm
from typing import Any

import pytest
from support.counted_classes import counted_classes
from support.each import each
from support.prefix_counts import COUNTS

from separatrix.core.errors import SizeError
from separatrix.core.numbers.counts import Exact
from separatrix.tasks import Counting, Disjointness, Dyck, Equality, Eva, Task, TwoSum
from separatrix.theory.base import counted

Word = tuple[Any, ...]


def classes(
    prefixes: Iterable[Word], continuations: Sequence[Word], answer: Callable[[Word, Word], object]
) -> int:
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
    return classes(
        words(2, n),
        list(words(2, n)),
        lambda u, v: not any(a and b for a, b in zip(u, v, strict=True)),
    )


def two_sum(n: int, M: int) -> int:
    ends = [end for length in (0, 1, 2) for end in words(M, length)]
    return classes(
        permutations(range(1, (M - 1) // 2 + 1), n), ends, lambda x, y: cancels(x + y, M)
    )


def match2_distinct(n: int, M: int) -> int:
    return classes(
        permutations(range(M), n),
        list(words(M, 1)),
        lambda x, q: any((a + q[0]) % M == 0 for a in x),
    )


def match2(n: int, M: int) -> int:
    return classes(words(M, n), list(words(M, 1)), lambda x, q: any((a + q[0]) % M == 0 for a in x))


def recall_distinct(n: int, K: int, V: int) -> int:
    pairs = (
        tuple(zip(keys, values, strict=True))
        for keys in permutations(range(K), n)
        for values in words(V, n)
    )
    return classes(pairs, list(words(K, 1)), lambda written_pairs, q: written(written_pairs, q[0]))


def recall(n: int, K: int, V: int) -> int:
    return classes(
        product(product(range(K), range(V)), repeat=n),
        list(words(K, 1)),
        lambda pairs, q: written(pairs, q[0]),
    )


def counting(n: int) -> int:
    ends = [end for length in (0, 1, 2) for end in words(2, length)]
    return classes(words(2, n), ends, lambda u, v: sum(u + v))


def counting_queried(n: int, V: int) -> int:
    return classes(words(V, n), list(words(V, 1)), lambda u, q: u.count(q[0]))


def dyck(k: int, D: int, n: int, *, invalid: bool) -> int:
    ends = [end for length in range(min(D, n) + 2) for end in words(2 * k, length)]
    prefixes = [
        prefix
        for prefix in words(2 * k, n)
        if invalid or any(balanced(prefix + end, k, D) for end in ends)
    ]
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
MOST_WORK = {1: 70_000, 2: 50_000, 3: 12_000}
"""Prefixes times continuations at one size, by the number of sizes a row has: all sizes up to
that are tried, in two seconds together.
"""


def work(key: str, sizes: tuple[int, ...]) -> float:
    """Prefixes times continuations of the brute force; infinite where the row has no such size."""
    match key, sizes:
        case "eva", (n, V):
            return V**n * n
        case "equality" | "disjointness", (n,):
            return 4.0**n
        case "two-sum", (n, M):
            return perm((M - 1) // 2, n) * (M + 1) ** 2 if n <= (M - 1) // 2 else inf
        case "match2-distinct", (n, M):
            return perm(M, n) * M if n <= M else inf
        case "match2", (n, M):
            return M**n * M
        case "recall-distinct", (n, K, V):
            return perm(K, n) * V**n * K if n <= K else inf
        case "recall", (n, K, V):
            return (K * V) ** n * K
        case "counting", (n,):
            return 2**n * 7
        case "counting-queried", (n, V):
            return V**n * V
        case _, (k, D, n):
            return (2 * k) ** (n + min(D, n) + 1)
    raise AssertionError(f"no row {key}")


def every_size(key: str) -> list[tuple[int, ...]]:
    """All sizes of a row whose brute force takes no more than `MOST_WORK`, each from 1 to 12."""
    number = len(COUNTS[key].sizes)
    return [
        sizes
        for sizes in product(range(1, 13), repeat=number)
        if work(key, sizes) <= MOST_WORK[number]
    ]


@pytest.mark.parametrize("key", BRUTE)
def test_the_formula_is_the_number_of_classes(key: str) -> None:
    sizes = every_size(key)
    assert len(sizes) >= 5
    for case in sizes:
        assert COUNTS[key](**dict(zip(COUNTS[key].sizes, case, strict=True))).exact() == BRUTE[key](
            *case
        ), case


@each("n, K, V", [(1, 2, 2), (1, 3, 2), (2, 2, 2), (2, 3, 2), (1, 2, 3)])
def test_a_promise_leaves_v_to_the_n_prefixes_told_apart_two_by_two(n: int, K: int, V: int) -> None:
    """MQAR: prefixes with different values under a key both hold are told apart. The largest set
    of such, by exhaustive search.
    """
    nodes = [
        dict(zip(keys, values, strict=True))
        for keys in combinations(range(K), n)
        for values in words(V, n)
    ]
    apart = [
        {
            j
            for j, b in enumerate(nodes)
            if any(b.get(key, value) != value for key, value in a.items())
        }
        for a in nodes
    ]

    def largest(candidates: set[int]) -> int:
        best = 0
        for i in sorted(candidates):
            best = max(best, 1 + largest({j for j in candidates & apart[i] if j > i}))
        return best

    assert COUNTS["recall-promise"](n=n, V=V).exact() == largest(set(range(len(nodes))))


def test_every_count_is_covered() -> None:
    assert set(BRUTE) | {"recall-promise"} == set(COUNTS)


TOTAL: dict[str, tuple[int, int, Callable[[Word], object]]] = {
    "substring 01": (2, 6, lambda word: "01" in "".join(map(str, word))),
    "substring 0110": (2, 7, lambda word: "0110" in "".join(map(str, word))),
    "ones modulo 3": (2, 6, lambda word: sum(word) % 3),
    "equality": (2, 8, lambda word: word[:4] == word[4:]),
    "2-Sum": (5, 4, lambda word: cancels(word, 5)),
    "2-Sum per query": (4, 4, lambda word: any((x + word[-1]) % 4 == 0 for x in word[:-1])),
    "Dyck-(2, 2)": (4, 6, lambda word: balanced(word, 2, 2)),
    "last token": (3, 4, lambda word: word[-1]),
}
"""Alphabet, length and answer of total tasks: every word is an instance."""


@each("name", TOTAL)
def test_theorem_i_is_tight_for_total_tasks(name: str) -> None:
    """The quotient automaton: states are the classes of prefixes of each length, in ceil(log2
    max_t C(t)) bits; it knows the position.
    """
    alphabet, length, answer = TOTAL[name]
    answers = {word: answer(word) for word in words(alphabet, length)}
    numbered: list[
        dict[Word, int]
    ] = []  # a class, by its answers after all continuations -> its state
    for t in range(length + 1):
        rows = {
            prefix: tuple(answers[prefix + end] for end in words(alphabet, length - t))
            for prefix in words(alphabet, t)
        }
        numbers = {row: number for number, row in enumerate(dict.fromkeys(rows.values()))}
        numbered.append({prefix: numbers[row] for prefix, row in rows.items()})
    bits = Exact(max(len(set(states.values())) for states in numbered)).ceil_log2()
    step = [
        {
            (numbered[t][prefix], token): numbered[t + 1][*prefix, token]
            for prefix in numbered[t]
            for token in range(alphabet)
        }
        for t in range(length)
    ]
    final = {numbered[length][word]: answers[word] for word in answers}
    for word, right in answers.items():
        state = 0
        for t, token in enumerate(word):
            state = step[t][state, token]
            assert state < 2**bits
        assert final[state] == right


@pytest.mark.parametrize(("k", "D"), [(1, 1), (1, 3), (2, 1), (2, 2), (3, 2)])
def test_a_recurrent_memory_of_the_size_stated_solves_dyck_at_every_length(k: int, D: int) -> None:
    """One integer of ceil(log2(1 + sum_{j <= D} k^j)) bits: a stack by its height and its kinds,
    or failure; no position.
    """
    # the first stack of each height
    base = [sum(k**i for i in range(height)) for height in range(D + 2)]
    failure = base[D + 1]
    bits = failure.bit_length()

    def update(state: int, bracket: int) -> int:
        if state == failure:
            return failure
        height = max(h for h in range(D + 1) if base[h] <= state)
        kinds = state - base[height]
        if bracket < k:
            return base[height + 1] + kinds * k + bracket if height < D else failure
        return base[height - 1] + kinds // k if height and kinds % k == bracket - k else failure

    assert 2 ** (bits - 1) < 1 + sum(k**j for j in range(D + 1)) <= 2**bits
    for word in (word for length in range(7) for word in words(2 * k, length)):
        state = 0
        for bracket in word:
            state = update(state, bracket)
            assert 0 <= state < 2**bits
        assert (state == 0) == balanced(word, k, D)


@pytest.mark.parametrize(
    ("task", "key", "sizes"),
    [
        (Eva(n=9, V=5), "eva", {"n": 9, "V": 5}),
        (Equality(n=9), "equality", {"n": 9}),
        (Disjointness(n=9), "disjointness", {"n": 9}),
        (Counting(n=9), "counting", {"n": 9}),
        (Counting(n=9, V=40, form="queried"), "counting-queried", {"n": 9, "V": 40}),
        (TwoSum(n=9, M=20), "match2", {"n": 9, "M": 20}),
        (TwoSum(n=30, M=20), "match2", {"n": 30, "M": 20}),
        *(
            (Dyck(n=n, k=3, D=4), "dyck", {"k": 3, "D": 4, "n": Dyck(n=n, k=3, D=4).prefix_length})
            for n in (2, 8, 10, 12, 40)
        ),
    ],
    ids=str,
)
def test_tasks_count_alike(task: Task, key: str, sizes: dict[str, int]) -> None:
    assert counted(task).exact() == COUNTS[key](**sizes).exact()


def test_a_decision_has_the_prefixes_of_the_half_range_among_its_own() -> None:
    for n, M in ((3, 9), (5, 40), (9, 19)):
        assert (
            counted_classes(TwoSum(n=n + 1, M=M, form="decision")).exact()
            >= COUNTS["two-sum"](n=n, M=M).exact()
        )


@each(
    "key, sizes, value",
    [
        ("recall-distinct", {"n": 700, "K": 9000, "V": 50}, comb(9000, 700) * 50**700),
        (
            "recall",
            {"n": 300, "K": 1000, "V": 50},
            sum(comb(1000, j) * 50**j for j in range(1, 301)),
        ),
        ("recall", {"n": 3000, "K": 700, "V": 7}, 8**700 - 1),
        ("match2", {"n": 999, "M": 2000}, (2**2000 - comb(2000, 1000)) // 2 - 1),
        ("counting-queried", {"n": 5000, "V": 6000}, comb(10_999, 5999)),
        ("dyck", {"k": 5, "D": 3000, "n": 4001}, 1 + sum(5**j for j in range(1, 3000, 2))),
    ],
)
def test_bits_of_counts_too_large_for_floats(key: str, sizes: dict[str, int], value: int) -> None:
    """The smallest number of bits that holds them, against integers written out."""
    count = COUNTS[key](**sizes)
    assert count.ceil_log2() == (value - 1).bit_length()
    assert count.exact() == value


def test_counts_no_machine_can_write_down() -> None:
    """Between n log2(K/n) and n log2(eK/n), and so on, at n = 10^9."""
    n = 10**9
    K = 2**40
    assert n * 10 < COUNTS["match2-distinct"](n=n, M=K).ceil_log2() < n * 12
    assert n * 74 < COUNTS["recall-distinct"](n=n, K=K, V=2**64).ceil_log2() < n * 76
    assert COUNTS["recall-promise"](n=n, V=2**64).ceil_log2() == 64 * n
    assert COUNTS["dyck"](k=4, D=n, n=n).ceil_log2() == 2 * n + 1


@each(
    "key, sizes",
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
