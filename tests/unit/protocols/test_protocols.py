"""The protocols themselves: their inequalities against theory.md's code, message functions,
hand-written solvers, bad sizes.
"""

from __future__ import annotations

from itertools import product

import pytest
from adversaries.two_readings import TwoReadings, TwoReadingsSizes
from adversaries.two_solvers import enough_two, two_readings_solver
from hypothesis import given
from hypothesis import strategies as st
from support.depth_sizes import four, three
from support.each import each

from separatrix.core.errors import SizeError
from separatrix.protocols.collision import oracle
from separatrix.protocols.one_reading import OneReading, OneReadingSizes, prompt
from separatrix.protocols.solvers import enough, one_reading_solver
from separatrix.protocols.tables import random_tables, within, written
from separatrix.theory.fails import iii_one_reading_layer as iii
from separatrix.theory.fails import iv_two_reading_layers as iv

ONE = OneReadingSizes(m=2, n_1=2, t=2, caches_0=3, reads=4, caches_1=2)
TWO = TwoReadingsSizes(m=3, n_1=1, t=2, reads_1=2, reads_2=3, caches_1=2, caches_2=4)
small = st.integers(1, 5)
few = st.integers(0, 6)


@given(m=st.integers(2, 5), n_1=small, r=small, t=small, h=few, s0=few, s1=few)
def test_whole_bits_give_the_inequalities_of_theorem_iii(
    m: int, n_1: int, r: int, t: int, h: int, s0: int, s1: int
) -> None:
    r = min(r, m)
    t = min(t, m)
    sizes = OneReadingSizes(m=m, n_1=n_1, t=t, caches_0=2**s0, reads=2**h, caches_1=2**s1)
    parameters = iii.Parameters(m=m, n_1=n_1, r=r, t=t)
    signs = iii.TheoremIII().signs(parameters, three(h, s0, s1))
    assert sizes.holds(r) == tuple(sign.positive for sign in signs)


@given(
    m=st.integers(2, 5),
    n_1=small,
    r=small,
    q=small,
    t=small,
    g=small,
    h_1=few,
    h_2=few,
    s1=few,
    s2=few,
)
def test_whole_bits_give_the_inequalities_of_theorem_iv(
    m, n_1, r, q, t, g, h_1, h_2, s1, s2
) -> None:
    q = min(max(2, q), m)
    r = min(max(2, r), q)
    t = min(t, m)
    g = min(g, n_1)
    sizes = TwoReadingsSizes(
        m=m, n_1=n_1, t=t, reads_1=2**h_1, reads_2=2**h_2, caches_1=2**s1, caches_2=2**s2
    )
    parameters = iv.Parameters(m=m, n_1=n_1, r=r, q=q, t=t, g=g)
    signs = iv.TheoremIV().signs(parameters, four(h_1, h_2, s1, s2))
    assert sizes.holds(r, q, g) == tuple(sign.positive for sign in signs)


@pytest.mark.parametrize("t", [1, 2])
def test_right_answers_of_prompts_are_the_oracles(t: int) -> None:
    sizes = OneReadingSizes(m=2, n_1=2, t=t)
    prompts = list(sizes.prompts())
    assert len({tokens for tokens, _ in prompts}) == len(prompts) == 4**4 * 2**t * t * 2
    assert [right for _, right in prompts] == oracle(sizes.task, [tokens for tokens, _ in prompts])


def test_a_prompt_by_hand() -> None:
    """m = 3, n_1 = 1, B = (2, 1) after one entry 0; z_0 names the second entry of B: i_1 = 1,
    i_2 = z_2(1) = 0.
    """
    tokens = prompt(3, (2, 0, 1), (2, 1), 1, 0)
    assert tokens == (2, 0, 1, 0, 2, 1, 2, 0)
    assert oracle(OneReadingSizes(m=3, n_1=1, t=2).task, [tokens]) == [0]


@pytest.mark.parametrize("way", ["rows", "carried", "column", "cache"])
@pytest.mark.parametrize(("m", "n_1", "t"), [(2, 1, 1), (2, 2, 1), (2, 2, 2), (3, 1, 2)])
def test_solvers_with_one_reading_layer_are_right_everywhere(
    way: str, m: int, n_1: int, t: int
) -> None:
    sizes = enough(OneReadingSizes(m=m, n_1=n_1, t=t), way)
    line = one_reading_solver(sizes, way)
    assert all(line.run(tokens).answer == right for tokens, right in sizes.prompts())
    assert sizes.failing() is None


