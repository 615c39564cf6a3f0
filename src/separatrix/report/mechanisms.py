"""The token mixers as a table, one by one, and as the page docs/mechanisms.md, all from the code;
no torch.

The maths of a mixer is the docstring of its file in mixers/, read without importing it.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from separatrix.architecture import MECHANISMS, Mechanism
from separatrix.errors import UnknownNameError

TOKENS = 4096
"""Tokens at which costs and sizes are shown."""


@dataclass(frozen=True)
class Facts:
    """Formulas in the names of a mechanism's sizes (a space multiplies), and what others call
    it.
    """

    carried: str
    """Numbers carried after t >= 1 tokens, short convolution left out."""
    read: str = "0"
    """Numbers one token can take of a prefix (read_bits without a running maximum)."""
    elsewhere: str = ""
    """transformers: value of layer_types, or the model type; fla: layer of
    flash-linear-attention.
    """


_KV = "kv_heads (head_dim + value_dim)"
_MATRIX = "heads head_dim value_dim"
FACTS: dict[str, Facts] = {
    "full": Facts(
        f"{_KV} t",
        "heads (value_dim + 1)",
        "transformers: full_attention, attention; fla: Attention",
    ),
    "mla": Facts(
        "(latent + rope_dim) t",
        "heads (max(value_dim, latent) + 1)",
        "transformers: deepseek_v2, deepseek_v3; fla: MultiheadLatentAttention",
    ),
    "window": Facts(
        f"{_KV} min(t, size)",
        elsewhere="transformers: sliding_attention; fla: Attention(window_size)",
    ),
    "chunked": Facts(f"{_KV} min(t, size)", elsewhere="transformers: chunked_attention"),
    "sparse": Facts(
        f"{_KV} (t + t // block)",
        "heads (value_dim + 1 + topk (value_dim + 2))",
        "transformers: minimax_m3_sparse; fla: NativeSparseAttention",
    ),
    "moba": Facts(
        f"{_KV} t + kv_heads head_dim (t // block)", "heads topk (value_dim + 2)", "fla: MoBA"
    ),
    "indexed": Facts(
        f"({_KV} + index_dim) t",
        f"topk (1 + {_KV})",
        "transformers: indexed_attention; deepseek_v32, glm_moe_dsa; fla: ops.dsa",
    ),
    "compressed": Facts(
        "(head_dim + index_dim) (t // ratio) + head_dim min(t, size) + 2 (head_dim + index_dim)"
        " min(t, ratio - 1)",
        "heads (head_dim + 1)",
        "transformers: compressed_sparse_attention, heavily_compressed_attention (deepseek_v4)",
    ),
    "linear": Facts(
        "heads feature_dim (value_dim + normaliser)",
        elsewhere="transformers: linear_attention; fla: LinearAttention, BasedLinearAttention",
    ),
    "lightning": Facts(
        _MATRIX, elsewhere="transformers: linear_attention of minimax; fla: LightningAttention"
    ),
    "retnet": Facts(_MATRIX, elsewhere="fla: MultiScaleRetention"),
    "gla": Facts(_MATRIX, elsewhere="fla: GatedLinearAttention"),
    "hgrn2": Facts(_MATRIX, elsewhere="fla: HGRN2Attention"),
    "deltanet": Facts(_MATRIX, elsewhere="fla: DeltaNet"),
    "gdn": Facts(
        _MATRIX,
        elsewhere=(
            "transformers: linear_attention of qwen3_next, qwen3_5, olmo_hybrid; fla: GatedDeltaNet"
        ),
    ),
    "deltaproduct": Facts(_MATRIX, elsewhere="fla: GatedDeltaProduct"),
    "kda": Facts(
        _MATRIX, elsewhere="transformers: linear_attention of kimi_linear; fla: KimiDeltaAttention"
    ),
    "mlstm": Facts("heads (head_dim value_dim + head_dim + 1)", elsewhere="transformers: xlstm"),
    "rwkv": Facts(f"{_MATRIX} + shifts width", elsewhere="fla: RWKV6Attention, RWKV7Attention"),
    "loglinear": Facts(f"{_MATRIX} (floor(log2(t)) + 1)", elsewhere="fla: LogLinearMamba2"),
    "mamba": Facts(
        "width state",
        elsewhere="transformers: linear_attention of jamba, falcon_mamba; mamba; fla: Mamba",
    ),
    "mamba2": Facts(
        "heads head_dim state",
        elsewhere=(
            "transformers: mamba, linear_attention of nemotron_h, bamba, zamba2; mamba2; fla:"
            " Mamba2"
        ),
    ),
    "rglru": Facts("width", elsewhere="transformers: recurrent of recurrent_gemma"),
    "rwkv4": Facts("3 width + 2 hidden", elsewhere="transformers: rwkv"),
    "shortconv": Facts("width min(t, conv - 1)", elsewhere="transformers: conv (lfm2)"),
    "mlp": Facts("0", elsewhere="transformers: mlp, moe"),
}


def rows() -> list[dict[str, str | int | None]]:
    """One row per mechanism: sizes at the defaults after TOKENS tokens, cost of the next one,
    other names.
    """
    return [
        {
            "name": name,
            "symbol": cls.symbol,
            "mechanism": cls.title,
            "state": numbers(cls(), TOKENS),
            "grows": growth(cls()),
            "read": _read(cls()) if cls.reading else None,
            "flops": cls().flops(TOKENS),
            "mixer": "yes" if mathematics(name) else None,
            "elsewhere": FACTS[name].elsewhere if name in FACTS else "",
        }
        for name, cls in MECHANISMS.items()
    ]


def shown(row: dict[str, str | int | None]) -> dict[str, str]:
    """A row as people read it."""
    return {
        key: "-" if value is None else compact(value) if isinstance(value, int) else value
        for key, value in row.items()
    }


def compact(number: int) -> str:
    """98,304 -> 98 k: two digits or three."""
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= size:
            return (
                f"{number / size:.1f} {letter}"
                if number < 10 * size
                else f"{number // size} {letter}"
            )
    return str(number)


LEGEND = (
    f"state: numbers carried after {TOKENS:,} tokens at the default sizes; read: numbers one token"
    f" can take of a prefix; flops: operations to mix token {TOKENS:,}, projections not counted;"
    " mixer: yes where `separatrix` builds, trains and checks it, - where it knows the sizes only"
)


def describe(name: str) -> list[tuple[str, str]]:
    """(heading, text) pairs of one mechanism. Raises UnknownNameError."""
    if name not in MECHANISMS:
        raise UnknownNameError.of("mechanism", name, MECHANISMS, listing="separatrix mechanisms")
    cls = MECHANISMS[name]
    facts = FACTS.get(name)
    maths = mathematics(name)
    parts = [(f"{name}: {cls.title}", maths or " ".join((inspect.getdoc(cls) or "").split()))]
    if not maths and name != "mlp":
        parts.append(
            (
                "mixer",
                "none: sizes are declared, so it can be judged, but no model of it can be built",
            )
        )
    parts += [
        (
            "sizes and their defaults",
            "\n".join(f"{size} = {value}   {text}" for size, value, text in _sizes(cls)),
        )
    ]
    if facts is not None:
        parts.append(("numbers carried after t tokens", _with_convolution(cls, facts.carried)))
    parts.append((f"carried after {TOKENS:,} tokens at the defaults", _carried(cls())))
    if cls.reading:
        formula = f"{facts.read} numbers; " if facts is not None else ""
        parts.append(
            ("read by one token", f"{formula}h = {cls().read_bits():,} bits at the defaults")
        )
    parts.append(
        (f"operations to mix token {TOKENS:,} at the defaults", f"{cls().flops(TOKENS):,}")
    )
    if facts is not None:
        parts.append(("called elsewhere", facts.elsewhere))
    return [*parts, ("source", cls.source)]


def page() -> str:
    """docs/mechanisms.md."""
    table = [shown(row) for row in rows()]
    names = list(table[0])
    lines = [
        "# The mechanisms",
        "",
        (
            "Written by `separatrix mechanisms --markdown` from the code; a test compares. One"
            " mechanism: `separatrix mechanisms show gdn`."
        ),
        "",
        f"{LEGEND[0].upper()}{LEGEND[1:]}.",
        "",
        f"| {' | '.join(names)} |",
        f"|{'---|' * len(names)}",
        *(f"| {' | '.join(row.values())} |" for row in table),
    ]
    for name in MECHANISMS:
        (title, text), *parts = describe(name)
        lines += ["", f"## {title}", "", "```text", text, "```", ""]
        for heading, content in parts:
            lines += (
                ["", f"{heading}:", "", "```text", content, "```"]
                if "\n" in content
                else [f"- {heading}: {content}"]
            )
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def mathematics(name: str) -> str:
    """The docstrings of the files that hold the mixers of that name, "" if there is none."""
    folder = Path(__file__).parents[1] / "mixers"
    files = [
        folder / f"{name}.py",
        *sorted(folder.glob(f"{name}_*.py")),
    ]  # other forms of a mechanism: loglinear_gdn.py
    texts = [
        ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        for path in files
        if path.is_file()
    ]
    return "\n\n".join(
        text.removeprefix(f"{MECHANISMS[name].title}.").lstrip("\n") for text in texts
    )


def numbers(mechanism: Mechanism, t: int) -> int:
    """Numbers carried after t tokens."""
    return sum(item.bits.numbers for item in mechanism.cache(t))


def growth(mechanism: Mechanism) -> str:
    """How the cache grows with t: constant, log t or t."""
    one, two, four = (mechanism.cache_bits(1 << shift) for shift in (20, 21, 22))
    if one == two == four:
        return "constant"
    return "log t" if four - two == two - one else "t"


def _read(mechanism: Mechanism) -> int:
    return mechanism.read_bits() // mechanism.p


def _carried(mechanism: Mechanism) -> str:
    return (
        "\n".join(
            f"{item.kind}: {item.bits}" for item in mechanism.cache(TOKENS) if item.bits.total
        )
        or "nothing"
    )


def _with_convolution(cls: type[Mechanism], carried: str) -> str:
    has = any(f.name == "conv" and f.default == 0 for f in fields(cls))
    return f"{carried}{'   (+ min(t, conv - 1) inputs of each channel of a short convolution)' if has else ''}"


def _sizes(cls: type[Mechanism]) -> Iterator[tuple[str, Any, str]]:
    for f in fields(cls):
        yield f.name, f.default, f.metadata.get("text", "")
