"""Model types with recurrences or convolutions, as transformers, mamba_ssm and the code of releases
define them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from separatrix.core.evidence.canonical import json_list
from separatrix.stacks.architecture.hf.draft import Draft, Size, Value
from separatrix.stacks.architecture.hf.factors import scaled
from separatrix.stacks.architecture.hf.fields import Fields, shown
from separatrix.stacks.architecture.hf.lists import indices, only, partition
from separatrix.stacks.architecture.hf.notes import state_note
from separatrix.stacks.architecture.hf.query_norms import EACH, WHOLE
from separatrix.stacks.architecture.hf.rotary_fields import Usual
from separatrix.stacks.architecture.hf.row import (
    DIM,
    FULL,
    HIDDEN_PER_HEAD,
    KV_STATED,
    Found,
    Listed,
    Maker,
    Mixer,
    Numbered,
    Of,
    Row,
    dividing,
    divisor,
    either,
    every,
    everywhere,
    kv_or_heads,
    period,
    plain,
    quotient,
    softmax,
    times,
)
from separatrix.stacks.architecture.hf.rows.latent import LATENT
from separatrix.stacks.architecture.hf.ways import (
    Way,
    based,
    by_type,
    hymba,
    said,
    unless,
    unless_null,
    unplaced,
    where,
)
from separatrix.stacks.mechanisms import (
    KDA,
    MLSTM,
    RGLRU,
    RWKV4,
    Full,
    GatedDeltaNet,
    Lightning,
    Mamba,
    Mamba2,
    PositionWise,
    Reused,
    ReusedWindow,
    ShortConvolution,
    Window,
)

_WORDS = FULL | {"mamba": "recurrent", "linear_attention": "recurrent"}
_LISTS = (Listed("layer_types", _WORDS), Listed("layers_block_type", _WORDS))
_NOWHERE = Way(unplaced)


def _alone(*, kv: Of = KV_STATED, dims: Of = DIM) -> Maker:
    """Full attention of a model class that has no other: a file that asks for a window is
    refused.
    """
    mixer = softmax(kv=kv, dims=dims)["full"]

    def make(fields: Fields) -> Draft:
        for name in ("sliding_window", "attention_chunk_size"):
            off = name == "sliding_window" and fields.flag("use_sliding_window") is False
            if fields.has(name) and not off:
                raise fields.error(
                    f"'{name}' is {shown(fields.data[name])}, but attention of this model type sees"
                    " every token; set it to null"
                )
        return mixer(fields)

    return make


def _by_fields(dims: Of) -> Maker:
    """Attention that slides or not as the usual fields say."""
    mixers = softmax(dims=dims)
    return lambda fields: mixers[plain(fields)[0][0]](fields)


def _format_in(name: str) -> Callable[[Fields], Value]:
    """The format of the state, where a field states it."""
    return lambda fields: fields.number_format(name) or "fp32"


def _state_in(name: str) -> Callable[[Fields], str]:
    def note(fields: Fields) -> str:
        stated = fields.number_format(name)
        return state_note(stated or "fp32", name if stated else None)

    return note


# ---- Mamba


def _rank(fields: Fields) -> int | None:
    """The rank of the step size, where it is another than the model width / 16 (`auto`)."""
    name = fields.find("time_step_rank", "mamba_dt_rank", "dt_rank", "ssm_cfg.dt_rank")
    if name is None or fields.data[name] == "auto":
        return None
    rank = fields.optional_size(name)
    width = fields.optional_size("hidden_size", "d_model")
    return None if width is not None and rank == -(-width // 16) else rank


def mamba(width: Of, state: Of, conv: Of, norms: Of = 0) -> Mixer:
    """Mamba; `norms`: whether B, C and the step size's input are normed."""
    normed: Of = (lambda fields: bool(norms)) if isinstance(norms, int) else norms
    sizes: dict[str, Of] = {"width": width, "state": state, "conv": conv}
    return Mixer(Mamba, {**sizes, "rank": _rank, "norms": normed})


