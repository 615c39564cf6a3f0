"""ChatGLM2, ChatGLM3 and GLM-4 in the spelling of their own code, and EXAONE 3."""

from __future__ import annotations

from separatrix.architecture.hf.attention import full_attention, head_dim_or_quotient
from separatrix.architecture.hf.draft import Draft, Reading, Size
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields
from separatrix.architecture.hf.stack import attention_reading
from separatrix.mechanisms import Full

_HARMLESS = (
    *("apply_query_key_layer_scaling", "attention_softmax_in_fp32", "seq_length", "pre_seq_len"),
    *("prefix_projection", "apply_residual_connection_post_layernorm", "original_rope"),
    # what it says of positions is unknown, and said to be
    *("post_layer_norm", "hidden_size_per_attention_head", "rope_ratio"),
)


def chatglm(fields: Fields) -> Reading:
    """Full attention of heads of `kv_channels` numbers; `multi_query_group_num` key-value heads
    if `multi_query_attention` is true, else one for every query head.
    """
    fields.refuse_recurrent_looks()
    if fields.flag("position_encoding_2d") or fields.has("inner_hidden_size"):
        raise fields.error(
            "'position_encoding_2d' or 'inner_hidden_size' is there: the first ChatGLM lets the"
            " tokens of its prompt see the ones after them; only models that read left to right"
            " are judged"
        )
    fields.harmless(*_HARMLESS)
    heads = fields.size("num_attention_heads")
    kv: Size = heads
    if fields.flag("multi_query_attention"):
        kv = fields.divisor("multi_query_group_num", "num_attention_heads")
    fields.harmless("multi_query_group_num")
    layer = full_attention(fields, head_dim=fields.size("kv_channels"), kv_heads=kv)
    return attention_reading(fields, [layer] * fields.layers("num_layers", "num_hidden_layers"))


def exaone(fields: Fields) -> Reading:
    """EXAONE 3 and 3.5: grouped full attention, the depth in `num_layers`."""
    fields.refuse_recurrent_looks()
    sizes = full_attention(fields, head_dim=head_dim_or_quotient(fields)).sizes
    depth = fields.layers("num_layers", "num_hidden_layers")
    return attention_reading(fields, [Draft(Full, sizes)] * depth)


FAMILIES: dict[str, Family] = {"chatglm": chatglm, "exaone": exaone}
CLASSES: dict[str, str] = {
    "ChatGLMModel": "chatglm",
    "ChatGLMForConditionalGeneration": "chatglm",
    "ExaoneForCausalLM": "exaone",
}
