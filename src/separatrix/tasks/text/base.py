"""The interface of tasks in natural language: sizes, a sampler of prompts, a reader that answers
any prompt of the task, a chance level, texts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple, Self

from separatrix.core.errors import SizeError
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.sizes import check_names
from separatrix.tasks.base.words import Words

LARGEST_SAMPLE = 1 << 24
"""Most sentences one call of `sample` writes."""


class TextItem(NamedTuple):
    """An instance: the prompt, its one right answer, the sentences that lead to it in order, and
    all candidates, the answer among them, by alphabet. Of an answer of several names the candidates
    are those for the one that the audit guesses.
    """

    prompt: str
    answer: str
    steps: tuple[str, ...]
    choices: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class TextTask(ABC):
    """A task in words at a size. Subclasses are final frozen dataclasses whose fields are the
    sizes; a bad size raises on construction.

    A prompt ends where the answer is due; what follows it in training is " " and `target`.
    """

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    usage: ClassVar[str] = ""
    """The sizes a task text may give."""
    source: ClassVar[str] = ""
    words: ClassVar[Words]
    """What people are told; docstrings are for developers."""
    noun: ClassVar[str] = "name"
    """What an answer is called in a question."""
    due: ClassVar[str] = (
        "due after the prompt; with style=steps the sentences of the chain stand before it"
    )
    thoughts: ClassVar[tuple[str, ...]] = ()
    shifts: ClassVar[dict[str, str]] = {}
    several: ClassVar[bool] = False
    pattern: ClassVar[str] = ""
    """A regular expression, without groups, of what an answer looks like: all answers match,
    other words of a text hardly ever.
    """
    shortcuts: ClassVar[tuple[str, ...]] = ()
    """What else the audit tries on it, of `separatrix.tasks.SHORTCUTS`."""
    grid: ClassVar[tuple[str, ...]] = ()
    """Sizes from easy to hard, as in a task text without its name."""

    @property
    @abstractmethod
    def sentences(self) -> int:
        """Sentences of a prompt, the question not counted."""

    @property
    @abstractmethod
    def chance(self) -> Fraction:
        """Accuracy of a guess among the choices, exact."""

    @property
    def candidates(self) -> int:
        """Names that one name of an answer is guessed from."""
        return round(1 / self.chance)

    def audited(self, item: TextItem) -> str:
        """The name of an answer that the audit guesses, one of `item.choices`."""
        return item.answer

    def level(self, probe: str) -> Fraction:
        """Accuracy that a probe of `separatrix.tasks.PROBES` may reach at that name without having
        solved the task, exact: that of a guess, unless a subclass knows better.
        """
        return Fraction(1, self.candidates)

    @property
    def reply(self) -> tuple[str, int, bool]:
        """What an answer looks like: ("names", how many, whether their order counts)."""
        return "names", 1, False

    @property
    @abstractmethod
    def numbers(self) -> dict[str, int]:
        """What an instance holds, and how much of it."""

    @abstractmethod
    def sample(self, batch: int, rng: np.random.Generator) -> list[TextItem]:
        """`batch` instances, drawn with `rng` only."""

    @abstractmethod
    def answer(self, prompt: str) -> str:
        """The right answer, read from the text alone. Raises SpecError or SizeError for text
        that is no instance of the task.
        """

    @abstractmethod
    def steps(self, prompt: str) -> list[str]:
        """The sentences of the prompt that lead to the answer, in the order in which they are
        needed. Raises as `answer` does.
        """

    @abstractmethod
    def target(self, item: TextItem) -> str:
        """What is to be written after the prompt: the answer, or the steps and then the answer."""

    @property
    def own_title(self) -> str:
        return self.title

    @property
    def definition(self) -> str:
        """What is asked, for a reader of the data."""
        return self.words.definition

    @property
    def how_drawn(self) -> str:
        return self.words.drawn

    @property
    def cited(self) -> str:
        """The works that the task comes from."""
        return self.source

    @property
    def extent(self) -> tuple[str, ...]:
        """How large an instance is, in words: that differs from one to the next."""
        return ()

    @property
    def told_apart(self) -> None:
        """No count of prefixes: prompts in words have no fixed length."""
        return None

    @property
    def spec(self) -> str:
        """Canonical text, `parse_text_task(task.spec) == task`."""
        return f"{self.name}:" + ",".join(f"{key}={value}" for key, value in self.sizes().items())

    def sizes(self) -> dict[str, Any]:
        """Every size by its spelling in task text."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_sizes(cls, sizes: dict[str, Any]) -> Self:
        """The task at the sizes of a task text (values int or str). Raises UnknownNameError or
        SizeError for an unknown or bad size.
        """
        own = fields(cls)
        check_names(
            cls, sizes, [f.name for f in own], needed=[f.name for f in own if f.default is MISSING]
        )
        return cls(**sizes)

    def __str__(self) -> str:
        return self.spec

    def _batch(self, batch: int) -> int:
        """`batch`, or SizeError when it is no positive integer or asks for too much text at
        once.
        """
        if isinstance(batch, bool) or not isinstance(batch, int | np.integer) or batch < 1:
            raise SizeError(f"{self.spec}: batch is {batch!r}; it must be an integer of at least 1")
        if int(batch) * self.sentences > LARGEST_SAMPLE:
            raise SizeError(
                f"{self.spec}: batch is {batch}; with {self.sentences} sentences each that is more"
                " than 2^24 at once"
            )
        return int(batch)
