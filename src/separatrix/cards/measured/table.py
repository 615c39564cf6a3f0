"""Tables of trained runs: what an experiment found, with every seed, and where it comes from.

A file holds an envelope with a content hash, and a row a line. Nothing in it is computed from
anything else in it: accuracies, intervals and the choice among learning rates are derived here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path
from statistics import median
from typing import Any, Literal

from separatrix.core.errors import EvidenceError, SpecError, UnknownNameError
from separatrix.core.evidence.canonical import canonical, json_object
from separatrix.core.evidence.outcome import FormatOutcome, Outcome
from separatrix.core.evidence.records import enveloped, to_plain
from separatrix.core.evidence.typed import parse_json, typed
from separatrix.core.numbers.seeds import best_rate
from separatrix.tasks import parse_task

RESULTS = Path(__file__).parent / "results"
"""A file for each experiment of which the package holds results."""
KIND = "practice"
Scale = Literal["laptop"]
SCALE: Scale = "laptop"
"""Of all recorded results."""
Label = str | int
_FIELDS = ("seed", "stopped", "steps", "correct", "tested", "right", "due", "bits", "bits_squares")
_FIELDS += ("longer", "formats", "parameters", "seconds")
"""Of a seed in a file."""


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A learning rate, with its seeds in order."""

    learning_rate: float
    trials: tuple[Outcome, ...]


@dataclass(frozen=True, kw_only=True)
class Row:
    """A cell of an experiment: runs that differ in seed and learning rate only."""

    labels: dict[str, Label]
    run: dict[str, Any]
    """What its runs have in common, as a run is written in JSON, without seed and learning rate."""
    rates: tuple[Rate, ...]
    """From the smallest on."""
    flops_per_token: int
    """Of a forward pass, at the prompt's length, on average."""
    cache_bits: int
    """What the model carries at the end of a prompt, in the formats of its spec."""

    @cached_property
    def best(self) -> Rate | None:
        """The rate with the highest median accuracy, chosen on these same seeds; None of none."""
        reached = {rate.learning_rate: [t.accuracy for t in rate.trials] for rate in self.rates}
        chosen = best_rate(reached)
        return next((rate for rate in self.rates if rate.learning_rate == chosen), None)

    @property
    def trials(self) -> tuple[Outcome, ...]:
        """The seeds at the best rate."""
        return () if self.best is None else self.best.trials

    @property
    def every(self) -> tuple[Outcome, ...]:
        """All seeds at all rates."""
        return tuple(trial for rate in self.rates for trial in rate.trials)

    @property
    def median(self) -> Fraction:
        """The accuracy at the best rate. Raises SpecError for a row without a seed."""
        if not self.trials:
            raise SpecError(f"the row {_labels(self.labels)} has no seed")
        return Fraction(median([trial.accuracy for trial in self.trials]))


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """What made a table."""

    commit: str
    """Of the repository; "unknown" where the package was run from none, or from a changed one."""
    version: str
    """Of the code, with a digest of its sources."""
    command: str
    date: str
    """Of its end: 2026-01-31."""
    seconds: float
    """Of training, summed over all runs."""
    cores: int
    """Processes that trained at once."""
    device: str


@dataclass(frozen=True, kw_only=True)
class Table:
    """What an experiment found."""

    experiment: str
    scale: Scale
    provenance: Provenance
    rows: tuple[Row, ...]

    def values(self, label: str) -> list[Label]:
        """What a label takes, in the order of the rows."""
        return list(dict.fromkeys(row.labels[label] for row in self.rows if label in row.labels))

    def to_json(self) -> dict[str, Any]:
        """The table as a file holds it, with its content hash."""
        body = to_plain(asdict(self))
        for row, kept in zip(self.rows, body["rows"], strict=True):
            for rate, beside in zip(row.rates, kept["rates"], strict=True):
                beside["trials"] = [_written(row.run, one) for one in rate.trials]
        return enveloped(KIND, body)

    def text(self) -> str:
        """The whole file: canonical JSON, but for a line for each row."""
        envelope = self.to_json()
        rows = ",\n".join(map(canonical, envelope["body"]["rows"]))
        envelope["body"]["rows"] = []
        empty = canonical(envelope)
        # inside a text of JSON, quotes are escaped: this stands there once
        return empty.replace('"rows":[]', f'"rows":[\n{rows}\n]', 1) + "\n"


