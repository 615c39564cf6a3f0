"""The second reader's families of softmax attention alone, written from the tables of
hf_configs.md, and its rule for unknown model types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Config = dict[str, Any]
TOKENS = 100


class Part(NamedTuple):
    """One mixer: its symbol, and numbers it remembers."""

    symbol: str
    state: int = 0
    channels: int = 0
    kernel: int = 1
    kv: int = 0
    window: int = 0
    shifts: int = 0
    state_p: int = 32
    grown: int = 0
    """Numbers of keys and values after 100 tokens, where they are not kv per token."""
    bounded: int = 0
    """Numbers of windows after 100 tokens, likewise."""


Layers = list[list[Part]]
WORDS = {
    "full_attention": "f",
    "attention": "f",
    "sliding_attention": "w",
    "chunked_attention": "c",
    "moe": "-",
    "mlp": "-",
}


def layer_list(c: Config, name: str) -> list[Any] | None:
    """A list with one entry per layer, without those of layers for multi-token prediction."""
    if name not in c:
        return None
    n = c["num_hidden_layers"]
    found = c[name][:n] if len(c[name]) == n + c.get("num_nextn_predict_layers", 0) else c[name]
    assert len(found) == n
    return found


def softmax(
    c: Config,
    symbol: str,
    *,
    kv: int | None = None,
    d: int | None = None,
    dv: int | None = None,
    window: int = 0,
) -> Part:
    kv = int(kv or c.get("num_key_value_heads") or c["num_attention_heads"])
    d = int(d or c.get("head_dim") or c.get("hidden_size", 0) // c.get("num_attention_heads", 1))
    size = window or c.get("sliding_window", 0)
    numbers = kv * (d + (dv or d))
    if symbol == "w":
        return Part("w", bounded=numbers * min(TOKENS, size))
    if symbol == "c":
        return Part("c", bounded=numbers * min(TOKENS, c["attention_chunk_size"]))
    return Part("-") if symbol == "-" else Part("f", kv=numbers)


def stacked(c: Config, symbols: str | list[str]) -> Layers:
    return [[softmax(c, symbol)] for symbol in symbols]


def typed(c: Config, otherwise: Callable[[], str]) -> Layers:
    types = layer_list(c, "layer_types")
    return stacked(c, [WORDS[word] for word in types] if types is not None else otherwise())


def same(c: Config) -> str:
    """No list of layers: a window that is not switched off, else chunks, else full."""
    slides = "sliding_window" in c and c.get("use_sliding_window") is not False
    return ("w" if slides else "c" if "attention_chunk_size" in c else "f") * c["num_hidden_layers"]


def switched(c: Config, otherwise: bool = False) -> str:
    on = c.get("use_sliding_window", otherwise) is True and "sliding_window" in c
    return "".join(
        "w" if on and i >= c["max_window_layers"] else "f" for i in range(c["num_hidden_layers"])
    )


def period(n: int, every: int, symbol: str = "w") -> str:
    return "".join("f" if i % every == every - 1 else symbol for i in range(n))


def alternating(default: int, name: str = "") -> Callable[[Config], Layers]:
    def read(c: Config) -> Layers:
        every = next((c[key] for key in (name, f"_{name}") if name and key in c), default)
        return typed(c, lambda: period(c["num_hidden_layers"], every))

    return read


def exaone(c: Config) -> Layers:
    n = c["num_hidden_layers"]
    pattern = c.get("sliding_window_pattern", 4)
    if isinstance(pattern, int):
        return typed(
            c,
            lambda: (
                period(n, pattern)
                if "sliding_window" in c or "sliding_window_pattern" in c
                else "f" * n
            ),
        )
    return typed(
        c,
        lambda: (
            ("".join("fw"["GL".index(x)] for x in pattern) * n)[:n]
            if "sliding_window" in c
            else "f" * n
        ),
    )


def older(c: Config) -> Layers:
    def first(*names: str) -> Any:
        return next((c[name] for name in names if name in c), None)

    n = first("num_hidden_layers", "n_layer", "num_layers", "n_layers")
    heads = first("num_attention_heads", "n_head", "num_heads", "n_heads")
    width = first("hidden_size", "n_embd", "d_model", "n_embed")
    kv = heads
    if c["model_type"] == "gpt_bigcode":
        kv = 1 if c["multi_query"] else heads
    if c["model_type"] == "falcon":
        kv = first("num_kv_heads", "n_head_kv") or heads
        kv = kv if c.get("new_decoder_architecture") else 1 if c["multi_query"] else kv
    if c["model_type"] == "dbrx":
        kv = c["attn_config"]["kv_n_heads"]
    return [[Part("f", kv=2 * kv * (width // heads))]] * n


def gemma4(c: Config) -> Layers:
    n = c["num_hidden_layers"]
    types = layer_list(c, "layer_types")
    symbols = [WORDS[word] for word in types] if types is not None else list(period(n, 6))
    symbols[-1] = "f"
    own = "num_global_key_value_heads" in c and (
        c.get("attention_k_eq_v") is True or "unified" in c["model_type"]
    )
    full = softmax(
        c, "f", kv=c["num_global_key_value_heads"] if own else None, d=c["global_head_dim"]
    )
    return sharing(c, [[full] if symbol == "f" else [softmax(c, symbol)] for symbol in symbols])


def sharing(c: Config, layers: Layers) -> Layers:
    """The last layers keep no keys and values, but read those of an earlier layer."""
    first = len(layers) - c.get("num_kv_shared_layers", 0)
    return layers[:first] + [[Part({"f": "E", "w": "W"}[s.symbol])] for (s,) in layers[first:]]


def gemma3n(c: Config) -> Layers:
    return sharing(c, alternating(5)(c))


def llama4(c: Config) -> Layers:
    n = c["num_hidden_layers"]
    rope = c.get("no_rope_layers")
    return typed(
        c,
        lambda: (
            "".join("fc"[x] for x in rope)
            if rope
            else period(n, c.get("no_rope_layer_interval", 4), "c")
        ),
    )


def mimo(c: Config) -> Layers:
    n = c["num_hidden_layers"]
    pattern = layer_list(c, "hybrid_layer_pattern")
    types = layer_list(c, "layer_types")
    if pattern is not None:
        symbols = ["fw"[x] for x in pattern]
    elif types is not None:
        symbols = [WORDS[word] for word in types]
    else:
        symbols = ["f" if i == 0 or i % 6 == 5 else "w" for i in range(n)]
    window = c.get("sliding_window") or c.get("sliding_window_size") or 0
    full = softmax(c, "f", dv=c["v_head_dim"])
    own = {
        "kv": c.get("swa_num_key_value_heads"),
        "d": c.get("swa_head_dim"),
        "dv": c.get("swa_v_head_dim"),
        "window": window,
    }
    return [[full] if symbol == "f" else [softmax(c, "w", **own)] for symbol in symbols]


def step(c: Config) -> Layers:
    kv = c.get("num_key_value_heads") or c["num_attention_groups"]
    other = c.get("attention_other_setting", {})
    own = other.get("num_key_value_heads") or other.get("num_attention_groups") or kv
    types = layer_list(c, "layer_types") or ["full_attention"] * c["num_hidden_layers"]
    return [
        [
            (
                softmax(c, "f", kv=kv)
                if WORDS[word] == "f"
                else softmax(c, "w", kv=own, d=other.get("head_dim"))
            )
        ]
        for word in types
    ]


def smallthinker(c: Config) -> Layers:
    layout = layer_list(c, "sliding_window_layout")
    if layout is None:
        return typed(
            c | {"sliding_window": c.get("sliding_window_size") or c.get("sliding_window") or 0},
            lambda: "f" * c["num_hidden_layers"],
        )
    return [
        [softmax(c, "fw"[x], window=c.get("sliding_window_size") or c.get("sliding_window") or 0)]
        for x in layout
    ]


def minimax_m3(c: Config) -> Layers:
    inner = c.get("sparse_attention_config", {})
    given = inner.get("sparse_attention_freq")
    freq = (
        None
        if given is None
        else layer_list(c | {"sparse_attention_freq": given}, "sparse_attention_freq")
    )
    if freq is not None and inner.get("use_sparse_attention") is False:
        freq = [0] * len(freq)
    types = layer_list(c, "layer_types")
    sparse = freq if freq is not None else [word == "minimax_m3_sparse" for word in types or []]
    full = softmax(c, "f")
    key = (
        inner["sparse_index_dim"]
        if inner.get("sparse_index_dim") is not None
        else c.get("index_head_dim", 0)
    )
    return [[full._replace(symbol="i", kv=full.kv + key) if yes else full] for yes in sparse]


def latents(c: Config) -> Layers:
    return [[Part("a", kv=c["kv_lora_rank"] + c["qk_rope_head_dim"])]] * c["num_hidden_layers"]


def indexed(c: Config) -> Layers:
    return [[Part("D", kv=c["kv_lora_rank"] + c["qk_rope_head_dim"] + c["index_head_dim"])]] * c[
        "num_hidden_layers"
    ]


def deepseek_v4(c: Config) -> Layers:
    """0: a window of one vector per token; m = 4 with an indexer and overlap, 128 without: an entry
    every m tokens, the window, and the content and gate of the tokens that wait (with overlap twice
    as wide, and one entry back).
    """
    ratios = layer_list(c, "compress_ratios")
    rates = c.get("compress_rates", {})
    if ratios is None:
        sparse = int(rates.get("compressed_sparse_attention") or c.get("compress_rate_csa") or 0)
        heavy = int(rates.get("heavily_compressed_attention") or c.get("compress_rate_hca") or 0)
        kinds = [word.split("_")[0] for word in layer_list(c, "layer_types") or []]
    else:
        sparse = 4
        heavy = 128
        kinds = [{0: "sliding", 4: "compressed", 128: "heavily"}[ratio] for ratio in ratios]
    d = c["head_dim"]
    key = c["index_head_dim"]
    near = min(TOKENS, c["sliding_window"])
    layers: Layers = []
    for kind in kinds:
        if kind == "sliding":
            layers.append([Part("w", bounded=near * d)])
        elif kind == "compressed":
            waiting = min(TOKENS, 2 * sparse - 1) * 2 * 2 * (d + key)
            layers.append(
                [Part("z", grown=TOKENS // sparse * (d + key), bounded=near * d + waiting)]
            )
        else:
            layers.append(
                [
                    Part(
                        "z",
                        grown=TOKENS // heavy * d,
                        bounded=near * d + min(TOKENS, heavy - 1) * 2 * d,
                    )
                ]
            )
    return layers


def plain(c: Config) -> Layers:
    return typed(c, lambda: same(c))


def qwen(c: Config) -> Layers:
    return typed(c, lambda: switched(c))


def all_full(c: Config) -> Layers:
    return typed(c, lambda: "f" * c["num_hidden_layers"])


GEMMA_3_CLASS = {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256}
"""What `Gemma3TextConfig` of transformers takes where a file says nothing."""
ATTENTION: dict[str, Callable[[Config], Layers]] = {
    **dict.fromkeys(("llama", "mistral", "mixtral", "seed_oss", "gemma"), plain),
    **dict.fromkeys(("qwen2", "qwen3"), qwen),
    "dots1": lambda c: typed(c, lambda: switched(c, otherwise=True)),
    **dict.fromkeys(("qwen3_moe", "minimax_m2"), all_full),
    **dict.fromkeys(("gpt2", "gpt_bigcode", "falcon", "dbrx"), older),
    **dict.fromkeys(("gemma2", "gpt_oss"), alternating(2)),
    "gemma3": alternating(6, "sliding_window_pattern"),
    "gemma3_text": lambda c: alternating(6, "sliding_window_pattern")(GEMMA_3_CLASS | c),
    "gemma3n_text": gemma3n,
    "cohere2": alternating(4, "sliding_window_pattern"),
    "olmo3": alternating(4),
    "exaone4": exaone,
    "afmoe": alternating(4, "global_attn_every_n_layers"),
    "cwm": lambda c: typed(
        c, lambda: "".join("fwww"[i % 4] for i in range(c["num_hidden_layers"]))
    ),
    "granite_swa": lambda c: typed(
        c, lambda: "".join("fwww"[i % 4] for i in range(c["num_hidden_layers"]))
    ),
    **dict.fromkeys(("gemma4", "gemma4_text", "gemma4_unified_text"), gemma4),
    **dict.fromkeys(("llama4", "llama4_text"), llama4),
    "mimo_v2_flash": mimo,
    "step3p7": step,
    "smallthinker": smallthinker,
    **dict.fromkeys(("minimax_m3", "minimax_m3_vl_text"), minimax_m3),
    "deepseek_v3": latents,
    **dict.fromkeys(("deepseek_v32", "glm_moe_dsa"), indexed),
    "deepseek_v4": deepseek_v4,
}


def unknown(c: Config) -> Layers:
    """A model type nobody reads: lists before periods, periods before what holds for all layers."""
    types = c.get("layer_types")
    if "compress_ratios" in c or (
        isinstance(types, list)
        and {"compressed_sparse_attention", "heavily_compressed_attention"} & set(types)
    ):
        return deepseek_v4(c)
    if "hybrid_layer_pattern" in c:
        return mimo(c)
    if "sliding_window_layout" in c:
        return smallthinker(c)
    if (
        isinstance(inner := c.get("sparse_attention_config"), dict)
        and inner.get("sparse_attention_freq") is not None
    ):
        return minimax_m3(c)
    words = {
        **WORDS,
        "conv": "u",
        "*": "f",
        "-": "-",
        "E": "-",
        1: "f",
        "indexed_attention": "i",
        "minimax_m3_sparse": "b",
    }
    for name in ("layer_types", "layers_block_type", "hybrid_override_pattern", "attn_type_list"):
        if (listed := layer_list(c, name)) is not None:
            return [[_single(c, words[word])] for word in listed]
    every = c.get("sliding_window_pattern") or c.get("_sliding_window_pattern")
    if every:
        return [[_single(c, symbol)] for symbol in period(c["num_hidden_layers"], every)]
    if "sliding_window" in c and "max_window_layers" in c:
        return [[_single(c, symbol)] for symbol in switched(c, otherwise=True)]
    if {"index_topk", "index_head_dim", "index_n_heads"} & set(c):
        return indexed(c)
    return latents(c) if "kv_lora_rank" in c else stacked(c, same(c))


def _single(c: Config, symbol: str) -> Part:
    if symbol == "u":
        return Part("u", channels=c["hidden_size"], kernel=c["conv_L_cache"])
    if symbol == "i":
        return indexed(c)[0][0]
    if symbol == "b":
        full = softmax(c, "f")
        return full._replace(symbol="i", kv=full.kv + c["index_head_dim"])
    if symbol == "f" and "kv_lora_rank" in c:
        return latents(c)[0][0]
    return softmax(c, symbol)
