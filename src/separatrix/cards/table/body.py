"""The whole body of a bundle, derived from its settings and its records alone: which of them are a
cell's own, and what it says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from separatrix.cards.facts import CardFacts, card_facts
from separatrix.cards.table.plan import COLUMNS, KINDS, ROWS, Cell, Kind
from separatrix.core.errors import EvidenceError, SizeError
from separatrix.core.evidence.canonical import canonical
from separatrix.core.evidence.records import (
    Certificate,
    Construction,
    Evidence,
    Measurement,
    Verdict,
)
from separatrix.core.numbers.amounts import DEFAULT_CONTEXT
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.file import load_json, parse_json
from separatrix.stacks.architecture.released import PRESETS, preset_named
from separatrix.stacks.architecture.resolve import preset, resolve
from separatrix.tasks import parse_task
from separatrix.theory.base import number, size_in_words, sized
from separatrix.theory.judge import THEOREMS

MOST_LAYERS = 1000
LONGEST_SOURCE = 1 << 20
"""Characters of a spec or a config."""


def read_source(text: str) -> Architecture:
    """The model of a preset's name, a spec, or the content of a config.json as canonical JSON: a
    bundle holds that text, so that whoever checks it reads the model again. Raises SizeError for
    too many layers, and what reading it raises.
    """
    if text.startswith("{"):
        # the families of models load when one is read
        from separatrix.stacks.architecture.hf import from_config

        architecture = from_config(parse_json(text, "the config of a model"), _called(text))
    else:
        architecture = preset(text) if text in PRESETS else Architecture.parse(text)
    if len(architecture) > MOST_LAYERS:
        raise SizeError(
            f"a model of {len(architecture):,} layers; a report tells of at most {MOST_LAYERS:,}"
        )
    return architecture


def _called(text: str) -> str:
    """What a report calls such a model."""
    if not text.startswith("{"):
        return text
    kind = parse_json(text, "the config of a model").get("model_type", "no type")
    return f"config.json ({str(kind)[:60]})"


def source(text: str) -> str:
    """The text by which a bundle knows a model, which is read as every command reads it: a preset,
    a path, JSON, or a spec. Raises what reading it raises.
    """
    text = text.strip()
    architecture = resolve(text)
    known = preset_named(text)
    # a name of the hub may be a folder here as well, which then is what is meant
    if known is not None and ("/" not in text or not Path(text).exists()):
        return known
    data = {}
    if text.startswith("{"):
        data = parse_json(text, "the JSON given")
    elif architecture.name or Path(text).expanduser().exists():
        data = load_json(Path(text).expanduser())
    # layers written out as JSON say no more than their spec, but for a name that nobody checks
    return canonical(data) if "model_type" in data else architecture.spec


DEFAULT_MODELS = ("qwen3-next-80b", "nemotron-h-8b", "recurrentgemma-2b")


@cache
def model_facts(source: str) -> CardFacts:
    """A real model's card at its own context. Raises as `read_source` does."""
    architecture = read_source(source)
    return card_facts(architecture, architecture.context or DEFAULT_CONTEXT)


@cache
def model_entry(source: str) -> tuple[dict[str, Any], dict[str, Evidence]]:
    """The same in short, as the bundle holds it, and the verdicts behind its rows."""
    facts = model_facts(source)
    architecture = facts.architecture
    records: dict[str, Evidence] = {}
    lines: list[dict[str, Any]] = []
    for row in facts.table:
        behind = [line.record for line in row.lines]
        behind += [line.grade.verdict for line in row.lines if line.grade is not None]
        found = {record.digest: record for record in behind if record is not None}
        records |= found
        # a row that goes on from the one above stands by itself here
        asks = row.asks.replace("  up to ", "compose up to ")
        said = {"question": asks, "status": row.status, "text": row.said}
        lines.append(said | {"records": list(found)})
    entry = {
        "name": _called(source),
        "spec": architecture.spec,
        "vocabulary": architecture.vocabulary,
        "context": facts.context,
        "lines": lines,
        "assumptions": list(architecture.assumptions),
        "notes": list(architecture.notes),
    }
    return entry, records


R = TypeVar("R", bound=Evidence)

TITLE = "Separatrix: what attention stacks can and cannot compute"
MOST_MODELS = 20
OPTIMISERS = {"muon": "Muon", "adamw": "AdamW"}
MOST_APART = 0.03
"""The parameters of two stacks of a column differ by at most this share."""


