"""Families that alternate sliding and full attention: Gemma 2 and 3, gpt-oss, Cohere 2, OLMo 3,
EXAONE 4, AFM, CWM, Granite with windows, Llama 4.
"""

from __future__ import annotations

from separatrix.architecture.hf.attention import head_dim_or_quotient, kv_heads_or_heads
from separatrix.architecture.hf.draft import Reading
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields, shown
from separatrix.architecture.hf.single_layers import reusing
from separatrix.architecture.hf.stack import attention_reading, drafts, every, listed, period_note


def alternating(
    period: int, *, field: str = "", kv_heads: bool = False, head_dim: bool = False
) -> Family:
    """A reader of `layer_types`, or, where they are absent, of a full layer every `field` layers,
    which is `period` where that is absent too.

    `kv_heads`, `head_dim`: whether the model class defines them by others where they are absent, as
    in `decoder`.
    """

    def read(fields: Fields) -> Reading:
        kinds = listed(fields)
        notes = []
        if kinds is None:
            fields.refuse_recurrent_looks()
            given = fields.optional_size(field, f"_{field}") if field else None
            kinds = every(fields.layers(), given or period)
            notes = [] if given else [period_note(period, field or "any other field for it")]
        d = head_dim_or_quotient(fields) if head_dim else None
        kv = kv_heads_or_heads(fields) if kv_heads else None
        return attention_reading(fields, drafts(fields, kinds, head_dim=d, kv_heads=kv), notes)

    return read


def cohere2(fields: Fields) -> Reading:
    """Cohere 2: as `alternating`; released files say the period once more, as `layer_switch`, and
    that the sliding layers come first.
    """
    again = fields.optional_size("layer_switch")
    period = fields.optional_size("sliding_window_pattern", "_sliding_window_pattern")
    if None not in (again, period) and again != period:
        raise fields.error(
            f"'layer_switch' is {again}, but 'sliding_window_pattern' is {period}; correct one of"
            " them"
        )
    if fields.value("order_of_interleaved_layers") not in (None, "local_attn_first"):
        raise fields.error(
            f"'order_of_interleaved_layers' is {shown(fields.value('order_of_interleaved_layers'))}"
            "; only local_attn_first is read; pass the stack as a spec"
        )
    field = "layer_switch" if period is None else "sliding_window_pattern"
    return alternating(4, field=field, kv_heads=True, head_dim=True)(fields)


def exaone(fields: Fields) -> Reading:
    """EXAONE 4: as `alternating`, with `sliding_window_pattern` a number or letters such as
    "LLLG"; all full without `sliding_window`.
    """
    letters = fields.value("sliding_window_pattern")
    if fields.has("layer_types") or isinstance(letters, int):
        return alternating(4, field="sliding_window_pattern", head_dim=True)(fields)
    fields.refuse_recurrent_looks()
    if not fields.has("sliding_window"):
        kinds = ["full"] * fields.layers()
    elif letters is None:
        return alternating(4, field="sliding_window_pattern", head_dim=True)(fields)
    else:
        kinds = fields.kinds("sliding_window_pattern", {"L": "window", "G": "full"}, tiled=True)
    return attention_reading(fields, drafts(fields, kinds, head_dim=head_dim_or_quotient(fields)))


def first_of_four(*, heads: bool = False) -> Family:
    """A reader of `layer_types`; where they are absent, of full attention in the first and every
    fourth layer after it. `heads`: whether the model class defines key heads and head_dim by others
    where they are absent.
    """

    def read(fields: Fields) -> Reading:
        kinds = listed(fields)
        notes = []
        if kinds is None:
            fields.refuse_recurrent_looks()
            kinds = ["full" if i % 4 == 0 else "window" for i in range(fields.layers())]
            notes = [
                "full attention in every 4th layer from the first on (assumed): the file does not"
                " say, and transformers takes it so"
            ]
        d = head_dim_or_quotient(fields) if heads else None
        kv = kv_heads_or_heads(fields) if heads else None
        return attention_reading(fields, drafts(fields, kinds, head_dim=d, kv_heads=kv), notes)

    return read


def gemma_3n(fields: Fields) -> Reading:
    """Gemma 3n: `layer_types`, or a full layer every 5; the last `num_kv_shared_layers` layers
    reuse keys and values of an earlier one (transformers takes 15 where that is absent).
    """
    shared = fields.needed("num_kv_shared_layers", low=0)
    kinds = listed(fields)
    notes = []
    if kinds is None:
        fields.refuse_recurrent_looks()
        kinds = every(fields.layers(), 5)
        notes = [period_note(5, "any other field for it")]
    layers, said = reusing(fields, kinds, drafts(fields, kinds), shared)
    return attention_reading(fields, layers, [*notes, *said], but=("num_kv_shared_layers",))


def llama4(fields: Fields) -> Reading:
    """Llama 4: `layer_types`, or `no_rope_layers` (1 chunked, 0 full), or a full layer every
    `no_rope_layer_interval` layers (4 if absent).
    """
    kinds = listed(fields)
    notes = []
    if kinds is None:
        fields.refuse_recurrent_looks()
        if fields.has("no_rope_layers") and fields.data["no_rope_layers"] != []:
            kinds = fields.kinds("no_rope_layers", {1: "chunked", 0: "full"})
        else:
            given = fields.optional_size("no_rope_layer_interval")
            kinds = [
                kind.replace("window", "chunked") for kind in every(fields.layers(), given or 4)
            ]
            notes = [] if given else [period_note(4, "no_rope_layer_interval")]
    return attention_reading(fields, drafts(fields, kinds), notes)


FAMILIES: dict[str, Family] = {
    **dict.fromkeys(("gemma2", "gpt_oss", "vaultgemma"), alternating(2)),
    **dict.fromkeys(("gemma3", "gemma3_text"), alternating(6, field="sliding_window_pattern")),
    **dict.fromkeys(("gemma3n", "gemma3n_text"), gemma_3n),
    "cohere2": cohere2,
    "olmo3": alternating(4, kv_heads=True, head_dim=True),
    **dict.fromkeys(("exaone4", "exaone_moe"), exaone),
    "afmoe": alternating(4, field="global_attn_every_n_layers", kv_heads=True),
    "cwm": first_of_four(),
    **dict.fromkeys(("granite_swa", "granitemoe_swa"), first_of_four(heads=True)),
    **dict.fromkeys(("llama4", "llama4_text"), llama4),
}
CLASSES: dict[str, str] = {
    "Olmo3ForCausalLM": "olmo3",
    "Cohere2ForCausalLM": "cohere2",
    "GraniteSWAForCausalLM": "granite_swa",
    "GraniteMoeSWAForCausalLM": "granitemoe_swa",
    "Gemma2ForCausalLM": "gemma2",
    "Gemma3ForCausalLM": "gemma3_text",
    "Gemma3ForConditionalGeneration": "gemma3",
    "GptOssForCausalLM": "gpt_oss",
    "Exaone4ForCausalLM": "exaone4",
    "Llama4ForCausalLM": "llama4_text",
    "Llama4ForConditionalGeneration": "llama4",
}
