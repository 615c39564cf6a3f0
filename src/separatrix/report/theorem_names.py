"""Names of theorems in print, and the n from which a failure is said to hold."""

from __future__ import annotations

from separatrix.numbers.amounts import format_count

_NEVER_SHORTENED = 10**15


def theorem_name(key: str) -> str:
    """A theorem as people cite it: "Theorem I", "[Ye26, Theorem 1.1]", "construction: retrieval";
    "" for none.
    """
    from separatrix.theory import THEOREMS

    theorem = THEOREMS.get(key)
    if theorem is not None:
        return theorem.cited
    return f"Theorem {key}" if key else ""


def since(n: int | None, theorem: str) -> str:
    """Where a failure begins: " from n = 7,675,932", " at n = 100" for a shortest prompt, "" where
    no n is known.
    """
    if n is None:
        return ""
    from separatrix.theory import THEOREMS

    known = THEOREMS.get(theorem)
    word = "at" if known is not None and known.n_is_shortest else "from"
    shown = format_count(n, shorten_from=_NEVER_SHORTENED)
    return f" {word} n {'of' if shown.startswith('about') else '='} {shown}"
