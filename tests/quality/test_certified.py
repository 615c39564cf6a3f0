"""Verdicts of searched theorems: derived again from their parameters alone, and refused after
any change that is not another true verdict.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.bounds import holds
from support.depth_sizes import three
from support.paper_sizes import paper_sizes

from separatrix.core.errors import CheckFailed, SeparatrixError
from separatrix.core.evidence.records import Verdict, from_envelope
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.theory import THEOREMS, judge, recheck
from separatrix.theory.fails.iii_one_reading_layer import Parameters, TheoremIII
from separatrix.theory.fails.many_layers import ManyLayers
from separatrix.theory.search import driver

SMALL = f"@ {paper_sizes(1, 4, 8)}"
CASES = [
    (f"full {SMALL}", "seqcomp:L=2,m=12,n_1=1", "III", "FAILS"),
    (f"full {SMALL}", "seqcomp:L=3,m=11,n_1=1,n_2=1", "III", "OPEN"),
    (f"full {SMALL}", "seqcomp:L=3,m=20,n_1=2,n_2=5", "III", "FAILS"),
    (f"loglinear + full + gdn {SMALL}", "seqcomp:L=2,m=5000,n_1=100", "III", "FAILS"),
    (f"full*2 {SMALL}", "seqcomp:L=2,m=34,n_1=349", "IV", "FAILS"),
    (f"full|gdn + sparse(block=4, topk=1) {SMALL}", "seqcomp:L=2,m=34,n_1=349", "IV", "OPEN"),
    (f"full*2 {SMALL}", "seqcomp:L=3,m=34,n_1=1,n_2=358", "V", "FAILS"),
    (f"full*2 + gdn {SMALL}", "seqcomp:L=4,m=34,n_1=1,n_2=358,n_3=1", "V", "OPEN"),
]


def _verdict(spec: str, task: str, theorem: str) -> Verdict:
    (found,) = [
        v for v in judge(Architecture.parse(spec), parse_task(task)) if v.theorem == theorem
    ]
    return found


@pytest.fixture(
    scope="module",
    params=[*CASES[:-1], pytest.param(CASES[-1], marks=pytest.mark.slow)],
    ids=lambda case: f"{case[2]} {case[3]} {case[0].split(' @')[0]}",
)
def case(request: pytest.FixtureRequest) -> Verdict:
    spec, task, theorem, status = request.param
    verdict = _verdict(spec, task, theorem)
    assert verdict.status == status
    return verdict


def test_derived_again_without_any_search(case: Verdict, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is proved; that nothing decides a task is found by asking every theorem again."""
    if case.status == "OPEN":
        recheck(case)
        return

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the checker runs a search")

    for name in ("shortest", "at_size"):
        monkeypatch.setattr(ManyLayers, name, refuse)
    for name in ("shortest", "at_size", "_tries", "nearby"):
        monkeypatch.setattr(driver, name, refuse)
    recheck(case)
    written = from_envelope(case.envelope())
    assert isinstance(written, Verdict)
    recheck(written)


@pytest.mark.parametrize("step", [-1, 1])
def test_every_number_edited_is_refused(case: Verdict, step: int) -> None:
    for name, value in case.numbers.items():
        with pytest.raises(SeparatrixError):
            recheck(replace(case, numbers=case.numbers | {name: value + step}))
        with pytest.raises(SeparatrixError):
            recheck(replace(case, numbers={k: v for k, v in case.numbers.items() if k != name}))
    with pytest.raises(SeparatrixError):
        recheck(replace(case, numbers=case.numbers | {"extra": 1}))


def test_an_n_and_a_size_that_nobody_proved_are_refused(case: Verdict) -> None:
    assert case.n is not None
    for edited in (
        replace(case, n=case.n - 1),
        replace(case, n=case.n + 1),
        replace(case, slack=""),
        replace(case, method="integers"),
    ):
        if edited != case:
            with pytest.raises(CheckFailed):
                recheck(edited)


def test_other_parameters_that_hold_make_another_true_verdict() -> None:
    """Fewer contents (r = 11) still fail m = 13; the verdict must then say so, or it is refused."""
    verdict = _verdict(f"full {SMALL}", "seqcomp:L=2,m=13,n_1=1", "III")
    numbers = verdict.numbers | {"r": 12}
    assert verdict.numbers["r"] != 12
    with pytest.raises(CheckFailed, match="theorem III"):
        recheck(replace(verdict, numbers=numbers))
    other = THEOREMS["III"].again(
        Architecture.parse(verdict.architecture), parse_task(verdict.task), numbers
    )
    assert other is not None
    assert other != verdict
    recheck(other)


def test_parameters_of_another_size_are_refused() -> None:
    """What fails m = 34 says nothing about m = 33."""
    verdict = _verdict(f"full*2 {SMALL}", "seqcomp:L=2,m=34,n_1=349", "IV")
    with pytest.raises(CheckFailed, match="are not those of"):
        recheck(replace(verdict, task="seqcomp:L=2,m=33,n_1=349"))
    with pytest.raises(CheckFailed, match="Theorem IV"):
        recheck(
            replace(
                verdict, architecture=Architecture.parse(f"full*2 @ {paper_sizes(1, 5, 8)}").spec
            )
        )


def test_a_tie_is_no_proof() -> None:
    """2^25 log2(2^30 / 2^20) = 10 * 2^25 exactly: not more, however the comparison is made."""
    parameters = Parameters(m=1 << 30, n_1=100, r=(1 << 20) + 1, t=1 << 25)
    theorem = TheoremIII()
    assert not holds(theorem, parameters, three(h=1, sigma_0=10 << 25, sigma_1=0))
    assert holds(theorem, parameters, three(h=1, sigma_0=(10 << 25) - 1, sigma_1=0))
