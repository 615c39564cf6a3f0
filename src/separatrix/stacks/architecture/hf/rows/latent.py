"""Latent attention (MLA), latent attention read through an indexer (DSA), compressed attention
(DeepSeek-V4), and blocks that an indexer chooses (MiniMax-M3).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from separatrix.core.evidence.canonical import json_list
from separatrix.stacks.architecture.hf.fields import MOST_LAYERS, Fields, shown
from separatrix.stacks.architecture.hf.lists import only
from separatrix.stacks.architecture.hf.query_norms import EACH, WHOLE
from separatrix.stacks.architecture.hf.rotary_fields import Usual
from separatrix.stacks.architecture.hf.row import (
    FULL,
    Found,
    Layers,
    Listed,
    Mixer,
    Of,
    Row,
    everywhere,
    softmax,
)
from separatrix.stacks.architecture.hf.ways import Way, based
from separatrix.stacks.mechanisms import DSA, Compressed, Indexed, Latent, Window

_FULL = Listed("layer_types", FULL)
UNCACHED = ("head_dim", "num_key_value_heads", "qk_head_dim")
"""Fields of files with latent attention that size nothing: every head reads the same latents."""
LATENT = Mixer(
    Latent,
    {
        "heads": "num_attention_heads",
        "head_dim": "qk_nope_head_dim",
        "value_dim": "v_head_dim",
        "latent": "kv_lora_rank",
        "rope_dim": lambda fields: fields.size("qk_rope_head_dim", low=0),
    },
    UNCACHED,
)
"""The cache holds kv_lora_rank + qk_rope_head_dim numbers per token."""
INDEXED_LATENT = Mixer(
    DSA,
    {
        **LATENT.sizes,
        "query_latent": lambda fields: fields.optional_size("q_lora_rank"),
        "index_heads": "index_n_heads",
        "index_dim": "index_head_dim",
        "topk": "index_topk",
    },
    UNCACHED,
)
"""And the indexer's key of index_head_dim."""


def own_indexers(fields: Fields) -> Fields:
    """Raises ConfigError where a layer takes the choice of another layer's indexer: it keeps no
    indexer keys, which is not supported.
    """
    every = fields.optional_size("index_topk_freq")
    types = fields.value("indexer_types")
    pattern = fields.value("index_topk_pattern")
    shared: list[tuple[str, object]] = (
        [("index_topk_freq", every)] if every not in (None, 1) and types is pattern is None else []
    )
    for name, value, own in (
        ("indexer_types", types, "full"),
        ("index_topk_pattern", pattern, "F"),
    ):
        entries = value if isinstance(value, str) else json_list(value)
        if value is not None and (
            entries is None or any(entry not in (own, "full") for entry in entries)
        ):
            shared.append((name, value))
    for name, value in shared:
        raise fields.error(
            f"'{name}' is {shown(value)}: layers that share an indexer are not supported; pass the"
            " stack as a spec"
        )
    return fields


_MLA = Row(
    "deepseek",
    {"full": LATENT},
    lists=(_FULL,),
    otherwise=(everywhere("full"),),
    before=lambda fields: only(only(fields, "use_mla", usual=(True,)), "index_topk"),
)
_DSA = Row(
    "deepseek",
    {"indexed": INDEXED_LATENT},
    lists=(
        Listed(
            "layer_types", {"indexed_attention": "indexed", "deepseek_sparse_attention": "indexed"}
        ),
    ),
    otherwise=(everywhere("indexed"),),
    before=own_indexers,
)

_RATES = ("heavily_compressed_attention", "compressed_sparse_attention")
_OLD_RATES = {"sparse": "compress_rate_csa", "heavy": "compress_rate_hca"}
_ONE: dict[str, Of] = {
    "heads": "num_attention_heads",
    "head_dim": "head_dim",
    "size": "sliding_window",
}


def _rate(kind: str, usual: int) -> Of:
    """Tokens per compressed entry, where `compress_ratios` does not say it."""
    name = f"compress_rates.{_RATES[kind == 'sparse']}"
    return lambda fields: (
        usual if fields.has("compress_ratios") else fields.size(name, _OLD_RATES[kind])
    )


_V4 = Row(
    "deepseek",
    {
        # one vector of head_dim numbers is key and value of all heads
        "window": Mixer(Window, {**_ONE, "kv_heads": 1, "shared": True}),
        "sparse": Mixer(
            Compressed,
            {
                **_ONE,
                "index_heads": "index_n_heads",
                "index_dim": "index_head_dim",
                "topk": "index_topk",
                "ratio": _rate("sparse", 4),
                "overlap": True,
            },
        ),
        "heavy": Mixer(Compressed, {**_ONE, "ratio": _rate("heavy", 128)}),
    },
    lists=(
        Listed("compress_ratios", {0: "window", 4: "sparse", 128: "heavy"}),
        Listed(
            "layer_types",
            {
                "sliding_attention": "window",
                "compressed_sparse_attention": "sparse",
                "heavily_compressed_attention": "heavy",
            },
        ),
    ),
    otherwise=(),
    before=lambda fields: only(fields.section("compress_rates"), "num_key_value_heads", usual=(1,)),
    silent=(
        *("index_n_heads", "index_head_dim", "index_topk", *_OLD_RATES.values()),
        *(f"compress_rates.{name}" for name in _RATES),
    ),
    way=Way(usual=Usual(10_000, compressed=160_000, local_scaled=False, counted=True)),
)

