"""The whole body of a bundle, derived from its settings and its records alone: which of them are a
cell's own, and what it says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from separatrix.cards.facts import card_facts
from separatrix.cards.table.plan import COLUMNS, KINDS, ROWS, Cell, Kind, Pair, Witness
from separatrix.core.errors import EvidenceError, SizeError
from separatrix.core.evidence.canonical import canonical, json_object
from separatrix.core.evidence.records import (
    Certificate,
    Construction,
    Evidence,
    Measurement,
    Verdict,
)
from separatrix.core.numbers.amounts import format_bytes
from separatrix.stacks.architecture import Architecture, bounded_bits
from separatrix.stacks.architecture.file import load_json, parse_json
from separatrix.stacks.architecture.released import PRESETS, preset_named
from separatrix.stacks.architecture.resolve import preset, resolve
from separatrix.tasks import parse_task
from separatrix.theory.base import counted, number, size_in_words, sized
from separatrix.theory.judge import THEOREMS

DEFAULT_CONTEXT = 8192
MOST_LAYERS = 1000
LONGEST_SOURCE = 1 << 20
"""Characters of a spec or a config."""


@dataclass(frozen=True)
class Source:
    """Where a model comes from: the name of a preset, a spec, or the content of its config.json.

    A bundle holds the source, so that whoever checks it reads the model again.
    """

    preset: str = ""
    spec: str = ""
    config: str = ""
    """Canonical JSON."""

    def plain(self) -> dict[str, str]:
        """The source as a bundle holds it."""
        fields = {"preset": self.preset, "spec": self.spec, "config": self.config}
        return {name: text for name, text in fields.items() if text}

    @classmethod
    def from_plain(cls, data: object) -> Source:
        """Inverse of `plain`. Raises EvidenceError for anything else."""
        entry: Mapping[str, Any] = json_object(data) or {}
        if len(entry) != 1 or not set(entry) <= {"preset", "spec", "config"}:
            raise EvidenceError("a model of a report is a preset, a spec or a config")
        if not all(isinstance(text, str) and text for text in entry.values()):
            raise EvidenceError("the source of a model is a text")
        if max(map(len, entry.values())) > LONGEST_SOURCE:
            raise EvidenceError(f"the source of a model has at most {LONGEST_SOURCE:,} characters")
        if "preset" in entry and entry["preset"] not in PRESETS:
            raise EvidenceError(f"there is no preset {entry['preset'][:40]!r}")
        return cls(**entry)

    def read(self) -> Architecture:
        """The model. Raises SizeError for too many layers, and what reading it raises."""
        architecture = self._read()
        if len(architecture) > MOST_LAYERS:
            raise SizeError(
                f"a model of {len(architecture):,} layers; a report tells of at most"
                f" {MOST_LAYERS:,}"
            )
        return architecture

    def _read(self) -> Architecture:
        if self.config:
            # the families of models load when one is read
            from separatrix.stacks.architecture.hf import from_config

            return from_config(parse_json(self.config, "the config of a model"))
        return Architecture.parse(self.spec) if self.spec else preset(self.preset)

    @property
    def name(self) -> str:
        """What a report calls the model."""
        if self.config:
            kind = parse_json(self.config, "the config of a model").get("model_type", "no type")
            return f"config.json ({str(kind)[:60]})"
        return self.spec or self.preset


def source(text: str) -> Source:
    """The source that a text names, read as every command reads it: a preset, a path, JSON, or a
    spec. Raises what reading it raises.
    """
    text = text.strip()
    architecture = resolve(text)
    known = preset_named(text)
    # a name of the hub may be a folder here as well, which then is what is meant
    if known is not None and ("/" not in text or not Path(text).exists()):
        return Source(preset=known)
    if text.startswith("{"):
        data = parse_json(text, "the JSON given")
    elif not architecture.name and not Path(text).expanduser().exists():
        return Source(spec=architecture.spec)
    else:
        data = load_json(Path(text).expanduser())
    # layers written out as JSON say no more than their spec, but for a name that nobody checks
    return (
        Source(config=canonical(data)) if "model_type" in data else Source(spec=architecture.spec)
    )


DEFAULT_MODELS = tuple(
    Source(preset=name) for name in ("qwen3-next-80b", "nemotron-h-8b", "recurrentgemma-2b")
)


def model_summary(
    architecture: Architecture, context: int, records: dict[str, Evidence]
) -> dict[str, Any]:
    """A real model's card in short; the verdicts behind its rows are added to `records`."""
    facts = card_facts(architecture, context)
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
    still = "does not grow"
    return {
        "spec": architecture.spec,
        "vocabulary": architecture.vocabulary,
        "pattern": " ".join("|".join(part.symbol for part in layer) for layer in architecture),
        "context": context,
        "memory": [
            [row.title, f"{format_bytes(row.bits)}, {row.growth if row.limit is None else still}"]
            for row in facts.memory
        ],
        "lines": lines,
    }


