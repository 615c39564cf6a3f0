"""Model types of softmax attention alone, as transformers and the code of releases define them."""

from __future__ import annotations

from dataclasses import replace

from separatrix.core.evidence.canonical import json_list
from separatrix.stacks.architecture.hf.draft import Size, Unknown
from separatrix.stacks.architecture.hf.fields import MOST_LAYERS, Fields, shown
from separatrix.stacks.architecture.hf.lists import only
from separatrix.stacks.architecture.hf.query_norms import EACH, ROTATED, WEIGHTLESS, WHOLE, Norm
from separatrix.stacks.architecture.hf.rotary_fields import Usual
from separatrix.stacks.architecture.hf.row import (
    DIM,
    FULL,
    HIDDEN_PER_HEAD,
    KV_STATED,
    LAYER_TYPES,
    SLIDING,
    Found,
    Layers,
    Listed,
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
    plain,
    quotient,
    softmax,
    switched,
)
from separatrix.stacks.architecture.hf.rows.hooks import (
    block_configs,
    deci,
    gemma4,
    mimo,
    mimo_window,
)
from separatrix.stacks.architecture.hf.single_layers import OVERRIDES, reusing
from separatrix.stacks.architecture.hf.ways import (
    Way,
    always,
    based,
    by_ratio,
    every_fourth_without,
    in_windows,
    in_windows_if_any,
    in_windows_or_dense,
    or_alibi,
    rotary,
    said,
)
from separatrix.stacks.mechanisms import Full, PositionWise, Reused, Window

_HALF = Way(usual=Usual(part=0.5))
_QUARTER = Way(usual=Usual(part=0.25))
_UNSTATED = based(None)
"""Classes that transformers does not have: a base that is missing stays unknown."""
_EMBEDDED = Way(always("embedded"))
_MILLION = based(1_000_000)

LLAMA = Row("decoder", softmax(kv=kv_or_heads, dims=DIM))
_KV_STATED = Row("decoder", softmax(dims=DIM))
_STATED = Row("decoder", softmax())
_QWEN2 = replace(_KV_STATED, otherwise=(switched(),), way=_MILLION)


def _undecided(fields: Fields) -> Found:
    """Full; releases of transformers disagree on which layers slide once that is switched on."""
    if fields.flag("use_sliding_window") and fields.has("sliding_window"):
        raise fields.error(
            "'use_sliding_window' is true, and implementations of this model type disagree on the"
            " layers; add 'layer_types'"
        )
    # without the switch, neither says anything
    fields.harmless("max_window_layers")
    if fields.flag("use_sliding_window") is False:
        fields.harmless("sliding_window")
    return ["full"] * fields.layers(), []


def _window_or_null(fields: Fields) -> Found:
    """Mistral: full only where `sliding_window` is null."""
    if "sliding_window" in fields.data:
        return plain(fields)
    return ["window"] * fields.layers(), []


def _window_stated(fields: Fields) -> Size:
    missing = Unknown(("'sliding_window' is missing (null says that every token is seen)",))
    return fields.size("sliding_window") if fields.has("sliding_window") else missing


