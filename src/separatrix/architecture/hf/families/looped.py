"""Stacks whose layers run several times for a token, and keep keys and values of every pass: Ouro,
HRM-Text, and LongCat-Flash with two attentions in every layer.
"""

from __future__ import annotations

from separatrix.architecture.hf.attention import (
    full_attention,
    head_dim_or_quotient,
    kv_heads_or_heads,
    latent_attention,
)
from separatrix.architecture.hf.draft import Draft, Reading
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import MOST_LAYERS, Fields, shown
from separatrix.architecture.hf.stack import attention_reading, listed

_EXIT = ("early_exit_threshold", "early_exit_step", "early_exit_gate")


def ouro(fields: Fields) -> Reading:
    """Ouro: the stack runs `total_ut_steps` times; keys and values are kept for every pass."""
    passes = fields.needed("total_ut_steps", high=MOST_LAYERS)
    # a token that leaves early computes less; what is kept for the others stays
    fields.harmless(*_EXIT)
    kinds = listed(fields, words={"full_attention": "full", "attention": "full"})
    if kinds is None:
        fields.refuse_recurrent_looks()
        _no_window(fields)
    else:
        fields.harmless("sliding_window", "use_sliding_window", "max_window_layers")
    layer = full_attention(
        fields, head_dim=head_dim_or_quotient(fields), kv_heads=kv_heads_or_heads(fields)
    )
    return _repeated(fields, [layer] * fields.layers(), passes, "total_ut_steps")


def hrm_text(fields: Fields) -> Reading:
    """HRM-Text: `H_cycles` x (`L_cycles` + 1) passes through a stack of `num_layers_per_stack`
    layers. Saved files count all passes in `num_hidden_layers`; files without
    `num_layers_per_stack` count one stack there.
    """
    passes = fields.needed("H_cycles", high=MOST_LAYERS) * (
        fields.needed("L_cycles", high=MOST_LAYERS) + 1
    )
    # cycles through which gradients flow
    fields.harmless("L_bp_cycles")
    stack = fields.optional_size("num_layers_per_stack", high=MOST_LAYERS)
    stated = fields.optional_size("num_hidden_layers", high=MOST_LAYERS)
    if stack is None:
        stack = fields.layers()
    elif stated not in (None, stack, stack * passes):
        raise fields.error(
            f"'num_hidden_layers' is {stated}, but 'num_layers_per_stack' x 'H_cycles' x"
            f" ('L_cycles' + 1) is {stack * passes}; correct one of them"
        )
    heads = fields.size("num_attention_heads")
    kv = fields.optional_size("num_key_value_heads")
    if kv is not None and kv != heads:
        raise fields.error(
            f"'num_key_value_heads' is {kv}, but this model type has as many as query heads; remove"
            " it"
        )
    layer = full_attention(fields, kv_heads=heads)
    return _repeated(fields, [layer] * stack, passes, "H_cycles x (L_cycles + 1)")


def longcat(fields: Fields) -> Reading:
    """LongCat-Flash: `num_layers` layers with two latent attentions each, which
    `num_hidden_layers`, where it is there, counts one by one.
    """
    if fields.value("attention_method") not in (None, "MLA"):
        raise fields.error(
            f"'attention_method' is {shown(fields.value('attention_method'))}; this model type has"
            " MLA; pass the stack as a spec"
        )
    # factors of the latents
    fields.harmless("mla_scale_q_lora", "mla_scale_kv_lora")
    own = fields.layers("num_layers")
    stated = fields.optional_size("num_hidden_layers", high=2 * MOST_LAYERS)
    if stated not in (None, own, 2 * own):
        raise fields.error(
            f"'num_hidden_layers' is {stated}, but each of the 'num_layers' = {own} layers has two"
            " attentions; correct one of them"
        )
    return _repeated(fields, [latent_attention(fields)] * own, 2, "two attentions in every layer")


def _no_window(fields: Fields) -> None:
    if fields.has("sliding_window") and fields.flag("use_sliding_window") is not False:
        raise fields.error(
            "'sliding_window' is there, and only a list in 'layer_types' tells which layers of this"
            " model type slide; add it"
        )
    fields.harmless("max_window_layers")


def _repeated(fields: Fields, layers: list[Draft], passes: int, why: str) -> Reading:
    if len(layers) * passes > MOST_LAYERS:
        raise fields.error(
            f"{len(layers)} layers run {passes} times each ({why}), more than {MOST_LAYERS:,} in"
            " all; correct the fields"
        )
    times = f"every layer counts {passes} times ({why}): each pass keeps keys and values of its own"
    return attention_reading(fields, layers * passes, [times])


FAMILIES: dict[str, Family] = {
    "ouro": ouro,
    "hrm_text": hrm_text,
    "longcat_flash": longcat,
}
CLASSES: dict[str, str] = {
    "OuroForCausalLM": "ouro",
    "HrmTextForCausalLM": "hrm_text",
    "LongcatFlashForCausalLM": "longcat_flash",
}