def model_entry(source: Source, records: dict[str, Evidence]) -> dict[str, Any]:
    """A model as the bundle holds it; the verdicts behind its lines are added to `records`."""
    architecture = source.read()
    summary = model_summary(architecture, architecture.context or DEFAULT_CONTEXT, records)
    return summary | {
        "name": source.name,
        "assumptions": list(architecture.assumptions),
        "notes": list(architecture.notes),
    }


R = TypeVar("R", bound=Evidence)

TITLE = "Separatrix: what attention stacks can and cannot compute"
MOST_MODELS = 20
OPTIMISERS = {"muon": "Muon", "adamw": "AdamW"}
MOST_APART = 0.03
"""The parameters of two stacks of a column differ by at most this share."""
COUNTED = ("linear", "loglinear", "hybrid")
"""Rows that draw bits needed and carried: Theorem I decides, or would without the full heads."""


@dataclass(frozen=True)
class Settings:
    """What whoever makes a report chooses: its kind, the first seed, and the real models."""

    kind: str = "full"
    seed: int = 0
    models: tuple[Source, ...] = DEFAULT_MODELS

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise EvidenceError(f"a report is {' or '.join(KINDS)}, not {self.kind[:20]!r}")
        if not 0 <= self.seed < 1 << 32:
            raise EvidenceError("the seed of a report is an integer from 0 to 2^32 - 1")
        if len(set(self.models)) != len(self.models) or len(self.models) > MOST_MODELS:
            raise EvidenceError(f"a report has each real model once, and at most {MOST_MODELS}")

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
    known = dict(records)
    every = table_cells(settings)
    for cell in every:
        known |= {verdict.digest: verdict for verdict in cell.verdicts()}
    found = {cell: find(cell, settings.seed, known.values()) for cell in every}
    used = {record.digest: record for mine in found.values() for record in mine.all}
    models = [_model(source) for source in settings.models]
    for _, behind in models:
        used |= behind
    known |= used
    unused = sorted(set(known) - set(used))
    if unused:
        raise EvidenceError(
            f"record {unused[0][:12]} belongs to no cell and no model of this report"
        )
    return {
        "title": TITLE,
        "settings": {
            "kind": settings.kind,
            "seed": settings.seed,
            "models": [source.plain() for source in settings.models],
        },
        "rows": [{"key": key, "title": ROWS[key]} for key in settings.of.rows],
        "columns": [_column(key, found) for key in settings.of.columns],
        "cells": [entry(cell, mine) for cell, mine in found.items()],
        "models": [entry for entry, _ in models],
        "records": {digest: used[digest].envelope() for digest in sorted(used)},
    }


@cache
def _model(source: Source) -> tuple[dict[str, Any], dict[str, Evidence]]:
    behind: dict[str, Evidence] = {}
    return model_entry(source, behind), behind


