"""The claims of a construction, as text: written by the construction, rendered again by the
checker from numbers it derived itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from separatrix.proofs.balls import down, up
from separatrix.proofs.exact import NAMES
from separatrix.proofs.softmax import Match


def construction_statement(
    *,
    task: str,
    architecture: str,
    sizes: Mapping[str, int],
    margin: str,
    formats: Sequence[str] = (),
    title: str = "float32",
) -> str:
    """What the weights do. `margin` is the proved lower bound of the right logit's lead; `formats`
    are those in which nothing is rounded, where that is what was proved; `title` is else the one
    that it was proved in.
    """
    if formats:
        *rest, last = (NAMES[name] for name in formats)
        # one layer that tracks a state, or several for prompts of this length
        alone = sizes["carriers"] == 1
        layers = f"{sizes['carriers']} recurrent layers, one head each"
        if alone:
            heads = f"{sizes['heads']} head{'s' * (sizes['heads'] > 1)}"
            layers = f"one recurrent layer, {heads}"
        return (
            f"{task} is answered right on every input that it asks, in"
            f" {' and '.join([', '.join(rest)] * bool(rest) + [last])}, token by token and in"
            f" parallel, by {architecture} with these weights: {layers}, keys"
            f" of {sizes['head_dim']} and values of {sizes['value_dim']} numbers, none of them ever"
            f" rounded; the right logit leads by at least {margin}"
            f"{', and no weight depends on n' * alone}."
        )
    written = sizes.get("written", 0)
    most = sizes.get("heads", 1)
    heads = "one head each" if most == 1 else f"{most} heads in the first and one in each other"
    first = f" after {written} token{'s' * (written > 1)} that it writes" if written else ""
    return (
        f"{task} is answered right on every input, in {title}, by {architecture} with these"
        f" weights{first}: {_used(sizes)}, {heads}, keys of {sizes['head_dim']} and values of"
        f" {sizes['value_dim']} numbers; the right logit leads by at least {margin}."
    )


UNPROVED = "nothing is proved of these weights"
"""What a record says instead of a proof."""


def unproved_statement(task: str, architecture: str) -> str:
    """Of weights that were written without a proof."""
    return f"{UNPROVED}: whether they answer {task}, in {architecture}, is not known"


def _used(sizes: Mapping[str, int]) -> str:
    parts = [
        (sizes.get("carriers", 0), "bounded layer"),
        (sizes.get("layers", 0), "full layer"),
        (sizes.get("sparse", 0), "sparse layer"),
        (sizes.get("indexed", 0), "indexed layer"),
    ]
    return " and ".join(f"{count} {noun}{'s' * (count > 1)}" for count, noun in parts if count)


def fetch_entry(
    place: tuple[int, int],
    *,
    fetches: str,
    queries: int,
    keys: int,
    score_gap: float,
    score_error: float,
    mass: Fraction,
    left: Left,
) -> dict[str, Any]:
    """The proof of one softmax head. Gap and threshold are rounded down, errors and masses up."""
    return {
        "layer": place[0],
        "part": place[1],
        "fetches": fetches,
        "queries": queries,
        "keys": keys,
        "score_gap": down(Fraction(score_gap)),
        "score_error": up(Fraction(score_error)),
        "off_target_mass": up(mass),
    } | left.entry()


def carry_entry(
    place: tuple[int, int], *, fetches: str, mechanism: str, keys: int, mass: Fraction, left: Left
) -> dict[str, Any]:
    """The proof of a bounded layer that carries one value to the last token."""
    return {
        "layer": place[0],
        "part": place[1],
        "carries": fetches,
        "mechanism": mechanism,
        "keys": keys,
        "off_target_mass": up(mass),
    } | left.entry()


def tap_entry(
    place: tuple[int, int], *, brings: str, mechanism: str, back: int, taps: int
) -> dict[str, Any]:
    """The proof of a short convolution that hands so many numbers on from at most `back` tokens
    back, each of them unrounded.
    """
    return {
        "layer": place[0],
        "part": place[1],
        "carries": brings,
        "mechanism": mechanism,
        "back": back,
        "numbers": taps,
        "fetch_error": "0",
    }


def block_entry(
    entry: dict[str, Any], *, block_gap: float | None, gate_error: float
) -> dict[str, Any]:
    """The proof of a sparse head: that of the softmax over the tokens it reads, and the lead of
    the right block (None: one block or none).
    """
    return entry | {
        "block_gap": None if block_gap is None else down(Fraction(block_gap)),
        "gate_error": up(Fraction(gate_error)),
    }


def index_entry(
    entry: dict[str, Any], *, topk: int, index_gap: float, index_error: float
) -> dict[str, Any]:
    """The proof of an indexed head: that of the softmax over the tokens it reads, and the lead of
    the right token in the indexer's scores.
    """
    return entry | {
        "topk": topk,
        "index_gap": down(Fraction(index_gap)),
        "index_error": up(Fraction(index_error)),
    }


def match_entry(place: tuple[int, int], *, match: Match, threshold: Fraction) -> dict[str, Any]:
    """The proof of a Match2 head. Gaps are scores of the weights before rounding errors; outputs
    bound what is computed.
    """
    return {
        "layer": place[0],
        "part": place[1],
        "keys": match.earlier + 2,
        "match_over_blank": down(match.match_over_blank),
        "blank_over_rest": down(match.blank_over_rest),
        "score_error": up(match.score_error),
        "output_without_match": up(match.without()),
        "output_with_match": down(match.with_match()),
        "threshold": down(threshold),
    }


def count_entry(
    place: tuple[int, int],
    *,
    queries: int,
    keys: int,
    score_gap: float,
    mass: Fraction,
    without: Fraction,
    with_match: Fraction,
    own_alone: Fraction | None,
    own_and_another: Fraction | None,
) -> dict[str, Any]:
    """The proof of a head in which a start token ties with every match: its computed weight, at
    least without a match and at most with one; and the same where the token that asks is itself
    one, if any is. Scores that tie are not rounded.
    """
    own = {}
    if own_alone is not None and own_and_another is not None:
        own = {"weight_with_own": down(own_alone), "weight_with_own_and_match": up(own_and_another)}
    return {
        "layer": place[0],
        "part": place[1],
        "counts": "tokens that cancel the one that asks",
        "queries": queries,
        "keys": keys,
        "score_gap": down(Fraction(score_gap)),
        "score_error": "0",
        "off_target_mass": up(mass),
        "weight_without_match": down(without),
        "weight_with_match": up(with_match),
    } | own


def tally_entry(
    place: tuple[int, int],
    *,
    queries: int,
    keys: int,
    score_gap: float,
    mass: Fraction,
    weight_error: float,
    closest: int,
) -> dict[str, Any]:
    """The proof of a head in which a start token ties with every match: the relative error of its
    computed weight, whatever the count, and the count whose logit leads least.
    """
    return {
        "layer": place[0],
        "part": place[1],
        "counts": "tokens that are the one asked for",
        "queries": queries,
        "keys": keys,
        "score_gap": down(Fraction(score_gap)),
        "score_error": "0",
        "off_target_mass": up(mass),
        "weight_error": up(Fraction(weight_error)),
        "closest_count": closest,
    }


def flag_entry(
    place: tuple[int, int],
    *,
    keys: int,
    score_gap: float,
    score_error: float,
    mass: Fraction,
    without: float,
    with_flag: float,
) -> dict[str, Any]:
    """The proof of a head that looks for a flag: what it writes, in the coordinate that tells most,
    at most without a flag and at least with one.
    """
    return {
        "layer": place[0],
        "part": place[1],
        "looks_for": "a flagged token",
        "keys": keys,
        "score_gap": down(Fraction(score_gap)),
        "score_error": up(Fraction(score_error)),
        "off_target_mass": up(mass),
        "output_without_flag": up(Fraction(without)),
        "output_with_flag": down(Fraction(with_flag)),
    }


def tracking_entry(
    place: tuple[int, int],
    *,
    mechanism: str,
    reflections: int,
    states: Sequence[int],
    digits: int,
    summed_digits: int,
    chunk: int,
) -> dict[str, Any]:
    """The proof of a layer whose tokens reflect its state: how many states prompts lead to, a
    number for each head, and the binary digits that hold every number and partial sum: of the
    weights' format, and of float32 for sums over keys and, in parallel, over chunks of updates.
    """
    return {
        "layer": place[0],
        "part": place[1],
        "mechanism": mechanism,
        "reflections": reflections,
        "states": " and ".join(f"{count}" for count in states),
        "digits": digits,
        "float32_digits": summed_digits,
        "chunk": chunk,
    }


def machine_entry(
    place: tuple[int, int], *, states: int, bits: int, rules: int, rule_lead: Fraction
) -> dict[str, Any]:
    """The proof of an automaton: the most states that prefixes of one length lead to, and the lead
    of the rule that a token follows.
    """
    return {
        "layer": place[0],
        "part": place[1],
        "states": states,
        "bits": bits,
        "rules": rules,
        "rule_lead": down(rule_lead),
    }


@dataclass(frozen=True, kw_only=True)
class Left:
    """What a layer leaves at the last token: how far the value fetched may be off, how far it may
    be off before a hidden unit of the MLP switches, and how far what the MLP wrote may be off.
    """

    fetch_error: float
    threshold: float
    clean_error: float

    def entry(self) -> dict[str, str]:
        return {
            "fetch_error": up(Fraction(self.fetch_error)),
            "threshold": down(Fraction(self.threshold)),
            "clean_error": up(Fraction(self.clean_error)),
        }