_MISTRAL = Row("decoder", softmax(dims=DIM, window=_window_stated), otherwise=(_window_or_null,))
_DECODERS: dict[str, Row] = {
    "llama": replace(LLAMA, mlps="gated"),
    "olmo": LLAMA,
    "olmo2": replace(LLAMA, norm=WHOLE, mlps="gated"),
    "olmoe": replace(LLAMA, norm=WHOLE),
    "flex_olmo": replace(LLAMA, way=based(500_000), norm=WHOLE),
    "cohere": replace(
        LLAMA,
        way=based(500_000),
        # layer norms, which take the mean away
        norm=Norm("other", "use_qk_norm", usually=False),
    ),
    "phi": replace(LLAMA, way=_HALF, norm=Norm("other", "qk_layernorm", usually=False)),
    "phi3": LLAMA,
    "granite": LLAMA,
    "granitemoe": LLAMA,
    "granitemoeshared": LLAMA,
    "apertus": replace(LLAMA, way=based(12_000_000, scaling="llama3_8_1_4_8192"), norm=EACH),
    "arcee": LLAMA,
    "nanochat": replace(LLAMA, way=Way(bounded=True)),
    "jais2": LLAMA,
    "mixtral": replace(_KV_STATED, way=_MILLION, mlps="mixtral"),
    "phimoe": replace(_KV_STATED, way=_MILLION),
    "starcoder2": _KV_STATED,
    "mistral": replace(_MISTRAL, mlps="gated"),
    "ministral": _MISTRAL,
    "glm4_moe": replace(_KV_STATED, way=_HALF, norm=Norm("head", "use_qk_norm", usually=False)),
    "stablelm": replace(
        _KV_STATED, way=_QUARTER, norm=Norm("other", "qk_layernorm", usually=False)
    ),
    "bitnet": replace(_KV_STATED, way=based(500_000)),
    "ernie4_5_moe": replace(_KV_STATED, way=based(500_000)),
    "qwen3_vl_moe_text": replace(_KV_STATED, way=based(500_000), norm=EACH),
    "seed_oss": Row("decoder", softmax(kv=kv_or_heads)),
    "gemma": replace(_STATED, mlps="gated", tied=True),
    "glm": replace(_STATED, way=_HALF),
    "glm4": replace(_STATED, way=_HALF),
    "ernie4_5": replace(_STATED, way=based(500_000)),
    "helium": replace(_STATED, way=based(100_000)),
    "internlm3": replace(_STATED, way=_UNSTATED),
    "hy_v3": replace(_STATED, way=based(11_158_840), norm=EACH),
    "solar_open": replace(_STATED, way=_MILLION),
    "ministral3": replace(_STATED, way=based(1_000_000, scaling="yarn_16_32_1_16384")),
    "nemotron": replace(_STATED, way=_HALF),
    "qwen3_vl_text": replace(_STATED, way=based(500_000), norm=EACH),
    "qwen2": replace(_QWEN2, way=Way(), mlps="gated"),
    "qwen2_vl": _QWEN2,
    "qwen2_vl_text": _QWEN2,
    "qwen2_5_vl": _QWEN2,
    "qwen2_5_vl_text": _QWEN2,
    "qwen3": replace(_STATED, otherwise=(switched(),), norm=EACH, mlps="gated"),
    "dots1": replace(_KV_STATED, otherwise=(switched(unless_said=True),), norm=EACH),
    "qwen2_moe": replace(_KV_STATED, otherwise=(_undecided,), mlps="qwen"),
    "qwen3_moe": replace(_KV_STATED, otherwise=(_undecided,), norm=EACH, mlps="qwen"),
    "smollm3": replace(
        _KV_STATED, otherwise=(_undecided,), way=Way(every_fourth_without, Usual(2_000_000))
    ),
}

_DEPTH = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
_PATTERN = ("sliding_window_pattern", "_sliding_window_pattern")
_HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads", "attention_heads")
_HIDDEN = ("hidden_size", "n_embd", "d_model", "n_embed")
_KV_HEADS = "the number of key-value heads"


def _older(kv: Of = _HEADS, family: str = "decoder") -> Row:
    """Full attention in the spellings of GPT-2 and its time, with as many key as query heads if
    nothing else is said.
    """
    sizes: dict[str, Of] = {
        "heads": _HEADS,
        "kv_heads": dividing(kv, _HEADS, named=_KV_HEADS),
        "head_dim": quotient(_HIDDEN, _HEADS, "hidden_size / num_attention_heads"),
    }
    return Row(
        family, {"full": Mixer(Full, sizes)}, lists=(), otherwise=(everywhere("full", *_DEPTH),)
    )


def _one_or(otherwise: Size, fields: Fields) -> Size:
    one = fields.flag("multi_query")
    if one is None:
        return Unknown(("'multi_query' is missing",))
    return 1 if one else otherwise


def _falcon(fields: Fields) -> Size:
    """`num_kv_heads` (all heads if absent) in the new decoder architecture; before, one key head
    if `multi_query`.
    """
    given = fields.optional_size("num_kv_heads", "n_head_kv")
    grouped = fields.size(*_HEADS) if given is None else given
    return grouped if fields.flag("new_decoder_architecture") else _one_or(grouped, fields)


_MPT = ("multihead_attention", "multiquery_attention", "grouped_query_attention")


def _mpt(fields: Fields) -> Size:
    """As many key as query heads, one with `attn_config.attn_type` multiquery_attention,
    `attn_config.kv_n_heads` with grouped_query_attention.
    """
    kind = fields.value("attn_config.attn_type")
    if kind is not None and kind not in _MPT:
        raise fields.error(
            f"'attn_config.attn_type' is {shown(kind)}; it must be one of {', '.join(_MPT)}"
        )
    if kind == _MPT[2]:
        return fields.size("attn_config.kv_n_heads")
    heads = 1 if kind == _MPT[1] else fields.size(*_HEADS)
    given = fields.optional_size("attn_config.kv_n_heads")
    if given is not None and given != heads:
        raise fields.error(
            f"'attn_config.kv_n_heads' is {given}, but {kind or _MPT[0]} has"
            f" {heads if kind == _MPT[1] else 'as many as query heads'}; correct one of them"
        )
    return heads