_SECTION = "sparse_attention_config"
BLOCKS = Mixer(
    Indexed,
    {
        **softmax()["full"].sizes,
        "index_heads": (f"{_SECTION}.sparse_num_index_heads", "index_n_heads"),
        "index_dim": (f"{_SECTION}.sparse_index_dim", "index_head_dim"),
        "topk": (f"{_SECTION}.sparse_topk_blocks", "index_topk_blocks"),
        "block": (f"{_SECTION}.sparse_block_size", "index_block_size"),
    },
)
"""A layer keeps all keys and values and one indexer key per token, and reads the best blocks."""


@dataclass(frozen=True)
class _Switched(Listed):
    """1 sparse, 0 full; all full where `use_sparse_attention` is false."""

    def __call__(self, fields: Fields) -> list[str] | None:
        kinds = super().__call__(fields)
        off = fields.flag(f"{_SECTION}.use_sparse_attention") is False
        return ["full"] * len(kinds) if kinds is not None and off else kinds


def _no_values(fields: Fields, kinds: list[str], layers: Layers) -> tuple[Layers, list[str]]:
    """Raises ConfigError where a sparse layer's indexer keeps a value per token too."""
    name = f"{_SECTION}.sparse_disable_index_value"
    off = Listed(name, {1: "off", 0: "on"})(fields) or []
    if ("sparse", "on") in zip(kinds, off, strict=False):
        raise fields.error(
            f"'{name}' is {shown(fields.data[name])}: indexers that keep values are not supported;"
            " pass the stack as a spec"
        )
    return layers, []


_M3 = Row(
    "minimax softmax",
    {"full": softmax()["full"], "sparse": BLOCKS},
    lists=(
        _Switched(f"{_SECTION}.sparse_attention_freq", {1: "sparse", 0: "full"}),
        Listed("layer_types", FULL | {"minimax_m3_sparse": "sparse"}),
    ),
    otherwise=(),
    before=lambda fields: fields.section(_SECTION),
    silent=(
        # blocks that are always read, beside those that the indexer chooses
        *(f"{_SECTION}.sparse_{name}" for name in ("init_block", "local_block", "score_type")),
        *(f"{_SECTION}.sparse_{name}" for name in ("num_index_heads", "index_dim")),
        *(f"{_SECTION}.sparse_{name}" for name in ("topk_blocks", "block_size")),
        *("index_n_heads", "index_head_dim", "index_topk_blocks", "index_block_size"),
        "index_local_blocks",
    ),
    after=_no_values,
    way=based(5_000_000, dims=64),
    norm=EACH,
)


def _twice(fields: Fields) -> Fields:
    """LongCat-Flash: `num_layers` layers with two latent attentions each, which
    `num_hidden_layers`, where it is there, counts one by one.
    """
    own = fields.layers("num_layers")
    stated = fields.optional_size("num_hidden_layers", high=2 * MOST_LAYERS)
    if stated not in (None, own, 2 * own):
        raise fields.error(
            f"'num_hidden_layers' is {stated}, but each of the 'num_layers' = {own} layers has two"
            " attentions; correct one of them"
        )
    return only(fields, "attention_method", usual=("MLA",))


def _two_each(fields: Fields) -> Found:
    own = fields.layers("num_layers")
    if 2 * own > MOST_LAYERS:
        raise fields.error(
            f"'num_layers' is {own}, and two attentions in each are more than {MOST_LAYERS:,} in"
            " all; correct it"
        )
    why = "two attentions in every layer"
    note = f"every layer counts 2 times ({why}): each pass keeps keys and values of its own"
    return ["full"] * (2 * own), [note]


_LONGCAT = Row(
    "looped",
    {"full": LATENT},
    lists=(),
    otherwise=(_two_each,),
    before=_twice,
    # factors of the latents
    silent=("mla_scale_q_lora", "mla_scale_kv_lora"),
    way=based(10_000_000),
)

ROWS: dict[str, Row] = {
    "deepseek_v2": replace(_MLA, mlps="deepseek"),
    "deepseek_v3": replace(_MLA, mlps="deepseek"),
    "kimi_k2": replace(_MLA, way=based(None)),
    "mistral4": replace(_MLA, way=based(10_000, scaling="yarn_128_32_1_8192")),
    "glm4_moe_lite": _MLA,
    "minicpm3": _MLA,
    "axk1": _MLA,
    "youtu": _MLA,
    "deepseek_v32": replace(_DSA, mlps="deepseek"),
    "glm_moe_dsa": _DSA,
    "deepseek_v4": _V4,
    "minimax_m2": Row(
        "minimax softmax",
        {"full": softmax()["full"]},
        lists=(Listed("attn_type_list", {1: "full"}), _FULL),
        otherwise=(everywhere("full"),),
        way=based(5_000_000),
        norm=WHOLE,
    ),
    "minimax_m3": _M3,
    "minimax_m3_vl": _M3,
    "minimax_m3_vl_text": _M3,
    "longcat_flash": _LONGCAT,
}
