"""Theorems VI and VII as verdicts: which stacks they see, what a record holds and how it is derived
again without a search; forged parameters are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from support.depth_sizes import closed_form
from support.each import each
from support.paper_sizes import paper_sizes

from separatrix.core.errors import CheckFailed, SeparatrixError
from separatrix.core.evidence.records import Verdict, from_envelope
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import SeqComp, parse_task
from separatrix.theory import THEOREMS, judge, recheck
from separatrix.theory.arguments import Sizes
from separatrix.theory.fails.many_layers import ManyLayers, TheoremVII
from separatrix.theory.fails.many_proof import Parameters, conditions

SMALL = f"@ {paper_sizes(1, 4, 8)}"
TINY = f"@ {paper_sizes(1, 1, 1)}"
SIX = THEOREMS["VI"]
SEVEN = THEOREMS["VII"]

EVERYWHERE = Parameters(
    # theory.md, section 11: (1,4,8), R = 2, a bounded layer everywhere, n = 4.1718e8
    m=9 * 1083,
    n=(428, 11 * 9),
    part=1083,
    G=9,
    g=11,
    t=580,
    x=1,
    contents=(895, 10),
    y_1=895,
    hit=(10859726,),
    flags=(0, 0),
)
HYBRID = f"linear + full + linear + full + linear {SMALL}"
AFTER = Parameters(
    # (1,4,8), R = 3, one bounded layer after the last: n = 2.9958e14
    m=8 * 2224215964,
    n=(91, 23 * 8),
    part=2224215964,
    G=8,
    g=23,
    t=361654,
    x=361416,
    contents=(4078, 11),
    y_1=796082351,
    hit=(2222340500988,),
    flags=(0, 0),
)


def _sizes(key: str, stack: str, n: int = 1 << 40) -> Sizes | None:
    theorem = THEOREMS[key]
    assert isinstance(theorem, ManyLayers)
    return theorem.sizes(Architecture.parse(stack), n)


def test_sizes_of_a_stack() -> None:
    """h = 40 and 160 bits of a linear layer of one head of 4 dimensions and 8 bits."""
    assert _sizes("VI", HYBRID) == Sizes((40, 40), (160, 160, 160), (0, 0))
    # heads inside a reading layer join the group after it
    mixed = f"full|linear + full + full + linear*2 {SMALL}"
    assert _sizes("VI", mixed) == Sizes((40, 40, 40), (0, 160, 0, 320), (0, 0, 0))
    assert _sizes("VII", mixed) == Sizes((40, 40, 40), (0, 160, 0, 320), (0, 0, 0))


@each(
    "stack, speaks",
    [
        ("full*3", True),
        ("full|linear + full*2", True),
        ("full*2 + linear + full", True),
        ("full*3 + linear", True),
        ("linear + full*3", False),
        ("full + linear + full*2", False),
        # a short convolution before the keys is a bounded layer before its reading layer
        ("full + full(conv=4) + full", False),
        ("full*2 + full(conv=4)", True),
    ],
)
def test_where_theorem_vii_is_silent(stack: str, speaks: bool) -> None:
    try:
        sizes = _sizes("VII", f"{stack} {SMALL}")
    except SeparatrixError:
        pytest.skip("no short convolutions in full attention")
    assert (sizes is not None) == speaks


def test_how_many_functions() -> None:
    """VI: one more than reading layers; VII: as many, and three at least."""
    for readers in range(2, 64):
        assert SIX.begins(Architecture.parse(f"full*{readers} {SMALL}")) == readers + 1
    for readers in range(3, 65):
        assert SEVEN.begins(Architecture.parse(f"full*{readers} {SMALL}")) == readers
    # nothing is written down for so many
    assert SIX.begins(Architecture.parse(f"full*64 {SMALL}")) == 3


def test_open_blocks_are_split_off() -> None:
    sparse = f"sparse(block=4, topk=1)*3 + linear {SMALL}"
    sizes = _sizes("VII", sparse)
    assert sizes is not None
    assert sizes.opened[0] == sizes.opened[2] > 0
    assert sizes.sigma == (0, 0, 0, 160)


def _verdict(key: str, stack: str, task: SeqComp, p: Parameters) -> Verdict:
    """The verdict of these parameters, both as here and as those of the failing size."""
    numbers = p.numbers | {f"from_{name}": value for name, value in p.numbers.items()}
    verdict = THEOREMS[key].again(Architecture.parse(stack), task, numbers)
    assert verdict is not None
    return verdict


@pytest.fixture(
    params=[
        ("VI", HYBRID, EVERYWHERE, 3),
        ("VI", HYBRID, EVERYWHERE, 5),
        ("VII", f"full*3 + linear {SMALL}", AFTER, 3),
        ("VII", f"full*3 {SMALL}", AFTER, 4),
        ("VII", f"full*3 {TINY}", closed_form(2), 3),
    ],
    ids=lambda case: f"{case[0]} L={case[3]}",
)
def verdict(request: pytest.FixtureRequest) -> Verdict:
    key, stack, p, steps = request.param
    task = SeqComp(L=steps, m=p.m, branching=(*p.branching, *(1,) * (steps - 3)))
    return _verdict(key, stack, task, p)


@pytest.fixture(autouse=True)
def no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks must not search."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a search runs")

    # no context of its own: a test that sets these again would leave `refuse` behind
    for theorem in (SIX, SEVEN):
        monkeypatch.setattr(type(theorem), "best_at", refuse)
    monkeypatch.setattr(ManyLayers, "shortest", refuse)


def test_a_record_is_derived_again_without_a_search(verdict: Verdict) -> None:
    assert verdict.status == "FAILS"
    task = parse_task(verdict.task)
    assert isinstance(task, SeqComp)
    assert verdict.n == task.length
    recheck(verdict)
    written = from_envelope(verdict.envelope())
    assert isinstance(written, Verdict)
    recheck(written)


def _edits(verdict: Verdict) -> Iterator[dict[str, int]]:
    """The numbers with one of them changed or left out."""
    for name, value in verdict.numbers.items():
        for other in (value - 1, value + 1, 0, -value):
            if other != value:
                yield verdict.numbers | {name: other}
        yield {key: n for key, n in verdict.numbers.items() if key != name}


def _refused(verdict: Verdict, numbers: dict[str, int]) -> None:
    with pytest.raises(SeparatrixError):
        recheck(replace(verdict, numbers=numbers))


def test_numbers_edited_are_refused(verdict: Verdict) -> None:
    for numbers in list(_edits(verdict))[::7]:
        _refused(verdict, numbers)


@pytest.mark.slow
def test_every_number_edited_is_refused(verdict: Verdict) -> None:
    for numbers in _edits(verdict):
        _refused(verdict, numbers)


@each(
    "change, breaks",
    [
        # by steps that the slack of the row does not cover, in the bad direction
        ({"y_1": 896}, "A"),
        ({"hit": (10859726 + 1000,)}, "B_2"),
        ({"hit": (10859726 - 10_000,)}, "C"),
        ({"t": 579 - 5}, "A"),
        ({"contents": (895, 9)}, "B_2"),
        ({"contents": (895, 11)}, "C"),
    ],
)
def test_a_record_of_parameters_that_do_not_hold_is_refused(
    change: dict[str, object], breaks: str
) -> None:
    p = EVERYWHERE
    if "y_1" in change:
        change = change | {"contents": (896, 10)}
    worse = replace(p, **change)
    sizes = _sizes("VI", HYBRID)
    assert sizes is not None
    signs = conditions(0, sizes, worse)
    assert not signs[breaks].sign().positive
    task = SeqComp(L=3, m=p.m, branching=p.branching)
    with pytest.raises(CheckFailed, match="does not hold"):
        _verdict("VI", HYBRID, task, worse)


def test_an_argument_about_fewer_functions_is_refused() -> None:
    """Two functions fewer than a stack's argument needs would be no argument at all."""
    five = f"full*5 {SMALL}"
    task = SeqComp(L=5, m=AFTER.m, branching=(*AFTER.branching, 1, 1))
    with pytest.raises(CheckFailed, match="not those of"):
        _verdict("VII", five, task, AFTER)
    with pytest.raises(CheckFailed, match="not those of"):
        _verdict("VI", five.replace("*5", "*4"), task, AFTER)


