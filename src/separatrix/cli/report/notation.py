"""Plain ASCII formulas ("n >= 58", "Omega(n log n)", "n^(2^(-4L))") as people read them: unicode
for terminals, HTML for the report.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

_WORDS = {
    ">=": "≥",
    "<=": "≤",
    "!=": "≠",
    "->": "→",
    "+/-": "±",
    "Omega": "Ω",
    "Theta": "Θ",
    "sigma": "σ",
    "eps": "ε",
    "beta": "β",
}
_ASCII_WORD = re.compile(
    r">=|<=|!=|->|\+/-|(?<![A-Za-z])(?:Omega|Theta|sigma|eps|beta)(?![A-Za-z])"
)
_TIMES = re.compile(r"(?<=\d) x (?=\d)")
_SUBSCRIPT = re.compile(r"(?<![A-Za-z0-9_])([A-Za-zσβ])_(\d+|[A-Za-z])(?![A-Za-z0-9_])")
_INDEX_OR_UNDERSCORE = re.compile(
    r"((?:(?<=_)|(?<![A-Za-z0-9]))(?:[A-Za-z]|sigma)_(?:\d+|[a-z])(?![A-Za-z0-9_]))|_"
)
_LONG_DECIMAL = re.compile(r"-?\d+\.\d{5,}(?:e[-+]?\d+)?")
_LOG2 = re.compile(r"(?<![A-Za-z])log2(?![A-Za-z0-9])")
_EXPONENT = re.compile(r"(?<=\d)e([-+]?)0*(\d+)\b")
_OPERAND = re.compile(r"[-+]?\w+(?:[.,]\d+)*")
_ARXIV = re.compile(r"arXiv[: ]+(\d{4}\.\d{4,5})")
_MOST_DIGITS = 24


def plain(text: str) -> str:
    """`text` with unicode for its ASCII relations and Greek letters, and without control
    characters.
    """
    text = "".join(c if c.isprintable() else " " for c in text)
    return _TIMES.sub(" × ", _ASCII_WORD.sub(lambda match: _WORDS[match[0]], text))


def subscripted(text: str) -> str:
    """`plain(text)` with unicode subscripts for digits: n_1 becomes n₁."""
    digits = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
    return _SUBSCRIPT.sub(
        lambda m: m[1] + m[2].translate(digits) if m[2].isdigit() else m[0], plain(text)
    )


def maths(text: str) -> Any:
    """`text` as safe HTML (markupsafe.Markup): powers raised, indices lowered, arXiv numbers
    linked; everything else escaped.
    """
    from markupsafe import Markup, escape

    html = _raise_powers(str(escape(plain(text))))
    html = _LOG2.sub("log<sub>2</sub>", _SUBSCRIPT.sub(r"\1<sub>\2</sub>", html))
    return Markup(_ARXIV.sub(r'<a href="https://arxiv.org/abs/\1">arXiv \1</a>', html))


def enclosure(text: str) -> Any:
    """A rigorous enclosure such as "[9.5e-7 +/- 4e-13]" as safe HTML: 9.5 × 10⁻⁷ ± 4 × 10⁻¹³."""
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    return maths(_EXPONENT.sub(lambda m: f" x 10^{m[1].replace('+', '')}{m[2]}", bare))


def bound(text: str) -> Any:
    """A decimal of a proof in four digits, all of them in its tooltip; other text as it is."""
    from markupsafe import Markup

    bare = text[1:-1].split(" ")[0] if text.startswith("[") and text.endswith("]") else text
    if not _LONG_DECIMAL.fullmatch(bare):
        return enclosure(text)
    value = Decimal(bare)
    short = f"{value:.3e}" if value and abs(value) < Decimal("0.001") else f"{value:.4g}"
    return Markup('<span title="{}">{}</span>').format(text, enclosure(short))


def _raise_powers(html: str) -> str:
    done = []
    place = 0
    while (caret := html.find("^", place)) >= 0:
        end = _operand_end(html, caret + 1)
        inner = html[caret + 1 : end]
        if not inner:
            done.append(html[place : caret + 1])
            place = caret + 1
            continue
        if inner.startswith("(") and inner.endswith(")"):
            inner = inner[1:-1]
        done.append(f"{html[place:caret]}<sup>{_raise_powers(inner)}</sup>")
        place = end
    return "".join(done) + html[place:]


def _operand_end(html: str, start: int) -> int:
    """Where the exponent that begins at `start` ends: a balanced group, or a word such as 12, n,
    64, Ω(1).
    """
    if html.startswith("(", start):
        return _closing(html, start)
    match = _OPERAND.match(html, start)
    if match is None:
        return start
    end = match.end()
    return _closing(html, end) if match[0] in "ΩΘO" and html.startswith("(", end) else end


def _closing(html: str, start: int) -> int:
    depth = 0
    for place in range(start, len(html)):
        depth += {"(": 1, ")": -1}.get(html[place], 0)
        if depth == 0:
            return place + 1
    return start


def number(value: Any) -> str:
    """An integer with thousands separators, shortened beyond 24 digits; anything else as text."""
    if not isinstance(value, int) or isinstance(value, bool):
        return (
            {True: "yes", False: "no", None: "-"}[value]
            if value is None or isinstance(value, bool)
            else str(value)
        )
    if value.bit_length() > 10_000:
        return f"about 2^{value.bit_length() - 1:,}"
    digits = str(abs(value))
    if len(digits) <= _MOST_DIGITS:
        return f"{value:,}"
    return f"about {'-' if value < 0 else ''}{digits[0]}.{digits[1:5]} x 10^{len(digits) - 1}"


def label(key: str) -> str:
    """A field name as words: cache_bits becomes "cache bits"; an index as in n_1 stays."""
    return _INDEX_OR_UNDERSCORE.sub(lambda m: m[0] if m[1] else " ", key)
