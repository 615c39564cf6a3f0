"""Native mamba_ssm files: no `model_type`, and the geometry of a layer only where `ssm_cfg`
gives it.
"""

from __future__ import annotations

from dataclasses import replace

from separatrix.stacks.architecture.hf.draft import Reading, Size
from separatrix.stacks.architecture.hf.fields import Fields, shown
from separatrix.stacks.architecture.hf.interpreter import finished
from separatrix.stacks.architecture.hf.row import (
    Mixer,
    Numbered,
    Row,
    dividing,
    either,
    quotient,
    times,
)
from separatrix.stacks.architecture.hf.rows.recurrent import mamba, mamba2
from separatrix.stacks.architecture.hf.ways import Way, native
from separatrix.stacks.mechanisms import Full

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


def _read(row: Row, fields: Fields) -> Reading:
    """`ssm_cfg.layer` everywhere but at `attn_layer_idx` (numbered from 0), which are attention
    of the sizes in `attn_cfg`.
    """
    name = fields.value("ssm_cfg.layer")
    kinds = Numbered("attn_layer_idx", "attention", "recurrent")(
        fields.replaced(num_hidden_layers=fields.layers("n_layer"))
    ) or ["recurrent"] * fields.layers("n_layer")
    said: list[str] = []
    if name is None and "recurrent" in kinds:
        said.append(
            "layers are Mamba (assumed): 'ssm_cfg.layer' does not say, and mamba_ssm takes Mamba1"
        )
    if name not in (None, *_LAYERS):
        raise fields.error(
            f"'ssm_cfg.layer' is {shown(name)}; it must be one of {', '.join(_LAYERS)}"
        )
    if "attention" in kinds and not fields.has("attn_cfg.d_conv"):
        said.append(
            "no convolution in attention layers (assumed): 'attn_cfg.d_conv' does not say, and"
            " mamba_ssm takes none"
        )
    layer = row.mixers["Mamba2" if name == "Mamba2" else "Mamba1"]
    mixers = {"recurrent": layer, "attention": row.mixers["attention"]}
    used = {kind: mixer for kind, mixer in mixers.items() if kind in kinds}
    return finished(replace(row, mixers=used), fields, (kinds, said))


_WIDTH = times("d_model", "ssm_cfg.expand")


def _whole_width(fields: Fields) -> Size:
    if fields.has("ssm_cfg.d_ssm"):
        raise fields.error(
            "'ssm_cfg.d_ssm' gives part of the channels to an MLP, which is not supported; pass the"
            " stack itself as a spec"
        )
    return _WIDTH(fields)


def _kernel(fields: Fields) -> Size:
    return fields.optional_size("attn_cfg.d_conv", low=0) or 0


_ATTENTION = Mixer(
    Full,
    {
        "heads": "attn_cfg.num_heads",
        "kv_heads": dividing(
            either("attn_cfg.num_heads_kv", "attn_cfg.num_heads"),
            "attn_cfg.num_heads",
            named="'attn_cfg.num_heads_kv'",
        ),
        "head_dim": either(
            "attn_cfg.head_dim",
            quotient("d_model", "attn_cfg.num_heads", "d_model / attn_cfg.num_heads"),
        ),
        "conv": _kernel,
    },
)
NATIVE = Row(
    "mamba_ssm",
    {
        "Mamba1": mamba(_WIDTH, "ssm_cfg.d_state", "ssm_cfg.d_conv"),
        "Mamba2": mamba2(
            heads=quotient(
                _whole_width, "ssm_cfg.headdim", "ssm_cfg.expand x d_model / ssm_cfg.headdim"
            ),
            head_dim="ssm_cfg.headdim",
            state="ssm_cfg.d_state",
            groups="ssm_cfg.ngroups",
            conv="ssm_cfg.d_conv",
        ),
        "attention": _ATTENTION,
    },
    stateful=True,
    before=lambda fields: fields.section("ssm_cfg").section("attn_cfg"),
    state=lambda fields: _STATE,
    read=_read,
    way=Way(native),
)