def test_more_bounded_layers_than_the_parameters_bear_are_refused() -> None:
    task = SeqComp(L=3, m=EVERYWHERE.m, branching=EVERYWHERE.branching)
    with pytest.raises(CheckFailed, match="does not hold"):
        _verdict("VI", HYBRID.replace("linear + full", "linear*2 + full"), task, EVERYWHERE)


def test_numbers_beyond_every_use_are_refused_quickly() -> None:
    p = closed_form(2)
    task = SeqComp(L=3, m=p.m, branching=p.branching)
    stack = Architecture.parse(f"full*3 {TINY}")
    with pytest.raises(CheckFailed, match="out of range"):
        SEVEN.again(stack, task, p.numbers | {"Delta_2": 10**200_000})
    # more balls for each bin than any float
    for name in ("Delta_2", "n_1"):
        numbers = {f"from_{key}": n for key, n in p.numbers.items()} | {f"from_{name}": 1 << 1200}
        with pytest.raises(CheckFailed, match="does not hold"):
            SEVEN.again(stack, task, numbers)
    # (A) holds with ever more contents, but its sides could not be written
    many = replace(p, contents=(1 << 12_999, 3 * 2), t=p.m, x=p.m)
    with pytest.raises(SeparatrixError):
        _verdict("VII", f"full*3 {TINY}", task, many)


def test_larger_last_functions_fail_as_well() -> None:
    """Values of w_2 that are left over are not used: n_2 may be larger than g G."""
    p = closed_form(2)
    sizes = _sizes("VII", f"full*3 {TINY}")
    assert sizes is not None
    found = TheoremVII().lengthened(sizes, p, (p.m, p.n[0], p.n[1] + 7))
    assert found is not None
    assert found.size == (p.m, p.n[0], p.n[1] + 7)
    # the price does not hang on n_2, what can be asked for grows with log N_2
    assert found.hit == p.hit


@pytest.mark.parametrize("size", [(100, 2, 2), (10**6, 10**6, 1), (10**14, 1, 2)])
def test_where_nothing_is_searched_for(size: tuple[int, ...]) -> None:
    """The last function has fewer entries than the conditions ask of it."""
    assert TheoremVII().surely_silent(Sizes((3000, 3000, 3000), (0,) * 4, (0,) * 3), size)
    p = closed_form(3000)
    assert not TheoremVII().surely_silent(Sizes((3000, 3000, 3000), (0,) * 4, (0,) * 3), p.size)


def test_judge_takes_the_smallest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of V and VI about two reading layers, the one with the shorter prompt comes first."""
    # a patch of its own, undone before that of `no_search`
    with monkeypatch.context() as patched:
        patched.setattr(ManyLayers, "shortest", lambda *_, **__: EVERYWHERE)
        patched.setattr(type(SIX), "best_at", lambda *_: None)
        found = judge(Architecture.parse(HYBRID), SeqComp(L=3, m=9, branching=(1, 1)))
    known = [verdict for verdict in found if verdict.n is not None]
    assert [verdict.theorem for verdict in known] == ["VI", "V"]
    assert known[0].n == EVERYWHERE.length()