def result_file(name: str) -> Path:
    """Where the package keeps an experiment's results."""
    return RESULTS / f"{name}.json"


@cache
def read(name: str) -> Table | None:
    """The recorded table of an experiment, or None. Raises SpecError for a damaged file."""
    path = result_file(name)
    # a name is no path
    if path.parent != RESULTS or not path.exists():
        return None
    table = read_file(path)
    if table.experiment != name:
        raise SpecError(f"{path}: holds results of '{table.experiment}', not of '{name}'")
    return table


def read_file(path: Path) -> Table:
    """The table of a file. Raises SpecError, on one line, where it is damaged or unreadable."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise SpecError(f"{path}: not a text file") from None
    except EvidenceError as error:
        raise SpecError(f"{path}: {error}") from None


def parse(text: str) -> Table:
    """The table that a text holds. Raises EvidenceError for one without, edited or damaged."""
    envelope = json_object(parse_json(text))
    body = None if envelope is None else json_object(envelope.get("body"))
    if envelope is None or body is None or envelope.get("kind") != KIND:
        raise EvidenceError("no results of an experiment")
    if canonical(envelope) != canonical(enveloped(KIND, body)):
        raise EvidenceError("the content hash does not match the content: it was edited or damaged")
    try:
        for row in body["rows"]:
            for rate in row["rates"]:
                rate["trials"] = [_outcome(row["run"], one) for one in rate["trials"]]
    except (KeyError, ValueError, TypeError, AttributeError):
        raise EvidenceError("its rows are no rows of results") from None
    table = typed(body, Table, "body")
    _check(table)
    return table


def _check(table: Table) -> None:
    """Raises EvidenceError for numbers that no training gives."""
    seen: set[str] = set()
    for row in table.rows:
        said = _labels(row.labels)
        if said in seen:
            raise EvidenceError(f"two rows have the labels {said}")
        seen.add(said)
        try:
            parse_task(row.run.get("task", ""))
        except (SpecError, UnknownNameError) as error:
            raise EvidenceError(f"the row {said} is about no known task: {error}") from None
        if not isinstance(row.run.get("architecture"), str):
            raise EvidenceError(f"the row {said} is of no stack")
        for rate in row.rates:
            if len({trial.seed for trial in rate.trials}) < len(rate.trials):
                raise EvidenceError(
                    f"the row {said} has a seed twice at learning rate {rate.learning_rate:g}"
                )
        if len({rate.learning_rate for rate in row.rates}) < len(row.rates):
            raise EvidenceError(f"the row {said} has a learning rate twice")
        for trial in row.every:
            if not (trial.possible and (trial.due > 0) == (trial.tested > 0)):
                raise EvidenceError(f"the row {said}: seed {trial.seed} has impossible counts")


def _written(run: Mapping[str, Any], one: Outcome) -> dict[str, Any]:
    """A seed as a file has it: sizes and formats by name."""
    longer = zip(run.get("longer", ()), one.longer, one.longer_right, one.longer_due, strict=True)
    formats = [list(vars(each).values()) for each in one.formats]
    own = {"steps": one.steps_done, "longer": [*map(list, longer)], "formats": formats}
    return {name: own[name] if name in own else getattr(one, name) for name in _FIELDS}


def _outcome(run: Mapping[str, Any], kept: dict[str, Any]) -> dict[str, Any]:
    """Inverse of `_written`, as JSON. Raises ValueError for other sizes than the run's, and what
    reading something else raises.
    """
    sizes, *counts = map(list, zip(*kept["longer"], strict=True) if kept["longer"] else [()] * 4)
    if sizes != [*run.get("longer", ())]:
        raise ValueError(sizes)
    names = [one.name for one in fields(FormatOutcome)]
    return {
        **{name: value for name, value in kept.items() if name != "steps"},
        "status": "diverged" if kept["stopped"] == "diverged" else "done",
        "rule": run.get("rule", "own"),
        "steps_done": kept["steps"],
        **dict(zip(("longer", "longer_right", "longer_due"), counts, strict=True)),
        "formats": [dict(zip(names, each, strict=True)) for each in kept["formats"]],
    }


def _labels(labels: Mapping[str, Label]) -> str:
    return json.dumps(labels, sort_keys=True)
