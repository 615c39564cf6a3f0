"""The adversary of Theorem IV: the proof's steps, run against any protocol with two reading
layers. Source: theory.md, section 5.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from adversaries.two_readings import TwoReadings, TwoReadingsSizes
from separatrix.core.errors import SizeError
from separatrix.protocols.collision import AdversaryFailed, Collision, collide
from separatrix.protocols.one_reading import Entries, prompt
from separatrix.protocols.steps import every_z_2, most_frequent, same_key, spread


@dataclass(frozen=True)
class Group:
    """Values of w that are treated alike: their place z_0 and contents of B, with one layer-1
    cache after B and one accumulator per value of w.
    """

    place: int
    contents: tuple[Entries, ...]
    carried: int
    gathered: dict[int, int]


def adversary_iv(
    line: TwoReadings[int],
    *,
    r: int | None = None,
    q: int | None = None,
    g: int | None = None,
    contents: Iterable[Entries] | None = None,
) -> Collision:
    """Two prompts of one view and two right answers, checked; always found where
    `line.sizes.holds(r, q, g)` is (True, True). Without r, q and g, the first such are taken.

    `contents` are the z_2 to try (all of them, at most 2^20, if None); fewer than all may be too
    few. Raises AdversaryFailed where the steps end without such prompts, SizeError for r, q, g out
    of range or named in part, too large an N_1, or, without them, sizes of which the theorem says
    nothing.
    """
    sizes = line.sizes
    r, q, g = _parameters(sizes, r, q, g)
    holds = sizes.holds(r, q, g)
    # of z_1 only its last entries, B, vary
    lead = (0,) * (sizes.m - sizes.t)
    ws = range(sizes.n_1)

    def layer_1(z_2: Entries) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        """All that B and w can learn of z_2 in layer 1."""
        A = z_2 + lead
        entries = tuple(
            line.entry_reads(place, entry, A) for place in range(sizes.t) for entry in range(q)
        )
        return line.first(A), tuple(line.w_reads(w, A) for w in ws), entries

    # fix all that layer 1 tells of z_2, before the question is chosen
    every = every_z_2(sizes.N_1) if contents is None else contents
    (first, reads, _), family = most_frequent(every, layer_1)

    groups: list[Group] = []
    for start in range(0, sizes.n_1, g):
        group = ws[start : start + g]
        (carried, gathered), pool = most_frequent(
            product(range(q), repeat=sizes.t),
            lambda B, group=group: (
                line.carried(first, B),
                tuple(line.gathered(w, reads[w], B) for w in group),
            ),
        )
        found = spread(pool, r)
        if found is None:
            raise AdversaryFailed(
                "IV",
                "a",
                f"no place takes {r} values in the {len(pool)} contents of B of one class",
                holds=holds[0],
            )
        groups.append(Group(*found, carried, dict(zip(group, gathered, strict=True))))

    # one question per w of each group and content of B; z_0 tells the place
    places = sorted({group.place for group in groups})

    def told(z_2: Entries) -> tuple[object, ...]:
        """All that w can learn of z_2 beyond `layer_1` on any of the prompts that remain."""
        A = z_2 + lead
        again = tuple(
            line.w_reads_again(group.carried, gathered, len(lead) + group.place, w, A)
            for group in groups
            for w, gathered in group.gathered.items()
        )
        late = tuple(
            line.late(first, B, len(lead) + group.place, A)
            for group in groups
            for B in group.contents
        )
        return tuple(line.z_0_reads(len(lead) + place, A) for place in places), again, late

    questions = [
        (group.place, w, B) for group in groups for w in group.gathered for B in group.contents
    ]
    pair = same_key(family, told, [w * sizes.m + B[place] for place, w, B in questions])
    if pair is None:
        what = f"{len(family)} contents of z_2 are left, and w can tell their answers"
        raise AdversaryFailed("IV", "b", what, holds=holds[1], all_tried=contents is None)
    place, w, B = questions[pair[2]]
    one, other = (prompt(sizes.m, z_2, B, place, w) for z_2 in pair[:2])
    return collide(line, one, other)


def _parameters(
    sizes: TwoReadingsSizes, r: int | None, q: int | None, g: int | None
) -> tuple[int, int, int]:
    """The parameters of the proof: those named, or the first with which the theorem holds."""
    if r is not None and q is not None and g is not None:
        return r, q, g
    if (r, q, g) != (None, None, None):
        raise SizeError(f"r, q, g are {r}, {q}, {g}; name all of them or none")
    found = sizes.failing()
    if found is None:
        raise SizeError(
            f"Theorem IV holds with no r, q, g at {sizes}, so a protocol may be right everywhere:"
            " allow fewer values, or name them"
        )
    return found
