"""Theorems: a statement with premises and a source, its finite evaluation on an architecture and a
task, and what cards and searches need to know of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar

from separatrix.core.errors import CheckFailed, SizeError
from separatrix.core.evidence.records import Status, Verdict
from separatrix.core.numbers.amounts import rounded_up
from separatrix.core.numbers.counts import Count
from separatrix.core.numbers.first_size import first_size
from separatrix.core.numbers.logs import LogSign
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.forgetting import masks
from separatrix.stacks.architecture.weights import Mlp
from separatrix.tasks import Questions, Task, Thought
from separatrix.tasks.seqcomp import Functions
from separatrix.theory.words import ALL, TOLD, Words, WordsByTask, kept, layers_of

START_TOKEN = "a start token"
OF_THE_MODEL = ("positions:", START_TOKEN)
"""How it begins what a construction takes for granted of the model beside its weights."""

FAILS: frozenset[Status] = frozenset({"FAILS"})
SOLVABLE: frozenset[Status] = frozenset({"SOLVABLE"})
EITHER = FAILS | SOLVABLE
NEITHER: frozenset[Status] = frozenset()


class Theorem(ABC):
    """A theorem with its finite evaluation. Subclasses are final and stateless; what is said of
    one stands in theorems.md, or in the class itself.
    """

    key: ClassVar[str]
    title: ClassVar[str]
    statement: ClassVar[str]
    premises: ClassVar[tuple[str, ...]]
    source: ClassVar[str]
    proof_sketch: ClassVar[str]
    says: ClassVar[str] = ""

    shows: ClassVar[frozenset[Status]] = EITHER
    """What it can show at a finite size."""
    anywhere: ClassVar[bool] = False
    """Whether it says the same wherever the layers of a stack stand; False is right for any
    theorem, and makes `design` slower.
    """
    at_once: ClassVar[bool] = True
    """Whether it speaks of models that answer at once."""
    after_thought: ClassVar[bool] = False
    """Whether it speaks of models that may write a chain of thought before they answer."""
    both_ways: ClassVar[bool] = False
    """Whether it speaks of stacks in which tokens see later ones, and of no others; the rest say
    nothing of those: their caches and prefixes are those of models that read left to right.
    """
    least_steps: ClassVar[int] = 1
    """It says nothing of compositions of fewer functions."""
    larger_fail_too: ClassVar[bool] = False
    """Whether failure at one size of a task's family means failure at every larger size of it;
    the file of the theorem says why. Else the n of a verdict is one failing size, found by a
    search, and larger ones may be open.
    """
    grades: ClassVar[bool] = False
    """Whether its failures say how badly: `ceiling_millionths` among the numbers of a verdict is
    the highest accuracy that any weights reach on random questions.
    """
    masked: ClassVar[bool] = False
    """Whether it rests on how far back windows, and mechanisms that say nothing, read."""
    words: ClassVar[WordsByTask] = {}
    words_after_thought: ClassVar[WordsByTask] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = vars(cls)
        told = TOLD.get(own.get("key", ""))
        for name, said in () if told is None else told._asdict().items():
            if name not in own:
                setattr(cls, name, said)

    def solves_at_once(self) -> bool:
        """Whether it shows what models can compute that answer without writing anything before."""
        return self.at_once and "SOLVABLE" in self.shows

    def fails_at_once(self) -> bool:
        """Whether it shows what such models cannot compute."""
        return self.at_once and "FAILS" in self.shows

    def solves_after_thought(self) -> bool:
        """Whether it shows what models can compute that write intermediate steps."""
        return self.after_thought and "SOLVABLE" in self.shows

    @property
    def cited(self) -> str:
        """The theorem as people cite it: "Theorem I", "construction: retrieval"."""
        built = self.shows == SOLVABLE and self.key.islower()
        return f"{'construction:' if built else 'Theorem'} {self.key}"

    def speaks_of(self, architecture: Architecture) -> bool:
        """Whether it is about a stack at all."""
        return self.both_ways != architecture.causal and architecture.owned

    def may_solve(self, architecture: Architecture, task: Task) -> bool:
        """False only where it does not say SOLVABLE of these layers, in whatever order."""
        return self.speaks_of(architecture)

    def begins(self, architecture: Architecture) -> int:
        """It says nothing about this stack on compositions of fewer functions."""
        return self.least_steps

    def silent_up_to(self, architecture: Architecture, steps: int, tokens: int) -> bool:
        """Whether it is about compositions of so many functions, and is known without a search to
        show no failure in prompts of so many tokens or fewer. False says nothing.
        """
        return False

    @abstractmethod
    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        """The verdict at the task's size, always the same; None where it does not apply."""

    def fails_at(self, architecture: Architecture, task: Task) -> bool:
        """Whether it says FAILS at the task's size, where a theorem can without the search of the n
        from which on it does. May raise Undecided.
        """
        found = self.judge(architecture, task)
        return found is not None and found.status == "FAILS"

    def smallest(self, task: Task, verdict: Verdict) -> Task | None:
        """The task at which a verdict with an n says that models like this begin to fail; None
        where no task is that long. Here: the member of the task's family at n.
        """
        tasks = task.family()
        n = verdict.n
        if n is None:
            return None
        if _composes(task):
            # n counts tokens of the prompt, the family counts values
            m = first_size(lambda m: tasks.at(m).length >= n, tasks.smallest, limit=tasks.largest)
            return None if m is None else tasks.at(m)
        return tasks.at(n) if tasks.smallest <= n <= tasks.largest else None

    def failing(self, n: int, *, of: str = "n") -> str:
        """Where this theorem shows failure, given the n of a verdict: "from n = 58 on", or "at n =
        282" where larger sizes may be open. Every text that names such an n has it from here.
        """
        if self.larger_fail_too:
            return f"from {sized(n, of)} on"
        return f"at {sized(n, of, found=True)}"

    def since(self, task: Task, least: Task | None) -> tuple[int | None, str]:
        """The n of the smallest task of a family that fails, and how it is told."""
        if least is None:
            return None, "it fails"
        what, n = size_in_words(least)
        of = "n" if what.endswith(" n") else what
        return n, f"it fails {self.failing(n, of=of)} ({task.family().described})"

    def n_shown(self, n: int) -> str:
        """The n of a verdict by itself: "7,675,932", "at most 5.97e23"."""
        return at_most(n, found=not self.larger_fail_too)

    def failing_briefly(self, n: int) -> str:
        """The same for the cell of a table: "n >= 58", "n = 282" or "n <= 5.97e23"."""
        shown = self.n_shown(n)
        bound = shown.removeprefix("at most ")
        at = "=" if bound == shown else "<="
        return f"n {'>=' if self.larger_fail_too else at} {bound}"

    def told(
        self, verdict: Verdict, task: Task, architecture: Architecture, *, thought: bool = False
    ) -> Words:
        """A verdict in words; its own sentence and title where there are none for the task."""
        by_task = self.words_after_thought if thought else self.words
        words = by_task.get(task.name, by_task.get(ALL))
        if words is None:
            why = f"{self.cited} says: {self.title}. `separatrix list theorems {self.key}` tells"
            return Words(verdict.statement, f"{why} its premises, and why it holds.")
        facts = self.shown(verdict, task)
        facts |= {"kept": kept(architecture), "layers": layers_of(architecture)}
        facts |= {"statement": verdict.statement}
        return Words(words.text.format_map(facts), words.why.format_map(facts))

    def shown(self, verdict: Verdict, task: Task) -> dict[str, str]:
        """The numbers that words may name, as people read them."""
        numbers = task.sizes() | verdict.numbers
        if verdict.n is not None:
            numbers |= {"fewer": verdict.n - 1}
        told = {name: number(value) for name, value in numbers.items() if type(value) is int}
        return told if verdict.n is None else told | {"n": self.n_shown(verdict.n)}

    def again(
        self, architecture: Architecture, task: Task, numbers: Mapping[str, int]
    ) -> Verdict | None:
        """The verdict derived again to check one with these numbers: they state MLPs, which no spec
        does; theorems whose parameters were searched for take them from there.

        Raises CheckFailed when an inequality does not hold with them.
        """
        if numbers.get("width_stated"):
            width = numbers.get("width", 0)
            if width < 1:
                raise CheckFailed(f"an MLP of {width} units")
            mlp = Mlp(width, stated=True, every=bool(numbers.get("mlp_in_every_layer")))
            architecture = replace(architecture, mlp=mlp)
        return self.judge(architecture, task)

    def verdict(
        self,
        architecture: Architecture,
        task: Task,
        status: Status,
        sentence: str,
        *,
        n: int | None = None,
        log2_n: str | None = None,
        numbers: dict[str, int] | None = None,
        sign: LogSign | None = None,
        assumptions: tuple[str, ...] = (),
    ) -> Verdict:
        """A record of this theorem with its premises, source, what the sizes take for granted and
        the notes of whoever read the architecture filled in. `assumptions` are this verdict's own.
        """
        assumptions = (*(granted(architecture) if self.masked else ()), *assumptions)
        return Verdict(
            architecture=architecture.spec,
            task=task.spec,
            status=status,
            theorem=self.key,
            statement=sentence,
            n=n,
            log2_n=log2_n,
            numbers=numbers or {},
            method=sign.method if sign else "",
            slack=sign.difference if sign else "",
            premises=self.premises,
            assumptions=tuple(
                dict.fromkeys((*assumptions, one_token_per_value(task), *architecture.granted))
            ),
            notes=architecture.notes,
            source=self.source,
        )


