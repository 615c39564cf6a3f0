"""The adversary of Theorem III: the proof's steps, run against any protocol with one reading
layer. Source: theory.md, section 5.
"""

from __future__ import annotations

from collections.abc import Iterable

from separatrix.core.errors import SizeError
from separatrix.protocols.collision import AdversaryFailed, Collision, collide
from separatrix.protocols.one_reading import Entries, OneReading, prompt
from separatrix.protocols.steps import every_z_2, most_frequent, same_key, spread


def adversary_iii(
    line: OneReading[int], *, r: int | None = None, contents: Iterable[Entries] | None = None
) -> Collision:
    """Two prompts of one view and two right answers, checked; always found where
    `line.sizes.holds(r)` is (True, True). Without r, the smallest such is taken.

    `contents` are the z_2 to try (all of them, at most 2^20, if None); fewer than all may be too
    few. Raises AdversaryFailed where the steps end without such prompts, SizeError for r outside
    1..m, too large an N_1, or, without r, sizes of which the theorem says nothing.
    """
    sizes = line.sizes
    r = sizes.failing() if r is None else r
    if r is None:
        raise SizeError(
            f"Theorem III holds with no r at {sizes}, so a protocol may be right everywhere: allow"
            " fewer values, or name r"
        )
    holds = sizes.holds(r)
    # of z_1 only its last entries, B, vary
    lead = (0,) * (sizes.m - sizes.t)
    every = every_z_2(sizes.N_1) if contents is None else contents

    # fix what the first group says at A|B, and after B
    first, family = most_frequent(every, lambda z_2: line.first(z_2 + lead))
    carried, pool = most_frequent(sizes.contents(), lambda B: line.carried(first, B))
    found = spread(pool, r)
    if found is None:
        raise AdversaryFailed(
            "III",
            "a",
            f"no place takes {r} values in the {len(pool)} contents of B that leave one cache",
            holds=holds[0],
        )
    # r contents of B that leave one cache and differ at one place: w asks for any of r columns
    place, chosen = found
    z_0 = len(lead) + place
    # the late caches cost caches_1 per content of B, or once and then every reading: the cheaper
    per_content = sizes.caches_1**r <= sizes.caches_1 * sizes.reads ** (r * sizes.t + 1)

    def told(z_2: Entries) -> tuple[object, ...]:
        """All that w can learn of z_2 on any of the prompts that remain."""
        A = z_2 + lead
        reads = tuple(line.w_reads(carried, z_0, w, A) for w in range(sizes.n_1))
        if per_content:
            return reads, tuple(line.late(first, B, z_0, A) for B in chosen)
        entries = tuple(line.entry_reads(first, B, A) for B in chosen)
        return reads, line.early(A), entries, line.z_0_reads(carried, z_0, A)

    # more contents of z_2 are left than w can be told of: two with one view differ at a question
    questions = [(w, B) for w in range(sizes.n_1) for B in chosen]
    pair = same_key(family, told, [w * sizes.m + B[place] for w, B in questions])
    if pair is None:
        what = f"{len(family)} contents of z_2 are left, and w can tell their answers"
        raise AdversaryFailed("III", "b", what, holds=holds[1], all_tried=contents is None)
    w, B = questions[pair[2]]
    one, other = (prompt(sizes.m, z_2, B, place, w) for z_2 in pair[:2])
    return collide(line, one, other)