def mamba2(*, heads: Of, head_dim: Of, state: Of, groups: Of, conv: Of) -> Mixer:
    sizes: dict[str, Of] = {"heads": heads, "head_dim": head_dim, "state": state}
    return Mixer(Mamba2, {**sizes, "groups": dividing(groups, heads), "conv": conv})


def _per_head(
    width: Callable[[Fields], Size], heads: str, head_dim: str
) -> Callable[[Fields], Size]:
    """The field `head_dim`; width / heads where it is missing or "auto". Raises ConfigError where
    the three disagree.
    """

    def read(fields: Fields) -> Size:
        number, whole = fields.size(heads), width(fields)
        if not fields.has(head_dim) or fields.data[head_dim] == "auto":
            return fields.quotient(whole, number, f"the width of the recurrence / '{heads}'")
        each = fields.size(head_dim)
        known = isinstance(number, int) and isinstance(each, int) and isinstance(whole, int)
        if known and number * each != whole:
            raise fields.error(
                f"'{heads}' x '{head_dim}' is {number} x {each}, but the recurrence has {whole}"
                " channels; correct one of them"
            )
        return each

    return read


def expanded(fields: Fields) -> Size:
    """The channels of a Mamba: `intermediate_size`, which older files repeat as `d_inner`, or
    `expand` x `hidden_size`. Raises ConfigError where two of them disagree.
    """
    ways: list[tuple[str, Size]] = [
        (f"'{name}'", fields.size(name))
        for name in ("intermediate_size", "d_inner")
        if fields.has(name)
    ]
    if fields.has("expand") or not ways:
        width = scaled(fields, fields.size("hidden_size", "d_model"), "expand")
        ways.append(("'expand' x hidden_size", width))
    known = [(what, size) for what, size in ways if isinstance(size, int)]
    for what, size in known[1:]:
        if size != known[0][1]:
            raise fields.error(
                f"{known[0][0]} is {known[0][1]}, but {what} is {size}; correct one of them"
            )
    return known[0][1] if known else ways[0][1]


_EXPANDED_2 = times("hidden_size", "expand")
_HEADS_2 = _per_head(_EXPANDED_2, "num_heads", "head_dim")


def heads_2(fields: Fields) -> Size:
    """Heads of a Mamba-2; those that are not in the file are channels / `head_dim`."""
    if fields.has("num_heads"):
        return fields.size("num_heads")
    width = _EXPANDED_2(fields)
    return fields.quotient(width, fields.size("head_dim"), "expand x hidden_size / head_dim")


def head_dim_2(fields: Fields) -> Size:
    checked = fields.has("num_heads") and isinstance(_EXPANDED_2(fields), int)
    return _HEADS_2(fields) if checked else fields.size("head_dim")


_OF_MAMBA = Listed("layer_types", {"linear_attention": "recurrent", "mamba": "recurrent"})


def _mamba_alone(mixer: Mixer) -> Row:
    return Row(
        "mamba",
        {"recurrent": mixer},
        lists=(_OF_MAMBA,),
        otherwise=(everywhere("recurrent"),),
        stateful=True,
        way=_NOWHERE,
    )


_MAMBA_EXPANDED = times("hidden_size", "mamba_expand")


def _bamba_2(width: Callable[[Fields], Size]) -> Mixer:
    return mamba2(
        heads="mamba_n_heads",
        head_dim=_per_head(width, "mamba_n_heads", "mamba_d_head"),
        state="mamba_d_state",
        groups="mamba_n_groups",
        conv="mamba_d_conv",
    )


_BAMBA = Row(
    "bamba",
    {"full": _alone(), "recurrent": _bamba_2(_MAMBA_EXPANDED)},
    lists=(*_LISTS, Numbered("attn_layer_indices", "full", "recurrent")),
    otherwise=(),
    stateful=True,
)


