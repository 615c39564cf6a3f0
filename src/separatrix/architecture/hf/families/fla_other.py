"""flash-linear-attention's RWKV-6, RWKV-7, Samba and log-linear Mamba-2."""

from __future__ import annotations

from separatrix.architecture.hf import fla_fields
from separatrix.architecture.hf.draft import Draft, Reading, Size, Value
from separatrix.architecture.hf.families.mamba import heads_of
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import LARGEST, Fields, shown
from separatrix.architecture.hf.recurrent import expanded, mamba
from separatrix.evidence.canonical import json_list
from separatrix.mechanisms import RWKV, LogLinear, ShortConvolution

_SHIFT = (
    "token shifts in the model's dtype (assumed): time and channel mixing each remember one token;"
    " attention layers keep channel mixing's"
)
_LOW_RANKS = tuple(f"{name}_low_rank_dim" for name in ("proj", "gate", "decay", "a", "v"))


def rwkv6(fields: Fields) -> Reading:
    """RWKV-6: `num_heads`, `expand_k`, `expand_v`."""
    heads = fields.size("num_heads")
    sizes: dict[str, Value] = {
        "heads": heads,
        "head_dim": fla_fields.per_head(fields, heads, "expand_k"),
        "value_dim": fla_fields.per_head(fields, heads, "expand_v"),
    }
    return _rwkv(fields, [_draft(fields, sizes | {"version": 6})] * fields.layers())


def rwkv7(fields: Fields) -> Reading:
    """RWKV-7: `head_dim` or `num_heads`; `value_dim` may differ by layer, and is `hidden_size`
    where it is null.
    """
    hidden = fields.size("hidden_size")
    heads = fields.optional_size("num_heads")
    if fields.has("head_dim"):
        each = fields.size("head_dim")
        number = fields.quotient(hidden, each, "hidden_size / head_dim")
        if heads is not None and isinstance(number, int) and heads != number:
            raise fields.error(
                f"'num_heads' is {heads}, but hidden_size / head_dim is {number}; correct one of"
                " them"
            )
    else:
        number = fields.size("num_heads", "head_dim") if heads is None else heads
        each = fields.quotient(hidden, number, "hidden_size / num_heads")
    drafts: dict[int, Draft] = {}
    layers: list[Draft] = []
    for width in _value_dims(fields, hidden):
        value = fields.quotient(width, number, "value_dim / num_heads")
        # layers of one width share a draft; 0 stands for a width that is unknown
        key = value if isinstance(value, int) else 0
        layers.append(
            drafts.setdefault(
                key, _draft(fields, {"heads": number, "head_dim": each, "value_dim": value})
            )
        )
    return _rwkv(fields, layers)


def _value_dims(fields: Fields, hidden: Size) -> list[Size]:
    layers = fields.layers()
    value = fields.value("value_dim")
    widths = json_list(value)
    if widths is None:
        given = fields.optional_size("value_dim")
        return [hidden if given is None else given] * layers
    if len(widths) != layers:
        raise fields.error(
            f"'value_dim' has {len(widths)} entries and must have num_hidden_layers = {layers};"
            " correct one of them"
        )
    for place, width in enumerate(widths, 1):
        if type(width) is not int or not 1 <= width <= LARGEST:
            raise fields.error(
                f"entry {place} of 'value_dim' is {shown(width)}; it must be an integer from 1 to"
                f" {LARGEST:,}"
            )
    return list(widths)


def _draft(fields: Fields, sizes: dict[str, Value]) -> Draft:
    dtype = fields.model_format()
    return Draft(
        RWKV,
        {
            **sizes,
            "width": fields.size("hidden_size"),
            "shifts": 2,
            "format": dtype,
            "state_format": "fp32",
        },
    )


def _rwkv(fields: Fields, layers: list[Draft]) -> Reading:
    shift = Draft(
        ShortConvolution,
        {"width": fields.size("hidden_size"), "conv": 2, "format": fields.model_format()},
    )
    # widths of the small networks that make decays and gates
    fields.harmless(*_LOW_RANKS)
    reading = fla_fields.hybrid(fields, layers, convolution=False, beside=(shift,))
    return Reading(reading.layers, (*reading.notes, _SHIFT))


def samba(fields: Fields) -> Reading:
    """Samba: Mamba layers, attention (usually sliding) where `attn` says."""
    if "attn" not in fields.data:
        raise fields.no_pattern(("attn",))
    layer = mamba(fields, width=expanded(fields), state=("state_size",), conv=("conv_kernel",))
    return fla_fields.hybrid(fields, [layer] * fields.layers(), convolution=True)


def log_linear_mamba2(fields: Fields) -> Reading:
    """Log-linear Mamba-2: a Mamba-2 state for each Fenwick bucket."""
    heads, head_dim = heads_of(fields)
    sizes = {
        "heads": heads,
        "key_heads": fields.size("n_groups"),
        "head_dim": fields.size("state_size"),
        "value_dim": head_dim,
        "conv": fields.size("conv_kernel"),
        "base": "mamba2",
        "format": fields.model_format(),
        "state_format": "fp32",
    }
    reading = fla_fields.hybrid(
        fields, [Draft(LogLinear, sizes)] * fields.layers(), convolution=True
    )
    return Reading(
        reading.layers,
        (
            *reading.notes,
            (
                "one state for each Fenwick bucket (assumed), as in the paper; the kernels work in"
                " chunks"
            ),
        ),
    )


FAMILIES: dict[str, Family] = {
    "rwkv6": rwkv6,
    "rwkv7": rwkv7,
    "samba": samba,
    "log_linear_mamba2": log_linear_mamba2,
}
CLASSES: dict[str, str] = {
    "RWKV6ForCausalLM": "rwkv6",
    "RWKV7ForCausalLM": "rwkv7",
    "SambaForCausalLM": "samba",
    "LogLinearMamba2ForCausalLM": "log_linear_mamba2",
}
