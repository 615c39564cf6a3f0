"""The laws every token mixer obeys; `separatrix check-mechanism` runs them on a user's own.

Each takes a float64 mixer with drawn parameters (`drawn`), leaves it as it was, and raises
LawBroken with one sentence where it is broken.
"""

from __future__ import annotations

from collections.abc import Callable

from separatrix.mixers import Mixer
from separatrix.mixers.laws import bounds, forms, memory
from separatrix.mixers.laws.fed import holds_when_fed
from separatrix.mixers.laws.formats import formats_agree, gradients_are_derivatives
from separatrix.mixers.laws.monotone import moves_one_way
from separatrix.mixers.laws.tools import FORMATS as FORMATS
from separatrix.mixers.laws.tools import LawBroken as LawBroken
from separatrix.mixers.laws.tools import asking as asking
from separatrix.mixers.laws.tools import close as close
from separatrix.mixers.laws.tools import drawn as drawn
from separatrix.mixers.laws.tools import gradients as gradients
from separatrix.mixers.laws.tools import inputs as inputs
from separatrix.mixers.laws.tools import stream as stream

LAWS: dict[str, Callable[[Mixer], None]] = {
    "step=forward": forms.forms_agree,
    "chunks": forms.chunks_do_not_matter,
    "at": forms.at_is_forward,
    "causal": forms.causal,
    "rows": forms.rows_are_alone,
    "alone": memory.nothing_is_kept,
    "given": memory.tensors_are_apart,
    "formats": formats_agree,
    "fed": holds_when_fed,
    "derivatives": gradients_are_derivatives,
    "cache": memory.cache_as_declared,
    "stacks": forms.stacks,
    "finite": bounds.finite,
    "NaN": bounds.nan_is_seen,
    "refuses": bounds.refuses_bad_input,
    "saved": memory.survives_saving,
    "reset": memory.reset_draws_all,
    "monotone": moves_one_way,
    "forgets": memory.forgets,
}
