"""What tasks of tokens and tasks in words share: what they say of themselves, their sizes as text,
and how many instances are drawn at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, Self

from separatrix.core.errors import SizeError
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.sizes import check_names
from separatrix.tasks.base.words import Words

PLAIN = "none"
"""The `shift` that is no shift: the sampler that every promise about chance and leaks is made
for.
"""


@dataclass(frozen=True, kw_only=True)
class Described(ABC):
    """A task at a size. Subclasses are final frozen dataclasses whose fields are the sizes; a bad
    size raises SizeError on construction.
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    usage: ClassVar[str] = ""
    """The sizes a task text may give."""
    source: ClassVar[str] = ""
    words: ClassVar[Words]
    """What people and language models are told; docstrings are for developers."""
    titles: ClassVar[dict[str, str]] = {}
    """Form -> its own title, where `title` tells of several forms."""
    noun: ClassVar[str] = "number"
    """What an answer is called in a question."""
    several: ClassVar[bool] = False
    """Whether answers are due at several places."""
    due: ClassVar[str] = "due after the last token; the loss is taken there"
    thoughts: ClassVar[tuple[str, ...]] = ()
    """The ways in which a chain of thought writes the steps: the values of `thought=...`."""
    shifts: ClassVar[dict[str, str]] = {}
    """The ways to draw that stand nearer to practice than the worst case: spelling -> what it
    means.
    """
    shortcuts: ClassVar[tuple[str, ...]] = ()
    """What else the audit tries on it, of `separatrix.tasks.SHORTCUTS`."""
    grid: ClassVar[tuple[str, ...]] = ()
    """Sizes from easy to hard, as in a task text without its name: at least three, the first
    three small enough to audit in seconds.
    """
    made_of: ClassVar[tuple[str, int]] = ("tokens", 30)
    """What instances are made of, and the binary logarithm of how many are drawn at once."""

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
        sizes = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in sizes.items() if (name, value) != ("shift", PLAIN)}

    @classmethod
    def from_sizes(cls, sizes: dict[str, Any]) -> Self:
        """The task at the sizes of a task text (values int or str). Raises UnknownNameError or
        SizeError for an unknown, missing or bad size.
        """
        needed = [f.name for f in fields(cls) if f.default is MISSING]
        check_names(cls.name, cls.usage, sizes, [f.name for f in fields(cls)], needed=needed)
        return cls(**sizes)

    def __str__(self) -> str:
        return self.spec

    def _batch(self, batch: int) -> int:
        """`batch`, or SizeError when it is no positive integer or asks for too much at once."""
        if isinstance(batch, bool) or not isinstance(batch, int | np.integer) or batch < 1:
            raise SizeError(f"{self.spec}: batch is {batch!r}; it must be an integer of at least 1")
        what, bits = self.made_of
        if int(batch) * self._made_of > 1 << bits:
            raise SizeError(
                f"{self.spec}: batch is {batch}; with {self._made_of} {what} each that is more than"
                f" 2^{bits} {what} at once"
            )
        return int(batch)
