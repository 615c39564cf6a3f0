"""Files of a model type that no reader knows, read by their usual fields: lists of layers first,
then periods, then attention alone.

What only the model's code knows is never guessed: which recurrence a layer has, or how layers are
told apart by other fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from separatrix.architecture.hf.attention import (
    attention_without_types,
    chunked_attention,
    full_attention,
    head_dim_or_quotient,
    latent_attention,
    window_attention,
)
from separatrix.architecture.hf.draft import Draft, Reading, Size
from separatrix.architecture.hf.families.decoders import switched_kinds
from separatrix.architecture.hf.families.deepseek import (
    deepseek_v4,
    indexed_latents,
    refuse_shared_indexers,
)
from separatrix.architecture.hf.families.minimax_softmax import indexed_blocks, minimax_m3
from separatrix.architecture.hf.families.own_heads import mimo, smallthinker
from separatrix.architecture.hf.fields import Fields, shown
from separatrix.architecture.hf.stack import attention_reading, every, listed
from separatrix.errors import ConfigError
from separatrix.evidence.canonical import json_object
from separatrix.mechanisms import Full, PositionWise, ShortConvolution

_RECURRENT = "recurrent"
_BOTH = "attention and recurrence"
_TYPES = {
    **{
        "full_attention": "full",
        "attention": "full",
        "sliding_attention": "window",
        "chunked_attention": "chunked",
    },
    **{
        "indexed_attention": "indexed",
        "deepseek_sparse_attention": "indexed",
        "minimax_m3_sparse": "blocks",
    },
    **{
        "linear_attention": _RECURRENT,
        "mamba": _RECURRENT,
        "hybrid": _BOTH,
        "hybrid_sliding": _BOTH,
    },
    **{"conv": "conv", "moe": "mlp", "mlp": "mlp"},
}
_LISTS = (
    ("layer_types", _TYPES),
    ("layers_block_type", _TYPES),
    ("hybrid_override_pattern", {"M": _RECURRENT, "*": "full", "-": "mlp", "E": "mlp"}),
    ("attn_type_list", {0: _RECURRENT, 1: "full"}),
)
"""Lists of the kind of every layer, and what their entries mean."""

_OTHERS = (
    *(
        "block_types",
        "_block_types",
        "attn_layer_indices",
        "full_attn_idxs",
        "attn_layer_idx",
        "global_attn_idx",
    ),
    *(
        "attn_layer_period",
        "full_attention_interval",
        "global_attn_every_n_layers",
        "no_rope_layers",
        "no_rope_layer_interval",
    ),
)
"""Fields that tell layers apart, of which only the model's code knows how."""

_ODD = (
    *(
        "attn",
        "attn_mode",
        "ssm_cfg",
        "state_size",
        "d_state",
        "conv_kernel",
        "conv_L_cache",
        "use_short_conv",
        "short_conv_kernel_size",
    ),
    *(
        "sparse_config",
        "sparse_attention_config",
        "nsa_config",
        "moba_config",
        "attention_types",
        "attn_config",
        "use_mla",
    ),
    *(
        "global_head_dim",
        "num_global_key_value_heads",
        "swa_head_dim",
        "swa_num_attention_heads",
        "swa_num_key_value_heads",
    ),
    *("attention_other_setting", "num_sliding_attention_heads"),
)
"""Fields of recurrent or sparse mixers, or of layers with heads of their own: a file with one of
them is no usual decoder.
"""


_INDEXER = ("index_topk", "index_head_dim", "index_n_heads")


def probe(fields: Fields, known: Iterable[str]) -> Reading:
    """The layers of a file by its usual fields. Raises ConfigError where they do not tell;
    `known` are the model types that are read.
    """
    if not fields.has("num_hidden_layers") or not fields.has("num_attention_heads"):
        raise fields.unknown_family(known)
    notes = [f"{_unknown(fields)}: read by its usual fields (assumed)"]
    if not fields.has("head_dim") and not fields.has("kv_lora_rank"):
        notes.append(
            "head_dim is hidden_size / num_attention_heads (assumed), as in most model classes: the"
            " file does not give it"
        )
    try:
        reading = _explicit(fields) or _periodic(fields) or _plain(fields)
    except ConfigError as error:
        near = fields.nearest(known)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise fields.error(
            f"{_unknown(fields)}{hint}, and its usual fields do not tell:"
            f" {str(error).removeprefix(f'{fields.where}: ')}"
        ) from None
    return Reading(reading.layers, (*notes, *reading.notes))


def _unknown(fields: Fields) -> str:
    return (
        f"'model_type' is {shown(fields.data['model_type'])}, which is not known"
        if fields.has("model_type")
        else "'model_type' is missing"
    )


