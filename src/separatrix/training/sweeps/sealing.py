"""How damage is seen: a hash of each outcome with all that it belongs to, and a number that seals
what summaries are made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import int64
    from numpy.typing import NDArray

    from separatrix.core.evidence.outcome import Outcome

_FACTOR = 0x9E3779B97F4A7C15


def digest(*parts: object) -> bytes:
    """Of an ended run's key, specification, status, version and outcome; SQLite calls it, too."""
    return sha256("\n".join(map(str, parts)).encode("utf-8", "surrogatepass")).digest()


def seals(columns: Sequence[NDArray[int64]]) -> NDArray[int64]:
    """A number for each row of some columns. Each of its steps can be undone, so that a change of
    one number in a row always changes it; of several, all but once in 2^64.
    """
    import numpy as np

    found = np.ones(len(columns[0]), np.uint64)
    for column in columns:
        found ^= column.view(np.uint64)
        found *= np.uint64(_FACTOR)
        found ^= found >> np.uint64(32)
    return found.view(np.int64)


def seal(cell: int, rate: float, seed: int, status: int, outcome: Outcome) -> int:
    """Of what a run is and ended with: the columns of `schema.SEALED` in their order."""
    import numpy as np

    ended = (outcome.steps_done, outcome.correct, outcome.tested, outcome.right, outcome.due)
    columns = [np.array([number]) for number in (cell, rate, seed, status, *ended)]
    return int(seals([column.view(np.int64) for column in columns])[0])
