"""A string that is copied: every blank reads where the mark stands, and then the value that stands
as far behind the first place as it stands behind the mark.
"""

from __future__ import annotations

import numpy as np

from separatrix.models.model import Model
from separatrix.proofs.arithmetic import FP32, Arithmetic
from separatrix.proofs.derivations.flags import Kinds, telling
from separatrix.proofs.derivations.parts.derivation import Derivation, Derived, derived
from separatrix.proofs.derivations.parts.live_parts import live_of
from separatrix.proofs.derivations.parts.queries import Queries, Wanted
from separatrix.proofs.derivations.parts.reading import Reading, readout
from separatrix.proofs.derivations.parts.stream import Embedded, Stream
from separatrix.proofs.machine import stacked
from separatrix.tasks import Copying
from separatrix.tasks.base.task import Tokens

_MARK = "the place of the mark"
_VALUE = "the value that is due"


def derive(task: Copying, model: Model, arithmetic: Arithmetic = FP32) -> Derived:
    """The proof of both layers. Raises CheckFailed where the weights do not bear it out."""
    first, second = live_of(model, 2)
    at = Embedded.of(model, task.length, arithmetic)
    mark, blank = (slice(id, id + 1) for id in (task.V, task.V + 1))
    tokens = at.tokens()
    others = stacked(tokens.rows(slice(0, task.V)), tokens.rows(slice(task.V + 1, None)))
    kinds = Kinds(plain=others, flagged=tokens.rows(mark))
    found = telling(first, kinds, tokens.rows(blank), task.length)
    # a mark stands behind 1 to n values
    marks = found.head.values(at.places(slice(1, task.n + 1), mark))
    last = at.places(ids=blank)
    fetched = found.written(marks, last.hull())
    stream = Stream.before(by_place=at.places(), by_token=tokens, last=last)
    stream = stream.after(first, fetched, found.anywhere(stream.by_place.hull()))
    head, every = second.softmax_head(), np.arange(task.length)
    keys = head.keys(stream.by_place, every)
    head.numbers(keys, stream.by_place.hull(), stream.at_last())
    # of each place that is asked for: the least of a query's numbers, and of their opposites
    ends = np.full((2, task.n, len(head.q)), np.inf)
    for m in range(1, task.n + 1):
        # blanks stand at the m places behind the mark
        places = every[m + 1 : 2 * m + 1]
        asked = head.asked(stream.beside(places, slice(m - 1, m)), places)
        ends[:, :m] = np.minimum(ends[:, :m], (asked.low, -asked.high))
    asked = Queries.alone(stream.last.spanning(ends[0], -ends[1]))
    seen = head.values(stream.by_token).hull()
    reading = Reading.won(head, asked, keys, Wanted.each(_VALUE, every[: task.n]), seen)
    values = head.values(stream.by_token.rows(slice(0, task.V)))
    fetched = reading.written(values, stream.at_last())
    after = stream.after(second, fetched, reading.anywhere(stream.by_place.hull()))
    layers = [found.layer(_MARK), reading.layer(_VALUE)]
    return derived(arithmetic, layers, readout(model, after.rows()))


def of_any_length(task: Copying, rng: np.random.Generator) -> Tokens:
    """Strings of all lengths that are powers of two: the task draws none below n/2."""
    lengths = 1 << np.arange(task.n.bit_length())
    rows = rng.integers(task.V, size=(len(lengths), task.length))
    at = np.arange(task.length) - lengths[:, None]
    # the mark, as many blanks as values, and what fills the rest
    behind = task.V + (at > 0) + (at > lengths[:, None])
    return np.where(at < 0, rows, behind)


DERIVATIONS = (Derivation(name="copying", task=Copying, derive=derive, hard=of_any_length),)
