"""RWKV-4 in transformers' spelling."""

from __future__ import annotations

from separatrix.architecture.hf.draft import Draft, Reading
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields
from separatrix.architecture.hf.recurrent import assumed
from separatrix.mechanisms import RWKV4


def rwkv(fields: Fields) -> Reading:
    """All layers RWKV-4 of `attention_hidden_size` channels, which is `hidden_size` where it is
    absent.
    """
    width = fields.optional_size("attention_hidden_size")
    hidden = fields.size("hidden_size")
    sizes = {
        "width": hidden if width is None else width,
        "hidden": hidden,
        "format": fields.model_format(),
        "state_format": "fp32",
    }
    notes = [
        *assumed(fields, attention=False, convolution=False),
        "token shifts in the model's dtype (assumed), one token per mixing",
    ]
    return Reading.of([Draft(RWKV4, sizes)] * fields.layers(), notes)


FAMILIES: dict[str, Family] = {
    "rwkv": rwkv,
}
CLASSES: dict[str, str] = {
    "RwkvForCausalLM": "rwkv",
}
