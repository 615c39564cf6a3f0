"""What a theorem is called in print, and from which n a failure is said to hold."""

from __future__ import annotations

import re

from separatrix.numbers.amounts import format_count

_NUMBERED = re.compile(r"[IVX]+'?")
_CITED = re.compile(r"([A-Za-z]+\d*)-(\d[\d.]*)")
_NEVER_SHORTENED = 10**15
_SHORTEST = ("III", "IV", "V")
"""Theorems whose n is the shortest prompt shown to fail, not a size from which all do."""


def theorem_name(key: str) -> str:
    """A theorem as people cite it: "Theorem I", "[Ye26, Theorem 1.1]", "construction: retrieval";
    "" for none.
    """
    if key in ("", "none"):
        return ""
    if _NUMBERED.fullmatch(key):
        return f"Theorem {key}"
    cited = _CITED.fullmatch(key)
    return f"[{cited[1]}, Theorem {cited[2]}]" if cited else f"construction: {key}"


def since(n: int | None, theorem: str) -> str:
    """Where a failure begins: " from n = 7,675,932", " at n = 100" for a shortest prompt, "" where
    no n is known.
    """
    if n is None:
        return ""
    word = "at" if theorem in _SHORTEST else "from"
    shown = format_count(n, shorten_from=_NEVER_SHORTENED)
    return f" {word} n {'of' if shown.startswith('about') else '='} {shown}"