@dataclass(frozen=True)
class Settings:
    """What whoever makes a report chooses: its kind, the first seed, and the real models."""

    kind: str = "full"
    seed: int = 0
    models: tuple[str, ...] = DEFAULT_MODELS
    """As `read_source` reads them."""

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 1 << 32:
            raise EvidenceError("the seed of a report is an integer from 0 to 2^32 - 1")
        if len(set(self.models)) != len(self.models) or len(self.models) > MOST_MODELS:
            raise EvidenceError(f"a report has each real model once, and at most {MOST_MODELS}")
        if not all(0 < len(text) <= LONGEST_SOURCE for text in self.models):
            raise EvidenceError(
                f"a model of a report is a text of at most {LONGEST_SOURCE:,} characters"
            )

    @property
    def of(self) -> Kind:
        return KINDS[self.kind]


def table_cells(settings: Settings) -> list[Cell]:
    """Every cell of the report, row by row."""
    kind = settings.of
    return [Cell(row, column, kind) for row in kind.rows for column in kind.columns]


def derive(settings: Settings, records: Mapping[str, Evidence]) -> dict[str, Any]:
    """The body: every cell from the records of its stack and tasks, every model from its source.

    `records` maps digests to what trainings, searches and constructions gave; verdicts are derived
    here. Raises EvidenceError for a record that is missing, or that belongs nowhere.
    """
    every = table_cells(settings)
    found = {cell: find(cell, settings.seed, records.values()) for cell in every}
    used = {record.digest: record for mine in found.values() for record in mine}
    models = [model_entry(source) for source in settings.models]
    for _, behind in models:
        used |= behind
    unused = sorted(set(records) - set(used))
    if unused:
        raise EvidenceError(
            f"record {unused[0][:12]} belongs to no cell and no model of this report"
        )
    return {
        "title": TITLE,
        "settings": {**vars(settings), "models": list(settings.models)},
        "rows": [{"key": key, "title": ROWS[key]} for key in settings.of.rows],
        "columns": [_column(key, found) for key in settings.of.columns],
        "cells": [entry(cell, mine) for cell, mine in found.items()],
        "models": [entry for entry, _ in models],
        "records": {digest: used[digest].envelope() for digest in sorted(used)},
    }


def _column(key: str, found: Mapping[Cell, list[Evidence]]) -> dict[str, Any]:
    """A column with what its stacks share. Raises EvidenceError for parameters too far apart."""
    column = COLUMNS[key]
    mine = [_trainings(records) for cell, records in found.items() if cell.column == key]
    counts = [
        [measured.budget["parameters"] for measured in same] for same in zip(*mine, strict=True)
    ]
    apart = max((max(same) - min(same)) / max(same) for same in counts)
    if apart > MOST_APART:
        raise EvidenceError(
            f"column {key}: the trained stacks differ by {apart:.1%} in their parameters; at most"
            f" {MOST_APART:.0%}"
        )
    return {
        "key": key,
        "title": column.title,
        "size_class": column.size_class,
        "training": (
            f"{min(map(min, counts)):,} to {max(map(max, counts)):,} parameters (at each n, all"
            f" stacks within {apart:.1%}), trained alike: at most {mine[0][0].budget['steps']:,}"
            f" steps of {column.batch} prompts with {OPTIMISERS[column.optimiser]},"
            f" {len(mine[0][0].seeds)} seeds"
        ),
    }


def decisive(verdict: Verdict) -> str:
    """What decides a cell, short: the n where, or from which on, it fails; or is built for."""
    if verdict.status == "SOLVABLE":
        task = parse_task(verdict.task)
        return f"n = {number(size_in_words(task)[1])}"
    if verdict.n is None:
        return "undecided"
    return THEOREMS[verdict.theorem].failing_briefly(verdict.n)


def find(cell: Cell, seed: int, records: Collection[Evidence]) -> list[Evidence]:
    """What belongs to a cell: its verdicts, the deciding one first, and of the records, by their
    stack and task, what was built, what goes wrong, what was trained. Raises EvidenceError for one
    that is missing, there twice, or made otherwise than the report's kind says.
    """
    where = f"cell {cell.row} x {cell.column}"

    def only(cls: type[R], architecture: str, task: str, *shows: str) -> R:
        found = [
            record
            for record in records
            if isinstance(record, cls)
            and (record.architecture, record.task) == (architecture, task)
            and (not isinstance(record, Certificate) or _shown(record) == shows)
        ]
        if len(found) != 1:
            lacking = "there twice" if found else "not in the bundle"
            raise EvidenceError(f"{where}: the {cls.kind} of {task} is {lacking}")
        return found[0]

    trained = [only(Measurement, cell.stack, cell.task_at(size)) for size in cell.sizes]
    for measured in trained:
        _same_training(cell, seed, measured, where)
    return [
        *cell.verdicts(),
        *(only(Construction, *pair) for pair in cell.built()),
        *(only(Certificate, w.architecture, w.task, w.form, w.rounded) for w in cell.witnesses()),
        *trained,
    ]


