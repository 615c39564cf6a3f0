"""The precision map: up to which size a construction is proved in each number format, and from
which size on an input is found that it answers wrongly.

Proved: the weights of that size are built for that format and their proof derived in it. Beyond,
weights are built alike, and run without a proof, in the formats that PyTorch computes in. A
failure that is found is one; that none was found proves nothing. Of a construction that is refused
the largest size that is not is found by building smaller ones.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from separatrix.constructions import CONSTRUCTIONS, construct
from separatrix.core.errors import SizeError, SpecError, UnknownNameError
from separatrix.mixers.base.mixer import DTYPES
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import Arithmetic, arithmetic
from separatrix.proofs.derivations import DERIVATIONS
from separatrix.proofs.derivations.parts.derivation import (
    adversarial,
    at_once,
    due,
    given,
    logits_of,
)
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task, parse_task
from separatrix.tasks.base.task import Tokens

MOST = 1 << 12
"""Largest size that is tried, unless asked otherwise."""
TOKENS = 1 << 16
"""Tokens that the search runs at each size."""
_SMALL = 64
"""A task has some size up to here."""
_FEWEST = 16
_INPUTS = 1 << 11
"""Fewest and most inputs of each size."""
_FINER = 8
"""Steps between a size without a failure and one with it, at most."""
_BEYOND = 8
"""The search looks for failures up to so many times the size proved."""


@dataclass(frozen=True)
class Family:
    """Tasks that differ in one size."""

    text: str
    """A task's text with {} for the size."""
    size: str
    """What the size is called."""
    least: int = 2
    slope: int | None = None
    """Digits that theory asks for each time the size doubles, where it says so."""
    every: int = 1
    """Sizes of which there are tasks are multiples of this."""

    def task(self, size: int) -> Task:
        return parse_task(self.text.replace("{}", str(size)))


_MQAR = Family("mqar:vocab_size=64,input_seq_len={},num_kv_pairs=2", "input_seq_len", 8)
FAMILIES = {
    "retrieval": Family("eva:n={},V=4", "n", 2, 0),
    "sparse-retrieval": Family("eva:n={},V=4", "n", 4),
    "seqcomp": Family("seqcomp:L=2,m={},n_1=2", "m", 2, 0),
    "carried": Family("seqcomp:L=2,m={},n_1=2", "m"),
    # neighbours on the circle differ by 2 pi^2 / M^2 of a score: two digits each time M doubles
    "match2": Family("twosum:n={},M={}", "n = M", 3, 2),
    "match2-bits": Family("twosum:n={},M=8192", "n"),
    "pairs": Family("twosum:n={},M=8,form=decision", "n"),
    "equality": Family("equality:n={}", "n"),
    "neighbour": Family("neighbour:n={},d=12,V=2", "n"),
    "brackets": Family("dyck:n={},k=2,D=3", "n", 4, every=2),
    "parity": Family("parity:n={}", "n"),
    "modular": Family("modular:n={},m=5", "n", 8),
    "permutation": Family("permutation:n={},k=3", "n"),
    "group": Family("group:n={},G=A4", "n"),
    "swaps": Family("permutation:n={},k=3,shift=swaps", "n"),
    "counted-parity": Family("parity:n={}", "n", 3),  # of powers of two nothing is rounded
    "counted-modular": Family("modular:n={},m=5", "n", 9),
    "multiplied-parity": Family("parity:n={}", "n"),
    "multiplied-modular": Family("modular:n={},m=5", "n", 8),
    "multiplied-permutation": Family("permutation:n={},k=3", "n"),
    "multiplied-group": Family("group:n={},G=A4", "n"),
    "thought": Family("seqcomp:L=2,m={},n_1=2,thought=pairs", "m"),
    "index": Family("index:n={},V=4", "n"),
    "recall": Family("recall:n={},K={},V=4", "n = K"),
    "question-first": Family("recall:n={},K=64,V=4,form=last,question=first", "n", 4),
    "mqar": _MQAR,
    "carried-recall": Family("recall:n={},K={},V=4", "n = K"),
    "carried-mqar": _MQAR,
    "cgram": Family("cgram:n={},V=2048,c=2", "n", 11),
    "induction-recall": Family("recall:n={},K={},V=4", "n = K"),
    "induction-mqar": _MQAR,
    "induction-noisy-recall": Family("noisy-recall:n=2,noise={},K=64,V=4", "noise"),
    "induction-cgram": Family("cgram:n={},V=2048,c=2", "n", 11),
    "induction-twosum": Family("twosum:n={},M=64", "n"),
    "indexed-retrieval": Family("eva:n={},V=4", "n", 4),
    "qsa": Family("qsa:n={},q=2,V=4,sets=8", "n", 4),
    "automaton": Family("eva:n={},V=2", "n"),
    "encoder": Family("seqcomp:L=2,m={},n_1=2", "m"),
    "khop": Family("khop:n={},V=4,k=4", "n", 20),
    "copying": Family("copying:n={},V=4", "n", 2),
    "counting": Family("counting:n={}", "n"),
}
"""The sizes along which each construction is followed."""


