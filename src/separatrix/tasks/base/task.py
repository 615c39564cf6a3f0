"""The interface of tasks: sizes, a sampler, an oracle, a chance level, texts, and where known the
number of prefix classes. NumPy is loaded when something is drawn or answered.

Instances are drawn block by block, so that one call draws what several would: which rows come next
depends on the generator alone, not on how they are asked for. PCG64, NumPy's usual generator, is a
counter in disguise: the low b bits of its state run through all 2^b values and then begin again. So
the generator itself says where a block of 2^b rows begins and which of its rows is next. A row is
one step of the generator; a block has a generator of its own, whose seed is the number drawn at its
first row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import fields, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple, Self

from separatrix.core.errors import SizeError
from separatrix.core.numbers.counts import Count, Power
from separatrix.core.numbers.lazy import Ints, np
from separatrix.tasks.base.described import PLAIN as PLAIN
from separatrix.tasks.base.described import Described
from separatrix.tasks.base.layout import LARGEST_SIZE as LARGEST_SIZE
from separatrix.tasks.base.layout import Facts, Growth, Layout, Table, TwoRuns, ranges
from separatrix.tasks.base.layout import Family as Family

MOST_ROWS = 256
_TOKENS = 1 << 16
"""Tokens of a block, about: whoever asks for one row waits for all of it."""
_STEPS = {"PCG64": 0x2360ED051FC65DA44385DF649FCCF645, "PCG64DXSM": 0xDA942042E4DD58B5}
"""Multipliers of the generators that count."""


class Part(NamedTuple):
    """Rows `first`, ..., `last` - 1 of the block of `rows` rows that `seed` draws."""

    seed: int
    rows: int
    first: int
    last: int


def rows_of(length: int) -> int:
    """Rows of a block of prompts of `length` tokens: a power of two."""
    return 1 << (max(1, min(MOST_ROWS, _TOKENS // length)).bit_length() - 1)


def parts(batch: int, length: int, rng: np.random.Generator) -> Iterator[Part]:
    """What the next `batch` rows are; `rng` moves on as many steps. Without PCG64, 1-row blocks."""
    counter = rng.bit_generator
    if type(counter).__name__ not in _STEPS:
        seeds = rng.integers(0, 1 << 64, size=batch, dtype=np.uint64)
        yield from (Part(int(seed), 1, 0, 1) for seed in seeds)
        return
    rows = rows_of(length)
    first = _place(rng, rows)
    _move(counter, -first)
    left = batch
    while left:
        seed = int(counter.random_raw())
        last = min(rows, first + left)
        yield Part(seed, rows, first, last)
        _move(counter, last - 1)
        left -= last - first
        first = 0


def _place(rng: np.random.Generator, rows: int) -> int:
    """Which row of its block comes next: steps since the low bits of the state were all 0."""
    held = rng.bit_generator.state
    step = _STEPS[held["bit_generator"]] % rows
    add = held["state"]["inc"] % rows
    low = held["state"]["state"] % rows
    place = 0
    value = 0
    while value != low:
        value = (value * step + add) % rows
        place += 1
    return place


def _move(counter: np.random.BitGenerator, steps: int) -> None:
    counter.advance(steps % (1 << 128))  # type: ignore[attr-defined]


Tokens = Ints
NO_ANSWER = -1
"""Target of a place where no answer is due."""
LARGEST_SAMPLE = 1 << Described.made_of[1]
"""Most tokens one call of `sample` makes."""


class Batch(NamedTuple):
    """`tokens` (batch, length) and the right answers: `targets` (batch,) after the last token.

    Of a task with answers at several places, `targets` is (batch, length), the answer due after
    each token, or NO_ANSWER.
    """

    tokens: Tokens
    targets: Tokens


class FirstPart(NamedTuple):
    """What stands first in prompts with one fixed last token; at least so many are told apart."""

    named: str
    contents: Count


class Task(Described):
    """A task at a size. Subclasses are final frozen dataclasses whose fields are the sizes; a bad
    size raises SizeError on construction.

    A prompt has `length` tokens from [0, vocabulary), an answer is a class in [0, answers). It is
    due after the last token, or, where `several` is true, after those tokens whose target is not
    NO_ANSWER. The loss is taken there and nowhere else.

    A shift, one of `shifts`, changes how `sample` draws, never what is asked nor what is right, so
    that verdicts about all inputs do not depend on it.
    """

    shift: str = PLAIN

    stepwise = False
    """Whether the steps to the answer are to be written too."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._known("shift", self.shift, (PLAIN, *self.shifts))

    @property
    def _made_of(self) -> int:
        return self.length

    @abstractmethod
    def layout(self) -> Layout:
        """What prompts are made of."""

    @cached_property
    def _layout(self) -> Layout:
        return self.layout()

    @property
    def length(self) -> int:
        """Tokens of a prompt, query included."""
        return self._layout.length

    @property
    def vocabulary(self) -> int:
        """Number of token ids."""
        return self._layout.vocabulary

    @property
    def answers(self) -> int:
        """Number of possible answers."""
        return sum(self._layout.answers.values())

    @property
    def token_ids(self) -> dict[str, range]:
        """What token ids stand for: in words -> the ids, which several may share.

        A model can read another size where each of its words has the same first id, and no more
        ids, in the size that the model is made for.
        """
        return ranges(self._layout.ids)

    @property
    def answer_ids(self) -> dict[str, range]:
        """What answers stand for, in the same way."""
        return ranges(self._layout.answers)

    @property
    def chance(self) -> Fraction:
        """Accuracy of the best constant guess under `sample`, exact."""
        return Fraction(1, self.answers)

    @property
    def prefix_length(self) -> int:
        """Length of the prefixes that `prefix_classes` counts."""
        return self._layout.prefix

    def prefix_classes(self) -> Count | None:
        """Number of classes of prefixes of `prefix_length` tokens, exact; None where no count is
        known.

        Two are equivalent when every continuation has the same answers after both. Where not every
        continuation is allowed (a promise), it is the size of the largest set of prefixes that are
        told apart two by two.
        """
        return self._layout.classes

    def table(self) -> Table | None:
        """The facts that all prompts hold, each of which may be asked for; None without such."""
        return self._layout.table

    def two_runs(self) -> TwoRuns | None:
        """Two prompts of two runs with different answers, that meet near the middle, or None."""
        return self._layout.runs

    @property
    def steps(self) -> int:
        """Values of the chain that leads to the answer, the answer included; 0 without a chain."""
        return self._layout.steps

    def label_ids(self, answers: Tokens) -> Tokens:
        """Token ids of answers: ids behind those of the prompt, unless answers are tokens of it."""
        return self._layout.labels(answers)

    def word(self, token: int) -> str:
        """A token as it is written for people and language models."""
        return self._layout.word(token)

    @property
    def spelling(self) -> str:
        """A sentence on how tokens are written where that is not their id, else nothing."""
        return self._layout.spelling

    def level(self, probe: str) -> Fraction:
        """Accuracy that a probe of `separatrix.tasks.PROBES`, or one of `shortcuts`, may reach
        without having solved the task, exact: chance, unless what it sees gives more.

        More than chance is stated only where no sampler could avoid it; `words.drawn` says why.
        """
        return Fraction(1) if probe in self.measured else self.chance

    def prompts(self) -> Count:
        """At most so many different prompts there are; exact where every token may be any id."""
        return Power(self.vocabulary, self.length)

    def first_part(self) -> FirstPart | None:
        """The first part of prompts with one fixed last token; None where no count is known."""
        return None

    def facts(self) -> Facts | None:
        """The facts among which `sample` asks for one; None where it does not draw like that."""
        return None

    def family(self) -> Family[Self]:
        """The tasks like this one at growing n, drawn without a shift."""
        return self._grown(self._layout.grows)

    def others_kept(self) -> Family[Self] | None:
        """The same where all sizes but n stay, if others grow with it and that keeps prefixes."""
        return self._grown(Growth()) if self._layout.grows.alone else None

    def _grown(self, growth: Growth) -> Family[Self]:
        sizes = self.sizes()
        alike = ", ".join(
            f"{name} = {value:,}" if isinstance(value, int) else f"{name} = {value}"
            for name, value in sizes.items()
            if name not in ("n", "shift")
        )

        def at(n: int) -> Self:
            follow = {name: a * n + b for name, (a, b) in growth.others.items()}
            return replace(self, n=n, shift=PLAIN, **follow)

        return Family(growth.described or alike, at).begun(sizes["n"])

    def targets(self, rows: int, places: slice, answers: Tokens) -> Tokens:
        """Targets (rows, length) of answers that are due at some places and at no others."""
        targets = np.full((rows, self.length), NO_ANSWER, np.int64)
        targets[:, places] = answers
        return targets

    def write(self, *parts: Tokens) -> Tokens:
        """Prompts of their parts, in the order of the layout, each counted from its first id."""
        tokens = np.empty((len(parts[0]), self.length), np.int64)
        ids = self.token_ids
        for (meaning, places, *_), part in zip(self._layout.parts.values(), parts, strict=True):
            tokens[:, places] = part + ids[meaning].start
        return tokens

    def read(self, tokens: Tokens) -> list[Tokens]:
        """The parts of prompts, counted likewise. Raises SizeError for tokens of other meaning."""
        tokens = self._checked(tokens)
        found = []
        for what, (meaning, places, number, different) in self._layout.parts.items():
            ids = self.token_ids[meaning]
            part = tokens[:, places]
            self._within(part, what, ids.start, ids.stop if number is None else ids.start + number)
            if different:
                self._differ(part, different)
            found.append(part - ids.start)
        return found

    def check_drawn(self) -> None:
        """Raises SizeError where no instances are drawn."""
        for name in (field.name for field in fields(self)):
            if (least := self.drawn_from(name)) and getattr(self, name) < least:
                raise self.refused(
                    f"{name} is {getattr(self, name)}: prompts that small would give the answer"
                    f" away, or do not exist; draw with {name} of at least {least}"
                )

    def sample(self, batch: int, rng: np.random.Generator) -> Batch:
        """The next `batch` instances, in however many calls, drawn with `rng` only."""
        rows = self._batch(batch)
        self.check_drawn()
        return _sampled(self, rows, rng)

    @abstractmethod
    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        """`batch` instances at once, from the start of `rng`: what `sample` takes its rows from."""

    @abstractmethod
    def answer(self, tokens: Tokens) -> Tokens:
        """Right answers, as `Batch.targets`, for prompts (batch, length). SizeError for others."""

    def chain(self, tokens: Tokens) -> Tokens | None:
        """The chain (batch, steps), the answer last, or None for a task without one."""
        return None

    def law(self, step: int) -> tuple[tuple[range, Fraction], ...]:
        """The law of value `step` (from 1) of the chain: ranges of ids, each equally likely."""
        return ((range(self.answers), Fraction(1, self.answers)),)

    @property
    def asked(self) -> Task:
        """The task that a question is about: of a chain of thought, the one whose chain it is."""
        return self

    def answer_word(self, answer: int) -> str:
        """An answer as it is to be written."""
        return str(answer)

    @property
    def reply(self) -> tuple[str, int]:
        """What an answer is: ("number", how many), or ("arrangement", of how many things)."""
        return "number", self.answers

    @property
    def extent(self) -> tuple[str, ...]:
        """How large an instance is, in words."""
        return (f"{self.length:,} tokens of {self.vocabulary:,} ids", f"{self.answers:,} answers")

    @property
    def told_apart(self) -> str | None:
        """How many prefixes must be told apart, in words; None where no count is known."""
        count = self.prefix_classes()
        if count is None:
            return None
        after = f"{self.prefix_length:,} tokens"
        return f"log2 of the prefix classes after {after} {count.log2_str(5)}"

    def with_sizes(self, sizes: dict[str, Any]) -> Task:
        """This task with some sizes changed. Raises what `from_sizes` raises."""
        return type(self).from_sizes(self.sizes() | sizes)

    def _checked(self, tokens: Tokens) -> Tokens:
        """`tokens` as int64, or SizeError when its shape or ids cannot be an instance."""
        try:
            array = np.asarray(tokens)
        except ValueError:
            raise SizeError(
                f"{self.spec}: the rows of tokens differ in length; an instance has {self.length}"
                " tokens"
            ) from None
        if array.ndim != 2 or array.shape[1] != self.length:
            raise self.refused(
                f"tokens have shape {array.shape}; an instance has shape (batch, {self.length})"
            )
        if not np.issubdtype(array.dtype, np.integer):
            raise self.refused(f"tokens are {array.dtype}; they must be integers")
        if array.size and not (array.min() >= 0 and array.max() < self.vocabulary):
            raise self.refused(
                f"token ids run from {array.min()} to {array.max()}; they must lie in [0,"
                f" {self.vocabulary})"
            )
        return array.astype(np.int64, copy=False)

    def _within(self, part: Tokens, what: str, low: int, high: int) -> None:
        """Raises SizeError when a token of `part` is no id of [low, high)."""
        if part.size and not (part.min() >= low and part.max() < high):
            bad = part.max() if part.max() >= high else part.min()
            raise self.refused(f"{what} holds {bad}; it must lie in [{low}, {high})")

    def _differ(self, part: Tokens, told: str) -> None:
        """Raises SizeError, with what is told, when an id stands twice along the last axis."""
        ordered = np.sort(part, axis=-1)
        if (ordered[..., 1:] == ordered[..., :-1]).any():
            raise self.refused(told)


