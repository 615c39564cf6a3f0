"""Names of theorems in print, and where a failure is said to hold."""

from __future__ import annotations


def theorem_name(key: str) -> str:
    """A theorem as people cite it: "Theorem I", "[Ye26, Theorem 1.1]", "construction: retrieval";
    "" for none.
    """
    from separatrix.theory import THEOREMS

    theorem = THEOREMS.get(key)
    if theorem is not None:
        return theorem.cited
    return f"Theorem {key}" if key else ""


def where(n: int | None, theorem: str) -> str:
    """Where a theorem shows failure, behind a word: " from n = 7,675,932 on", " at n = 282", ""
    where no n is known.
    """
    from separatrix.theory import THEOREMS

    return "" if n is None else f" {THEOREMS[theorem].failing(n)}"
