"""How far what is fetched may be off before a hidden unit switches, on the thresholds of a
retrieval layer: y -> relu(2 y + 1) - relu(2 y - 1) - 1, whose units switch at -1/2 and 1/2.
"""

from __future__ import annotations

import numpy as np
import pytest

from separatrix.constructions import construct
from separatrix.core.errors import CheckFailed
from separatrix.proofs.derivations.parts.live_parts import Live, live_of
from separatrix.proofs.machine import Enclosure, mlp
from separatrix.tasks import parse_task


def thresholds() -> tuple[Live, np.ndarray]:
    """The layer, and which numbers are fetched."""
    model = construct(parse_task("eva:n=4,V=4"), kind="retrieval").model
    (part,) = live_of(model, 1)
    return part, (part.mlp["up.weight"] != 0.0).any(0)


def rows(part: Live, fetched: np.ndarray, numbers: list[float], off: float = 0.0) -> Enclosure:
    """A row for each number, which stands wherever something is fetched, and is so far off."""
    mid = np.outer(numbers, fetched)
    return Enclosure(mid, off * np.abs(mid))


def test_the_room_is_the_way_to_the_next_threshold() -> None:
    part, fetched = thresholds()
    assert part.room(rows(part, fetched, [1.0, -1.0])) == 0.5
    assert part.room(rows(part, fetched, [1.0, -0.625])) == 0.125
    # less than a quarter of the way is left once a half may be gone
    assert 0.2499 < part.room(rows(part, fetched, [1.0], 0.25)) < 0.25
    # at 1/2 one unit of each pair may be open or closed, and the other is 1 away for sure
    assert part.room(rows(part, fetched, [0.5])) == 1.0
    assert Live(part.layer, part.part, part.mixer, {}).room(rows(part, fetched, [1.0])) == 0.0


def test_what_is_fetched_is_cleaned_up_to_a_half() -> None:
    part, fetched = thresholds()
    before = rows(part, fetched, [1.0, -1.0], 0.375)
    after = mlp(before, part.weights, what="m")
    left = part.left([before], [before], [after])
    assert (left.fetch_error, left.threshold) == (0.375, 0.5)
    assert 0 < left.clean_error < 1e-5
    far = rows(part, fetched, [1.0, -1.0], 0.5)
    with pytest.raises(CheckFailed, match=r"0\.5 off"):
        part.left([far], [far], [mlp(far, part.weights, what="m")])


def test_what_may_be_anything_is_left_out_where_it_may() -> None:
    part, fetched = thresholds()
    some = rows(part, fetched, [1.0], 0.125)
    first = int(np.flatnonzero(fetched)[0])
    rad = some.rad.copy()
    rad[:, first] = 2.0
    before = some.like(some.mid, rad)
    after = mlp(before, part.weights, what="m")
    left = part.left([before], [before], [after], every=False)
    assert left.fetch_error == 0.125
    assert 0.4999 < left.threshold <= 0.5
    with pytest.raises(CheckFailed, match="may be 2 off"):
        part.left([before], [before], [after])
    with pytest.raises(CheckFailed, match="constant only within 0"):
        Live(part.layer, part.part, part.mixer, {}).left([before], [before], [after], every=False)