@dataclass(frozen=True)
class Wrong:
    """An input that is answered wrongly."""

    tokens: list[int]
    answer: int
    """What the model says; -1 where its logits are no numbers. Of several answers, the first that
    is wrong.
    """
    right: int
    how: str


def wrong_in(model: Model, arithmetic: Arithmetic, task: Task, tokens: Tokens) -> Wrong | None:
    """The first of the inputs that PyTorch answers wrongly in one of its formats; None without."""
    logits = logits_of(copy.deepcopy(model).to(DTYPES[arithmetic.name]))
    wanted, size = due(task, tokens), at_once(model, task)
    for start in range(0, len(tokens), size):
        some, right = tokens[start : start + size], wanted[start : start + size]
        found, finite = given(logits, task, some)
        found[~finite] = -1
        for row, column in np.argwhere(found != right).tolist():
            how = "" if right.shape[1] == 1 else f", answer {column + 1}"
            prompt, said = some[row].tolist(), int(found[row, column])
            return Wrong(prompt, said, int(right[row, column]), f"PyTorch{how}")
    return None


@dataclass(frozen=True, kw_only=True)
class Line:
    """One format of the map. Sizes are None where there is none."""

    format: str
    digits: int
    """Significant binary digits."""
    proved: int | None
    """The largest size proved."""
    capped: bool
    """Whether no larger size was tried."""
    breaks: str | None
    """Why the next size is not proved."""
    survived: int | None
    """The largest size run without a failure, below the smallest one that fails."""
    fails: int | None
    """The smallest size at which a wrong answer was found."""
    wrong: Wrong | None
    unrun: str | None
    """Why the search ended at a size that could not be run."""

    @property
    def ratio(self) -> float | None:
        """How many times the size proved the smallest one that fails is."""
        return self.fails / self.proved if self.fails and self.proved else None

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"ratio": self.ratio}


def family_of(name: str, text: str | None) -> Family:
    """The sizes that are followed: of a text with {} for the size, or the construction's own.
    Raises SpecError for a text without {}, for another task than the construction's, and where it
    has none of its own; UnknownNameError for a construction that is none.
    """
    if name not in CONSTRUCTIONS:
        raise UnknownNameError.of("construction", name, CONSTRUCTIONS)
    if text is not None:
        solved = CONSTRUCTIONS[name].task.name
        if "{}" not in text:
            raise SpecError(f"'{text}': write {{}} for the size that grows: eva:n={{}},V=4")
        if text.partition(":")[0].strip().casefold() != solved:
            raise SpecError(f"'{text}': the construction '{name}' does not solve it, but {solved}")
        before = text.partition("{}")[0].replace(":", ",").rpartition(",")[2]
        every = FAMILIES[name].every if name in FAMILIES else 1
        return Family(text, before.rstrip("="), _least(text), every=every)
    if name not in FAMILIES:
        raise SpecError(
            f"say which sizes of '{name}' grow: a task with {{}} for the size, as eva:n={{}},V=4;"
            f" known without: {', '.join(FAMILIES)}"
        )
    return FAMILIES[name]


def _least(text: str) -> int:
    """The smallest size that the task has. Raises what the task raises of the largest tried."""
    for size in range(1, _SMALL):
        try:
            parse_task(text.replace("{}", str(size)))
        except SizeError:
            continue
        return size
    parse_task(text.replace("{}", str(_SMALL)))
    return _SMALL


def precision_map(
    name: str,
    family: Family,
    formats: Sequence[str],
    *,
    most: int = MOST,
    tokens: int = TOKENS,
    seed: int = 0,
) -> Iterator[Line]:
    """A line for each format, as soon as it is found. Raises SizeError for a format that is none,
    and UnknownNameError for a construction that is none.
    """
    for one in [arithmetic(text) for text in formats]:
        yield _line(name, family, one, most, tokens, np.random.default_rng(seed))