_MOST_JUMPS = 500
_LONG, _FOUND_LONG = 10**15, 10**9
"""Sizes from which on a size is shortened: the smallest one that fails, and one that a search has
found, of which another search finds other digits.
"""


MASKS = "the kernel masks at"


def granted(architecture: Architecture) -> tuple[str, ...]:
    """What a verdict takes for granted of windows, and of mechanisms that say nothing."""
    said: list[str] = []
    windows = [f"{size:,}" for size in masks(architecture)]
    if windows:
        said.append(
            f"{MASKS} {' and '.join(windows)} tokens: some inference code reads one token more, or"
            " masks nothing while it reads the prompt"
        )
    names = {part.name for layer, _ in architecture.counted() for part in layer if part.origin}
    said += [
        f"nobody says how far back '{name}' reads: all that it keeps counts as state"
        for name in sorted(names)
    ]
    return tuple(said)


def counted(task: Task) -> Count:
    """The number of prefix classes of a task that has one; SizeError for one without."""
    count = task.prefix_classes()
    if count is None:
        raise SizeError(f"{task.spec}: no number of prefix classes is known for this task")
    return count


def size_in_words(task: Task) -> tuple[str, int]:
    """n as people count it, and what it is: of composed functions the prompt length, else the
    task's own n; a chain of thought does not count.
    """
    if isinstance(task, Thought):
        return size_in_words(task.task)
    if _composes(task):
        return "prompt length n", task.length
    grows = task.family().grows
    return grows, task.sizes()[grows]


