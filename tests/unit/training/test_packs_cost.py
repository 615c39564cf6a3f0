"""What a pack is expected to cost: the head once for every answer."""

from __future__ import annotations

from separatrix.training.packs import operations


def test_the_head_is_counted_for_every_answer() -> None:
    sizes = (12, 16, 32)
    one, all_places, last = (
        operations("full @ heads=1, head_dim=8", f"parity:n=12{queries}", *sizes)
        for queries in ("", ",queries=all", ",queries=3")
    )
    # a multiply-add for each of 16 numbers and 2 answers
    head = 2 * 16 * 2
    assert (all_places - one, last - one) == (11 * head, 2 * head)
