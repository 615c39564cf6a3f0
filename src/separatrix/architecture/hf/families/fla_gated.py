"""flash-linear-attention's HGRN, gated slot attention (GSA) and Comba: recurrences that are counted
as those they are made of.
"""

from __future__ import annotations

from separatrix.architecture.hf import fla_fields
from separatrix.architecture.hf.draft import Draft, Reading, Size, Value
from separatrix.architecture.hf.families.fla import gated
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields
from separatrix.architecture.hf.recurrent import scaled
from separatrix.mechanisms import GLA, RGLRU, GatedDeltaNet, ShortConvolution

_HGRN = (
    "HGRN is counted as an RG-LRU of the same width (assumed): both carry one number per channel,"
    " h = f h + (1 - f) i in place of a h + sqrt(1 - a^2) i"
)
_GSA = (
    "gated slot attention is counted as two gated linear attentions (assumed), which its paper"
    " shows it to be: one writes keys into slots, the other values, with a softmax between them"
)
_COMBA = (
    "Comba is counted as a Gated DeltaNet of the same sizes (assumed): one matrix per value head,"
    " erased along the key, with a correction of the query"
)


def hgrn(fields: Fields) -> Reading:
    """HGRN: hidden_size x `expand_ratio` channels, with a convolution each on input and gate if
    `use_short_conv`.
    """
    width = scaled(fields, fields.size("hidden_size"), "expand_ratio")
    sizes: dict[str, Value] = {"width": width, "conv": 0, "state_format": "fp32"}
    layer = Draft(RGLRU, sizes | {"format": fields.model_format()})
    return _with_convolution(fields, (layer,), 2 * width, _HGRN)


def gsa(fields: Fields) -> Reading:
    """GSA: `num_slots` slots for each of `num_kv_heads` heads (num_heads if null)."""
    # no layer of this model type rotates
    fields.harmless("use_rope")
    heads = fields.size("num_heads")
    kv = fields.optional_size("num_kv_heads")
    groups: Size = 1
    if kv is not None:
        fields.divisor("num_kv_heads", "num_heads")
        groups = fields.quotient(heads, kv, "num_heads / num_kv_heads")
    key = fla_fields.per_head(fields, heads, "expand_k")
    value = fla_fields.per_head(fields, heads, "expand_v")
    slots = fields.size("num_slots")
    own = heads if kv is None else kv
    shared = {"heads": own, "conv": 0, "format": fields.model_format(), "state_format": "fp32"}
    writes_keys = Draft(GLA, {**shared, "head_dim": key, "value_dim": slots})
    writes_values = Draft(GLA, {**shared, "head_dim": slots, "value_dim": value})
    channels = own * (groups * key + key + value)
    return _with_convolution(fields, (writes_keys, writes_values), channels, _GSA)


def comba(fields: Fields) -> Reading:
    """Comba: spelled as Gated DeltaNet is."""
    reading = gated(GatedDeltaNet)(fields)
    return Reading(reading.layers, (*reading.notes, _COMBA))


def _with_convolution(
    fields: Fields, layer: tuple[Draft, ...], channels: Size, note: str
) -> Reading:
    kernel = fla_fields.kernel(fields)
    if kernel != 0:
        sizes = {"width": channels, "conv": kernel, "format": fields.model_format()}
        layer = (*layer, Draft(ShortConvolution, sizes))
    reading = fla_fields.hybrid(fields, [layer] * fields.layers(), convolution=kernel != 0)
    return Reading(reading.layers, (*reading.notes, note))


FAMILIES: dict[str, Family] = {
    "hgrn": hgrn,
    "gsa": gsa,
    "comba": comba,
}
CLASSES: dict[str, str] = {
    "HGRNForCausalLM": "hgrn",
    "GSAForCausalLM": "gsa",
    "CombaForCausalLM": "comba",
}
