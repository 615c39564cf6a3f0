"""The claims of a construction, as text: written by the construction, rendered again by the
checker from numbers it derived itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from separatrix.proofs.float32 import Carry, Fetch, FetchBounds, Match, down, up


def construction_statement(
    *, task: str, architecture: str, sizes: Mapping[str, int], margin: str
) -> str:
    """What the weights do. `margin` is the proved lower bound of the right logit's lead."""
    return (
        f"{task} is answered right on every input, in float32, by {architecture} with these"
        f" weights: {_used(sizes)}, one head each, keys of {sizes['head_dim']} and values of"
        f" {sizes['value_dim']} numbers; the right logit leads by at least {margin}."
    )


def _used(sizes: Mapping[str, int]) -> str:
    parts = [
        (sizes.get("carriers", 0), "bounded layer"),
        (sizes.get("layers", 0), "full layer"),
        (sizes.get("sparse", 0), "sparse layer"),
    ]
    return " and ".join(f"{count} {noun}{'s' * (count > 1)}" for count, noun in parts if count)


def fetch_entry(
    place: tuple[int, int], *, fetches: str, queries: int, fetch: Fetch, bounds: FetchBounds
) -> dict[str, Any]:
    """The proof of one softmax head. Gap and threshold are rounded down, errors and masses up."""
    return {
        "layer": place[0],
        "part": place[1],
        "fetches": fetches,
        "queries": queries,
        "keys": fetch.keys,
        "score_gap": down(fetch.gap),
        "score_error": up(bounds.score_error),
        "off_target_mass": up(bounds.mass),
        "fetch_error": up(bounds.fetch_error),
        "threshold": down(fetch.threshold.radius),
        "clean_error": up(bounds.clean_error),
    }


def match_entry(place: tuple[int, int], *, match: Match) -> dict[str, Any]:
    """The proof of a Match2 head. Gaps are exact scores of the weights before rounding errors;
    outputs bound what is computed.
    """
    return {
        "layer": place[0],
        "part": place[1],
        "keys": match.earlier + 2,
        "match_over_blank": down(match.match_over_blank),
        "blank_over_rest": down(match.blank_over_rest),
        "score_error": up(match.score_error()),
        "output_without_match": up(match.without()),
        "output_with_match": down(match.with_match()),
        "threshold": down(match.threshold),
    }


def block_entry(
    entry: dict[str, Any], *, block_gap: Fraction | None, fetch: Fetch
) -> dict[str, Any]:
    """The proof of a sparse head: that of the softmax over the tokens it reads, and the lead of
    the right block (None: one block or none).
    """
    return entry | {
        "block_gap": None if block_gap is None else down(block_gap),
        "gate_error": up(fetch.shut),
    }


def carry_entry(
    place: tuple[int, int], *, fetches: str, mechanism: str, carry: Carry, bounds: FetchBounds
) -> dict[str, Any]:
    """The proof of a bounded layer that carries one value to the last token."""
    return {
        "layer": place[0],
        "part": place[1],
        "carries": fetches,
        "mechanism": mechanism,
        "keys": carry.keys,
        "off_target_mass": up(bounds.mass),
        "fetch_error": up(bounds.fetch_error),
        "threshold": down(carry.threshold.radius),
        "clean_error": up(bounds.clean_error),
    }
