"""Where a theorem shows failure is said from its own trait: "from n on" where every larger size of
the family fails too, and "at n" where a search found one failing size. Here the trait is tried.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator

import pytest
from support.each import each
from support.task_cases import CASES, EXAMPLES, few

from separatrix.cards.table.body import decisive
from separatrix.cli.main import run
from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import KHop, SeqComp, Task, TwoSum, parse_task
from separatrix.theory import THEOREMS, judge
from separatrix.theory.base import Theorem, counted
from separatrix.theory.fails.i_bounded_caches import TheoremI, TheoremIPrime
from separatrix.theory.fails.ii_block_messages import TheoremII
from separatrix.theory.fails.r_windows_forget import TheoremR

NEXT = 200
BOUNDED = ("linear @ heads=1, head_dim=1, p2", "gdn(conv=3) + rglru(width=3) @ p1, heads=1")
FORGETTING = (
    "window(size=3)*2 @ heads=1, head_dim=1, p2",
    "rglru(width=3, conv=3) + window(size=2) + chunked(size=4) @ p1, heads=1, head_dim=1",
    "window(size=2) + loglinear @ p1, heads=1, head_dim=1",
)
FULL = "full @ heads=1, head_dim=1, p2"
BLOCKS = (
    "sparse(block=2, topk=1) @ heads=1, head_dim=1, p1",
    "sparse(block=4, topk=2, window=3) @ heads=1, head_dim=1, p1",
    "moba(block=2, topk=1) @ heads=1, head_dim=2, p1",
)
TWO_SUMS = [
    TwoSum(n=n, M=M, form=form)
    for n, M in ((2, 3), (3, 7), (4, 8), (5, 40), (6, 600))
    for form in ("query", "decision")
]


def test_who_says_from() -> None:
    """Theorems III to V and whoever comes later say "at": one size is what their proofs show."""
    named = {key for key, theorem in THEOREMS.items() if theorem.larger_fail_too}
    assert named == {"I", "I'", "II", "P", "R"}
    assert not Theorem.larger_fail_too


def next_sizes(task: Task) -> Iterator[Task]:
    """The family's members after a task, at most 200 of them, a longer one each."""
    tasks = task.family()
    first = task.sizes()[tasks.grows]
    for size in range(first + 1, min(first + NEXT, tasks.largest) + 1):
        yield tasks.at(size)


@each("task", few(EXAMPLES, sizes=1, shifts=False))
def test_after_the_first_failure_of_theorem_i_all_of_200_sizes_fail(task: Task) -> None:
    """The inequality itself at each size, where no cache grows any more."""
    theorem = TheoremI()
    for spec in BOUNDED:
        model = Architecture.parse(spec)
        verdict = theorem.judge(model, task)
        if verdict is None:
            continue
        least = theorem.smallest(task, verdict)
        if not task.family().keeps_prefixes:
            assert least is None
            continue
        assert least is not None
        for larger in [least, *next_sizes(least)]:
            sign = counted(larger).compare_bits(model.cache_bits(larger.prefix_length))
            assert sign.positive, larger.spec


def test_after_the_first_failure_of_one_full_layer_all_of_200_sizes_fail() -> None:
    theorem = TheoremIPrime()
    model = Architecture.parse(FULL)
    tried = 0
    for task in EXAMPLES:
        verdict = theorem.judge(model, task)
        if verdict is None:
            continue
        least = theorem.smallest(task, verdict)
        if not task.family().keeps_prefixes:
            assert least is None
            continue
        assert least is not None
        tried += 1
        for larger in [least, *next_sizes(least)]:
            part = larger.first_part()
            assert part is not None
            assert part.contents.exceeds_bits(verdict.numbers["h"]), larger.spec
    assert tried >= 4


@pytest.mark.parametrize("spec", BLOCKS)
def test_after_the_first_failure_of_one_sparse_layer_all_of_200_sizes_fail(spec: str) -> None:
    theorem = TheoremII()
    model = Architecture.parse(spec)
    tried = 0
    for task in TWO_SUMS:
        least = theorem.least(model, task)
        if least is None:
            continue
        tried += 1
        for larger in [least, *next_sizes(least)]:
            assert isinstance(larger, TwoSum)
            sizes = theorem.sizes(model, larger)
            sign = None if sizes is None else sizes.compare()
            assert sign is not None
            assert sign.positive, larger.spec
    assert tried >= 4


