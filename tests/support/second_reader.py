"""A second reader of config.json, written from the tables of hf_configs.md alone: what a file
the first reader accepts must come out as.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from support.second_reader_attention import ATTENTION, TOKENS, Config, Part, unknown

ABOVE = ("dtype", "torch_dtype", "model_type", "architectures")


class Silent(dict[str, Any]):
    """Fields of which a missing one counts 1: it may be missing only where it does not matter,
    else the counts differ.
    """

    def __missing__(self, key: str) -> int:
        return 1


def nested(config: Config) -> Config:
    """The fields of the language model that are not null, and those around it that it leaves
    open.
    """
    while True:
        inner = next(
            (
                config[key]
                for key in ("text_config", "llm_config", "language_config")
                if config.get(key) is not None
            ),
            None,
        )
        if inner is None:
            return Silent(
                {
                    key: value
                    for key, value in config.items()
                    if value is not None or key == "mamba_d_ssm"
                }
            )
        outer = {key: value for key, value in config.items() if key in ABOVE and value is not None}
        if "dtype" in inner or "torch_dtype" in inner:
            outer = {key: value for key, value in outer.items() if "dtype" not in key}
        config = outer | {key: value for key, value in inner.items() if value is not None}


def model_bits(c: Config) -> int:
    return {"float32": 32, "float64": 64}.get(
        (c.get("dtype") or c.get("torch_dtype") or "bfloat16").removeprefix("torch."), 16
    )


def expected(config: Config) -> tuple[str, dict[str, int]]:
    """Pattern (parts of one layer joined by "|"), and bits of each kind of memory after 100
    tokens.
    """
    c = nested(config)
    p = model_bits(c)
    layers = _reader(c)(c)
    bits = {"state": 0, "convolution": 0, "kv": 0, "window": 0}
    for layer in layers:
        for part in layer:
            bits["state"] += part.state * part.state_p + part.shifts * p
            bits["convolution"] += part.channels * min(TOKENS, max(part.kernel - 1, 0)) * p
            bits["window" if part.window else "kv"] += (
                part.kv * min(TOKENS, part.window or TOKENS) * p
            )
            bits["kv"] += part.grown * p
            bits["window"] += part.bounded * p
    return "".join("|".join(part.symbol for part in layer) for layer in layers), {
        kind: total for kind, total in bits.items() if total
    }


CLASSES = {
    **{
        "Qwen3NextForCausalLM": "qwen3_next",
        "NemotronHForCausalLM": "nemotron_h",
        "RecurrentGemmaForCausalLM": "recurrent_gemma",
    },
    **{
        "KimiLinearForCausalLM": "kimi_linear",
        "JambaForCausalLM": "jamba",
        "Zamba2ForCausalLM": "zamba2",
        "Mamba2ForCausalLM": "mamba2",
    },
    **{
        "FalconH1ForCausalLM": "falcon_h1",
        "GraniteMoeHybridForCausalLM": "granitemoehybrid",
        "MiniMaxText01ForCausalLM": "minimax_text_01",
    },
    **{
        "LlamaForCausalLM": "llama",
        "GptOssForCausalLM": "gpt_oss",
        "GlmMoeDsaForCausalLM": "glm_moe_dsa",
    },
    **{
        "Gemma4ForConditionalGeneration": "gemma4",
        "Llama4ForConditionalGeneration": "llama4",
        "MiMoV2FlashForCausalLM": "mimo_v2_flash",
    },
    **{"Step3p7FlashForCausalLM": "step3p7", "MiniMaxM3ForCausalLM": "minimax_m3"},
    **{"DeepseekV32ForCausalLM": "deepseek_v32", "DeepseekV4ForCausalLM": "deepseek_v4"},
}


def _reader(c: Config) -> Callable[[Config], list[list[Part]]]:
    """By model type, then by class, else by the usual fields."""
    known = {**RECURRENT, **ATTENTION}
    if "n_layer" in c and "model_type" not in c and ("ssm_cfg" in c or "attn_layer_idx" in c):
        return RECURRENT["mamba_ssm"]
    if c.get("model_type") in known:
        return known[c["model_type"]]
    named = c.get("architectures")
    first = named[0] if isinstance(named, list) and named else None
    return known[CLASSES[first]] if isinstance(first, str) and first in CLASSES else unknown


def stack(listed: list[Any], meaning: dict[Any, Part | list[Part]]) -> list[list[Part]]:
    return [part if isinstance(part := meaning[word], list) else [part] for word in listed]


def attention(c: Config, head_dim: int | None = None, *, windowed: bool = False) -> Part:
    d = head_dim or c.get("head_dim") or c.get("hidden_size", 0) // c.get("num_attention_heads", 1)
    window = (
        c["sliding_window"]
        if windowed and "sliding_window" in c and c.get("use_sliding_window") is not False
        else 0
    )
    if not window and windowed and "attention_chunk_size" in c:
        return Part("c", kv=2 * c["num_key_value_heads"] * d, window=c["attention_chunk_size"])
    return Part("w" if window else "f", kv=2 * c["num_key_value_heads"] * d, window=window)


def every(n: int, full: set[int]) -> list[str]:
    return ["full_attention" if i in full else "linear_attention" for i in range(n)]


def words(recurrent: Part | list[Part], full: Part | list[Part]) -> dict[Any, Part | list[Part]]:
    return {
        "mamba": recurrent,
        "linear_attention": recurrent,
        "attention": full,
        "full_attention": full,
    }


def types(c: Config) -> list[str] | None:
    return c.get("layer_types", c.get("layers_block_type"))


def delta(c: Config, hk: int, hv: int, dk: int, dv: int, kernel: int, state_p: int = 32) -> Part:
    return Part("g", hv * dk * dv, 2 * hk * dk + hv * dv, kernel, state_p=state_p)


def qwen(c: Config) -> list[list[Part]]:
    n = c["num_hidden_layers"]
    listed = c.get("layer_types")
    if listed is None:
        interval = c.get("full_attention_interval", 4)
        listed = every(n, {i for i in range(n) if (i + 1) % interval == 0})
    names = (
        "num_key_heads",
        "num_value_heads",
        "key_head_dim",
        "value_head_dim",
        "conv_kernel_dim",
    )
    state_p = {"bfloat16": 16, "float16": 16, "float64": 64}.get(
        c.get("mamba_ssm_dtype", "").removeprefix("torch."), 32
    )
    return stack(
        listed,
        words(delta(c, *(c[f"linear_{name}"] for name in names), state_p=state_p), attention(c)),
    )


def olmo(c: Config) -> list[list[Part]]:
    n = c["num_hidden_layers"]
    heads = c["num_attention_heads"]
    listed = types(c) or every(n, {i for i in range(n) if i % 4 == 3} or {n - 1})
    hk = c.get("linear_num_key_heads", heads)
    hv = c.get("linear_num_value_heads", heads)
    dk = c.get("linear_key_head_dim") or 3 * c["hidden_size"] // (4 * hk)
    dv = c.get("linear_value_head_dim", 2 * dk)
    return stack(
        listed,
        words(
            delta(c, hk, hv, dk, dv, c["linear_conv_kernel_dim"]),
            attention({"num_key_value_heads": heads} | c),
        ),
    )


def nemotron(c: Config) -> list[list[Part]]:
    inner = c["mamba_num_heads"] * c["mamba_head_dim"]
    groups = c.get("n_groups", c.get("mamba_n_groups"))
    kernel = c.get("conv_kernel", c.get("mamba_d_conv"))
    assert groups is not None
    assert kernel is not None
    state_p = {"bfloat16": 16, "float16": 16, "float64": 64}.get(
        c.get("mamba_ssm_cache_dtype", "").removeprefix("torch."), 32
    )
    mamba = Part(
        "m",
        inner * c["ssm_state_size"],
        inner + 2 * groups * c["ssm_state_size"],
        kernel,
        state_p=state_p,
    )
    full = attention(c, c.get("attention_head_dim", c.get("head_dim")), windowed=True)
    meaning = (
        words(mamba, full)
        | {"M": mamba, "*": full}
        | dict.fromkeys(("-", "E", "mlp", "moe"), Part("-"))
    )
    return stack(c.get("hybrid_override_pattern") or types(c) or [], meaning)


def gemma(c: Config) -> list[list[Part]]:
    blocks = c["block_types" if "block_types" in c else "_block_types"]
    near = Part(
        "w", kv=2 * c["num_key_value_heads"] * c["head_dim"], window=c["attention_window_size"]
    )
    rglru = Part("r", c["lru_width"], c["lru_width"], c["conv1d_width"])
    return [
        [rglru if blocks[i % len(blocks)] == "recurrent" else near]
        for i in range(c["num_hidden_layers"])
    ]


def kimi(c: Config) -> list[list[Part]]:
    inner = c.get("linear_attn_config") or {}
    n = c["num_hidden_layers"]
    full = inner.get("full_attn_layers")
    kda = inner.get("kda_layers")
    if full is not None and kda is not None:
        base = min([*full, *kda])
        listed = every(n, {i - base for i in full})
    elif full is not None or kda is not None:
        one = full or kda or []
        shift = 1 if n in one else 0
        listed = every(n, {i for i in range(n) if (i + shift in one) == (full is not None)})
    else:
        listed = c["layer_types"]

    def size(name: str, flat: str) -> int:
        return inner[name] if inner.get(name) is not None else c[flat]

    h = size("num_heads", "linear_num_heads")
    d = size("head_dim", "linear_head_dim")
    part = Part("k", h * d * d, 3 * h * d, size("short_conv_kernel_size", "linear_conv_kernel_dim"))
    return stack(listed, words(part, Part("a", kv=c["kv_lora_rank"] + c["qk_rope_head_dim"])))


def minimax(c: Config) -> list[list[Part]]:
    ported = "attn_type_list" not in c
    heads = c["num_attention_heads"]
    # transformers leaves the size out of what it saves where it is the quotient
    d = c["hidden_size"] // heads if ported and "head_dim" not in c else c["head_dim"]
    lightning = Part("y", heads * d**2, state_p=model_bits(c) if ported else 32)
    softmax = attention(c, windowed=True)
    return stack(
        c["layer_types"] if "attn_type_list" not in c else c["attn_type_list"],
        {0: lightning, 1: softmax} | words(lightning, softmax),
    )


def mamba_part(c: Config, width: int, state: str, kernel: str) -> Part:
    return Part("b", width * c[state], width, c[kernel])


def mamba2_part(inner: int, state: int, groups: int, kernel: int) -> Part:
    return Part("m", inner * state, inner + 2 * groups * state, kernel)


def jamba(c: Config) -> list[list[Part]]:
    n = c["num_hidden_layers"]
    listed = types(c) or every(
        n, {i for i in range(n) if i % c["attn_layer_period"] == c["attn_layer_offset"]}
    )
    return stack(
        listed,
        words(
            mamba_part(
                c, round(c["mamba_expand"] * c["hidden_size"]), "mamba_d_state", "mamba_d_conv"
            ),
            attention(c),
        ),
    )


def bamba(c: Config) -> list[list[Part]]:
    explicit = isinstance(c.get("mamba_d_head"), int)
    inner = (
        c["mamba_n_heads"] * c["mamba_d_head"]
        if explicit
        else round(c["mamba_expand"] * c["hidden_size"])
    )
    part = mamba2_part(inner, c["mamba_d_state"], c["mamba_n_groups"], c["mamba_d_conv"])
    indexed = "attn_layer_indices" in c and c.get("model_type") == "bamba"
    listed = every(c["num_hidden_layers"], set(c["attn_layer_indices"])) if indexed else types(c)
    return stack(listed or [], words(part, attention(c)))


def falcon_h1(c: Config) -> list[list[Part]]:
    if isinstance(c.get("mamba_d_head"), int):
        inner = c["mamba_n_heads"] * c["mamba_d_head"]
    else:
        inner = (
            c["mamba_d_ssm"]
            if c["mamba_d_ssm"] is not None
            else round(c["mamba_expand"] * c["hidden_size"])
        )
    pair = [
        attention(c),
        mamba2_part(inner, c["mamba_d_state"], c["mamba_n_groups"], c["mamba_d_conv"]),
    ]
    return [pair] * c["num_hidden_layers"]


def mamba(c: Config) -> list[list[Part]]:
    width = (
        c["intermediate_size"]
        if "intermediate_size" in c
        else round(c["expand"] * c["hidden_size"])
    )
    return [[mamba_part(c, width, "state_size", "conv_kernel")]] * c["num_hidden_layers"]


def mamba2(c: Config) -> list[list[Part]]:
    explicit = "num_heads" in c and "head_dim" in c
    inner = c["num_heads"] * c["head_dim"] if explicit else round(c["expand"] * c["hidden_size"])
    return [[mamba2_part(inner, c["state_size"], c["n_groups"], c["conv_kernel"])]] * c[
        "num_hidden_layers"
    ]


def log_linear(c: Config) -> list[list[Part]]:
    # 7 buckets hold 100 tokens
    return [[layer[0]._replace(symbol="o", state=7 * layer[0].state)] for layer in mamba2(c)]


def zamba(c: Config) -> list[list[Part]]:
    n = c["num_hidden_layers"]
    second = c["model_type"] == "zamba2"
    listed = c.get("layers_block_type", c.get("layer_types"))
    if listed is None:
        later = [
            "hybrid" if i % c["attn_layer_period"] == c["attn_layer_offset"] else "mamba"
            for i in range(n - 3)
        ]
        listed = ["mamba", "mamba", "hybrid", *later]
    expand = c["mamba_expand"] if "mamba_expand" in c else c["expansion_factor"]
    inner = round(expand * c["hidden_size"])
    if second:
        state = c.get("mamba_d_state", c.get("state_size"))
        kernel = c.get("mamba_d_conv", c.get("conv_dimension"))
        part = mamba2_part(inner, state or 0, c["mamba_ngroups"], kernel or 0)
    else:
        part = mamba_part(c, inner, "mamba_d_state", "mamba_d_conv")
    d = c.get("attention_head_dim") or 2 * c["hidden_size"] // c["num_attention_heads"]
    return stack(
        listed,
        words(part, part) | {"hybrid": [Part("f", kv=2 * c["num_key_value_heads"] * d), part]},
    )


def lfm2(c: Config) -> list[list[Part]]:
    n = c["num_hidden_layers"]
    listed = c["layer_types"] if "layer_types" in c else every(n, set(c["full_attn_idxs"]))
    conv = Part("u", 0, c["hidden_size"], c["conv_L_cache"])
    return stack(listed, words(conv, attention(c)) | {"conv": conv})


def hymba(c: Config) -> list[list[Part]]:
    inner = round(c["mamba_expand"] * c["hidden_size"])
    heads = c["num_attention_heads"]
    part = mamba_part(c, inner, "mamba_d_state", "mamba_d_conv")
    kv = c["num_key_value_heads"] * (c["hidden_size"] + inner) // heads
    near = Part("w", kv=kv, window=c["sliding_window"])
    wide = Part("f", kv=kv)
    return [
        [wide if i in c["global_attn_idx"] else near, part] for i in range(c["num_hidden_layers"])
    ]


def rwkv4(c: Config) -> list[list[Part]]:
    return [
        [
            Part(
                "V",
                3 * c.get("attention_hidden_size", c["hidden_size"]),
                shifts=2 * c["hidden_size"],
            )
        ]
    ] * c["num_hidden_layers"]


def xlstm(c: Config) -> list[list[Part]]:
    wide = c["hidden_size"] if "hidden_size" in c else c["embedding_dim"]
    h = c["num_heads"]
    dk = round(wide * c["qk_dim_factor"]) // h
    dv = round(wide * c["v_dim_factor"]) // h
    state_p = {"bfloat16": 16, "float16": 16, "float64": 64}.get(
        c.get("inference_state_dtype", "").removeprefix("torch."), 32
    )
    n = c["num_hidden_layers"] if "num_hidden_layers" in c else c["num_blocks"]
    return [[Part("x", h * (dk * dv + dk + 1), state_p=state_p)]] * n


def with_attn(c: Config, layers: list[Part], beside: list[Part] | None = None) -> list[list[Part]]:
    """`attn` of flash-linear-attention over a stack."""
    out = [[part] for part in layers]
    specs = c.get("attn") or []
    for spec in [specs] if isinstance(specs, dict) else specs:
        if not spec["layers"]:
            continue
        heads = spec["num_heads"]
        window = spec.get("window_size") or 0
        kv = 2 * (spec.get("num_kv_heads") or heads) * (c["hidden_size"] // heads)
        for i in spec["layers"]:
            out[i] = [Part("w" if window else "f", kv=kv, window=window), *(beside or [])]
    return out


def fla(symbol: str) -> Callable[[Config], list[list[Part]]]:
    def read(c: Config) -> list[list[Part]]:
        hidden = c.get("hidden_size", 0)
        channels = 0
        kernel = 1
        if symbol == "e":
            ratio = c["expand_ratio"] if "expand_ratio" in c else hidden // c["num_heads"]
            heads = c.get("num_heads") or hidden // ratio
            state = hidden * ratio
            channels = 2 * heads * ratio + hidden
        elif symbol in "gkp":
            hk = c["num_heads"]
            dk = c["head_dim"]
            each = c["num_householder"] if symbol == "p" else 1
            hv = c.get("num_v_heads", hk)
            dv = round(dk * c["expand_v"])
            state = hv * dk * dv
            channels = (1 + each) * hk * dk + each * hv * dv
        else:
            keys = round(hidden * c["expand_k"])
            values = round(hidden * c["expand_v"])
            state = keys * values // c["num_heads"]
            channels = 2 * keys + values
            state += keys if symbol == "l" and c["norm_feature_map"] else 0
        if symbol not in "lv" and c["use_short_conv"]:
            kernel = c["conv_size"]
        shift = Part("u", 0, hidden, 2)
        part = Part(
            symbol,
            state,
            0 if kernel == 1 else channels,
            kernel,
            shifts=2 * hidden if symbol == "v" else 0,
        )
        return with_attn(c, [part] * c["num_hidden_layers"], [shift] if symbol == "v" else None)

    return read


def rwkv7(c: Config) -> list[list[Part]]:
    n = c["num_hidden_layers"]
    hidden = c["hidden_size"]
    heads = hidden // c["head_dim"] if "head_dim" in c else c["num_heads"]
    wide = c.get("value_dim", hidden)
    values = wide if isinstance(wide, list) else [wide] * n
    return with_attn(
        c,
        [Part("v", hidden * v // heads, shifts=2 * hidden) for v in values],
        [Part("u", 0, hidden, 2)],
    )


def samba(c: Config) -> list[list[Part]]:
    return with_attn(c, [layer[0] for layer in mamba(c)])


def native(c: Config) -> list[list[Part]]:
    ssm = c.get("ssm_cfg") or {}
    attn = c.get("attn_cfg") or {}
    places = set(c.get("attn_layer_idx") or [])
    full = Part("f")
    part = Part("?")
    if places:
        h = attn["num_heads"]
        kernel = attn.get("d_conv") or 0
        kv = attn.get("num_heads_kv") or h
        d = attn.get("head_dim") or c["d_model"] // h
        full = Part("f", 0, (h + 2 * kv) * d if kernel else 0, kernel, kv=2 * kv * d)
    if len(places) < c["n_layer"]:
        inner = round(ssm["expand"] * c["d_model"])
        if ssm.get("layer") == "Mamba2":
            part = mamba2_part(inner, ssm["d_state"], ssm["ngroups"], ssm["d_conv"])
        else:
            part = mamba_part(ssm, inner, "d_state", "d_conv")
    return [[full if i in places else part] for i in range(c["n_layer"])]


RECURRENT: dict[str, Callable[[Config], list[list[Part]]]] = {
    **dict.fromkeys(
        ("qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"), qwen
    ),
    **dict.fromkeys(("kimi_linear", "kimi_k3"), kimi),
    **dict.fromkeys(("minimax", "minimax_text_01", "minimax_m1"), minimax),
    **dict.fromkeys(("bamba", "granitemoehybrid"), bamba),
    **dict.fromkeys(("mamba", "falcon_mamba"), mamba),
    **dict.fromkeys(("zamba", "zamba2"), zamba),
    **dict.fromkeys(("lfm2", "lfm2_moe"), lfm2),
    **{
        name: fla(symbol)
        for name, symbol in (
            ("gla", "q"),
            ("retnet", "t"),
            ("delta_net", "d"),
            ("hgrn2", "e"),
            ("rwkv6", "v"),
        )
    },
    **{
        name: fla(symbol)
        for name, symbol in (
            ("gated_deltanet", "g"),
            ("gated_deltaproduct", "p"),
            ("kda", "k"),
            ("linear_attn", "l"),
        )
    },
    "olmo_hybrid": olmo,
    "nemotron_h": nemotron,
    "recurrent_gemma": gemma,
    "jamba": jamba,
    "falcon_h1": falcon_h1,
    "mamba2": mamba2,
    "log_linear_mamba2": log_linear,
    "hymba": hymba,
    "rwkv": rwkv4,
    "xlstm": xlstm,
    "rwkv7": rwkv7,
    "samba": samba,
    "mamba_ssm": native,
}
"""By `model_type`."""
