"""Theorems VI and VII against the rows of theory.md, section 11: certified as they stand there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from support.each import each

from separatrix.theory.arguments import Sizes
from separatrix.theory.fails.many_layers import TheoremVI, TheoremVII, closed_form
from separatrix.theory.fails.many_proof import Parameters, conditions, sides

SMALL = (1, 4, 8)
LARGE = (1, 16, 16)


@dataclass(frozen=True)
class Row:
    """A row: (H, d, p), the theorem (0: VI, 1: VII), how many bounded layers each group holds, n
    as printed, (m', G, g, t, x, n_1), n_3.., Delta_1.., y_1 and Y_2.., f_2...
    """

    hdp: tuple[int, int, int]
    ahead: int
    groups: tuple[int, ...]
    n: str
    shared: tuple[int, int, int, int, int, int]
    further: tuple[int, ...]
    contents: tuple[int, ...]
    hit: tuple[int, ...]
    flags: tuple[int, ...]

    @property
    def sizes(self) -> Sizes:
        H, d, p = self.hdp
        h = H * (d + 1) * p
        readers = len(self.groups) - 1
        sigma = tuple(layers * h * d for layers in self.groups)
        return Sizes((h,) * readers, sigma, (0,) * readers)

    @property
    def parameters(self) -> Parameters:
        part, G, g, t, x, n_1 = self.shared
        return Parameters(
            m=G * part,
            n=(n_1, g * G, *self.further),
            part=part,
            G=G,
            g=g,
            t=t,
            x=x,
            contents=self.contents,
            y_1=self.hit[0],
            hit=self.hit[1:],
            flags=(*self.flags, 0),  # f_L = 0 in every row
        )


AFTER_SMALL = (
    (2224215964, 8, 23, 361654, 361416, 91),
    (),
    (4078, 11),
    (796082351, 2222340500988),
    (0,),
)
ROWS = [
    Row(SMALL, 1, (0, 0, 0, 0), "2.9958e+14", *AFTER_SMALL),
    Row(
        LARGE,
        1,
        (0, 0, 0, 0),
        "1.2742e+21",
        (11301209464401, 45, 98, 64845868, 64836585, 568),
        (),
        (114942, 49),
        (4026410118477, 1862660207227010048),
        (0,),
    ),
    Row(
        SMALL,
        0,
        (1, 1, 1, 1),
        "5.3417e+21",
        (2130127, 18044, 290, 8404, 1, 681),
        (38,),
        (1960451, 7332, 6),
        (1960099, 99254336771488623, 52464701043767001087),
        (0, 0),
    ),
    Row(
        LARGE,
        0,
        (1, 1, 1, 1),
        "5.5056e+32",
        (502717782, 10592297, 1256, 61671, 1, 10824),
        (717,),
        (478399122, 793157, 21),
        (478002022, 28570538850281001733586944, 249037265887669061748898398207),
        (0, 0),
    ),
    Row(
        SMALL,
        0,
        (1, 1, 1),
        "4.1718e+08",
        (1083, 9, 11, 580, 1, 428),
        (),
        (895, 10),
        (895, 10859726),
        (0,),
    ),
    Row(
        LARGE,
        0,
        (1, 1, 1),
        "2.1980e+13",
        (27680, 41, 44, 31468, 1, 10730),
        (),
        (25151, 40),
        (25150, 140678328628),
        (0,),
    ),
    Row(SMALL, 1, (0, 0, 0, 1), "2.9958e+14", *AFTER_SMALL),
    Row(
        LARGE,
        1,
        (0, 0, 0, 1),
        "1.4316e+21",
        (12088803964894, 42, 84, 81198690, 81150661, 799),
        (),
        (113027, 45),
        (4731204902297, 2890041923682615809),
        (0,),
    ),
    Row(
        SMALL,
        1,
        (0, 1, 1, 1),
        "1.9590e+15",
        (4501144809, 9, 22, 774926, 769475, 243),
        (),
        (3331, 10),
        (1413224996, 11563003465101),
        (1,),
    ),
    Row(
        LARGE,
        1,
        (0, 1, 1, 1),
        "9.8366e+21",
        (27171571340404, 47, 83, 190620643, 190440131, 1974),
        (),
        (107281, 47),
        (10502265720990, 17734521546144768000),
        (1,),
    ),
    Row(
        SMALL,
        1,
        (0, 0, 0, 0, 0),
        "1.4581e+32",
        (42933401886826896, 21642, 877, 1621761207, 1588571999, 159),
        (51,),
        (10374691, 22562, 7),
        (10949617496010178, 478144971503648842817994751, 853482014211466059617375617024),
        (0, 0),
    ),
    Row(
        LARGE,
        1,
        (0, 0, 0, 0, 0),
        "3.3585e+46",
        (154791185505003702845440, 8742958, 6968, 3581368800548, 3573571189590, 353),
        (1153,),
        (13515282556, 2254188, 35),
        (
            32771497295253210136577,
            136280577597779996282078165068710674431,
            8790565767500566085312166052247691918835712,
        ),
        (0, 0),
    ),
    Row(
        SMALL,
        0,
        (2, 2, 2),
        "7.4584e+08",
        (1382, 7, 13, 980, 1, 838),
        (),
        (1103, 10),
        (1103, 18261457),
        (0,),
    ),
    Row(
        LARGE,
        0,
        (2, 2, 2),
        "4.0610e+13",
        (30729, 37, 45, 59263, 1, 21439),
        (),
        (27756, 40),
        (27755, 271533261387),
        (0,),
    ),
    Row(
        SMALL,
        0,
        (2, 2, 2, 2),
        "8.1509e+21",
        (970495, 36431, 165, 47927, 1, 752),
        (50,),
        (966331, 8003, 6),
        (965927, 118550867686873407, 40509207199757582335),
        (0, 0),
    ),
    Row(
        LARGE,
        0,
        (2, 2, 2, 2),
        "9.9573e+32",
        (434862643, 12647475, 911, 5209235, 1, 21234),
        (739,),
        (434248168, 895947, 20),
        (434216197, 70485579375180621610483711, 417095675783585345237334097919),
        (0, 0),
    ),
]


def _ids(row: Row) -> str:
    return f"{'VII' if row.ahead else 'VI'} {row.hdp} {row.groups}"


@pytest.mark.parametrize("row", ROWS, ids=_ids)
def test_rows_of_the_table(row: Row) -> None:
    found = conditions(row.ahead, row.sizes, row.parameters)
    assert f"{row.parameters.length():.4e}" == row.n
    assert all(one.sign().positive for one in found.values())
    numbers = sides(found)
    assert numbers == sides(conditions(row.ahead, row.sizes, row.parameters))
    theorem = TheoremVII() if row.ahead else TheoremVI()
    assert not theorem.surely_silent(row.sizes, row.parameters.size)
    for name in found:
        assert numbers[f"{name}_left"] >= numbers[f"{name}_right"]


@pytest.mark.long
@pytest.mark.parametrize("row", ROWS, ids=_ids)
def test_the_search_meets_every_row(row: Row) -> None:
    """Within one part in a hundred: rows are of an older search of VI and VII alone."""
    argument = (TheoremVI(), TheoremVII())[row.ahead]
    for quick in (True, False):
        found = argument.shortest(row.sizes, quick=quick)
        assert found is not None
        assert 100 * found.length() <= 101 * row.parameters.length()
        assert argument.holds(row.sizes, found)
    # the row's own size, and one that no integers divide
    for size in (row.parameters.size, tuple(n + n // 7 + 1 for n in row.parameters.size)):
        here = argument.at_size(row.sizes, size)
        assert here is not None
        assert here.size == size
        assert argument.holds(row.sizes, here)


@pytest.mark.parametrize("row", ROWS, ids=_ids)
def test_a_little_less_breaks_a_condition(row: Row) -> None:
    """A thousandth more values to be hit, at each level, breaks (A) or (B_l); a hundredth fewer
    of the last ones breaks (C).
    """
    p = row.parameters

    def broken(name: str, p: Parameters) -> bool:
        return not conditions(row.ahead, row.sizes, p)[name].sign().positive

    more = p.y_1 + max(1, p.y_1 // 1000)
    if more <= min(p.part, p.contents[0] * p.x):
        assert broken("A", replace(p, y_1=more))
    for level, hit in enumerate(p.hit, 2):
        hits = list(p.hit)
        hits[level - 2] = hit + hit // 1000 + 1
        assert broken(f"B_{level}", replace(p, hit=tuple(hits)))
    fewer = (*p.hit[:-1], p.hit[-1] * 99 // 100)
    assert broken("C", replace(p, hit=fewer))


@each("h", [*range(1, 41), 10**12])
def test_the_corollary(h: int) -> None:
    """n = 10008 h^9 + 1668 h^7 + 556 h^6 + 2, with right sides as in theory.md."""
    p = closed_form(h)
    assert p.length() == 10008 * h**9 + 1668 * h**7 + 556 * h**6 + 2
    sizes = Sizes((h, h, h), (0, 0, 0, 0), (0, 0, 0))
    assert not TheoremVII().surely_silent(sizes, p.size)
    found = conditions(1, sizes, p)
    assert all(one.sign().positive for one in found.values())
    # theory.md's proof names these right sides; (A) is written times t
    assert sides(found)["A_right"] == 117 * h**5 * p.t
    assert sides(found)["B_2_right"] == 2376 * h**8 + 108 * h**5 + 1
    assert sides(found)["C_right"] == 14220 * h**9 + 5712 * h**8 + 936 * h**7 + 1
