"""Hunyuan-Large: every few layers make keys and values, which the layers after them reuse
(cross-layer attention).
"""

from __future__ import annotations

from separatrix.architecture.hf.attention import full_attention, kv_heads_or_heads
from separatrix.architecture.hf.draft import Draft, Reading
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields
from separatrix.architecture.hf.stack import attention_reading
from separatrix.mechanisms import Reused


def hunyuan(fields: Fields) -> Reading:
    """Full attention; with `use_cla`, layers whose number is no multiple of `cla_share_factor`
    read the keys and values of the last one whose number is.
    """
    fields.refuse_recurrent_looks()
    # of images, of the embedding, and of experts
    fields.harmless("mask_init_id", "anyres_pooling_size", "pool_type", "use_rotary_pos_emb")
    dims = fields.optional_size("attention_head_dim", "head_dim")
    if dims is None:
        heads = fields.size("num_attention_heads")
        dims = fields.quotient(
            fields.size("hidden_size"), heads, "hidden_size / num_attention_heads"
        )
    full = full_attention(fields, head_dim=dims, kv_heads=kv_heads_or_heads(fields))
    layers = fields.layers()
    factor = fields.size("cla_share_factor") if fields.flag("use_cla") else 1
    if not isinstance(factor, int):
        raise fields.error(f"'use_cla' is true, but {factor.looked_for[0]}; add it")
    fields.harmless("cla_share_factor")
    notes: list[str] = []
    if factor > 1:
        notes = [
            f"{factor - 1} of {factor} layers read the keys and values of the layer before them,"
            " and keep none ('cla_share_factor')"
        ]
    reused = Draft(Reused, full.sizes)
    stack = [full if i % factor == 0 else reused for i in range(layers)]
    return attention_reading(fields, stack, notes, but=("use_cla",))


def hunyuan_v1(fields: Fields) -> Reading:
    """HunYuan: full attention; released files have the fields of Hunyuan-Large, switched off."""
    for name in ("use_cla", "use_mla"):
        if fields.flag(name):
            raise fields.error(
                f"'{name}' is true, which this model type does not have; pass the stack as a spec"
            )
    return hunyuan(fields)


FAMILIES: dict[str, Family] = {
    "hunyuan": hunyuan,
    **dict.fromkeys(("hunyuan_v1_dense", "hunyuan_v1_moe"), hunyuan_v1),
}
CLASSES: dict[str, str] = {
    "HunYuanForCausalLM": "hunyuan",
    "HunYuanMoEForCausalLM": "hunyuan",
}
