"""What Theorems III, IV and V share: which groups of layers they see, at which n they bite, and
how their verdicts read.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from math import prod
from typing import Any, ClassVar

from separatrix.architecture import Architecture
from separatrix.errors import CheckFailed, SizeError
from separatrix.evidence.records import Verdict
from separatrix.numbers.logs import LogSign
from separatrix.tasks import SeqComp, Task
from separatrix.tasks.seqcomp import LARGEST_PROMPT
from separatrix.theory.base import FAILS, Sees, Theorem, number
from separatrix.theory.words import Words, WordsByTask

_ROUNDS = 40
_FAR = 1 << 200
"""A length at which everything that stops growing has stopped."""
_FROM = "from_"


@dataclass(frozen=True)
class Found:
    """Certified parameters: the prompt length they show failure at, and the sizes of the caches
    at that length.
    """

    n: int
    parameters: Any
    sizes: Any

    @property
    def numbers(self) -> dict[str, int]:
        """Every parameter and size by name."""
        return asdict(self.parameters) | asdict(self.sizes)


class DepthTheorem(Theorem):
    """Failure of L-SeqComp for one number of reading layers; sizes may grow with n (log-linear
    layers, windows not yet full).
    """

    shows = FAILS
    sees = Sees.GROUPS
    words: ClassVar[WordsByTask] = {
        "seqcomp": Words(
            "whatever the weights, in some prompt of {n} tokens, the shortest shown to fail",
            "What one token can read of the past, and what the bounded layers carry, is too little"
            " to tell all functions apart.",
        )
    }
    reading_layers: ClassVar[int]
    parameters: ClassVar[type]

    @abstractmethod
    def sizes(self, architecture: Architecture, n: int) -> Any:
        """The theorem's sizes with caches as large as they get in prompts of n tokens, or None
        where it does not apply.
        """

    @abstractmethod
    def best(self, sizes: Any, steps: int, *, quick: bool = False) -> Any:
        """Parameters with the shortest prompt found, or None; `quick` may look less far."""

    @abstractmethod
    def best_at(self, sizes: Any, task: SeqComp) -> Any:
        """Parameters at the task's own size, or None."""

    @abstractmethod
    def signs(self, parameters: Any, sizes: Any) -> tuple[LogSign, ...]:
        """The theorem's inequalities, certified; the counting one last."""

    def applies(self, architecture: Architecture, task: Task) -> bool:
        return (
            isinstance(task, SeqComp)
            and self.least_steps <= task.L
            and len(architecture.reading) == self.reading_layers
            and self.sizes(architecture, task.length) is not None
        )

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        if not self.applies(architecture, task):
            return None
        assert isinstance(task, SeqComp)
        sizes = self.sizes(architecture, task.length)
        parameters = self.best_at(sizes, task)
        here = None if parameters is None else Found(task.length, parameters, sizes)
        least = self.threshold(architecture, task.L)
        if parameters is not None and (least is None or parameters.length(task.L) < least.n):
            shorter = parameters.length(task.L)
            least = Found(shorter, parameters, self.sizes(architecture, shorter))
        return self._state(architecture, task, here, least) if here or least else None

    def again(
        self, architecture: Architecture, task: Task, numbers: Mapping[str, int]
    ) -> Verdict | None:
        """The verdict with these parameters, every inequality evaluated again; no search runs.
        Raises CheckFailed where one does not hold.
        """
        if not self.applies(architecture, task):
            return None
        assert isinstance(task, SeqComp)
        least = self._read(
            architecture,
            task.L,
            {k[len(_FROM) :]: v for k, v in numbers.items() if k.startswith(_FROM)},
        )
        here = self._read(
            architecture,
            task.L,
            {k: v for k, v in numbers.items() if not k.startswith(_FROM)},
            task,
        )
        return self._state(architecture, task, here, least) if here or least else None

    def _read(
        self,
        architecture: Architecture,
        steps: int,
        numbers: Mapping[str, int],
        task: SeqComp | None = None,
    ) -> Found | None:
        if not numbers:
            return None
        names = [f.name for f in fields(self.parameters)]
        try:
            parameters = self.parameters(**{name: numbers[name] for name in names})
        except (KeyError, SizeError) as error:
            raise CheckFailed(
                f"the parameters of Theorem {self.key} are incomplete or out of range: {error}"
            ) from None
        n = parameters.length(steps) if task is None else task.length
        found = Found(n, parameters, self.sizes(architecture, n))
        if task is not None and not self._own(found, task):
            raise CheckFailed(f"the parameters of Theorem {self.key} are not those of {task.spec}")
        if not all(sign.positive for sign in self.signs(found.parameters, found.sizes)):
            raise CheckFailed(
                f"an inequality of Theorem {self.key} does not hold with these parameters"
            )
        return found

    def _own(self, found: Found, task: SeqComp) -> bool:
        """Whether the parameters are about the task's m and first n_l; further functions are
        fixed to identities, whatever their n_l.
        """
        mine = [
            found.parameters.m,
            *(getattr(found.parameters, f"n_{level}") for level in range(1, self.least_steps)),
        ]
        return mine == [task.m, *task.branching[: self.least_steps - 1]]

    def smallest(self, task: Task, verdict: Verdict) -> SeqComp | None:
        """The composition whose m and n_l the verdict names as those of the shortest prompt."""
        named = {
            name.removeprefix(_FROM): value
            for name, value in verdict.numbers.items()
            if name.startswith(_FROM)
        }
        if not isinstance(task, SeqComp) or "m" not in named:
            return None
        branching = [named[f"n_{level}"] for level in range(1, self.least_steps)]
        # further functions are identities of one row each
        branching += [1] * (task.L - 1 - len(branching))
        if named["m"] * prod(branching) * task.L >= LARGEST_PROMPT:
            return None
        return SeqComp(L=task.L, m=named["m"], branching=tuple(branching))

    def threshold(self, architecture: Architecture, steps: int) -> Found | None:
        """The shortest prompt of L-SeqComp found to fail, over all m and n_l, with caches sized for
        that prompt; None if none is found.

        Caches only grow, and so does the shortest failing prompt with them: start with the caches
        of a short prompt, find the prompt that fails with those, take its caches, and so on until
        they stay.
        """
        n = 4
        found = []
        for _ in range(_ROUNDS):
            sizes = self.sizes(architecture, n)
            if sizes == self.sizes(architecture, _FAR):
                break
            found = [self.best(sizes, steps, quick=True) or self.best(sizes, steps)]
            if found[0] is None:
                return None
            if found[0].length(steps) <= n:
                break
            n = found[0].length(steps)
        found.append(self.best(self.sizes(architecture, n), steps))
        for parameters in sorted(
            (p for p in found if p is not None), key=lambda p: p.length(steps)
        ):
            length = parameters.length(steps)
            sizes = self.sizes(architecture, length)
            if all(sign.positive for sign in self.signs(parameters, sizes)):
                return Found(length, parameters, sizes)
        return None

    def _state(
        self, architecture: Architecture, task: SeqComp, here: Found | None, least: Found | None
    ) -> Verdict:
        """The verdict from certified parameters: at the task's size, at the shortest prompt
        found, or both.
        """
        layers = (
            "one reading layer"
            if self.reading_layers == 1
            else f"{self.reading_layers} reading layers"
        )
        said = ", ".join(
            f"{name} = {value:,}"
            for name, value in asdict(self.sizes(architecture, task.length)).items()
            if value or name[0] != "o"
        )
        numbers = (here.numbers if here else {}) | (
            {_FROM + name: value for name, value in least.numbers.items()} if least else {}
        )
        shortest = (
            f"the shortest prompts shown to fail have n = {number(least.n)} tokens"
            f" ({_listed(least)})"
            if least
            else ""
        )
        decided = here or least
        assert decided is not None
        sign = self.signs(decided.parameters, decided.sizes)[-1]
        if here is not None:
            sentence = (
                f"{layers} ({said} bits): whatever the weights, some prompt of this size is"
                f" answered wrongly ({_listed(here)})"
            )
            sentence += (
                f"; for L = {task.L} {shortest}"
                if least and least.parameters != here.parameters
                else ""
            )
        else:
            sentence = (
                f"{layers} ({said} bits): no failure is shown at this size; for L = {task.L}"
                f" {shortest}"
            )
        n = least.n if least else here.n if here else None
        return self.verdict(
            architecture,
            task,
            "FAILS" if here else "OPEN",
            sentence,
            n=n,
            numbers=numbers,
            sign=sign,
        )


def open_bits(architecture: Architecture, index: int, t: int) -> int:
    """Bits of the open blocks and windows of the reading heads of layer `index`: what straddles
    a cut must be known (theory.md, section 1).
    """
    return sum(part.open_bits(t) for part in architecture.layers[index])


def _listed(found: Found) -> str:
    return ", ".join(f"{name} = {value:,}" for name, value in asdict(found.parameters).items())