@pytest.mark.parametrize("task", few(EXAMPLES, sizes=1, shifts=False))
def test_after_the_first_failure_of_windows_that_forget_all_of_200_sizes_fail(task: Task) -> None:
    """The verdict's own status, with states that grow too."""
    theorem = TheoremR()
    for spec in FORGETTING:
        model = Architecture.parse(spec)
        verdict = theorem.judge(model, task)
        least = None if verdict is None else theorem.smallest(task, verdict)
        if least is None:
            continue
        for larger in [least, *next_sizes(least)][:: NEXT // 20]:
            found = theorem.judge(model, larger)
            assert found is not None
            assert found.status == "FAILS", larger.spec


def pairs_of_a_family() -> Iterator[tuple[str, Task, Task]]:
    """A small task with counted prefixes and a larger one of its family, with few instances."""
    for name, case in CASES.items():
        for small in case.tiny:
            if not small.family().keeps_prefixes:
                continue
            for large in case.tiny:
                grows = small.family().grows
                same = small.family().described == large.family().described
                if (
                    same
                    and small.prefix_classes() is not None
                    and small.sizes()[grows] < large.sizes()[grows]
                    and small.family().at(large.sizes()[grows]) == large
                ):
                    yield name, small, large


def test_a_longer_prompt_tells_a_shorter_ones_prefixes_apart() -> None:
    """Theorem I's argument by brute force: as many classes at the place where the shorter prompt's
    prefix ends.
    """
    tried = list(pairs_of_a_family())
    assert {name for name, _, _ in tried} >= {"eva", "equality", "seqcomp", "recall", "twosum"}
    for name, small, large in tried:
        count = small.prefix_classes()
        assert count is not None
        assert told_apart(name, small, large) >= count.exact(), (small.spec, large.spec)


def test_more_tokens_tell_fewer_prefixes_of_khop_apart() -> None:
    """So Theorem I speaks of each of its sizes alone."""
    small = KHop(n=3, V=2, k=1, shift="random")
    assert told_apart("khop", small, small) == 4
    assert told_apart("khop", small, KHop(n=4, V=2, k=1, shift="random")) == 3
    assert not small.family().keeps_prefixes
    model = Architecture.parse("hgrn2 @ heads=1, head_dim=1, p1")
    (verdict,) = (v for v in judge(model, small) if v.theorem == "I")
    assert (verdict.status, verdict.n) == ("FAILS", None)
    assert verdict.statement.endswith("chain of thought")


def told_apart(name: str, small: Task, large: Task) -> int:
    """How many prefixes as long as the small task's own the large task tells apart, two by two."""
    case = CASES[name]
    rows: dict[tuple[int, ...], dict[tuple[int, ...], object]] = defaultdict(dict)
    end = small.prefix_length
    for prompt in case.all_instances(large):
        answer = case.by_hand(large, list(prompt))
        rows[prompt[:end]][prompt[end:]] = tuple(answer) if isinstance(answer, list) else answer
    apart: list[dict[tuple[int, ...], object]] = []
    for row in rows.values():
        if all(any(row[rest] != other[rest] for rest in row.keys() & other) for other in apart):
            apart.append(row)
    return len(apart)


SHAPES = [
    ("full + linear @ heads=1, head_dim=1, running_max=false", 2, 282, (140, 1)),
    ("full*2 @ heads=1, head_dim=4, p8, accumulator=p8, running_max=false", 2, 11_902, (5950, 1)),
    (
        "full*2 + linear @ heads=1, head_dim=4, p8, accumulator=p8, running_max=false",
        3,
        1_518_784,
        (600_000, 1, 1),
    ),
]
"""A stack, L, the failing n that theory.md or the issue names, and a longer prompt that stays
open.
"""


@pytest.mark.slow
@pytest.mark.parametrize(("spec", "steps", "n", "shape"), SHAPES)
def test_theorems_iii_to_v_leave_longer_prompts_open(
    spec: str, steps: int, n: int, shape: tuple[int, ...]
) -> None:
    """By hand for III: with n_1 = 1 each content adds log N_1 bits to the left side of (b) and
    more than 64 to the right.
    """
    model = Architecture.parse(spec)
    asked = SeqComp(L=steps, m=2, branching=(1,) * (steps - 1))
    found = next(verdict for verdict in judge(model, asked) if verdict.n is not None)
    assert found.n is not None
    assert found.n <= n
    theorem = THEOREMS[found.theorem]
    least = theorem.smallest(asked, found)
    assert least is not None
    longer = SeqComp(L=steps, m=shape[0], branching=shape[1:])
    assert longer.length >= least.length == found.n
    assert judge(model, least)[0].status == "FAILS"
    assert judge(model, longer)[0].status == "OPEN"
    assert theorem.failing(found.n) == f"at n = {found.n:,}"


def verdict(stack: str, task: str) -> Verdict:
    return judge(Architecture.parse(stack), parse_task(task))[0]


def test_every_text_says_at_where_one_size_was_found(capsys: pytest.CaptureFixture[str]) -> None:
    """The card, `compare`, a report's cell; `design`: test_design.py."""
    hybrid = "full + linear @ heads=1, head_dim=1, running_max=false"
    record = verdict(hybrid, "seqcomp:L=2,m=14,n_1=19")
    assert (record.status, record.n) == ("FAILS", 282)
    assert decisive(record) == "n = 282"
    assert decisive(verdict("linear @ heads=1, head_dim=1", "eva:n=64")).startswith("n >= ")
    assert run(["analyze", hybrid, "--context", "8192"]) == 0
    assert " ".join(capsys.readouterr().out.split()).count("FAILS at n = 282 ") == 1
    assert run(["compare", hybrid, "linear @ heads=1, head_dim=1", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    (row,) = (row for row in data["rows"] if row["row"] == "compose 2 steps")
    assert "FAILS at n = 282 (" in row["cells"][0]
    assert "FAILS from n = " in row["cells"][1]


@each(
    "key, n, of, said",
    [
        ("I", 7_675_932, "n", "from n = 7,675,932 on"),
        ("II", 10**25, "n", "n of at most 1.00e25"),
        ("III", 282, "n", "at n = 282"),
        ("V", 42, "prompt length n", "at prompt length n = 42"),
        ("I'", 26, "D", "from D = 26 on"),
    ],
)
def test_the_words(key: str, n: int, of: str, said: str) -> None:
    assert said in THEOREMS[key].failing(n, of=of)
