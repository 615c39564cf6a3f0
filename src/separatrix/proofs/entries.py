"""The claims of a construction, as text: written by the construction, rendered again by the
checker from numbers it derived itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from separatrix.proofs.arithmetic import NAMED
from separatrix.proofs.balls import down, up


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
        *rest, last = (NAMED[name].title for name in formats)
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
    if "most_heads" in sizes:
        heads = f"up to {sizes['most_heads']} heads each"
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


_DOWN = (
    # leads, before rounding errors: of keys, of blocks, of an indexer's tokens, of an automaton's
    # rules, of matches over a blank key and of that over the rest
    *("score_gap", "block_gap", "index_gap", "rule_lead", "match_over_blank", "blank_over_rest"),
    # the least that is computed with what is looked for; of the weight of a key that ties with
    # matches, the least without one
    *("output_with_match", "output_with_flag", "weight_without_match", "weight_with_own"),
    # the output from which the answer is another
    "threshold",
)
_UP = (
    # how far a score, a gate or a weight may be off; what all keys weigh that are not asked for
    *("score_error", "index_error", "gate_error", "weight_error", "off_target_mass"),
    # the most that is computed without what is looked for; of such a weight, with a match
    *("output_without_match", "output_without_flag"),
    *("weight_with_match", "weight_with_own_and_match"),
)
_ROUNDED = dict.fromkeys(_DOWN, down) | dict.fromkeys(_UP, up)
"""The numbers of entries that are rounded, each to the side on which it claims less."""


def entry(place: tuple[int, int], **found: Any) -> dict[str, Any]:
    """The proof of one layer: at which place of the stack, what it does, in words, and its numbers;
    None stays, where there is none.
    """
    some = {name for name, number in found.items() if name in _ROUNDED and number is not None}
    numbers = {name: _ROUNDED[name](Fraction(found[name])) for name in some}
    return {"layer": place[0], "part": place[1]} | found | numbers
