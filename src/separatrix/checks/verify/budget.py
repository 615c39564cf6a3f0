"""What checking a record will take, estimated from its declared sizes before anything is built.

The estimate is rough and rather too high (docs/evidence.md has it beside measured times): it is
there so that a small file of a stranger cannot cost hours or fill the memory. Sizes that a spec
declares are integers, so that nothing here takes long itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, isfinite

from separatrix.core.errors import CannotCheck, SizeError
from separatrix.core.evidence.records import Certificate, Construction, Evidence, Verdict
from separatrix.models.model import MOST_SIZE
from separatrix.models.stored.accuracy import DRAWN, MOST_NUMBERS
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Mechanism
from separatrix.tasks import Task

GIB = 1 << 30
MOST_SECONDS = 120.0
MOST_BYTES = 4 * GIB
"""What checking one record may take with a budget of 1."""
BUNDLE = 10
"""So many times as long may a bundle of records take."""
MOST_FILE = 56 << 20
"""Bytes of a file with a budget of 1: as data they take up to 70 times as much memory (many empty
lists, copied to be hashed).
"""

# Measured on one core of an AMD EPYC, rounded up.
_PER_LETTER = 3e-6
"""Seconds to read a letter of a spec and to write it again."""
_PER_BYTE = 5e-7
"""Seconds to read a byte of a file and to hash what it says."""
_PER_PART = 8e-3
"""Seconds to build a layer's mixer, to copy it and to look at its weights."""
_PER_STEP = 2e-3
"""Seconds that a mixer takes for a token beside its operations."""
_PER_OPERATION = 1e-9
_PER_OPERATION_AT_ONCE = 1e-10
"""The same where all tokens of a prompt are computed together."""
_PER_PRODUCT = 2e-7
"""Seconds for one of the enclosed scores that a derivation is made of."""
_PER_NUMBER = 5e-7
"""Seconds for one of the numbers that tokens or places hold, where a derivation looks at each of
them alone.
"""
_BY_CODES = frozenset({"equality", "match2-bits", "neighbour", "pairs"})
"""Constructions whose proof never compares every query with every key."""
_SEARCH = 2.0
"""Seconds for the searches behind a verdict on a composition."""
_WIDE = 8
"""Bytes of a float64."""
_COPIES = 6
"""Copies of a number that are alive at once."""
_PROMPTS = 4
"""Runs of a certificate's prompts, the start of the caches included."""
_CHUNK = 64
"""Updates of a chunk of the delta rule."""
_RANDOM = 64
"""Most prompts that a construction is run on, unless all of them are few."""


@dataclass(frozen=True)
class Cost:
    """Seconds on one core, and bytes of memory."""

    seconds: float
    bytes: float

    def __add__(self, other: Cost) -> Cost:
        # one record after the other: their times add up, their memory does not
        return Cost(self.seconds + other.seconds, max(self.bytes, other.bytes))

    def within(self, budget: float, *, bundle: bool = False) -> None:
        """Raises CannotCheck where it is more than the budget allows, naming both."""
        most = MOST_SECONDS * (BUNDLE if bundle else 1)
        share = max(self.seconds / most, self.bytes / MOST_BYTES)
        if share > budget:
            raise CannotCheck(
                f"checking this would take about {_short(self.seconds)} seconds and"
                f" {_short(self.bytes / GIB)} GiB of memory by its declared sizes; the limit is"
                f" {_short(most * budget)} seconds and {_short(MOST_BYTES * budget / GIB)}"
                f" GiB: --budget {_short(ceil(share))} raises it"
            )


def check_budget(budget: float) -> None:
    """Raises SizeError unless a budget is a positive number."""
    if type(budget) not in (int, float) or not (isfinite(budget) and budget > 0):
        raise SizeError(f"the budget is {budget!r}; it must be a positive number, 1 by default")


def file_cost(size: int) -> Cost:
    """Of reading a file of that many bytes."""
    return Cost(size * _PER_BYTE, size * MOST_BYTES / MOST_FILE)