def _falcon_width(fields: Fields) -> Size:
    """`mamba_d_ssm` wins over `mamba_expand` x `hidden_size`; null asks for the product, and where
    the field is missing the width is unknown.
    """
    if "mamba_d_ssm" in fields.data and not fields.has("mamba_d_ssm"):
        return _MAMBA_EXPANDED(fields)
    fields.harmless("mamba_expand")
    return fields.size("mamba_d_ssm")


_HYBRID = {"hybrid": "hybrid"}
_MAMBAS: dict[str, Row] = {
    "mamba": _mamba_alone(mamba(expanded, "state_size", "conv_kernel")),
    "falcon_mamba": replace(
        _mamba_alone(mamba("intermediate_size", "state_size", "conv_kernel", norms=1)),
        # of the released files says something else
        silent=("expand",),
    ),
    "mamba2": _mamba_alone(
        mamba2(
            heads=heads_2,
            head_dim=head_dim_2,
            state="state_size",
            groups="n_groups",
            conv="conv_kernel",
        )
    ),
    "jamba": Row(
        "jamba",
        {
            "full": _alone(),
            "recurrent": mamba(_MAMBA_EXPANDED, "mamba_d_state", "mamba_d_conv", norms=1),
        },
        lists=_LISTS,
        otherwise=(period("attn_layer_period", "attn_layer_offset"),),
        told_by=("attn_layer_period", "attn_layer_offset"),
        stateful=True,
        way=_NOWHERE,
    ),
    "bamba": replace(_BAMBA, way=Way(usual=Usual(part=0.5))),
    "granitemoehybrid": replace(_BAMBA, lists=_LISTS, way=Way(by_type)),
    "falcon_h1": Row(
        "bamba",
        {"hybrid": (_alone(), _bamba_2(_falcon_width))},
        lists=(Listed("layer_types", _HYBRID), Listed("layers_block_type", _HYBRID)),
        otherwise=(everywhere("hybrid"),),
        stateful=True,
    ),
}


# ---- Zamba

_ZAMBA_WORDS = {"mamba": "recurrent", "linear_attention": "recurrent", "hybrid": "hybrid"}
_ZAMBA_ATTENTION = softmax(
    # attention sees the input beside the hidden state
    dims=either(
        "attention_head_dim",
        quotient(
            lambda fields: 2 * fields.size("hidden_size"),
            "num_attention_heads",
            "2 x hidden_size / num_attention_heads",
        ),
    )
)["full"]
_ZAMBA_WIDTH = times("hidden_size", "mamba_expand", "expansion_factor")


def _zamba_2_heads(fields: Fields) -> Size:
    """expansion x hidden_size / headdim."""
    head_dim = fields.optional_size("mamba_headdim")
    stated = fields.optional_size("n_mamba_heads")
    what = "expansion x hidden_size / mamba_headdim"
    if head_dim is None:
        return fields.size("n_mamba_heads")
    heads = fields.quotient(_ZAMBA_WIDTH(fields), head_dim, what)
    if stated is not None and isinstance(heads, int) and heads != stated:
        raise fields.error(
            f"'n_mamba_heads' is {stated}, but {what} is {heads}; correct one of them"
        )
    return heads


def _zamba_period(fields: Fields) -> Found | None:
    """Two Mamba layers, a hybrid one, then hybrid iff i % `attn_layer_period` ==
    `attn_layer_offset`.
    """
    layers = fields.layers()
    if fields.has("attn_layer_period") and layers < 3:
        raise fields.error(
            f"'num_hidden_layers' is {layers}; without 'layers_block_type' this model type has at"
            " least 3 layers"
        )
    found = period("attn_layer_period", "attn_layer_offset")(fields)
    if found is None:
        return None
    later = ["hybrid" if kind == "full" else kind for kind in found[0][: layers - 3]]
    return ["recurrent", "recurrent", "hybrid", *later], []


