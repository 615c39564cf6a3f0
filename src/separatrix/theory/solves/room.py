"""What every construction has: a sentence, its numbers, what it takes for granted, why it works;
and full layers with a head to spare and room for the bits they write.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture, Place
from separatrix.stacks.mechanisms import Mechanism
from separatrix.tasks import Questions, Task
from separatrix.theory.base import SOLVABLE, START_TOKEN, Theorem
from separatrix.theory.words import TOLD

T = TypeVar("T")
WIDE = frozenset({"fp64", "fp32"})
"""Formats for which the block-sparse construction is proved."""
TAGS = 2
"""Key dimensions a retrieval head keeps free for tags beside the address."""

EMBEDDED = "positions: learned or free embeddings give every token its place"
_ASKING = "a token of its own"
START = f"{START_TOKEN} stands before the prompt"
LAST = f"{_ASKING} behind the letters asks; the weights are for this n"
SEEN_WHOLE = "a window or chunk of at least the prompt's length is full attention"


class Room(NamedTuple):
    """That a stack has room for a construction."""

    numbers: dict[str, int]
    granted: tuple[str, ...] = ()
    """What it takes for granted of the model."""
    said: str = ""
    """The verdict's sentence, where it tells more than numbers."""

    @property
    def beside(self) -> bool:
        """Whether a token stands beside the prompt, which whoever needs one says."""
        return any(token in said for said in self.granted for token in (START_TOKEN, _ASKING))


class Construction(Theorem):
    """What a stack with room for one construction can compute: a row of the table of theorems."""

    shows = SOLVABLE
    about: tuple[str, ...]
    """Names of the tasks that it may solve."""

    def __init__(
        self,
        key: str,
        about: tuple[str, ...],
        room: Callable[[Architecture, Any], Room | None],
        *,
        embedded: bool = False,
        both_ways: bool = False,
        full: int | Callable[[Any], int] = 0,
    ) -> None:
        """`room`: what it takes of a stack, None where there is no such room; `embedded`: whether
        it needs embeddings that give every token its place; `full`: how many layers of full
        attention, or of what an indexer chooses, it is written into at least.
        """
        self.about = about
        self.room = room
        self.full = full
        self.embedded = embedded
        own = {"key": key, "both_ways": both_ways}
        for name, value in (own | TOLD[key]._asdict()).items():
            setattr(self, name, value)

    def found(self, architecture: Architecture, task: Task) -> Room | None:
        """Its room in a stack, where it is about the task; windows and chunks may be full attention
        that hold all of a prompt, with what stands beside it.
        """
        asked = task.name in self.about and not isinstance(task, Questions)
        if not asked or (self.embedded and architecture.positions != "embedded"):
            return None
        if room := self.room(architecture, task):
            return room
        tried = architecture
        for beside in (1, 0):
            wide = architecture.within(task.length + beside)
            room = None if wide == tried else self.room(wide, task)
            if room and (beside or not room.beside):
                return room._replace(granted=(SEEN_WHOLE, *room.granted))
            tried = wide
        return None

    def may_solve(self, architecture: Architecture, task: Task) -> bool:
        if task.name not in self.about or not self.speaks_of(architecture):
            return False
        full = 0
        for layer, times in architecture.within(task.length).counted():
            full += times * any(part.retrieval_head or part.token_choice for part in layer)
        return full >= (self.full if isinstance(self.full, int) else self.full(task))

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        room = self.found(architecture, task)
        if room is None:
            return None
        granted = (*[EMBEDDED] * self.embedded, *room.granted)
        said = room.said or f"weights exist: {brief(self.says, architecture, room.numbers)}"
        return self.verdict(
            architecture, task, "SOLVABLE", said, numbers=room.numbers, assumptions=granted
        )


_LAYER = re.compile(r"layer(_\d+)?|first|second|third|counter|stack|flag|convolutions")
"""Numbers of a verdict that are places of layers, counted from 0."""


def from_one(numbers: Mapping[str, int]) -> dict[str, int]:
    """A verdict's numbers with its layers counted from 1, as they are wherever people read them."""
    return {name: number + bool(_LAYER.fullmatch(name)) for name, number in numbers.items()}


def brief(words: str, architecture: Architecture, numbers: Mapping[str, int]) -> str:
    """What layers a construction takes, in the words that theorems.md has."""
    shown = from_one(numbers)
    if "layers" in shown and "second" in shown:
        words = "{layers} layers, the last of them layer {second}"
    if "third" in shown:
        words = "three layers (layers {first}, {second} and {third})"
    if "answer_bits" in shown:
        shown["bits"] = shown["key_bits"] + shown["answer_bits"] + 1
    words = words.format_map(shown).replace("its 1 full layers", "its one full layer")
    kind = kind_of_readers(architecture)
    return words if kind == "full" else words.replace("by its", "by").replace("full", kind)


def kind_of_readers(architecture: Architecture) -> str:
    """What its layers are called that find tokens."""
    parts = (part for index in architecture.reading for part in architecture.layers[index])
    return "reading" if any(one.token_choice and one.token_choice.head for one in parts) else "full"


def in_turn(
    each: Iterable[tuple[Place, T]], *wanted: Callable[[T], bool]
) -> tuple[Place, ...] | None:
    """The places of the first that do what is wanted, one layer behind the other; None where there
    are none. Heads side by side read the same input, and so count once.
    """
    found: list[Place] = []
    for place, one in each:
        behind = not found or place[0] > found[-1][0]
        if behind and len(found) < len(wanted) and wanted[len(found)](one):
            found.append(place)
    return tuple(found) if len(found) == len(wanted) else None


def each(architecture: Architecture) -> Iterator[tuple[Place, Mechanism]]:
    """All that stands in a stack, with its place."""
    layers = enumerate(architecture)
    return (((i, j), part) for i, layer in layers for j, part in enumerate(layer))


def bits_of(values: int) -> int:
    """ceil(log2 values), at least 1."""
    return max(1, (values - 1).bit_length())