def _explicit(fields: Fields) -> Reading | None:
    """By a list of the kind of every layer."""
    special: tuple[tuple[bool, Callable[[Fields], Reading]], ...] = (
        (
            fields.has("compress_ratios")
            or _names(fields, "compressed_sparse_attention", "heavily_compressed_attention"),
            deepseek_v4,
        ),
        (fields.has("hybrid_layer_pattern"), mimo),
        (fields.has("sliding_window_layout"), smallthinker),
        (_freq(fields), minimax_m3),
    )
    for there, reader in special:
        if there:
            return reader(fields)
    found = [
        (name, kinds)
        for name, words in _LISTS
        if (kinds := listed(fields, name, words)) is not None
    ]
    if not found:
        return None
    name, kinds = found[0]
    for other, theirs in found[1:]:
        if theirs != kinds:
            raise fields.error(
                f"'{name}' and '{other}' both list the layers and disagree; remove the wrong one"
            )
    for kind in (_RECURRENT, _BOTH):
        if kind in kinds:
            times = kinds.count(kind)
            raise fields.error(
                f"'{name}' makes {times} of {len(kinds)} layers {kind}, but does not say"
                " which recurrence that is; pass --pattern, such as --pattern '(mamba2*7 + full)*4'"
            )
    return _made(fields, kinds, but=("conv_L_cache",) if "conv" in kinds else ())


def _made(fields: Fields, kinds: list[str], *, but: tuple[str, ...] = ()) -> Reading:
    fields.refuse_recurrent_looks()
    _refuse_odd(fields, but=but)
    made = {kind: _makers(kind)(fields) for kind in dict.fromkeys(kinds)}
    return attention_reading(fields, [made[kind] for kind in kinds])


def _makers(kind: str) -> Callable[[Fields], Draft]:
    makers: dict[str, Callable[[Fields], Draft]] = {
        "full": _whole,
        "window": lambda fields: window_attention(fields, head_dim=_head_dim(fields)),
        "chunked": lambda fields: chunked_attention(fields, head_dim=_head_dim(fields)),
        "indexed": _indexed,
        "blocks": lambda fields: indexed_blocks(fields.section("sparse_attention_config")),
        "conv": lambda fields: Draft(
            ShortConvolution,
            {
                "width": fields.size("hidden_size"),
                "conv": fields.size("conv_L_cache"),
                "format": fields.model_format(),
            },
        ),
        "mlp": lambda fields: Draft(PositionWise, {"format": fields.model_format()}),
    }
    return makers[kind]


def _whole(fields: Fields) -> Draft:
    """Full attention, latent where the file has `kv_lora_rank`."""
    if fields.has("kv_lora_rank"):
        return latent_attention(fields)
    return full_attention(fields, head_dim=_head_dim(fields))


def _head_dim(fields: Fields) -> Size:
    """Of grouped heads. Raises ConfigError where the file has fields of latent attention or of
    values with a dimension of their own.
    """
    for name in ("kv_lora_rank", "v_head_dim"):
        if fields.has(name):
            raise fields.error(
                f"'{name}' is there, and what these layers cache then follows from the model's code"
                " alone; pass --pattern"
            )
    return head_dim_or_quotient(fields)


def _indexed(fields: Fields) -> Draft:
    refuse_shared_indexers(fields)
    return indexed_latents(fields)


def _periodic(fields: Fields) -> Reading | None:
    """By a period. Read is `sliding_window_pattern` alone, which means one thing in every family
    that has it.
    """
    name = fields.find("sliding_window_pattern", "_sliding_window_pattern")
    if name is None:
        return None
    return _made(fields, every(fields.layers(), fields.needed(name)))


def _plain(fields: Fields) -> Reading:
    """By the usual fields of attention alone."""
    if fields.has("sliding_window") and fields.has("max_window_layers"):
        return _made(fields, switched_kinds(fields, unless_said=True))
    if not fields.has("sliding_window") and not fields.flag("use_sliding_window"):
        # without a window it says nothing
        fields.harmless("max_window_layers")
    fields.refuse_recurrent_looks()
    _refuse_odd(fields)
    layer = _indexed(fields) if any(fields.has(name) for name in _INDEXER) else _whole(fields)
    if layer.cls is Full:
        layer = attention_without_types(fields, head_dim=_head_dim(fields))
    return attention_reading(fields, [layer] * fields.layers())


def _refuse_odd(fields: Fields, *, but: tuple[str, ...] = ()) -> None:
    """Raises ConfigError for fields that a usual decoder does not have."""
    typed = fields.has("layer_types")
    for name in (*(() if typed else _OTHERS), *_ODD):
        if fields.has(name) and name not in but:
            raise fields.error(
                f"'{name}' is there, and only the model's code tells what it means for the layers;"
                " pass --pattern, such as --pattern '(mamba2*7 + full)*4'"
            )


def _names(fields: Fields, *words: str) -> bool:
    types = fields.data.get("layer_types")
    return isinstance(types, list) and any(word in types for word in words)


def _freq(fields: Fields) -> bool:
    inner = json_object(fields.data.get("sparse_attention_config"))
    return inner is not None and inner.get("sparse_attention_freq") is not None
