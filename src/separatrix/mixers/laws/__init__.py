"""The laws every token mixer obeys; `separatrix check-mechanism` runs them on a user's own.

Each takes a float64 mixer with drawn parameters (`drawn`), leaves it as it was, and raises
LawBroken with one sentence where it is broken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from separatrix.mixers import Mixer
from separatrix.mixers.laws.bounds import finite, nan_is_seen, refuses_bad_input
from separatrix.mixers.laws.derivatives import gradients_are_derivatives
from separatrix.mixers.laws.fed import holds_when_fed
from separatrix.mixers.laws.formats import formats_agree
from separatrix.mixers.laws.forms import (
    at_is_forward,
    causal,
    chunks_do_not_matter,
    forms_agree,
    holds_when_long,
    last_is_last,
    rows_are_alone,
    stacks,
)
from separatrix.mixers.laws.memory import (
    CACHE_LENGTHS,
    Kept,
    cache_as_declared,
    forgets,
    kept_by,
    nothing_is_kept,
    reset_draws_all,
    split_is_one_pass,
    survives_saving,
    tensors_are_apart,
)
from separatrix.mixers.laws.monotone import moves_one_way
from separatrix.mixers.laws.tools import (
    FORMATS,
    LENGTHS,
    RELATIVE,
    LawBroken,
    close,
    drawing,
    drawn,
    gradients,
    in_formats,
    inputs,
    seeded,
    stream,
    tolerance,
)

__all__ = [
    "CACHE_LENGTHS",
    "FORMATS",
    "LAWS",
    "LENGTHS",
    "RELATIVE",
    "Kept",
    "LawBroken",
    "broken_laws",
    "cache_as_declared",
    "close",
    "drawing",
    "drawn",
    "gradients",
    "in_formats",
    "inputs",
    "kept_by",
    "seeded",
    "stream",
    "tolerance",
]

LAWS: dict[str, Callable[[Mixer], None]] = {
    "step=forward": forms_agree,
    "chunks": chunks_do_not_matter,
    "last": last_is_last,
    "at": at_is_forward,
    "causal": causal,
    "rows": rows_are_alone,
    "split": split_is_one_pass,
    "alone": nothing_is_kept,
    "given": tensors_are_apart,
    "formats": formats_agree,
    "long": holds_when_long,
    "fed": holds_when_fed,
    "derivatives": gradients_are_derivatives,
    "cache": cache_as_declared,
    "stacks": stacks,
    "finite": finite,
    "NaN": nan_is_seen,
    "refuses": refuses_bad_input,
    "saved": survives_saving,
    "reset": reset_draws_all,
    "monotone": moves_one_way,
    "forgets": forgets,
}


def broken_laws(mixer: Mixer, laws: Sequence[str] = tuple(LAWS)) -> set[str]:
    """The laws that a mixer breaks; an exception raised on the way breaks the law too."""
    broken = set()
    for law in laws:
        try:
            LAWS[law](mixer)
        except Exception:
            broken.add(law)
    return broken
