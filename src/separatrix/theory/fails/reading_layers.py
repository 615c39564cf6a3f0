"""Theorems III to VII: which groups of layers they see, where they bite, how verdicts read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, ClassVar, Generic

from separatrix.core.errors import CheckFailed, SizeError, Undecided
from separatrix.core.evidence.records import Verdict
from separatrix.core.numbers.logs import LogSign
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import SeqComp, Task
from separatrix.tasks.seqcomp import LARGEST_PROMPT
from separatrix.theory.arguments import Certified, P, Sizes, certainly
from separatrix.theory.base import FAILS, Theorem, listed, readers, sized

_ROUNDS = 40
FAR = 1 << 200
"""A length at which everything that stops growing has stopped."""
_FROM = "from_"
"""Before the names of the numbers that belong to the failing size that the search found."""


@dataclass(frozen=True)
class Found(Generic[P]):
    """Certified parameters, the prompt length that they show failure at, and the sizes there."""

    n: int
    parameters: P
    sizes: Sizes


class DepthTheorem(Theorem, Generic[P]):
    """Failure of L-SeqComp for some numbers of reading layers; sizes may grow with n (log-linear
    layers, windows not yet full). What it asks of its parameters, and how they are found. Two of a
    kind are equal.
    """

    shows = FAILS
    least_steps = 2
    parameters: type[P]
    reading_layers: ClassVar[range]
    """How many reading layers a stack may have that it is about."""
    first_length: ClassVar[int] = 4
    """Where the search for a failing size begins to ask how large caches are."""
    names: ClassVar[Mapping[str, str]] = {}
    """What it calls sizes that go by another name here; "" for those that it lacks."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    @abstractmethod
    def inequalities(self, s: Sizes, p: P) -> Mapping[str, Certified]:
        """All of them by name, of exact integers; the counting one last."""

    @abstractmethod
    def shortest(self, s: Sizes, steps: int) -> P | None:
        """Certified parameters with the shortest prompt found."""

    @abstractmethod
    def at_size(self, s: Sizes, size: tuple[int, ...], anywhere: P | None) -> P | None:
        """The same at this m and these n_l; `anywhere` are those of the shortest prompt found."""

    @abstractmethod
    def surely_silent(self, sizes: Sizes, size: tuple[int, ...]) -> bool:
        """True only where no parameters can show failure at this m and these n_l: bounds on the
        inequalities that spare a search. log N < its bits stands for every logarithm.
        """

    def holds(self, s: Sizes, p: P) -> bool:
        """Whether every inequality certainly holds; a tie that stays open counts as no."""
        return all(map(certainly, self.inequalities(s, p).values()))

    def functions(self, readers: int) -> int:
        """How many functions it composes with so many reading layers; of fewer it says nothing."""
        return self.least_steps

    def lengthened(self, s: Sizes, anywhere: P | None, size: tuple[int, ...]) -> P | None:
        """The same at this m and these n_l, if only the last n_l differs and it holds there."""
        if anywhere is None or anywhere.size[:-1] != size[:-1] or anywhere.least_last > size[-1]:
            return None
        here = anywhere.with_last(size[-1])
        return here if self.holds(s, here) else None

    def sizes(self, architecture: Architecture, n: int) -> Sizes | None:
        """Its sizes with the caches of prompts of n tokens; None where it does not apply."""
        return sizes_of(architecture, n)

    def best_at(self, sizes: Sizes, task: SeqComp) -> P | None:
        """Certified parameters at the task's own size, or None."""
        size, anywhere = self.size(sizes, task), self.shortest(sizes, task.L)
        longer = self.lengthened(sizes, anywhere, size)
        return longer or self.at_size(sizes, size, anywhere)

    def signs(self, parameters: P, sizes: Sizes) -> tuple[LogSign, ...]:
        """Of its inequalities, the counting one last. Raises Undecided where one stays open."""
        return tuple(one.sign() for one in self.inequalities(sizes, parameters).values())

    def begins(self, architecture: Architecture) -> int:
        readers = len(architecture.reading)
        spoken_of = readers in self.reading_layers
        return self.functions(readers) if spoken_of else self.least_steps

    def size(self, sizes: Sizes, task: SeqComp) -> tuple[int, ...]:
        """The m and n_l that the proof is about, of the first functions and one of the others, that
        with most rows; the rest are fixed to identities, whatever their n_l.
        """
        # identities right before z_L or behind it are constants of the prefix (Lifting)
        first = self.functions(sizes.readers) - 2
        return (task.m, *task.branching[:first], max(task.branching[first:]))

    def covers(self, readers: int, task: SeqComp) -> bool:
        """Whether the theorem is about stacks of so many reading layers on so many functions."""
        return readers in self.reading_layers and self.functions(readers) <= task.L

    def applies(self, architecture: Architecture, task: Task) -> bool:
        """Whether the theorem is about these reading layers and this task."""
        return (
            isinstance(task, SeqComp)
            and self.covers(len(architecture.reading), task)
            and self.sizes(architecture, task.length) is not None
        )

    def fails_at(self, architecture: Architecture, task: Task) -> bool:
        if not isinstance(task, SeqComp) or not self.covers(len(architecture.reading), task):
            return False
        sizes = self.sizes(architecture, task.length)
        return sizes is not None and _shown(self, sizes, task)

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        if not isinstance(task, SeqComp) or not self.applies(architecture, task):
            return None
        sizes = self._sizes_at(architecture, task.length)
        silent = self.surely_silent(sizes, self.size(sizes, task))
        parameters = None if silent else self.best_at(sizes, task)
        here = None if parameters is None else Found(task.length, parameters, sizes)
        least = self.threshold(architecture, task.L)
        if parameters is not None and (least is None or parameters.length(task.L) < least.n):
            # the task's further n_l are larger than they must be
            n = parameters.length(task.L)
            least = Found(n, parameters, self._sizes_at(architecture, n))
        return self._state(architecture, task, here, least)

    def again(
        self, architecture: Architecture, task: Task, numbers: Mapping[str, int]
    ) -> Verdict | None:
        """The verdict with these parameters, every inequality evaluated again; no search runs.
        Raises CheckFailed where one does not hold.
        """
        if not isinstance(task, SeqComp) or not self.applies(architecture, task):
            return None
        theirs = {name: n for name, n in numbers.items() if not name.startswith(_FROM)}
        least = self._read(architecture, task.L, _named_least(numbers))
        here = self._read(architecture, task.L, theirs, task)
        if here is not None and (least is None or least.n > here.parameters.length(task.L)):
            raise CheckFailed(
                f"Theorem {self.key} shows failure at this size, and the record names no failing"
                " size as short"
            )
        return self._state(architecture, task, here, least)

    def _read(
        self,
        architecture: Architecture,
        steps: int,
        numbers: Mapping[str, int],
        task: SeqComp | None = None,
    ) -> Found[P] | None:
        """What a verdict says was found, checked; with a task, at the size of this task."""
        if not numbers:
            return None
        try:
            parameters = self.parameters.of(numbers)
        except (KeyError, SizeError) as error:
            raise CheckFailed(
                f"the parameters of Theorem {self.key} are incomplete or out of range: {error}"
            ) from None
        n = parameters.length(steps) if task is None else task.length
        found = Found(n, parameters, self._sizes_at(architecture, n))
        functions = len(parameters.branching) + 1
        other = task is not None and parameters.size != self.size(found.sizes, task)
        if other or functions != self.functions(found.sizes.readers):
            raise CheckFailed(
                f"the parameters of Theorem {self.key} ({functions} functions) are not those of"
                " this stack and task"
            )
        if not self.holds(found.sizes, found.parameters):
            raise CheckFailed(
                f"an inequality of Theorem {self.key} does not hold with these parameters"
            )
        return found

    def _sizes_at(self, architecture: Architecture, n: int) -> Sizes:
        sizes = self.sizes(architecture, n)
        assert sizes is not None
        return sizes

    def smallest(self, task: Task, verdict: Verdict) -> SeqComp | None:
        """The composition whose m and n_l the verdict names as those of a failing size."""
        named = _named_least(verdict.numbers)
        if not isinstance(task, SeqComp) or "m" not in named:
            return None
        branching: list[int] = []
        while f"n_{len(branching) + 1}" in named:
            branching.append(named[f"n_{len(branching) + 1}"])
        # further functions are identities of one row each
        branching += [1] * (task.L - 1 - len(branching))
        if named["m"] * prod(branching) * task.L >= LARGEST_PROMPT:
            return None
        return SeqComp(L=task.L, m=named["m"], branching=tuple(branching))

    def threshold(self, architecture: Architecture, steps: int) -> Found[P] | None:
        """A failing size of L-SeqComp, the shortest that the search finds over all m and n_l, with
        caches sized for that prompt; None if none is found.

        Caches only grow, and so does the shortest failing prompt with them: start with the caches
        of a short prompt, find the prompt that fails with those, take its caches, and so on until
        they stay.
        """
        n = self.first_length
        found: list[P] = []
        for _ in range(_ROUNDS):
            sizes = self._sizes_at(architecture, n)
            if sizes == self._sizes_at(architecture, FAR):
                break
            parameters = self.shortest(sizes, steps)
            if parameters is None:
                return None
            found = [parameters]
            if parameters.length(steps) <= n:
                break
            n = parameters.length(steps)
        last = self.shortest(self._sizes_at(architecture, n), steps)
        if last is not None:
            found.append(last)
        for parameters in sorted(found, key=lambda p: p.length(steps)):
            n = parameters.length(steps)
            failing = Found(n, parameters, self._sizes_at(architecture, n))
            if self.holds(failing.sizes, failing.parameters):
                return failing
        return None

    def _state(
        self,
        architecture: Architecture,
        task: SeqComp,
        here: Found[P] | None,
        least: Found[P] | None,
    ) -> Verdict | None:
        """The verdict from certified parameters: at the task's size, at the failing size that the
        search found, or both; None where there are none.
        """
        decided = here or least
        if decided is None:
            return None
        readers = len(architecture.reading)
        layers = "one reading layer" if readers == 1 else f"{readers} reading layers"
        sizes = self._sizes_at(architecture, task.length)
        numbers = self._numbers(here) if here else {}
        failing_size = ""
        if least is not None:
            numbers |= {_FROM + name: value for name, value in self._numbers(least).items()}
            failing_size = (
                f"for L = {task.L} a failing size: {sized(least.n, found=True)} tokens"
                f" ({self.listed(least.parameters)})"
            )
        if here is None:
            said = f"no failure is shown at this size; {failing_size}"
        else:
            said = (
                "whatever the weights, some prompt of this size is answered wrongly"
                f" ({self.listed(here.parameters)})"
            )
            if least is not None and least.parameters != here.parameters:
                said += f"; {failing_size}"
        return self.verdict(
            architecture,
            task,
            "FAILS" if here else "OPEN",
            f"{layers} ({self.said_of(sizes)}): {said}",
            n=(least or decided).n,
            numbers=numbers,
            sign=self.signs(decided.parameters, decided.sizes)[-1],
        )

    def named(self, sizes: Sizes) -> dict[str, int]:
        """The sizes by the names that they have in the theorem."""
        named = {self.names.get(name, name): bits for name, bits in sizes.numbers.items()}
        return {name: bits for name, bits in named.items() if name}

    def said_of(self, sizes: Sizes) -> str:
        """What a verdict's sentence says of the sizes."""
        # open blocks are named only where there are any
        bits = {name: value for name, value in self.named(sizes).items() if value or name[0] != "o"}
        return f"{', '.join(f'{name} = {value:,}' for name, value in bits.items())} bits"

    def listed(self, parameters: P) -> str:
        """What a verdict's sentence says of the parameters."""
        return listed(parameters.numbers)

    def _numbers(self, found: Found[P]) -> dict[str, int]:
        return found.parameters.numbers | self.named(found.sizes)


def _named_least(numbers: Mapping[str, int]) -> dict[str, int]:
    return {
        name.removeprefix(_FROM): value for name, value in numbers.items() if name.startswith(_FROM)
    }


def sizes_of(architecture: Architecture, n: int) -> Sizes:
    """The sizes of a stack with caches as large as they get in prompts of n tokens."""
    before, *groups = architecture.groups(n)
    # what straddles a cut must be known (theory.md, section 1)
    opened = tuple(
        sum(part.open_bits(n) for part in architecture.layers[index])
        for index in architecture.reading
    )
    # groups count open blocks, which are owed once per cut and not per content
    after = (group.sigma - blocks for group, blocks in zip(groups, opened, strict=True))
    return Sizes(h=readers(architecture), sigma=(before.sigma, *after), opened=opened)


# placements of a cycle of layers leave the same sizes again and again
@lru_cache(maxsize=1 << 16)
def _shown(theorem: DepthTheorem[Any], sizes: Sizes, task: SeqComp) -> bool:
    if theorem.surely_silent(sizes, theorem.size(sizes, task)):
        return False
    # a comparison that stays open excludes nothing
    with suppress(Undecided):
        return theorem.best_at(sizes, task) is not None
    return False