def _zamba(mixer: Mixer) -> Row:
    return Row(
        "zamba",
        {"recurrent": mixer, "hybrid": (_ZAMBA_ATTENTION, mixer)},
        lists=(Listed("layers_block_type", _ZAMBA_WORDS), Listed("layer_types", _ZAMBA_WORDS)),
        otherwise=(),
        stateful=True,
        # the width of what attention sees, adapters of shared weights, and sizes that others settle
        silent=(
            *("attention_hidden_size", "num_mem_blocks", "kv_channels", "num_query_groups"),
            *("adapter_rank", "use_shared_attention_adapter", "n_mamba_heads", "mamba_headdim"),
            "hybrid_layer_ids",
        ),
        notes=(
            (
                "attention weights are shared between hybrid layers; each of them keeps keys and"
                " values of its own"
            ),
        ),
        bare=True,
    )


_ZAMBAS: dict[str, Row] = {
    "zamba": replace(
        _zamba(mamba(_MAMBA_EXPANDED, "mamba_d_state", "mamba_d_conv")),
        otherwise=(_zamba_period,),
        told_by=("attn_layer_period", "attn_layer_offset"),
        way=_NOWHERE,
    ),
    "zamba2": replace(
        _zamba(
            mamba2(
                heads=_zamba_2_heads,
                head_dim=either(
                    "mamba_headdim",
                    quotient(
                        _ZAMBA_WIDTH, _zamba_2_heads, "expansion x hidden_size / n_mamba_heads"
                    ),
                ),
                state=("mamba_d_state", "state_size"),
                groups="mamba_ngroups",
                conv=("mamba_d_conv", "conv_dimension"),
            )
        ),
        way=Way(where("use_mem_rope", otherwise=False)),
    ),
}


# ---- Nemotron-H, LFM2, RecurrentGemma

_NEMOTRON_WORDS = _WORDS | {"mlp": "mlp", "moe": "mlp"}
_NEMOTRON_LISTS = (
    Listed("hybrid_override_pattern", {"M": "recurrent", "*": "full", "-": "mlp", "E": "mlp"}),
    Listed("layers_block_type", _NEMOTRON_WORDS),
    Listed("layer_types", _NEMOTRON_WORDS),
)


def _as_long_as_listed(fields: Fields) -> Fields:
    """Nemotron-H: transformers' class takes the depth from the list, and saves no other."""
    values = (fields.data.get(lists.field) for lists in _NEMOTRON_LISTS)
    entries = (value if isinstance(value, str) else json_list(value) for value in values)
    listed = next((entry for entry in entries if entry is not None), None)
    if listed is None or fields.has("num_hidden_layers"):
        return fields
    return fields.replaced(num_hidden_layers=len(listed))


SHORT_CONVOLUTION = Mixer(ShortConvolution, {"width": "hidden_size", "conv": "conv_L_cache"})
_LFM = Row(
    "lfm2",
    {
        "full": _alone(),
        "conv": SHORT_CONVOLUTION,
    },
    lists=(Listed("layer_types", FULL | {"conv": "conv"}),),
    otherwise=(lambda fields: _found(Numbered("full_attn_idxs", "full", "conv")(fields)),),
    told_by=("full_attn_idxs",),
    stateful=True,
    # what the model class does not read: its convolutions have hidden_size channels
    silent=("conv_dim", "conv_dim_out", "num_heads"),
    way=based(1_000_000),
    norm=EACH,
)


def _found(kinds: list[str] | None) -> Found | None:
    return None if kinds is None else (kinds, [])


def _gemma_types(name: str) -> Listed:
    return Listed(name, {"recurrent": "recurrent", "attention": "window"}, tiled=True)


