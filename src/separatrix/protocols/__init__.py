"""Communication protocols of the theorems: run them, refute them, or search all of them.

A theorem of theory.md, section 5, says that every model of some sizes fails because every protocol
of these sizes does. Here both can be looked at (theory.md, section 7):

- a protocol: `OneReading` (Theorem III), `TwoReadings` (IV), `BlockMessages` (II), `FixedQuery`
  (I'), with message functions from `written` by hand, `random_tables`, or a solver such as
  `one_reading_solver`, which is right everywhere if it may send `enough`;
- its adversary: `adversary_iii` and `adversary_iv` run the steps of the proof against it and return
  a `Collision`, two inputs that the last token cannot tell apart; `side_by_side` shows them;
- a search over all protocols: `find_one_reading` and its like return one that is right everywhere,
  or show that there is none (extra `sat`); `gap_iii` and `gap_iv` compare that with the theorem.

Sizes are numbers of values, b bits being 2^b of them: the proofs count values and need no whole
bits.
"""

from __future__ import annotations

from separatrix.protocols.block_messages import (
    BlockMessages,
    BlockMessageSizes,
    cyclic,
    find_block_messages,
)
from separatrix.protocols.collision import (
    AdversaryFailed,
    Collision,
    check_collision,
    side_by_side,
)
from separatrix.protocols.existence import find_one_reading, find_two_readings
from separatrix.protocols.fixed_query import FixedQuery, find_fixed_query
from separatrix.protocols.gap import Gap, gap_iii, gap_iv
from separatrix.protocols.iii_adversary import adversary_iii
from separatrix.protocols.iv_adversary import adversary_iv
from separatrix.protocols.one_reading import OneReading, OneReadingSizes, Transcript, prompt
from separatrix.protocols.solvers import (
    enough,
    enough_two,
    one_reading_solver,
    two_readings_solver,
)
from separatrix.protocols.tables import Tables, random_tables, written
from separatrix.protocols.two_readings import TwoReadings, TwoReadingsSizes

__all__ = [
    "AdversaryFailed",
    "BlockMessageSizes",
    "BlockMessages",
    "Collision",
    "FixedQuery",
    "Gap",
    "OneReading",
    "OneReadingSizes",
    "Tables",
    "Transcript",
    "TwoReadings",
    "TwoReadingsSizes",
    "adversary_iii",
    "adversary_iv",
    "check_collision",
    "cyclic",
    "enough",
    "enough_two",
    "find_block_messages",
    "find_fixed_query",
    "find_one_reading",
    "find_two_readings",
    "gap_iii",
    "gap_iv",
    "one_reading_solver",
    "prompt",
    "random_tables",
    "side_by_side",
    "two_readings_solver",
    "written",
]