def _composes(task: Task) -> bool:
    return isinstance(task.task if isinstance(task, Questions) else task, Functions)


def first_excess(
    demand: Callable[[int], Count], supply: Callable[[int], int], start: int, *, limit: int
) -> int | None:
    """The smallest n in [start, limit] at which demand(n) > 2^supply(n), both growing with n; None
    if there is none.

    As long as the demand stays below what the supply was at n, no n in between can do; so n jumps
    to the first demand above that supply. Where demand and supply grow side by side, the jumps stay
    short; after many of them the answer is None too: no n is claimed.
    """
    n: int | None = start
    for _ in range(_MOST_JUMPS):
        if n is None or n > limit:
            break
        bits = supply(n)

        def exceeds(k: int, bits: int = bits) -> bool:
            return demand(k).exceeds_bits(bits)

        if exceeds(n):
            return n
        if n == limit:
            break
        # floats guess, which spares calls: demands grow about as n does
        near = n
        for _ in range(6):
            bits_near = max(float(demand(near).log2_ball()), 1.0)
            near = min(max(n + 1, int(near * bits / bits_near)), limit)
        n = first_size(exceeds, n + 1, limit=limit, near=near)
    return None


def first_failing(
    task: Task, fails: Callable[[Task], bool], limit: int | None = None
) -> Task | None:
    """The smallest task of a family that fails as all larger ones do; None where none does."""
    tasks = task.family()
    last = tasks.largest if limit is None else limit
    found = first_size(lambda n: fails(tasks.at(n)), tasks.smallest, limit=last)
    return None if found is None else tasks.at(found)


def sized(n: int, of: str = "n", *, found: bool = False) -> str:
    """A size by its name: "n = 7,675,932", "n of at most 5.97e23"."""
    shown = at_most(n, found=found)
    return f"{of} of {shown}" if shown.startswith("at most") else f"{of} = {shown}"


def readers(architecture: Architecture) -> tuple[int, ...]:
    """h of every reading layer, first layer first."""
    return tuple(architecture.read_bits(index) for index in architecture.reading)


def one_token_per_value(task: Task) -> str:
    """What every verdict takes for granted of the vocabulary (theory.md, section 1, spelling)."""
    ids = at_most(task.vocabulary, found=True)
    return f"one token per value: prompts are written in {ids} token ids"


def number(value: int) -> str:
    """An integer for people: with separators, or near where it is long, which bounds nothing."""
    text = f"{value:,}"
    if len(text) <= 20:
        return text
    # floats end near 1.8 * 10^308
    near = f"{float(value):.4g}" if value < 10**300 else f"2^{value.bit_length() - 1}"
    return f"about {near}"


def at_most(n: int, *, found: bool = False) -> str:
    """A size of a failing prompt for people: with separators, or three digits rounded up where it
    is long ("at most 5.97e23"). One that a search has found is long from ten digits on, for it is
    no more than a bound of the smallest.
    """
    return f"{n:,}" if n < (_FOUND_LONG if found else _LONG) else f"at most {rounded_up(n)}"


def listed(numbers: Mapping[str, int]) -> str:
    """Sizes that a search has found, by their names: "m = 241, X <= 9.28e13"."""
    return ", ".join(
        f"{name} = {value:,}" if value < _FOUND_LONG else f"{name} <= {rounded_up(value)}"
        for name, value in numbers.items()
    )