def _column(key: str, found: Mapping[Cell, Found]) -> dict[str, Any]:
    """A column with what its stacks share. Raises EvidenceError for parameters too far apart."""
    column = COLUMNS[key]
    mine = [measured for cell, measured in found.items() if cell.column == key]
    counts = [
        [measured.budget["parameters"] for measured in same]
        for same in zip(*(one.measurements for one in mine), strict=True)
    ]
    apart = max((max(same) - min(same)) / max(same) for same in counts)
    if apart > MOST_APART:
        raise EvidenceError(
            f"column {key}: the trained stacks differ by {apart:.1%} in their parameters; at most"
            f" {MOST_APART:.0%}"
        )
    low = min(map(min, counts))
    high = max(map(max, counts))
    return {
        "key": key,
        "title": column.title,
        "size_class": column.size_class,
        "training": (
            f"{low:,} to {high:,} parameters (at each n, all stacks within {apart:.1%}), trained"
            f" alike: at most {mine[0].measurements[0].budget['steps']:,} steps of"
            f" {column.batch} prompts with {OPTIMISERS[column.optimiser]},"
            f" {len(mine[0].measurements[0].seeds)} seeds"
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


def bound_curve(verdict: Verdict) -> dict[str, Any]:
    """The curve of Theorem I on a verdict's family: bits that n values need, and bits carried,
    around the n where they cross. Of a stack that reads a growing cache, also the bits that its
    other heads carry, which alone would fail.
    """
    architecture = Architecture.parse(verdict.architecture)
    task = parse_task(verdict.task)
    tasks = task.family()
    ns = sorted({max(tasks.smallest, round(2 ** (k / 4))) for k in range(8, 41)})
    members = [tasks.at(n) for n in ns]
    lengths = [member.prefix_length for member in members]
    own: dict[str, Any] = {}
    if architecture.reading:
        fixed = [sum(bounded_bits(layer, t) for layer in architecture) for t in lengths]
        own = {"fixed": fixed, "fixed_title": "bits that do not grow"}
    return own | {
        "x": size_in_words(task)[0],
        "n": [size_in_words(member)[1] for member in members],
        "have": [architecture.cache_bits(t) for t in lengths],
        "need": [counted(member).log2_str(6) for member in members],
        "have_title": "bits of cache",
        "need_title": f"bits needed to tell all prefixes apart ({tasks.described})",
    }


@dataclass(frozen=True)
class Found:
    """The records of a cell by kind, in the order of the plan."""

    verdicts: list[Verdict]
    constructions: list[Construction]
    certificates: list[Certificate]
    measurements: list[Measurement]

    @property
    def all(self) -> list[Evidence]:
        return [*self.verdicts, *self.constructions, *self.certificates, *self.measurements]


def find(cell: Cell, seed: int, records: Iterable[Evidence]) -> Found:
    """The records that belong to a cell, by their stack and task. Raises EvidenceError for one
    that is missing, there twice, or made otherwise than the report's kind says.
    """
    every = list(records)
    where = f"cell {cell.row} x {cell.column}"

    def only(cls: type[R], pair: Pair | Witness, what: str) -> R:
        found = [
            record
            for record in every
            if isinstance(record, cls)
            and (record.architecture, record.task) == (pair.architecture, pair.task)
            and (not isinstance(pair, Witness) or _shows(record, pair))
        ]
        if len(found) != 1:
            lacking = "there twice" if found else "not in the bundle"
            raise EvidenceError(f"{where}: the {what} {pair.task} is {lacking}")
        return found[0]

    verdicts = cell.verdicts()
    there = {record.digest for record in every}
    for verdict in verdicts:
        if verdict.digest not in there:
            raise EvidenceError(
                f"{where}: the verdict on {verdict.architecture} and {verdict.task} is not in the"
                " bundle"
            )
    trained = [Pair(cell.stack, cell.task_at(size)) for size in cell.sizes]
    found = Found(
        verdicts,
        [only(Construction, pair, "construction for") for pair in cell.built()],
        [only(Certificate, wanted, "certificate on") for wanted in cell.witnesses()],
        [only(Measurement, pair, "measurement at") for pair in trained],
    )
    for measured in found.measurements:
        _same_training(cell, seed, measured, where)
    return found


def entry(cell: Cell, found: Found) -> dict[str, Any]:
    """The cell as a bundle holds it."""
    main = found.verdicts[0]
    return {
        "row": cell.row,
        "column": cell.column,
        "stack": cell.stack,
        "status": main.status,
        "paper": PAPER.get((cell.row, cell.column), ""),
        "number": decisive(main),
        "headline": main.statement,
        "story": STORIES.get((cell.row, cell.column, main.status), ""),
        "trained": [_trained(measured) for measured in found.measurements],
        "reach": _reach(main, found.measurements),
        "records": list(dict.fromkeys(record.digest for record in found.all)),
        "bound": bound_curve(main) if cell.row in COUNTED else None,
    }


def _trained(measured: Measurement) -> dict[str, int]:
    told = {
        "n": _n(measured),
        "solved": measured.solved,
        "seeds": len(measured.seeds),
        "parameters": measured.budget["parameters"],
    }
    return told | ({"diverged": measured.diverged} if measured.diverged else {})


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


def _shows(record: Evidence, wanted: Witness) -> bool:
    if not isinstance(record, Certificate):
        return False
    rounded = (record.cache_format or "").partition(":")[0]
    return (record.form, rounded) == (wanted.form, wanted.rounded)


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

STORIES = {
    ("full", "eva", "SOLVABLE"): (
        "One full layer looks the answer up: the last token asks for one address and the right"
        " token outweighs all others together. The weights are written down, not trained, and"
        " proved right for every input of the size."
    ),
    ("full", "twosum", "SOLVABLE"): (
        "A head of three dimensions scores every earlier token by how nearly it cancels the last"
        " one modulo M; a start token takes the weight when nothing does. The weights are written"
        " down and proved right for every input of the size."
    ),
    ("full", "seqcomp", "SOLVABLE"): (
        "L+1 full layers follow L steps, one layer each after the first has fetched the start. With"
        " fewer layers there is a wall at finite n, whatever the weights: the verdicts on stacks of"
        " fewer layers say where."
    ),
    ("linear", "eva", "FAILS"): (
        "The state has a fixed number of bits and n values need n log2 n. From there on two"
        " functions leave the same state, and the model gives one answer where two are right;"
        " writing out thoughts changes nothing, since they are computed from that state."
    ),
    ("linear", "twosum", "FAILS"): (
        "The state must tell apart every set of values that could have come before the query."
        " There are more sets than states."
    ),
    ("linear", "seqcomp", "FAILS"): (
        "The function that is needed last is read first, so the state must hold all of it: N log2 N"
        " bits. The paper has no entry here; Theorem I gives one."
    ),
    ("loglinear", "eva", "FAILS"): (
        "The cache grows, but only by one state per doubling of the prompt; n values still need n"
        " log2 n bits."
    ),
    ("loglinear", "twosum", "FAILS"): (
        "The cache grows by one state per doubling; the sets it must tell apart grow much faster."
    ),
    ("loglinear", "seqcomp", "FAILS"): (
        "The function that is needed last is read first; a state per doubling of the prompt does"
        " not hold it. The paper has no entry here; Theorem I gives one."
    ),
    ("sparse", "eva", "SOLVABLE"): (
        "Blocks are chosen by their pooled keys. Keys of address bits survive the pooling: pooled"
        " over a block, the address bits keep their high part, so the right block scores highest,"
        " and inside it the layer looks the answer up. The weights are written down and proved."
    ),
    ("sparse", "twosum", "FAILS"): (
        "Each block sends a short message, and the layer opens the few that look best. Two blocks"
        " with one message, one with the value that cancels the query and one without: where it is"
        " not opened, the answer is the same and one of the two is wrong."
    ),
    ("sparse", "seqcomp", "OPEN"): (
        "A sparse layer is a reading layer with a larger h. No theorem here speaks of as many"
        " reading layers as steps and one more; stacks of fewer sparse layers fail at the sizes"
        " that the verdicts on them name. The paper has no entry here."
    ),
    ("hybrid", "eva", "SOLVABLE"): (
        "A full head closes the gap that a linear one beside it leaves: the linear head may write"
        " nothing, and the full one looks the answer up."
    ),
    ("hybrid", "twosum", "SOLVABLE"): "One full head beside a linear one does what it does alone.",
    ("hybrid", "seqcomp", "FAILS"): (
        "Recurrent layers do not replace a full one: with L-1 full layers L steps fail at a finite"
        " n, whatever the weights. With L full layers a single recurrent layer before the first one"
        " saves the extra layer; that is another stack, which the full report builds."
    ),
}
"""(row, column, status) -> why it is so; told only where the theorems give that status."""
