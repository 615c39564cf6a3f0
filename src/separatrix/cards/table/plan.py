"""The rows and columns of the table, the one size that all stacks of a column share, and what each
cell must hold: verdicts, constructions, certificates and trainings. Nothing else belongs to it.

Rows and columns, and the paper's entries, are those of [Ye26] (theory.md, section 8). In a column
every stack has the same layers, heads, head dimension and width: what differs is the mechanism.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, NamedTuple

from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.theory import judge
from separatrix.theory.judge import THEOREMS
from separatrix.theory.words import counted_as

ROWS = {
    "full": "full attention",
    "linear": "linear attention",
    "loglinear": "log-linear attention",
    "sparse": "(B, k)-sparse attention",
    "hybrid": "hybrid",
}
WIDTH = 32
HIDDEN = 64
"""Hidden units of every MLP, but for rows whose mixers have parameters of their own."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """A task, and the size of the stacks that are compared on it."""

    title: str
    task: str
    """The task's text at a size, with "{n}" and "{four_n}" to be filled in."""
    layers: int
    heads: int
    head_dim: int
    block: int
    """Tokens in a block of the sparse row; one block is opened."""
    at: int
    """The size at which stacks are judged first, and for which solving weights are written."""
    batch: int = 128
    optimiser: Literal["muon", "adamw"] = "muon"
    """The one with which more seeds solved the column's task, measured at the rate of all."""
    hidden: Mapping[str, int]
    """Hidden units of the MLPs of those rows whose mixers have weights of their own: for levels,
    or for places in a block.
    """

    @property
    def size_class(self) -> str:
        """What the stacks of the column share, in words."""
        layers, heads = counted_as(self.layers, "layer"), counted_as(self.heads, "head")
        return f"{layers} of {heads} of {self.head_dim} dimensions, width {WIDTH}"


COLUMNS = {
    "eva": Column(
        title="Eva",
        task="eva:n={n},V={n}",
        layers=1,
        heads=2,
        head_dim=12,
        block=8,
        at=1024,
        hidden={"loglinear": 32},
    ),
    "twosum": Column(
        title="2-Sum",
        task="twosum:n={n},M={four_n},form=query",
        layers=1,
        heads=2,
        head_dim=3,
        block=64,
        at=576,
        batch=256,
        optimiser="adamw",
        hidden={"loglinear": 32, "sparse": 62},
    ),
    "seqcomp": Column(
        title="L-SeqComp",
        task="seqcomp:L=2,m={n},n_1=1",
        layers=3,
        heads=1,
        head_dim=7,
        block=8,
        at=16,
        hidden={"loglinear": 48},
    ),
}


def stack(row: str, column: Column) -> str:
    """The canonical spec of a row's stack in a column. The hybrid has one full layer behind
    linear ones; in a single layer, one full head beside a linear one.
    """
    sizes = f"heads={column.heads}, head_dim={column.head_dim}"
    if row == "hybrid" and column.layers == 1:
        text = f"full|linear @ heads={column.heads // 2}, head_dim={column.head_dim}"
    elif row == "hybrid":
        text = f"linear*{column.layers - 1} + full @ {sizes}"
    else:
        blocks = f", block={column.block}, topk=1" if row == "sparse" else ""
        text = f"{row}*{column.layers} @ {sizes}{blocks}"
    return Architecture.parse(text).spec


@dataclass(frozen=True, kw_only=True, eq=False)
class Kind:
    """A kind of report: its rows and columns, how much is trained, and whether larger stacks are
    built beside those of the table.
    """

    rows: tuple[str, ...] = tuple(ROWS)
    columns: tuple[str, ...] = tuple(COLUMNS)
    trained: Mapping[str, tuple[int, ...]]
    """Sizes by column."""
    steps: Mapping[str, int]
    """Steps of every training, by column."""
    seeds: int = 3
    tested: int = 2048
    beside: bool = True


KINDS = {
    "quick": Kind(
        trained={"eva": (16,), "twosum": (4,), "seqcomp": (4,)},
        steps={"eva": 500, "twosum": 400, "seqcomp": 400},
        beside=False,
    ),
    "full": Kind(
        trained={"eva": (8, 16, 32), "twosum": (4, 8), "seqcomp": (4, 8)},
        steps={"eva": 700, "twosum": 900, "seqcomp": 750},
        seeds=4,
    ),
}


class Pair(NamedTuple):
    """A stack and a task, in the words that records use."""

    architecture: str
    task: str

    @classmethod
    def of(cls, architecture: str, task: str) -> Pair:
        return cls(Architecture.parse(architecture).spec, parse_task(task).spec)


class Witness(NamedTuple):
    """A failure to be found: inputs that a narrow stack confuses, or a trained one's mistake."""

    form: Literal["collision", "block_swap", "wrong_answer"]
    architecture: str
    task: str
    rounded: str = ""
    """The format that every carried number is rounded to; none for a wrong answer."""