_CONVOLVED: dict[str, Row] = {
    "nemotron_h": Row(
        "nemotron_h",
        {
            "recurrent": Mixer(
                Mamba2,
                {
                    "heads": "mamba_num_heads",
                    "head_dim": "mamba_head_dim",
                    "state": "ssm_state_size",
                    "groups": dividing(("n_groups", "mamba_n_groups"), "mamba_num_heads"),
                    "conv": ("conv_kernel", "mamba_d_conv"),
                    "state_format": _format_in("mamba_ssm_cache_dtype"),
                },
            ),
            "full": _by_fields(("attention_head_dim", "head_dim")),
            "mlp": Mixer(PositionWise),
        },
        lists=_NEMOTRON_LISTS,
        otherwise=(),
        stateful=True,
        before=_as_long_as_listed,
        # heads * head_dim says the width
        silent=("expand",),
        state=_state_in("mamba_ssm_cache_dtype"),
        way=_NOWHERE,
    ),
    "lfm2": _LFM,
    "lfm2_moe": _LFM,
    "recurrent_gemma": Row(
        "recurrent_gemma",
        {
            "recurrent": Mixer(RGLRU, {"width": "lru_width", "conv": "conv1d_width"}),
            "window": softmax(window="attention_window_size")["window"],
        },
        lists=(_gemma_types("block_types"), _gemma_types("_block_types")),
        otherwise=(),
        stateful=True,
        way=Way(usual=Usual(part=0.5)),
    ),
}


# ---- delta rules

_GATED = Way(usual=Usual(part=0.25), gate="sigmoid")
GATED_DELTA = Mixer(
    GatedDeltaNet,
    {
        "heads": "linear_num_value_heads",
        "key_heads": divisor("linear_num_key_heads", "linear_num_value_heads"),
        "head_dim": "linear_key_head_dim",
        "value_dim": "linear_value_head_dim",
        "conv": "linear_conv_kernel_dim",
        "state_format": _format_in("mamba_ssm_dtype"),
    },
)
_QWEN = Row(
    "qwen3_next",
    {
        "full": _alone(dims="head_dim"),
        "recurrent": GATED_DELTA,
    },
    lists=_LISTS[:1],
    otherwise=(every(4, "full_attention_interval", others="recurrent"),),
    stateful=True,
    state=_state_in("mamba_ssm_dtype"),
    way=_GATED,
    norm=EACH,
)


def _last_of_four(fields: Fields) -> Found:
    """OLMo hybrid: full iff i % 4 == 3, and the last layer of a shorter stack."""
    kinds, said = every(4, others="recurrent")(fields)
    if len(kinds) < 4:
        kinds[-1] = "full"
    return kinds, said


_OLMO_KEYS = either("linear_num_key_heads", "num_attention_heads")
_OLMO_KEY_DIM = either(
    "linear_key_head_dim",
    # 0.75 as 3/4: integers only, so that the division is exact
    quotient(
        lambda fields: 3 * fields.size("hidden_size"),
        lambda fields: 4 * _OLMO_KEYS(fields),
        "0.75 x hidden_size / linear_num_key_heads",
    ),
)
_KDA_FULL = "linear_attn_config.full_attn_layers"
_KDA_LAYERS = "linear_attn_config.kda_layers"


@dataclass(frozen=True)
class _Kimi:
    """`linear_attn_config` lists the layers, numbered from 1: both kinds, or one of them."""

    field: str = "linear_attn_config"

    def __call__(self, fields: Fields) -> list[str] | None:
        if fields.has(_KDA_FULL) and fields.has(_KDA_LAYERS):
            full = partition(fields, _KDA_FULL, _KDA_LAYERS, fields.layers())
            return ["full" if each else "recurrent" for each in full]
        full = Numbered(_KDA_FULL, "full", "recurrent", base=None)(fields)
        return full or Numbered(_KDA_LAYERS, "recurrent", "full", base=None)(fields)