@pytest.mark.parametrize("way", ["rows", "carried", "gathered", "column", "cache"])
@pytest.mark.parametrize(("m", "n_1", "t"), [(2, 1, 1), (2, 2, 1), (2, 2, 2), (3, 1, 2)])
def test_solvers_with_two_reading_layers_are_right_everywhere(
    way: str, m: int, n_1: int, t: int
) -> None:
    sizes = enough_two(TwoReadingsSizes(m=m, n_1=n_1, t=t), way)
    line = two_readings_solver(sizes, way)
    assert all(line.run(tokens).answer == right for tokens, right in sizes.prompts())
    assert sizes.failing() is None


@pytest.mark.parametrize(("kind", "sizes"), [(OneReading, ONE), (TwoReadings, TWO)])
def test_random_messages_keep_to_their_sizes_and_repeat(
    kind: type, sizes: OneReadingSizes | TwoReadingsSizes
) -> None:
    some = [tokens for tokens, _ in sizes.prompts()][::37]
    line, again, other = (kind(sizes, within(random_tables(seed))) for seed in (0, 0, 1))
    runs = [line.run(tokens) for tokens in some]
    assert runs == [again.run(tokens) for tokens in some]
    assert runs != [other.run(tokens) for tokens in some]
    assert {run.answer for run in runs} == set(range(sizes.N_1))


@pytest.mark.parametrize(
    ("kind", "sizes", "told"),
    [
        (
            OneReading,
            ONE,
            {
                "first": 3,
                "carried": 3,
                "late": 2,
                "w reads": 4,
                "entry reads": 4,
                "z_0 reads": 4,
                "early": 2,
            },
        ),
        (
            TwoReadings,
            TWO,
            {
                "first": 2,
                "carried": 2,
                "entry reads": 2,
                "z_0 reads": 2,
                "w reads": 2,
                "gathered": 2,
                "early": 4,
                "late": 4,
                "entry reads again": 3,
                "z_0 reads again": 3,
                "w reads again": 3,
            },
        ),
    ],
)
def test_every_message_has_its_declared_size_and_nothing_else_knows_z_2(
    kind: type, sizes, told: dict[str, int]
) -> None:
    """Whoever may see A sends a bounded message; all the rest sees B, z_0 and w only."""
    asked: dict[str, int] = {}
    A = (1,) * sizes.N_1 + (0,) * (sizes.m - sizes.t)
    tokens = (*A, *(1,) * sizes.t, sizes.m - 1, 0)
    knows_A = set()

    def tables(name: str, known, messages: tuple[int, ...], size: int) -> int:
        asked[name] = size
        if known == A or A in known:
            knows_A.add(name)
        return 0

    kind(sizes, tables).run(tokens)
    assert asked == told | {"answer": sizes.N_1}
    assert set(asked) - knows_A == {"carried", "gathered", "late", "answer"} & set(asked)


def test_a_message_outside_its_size_is_refused() -> None:
    line = OneReading(ONE, within(lambda name, known, told, size: size if name == "early" else 0))
    with pytest.raises(SizeError, match="'early'"):
        line.run(prompt(2, (0,) * 4, (0, 0), 0, 0))


def test_written_messages_clip_and_are_silent_otherwise() -> None:
    tables = written({"first": lambda A: 7})
    assert [tables("first", (), (), size) for size in (1, 3, 9)] == [0, 2, 7]
    assert tables("early", (), (), 9) == 0


@each("wrong", [{"m": 1}, {"t": 0}, {"t": 3}, {"n_1": 0}, {"caches_1": 0}])
def test_sizes_out_of_range(wrong: dict[str, int]) -> None:
    for kind in (OneReadingSizes, TwoReadingsSizes):
        with pytest.raises(SizeError, match="a protocol needs"):
            kind(**({"m": 2, "n_1": 1, "t": 1} | wrong))


def test_parameters_out_of_range() -> None:
    with pytest.raises(SizeError, match="r from 1 to m = 2"):
        ONE.holds(3)
    for r, q, g in [(1, 2, 1), (3, 2, 1), (2, 4, 1), (2, 2, 2), (2, 2, 0)]:
        with pytest.raises(SizeError, match="Theorem IV takes"):
            TWO.holds(r, q, g)


def test_the_contents_of_b_are_all_of_them() -> None:
    assert set(OneReadingSizes(m=3, n_1=1, t=2).contents()) == set(product(range(3), repeat=2))