def _shown(record: Certificate) -> tuple[str, str]:
    return record.form, (record.cache_format or "").partition(":")[0]


def _trainings(found: Iterable[Evidence]) -> list[Measurement]:
    return [record for record in found if isinstance(record, Measurement)]


def entry(cell: Cell, found: Sequence[Evidence]) -> dict[str, Any]:
    """The cell as a bundle holds it."""
    main = cell.verdicts()[0]
    trained = _trainings(found)
    return {
        "row": cell.row,
        "column": cell.column,
        "stack": cell.stack,
        "status": main.status,
        "paper": PAPER.get((cell.row, cell.column), ""),
        "number": decisive(main),
        "headline": main.statement,
        "story": _why(main),
        "trained": [_trained(measured) for measured in trained],
        "reach": _reach(main, trained),
        "records": list(dict.fromkeys(record.digest for record in found)),
    }


def _why(main: Verdict) -> str:
    """Why it is so, and what the theorem says; nothing where the verdict's statement says it."""
    theorem, task = THEOREMS[main.theorem], parse_task(main.task)
    why = theorem.told(main, task, Architecture.parse(main.architecture)).why
    return "" if why in main.statement else f"{why} {theorem.statement}"


def _trained(measured: Measurement) -> dict[str, int]:
    return {
        "n": _n(measured),
        "solved": measured.solved,
        "seeds": len(measured.seeds),
        "parameters": measured.budget["parameters"],
    } | ({"diverged": measured.diverged} if measured.diverged else {})


def _n(measured: Measurement) -> int:
    return size_in_words(parse_task(measured.task))[1]


def _reach(main: Verdict, measured: Sequence[Measurement]) -> str:
    """How the sizes that were trained stand to the n at which the stack is proved to fail."""
    if main.status != "FAILS" or main.n is None:
        return ""
    largest = max(map(_n, measured))
    size = sized(main.n, found=not THEOREMS[main.theorem].larger_fail_too)
    if main.n <= largest:
        return f"Among the sizes trained lies the one proved to fail, {size}."
    return (
        f"Training here reached n = {number(largest)}; the size at which it is proved to fail,"
        f" {size}, lies beyond that: what was trained shows what gradient descent finds"
        " at this size, and proves nothing."
    )


def _same_training(cell: Cell, seed: int, measured: Measurement, where: str) -> None:
    """That a measurement was made as the report says: EvidenceError if not."""
    wanted = cell.training()
    said = {name: measured.budget.get(name) for name in wanted}
    parameters = measured.budget.get("parameters")
    seeds = tuple(range(seed, seed + cell.kind.seeds))
    if (
        # 1.0 == 1 in Python, but they are not written alike
        canonical(said) != canonical(wanted)
        or set(measured.budget) != {*wanted, "steps_done", "stopped", "parameters"}
        or type(parameters) is not int
        or parameters < 1
        or measured.seeds != seeds
        or measured.total != cell.kind.tested
    ):
        raise EvidenceError(
            f"{where}: the measurement at {measured.task} has another budget or other seeds than"
            " the trainings of this kind of report"
        )


PAPER = {
    ("full", "eva"): "O(polylog n), 1 layer",
    ("full", "twosum"): "O(log n), 1 layer, d = 3",
    ("full", "seqcomp"): "O(polylog n) with L+1 layers; n^Omega(1) with L",
    ("linear", "eva"): "Omega(n log n), also with chain of thought",
    ("linear", "twosum"): "Omega(n log n), also with chain of thought",
    ("loglinear", "eva"): "Omega(n), also with chain of thought",
    ("loglinear", "twosum"): "Omega(n), also with chain of thought",
    ("sparse", "twosum"): "Omega(B log n), 1 layer",
    ("hybrid", "seqcomp"): "n^Omega(1) with L-1 full layers",
}
"""(row, column) -> the entry of [Ye26]; none where the paper has none."""