KIMI_DELTA = Mixer(
    KDA,
    {
        "heads": ("linear_attn_config.num_heads", "linear_num_heads"),
        "head_dim": ("linear_attn_config.head_dim", "linear_head_dim"),
        "conv": ("linear_attn_config.short_conv_kernel_size", "linear_conv_kernel_dim"),
    },
)
_KIMI = Row(
    "kimi",
    {
        "full": LATENT,
        "recurrent": KIMI_DELTA,
    },
    lists=(_Kimi(), _LISTS[0]),
    otherwise=(),
    told_by=(_KDA_FULL, _KDA_LAYERS),
    stateful=True,
    before=lambda fields: fields.section("linear_attn_config"),
    # residual connections that attend to earlier layers of the same token
    silent=("attn_res_block_size",),
    way=Way(unless("mla_use_nope")),
)
_DELTAS: dict[str, Row] = {
    "qwen3_next": replace(_QWEN, mlps="qwen"),
    "qwen3_5": _QWEN,
    "qwen3_5_text": _QWEN,
    "qwen3_5_moe": _QWEN,
    "qwen3_5_moe_text": _QWEN,
    "olmo_hybrid": Row(
        "olmo_hybrid",
        {
            "full": _alone(kv=kv_or_heads),
            "recurrent": Mixer(
                GatedDeltaNet,
                {
                    "heads": either("linear_num_value_heads", "num_attention_heads"),
                    "key_heads": dividing(
                        _OLMO_KEYS,
                        either("linear_num_value_heads", "num_attention_heads"),
                        named="'linear_num_key_heads'",
                    ),
                    "head_dim": _OLMO_KEY_DIM,
                    "value_dim": either(
                        "linear_value_head_dim", lambda fields: 2 * _OLMO_KEY_DIM(fields)
                    ),
                    "conv": "linear_conv_kernel_dim",
                    # as transformers takes it where the file is silent
                    "negative": lambda fields: fields.flag("linear_allow_neg_eigval") is not False,
                },
            ),
        },
        lists=_LISTS,
        otherwise=(_last_of_four,),
        stateful=True,
        # of initial weights
        silent=tuple(
            f"linear_{name}"
            for name in ("a_log_max", "a_log_min", "dt_max", "dt_min", "dt_init_floor")
        ),
        way=Way(unless_null),
        norm=WHOLE,
    ),
    "kimi_linear": _KIMI,
    "kimi_k3": _KIMI,
}


# ---- Lightning attention


def _is_ported(fields: Fields) -> bool:
    """The released files of MiniMax all have the list, those that transformers saves do not."""
    return not fields.has("attn_type_list")


def _minimax_state(fields: Fields) -> str:
    if _is_ported(fields):
        return (
            "recurrent state in the model's dtype (assumed): transformers and vLLM keep the state"
            " of Lightning attention so"
        )
    return (
        "recurrent state fp32 (assumed): the released code sums it in fp32; transformers' class and"
        " vLLM keep it in the model's dtype"
    )


def _minimax_dim(fields: Fields) -> Size:
    return DIM(fields) if _is_ported(fields) else fields.size("head_dim")


def _group(fields: Fields) -> Found:
    """Ring-linear and Ling-linear: softmax attention in the last layer of every `layer_group_size`
    layers, and in those left over at the end.
    """
    by = fields.needed("layer_group_size")
    layers = fields.layers()
    whole = layers // by * by
    kinds = ["full" if (i + 1) % by == 0 or i >= whole else "recurrent" for i in range(layers)]
    return kinds, []


def _rotated(fields: Fields) -> bool:
    return True