def _line(
    name: str,
    family: Family,
    one: Arithmetic,
    most: int,
    tokens: int,
    rng: np.random.Generator,
) -> Line:
    why: dict[int, str] = {}
    every = family.every
    least, last = -(-family.least // every), most // every

    def proved(count: int) -> bool:
        size = count * every
        try:
            construct(family.task(size), None, name, one)
        except SizeError as error:
            why[size] = str(error)
            return False
        return True

    largest = largest_size(proved, least, last)
    found: dict[int, Wrong] = {}
    unrun: dict[int, str] = {}

    def fails(count: int) -> bool | None:
        size = count * every
        try:
            task = family.task(size)
            # of the format, proved or not
            model = construct(task, None, name, one.unproved).model
            number = min(_INPUTS, max(_FEWEST, tokens // task.length))
            inputs = adversarial(DERIVATIONS[name], task, number, rng)
            wrong = wrong_in(model, one, task, inputs)
        except SizeError as error:
            unrun[size] = str(error)
            return None
        if wrong is not None:
            found[size] = wrong
        return wrong is not None

    survived = failing = None
    if one.name in DTYPES:
        survived, failing = _failing(fails, largest, least, last)

    def size_of(count: int | None) -> int | None:
        return None if count is None else count * every

    return Line(
        format=one.name,
        digits=one.digits,
        proved=size_of(largest),
        capped=largest is not None and largest >= last,
        breaks=why.get(every * (least if largest is None else largest + 1)),
        survived=size_of(survived),
        fails=size_of(failing),
        wrong=None if failing is None else found[failing * every],
        unrun=unrun[min(unrun)] if unrun else None,
    )


def largest_size(holds: Callable[[int], bool], least: int, most: int) -> int | None:
    """The largest size at which something holds, that holds from `least` up to it: found by
    doubling and halving.
    """
    if not holds(least):
        return None
    good = least
    bad = most + 1
    size = min(2 * least, most)
    while good < size < bad:
        if holds(size):
            good = size
            size = min(2 * size, most)
        else:
            bad = size
    while bad - good > 1:
        size = (good + bad) // 2
        good, bad = (size, bad) if holds(size) else (good, size)
    return good


def _failing(
    fails: Callable[[int], bool | None], proved: int | None, least: int, most: int
) -> tuple[int | None, int | None]:
    """The largest size run without a failure below the smallest one that fails, and that one. The
    size proved is run, too; one that cannot be run (None) ends the search.
    """
    good: int | None = None
    bad: int | None = None
    size = least if proved is None else proved
    # beyond _BEYOND times the size proved a failure says little of the proof
    end = most if proved is None else min(most, _BEYOND * proved)
    while size <= end:
        failed = fails(size)
        if failed is None:
            break
        if failed:
            bad = size
            break
        good = size
        size = size + 1 if size == proved else max(size + 1, math.ceil(size * 2**0.5))
    for _ in range(_FINER):
        if bad is None or good is None or bad - good <= 1:
            break
        size = (good + bad) // 2
        failed = fails(size)
        if failed is None:
            break
        good, bad = (good, size) if failed else (size, bad)
    return good, bad


def slope(sizes: Sequence[tuple[int, int]]) -> float | None:
    """Digits for each doubling of the size: least squares over (digits, size); None for fewer than
    three.
    """
    if len(sizes) < 3:
        return None
    digits = np.array([one for one, _ in sizes], float)
    logs = np.log2([size for _, size in sizes])
    spread = logs - logs.mean()
    return float((spread @ digits) / (spread @ spread)) if spread.any() else None


MOST_TRIED = 1 << 20
SIZES = ("n", "input_seq_len", "m", "M", "V", "vocab_size", "K", "k", "d")
"""Sizes that may be too large for an arithmetic, in the order in which they are tried."""


class Limit(NamedTuple):
    """The largest value found of one size, all else fixed, at which a construction is proved."""

    size: str
    n: int
    capped: bool
    """Whether it was proved as far as was tried."""


def limit(task: Task, build: Callable[[Task], object], size: str) -> Limit | None:
    """The largest value up to the task's own, or `MOST_TRIED`, at which a size builds: doubled,
    then bisected, so that all below it are taken to build, which nothing proves. None where none
    builds, or the task has no such size. `build` raises SizeError for what is not proved.
    """
    own = task.sizes().get(size)
    if not isinstance(own, int):
        return None
    most = min(own, MOST_TRIED)

    def builds(value: int) -> bool | None:
        """None where there is no such task."""
        try:
            other = task.with_sizes({size: value})
        except SizeError:
            return None
        try:
            build(other)
        except SizeError:
            return False
        return True

    def proved(value: int) -> bool:
        found = builds(value)
        # some tasks have even sizes only
        return bool(builds(value + 1) if found is None and value < most else found)

    first = next((one for bit in range(most.bit_length()) if proved(one := 1 << bit)), None)
    if first is None:
        return None
    found = largest_size(proved, first, most)
    assert found is not None
    return Limit(size, found, capped=found == most)


def limit_below(
    task: Task,
    architecture: Architecture | None,
    kind: str | None,
    arithmetic: Arithmetic | None,
) -> Limit | None:
    """Of a task that is not proved, the first size that is too large, and its limit; None where no
    smaller one is proved either.
    """

    def build(other: Task) -> object:
        return construct(other, architecture, kind, arithmetic)

    return next((found for size in SIZES if (found := limit(task, build, size))), None)
