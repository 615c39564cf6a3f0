"""Model types of flash-linear-attention, whose object `attn` says which layers are softmax
attention.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from separatrix.core.evidence.canonical import json_list
from separatrix.stacks.architecture.hf.draft import Draft, Reading, Size
from separatrix.stacks.architecture.hf.fields import LARGEST, Fields, shown
from separatrix.stacks.architecture.hf.fla_fields import BESIDE, by_attn, kernel
from separatrix.stacks.architecture.hf.query_norms import Norm
from separatrix.stacks.architecture.hf.row import (
    Found,
    Maker,
    Mixer,
    Of,
    Row,
    dividing,
    either,
    everywhere,
    just,
    quotient,
    times,
)
from separatrix.stacks.architecture.hf.rows.latent import LATENT
from separatrix.stacks.architecture.hf.rows.recurrent import expanded, head_dim_2, heads_2, mamba
from separatrix.stacks.architecture.hf.ways import Way, fla, unplaced
from separatrix.stacks.mechanisms import (
    GLA,
    HGRN2,
    KDA,
    NSA,
    RGLRU,
    RWKV,
    DeltaNet,
    DeltaProduct,
    Fox,
    Full,
    GatedDeltaNet,
    Latent,
    Linear,
    LogLinear,
    Mechanism,
    MoBA,
    RetNet,
    ShortConvolution,
    Sparse,
    Window,
)


def _per_head(factor: str) -> Callable[[Fields], Size]:
    """hidden_size x factor / num_heads."""
    return quotient(
        times("hidden_size", factor), "num_heads", f"hidden_size x '{factor}' / num_heads"
    )


def _row(*makers: Maker, notes: tuple[str, ...] = ()) -> Row:
    """What stands in every layer that `attn` does not name."""
    return Row(
        "fla",
        {"recurrent": makers},
        lists=(),
        otherwise=(everywhere("recurrent"),),
        stateful=True,
        read=by_attn,
        # functions of each number of a key, in all layers but linear_attn, which reads its own
        silent=("attnres_block_size", "attn_mode", "use_lower_bound", "feature_map"),
        notes=notes,
        way=Way(fla),
        # what stands beside `attn` is said of linear layers
        norm=Norm("head", "attn.qk_norm", usually=False),
    )


# ---- matrix states


def _silu(fields: Fields) -> Size:
    """Delta rules put SiLU on q, k and v also where they have no convolution: one over a single
    token is that SiLU, without which keys could be chosen freely.
    """
    size = kernel(fields)
    return 1 if size == 0 else size


def _negative(fields: Fields) -> bool:
    """False if missing, as in the configuration classes."""
    return bool(fields.flag("allow_neg_eigval"))


_DELTA: dict[str, Of] = {"conv": _silu, "negative": _negative}
_EXPANDED: dict[str, Of] = {
    "heads": "num_heads",
    "head_dim": _per_head("expand_k"),
    "value_dim": _per_head("expand_v"),
}


def _equal(cls: type[Mechanism], conv: dict[str, Of]) -> Maker:
    """GLA and its kin, whose convolutions must be of one width."""
    mixer = Mixer(cls, _EXPANDED | conv)

    def make(fields: Fields) -> Draft:
        kv = fields.optional_size("num_kv_heads")
        if kv is not None and kv != fields.size("num_heads") and kernel(fields) != 0:
            raise fields.error(
                "'num_kv_heads' with 'use_short_conv' makes convolutions of unequal width, which is"
                " not supported; pass the stack as a spec"
            )
        return mixer(fields)

    return make


def _values(fields: Fields) -> Size:
    """`num_v_heads` value heads, as many as query-key heads if null."""
    keys = fields.size("num_heads")
    values = fields.optional_size("num_v_heads")
    if values is not None and isinstance(keys, int) and values % keys:
        raise fields.error(
            f"'num_v_heads' is {values}, no multiple of 'num_heads' = {keys}; correct one of them"
        )
    return keys if values is None else values


_GATED: dict[str, Of] = {
    "heads": _values,
    "key_heads": "num_heads",
    "head_dim": "head_dim",
    "value_dim": times("head_dim", "expand_v"),
    **_DELTA,
}


def _hgrn_ratio(fields: Fields) -> Size:
    """`expand_ratio` numbers per channel; where it is null, hidden_size / num_heads."""
    heads = fields.optional_size("num_heads")
    ratio = fields.optional_size("expand_ratio")
    if ratio is None and heads is not None:
        return fields.quotient(fields.size("hidden_size"), heads, "hidden_size / num_heads")
    # where neither is given: the unknown size names both fields
    return fields.size("expand_ratio", "num_heads") if ratio is None else ratio


_HGRN_HEADS = quotient("hidden_size", _hgrn_ratio, "hidden_size / expand_ratio")
_FEATURES = {
    "elu": "elu",
    "relu": "relu",
    "identity": "identity",
    "elementwise_product": "identity",
    "t2r": "relu",
}
"""Feature maps that keep the dimension of keys; learnt ones count as their last step."""


def _feature(fields: Fields) -> str:
    name = fields.value("feature_map")
    if not isinstance(name, str) or name not in _FEATURES:
        raise fields.error(
            f"'feature_map' is {shown(name)}; it must be one of {', '.join(_FEATURES)}, which keep"
            " the dimension of keys"
        )
    return _FEATURES[name]


def _normaliser(fields: Fields) -> bool:
    said = fields.flag("norm_feature_map")
    if said is None:
        raise fields.error(
            "'norm_feature_map' is missing: it says whether the state carries a normaliser; add it"
            " to the file"
        )
    return said


_COMBA = (
    "Comba is counted as a Gated DeltaNet of the same sizes (assumed): one matrix per value head,"
    " erased along the key, with a correction of the query"
)
_MATRICES: dict[str, Row] = {
    "gla": _row(_equal(GLA, {"conv": kernel})),
    "retnet": _row(_equal(RetNet, {"conv": kernel})),
    "delta_net": _row(_equal(DeltaNet, _DELTA)),
    "gated_deltanet": _row(Mixer(GatedDeltaNet, _GATED)),
    "gated_deltaproduct": _row(Mixer(DeltaProduct, _GATED | {"householders": "num_householder"})),
    "kda": _row(Mixer(KDA, _GATED)),
    "comba": _row(Mixer(GatedDeltaNet, _GATED), notes=(_COMBA,)),
    "hgrn2": _row(
        Mixer(
            HGRN2,
            {
                "heads": _HGRN_HEADS,
                "head_dim": _hgrn_ratio,
                "value_dim": quotient("hidden_size", _HGRN_HEADS, "hidden_size / num_heads"),
                "conv": kernel,
            },
        )
    ),
    "linear_attn": replace(
        _row(Mixer(Linear, {**_EXPANDED, "feature": _feature, "normaliser": _normaliser})),
        classes=("LinearAttentionForCausalLM",),
    ),
}


# ---- recurrences that are counted as those they are made of

_HGRN_WIDTH = times("hidden_size", "expand_ratio")
_HGRN = (
    "HGRN is counted as an RG-LRU of the same width (assumed): both carry one number per channel,"
    " h = f h + (1 - f) i in place of a h + sqrt(1 - a^2) i"
)
_GSA = (
    "gated slot attention is counted as two gated linear attentions (assumed), which its paper"
    " shows it to be: one writes keys into slots, the other values, with a softmax between them"
)


def _convolution(channels: Of) -> Mixer:
    """The short convolutions of a layer, all together."""
    return Mixer(ShortConvolution, {"width": channels, "conv": kernel})


def _with_attn(fields: Fields) -> Fields:
    if "attn" not in fields.data:
        raise fields.no_pattern(("attn",))
    return fields


_KEY = _per_head("expand_k")
_VALUE = _per_head("expand_v")
_SLOT_HEADS = either("num_kv_heads", "num_heads")


def _slot_channels(fields: Fields) -> Size:
    heads, own = fields.size("num_heads"), _SLOT_HEADS(fields)
    if fields.has("num_kv_heads"):
        fields.divisor("num_kv_heads", "num_heads")
    groups = fields.quotient(heads, own, "num_heads / num_kv_heads")
    key, value = _KEY(fields), _VALUE(fields)
    return own * (groups * key + key + value)


_SLOTS: dict[str, Of] = {"heads": _SLOT_HEADS, "conv": 0}
_GSA_ROW = _row(
    Mixer(GLA, {**_SLOTS, "head_dim": _KEY, "value_dim": "num_slots"}),
    Mixer(GLA, {**_SLOTS, "head_dim": "num_slots", "value_dim": _VALUE}),
    _convolution(_slot_channels),
    notes=(_GSA,),
)
_COUNTED: dict[str, Row] = {
    "hgrn": _row(
        Mixer(RGLRU, {"width": _HGRN_WIDTH, "conv": 0}),
        _convolution(lambda fields: 2 * _HGRN_WIDTH(fields)),
        notes=(_HGRN,),
    ),
    # no layer of this model type rotates
    "gsa": replace(_GSA_ROW, silent=(*_GSA_ROW.silent, "use_rope")),
    "samba": replace(_row(mamba(expanded, "state_size", "conv_kernel")), before=_with_attn),
    "log_linear_mamba2": _row(
        Mixer(
            LogLinear,
            {
                "heads": heads_2,
                "key_heads": "n_groups",
                "head_dim": "state_size",
                "value_dim": head_dim_2,
                "conv": "conv_kernel",
                "base": just("mamba2"),
            },
        ),
        notes=(
            (
                "one state for each Fenwick bucket (assumed), as in the paper; the kernels work in"
                " chunks"
            ),
        ),
    ),
}


# ---- RWKV

_SHIFT = (
    "token shifts in the model's dtype (assumed): time and channel mixing each remember one token;"
    " attention layers keep channel mixing's"
)


def _rwkv(sizes: dict[str, Of]) -> Row:
    row = _row(Mixer(RWKV, {**sizes, "width": "hidden_size", "shifts": 2}), notes=(_SHIFT,))
    shift = Mixer(ShortConvolution, {"width": "hidden_size", "conv": 2})
    # widths of the small networks that make decays and gates
    ranks = tuple(f"{name}_low_rank_dim" for name in ("proj", "gate", "decay", "a", "v"))
    return replace(
        row, mixers={**row.mixers, BESIDE: shift}, silent=(*row.silent, *ranks, "value_dim")
    )


def _heads_7(fields: Fields) -> Size:
    heads = fields.optional_size("num_heads")
    if not fields.has("head_dim"):
        return fields.size("num_heads", "head_dim") if heads is None else heads
    what = "hidden_size / head_dim"
    number = fields.quotient(fields.size("hidden_size"), fields.size("head_dim"), what)
    if heads is not None and isinstance(number, int) and heads != number:
        raise fields.error(f"'num_heads' is {heads}, but {what} is {number}; correct one of them")
    return number


def _rwkv_7(width: Of) -> dict[str, Of]:
    """Sizes of a layer whose heads have `width` values together."""
    return {
        "heads": _heads_7,
        "head_dim": either(
            "head_dim", quotient("hidden_size", _heads_7, "hidden_size / num_heads")
        ),
        "value_dim": quotient(width, _heads_7, "value_dim / num_heads"),
    }


def _widths(row: Row, fields: Fields) -> Reading:
    """RWKV-7: `value_dim` may differ by layer, and is `hidden_size` where it is null."""
    widths = json_list(fields.value("value_dim"))
    if widths is None:
        return by_attn(row, fields)
    layers = fields.layers()
    if len(widths) != layers:
        raise fields.error(
            f"'value_dim' has {len(widths)} entries and must have num_hidden_layers = {layers};"
            " correct one of them"
        )
    for place, width in enumerate(widths, 1):
        if type(width) is not int or not 1 <= width <= LARGEST:
            raise fields.error(
                f"entry {place} of 'value_dim' is {shown(width)}; it must be an integer from 1 to"
                f" {LARGEST:,}"
            )
    mixers = {str(width): _rwkv(_rwkv_7(width)).mixers["recurrent"] for width in set(widths)}
    kinds = [str(width) for width in widths]
    beside = row.mixers[BESIDE]

    def told(_: Fields) -> Found:
        return kinds, []

    return by_attn(
        replace(row, mixers={**mixers, BESIDE: beside}, otherwise=(told,)),
        fields,
    )


_RWKV: dict[str, Row] = {
    "rwkv6": _rwkv(_EXPANDED | {"version": 6}),
    "rwkv7": replace(_rwkv(_rwkv_7(either("value_dim", "hidden_size"))), read=_widths),
}


# ---- softmax attention alone

_LATENT = (
    "latents are what is cached (assumed), as in the paper; flash-linear-attention's own layer"
    " caches the keys and values made from them"
)
_MOBA = (
    "'moba_topk' blocks are read, the own one among them; flash-linear-attention reads all tokens"
    " while it decodes"
)
_NSA = (
    "one compressed key and value per block is cached (assumed); flash-linear-attention's layer"
    " makes them again from the keys and values of all tokens"
)
_GROUPED: dict[str, Of] = {
    "heads": "num_heads",
    "kv_heads": dividing(either("num_kv_heads", "num_heads"), "num_heads", named="'num_kv_heads'"),
    "head_dim": quotient("hidden_size", "num_heads", "hidden_size / num_heads"),
}


def _sliding(fields: Fields) -> Draft:
    """All of it sliding if there is a `window_size`."""
    if fields.has("window_size"):
        return Mixer(Window, _GROUPED | {"size": "window_size"})(fields)
    return Mixer(Full, _GROUPED)(fields)


def _blocks(fields: Fields) -> Draft:
    """Native sparse attention: means of blocks of `block_size` tokens, `block_counts` of which are
    read, the first, the own and the one before always; and a window.
    """
    sizes: dict[str, Of] = {
        **_GROUPED,
        "head_dim": "head_dim",
        "block": "block_size",
        "topk": "block_counts",
    }
    window = fields.optional_size("window_size", low=0)
    if not window:
        # without a window two branches are left, and what has them is (B, k)-sparse attention
        return Mixer(Sparse, {**sizes, "gates": True})(fields)
    same: dict[str, Of] = {"stride": "block_size", "selected": "block_size", "window": window}
    return Mixer(NSA, {**sizes, **same, "pool": just("mean"), "shared": True})(fields)


def _softmax(maker: Maker, *, note: str = "", norm: Norm | None = None) -> Row:
    return Row(
        "fla softmax",
        {"full": maker},
        lists=(),
        otherwise=(everywhere("full"),),
        # attention over the outputs of earlier layers at the same token
        silent=("attnres_block_size", "use_flash_moba"),
        notes=(note,) if note else (),
        way=Way(fla),
        norm=norm,
    )


_QK = Norm("head", "qk_norm", usually=False)
_ATTENTION: dict[str, Row] = {
    "transformer": _softmax(_sliding, norm=_QK),
    "forgetting_transformer": replace(
        _softmax(
            Mixer(
                Fox,
                {
                    **_GROUPED,
                    "qk_norm": lambda fields: "each" if fields.flag("qk_norm") else "none",
                    "gate": lambda fields: "sigmoid" if fields.flag("use_output_gate") else "none",
                },
            ),
            # read with its other sizes
            norm=Norm("none"),
        ),
        way=Way(unplaced),
    ),
    "mla": _softmax(
        Mixer(Latent, {**LATENT.sizes, "heads": "num_heads"}, LATENT.silent), note=_LATENT
    ),
    "moba": _softmax(
        Mixer(
            MoBA,
            {
                **_GROUPED,
                "block": "moba_chunk_size",
                "topk": lambda fields: fields.size("moba_topk", low=2) - 1,
            },
        ),
        note=_MOBA,
        norm=_QK,
    ),
    "nsa": _softmax(_blocks, note=_NSA),
}
ROWS: dict[str, Row] = {**_MATRICES, **_COUNTED, **_RWKV, **_ATTENTION}