_RESIDUALS = ("full_attn", "linear_attn", "layernorm_full_attention", "layernorm_linear_attention")
_MINIMAX = Row(
    "minimax",
    {
        "full": _by_fields(_minimax_dim),
        "recurrent": Mixer(
            Lightning,
            {
                "heads": "num_attention_heads",
                "head_dim": _minimax_dim,
                "state_format": lambda fields: None if _is_ported(fields) else "fp32",
            },
        ),
    },
    # no default: transformers' own is wrong here
    lists=(Listed("attn_type_list", {0: "recurrent", 1: "full"}), _LISTS[0]),
    otherwise=(),
    stateful=True,
    # the size of kernels' blocks, and weights of residual connections
    silent=(
        "block_size",
        *(f"{kind}_{factor}_factor" for kind in _RESIDUALS for factor in ("alpha", "beta")),
    ),
    state=_minimax_state,
    way=based(None),
)
_LIGHTNINGS: dict[str, Row] = {
    "minimax": replace(_MINIMAX, way=based(1_000_000)),
    "minimax_text_01": _MINIMAX,
    "minimax_m1": _MINIMAX,
    "bailing_moe_linear": Row(
        "bailing_linear",
        {
            "full": softmax()["full"],
            "recurrent": Mixer(
                Lightning,
                {"heads": "num_attention_heads", "head_dim": "head_dim", "rotated": _rotated},
            ),
        },
        lists=(),
        otherwise=(_group,),
        stateful=True,
        # of the norm after the recurrence, and of what Qwen's spelling would slide
        silent=("group_norm_size", "linear_silu", "max_window_layers"),
        state=lambda fields: (
            "recurrent state fp32 (assumed): the released code and the kernels of vLLM sum it in"
            " fp32"
        ),
        classes=("BailingMoeLinearV2ForCausalLM",),
        way=based(None),
    ),
}


# ---- Hymba, RWKV-4, xLSTM


def _hymba_kinds(fields: Fields) -> Found | None:
    """`global_attn_idx`: full; the other layers slide. Of a group in `kv_reuse_group` the first
    layer keeps keys and values for all.
    """
    kinds = Numbered("global_attn_idx", "full", "window")(fields)
    if kinds is None:
        return None
    if isinstance(fields.value("layer_type"), list):
        Listed("layer_type", {"h": "hybrid"})(fields)
    value = fields.value("kv_reuse_group")
    groups = [] if value is None else json_list(value)
    if groups is None:
        raise fields.error(f"'kv_reuse_group' is {shown(value)}; it must list groups of layers")
    seen: set[int] = set()
    reused = list(kinds)
    for place, group in enumerate(groups):
        name = f"kv_reuse_group[{place}]"
        part = fields.with_data({**fields.data, name: group})
        of_group = indices(part, name, len(kinds), base=0)
        if not of_group or seen & set(of_group) or len({kinds[i] for i in of_group}) > 1:
            raise fields.error(
                f"'{name}' is {shown(group)}; a group must hold layers of no other group, all full"
                " or all sliding"
            )
        seen |= set(of_group)
        for i in of_group[1:]:
            reused[i] = f"{kinds[i]} reused"
    return reused, []


def _hymba_value(fields: Fields) -> Size:
    what = "mamba_expand x hidden_size / num_attention_heads"
    value = fields.quotient(_MAMBA_EXPANDED(fields), fields.size("num_attention_heads"), what)
    stated = fields.optional_size("v_head_dim")
    if stated is not None and isinstance(value, int) and stated != value:
        raise fields.error(f"'v_head_dim' is {stated}, but {what} is {value}; correct one of them")
    return value


def _released_values(fields: Fields) -> Fields:
    fields = only(fields, "num_mamba", usual=(1,))
    fields = only(fields, "memory_tokens_interspersed_every", usual=(0,))
    return only(fields, "kq_head_dim", "attn_hidden_size", "kv_reuse_every_i_layer", usual=(-1,))


_HYMBA_MAMBA = mamba(
    _MAMBA_EXPANDED,
    "mamba_d_state",
    "mamba_d_conv",
    norms=lambda fields: bool(fields.flag("mamba_inner_layernorms")),
)


