"""Communication protocols of the theorems: run them, refute them, or search all of them.

A theorem of theory.md, section 5, says that every model of some sizes fails because every protocol
of these sizes does. Here both can be looked at (theory.md, section 7):

- a protocol: `OneReading` (Theorem III), `TwoReadings` (IV), `ManyReadings` (VI and VII),
  `BlockMessages` (II), `FixedQuery` (I'), with message functions from `written` by hand,
  `random_tables`, or a solver such as `one_reading_solver`, which is right everywhere if it may
  send `enough`;
- its adversary: `adversary_iii`, `adversary_iv`, `adversary_vi` and `adversary_vii` run the steps
  of the proof against it and end in a `Collision`, two inputs that the last token cannot tell
  apart; `side_by_side` shows them. Those of VI and VII assert every step on the way, and raise
  `StepBroken` at a protocol that breaks the rules (`trials` counts how many of these they catch);
- a search over all protocols: `find_one_reading` and its like return one that is right everywhere,
  or show that there is none (extra `sat`); `gap_iii` and `gap_iv` compare that with the theorem.

Sizes are numbers of values, b bits being 2^b of them: the proofs count values and need no whole
bits.

Three reading layers that compose z_1, z_2 and z_3, if a cache tells w all of z_3. One value fewer,
and Theorem VII's adversary finds the two functions that are confused:

    >>> from dataclasses import replace
    >>> silent = ManyReadingsSizes(m=2, branching=(1, 2), t=2, reads=(1,) * 3, caches=(1,) * 4)
    >>> full = enough_many(silent)
    >>> full.reads, full.caches
    ((3, 3, 3), (1, 1, 1, 256))
    >>> line = many_readings_solver(replace(full, caches=(1, 1, 1, 255)))
    >>> play = adversary_vii(line, Choice(contents=(2, 2)))
    >>> play.asserted.total(), play.left
    (41173, (1024, 2))
    >>> print(side_by_side(line, play.collision))
    z_3         z_2   z_1   z_0   w   right answer
    [2] 3 3 3   0 0   0 0   0     0   2
    [3] 3 3 3   0 0   0 0   0     0   3
    The last token gets the same from both prompts and answers 2, which is wrong on one of them.
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
from separatrix.protocols.ledger import StepBroken
from separatrix.protocols.many_readings import ManyReadings, ManyReadingsSizes
from separatrix.protocols.many_solvers import enough_many, many_readings_solver
from separatrix.protocols.many_steps import Play
from separatrix.protocols.one_reading import OneReading, OneReadingSizes, Transcript, prompt
from separatrix.protocols.prices import Choice
from separatrix.protocols.solvers import (
    enough,
    enough_two,
    one_reading_solver,
    two_readings_solver,
)
from separatrix.protocols.tables import Tables, random_tables, skewed_tables, written
from separatrix.protocols.two_readings import TwoReadings, TwoReadingsSizes
from separatrix.protocols.vi_adversary import adversary_vi
from separatrix.protocols.vii_adversary import adversary_vii

__all__ = [
    "AdversaryFailed",
    "BlockMessageSizes",
    "BlockMessages",
    "Choice",
    "Collision",
    "FixedQuery",
    "Gap",
    "ManyReadings",
    "ManyReadingsSizes",
    "OneReading",
    "OneReadingSizes",
    "Play",
    "StepBroken",
    "Tables",
    "Transcript",
    "TwoReadings",
    "TwoReadingsSizes",
    "adversary_iii",
    "adversary_iv",
    "adversary_vi",
    "adversary_vii",
    "check_collision",
    "cyclic",
    "enough",
    "enough_many",
    "enough_two",
    "find_block_messages",
    "find_fixed_query",
    "find_one_reading",
    "find_two_readings",
    "gap_iii",
    "gap_iv",
    "many_readings_solver",
    "one_reading_solver",
    "prompt",
    "random_tables",
    "side_by_side",
    "skewed_tables",
    "two_readings_solver",
    "written",
]
