"""Native mamba_ssm files: no `model_type`, and the geometry of a layer only where `ssm_cfg`
gives it.
"""

from __future__ import annotations

from separatrix.architecture.hf.attention import ACCUMULATORS, cache_note, convolution_note
from separatrix.architecture.hf.draft import Draft, Reading, Size
from separatrix.architecture.hf.fields import Fields, shown
from separatrix.architecture.hf.lists import indices
from separatrix.architecture.hf.recurrent import mamba, mamba2, scaled
from separatrix.mechanisms import Full, PositionWise

_STATE = (
    "recurrent state fp32 (assumed): transformers keeps it in fp32; mamba_ssm and vLLM keep it in"
    " the model's dtype by default"
)
_LAYERS = ("Mamba1", "Mamba2")


def is_native(fields: Fields) -> bool:
    """Whether the file is spelled as mamba_ssm spells its own."""
    own = ("ssm_cfg", "attn_layer_idx")
    sizes = ("n_layer", "d_model")

    def there(name: str) -> bool:
        # asked of every file, so that it must not count as read
        return fields.data.get(name) is not None

    return not there("model_type") and any(map(there, own)) and any(map(there, sizes))


def mamba_ssm(fields: Fields) -> Reading:
    """`ssm_cfg.layer` everywhere but at `attn_layer_idx` (numbered from 0), which are attention
    of the sizes in `attn_cfg`.
    """
    fields = fields.section("ssm_cfg").section("attn_cfg")
    layers = fields.layers("n_layer")
    attention: set[int] = set()
    if fields.has("attn_layer_idx"):
        attention = set(indices(fields, "attn_layer_idx", layers, base=0))
    notes: list[str] = []
    name = fields.value("ssm_cfg.layer")
    if name is None and len(attention) < layers:
        name = "Mamba1"
        notes.append(
            "layers are Mamba (assumed): 'ssm_cfg.layer' does not say, and mamba_ssm takes Mamba1"
        )
    if name is not None and name not in _LAYERS:
        raise fields.error(
            f"'ssm_cfg.layer' is {shown(name)}; it must be one of {', '.join(_LAYERS)}"
        )
    if attention and not fields.has("attn_cfg.d_conv"):
        notes.append(
            "no convolution in attention layers (assumed): 'attn_cfg.d_conv' does not say, and"
            " mamba_ssm takes none"
        )
    dtype = fields.model_format()
    notes += [_STATE] if len(attention) < layers else []
    notes += [convolution_note(dtype)] + ([cache_note(dtype), ACCUMULATORS] if attention else [])
    recurrent = _mamba2(fields) if name == "Mamba2" else _mamba(fields)
    softmax = _attention(fields) if attention else Draft(PositionWise)
    return Reading.of([softmax if i in attention else recurrent for i in range(layers)], notes)


def _width(fields: Fields) -> Size:
    return scaled(fields, fields.size("d_model"), "ssm_cfg.expand")


def _mamba(fields: Fields) -> Draft:
    return mamba(fields, width=_width(fields), state=("ssm_cfg.d_state",), conv=("ssm_cfg.d_conv",))


def _mamba2(fields: Fields) -> Draft:
    if fields.has("ssm_cfg.d_ssm"):
        raise fields.error(
            "'ssm_cfg.d_ssm' gives part of the channels to an MLP, which is not supported; pass the"
            " stack itself as a spec"
        )
    head_dim = fields.size("ssm_cfg.headdim")
    heads = fields.quotient(_width(fields), head_dim, "ssm_cfg.expand x d_model / ssm_cfg.headdim")
    state, groups, conv = (
        fields.size(f"ssm_cfg.{name}") for name in ("d_state", "ngroups", "d_conv")
    )
    return mamba2(fields, heads=heads, head_dim=head_dim, state=state, groups=groups, conv=conv)


def _attention(fields: Fields) -> Draft:
    heads = fields.size("attn_cfg.num_heads")
    kv = fields.optional_size("attn_cfg.num_heads_kv")
    head_dim = fields.optional_size("attn_cfg.head_dim")
    kernel = fields.optional_size("attn_cfg.d_conv", low=0)
    if isinstance(heads, int) and kv is not None and heads % kv:
        raise fields.error(
            f"'attn_cfg.num_heads_kv' is {kv}, which does not divide 'attn_cfg.num_heads' ="
            f" {heads}; correct one of them"
        )
    sizes = {
        "heads": heads,
        "kv_heads": heads if kv is None else kv,
        "head_dim": (
            fields.quotient(fields.size("d_model"), heads, "d_model / attn_cfg.num_heads")
            if head_dim is None
            else head_dim
        ),
        "conv": 0 if kernel is None else kernel,
        "format": fields.model_format(),
        "accumulator": "fp32",
        "running_max": True,
    }
    return Draft(Full, sizes)