def _attn_config(fields: Fields) -> Fields:
    return fields.section("attn_config")


def _mpt_attn_config(fields: Fields) -> Fields:
    rest = ("attn_config.sliding_window_size", "attn_config.rope")
    return only(_attn_config(fields), *rest, usual=(-1, False))


_OLDER = _older()
_ENCODER = replace(
    _older(family="encoder"),
    silent=(
        *("decoder_start_token_id", "embedding_size", "rotary_value", "use_rms_norm"),
        # GPT-J's class rotates, whatever it says
        "rotary",
    ),
)
_OLD: dict[str, Row] = {
    "gpt2": replace(_OLDER, way=_EMBEDDED),
    "gpt_neox": replace(_OLDER, way=_QUARTER),
    "opt": replace(_OLDER, way=_EMBEDDED),
    "bloom": replace(_OLDER, way=Way(always("alibi"))),
    "codegen": replace(_OLDER, way=Way(usual=Usual(dims=64, fixed=True))),
    "persimmon": replace(_OLDER, way=_HALF, norm=Norm("other", "qk_layernorm")),
    "xglm": replace(_OLDER, way=_EMBEDDED),
    "gpt_bigcode": replace(
        _older(lambda fields: _one_or(fields.size(*_HEADS), fields)),
        # transformers saves a number of them that its own class does not read
        silent=("num_key_value_heads",),
        way=_EMBEDDED,
    ),
    "falcon": replace(
        _older(_falcon),
        # says nothing in the new architecture
        silent=("multi_query",),
        way=Way(or_alibi(usually=False, otherwise=rotary)),
    ),
    "dbrx": replace(_older("attn_config.kv_n_heads"), before=_attn_config),
    "mpt": replace(
        _older(_mpt, "own spelling"),
        before=_mpt_attn_config,
        silent=tuple(
            f"attn_config.{name}"
            for name in (
                *("alibi_bias_max", "qk_ln", "qk_gn", "attn_impl", "attn_uses_sequence_id"),
                *("rope_impl", "rope_dail_config", "rope_hf_config"),
            )
        ),
        way=Way(or_alibi(usually=True, otherwise=None)),
    ),
    **dict.fromkeys(
        (
            *("bert", "bert-generation", "camembert", "data2vec-text", "electra", "ernie"),
            *("megatron-bert", "rembert", "roberta", "roberta-prelayernorm", "roc_bert"),
            *("xlm-roberta", "xlm-roberta-xl", "xmod", "git", "openai-gpt"),
        ),
        replace(_ENCODER, way=_EMBEDDED),
    ),
    "biogpt": replace(_ENCODER, way=_EMBEDDED),
    "ctrl": replace(_ENCODER, way=_EMBEDDED),
    "gpt_neox_japanese": _ENCODER,
    "roformer": _ENCODER,
    "gptj": replace(_ENCODER, way=Way(usual=Usual(dims=64, fixed=True))),
}


def _first_of_four(fields: Fields) -> Found:
    kinds = ["full" if i % 4 == 0 else "window" for i in range(fields.layers())]
    note = (
        "full attention in every 4th layer from the first on (assumed): the file does not say, and"
        " transformers takes it so"
    )
    return kinds, [note]


def _layer_switch(fields: Fields) -> Found:
    """Cohere 2: released files say the period once more, as `layer_switch`."""
    again = fields.optional_size("layer_switch")
    names = ("sliding_window_pattern", "_sliding_window_pattern")
    period = fields.optional_size(*names)
    if None not in (again, period) and again != period:
        raise fields.error(
            f"'layer_switch' is {again}, but 'sliding_window_pattern' is {period}; correct one of"
            " them"
        )
    return every(4, *(("layer_switch",) if period is None else names))(fields)


def _dense_first(fields: Fields) -> Found:
    """Cohere 2 with experts: dense layers come first, and slide by a period of their own."""
    first = fields.optional_size("first_k_dense_replace", low=0) or 0
    among = fields.optional_size("prefix_dense_sliding_window_pattern") or 1
    kinds, said = every(4, *_PATTERN)(fields)
    dense = ["full" if (i + 1) % among == 0 else "window" for i in range(first)]
    return [*dense, *kinds][: len(kinds)], said


