"""MiniMax models of softmax attention alone: M2 (full), M3 (full, and blocks that an indexer
chooses).
"""

from __future__ import annotations

from separatrix.architecture.hf.attention import full_attention, softmax_sizes
from separatrix.architecture.hf.draft import Draft, Reading
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields, shown
from separatrix.architecture.hf.stack import attention_reading, listed
from separatrix.mechanisms import Indexed

_M3 = {"full_attention": "full", "attention": "full", "minimax_m3_sparse": "sparse"}
_SECTION = "sparse_attention_config"
_ALWAYS = (
    *(f"{_SECTION}.sparse_{name}" for name in ("init_block", "local_block", "score_type")),
    "index_local_blocks",
)
_SIZES = ("num_index_heads", "index_dim", "topk_blocks", "block_size")
_INDEXER = ("index_n_heads", "index_head_dim", "index_topk_blocks", "index_block_size")


def minimax_m2(fields: Fields) -> Reading:
    """All layers full; `attn_type_list`, where it is there, holds 1 for each."""
    lists = (
        listed(fields, "attn_type_list", {1: "full"}),
        listed(fields, words={"full_attention": "full", "attention": "full"}),
    )
    if lists == (None, None):
        fields.refuse_recurrent_looks()
    return attention_reading(fields, [full_attention(fields)] * fields.layers())


def minimax_m3(fields: Fields) -> Reading:
    """`sparse_attention_config.sparse_attention_freq` (1 sparse) or `layer_types`; a sparse layer
    keeps all keys and values and one indexer key of `sparse_index_dim` per token, and reads the
    `sparse_topk_blocks` best blocks of `sparse_block_size`.
    """
    inner = fields.section(_SECTION)
    freq = listed(inner, f"{_SECTION}.sparse_attention_freq", {1: "sparse", 0: "full"})
    typed = listed(fields, words=_M3)
    if freq is not None and inner.flag(f"{_SECTION}.use_sparse_attention") is False:
        freq = ["full"] * len(freq)
    if freq is not None and typed is not None and freq != typed:
        raise fields.error(
            f"'{_SECTION}' and 'layer_types' both list the layers and disagree; remove the"
            " wrong one"
        )
    kinds = typed if freq is None else freq
    if kinds is None:
        raise fields.error(
            f"neither '{_SECTION}.sparse_attention_freq' nor 'layer_types' is there; add one of"
            " them"
        )
    # blocks that are always read, beside those that the indexer chooses
    fields.harmless(*_ALWAYS, *_INDEXER, *(f"{_SECTION}.sparse_{name}" for name in _SIZES))
    _refuse_index_values(inner, kinds)
    full = full_attention(fields)
    sparse = indexed_blocks(inner) if "sparse" in kinds else None
    return attention_reading(
        fields, [sparse if kind == "sparse" and sparse else full for kind in kinds]
    )


def indexed_blocks(inner: Fields) -> Draft:
    """Indexed attention over blocks of grouped keys and values, in either spelling of its sizes."""
    return Draft(
        Indexed,
        softmax_sizes(inner)
        | {
            "index_heads": inner.size(f"{_SECTION}.sparse_num_index_heads", "index_n_heads"),
            "index_dim": inner.size(f"{_SECTION}.sparse_index_dim", "index_head_dim"),
            "topk": inner.size(f"{_SECTION}.sparse_topk_blocks", "index_topk_blocks"),
            "block": inner.size(f"{_SECTION}.sparse_block_size", "index_block_size"),
        },
    )


def _refuse_index_values(inner: Fields, kinds: list[str]) -> None:
    """Raises ConfigError where a sparse layer's indexer keeps a value per token too, which is
    not supported.
    """
    name = f"{_SECTION}.sparse_disable_index_value"
    off = listed(inner, name, {1: "off", 0: "on"})
    if off is not None and any(
        kind == "sparse" and value == "on" for kind, value in zip(kinds, off, strict=True)
    ):
        raise inner.error(
            f"'{name}' is {shown(inner.data[name])}: indexers that keep values are not supported;"
            " pass the stack as a spec"
        )


FAMILIES: dict[str, Family] = {
    "minimax_m2": minimax_m2,
    **dict.fromkeys(("minimax_m3", "minimax_m3_vl", "minimax_m3_vl_text"), minimax_m3),
}
CLASSES: dict[str, str] = {
    "MiniMaxM2ForCausalLM": "minimax_m2",
    "MiniMaxM3ForCausalLM": "minimax_m3",
}
