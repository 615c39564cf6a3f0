"""Files of a model type that no reader knows, read by their usual fields: lists of layers first,
then periods, then attention alone.

What only the model's code knows is never guessed: which recurrence a layer has, or how layers are
told apart by other fields.
"""

from __future__ import annotations

from collections.abc import Iterable

from separatrix.core.errors import ConfigError
from separatrix.core.evidence.canonical import json_object
from separatrix.stacks.architecture.hf.draft import Reading, Size
from separatrix.stacks.architecture.hf.fields import Fields, shown
from separatrix.stacks.architecture.hf.interpreter import finished, kinds_of, read
from separatrix.stacks.architecture.hf.row import (
    DIM,
    WORDS,
    Found,
    Listed,
    Mixer,
    Row,
    every,
    plain,
    softmax,
    switched,
)
from separatrix.stacks.architecture.hf.rows import ROWS
from separatrix.stacks.architecture.hf.rows.latent import (
    BLOCKS,
    INDEXED_LATENT,
    LATENT,
    own_indexers,
)
from separatrix.stacks.architecture.hf.rows.recurrent import SHORT_CONVOLUTION
from separatrix.stacks.mechanisms import PositionWise

_RECURRENT = "recurrent"
_BOTH = "attention and recurrence"
_TYPES = {
    **WORDS,
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
    Listed("layer_types", _TYPES),
    Listed("layers_block_type", _TYPES),
    Listed("hybrid_override_pattern", {"M": _RECURRENT, "*": "full", "-": "mlp", "E": "mlp"}),
    Listed("attn_type_list", {0: _RECURRENT, 1: "full"}),
)
"""Lists of the kind of every layer, and what their entries mean."""

_OTHERS = (
    *("block_types", "_block_types", "attn_layer_indices", "full_attn_idxs", "attn_layer_idx"),
    "global_attn_idx",
    *("attn_layer_period", "full_attention_interval", "global_attn_every_n_layers"),
    *("no_rope_layers", "no_rope_layer_interval"),
)
"""Fields that tell layers apart, of which only the model's code knows how."""

_ODD = (
    *("attn", "attn_mode", "ssm_cfg", "state_size", "d_state", "conv_kernel", "conv_L_cache"),
    *("use_short_conv", "short_conv_kernel_size"),
    *("sparse_config", "sparse_attention_config", "nsa_config", "moba_config"),
    *("attention_types", "attn_config", "use_mla"),
    *("global_head_dim", "num_global_key_value_heads", "swa_head_dim"),
    *("swa_num_attention_heads", "swa_num_key_value_heads"),
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
        reading = _told(fields)
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


def _told(fields: Fields) -> Reading:
    special = (
        (
            fields.has("compress_ratios")
            or _names(fields, "compressed_sparse_attention", "heavily_compressed_attention"),
            "deepseek_v4",
        ),
        (fields.has("hybrid_layer_pattern"), "mimo_v2_flash"),
        (fields.has("sliding_window_layout"), "smallthinker"),
        (_freq(fields), "minimax_m3"),
    )
    for there, kind in special:
        if there:
            return read(ROWS[kind], fields)
    kinds, said = kinds_of(_ROW, fields)
    for kind in (_RECURRENT, _BOTH):
        if kind in kinds:
            name = next(lists.field for lists in _LISTS if fields.has(lists.field))
            raise fields.error(
                f"'{name}' makes {kinds.count(kind)} of {len(kinds)} layers {kind}, but does not"
                " say which recurrence that is; pass --pattern, such as --pattern '(mamba2*7 +"
                " full)*4'"
            )
    fields.refuse_recurrent_looks()
    _refuse_odd(fields, but=("conv_L_cache",) if "conv" in kinds else ())
    return finished(_ROW, fields, (kinds, said))


def _periodic(fields: Fields) -> Found | None:
    """By a period. Read is `sliding_window_pattern` alone, which means one thing in every family
    that has it.
    """
    name = fields.find("sliding_window_pattern", "_sliding_window_pattern")
    return None if name is None else every(fields.needed(name), name)(fields)


def _plain(fields: Fields) -> Found:
    """By the usual fields of attention alone."""
    if fields.has("sliding_window") and fields.has("max_window_layers"):
        return switched(unless_said=True)(fields)
    if not fields.has("sliding_window") and not fields.flag("use_sliding_window"):
        # without a window it says nothing
        fields.harmless("max_window_layers")
    if any(fields.has(name) for name in _INDEXER):
        return ["indexed"] * fields.layers(), []
    if fields.has("kv_lora_rank"):
        return ["full"] * fields.layers(), []
    chunks = fields.has("attention_chunk_size") and not fields.has("sliding_window")
    return (["chunked"] * fields.layers(), []) if chunks else plain(fields)


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
    return DIM(fields)


_SOFTMAX = softmax(dims=_head_dim)
_ROW = Row(
    "unknown",
    {
        **_SOFTMAX,
        "full": lambda fields: (LATENT if fields.has("kv_lora_rank") else _SOFTMAX["full"])(fields),
        "indexed": lambda fields: INDEXED_LATENT(own_indexers(fields)),
        "blocks": lambda fields: BLOCKS(fields.section("sparse_attention_config")),
        "conv": SHORT_CONVOLUTION,
        "mlp": Mixer(PositionWise),
    },
    lists=_LISTS,
    otherwise=(_periodic, _plain),
)


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