def _sampled(task: Task, batch: int, rng: np.random.Generator) -> Batch:
    shape = (batch, task.length)
    tokens = np.empty(shape, np.int64)
    targets = np.empty(shape if task.several else shape[:1], np.int64)
    at = 0
    for part in parts(batch, task.length, rng):
        # what is asked for as a whole is not asked for again
        drawn = (_block if part.last - part.first == part.rows else _kept)(
            task, part.rows, part.seed
        )
        rows = slice(at, at + part.last - part.first)
        tokens[rows], targets[rows] = (each[part.first : part.last] for each in drawn)
        at = rows.stop
    return Batch(tokens, targets)


def _block(task: Task, rows: int, seed: int) -> Batch:
    return task.draw(rows, np.random.Generator(np.random.PCG64(seed)))


_kept = lru_cache(maxsize=4)(_block)
"""For whoever asks for a few rows at a time, the blocks that the last ones came from."""


class Around(Task):
    """A task that asks more of the prompts of another, whose word counts unless it knows better."""

    task: Task
    # that of the task, which draws: no size of its own
    shift: ClassVar[str] = PLAIN  # type: ignore[misc]

    @property
    def chance(self) -> Fraction:
        return self.task.chance

    def level(self, probe: str) -> Fraction:
        return self.task.level(probe)

    def facts(self) -> Facts | None:
        return self.task.facts()

    def check_drawn(self) -> None:
        self.task.check_drawn()

    @abstractmethod
    def _own(self) -> dict[str, Any]:
        """The sizes that are not those of `task`."""

    @property
    def spec(self) -> str:
        own = ",".join(f"{name}={value}" for name, value in self._own().items() if value)
        return f"{self.task.spec},{own}"

    def sizes(self) -> dict[str, Any]:
        return self.task.sizes() | self._own()

    def with_sizes(self, sizes: dict[str, Any]) -> Task:
        return replace(self, task=self.task.with_sizes(sizes))

    def family(self) -> Family[Self]:
        """Around the family of `task`, where what is asked can be."""
        inner: Family[Any] = self.task.family()
        around = replace(inner, at=lambda n: replace(self, task=inner.at(n)))
        return around.begun(max(inner.smallest, self.task.sizes()[inner.grows]))

    @property
    def definition(self) -> str:
        """That of the task, then its own."""
        return f"{self.task.definition}\n\n{self.words.definition}"

    @property
    def how_drawn(self) -> str:
        return f"{self.task.how_drawn}\n\n{self.words.drawn}"


class Composition(ABC):
    """A task whose answer is the last of a chain; it stands before `Task` among the bases."""

    thoughts = ("values",)

    @abstractmethod
    def chain(self, tokens: Tokens) -> Tokens:
        """The chain (batch, steps), the answer last, for prompts (batch, length), or SizeError."""

    def answer(self, tokens: Tokens) -> Tokens:
        return self.chain(tokens)[:, -1]
