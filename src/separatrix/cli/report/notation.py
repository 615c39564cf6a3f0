"""How things look in print: the three answers, theorems, plain ASCII formulas ("n >= 58", "Omega(n
log n)", "10^-7"), numbers, and names of fields.
"""

from __future__ import annotations

import re
from typing import Any

from separatrix.core.evidence.records import Status
from separatrix.theory import THEOREMS

SIGNS: dict[Status, str] = {"SOLVABLE": "✓", "FAILS": "✗", "OPEN": "?"}
"""A status is written as it stands in the records, in every place: SOLVABLE, FAILS, OPEN."""

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
_INDEX_OR_UNDERSCORE = re.compile(
    r"((?:(?<=_)|(?<![A-Za-z0-9]))(?:[A-Za-z]|sigma)_(?:\d+|[a-z])(?![A-Za-z0-9_]))|_"
)
_MOST_DIGITS = 24


def formula(text: str) -> str:
    """`text` with unicode for its ASCII relations and Greek letters, and without control
    characters: n >= 5 becomes n ≥ 5. Indices and powers stay, so that a task can be copied.
    """
    text = "".join(c if c.isprintable() else " " for c in text)
    return _ASCII_WORD.sub(lambda match: _WORDS[match[0]], text)


def number(value: Any) -> str:
    """An integer with thousands separators, shortened beyond 24 digits; anything else as text."""
    if value is None or isinstance(value, bool):
        return {True: "yes", False: "no", None: "-"}[value]
    if not isinstance(value, int):
        return str(value)
    if value.bit_length() > 10_000:
        return f"about 2^{value.bit_length() - 1:,}"
    digits = str(abs(value))
    if len(digits) <= _MOST_DIGITS:
        return f"{value:,}"
    return f"about {'-' if value < 0 else ''}{digits[0]}.{digits[1:5]} x 10^{len(digits) - 1}"


def label(key: str) -> str:
    """A field name as words: cache_bits becomes "cache bits"; an index as in n_1 stays."""
    return _INDEX_OR_UNDERSCORE.sub(lambda m: m[0] if m[1] else " ", key)


def theorem_name(key: str) -> str:
    """A theorem as people cite it: "Theorem I", "[Ye26, Theorem 1.1]", "construction: retrieval";
    "" for none.
    """
    if key in THEOREMS:
        return THEOREMS[key].cited
    return f"Theorem {key}" if key else ""


def where(n: int | None, theorem: str) -> str:
    """Where a theorem shows failure, behind a word: " from n = 7,675,932 on", " at n = 282", ""
    where no n is known.
    """
    return "" if n is None else f" {THEOREMS[theorem].failing(n)}"