def _first_of_period(fields: Fields) -> Found:
    """ModernBERT as a decoder: the first layer of every period is full, transformers takes 3."""
    by = fields.optional_size("global_attn_every_n_layers") or 3
    kinds = ["full" if i % by == 0 else "window" for i in range(fields.layers())]
    note = (
        "full attention in every 3rd layer from the first on (assumed): the file does not say, and"
        " transformers takes it so"
    )
    return kinds, [] if fields.has("global_attn_every_n_layers") else [note]


def _half(fields: Fields) -> Size:
    return fields.size("local_attention", low=2) // 2


def _letters(fields: Fields) -> Found | None:
    """EXAONE 4: letters such as "LLLG"; all full without `sliding_window`."""
    letters = fields.value("sliding_window_pattern")
    if isinstance(letters, int):
        return None
    if not fields.has("sliding_window"):
        return ["full"] * fields.layers(), []
    if letters is None:
        return None
    words = {"L": "window", "G": "full"}
    return fields.kinds("sliding_window_pattern", words, tiled=True), []


def _rotating(fields: Fields) -> Found | None:
    """Llama 4: `no_rope_layers`, 1 chunked, 0 full."""
    if not fields.has("no_rope_layers") or fields.data["no_rope_layers"] == []:
        return None
    return fields.kinds("no_rope_layers", {1: "chunked", 0: "full"}), []


def _shared(fields: Fields, kinds: list[str], layers: Layers) -> tuple[Layers, list[str]]:
    """Gemma 3n: the last `num_kv_shared_layers` layers reuse keys and values of an earlier one
    (transformers takes 15 where that is absent).
    """
    return reusing(fields, kinds, layers, fields.needed("num_kv_shared_layers", low=0))


