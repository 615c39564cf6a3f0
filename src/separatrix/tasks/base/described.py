"""What tasks of tokens and in words share: words for people, sizes as text, how many at once."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from inspect import cleandoc
from textwrap import indent
from typing import Any, ClassVar, Final, NamedTuple, Self, dataclass_transform, get_args

from separatrix.core.document.terminal import wrap
from separatrix.core.errors import SizeError, SpecError, UnknownNameError
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.layout import LARGEST_SIZE

_MOST_DIGITS = 128
_INTEGER = re.compile(r"[-+]?[0-9]+(_[0-9]+)*")


def name_of(text: str) -> str:
    """The name that a task text begins with, in any case; empty where it has none."""
    return text.partition(":")[0].strip().casefold()


def file_name(spec: str) -> str:
    """A task's text in letters, digits and underscores: "eva:n=4,V=4" is eva_n_4_V_4."""
    return re.sub("[^0-9A-Za-z]+", "_", spec).strip("_")


def ladder(text: str) -> tuple[str, ...]:
    """Sizes from easy to hard, as in a task text without its name, with spaces between."""
    return tuple(text.split())


def presets(grid: Sequence[str]) -> dict[str, str]:
    """What `easy`, `medium` and `hard` stand for behind a task's name: sizes of its grid."""
    return {"easy": grid[0], "medium": grid[len(grid) // 2], "hard": grid[-1]}


def without_preset(text: str, grid: Sequence[str]) -> str:
    """The text with the sizes of its preset, as in "recall:hard,V=8"; its own sizes count."""
    name, _, rest = text.partition(":")
    preset, _, own = rest.partition(",")
    sizes = presets(grid).get(preset.strip())
    if sizes is None:
        return text
    given = {size.partition("=")[0].strip() for size in own.split(",")}
    kept = [size for size in sizes.split(",") if size.partition("=")[0] not in given]
    return f"{name}:{','.join([*kept, own] if own else kept)}"


def add_sizes(text: str, sizes: Iterable[str]) -> str:
    """A task text with further sizes, each "size=value", behind those it has."""
    more = list(sizes)
    if not more:
        return text
    name, _, own = text.partition(":")
    before = own.strip().rstrip(",")
    return f"{name}:{','.join([before, *more] if before else more)}"


def read_sizes(text: str, usage: str) -> dict[str, Any]:
    """The sizes of a task text: integers as int, words as str. Raises SpecError, SizeError."""
    _, colon, rest = text.partition(":")
    sizes: dict[str, Any] = {}
    for part in rest.split(",") if colon else ():
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key or not value:
            raise SpecError(
                f"expected size=value, found '{part.strip()}' in the task '{text}'; sizes are"
                f" {usage}"
            )
        if key in sizes:
            raise SpecError(f"size '{key}' is given twice in the task '{text}'")
        if not _INTEGER.fullmatch(value):
            sizes[key] = value
            continue
        # Python itself refuses to read integers of thousands of digits
        if len(value) > _MOST_DIGITS:
            raise SizeError(
                f"{key}={value[:12]}... in the task '{text[:40]}...' is too large; no size goes"
                " beyond 10^100"
            )
        sizes[key] = int(value)
    return sizes


def check_names(
    task: str, usage: str, sizes: Mapping[str, Any], known: Sequence[str], *, needed: Sequence[str]
) -> None:
    """Raises UnknownNameError for an unknown size, SizeError for a needed one that is missing."""
    for name in sizes:
        if name not in known:
            raise UnknownNameError.of("size", name, known, where=f" of task '{task}'")
    for name in needed:
        if name not in sizes:
            raise SizeError(f"{task}: the size {name} is missing; sizes: {usage}; or {task}:easy")


def require(task: str, name: str, value: Any, low: int, high: int, *, drawn: int = 0) -> int:
    """`value` as an int in [low, high], or a SizeError that names the task, the size and the
    smallest value that instances are drawn for: `drawn`, where that is more than `low`.
    """
    # not isinstance: to it True and False are integers
    if type(value) is not int or not low <= value <= high:
        least = max(low, drawn)
        judged = f" (from {shown(low)} where nothing is drawn)" if least > low else ""
        raise SizeError(
            f"{task}: {name} is {shown(value)}; it must be an integer from {shown(least)} to"
            f" {shown(high)}{judged}"
        )
    return value


def shown(value: Any) -> str:
    """A value as errors show it: 10^12 and the like, and never thousands of digits."""
    if not isinstance(value, int) or abs(value) < 10**9:
        return repr(value)[:60]
    if value.bit_length() > 1024:
        return f"about {'-' * (value < 0)}2^{value.bit_length()}"
    digits = str(value)
    return f"10^{len(digits) - 1}" if value == 10 ** (len(digits) - 1) else digits


Bound = int | Callable[[Any], int]
SAME: Any = None
"""The default of a size that is n where it is left out."""
_DECLARED: Final = "size"


class _Size(NamedTuple):
    """What a size may be: an integer from `least` to `most`, or one of some words."""

    least: Bound
    most: Bound
    told: str
    words: tuple[str, ...] = ()

    def usage(self, own: Field[Any]) -> str:
        """How texts give it: "noise (slots)", "N (ids of noise, default 16)"."""
        default = "n" if own.default is SAME else own.default
        notes = [self.told] * bool(self.told) + [f"default {default}"] * (default is not MISSING)
        words = f"={'|'.join(self.words)}" if self.words else ""
        return f"{own.name}{words}" + (f" ({', '.join(notes)})" if notes else "")


def size(
    least: Bound, most: Bound = LARGEST_SIZE, *, default: Any = MISSING, told: str = ""
) -> Any:
    """Declares an integer from `least` to `most`: numbers, or functions of the task, whose sizes
    with plain bounds have been checked by then, and those before it. `told` says what it counts.
    """
    return field(default=default, metadata={_DECLARED: _Size(least, most, told)})


def choice(words: Any, *, default: str) -> Any:
    """Declares one of the words of a Literal."""
    return field(default=default, metadata={_DECLARED: _Size(0, 0, "", get_args(words))})


_LABEL = re.compile(r"^(Drawn|Counted|From): ", re.M)
WIDTH = 100
"""Columns of what is wrapped for a file."""
_ITEM = re.compile(r"\n(?=- [A-Z])")
"""Where an item of a list begins: a dash and a capital, for lines of a formula may begin so too."""


@dataclass(frozen=True, kw_only=True)
class Words:
    """What a task says of itself in plain English, without a word about its code.

    It is the docstring of the task's class: indentation goes, and the lines of a paragraph or of an
    item ("- ...") are joined. Whoever shows a text wraps it again, with `wrapped`.
    """

    asks: str
    """The task in a sentence."""
    table: str
    """Examples as columns, inputs over targets; its lines stay as they are."""
    rules: str
    """What the ids mean and what the right answer is."""
    drawn: str
    """How instances are drawn, and what can be guessed without solving the task."""
    counted: str
    """How many prefixes must be told apart, and why."""
    origin: str
    """Where the task comes from, and what differs there."""

    @classmethod
    def read(cls, text: str) -> Self:
        """From the sentence asked, an indented table, rules, "Drawn:", "Counted:" and "From:"."""
        front, _, drawn, _, counted, _, origin = _LABEL.split(cleandoc(text))
        asks, _, rest = front.partition("\n\n")
        lines = rest.split("\n")
        end = next((at for at, line in enumerate(lines) if line[:1].strip()), len(lines))
        rules = "\n".join(lines[end:])
        asks, rules, drawn, counted, origin = (
            flowed(part.strip()) for part in (asks, rules, drawn, counted, origin)
        )
        # from the second line on, so that all are indented alike
        table = cleandoc("\n".join(["", *lines[:end]]))
        return cls(asks=asks, table=table, rules=rules, drawn=drawn, counted=counted, origin=origin)

    @property
    def definition(self) -> str:
        """What is asked, by example and by rule: all that a solver needs."""
        parts = (self.asks, indent(self.table, "    "), self.rules)
        return "\n\n".join(part for part in parts if part)


def flowed(text: str) -> str:
    """Every paragraph, and every item of a list, on one line."""
    paragraphs = (_ITEM.split(paragraph) for paragraph in text.split("\n\n"))
    return "\n\n".join(
        "\n".join(" ".join(item.split()) for item in paragraph) for paragraph in paragraphs
    )


def wrapped(text: str, width: int = WIDTH) -> str:
    """A text in lines of at most `width` columns; indented lines are tables and stay whole."""
    lines: list[str] = []
    for line in text.split("\n"):
        hanging = "  " if _ITEM.match(f"\n{line}") else ""
        lines += [line] if line.startswith(" ") else wrap(line, width, hanging=hanging)
    return "\n".join(lines)


PLAIN = "none"
"""The `shift` that is no shift: the sampler that every promise about chance and leaks is made
for.
"""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(size, choice))
@dataclass(frozen=True, kw_only=True)
class Described(ABC):
    """A task at a size. Subclasses are frozen dataclasses, without being told so, whose fields are
    the sizes; a bad size raises SizeError on construction.
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    usage: ClassVar[str] = ""
    """The sizes a task text may give, as they are declared unless told; `shift` stands behind."""
    source: ClassVar[str] = ""
    words: ClassVar[Words]
    """What people and language models are told: the docstring of one that is drawn."""
    titles: ClassVar[dict[str, str]] = {}
    """Form -> its own title, where `title` tells of several forms."""
    several: ClassVar[bool] = False
    """Whether answers are due at several places."""
    due: ClassVar[str] = ""
    """Where answers are due, where it is neither the last token nor several."""
    thoughts: ClassVar[tuple[str, ...]] = ()
    """The ways in which a chain of thought writes the steps: the values of `thought=...`."""
    shifts: ClassVar[dict[str, str]] = {}
    """The ways to draw that stand nearer to practice than the worst case: spelling -> what it
    means.
    """
    shortcuts: ClassVar[tuple[str, ...]] = ()
    """What else the audit tries on it, of `audits.shortcuts`."""
    measured: ClassVar[tuple[str, ...]] = ()
    """Probes and shortcuts whose level is what they were measured to reach, where they were; of
    other sizes `level` has a bound for probes, 1 where nobody derived one.
    """
    grid: ClassVar[tuple[str, ...]] = ()
    """Sizes from easy to hard, as in a task text without its name: at least three, the first
    three small enough to audit in seconds.
    """

    _sizes: ClassVar[tuple[tuple[str, _Size], ...]] = ()
    """Those declared, by their names; the ones whose bounds are functions come last."""
    made_of: ClassVar[tuple[str, int]] = ("tokens", 30)
    """What instances are made of, and the binary logarithm of how many are drawn at once."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        told = cleandoc(vars(cls).get("__doc__") or "")
        if _LABEL.search(told):
            cls.words = Words.read(told)
        dataclass(frozen=True, kw_only=True)(cls)
        declared = {f: f.metadata[_DECLARED] for f in fields(cls) if _DECLARED in f.metadata}
        sizes = ((f.name, one) for f, one in declared.items())
        cls._sizes = tuple(sorted(sizes, key=lambda each: any(map(callable, each[1][:2]))))
        if cls.name and not cls.usage:
            # a single word leaves nothing to choose
            shown = (one.usage(f) for f, one in declared.items() if len(one.words) != 1)
            cls.usage = ", ".join(shown)
        elif "usage" not in vars(cls):
            return
        if cls.shifts:
            cls.usage += f", shift={'|'.join(cls.shifts)}"

    def __post_init__(self) -> None:
        """Raises UnknownNameError or SizeError for sizes that are none of those declared."""
        for name, one in self._sizes:
            value = getattr(self, name)
            if one.words:
                self._known(name, value, one.words)
            elif value is getattr(type(self), name, MISSING) is SAME:
                object.__setattr__(self, name, vars(self)["n"])
        numbers = [each for each in self._sizes if not each[1].words]
        whole = all(type(getattr(self, name)) is int for name, _ in numbers)
        for name, one in numbers:
            low = one.least(self) if callable(one.least) else one.least
            high = one.most(self) if callable(one.most) else one.most
            drawn = self.drawn_from(name) if whole else 0
            require(self.name, name, getattr(self, name), low, high, drawn=drawn)

    def drawn_from(self, size: str) -> int:
        """The least of a size of which instances are drawn: below it, tasks are judged alone."""
        return 0

    @property
    @abstractmethod
    def _made_of(self) -> int:
        """How many of these an instance has."""

    @property
    def own_title(self) -> str:
        """The title, of the task's own form alone where it has several."""
        return self.titles.get(str(self.sizes().get("form", "")), self.title)

    @property
    def definition(self) -> str:
        """What is asked, for a solver."""
        return self.words.definition

    @property
    def how_drawn(self) -> str:
        """How the sampler draws, and what its shift changes."""
        meant = self.shifts.get(str(self.sizes().get("shift", "")))
        return self.words.drawn if meant is None else f"{self.words.drawn}\n\nHere: {meant}."

    @property
    def cited(self) -> str:
        """The works that the task comes from."""
        return self.source

    @property
    def spec(self) -> str:
        """Canonical text, from which the task is read again."""
        sizes = ",".join(f"{key}={value}" for key, value in self.sizes().items())
        return f"{self.name}:{sizes}"

    def sizes(self) -> dict[str, Any]:
        """Every size by its spelling in task text; a shift only where there is one."""
        sizes = {name: getattr(self, name) for name in self._names()}
        return {name: value for name, value in sizes.items() if (name, value) != ("shift", PLAIN)}

    @classmethod
    def _names(cls) -> list[str]:
        """Its sizes; the shift, where there is one, is the last."""
        own = [f.name for f in fields(cls) if f.name != "shift"]
        return [*own, *(["shift"] if cls.shifts else [])]

    @classmethod
    def from_sizes(cls, sizes: dict[str, Any]) -> Self:
        """The task at such sizes, int or str. Raises UnknownNameError or SizeError for others."""
        needed = [f.name for f in fields(cls) if f.default is MISSING]
        check_names(cls.name, cls.usage, sizes, cls._names(), needed=needed)
        return cls(**sizes)

    def __str__(self) -> str:
        return self.spec

    def _known(self, size: str, value: object, known: Collection[str]) -> None:
        """Raises UnknownNameError for a value of a size that is none of those known."""
        if not isinstance(value, str) or value not in known:
            said = value if isinstance(value, str) else shown(value)
            raise UnknownNameError.of(f"{size} of {self.name}", said, known)

    def refused(self, said: str) -> SizeError:
        """What is raised for what this task does not take."""
        return SizeError(f"{self.spec}: {said}")

    def _batch(self, batch: int) -> int:
        if isinstance(batch, bool) or not isinstance(batch, int | np.integer) or batch < 1:
            raise self.refused(f"batch is {batch!r}; it must be an integer of at least 1")
        what, bits = self.made_of
        if int(batch) * self._made_of > 1 << bits:
            raise self.refused(
                f"batch is {batch}; with {self._made_of} {what} each that is more than 2^{bits}"
                f" {what} at once"
            )
        return int(batch)