def _hymba_layers() -> Mapping[str, tuple[Maker, ...]]:
    mixers = softmax(dims=HIDDEN_PER_HEAD)
    full = mixers["full"].sizes | {"value_dim": _hymba_value}
    near = mixers["window"].sizes | {"value_dim": _hymba_value}
    made = {
        "full": Mixer(Full, full),
        "window": Mixer(Window, near),
        "full reused": Mixer(Reused, full),
        "window reused": Mixer(ReusedWindow, near),
    }
    return {kind: (mixer, _HYMBA_MAMBA) for kind, mixer in made.items()}


_MULTIPLE = 64
"""Both widths of an xLSTM are rounded up to a multiple of this in one implementation and not in the
other; read where that makes no difference.
"""


def _xlstm_dim(name: str) -> Callable[[Fields], Size]:
    def read(fields: Fields) -> Size:
        channels = scaled(fields, fields.size("hidden_size", "embedding_dim"), name)
        if isinstance(channels, int) and channels % _MULTIPLE:
            raise fields.error(
                f"'{name}' x hidden_size is {channels}, which implementations round differently;"
                " only multiples of 64 are supported"
            )
        what = f"'{name}' x hidden_size / num_heads"
        return fields.quotient(channels, fields.size("num_heads"), what)

    return read


_OTHERS: dict[str, Row] = {
    "hymba": Row(
        "hymba",
        _hymba_layers(),
        lists=(),
        otherwise=(_hymba_kinds,),
        told_by=("global_attn_idx",),
        stateful=True,
        before=_released_values,
        silent=(
            *("num_memory_tokens", "kq_norm", "attn_only_wo_proj", "attn_implementation_new"),
            *("conv_dim", "calc_logits_for_entire_prompt", "mamba_dt_rank", "kv_weight_reuse"),
            "seq_length",
        ),
        notes=(
            (
                "the learned tokens before the prompt ('num_memory_tokens') are the same for every"
                " input and not counted"
            ),
        ),
        way=Way(hymba, Usual(None)),
    ),
    "rwkv": Row(
        "rwkv",
        {
            "recurrent": Mixer(
                RWKV4,
                {"width": either("attention_hidden_size", "hidden_size"), "hidden": "hidden_size"},
            )
        },
        lists=(),
        otherwise=(everywhere("recurrent"),),
        stateful=True,
        notes=("token shifts in the model's dtype (assumed), one token per mixing",),
        way=_NOWHERE,
    ),
    "xlstm": Row(
        "xlstm",
        {
            "recurrent": Mixer(
                MLSTM,
                {
                    "heads": "num_heads",
                    "head_dim": _xlstm_dim("qk_dim_factor"),
                    "value_dim": _xlstm_dim("v_dim_factor"),
                    "state_format": _format_in("inference_state_dtype"),
                },
            )
        },
        lists=(),
        otherwise=(everywhere("recurrent", "num_hidden_layers", "num_blocks"),),
        stateful=True,
        silent=(
            *("chunkwise_kernel", "sequence_kernel", "step_kernel", "max_inference_chunksize"),
            *("add_post_blocks_norm", "add_post_norm", "add_embedding_dropout", "weight_mode"),
            *("add_forward_backend_padding", "forward_backend_name", "return_last_states"),
            *("autocast_kernel_dtype", "mode", "ffn_round_up_to_multiple_of", "head_dim"),
            "mlstm_round_up_to_multiple_of",
        ),
        state=_state_in("inference_state_dtype"),
        way=_NOWHERE,
    ),
}


def _phi4flash(fields: Fields) -> Fields:
    """What is cached does not follow from the file."""
    raise fields.error(
        "'model_type' is 'phi4flash', whose layers share keys, values and states across layers in"
        " ways the file does not say; pass the stack itself instead, such as '(mamba + window)*8 +"
        " full @ heads=40, bf16'"
    )


ROWS: dict[str, Row] = {
    **_MAMBAS,
    **_ZAMBAS,
    **_CONVOLVED,
    **_DELTAS,
    **_LIGHTNINGS,
    **_OTHERS,
    "phi4flash": Row("phi4flash", {}, before=_phi4flash, way=Way(said)),
}
