"""Recurrent layers replaced by attention masked to what they could carry: is it the structure of a
recurrence that counts, or how much it carries?
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from separatrix.architecture import Architecture
from separatrix.errors import SpecError
from separatrix.experiments.base import Cell, Experiment, ShownTable, cell, claimed
from separatrix.experiments.depth import single
from separatrix.experiments.saying import ahead, median_said
from separatrix.experiments.showing import share
from separatrix.mechanisms import Mechanism
from separatrix.practice.table import Row, Scale, Table
from separatrix.training.run import Run

HEADS = "heads=2,head_dim=8,conv=2"
"""A convolution of two tokens shows a value its key, in every kind of layer."""
STEPS = {"smoke": 60, "laptop": 400, "gpu": 4000}
SEEDS = {"smoke": 1, "laptop": 3, "gpu": 5}
RATES = {"smoke": (1e-2,), "laptop": (5e-3, 1e-2), "gpu": (3e-3, 5e-3, 1e-2)}
LAYERS = ("recurrence", "window", "full")
_MANY = 1 << 20
"""Tokens after which caches that do not grow are what they stay."""


class _Question(NamedTuple):
    """A task, and the stack whose recurrence is taken out."""

    name: str
    task: str
    stack: str
    """{} stands for the layer."""
    recurrence: str


QUESTIONS = {
    "smoke": (_Question("parity", "parity:n=12,queries=all", "{}", f"gdn({HEADS},negative=true)"),),
    "laptop": (
        _Question("parity", "parity:n=16,queries=all", "{}", f"gdn({HEADS},negative=true)"),
        _Question(
            "3 facts",
            "recall:n=3,K=16,V=8,form=independent,queries=all",
            "{}*2",
            f"gdn({HEADS})",
        ),
        _Question(
            "12 facts",
            "recall:n=12,K=16,V=8,form=independent,queries=all",
            "{}*2",
            f"gdn({HEADS})",
        ),
        _Question(
            "composition",
            "seqcomp:L=2,m=4,n_1=3,queries=all,split=1",
            "{} + full(heads=2,head_dim=16)*2",
            f"gdn({HEADS})",
        ),
    ),
}
QUESTIONS["gpu"] = tuple(
    question._replace(
        task=question.task.replace("n=16", "n=64")
        .replace("n=12,K=16", "n=48,K=64")
        .replace("n_1=3", "n_1=8")
    )
    for question in QUESTIONS["laptop"]
)


class RecurrenceAblation(Experiment):
    """A recurrence, a window that carries as many bits, and attention to everything."""

    name: ClassVar[str] = "recurrence-ablation"
    title: ClassVar[str] = "What a recurrence is worth beside a window that carries as many bits"
    question: ClassVar[str] = (
        "If a recurrent layer is replaced by full attention that sees no more tokens than take as"
        " many bits as its state, what is lost?"
    )
    says: ClassVar[str] = (
        "Theorem I and Theorem A know layers by the bits that they carry alone: of two that carry"
        " as many, neither is excluded before the other. Explicit weights track parity with a"
        " recurrence that has negative eigenvalues (theory.md, section 10), while a window without"
        " positions falls under Theorem P."
    )
    labels: ClassVar[dict[str, str]] = {
        "question": "what is asked: parity after every bit (all places count, of which a window"
        " sees the first few whole), 3 or 12 independent facts, or a composition of two functions"
        " with two full layers behind the layer",
        "layer": "the recurrence, a window whose keys and values take exactly as many bits, or full"
        " attention to everything",
        "mechanism": "what the layer is",
        "bits": "what the layer carries at the end of a prompt, one of them",
    }
    x: ClassVar[str] = "question"
    x_title: ClassVar[str] = "what is asked"
    series: ClassVar[tuple[str, ...]] = ("layer",)

    def cells(self, scale: Scale) -> tuple[Cell, ...]:
        return tuple(
            _cell(question, layer, scale) for question in QUESTIONS[scale] for layer in LAYERS
        )

    def tables(self, table: Table) -> list[ShownTable]:
        """Side by side, then every row."""
        names = [str(value) for value in table.values("question")]
        side = ShownTable(
            title="Medians of the layers side by side",
            columns=("question", *LAYERS, "bits carried by each of the first two"),
            rows=tuple(
                (
                    name,
                    *(median_said(table.one(question=name, layer=layer)) for layer in LAYERS),
                    _bits(table.one(question=name, layer="window")),
                )
                for name in names
            ),
        )
        return [side, *super().tables(table)]

    def findings(self, table: Table) -> tuple[str, ...]:
        found = [
            (str(name), one, other)
            for name in table.values("question")
            if (one := table.one(question=name, layer="recurrence")) is not None
            and (other := table.one(question=name, layer="window")) is not None
            and claimed([one, other])
        ]
        return (*_windows_ahead(found), *_recurrences_ahead(found), *_alike(found))


def window_of(recurrence: Mechanism) -> str:
    """A window with heads of the same shape whose keys and values take exactly as many bits as a
    recurrence carries. Raises SpecError where no whole number of tokens does.
    """
    carried = recurrence.cache_bits(_MANY)
    one, two = (_layer(_window(size)).cache_bits(_MANY) for size in (1, 2))
    more, left = divmod(carried - one, two - one)
    if left or more < 0:
        raise SpecError(f"{recurrence.name}: {carried:,} bits are no whole number of tokens")
    return _window(more + 1)


def _window(size: int) -> str:
    return f"window({HEADS},size={size})"


def _layer(text: str) -> Mechanism:
    return Architecture.parse(text).layers[0][0]


def _cell(question: _Question, layer: str, scale: Scale) -> Cell:
    recurrence = _layer(question.recurrence)
    spec = {
        "recurrence": question.recurrence,
        "window": window_of(recurrence),
        "full": f"full({HEADS})",
    }[layer]
    run = Run(
        architecture=question.stack.format(spec),
        task=question.task,
        seed=0,
        steps=STEPS[scale],
        batch=48,
        width=32,
        hidden=64,
        curriculum=(f"stages=1@{STEPS[scale] // 2}",) if question.name == "composition" else (),
        tested=512,
    )
    mechanism = _layer(spec)
    labels = {
        "question": question.name,
        "layer": layer,
        "mechanism": mechanism.measured_as,
        "bits": mechanism.cache_bits(run.length + 1),
    }
    return cell(labels, run, seeds=SEEDS[scale], rates=RATES[scale])


def _bits(row: Row | None) -> str:
    return "" if row is None else f"{row.labels['bits']:,}"


Pairs = list[tuple[str, Row, Row]]


def _sides(one: Row, other: Row) -> str:
    return f"{share(one.median)} with the recurrence, {share(other.median)} with the window"


def _windows_ahead(found: Pairs) -> Iterator[str]:
    for name, one, other in found:
        if ahead(other, one):
            yield (
                f"Against expectation, a window that carries as many bits does better on {name}:"
                f" {_sides(one, other)} (medians; all seeds apart)."
            )


def _recurrences_ahead(found: Pairs) -> Iterator[str]:
    for name, one, other in found:
        if ahead(one, other):
            weights = (
                " Weights that solve it exist with the window, too; training failed to find them"
                if single(other).status == "SOLVABLE"
                else " What is low failed to train"
            )
            yield (
                f"On {name} the structure counts at equal bits: {_sides(one, other)}, both carrying"
                f" {other.labels['bits']:,} bits per layer (medians; all seeds apart).{weights}"
                f" within {other.run['steps']:,} steps, which is no sign that it cannot."
            )


def _alike(found: Pairs) -> Iterator[str]:
    for name, one, other in found:
        if not ahead(one, other) and not ahead(other, one):
            yield (
                f"On {name} the two cannot be told apart by these seeds: {_sides(one, other)}"
                " (medians)."
            )