_UNSLID = (
    "full attention everywhere (assumed): the file has no 'layer_types', and transformers takes it"
    " so"
)
_EVERY_2 = Row("alternating", softmax(), otherwise=(every(2),))
_GEMMA_3 = Row(
    "alternating",
    softmax(),
    otherwise=(every(6, *_PATTERN),),
    way=based(1_000_000, local=10_000, local_scaled=False),
    norm=EACH,
)
_GEMMA_3N = replace(_GEMMA_3, otherwise=(every(5),), after=_shared, own=("num_kv_shared_layers",))
_EXAONE_4 = Row(
    "alternating",
    softmax(dims=DIM),
    otherwise=(_letters, every(4, *_PATTERN)),
    way=Way(in_windows_if_any),
    norm=EACH,
)
_GRANITE_SWA = Row("alternating", softmax(kv=kv_or_heads, dims=DIM), otherwise=(_first_of_four,))
_LLAMA_4 = Row(
    "alternating",
    softmax(),
    otherwise=(_rotating, every(4, "no_rope_layer_interval", others="chunked")),
    way=Way(every_fourth_without, Usual(500_000)),
    norm=WEIGHTLESS,
)
_ALTERNATING: dict[str, Row] = {
    "gemma2": replace(
        _EVERY_2,
        # released files say it twice
        mixers=softmax(window=("sliding_window", "sliding_window_size")),
        way=Way(softcap=50),
        mlps="gated",
        tied=True,
    ),
    "vaultgemma": replace(_EVERY_2, way=Way(softcap=50)),
    "gpt_oss": replace(
        _EVERY_2, way=based(150_000, scaling="yarnexact_32_32_1_4096"), mlps="mixtral"
    ),
    "gemma3": _GEMMA_3,
    "gemma3_text": replace(
        _GEMMA_3,
        # Gemma 3 4B leaves them out
        defaults={"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256},
        classes=("Gemma3ForCausalLM",),
        mlps="gated",
        tied=True,
    ),
    "gemma3n": _GEMMA_3N,
    "gemma3n_text": _GEMMA_3N,
    "cohere2": Row(
        "alternating",
        softmax(kv=kv_or_heads, dims=DIM),
        otherwise=(_layer_switch,),
        before=lambda fields: only(
            fields, "order_of_interleaved_layers", usual=("local_attn_first",)
        ),
        silent=("layer_switch",),
        way=Way(in_windows),
    ),
    "cohere2_moe": Row(
        "alternating",
        softmax(kv=kv_or_heads),
        otherwise=(_dense_first,),
        silent=("prefix_dense_sliding_window_pattern",),
        way=Way(in_windows_or_dense),
    ),
    "modernbert-decoder": Row(
        "alternating",
        softmax(
            kv="num_attention_heads", dims=HIDDEN_PER_HEAD, window=either("sliding_window", _half)
        ),
        otherwise=(_first_of_period,),
        silent=("local_attention", "global_attn_every_n_layers", "decoder_bias"),
        way=based(160_000, local=10_000),
    ),
    "olmo3": Row(
        "alternating",
        softmax(kv=kv_or_heads, dims=DIM),
        otherwise=(every(4),),
        way=based(500_000, local_scaled=False),
        norm=WHOLE,
        mlps="gated",
    ),
    "exaone4": _EXAONE_4,
    "exaone_moe": _EXAONE_4,
    "afmoe": Row(
        "alternating",
        softmax(kv=kv_or_heads),
        otherwise=(every(4, "global_attn_every_n_layers", "_global_attn_every_n_layers"),),
        way=Way(in_windows),
        norm=EACH,
    ),
    "cwm": Row(
        "alternating",
        softmax(),
        otherwise=(_first_of_four,),
        way=based(1_000_000, scaling="llama3_16_1_4_8192"),
    ),
    "granite_swa": _GRANITE_SWA,
    "granitemoe_swa": _GRANITE_SWA,
    "llama4": _LLAMA_4,
    "llama4_text": _LLAMA_4,
}

_UNCHUNKED = Listed("layer_types", SLIDING)
_STEP = "attention_other_setting"
_STEP_KV = ("num_key_value_heads", "num_attention_groups")
_STEP_OWN = {
    "heads": (f"{_STEP}.num_attention_heads", "num_sliding_attention_heads"),
    "kv_heads": tuple(f"{_STEP}.{name}" for name in _STEP_KV),
    "head_dim": f"{_STEP}.head_dim",
}


def _step3() -> Row:
    """Step-3.5 and 3.7: `attention_other_setting` or `num_sliding_attention_heads` gives sliding
    layers heads of their own.
    """
    heads = either(_STEP_OWN["heads"], "num_attention_heads")
    kv = either(_STEP_OWN["kv_heads"], _STEP_KV)
    full: dict[str, Of] = {
        "heads": "num_attention_heads",
        "kv_heads": dividing(_STEP_KV, "num_attention_heads"),
        "head_dim": "head_dim",
    }
    window: dict[str, Of] = {
        "heads": heads,
        "kv_heads": dividing(kv, heads, named=_KV_HEADS),
        "head_dim": either(_STEP_OWN["head_dim"], "head_dim"),
        "size": "sliding_window",
    }
    return Row(
        "own heads",
        {"full": Mixer(Full, full), "window": Mixer(Window, window)},
        lists=(_UNCHUNKED,),
        otherwise=(everywhere("full", note=_UNSLID, silent=("sliding_window",)),),
        before=lambda fields: fields.section(_STEP),
        silent=(*_STEP_OWN["heads"], *_STEP_OWN["kv_heads"], f"{_STEP}.head_dim"),
        way=Way(usual=Usual(local_scaled=False)),
        norm=EACH,
    )


_GLOBAL_KV = divisor("num_global_key_value_heads", "num_attention_heads")


def _gemma4(*, gated: bool) -> Row:
    """Gemma 4: full layers have heads of `global_head_dim`, and `num_global_key_value_heads` of
    them, if `gated` only where `attention_k_eq_v` is true.
    """

    def kv(fields: Fields) -> Size:
        there = fields.has("num_global_key_value_heads")
        own = there and (not gated or bool(fields.flag("attention_k_eq_v")))
        return (_GLOBAL_KV if own else KV_STATED)(fields)

    mixers = softmax()
    mixers["full"] = softmax(kv=kv, dims="global_head_dim")["full"]
    usual = Usual(
        1_000_000,
        local=10_000,
        part=0.25,
        local_part=1.0,
        scaling="proportional",
        local_scaled=False,
    )
    return Row(
        "own heads",
        mixers,
        lists=(_UNCHUNKED,),
        otherwise=(every(6),),
        read=gemma4,
        # keys and values of one projection are normalised apart, so both are cached
        silent=("attention_k_eq_v",),
        own=("num_kv_shared_layers", OVERRIDES),
        way=Way(usual=usual),
        norm=EACH,
    )


def _window_spelled(fields: Fields) -> Fields:
    name = fields.find("sliding_window_size", "sliding_window")
    return fields if name is None else fields.replaced(sliding_window=fields.data[name])


def _first_and_sixth(fields: Fields) -> Found:
    layers = range(fields.layers())
    kinds = ["full" if i == 0 or (i + 1) % 6 == 0 else "window" for i in layers]
    note = (
        "full attention in the first and every 6th layer (assumed): the file does not say, and"
        " transformers takes it so"
    )
    return kinds, [note]


_STEP_3 = _step3()
_GEMMA_4 = _gemma4(gated=True)
_GEMMA_4_UNIFIED = _gemma4(gated=False)
_OWN_HEADS: dict[str, Row] = {
    "gemma4": _GEMMA_4,
    "gemma4_text": _GEMMA_4,
    "gemma4_unified": _GEMMA_4_UNIFIED,
    "gemma4_unified_text": _GEMMA_4_UNIFIED,
    "mimo_v2_flash": Row(
        "own heads",
        {
            "full": Mixer(Full, softmax()["full"].sizes | {"value_dim": "v_head_dim"}),
            "window": mimo_window,
        },
        lists=(Listed("hybrid_layer_pattern", {0: "full", 1: "window"}), _UNCHUNKED),
        otherwise=(_first_and_sixth,),
        read=mimo,
        # released files repeat the window as the size of a chunk, and no layer is chunked
        silent=(
            *("attention_chunk_size", "sliding_window", "sliding_window_size"),
            *("swa_num_attention_heads", "swa_num_key_value_heads", "swa_head_dim"),
            "swa_v_head_dim",
        ),
        way=Way(usual=Usual(5_000_000, local=10_000, part=0.334, local_scaled=False)),
    ),
    "step3p5": _STEP_3,
    "step3p7": replace(_STEP_3, classes=("Step3p7FlashForCausalLM",)),
    "smallthinker": Row(
        "own heads",
        softmax(),
        lists=(Listed("sliding_window_layout", {1: "window", 0: "full"}), LAYER_TYPES),
        otherwise=(everywhere("full"),),
        before=_window_spelled,
        way=_UNSTATED,
    ),
}


def _times(passes: int, why: str, layers: Layers, fields: Fields) -> tuple[Layers, list[str]]:
    """The layers once for every pass that a token makes through them."""
    if len(layers) * passes > MOST_LAYERS:
        raise fields.error(
            f"{len(layers)} layers run {passes} times each ({why}), more than {MOST_LAYERS:,} in"
            " all; correct the fields"
        )
    note = f"every layer counts {passes} times ({why}): each pass keeps keys and values of its own"
    return layers * passes, [note]


def _unslid(fields: Fields) -> Found:
    """Ouro: only a list tells which layers slide."""
    if fields.has("sliding_window") and fields.flag("use_sliding_window") is not False:
        raise fields.error(
            "'sliding_window' is there, and only a list in 'layer_types' tells which layers of this"
            " model type slide; add it"
        )
    fields.harmless("max_window_layers")
    return ["full"] * fields.layers(), []


def _cycles(fields: Fields) -> int:
    cycles = fields.needed("H_cycles", high=MOST_LAYERS)
    return cycles * (fields.needed("L_cycles", high=MOST_LAYERS) + 1)


def _one_stack(fields: Fields) -> Fields:
    """HRM-Text: saved files count all passes in `num_hidden_layers`; files without
    `num_layers_per_stack` count one stack there.
    """
    stack = fields.optional_size("num_layers_per_stack", high=MOST_LAYERS)
    stated = fields.optional_size("num_hidden_layers", high=MOST_LAYERS)
    passes = _cycles(fields)
    if stack is not None and stated not in (None, stack, stack * passes):
        raise fields.error(
            f"'num_hidden_layers' is {stated}, but 'num_layers_per_stack' x 'H_cycles' x"
            f" ('L_cycles' + 1) is {stack * passes}; correct one of them"
        )
    return fields if stack is None else fields.replaced(num_hidden_layers=stack)


def _as_many(fields: Fields) -> Size:
    heads = fields.size("num_attention_heads")
    kv = fields.optional_size("num_key_value_heads")
    if kv is not None and kv != heads:
        raise fields.error(
            f"'num_key_value_heads' is {kv}, but this model type has as many as query heads; remove"
            " it"
        )
    return heads


def _cross_layer(fields: Fields) -> Found:
    """Hunyuan-Large: with `use_cla`, layers whose number is no multiple of `cla_share_factor` read
    the keys and values of the last one whose number is.
    """
    fields.harmless("cla_share_factor")
    factor = fields.needed("cla_share_factor") if fields.flag("use_cla") else 1
    kinds = ["full" if i % factor == 0 else "reused" for i in range(fields.layers())]
    note = (
        f"{factor - 1} of {factor} layers read the keys and values of the layer before them, and"
        " keep none ('cla_share_factor')"
    )
    return kinds, [note] if factor > 1 else []


_HUNYUAN_SIZES = softmax(kv=kv_or_heads, dims=either(("attention_head_dim", "head_dim"), DIM))[
    "full"
].sizes
_HUNYUAN = Row(
    "cross-layer",
    {"full": Mixer(Full, _HUNYUAN_SIZES), "reused": Mixer(Reused, _HUNYUAN_SIZES)},
    lists=(),
    otherwise=(_cross_layer,),
    # of images, of the embedding, and of experts
    silent=("mask_init_id", "anyres_pooling_size", "pool_type", "use_rotary_pos_emb"),
    own=("use_cla",),
    norm=Norm("other", "use_qk_norm", usually=False),
)


def _unshared(fields: Fields) -> Fields:
    return only(fields, "use_cla", "use_mla", usual=(False,))


_HUNYUAN_V1 = replace(_HUNYUAN, before=_unshared, norm=ROTATED)


def _chatglm_kv(fields: Fields) -> Size:
    grouped = fields.flag("multi_query_attention")
    if grouped:
        return fields.divisor("multi_query_group_num", "num_attention_heads")
    return fields.size("num_attention_heads")


def _two_dimensional(fields: Fields) -> Fields:
    if fields.flag("position_encoding_2d") or fields.has("inner_hidden_size"):
        raise fields.error(
            "'position_encoding_2d' or 'inner_hidden_size' is there: the first ChatGLM lets the"
            " tokens of its prompt see the ones after them; only models that read left to right"
            " are judged"
        )
    return fields


def _repeated_types(fields: Fields) -> Found:
    """GPT-Neo: lists of kinds with how often they repeat; `attention_layers`, the same written
    out, must agree.
    """
    depth = fields.layers("num_layers", "num_hidden_layers")
    kinds: list[object] = []
    for entry in json_list(fields.value("attention_types")) or []:
        pair = json_list(entry) or []
        words = json_list(pair[0]) if pair else None
        times = pair[1] if len(pair) == 2 else None
        if words is None or type(times) is not int or not 1 <= times <= depth:
            raise fields.error(
                f"'attention_types' holds {shown(entry)}; it must be kinds of layers and how often"
                " they repeat"
            )
        kinds += words * times
    listed = json_list(fields.value("attention_layers"))
    if listed is not None and listed != kinds:
        raise fields.error("'attention_layers' and 'attention_types' disagree; correct one of them")
    if len(kinds) != depth or any(kind not in ("global", "local") for kind in kinds):
        raise fields.error(
            f"'attention_types' makes {len(kinds)} layers; it must make {depth}, each global or"
            " local"
        )
    return [str(kind) for kind in kinds], []


_NEO_HEADS = ("num_heads", "num_attention_heads")
_NEO: dict[str, Of] = {
    "heads": _NEO_HEADS,
    "kv_heads": _NEO_HEADS,
    "head_dim": quotient("hidden_size", _NEO_HEADS, "hidden_size / num_heads"),
}


def _jetmoe_heads(fields: Fields) -> Size:
    """Each of a token's experts has as many query heads as there are key-value heads."""
    return fields.size("num_key_value_heads") * fields.size("num_experts_per_tok")


def _phi3small(fields: Fields) -> Fields:
    """Which blocks are seen follows from the model's code."""
    raise fields.error(
        "'model_type' is 'phi3small', whose layers see local blocks and every few blocks before"
        " them ('blocksparse_*'), other ones in every head, but for one layer in"
        " 'dense_attention_every_n_layers': not supported; pass the stack as a spec, such as"
        " '(sparse + full)*16 @ heads=32, bf16'"
    )


def _reformer(fields: Fields) -> Fields:
    """Buckets of keys follow from random rotations."""
    raise fields.error(
        "'model_type' is 'reformer', whose layers see chunks beside them and the tokens of the same"
        " hash ('attn_layers'), drawn anew at each pass: not supported; pass the stack as a spec,"
        " with what each layer is taken to see"
    )


def _doge(fields: Fields) -> Fields:
    """Keys are kept by their scores, which do not depend on the query."""
    kept = fields.needed("keep_window_size")
    raise fields.error(
        f"'model_type' is 'doge', whose layers see all tokens up to 'keep_window_size' = {kept:,},"
        " and beyond them only the keys of largest scores, chosen without the query: not supported;"
        " for shorter contexts pass the stack as a spec, such as 'full*32 @ heads=8, bf16'"
    )


_IMAGE = (
    "layers in 'cross_attention_layers' read the image and no text: they are counted as layers"
    " without token mixing, and the image's keys and values, the same for every token, are not"
    " counted"
)
_MLLAMA = Row(
    "mllama",
    {"full": softmax(dims=DIM)["full"], "image": Mixer(PositionWise)},
    lists=(Numbered("cross_attention_layers", "image", "full"),),
    otherwise=(),
    own=("cross_attention_layers",),
    notes=(_IMAGE,),
)
_UNUSUAL: dict[str, Row] = {
    "ouro": Row(
        "looped",
        softmax(kv=kv_or_heads, dims=DIM),
        lists=(Listed("layer_types", FULL),),
        otherwise=(_unslid,),
        # a token that leaves early computes less; what is kept for the others stays
        silent=("early_exit_threshold", "early_exit_step", "early_exit_gate"),
        after=lambda fields, kinds, layers: _times(
            fields.needed("total_ut_steps", high=MOST_LAYERS), "total_ut_steps", layers, fields
        ),
    ),
    "hrm_text": Row(
        "looped",
        softmax(kv=_as_many),
        lists=(),
        otherwise=(everywhere("full"),),
        before=_one_stack,
        # cycles through which gradients flow
        silent=("L_bp_cycles",),
        after=lambda fields, kinds, layers: _times(
            _cycles(fields), "H_cycles x (L_cycles + 1)", layers, fields
        ),
    ),
    "hunyuan": replace(_HUNYUAN, classes=("HunYuanMoEForCausalLM",)),
    "hunyuan_v1_dense": _HUNYUAN_V1,
    "hunyuan_v1_moe": _HUNYUAN_V1,
    "chatglm": Row(
        "chatglm",
        softmax(kv=_chatglm_kv, dims="kv_channels"),
        lists=(),
        otherwise=(everywhere("full", "num_layers", "num_hidden_layers"),),
        before=_two_dimensional,
        silent=(
            *("apply_query_key_layer_scaling", "attention_softmax_in_fp32", "seq_length"),
            *("pre_seq_len", "prefix_projection", "apply_residual_connection_post_layernorm"),
            *("original_rope", "post_layer_norm", "hidden_size_per_attention_head"),
            # what it says of positions is unknown, and said to be
            *("rope_ratio", "multi_query_group_num"),
        ),
        classes=("ChatGLMModel",),
        # its base is multiplied by 'rope_ratio', and pairs are neighbours
        way=Way(by_ratio),
    ),
    "exaone": Row(
        "chatglm",
        softmax(dims=DIM),
        lists=(),
        otherwise=(everywhere("full", "num_layers", "num_hidden_layers"),),
    ),
    "gpt_neo": Row(
        "gpt_neo",
        {"global": Mixer(Full, _NEO), "local": Mixer(Window, _NEO | {"size": "window_size"})},
        lists=(),
        otherwise=(_repeated_types,),
        silent=("window_size",),
        way=_EMBEDDED,
    ),
    "jetmoe": Row(
        "own spelling",
        softmax(heads=_jetmoe_heads, kv="num_key_value_heads", dims="kv_channels"),
        lists=(),
        otherwise=(everywhere("full"),),
        silent=("num_attention_heads", "head_dim"),
    ),
    "deci": Row(
        "own spelling",
        {},
        read=deci,
        # of the layers with most of them, in files that have the list
        silent=("num_key_value_heads",),
    ),
    "nemotron-nas": Row(
        "own spelling",
        {},
        read=block_configs,
        own=("block_configs",),
        classes=("DeciLMForCausalLM",),
    ),
    "mellum": Row(
        "own spelling",
        softmax(),
        otherwise=(everywhere("full", note=_UNSLID, silent=("sliding_window",)),),
        way=based(500_000, local=10_000),
        norm=EACH,
    ),
    "phi3small": Row("own spelling", {}, before=_phi3small, way=Way(said)),
    "reformer": Row("own spelling", {}, before=_reformer, way=Way(said)),
    "doge": Row("own spelling", {}, before=_doge, way=Way(said)),
    "mllama": _MLLAMA,
    "mllama_text_model": _MLLAMA,
}
ROWS: dict[str, Row] = {**_DECODERS, **_OLD, **_ALTERNATING, **_OWN_HEADS, **_UNUSUAL}
