"""Theorem III on architectures: which layers count where, and the inequalities against plain
integers.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bounds import holds
from support.depth_sizes import three
from support.each import each
from support.paper_sizes import paper_sizes

from separatrix.core.errors import SizeError
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import SeqComp
from separatrix.theory.arguments import Sizes
from separatrix.theory.fails.iii_one_reading_layer import Parameters, TheoremIII

III = TheoremIII()


@given(
    m=st.integers(1, 12),
    n_1=st.integers(1, 6),
    r=st.integers(1, 12),
    t=st.integers(1, 12),
    h=st.integers(0, 30),
    s0=st.integers(0, 20),
    s1=st.integers(0, 40),
    o=st.integers(0, 9),
)
def test_the_inequalities_are_those_of_theory_md(
    m: int, n_1: int, r: int, t: int, h: int, s0: int, s1: int, o: int
) -> None:
    """m^t > (r-1)^t 2^sigma_0, and N_1^(n_1 r) > 2^right, written out."""
    r = min(r, m)
    t = min(t, m)
    right = s0 + o + n_1 * h + min(r * s1, s1 + (r * t + 1) * h)
    first = r == 1 or m**t > (r - 1) ** t * 2**s0
    second = (n_1 * m) ** (n_1 * r) > 2**right
    a, b = III.signs(
        Parameters(m=m, n_1=n_1, r=r, t=t), three(h=h, sigma_0=s0, sigma_1=s1, open_block=o)
    )
    assert (a.positive, b.positive) == (first, second)
    assert holds(III, Parameters(m=m, n_1=n_1, r=r, t=t), three(h, s0, s1, o)) is (first and second)


@each("wrong", [{"r": 0}, {"r": 5}, {"t": 0}, {"t": 5}, {"n_1": 0}])
def test_parameters_out_of_range(wrong: dict[str, int]) -> None:
    with pytest.raises(SizeError, match="Theorem III needs"):
        Parameters(**({"m": 4, "n_1": 1, "r": 2, "t": 2} | wrong))


@each(
    "spec, sizes",
    [
        # h = H (d+1) p = 40; linear state H d (d+1) p = 160; gdn state H d d p = 128
        ("full", three(40, 0, 0)),
        ("linear + full + gdn*2", three(40, 160, 256)),
        (
            "full|gdn + linear",
            three(40, 0, 288),
        ),  # heads in the reading layer join the group after it
        (
            "full(conv=3)",
            three(40, 2 * 12 * 8, 0),
        ),  # q, k, v of 4 channels each, two columns: a bounded layer before
        ("mlp + full + mlp", three(40, 0, 0)),
        # sparse, k = 1: h = ((d+1) + (d+2)) p = 88; three tokens of an open block of four hold 3 *
        # 8 numbers
        ("sparse(block=4, topk=1)", three(88, 0, 0, 192)),
        ("sparse(block=4, topk=1)|gdn", three(88, 0, 128, 192)),
    ],
)
def test_what_counts_where(spec: str, sizes: Sizes) -> None:
    assert III.sizes(Architecture.parse(f"{spec} @ {paper_sizes(1, 4, 8)}"), 1000) == sizes


def test_the_block_open_at_the_cut_is_owed_once() -> None:
    """One sparse layer alone: (b) reads n_1 r log2 N_1 > open + n_1 h; with m = r = 12, n_1 = 1
    it holds up to h + open = 43.
    """
    p = Parameters(m=12, n_1=1, r=12, t=1)
    assert holds(III, p, three(h=40, sigma_0=0, sigma_1=0, open_block=3))
    assert not holds(III, p, three(h=40, sigma_0=0, sigma_1=0, open_block=4))


def test_applies_to_one_reading_layer_and_two_steps_at_least() -> None:
    task = SeqComp(L=2, m=12, branching=(1,))
    assert III.judge(Architecture.parse("full*2"), task) is None
    assert III.judge(Architecture.parse("linear"), task) is None
    assert (
        III.judge(
            Architecture.parse(f"full @ {paper_sizes(1, 4, 8)}"), SeqComp(L=1, m=100, branching=())
        )
        is None
    )


@pytest.mark.parametrize(
    ("task", "status"),
    [(SeqComp(L=2, m=12, branching=(1,)), "FAILS"), (SeqComp(L=2, m=11, branching=(1,)), "OPEN")],
)
def test_the_smallest_case_by_hand(task: SeqComp, status: str) -> None:
    """12 log2 12 = 43.02 > 40 > 11 log2 11 = 38.05."""
    verdict = III.judge(Architecture.parse(f"full @ {paper_sizes(1, 4, 8)}"), task)
    assert verdict is not None
    assert (verdict.status, verdict.n) == (status, 26)


def test_lifting_at_any_further_branching() -> None:
    """The row that w_2 = 0 asks for is the identity: failure at (m, n_1) is failure at (m, n_1,
    n_2).
    """
    full = Architecture.parse(f"full @ {paper_sizes(1, 4, 8)}")
    for n_2 in (1, 3):
        verdict = III.judge(full, SeqComp(L=3, m=12, branching=(1, n_2)))
        assert verdict is not None
        assert (verdict.status, verdict.n) == ("FAILS", 12 + 2 * 12 + 2)


def test_lifting_by_identities_right_below_the_last_function() -> None:
    """The row of z_2 that w_1 asks for is the identity: failure at (m, n_2) is failure at (m, n_1,
    n_2). One layer of h = 20 bits fails at m = 4 from 9 rows on: 36^4 > 2^20 > 28^4.
    """
    full = Architecture.parse("full @ heads=1, head_dim=1, p10, accumulator=p10, running_max=false")
    assert 36**4 > 2**20 > 28**4
    for branching, status in (((1, 9), "FAILS"), ((9, 1), "FAILS"), ((1, 7), "OPEN")):
        verdict = III.judge(full, SeqComp(L=3, m=4, branching=branching))
        assert verdict is not None
        assert verdict.status == status, branching


def test_caches_that_grow_are_taken_at_the_length_in_question() -> None:
    """One log-linear layer of one number per state after the reading layer: floor(log2 n) + 1
    states of 8 bits.
    """
    model = Architecture.parse(f"full + loglinear @ {paper_sizes(1, 1, 8)}")
    found = III.threshold(model, 2)
    assert found is not None
    assert found.sizes == three(h=16, sigma_0=0, sigma_1=8 * found.n.bit_length())
    for n in range(6, found.n):  # a brute search over every shorter prompt
        sizes = three(h=16, sigma_0=0, sigma_1=8 * n.bit_length())
        for m in range(2, n // 2):
            n_1, rest = divmod(n - 2 - m, m)
            if rest == 0 and n_1 >= 1:
                assert not any(
                    holds(III, Parameters(m=m, n_1=n_1, r=r, t=1), sizes) for r in range(1, m + 1)
                )
