"""How the values of a composition are written in tokens (theory.md, sections 1, 5 and 11)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Spelling:
    """e_1 tokens per entry of a function, s_0 prompt tokens after z_1 before w, s_w from w on, and
    K answers with different first tokens (None: one token per answer).
    """

    e_1: int = 1
    s_0: int = 1
    s_w: int = 1
    K: int | None = None


PLAIN = Spelling()