_SEQCOMP_16 = "seqcomp:L=2,m=16,n_1=1"
_CONFUSED = {"eva": "eva:n=16,V=16", "twosum": "twosum:n=8,M=32,form=query", "seqcomp": _SEQCOMP_16}
_NARROW = {
    "linear": ("linear @ heads=1, head_dim=2, p3", "p3"),
    "loglinear": ("loglinear @ heads=1, head_dim=1, p4", "p4"),
}
_SPARSE = ("sparse @ heads=1, head_dim=1, block=8, topk=1, p6", "twosum:n=32,M=64,form=query")
WITNESSES = {
    (row, column): Witness("collision", *Pair.of(narrow, task), rounded)
    for row, (narrow, rounded) in _NARROW.items()
    for column, task in _CONFUSED.items()
} | {("sparse", "twosum"): Witness("block_swap", *Pair.of(*_SPARSE), "p6")}
"""Failures that can be shown on two inputs: of stacks so small that a search finds them."""

_EVA = "eva:n=4096,V=4096"
_TWOSUM = "twosum:n=4096,M=5000,form=query"
_SEQCOMP = "seqcomp:L=2,n=4096"
BUILT_BESIDE = {
    ("full", "eva"): (Pair.of("full @ heads=1, head_dim=14", _EVA),),
    ("full", "twosum"): (Pair.of("full @ heads=1, head_dim=3", _TWOSUM),),
    ("full", "seqcomp"): (Pair.of("full*3 @ heads=1, head_dim=32", _SEQCOMP),),
    ("sparse", "eva"): (Pair.of("sparse @ heads=1, head_dim=16, block=64, topk=1", _EVA),),
    ("hybrid", "eva"): (Pair.of("linear*3 + full @ heads=1, head_dim=32", _EVA),),
    ("hybrid", "twosum"): (Pair.of("linear*3 + full @ heads=1, head_dim=32", _TWOSUM),),
    ("hybrid", "seqcomp"): (Pair.of("linear + full*2 @ heads=1, head_dim=7", _SEQCOMP_16),),
}
"""Stacks of other sizes with solving weights, for long prompts."""
FEWER_LAYERS = {("full", "seqcomp"): (1, 2), ("sparse", "seqcomp"): (1, 2)}
"""Stacks of the same size with fewer layers, which the cell tells of as well."""


@dataclass(frozen=True)
class Cell:
    """One cell of a kind of report."""

    row: str
    column: str
    kind: Kind

    @property
    def of(self) -> Column:
        return COLUMNS[self.column]

    @property
    def stack(self) -> str:
        """The stack that the cell is about."""
        return stack(self.row, self.of)

    def verdicts(self) -> list[Verdict]:
        """What the theorems say of the cell's stack, at the column's size or, where they say that
        it fails at another one, there; then of the stacks that the cell tells of as well.
        """
        place = (self.row, self.column)
        fewer = (replace(self.of, layers=layers) for layers in FEWER_LAYERS.get(place, ()))
        stacks = [self.stack, *(stack(self.row, column) for column in fewer)]
        found = [_deciding(own, self.task_at(self.of.at)) for own in stacks]
        return found + [_judged(*pair)[0] for pair in self._built_beside]

    @property
    def _built_beside(self) -> tuple[Pair, ...]:
        return BUILT_BESIDE.get((self.row, self.column), ()) if self.kind.beside else ()

    def built(self) -> tuple[Pair, ...]:
        """The stacks and tasks for which solving weights are written."""
        main = self.verdicts()[0]
        own = (Pair(main.architecture, main.task),) if main.status == "SOLVABLE" else ()
        return (*own, *self._built_beside)

    def witnesses(self) -> tuple[Witness, ...]:
        """The failures to be shown; none where nothing fails."""
        if self.verdicts()[0].status != "FAILS":
            return ()
        # where no two inputs are known to be confused: a trained model's wrong answer
        wrong = Witness("wrong_answer", self.stack, self.task_at(self.sizes[-1]))
        return (WITNESSES.get((self.row, self.column), wrong),)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes that its stack is trained at."""
        return self.kind.trained[self.column]

    def task_at(self, size: int) -> str:
        return parse_task(self.of.task.format(n=size, four_n=4 * size)).spec

    def training(self) -> dict[str, Any]:
        """The settings of its trainings: alike in a column, but for the hidden units."""
        return {
            "steps": self.kind.steps[self.column],
            "batch": self.of.batch,
            "learning_rate": 0.01,
            "width": WIDTH,
            "hidden": self.of.hidden.get(self.row, HIDDEN),
            "weight_decay": 0.01,
            "tested": self.kind.tested,
            "stop_at": 0.995,
            "seconds": 0.0,
            "optimiser": self.of.optimiser,
            "schedule": "cosine",
            "precision": "fp32",
            "curriculum": (),
            "longer": (),
            "plateau": 0,
        }


@cache
def _judged(architecture: str, task: str) -> tuple[Verdict, ...]:
    return tuple(judge(Architecture.parse(architecture), parse_task(task)))


@cache
def _deciding(architecture: str, task: str) -> Verdict:
    """The strongest verdict at a task, or at the failing size that it names, if shown there."""
    first = _judged(architecture, task)[0]
    if first.status != "OPEN" or first.n is None:
        return first
    failing = THEOREMS[first.theorem].smallest(parse_task(task), first)
    if failing is None:
        return first
    there = _judged(architecture, failing.spec)[0]
    return there if there.status == "FAILS" else first
