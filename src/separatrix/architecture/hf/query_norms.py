"""Which model classes norm queries and keys before they meet, and how.

What a class does is a line of the table below, as transformers defines it; a flag of the file
switches some of them on or off. A flag that is true in a file of another class says that there is a
norm, and not which: it counts as one of another kind.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from separatrix.architecture.hf.fields import Fields, shown

_FLAGS = (
    *("use_qk_norm", "qk_norm", "qk_layernorm", "use_qk_layernorm", "qk_layer_norms", "qk_ln"),
    *("use_query_key_norm", "query_key_norm"),
)
"""How files call the flag."""


class Norm(NamedTuple):
    """The norm of a class: a value of the size `qk_norm`, and the flag that switches it."""

    kind: str
    flag: str = ""
    usually: bool = True
    """What the class takes where the flag is absent."""


_LINES: dict[tuple[str, ...], Norm] = {
    (
        *("qwen3", "qwen3_moe", "qwen3_vl_text", "qwen3_vl_moe_text", "qwen3_next", "qwen3_5"),
        *("qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text", "gemma3", "gemma3_text", "gemma3n"),
        *("gemma3n_text", "gemma4", "gemma4_text", "gemma4_unified", "gemma4_unified_text"),
        *("afmoe", "apertus", "dots1", "exaone4", "exaone_moe", "hy_v3", "lfm2"),
        *("lfm2_moe", "mellum", "minimax_m3", "minimax_m3_vl", "minimax_m3_vl_text"),
        *("step3p5", "step3p7"),
    ): Norm("head"),
    ("glm4_moe",): Norm("head", "use_qk_norm", usually=False),
    ("olmo2", "olmo3", "olmo_hybrid", "olmoe", "flex_olmo", "minimax_m2"): Norm("all"),
    # behind the rotation
    ("hunyuan_v1_dense", "hunyuan_v1_moe"): Norm("other"),
    ("hunyuan",): Norm("other", "use_qk_norm", usually=False),
    # layer norms, which take the mean away
    ("cohere",): Norm("other", "use_qk_norm", usually=False),
    ("phi", "stablelm"): Norm("other", "qk_layernorm", usually=False),
    ("persimmon",): Norm("other", "qk_layernorm"),
    # flash-linear-attention; what stands beside `attn` is said of linear layers
    ("transformer", "moba"): Norm("head", "qk_norm", usually=False),
    (
        *("gla", "retnet", "delta_net", "gated_deltanet", "gated_deltaproduct", "kda", "hgrn"),
        *("gsa", "comba", "hgrn2", "linear_attn", "rwkv6", "rwkv7", "samba", "log_linear_mamba2"),
    ): Norm("head", "attn.qk_norm", usually=False),
    # read with its other sizes
    ("forgetting_transformer",): Norm("none"),
    # norms without weights where it rotates (`bounded_by_norm`), and none elsewhere
    ("llama4", "llama4_text"): Norm("none"),
}
_NORMS = {kind: norm for kinds, norm in _LINES.items() for kind in kinds}


def query_norm(kind: str, fields: Fields) -> str:
    """The size `qk_norm` of attention layers of that model type, which have these fields. Raises
    ConfigError for a flag that is neither true nor false.
    """
    norm = _NORMS.get(kind)
    if norm is None:
        return "other" if any(_said(fields, name) is True for name in _FLAGS) else "none"
    said = _said(fields, norm.flag) if norm.flag else None
    if said is not None and not isinstance(said, bool):
        raise fields.error(f"'{norm.flag}' is {shown(said)}; it must be true or false")
    return norm.kind if (norm.usually if said is None else said) else "none"


def bounded_by_norm(kind: str, file: Fields, *, rotated: bool) -> bool:
    """Whether queries and keys come out of a norm without weights: Llama 4, where it rotates."""
    there = rotated and kind in ("llama4", "llama4_text")
    return there and file.flag("use_qk_norm") is not False


def _said(fields: Fields, flag: str) -> Any:
    """What a field of that name says, the innermost first; of an object alone, if `flag` has a
    dot."""
    _, inner, name = flag.rpartition(".")
    found = [key for key in fields.data if key.rpartition(".")[2] == name]
    found = [key for key in found if "." in key or not inner]
    return fields.data[max(found, key=lambda key: key.count("."))] if found else None