def estimate(record: Evidence, architecture: Architecture, task: Task) -> Cost:
    """What checking a record takes, from its architecture and task as they are declared."""
    reading = Cost(_PER_LETTER * len(record.architecture) + 1e-4 * len(architecture), 0)
    if isinstance(record, Verdict):
        open_or_searched = record.status == "OPEN" or "r" in record.numbers
        return reading + Cost(_SEARCH if open_or_searched else 0.05, 0)
    parts = [part for layer in architecture for part in layer if part.mixes_tokens]
    building = Cost(_PER_PART * (len(parts) + len(architecture)), 0)
    if isinstance(record, Certificate):
        return reading + building + _running(record.model, parts, task.length, stepwise=True)
    if isinstance(record, Construction):
        ids = task.vocabulary + 1
        numbers = (ids + task.length) * _size(record.model, "width")
        if record.name in _BY_CODES:
            proof = Cost(_PER_NUMBER * numbers, _COPIES * _WIDE * numbers)
        else:
            # every query that can stand in the last place against every key, once for each hop
            hops = task.sizes().get("L", 0) + 1
            scores = ids * max(ids, task.length) * hops
            proof = Cost(_PER_PRODUCT * scores, 24.0 * numbers)
        running = _running(record.model, parts, task.length, stepwise=False)
        return reading + building + proof + running
    return reading + building


def answering(
    model: dict[str, object],
    architecture: Architecture,
    lengths: Sequence[int],
    prompts: int,
    *,
    streamed: Sequence[int] = (),
) -> Cost:
    """Of running a described model on so many prompts of each of some lengths, and of others that
    are read token by token.
    """
    parts = [part for layer in architecture for part in layer if part.mixes_tokens]
    runs = [_running(model, parts, tokens, prompts=prompts) for tokens in (*lengths, *streamed)]
    batches = prompts / DRAWN + 1
    runs += [Cost(batches * tokens * len(parts) * _PER_STEP, 0) for tokens in streamed]
    # of an operation of a small model most is what PyTorch takes to begin with it
    beginning = Cost(prompts / DRAWN * len(parts) * _PER_STEP * len(runs), _WIDE * MOST_NUMBERS)
    return total(runs) + beginning


def total(costs: Iterable[Cost]) -> Cost:
    """Of checking several records one after the other."""
    return sum(costs, Cost(0, 0))


def _running(
    model: dict[str, object],
    parts: list[Mechanism],
    tokens: int,
    *,
    stepwise: bool = False,
    prompts: int | None = None,
) -> Cost:
    """Of running a described model on prompts, token by token or all tokens at once; of as many
    prompts as a construction is run on, unless it is said how many.
    """
    width = _size(model, "width")
    hidden = _size(model, "hidden")
    # a mixer has about six matrices between the model's width and its own
    matrices = sum(6 * width * max(width, part.inner_width) + 2 * width * hidden for part in parts)
    tables = width * sum(_size(model, name) for name in ("vocabulary", "length", "answers"))
    carried = sum(part.cache_bits(tokens) // part.p for part in parts if part.left_to_right)
    mixing = sum(part.flops(tokens) for part in parts)
    operations = tokens * (2 * matrices + mixing)
    widest = attended = 0
    for part in parts:
        heads = getattr(part, "heads", 1)
        # queries, keys and values of all heads, after a feature map if there is one
        widest = max(widest, 3 * max(part.inner_width, heads * getattr(part, "feature_dim", 0)))
        # tokens compared at once: of a delta rule those of its chunk
        attended = max(attended, heads * (tokens if part.turning is None else min(tokens, _CHUNK)))
    numbers = carried + matrices + tables + tokens * (width + hidden + widest + attended)
    if stepwise:
        # carried numbers are rounded, compared and copied after each token
        seconds = _PROMPTS * tokens * (len(parts) * _PER_STEP + 30 * carried * _PER_OPERATION)
        seconds += _PROMPTS * operations * _PER_OPERATION
        # the model runs once with all tokens at a time, too
        return Cost(seconds, _COPIES * _WIDE * numbers)
    if prompts is None:
        prompts = 1 + min(_RANDOM, (1 << 34) // max(1, operations))
    seconds = prompts * operations * _PER_OPERATION_AT_ONCE
    return Cost(seconds, _COPIES * _WIDE * numbers / 2)


def _size(model: dict[str, object], name: str) -> int:
    """A size of a model's description; 0 where it is none, which building it will refuse. Raises
    SizeError for one that no model has, of which no time could be estimated.
    """
    size = model.get(name)
    if type(size) is not int or size <= 0:
        return 0
    if size > MOST_SIZE:
        raise SizeError(f"model {name} is {str(size)[:40]}; it must be an integer up to 2^40")
    return size


def _short(value: float) -> str:
    return f"{value:,.2g}" if value < 10 else f"{value:,.0f}" if value < 1e6 else f"{value:.1e}"
