"""Communication protocols of the theorems: run them and refute them.

A theorem of theory.md, section 5, says that every model of some sizes fails because every protocol
of these sizes does. Here that can be looked at (theory.md, section 7):

- a protocol: `OneReading` (Theorem III), `BlockMessages` (II), `FixedQuery` (I'), with message
  functions from `written` by hand, `random_tables`, or `one_reading_solver`, which is right
  everywhere if it may send `enough`;
- its adversary: `adversary_iii` runs the steps of the proof against it and ends in a `Collision`,
  two inputs that the last token cannot tell apart; `side_by_side` shows them. The adversaries of
  Theorems IV, VI and VII stand beside the tests that run them (tests/adversaries).

Sizes are numbers of values, b bits being 2^b of them: the proofs count values and need no whole
bits.
"""

from __future__ import annotations

from separatrix.protocols.block_messages import BlockMessages, BlockMessageSizes
from separatrix.protocols.collision import (
    AdversaryFailed,
    Collision,
    check_collision,
    side_by_side,
)
from separatrix.protocols.fixed_query import FixedQuery
from separatrix.protocols.iii_adversary import adversary_iii
from separatrix.protocols.one_reading import OneReading, OneReadingSizes, prompt
from separatrix.protocols.solvers import enough, one_reading_solver
from separatrix.protocols.steps import most_frequent
from separatrix.protocols.tables import random_tables, written

__all__ = [
    "AdversaryFailed",
    "BlockMessageSizes",
    "BlockMessages",
    "Collision",
    "FixedQuery",
    "OneReading",
    "OneReadingSizes",
    "adversary_iii",
    "check_collision",
    "enough",
    "most_frequent",
    "one_reading_solver",
    "prompt",
    "random_tables",
    "side_by_side",
    "written",
]
