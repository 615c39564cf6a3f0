"""Tables of trained runs: what an experiment found, with every seed, and where it comes from.

A file holds an envelope with a content hash, and a row a line. Nothing in it is computed from
anything else in it: accuracies, intervals and the choice among learning rates are derived here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path
from statistics import median
from typing import Any

from separatrix.core.errors import EvidenceError, SpecError, UnknownNameError
from separatrix.core.evidence.canonical import canonical, json_list, json_object
from separatrix.core.evidence.outcome import Outcome
from separatrix.core.evidence.records import enveloped, to_plain
from separatrix.core.evidence.typed import parse_json, typed
from separatrix.core.numbers.seeds import best_rate
from separatrix.tasks import parse_task

RESULTS = Path(__file__).parent / "results"
"""A file for each experiment of which the package holds results."""
KIND = "practice"
Label = str | int


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
    provenance: Provenance
    rows: tuple[Row, ...]

    def values(self, label: str) -> list[Label]:
        """What a label takes, in the order of the rows."""
        return list(dict.fromkeys(row.labels[label] for row in self.rows if label in row.labels))

    def to_json(self) -> dict[str, Any]:
        """The table as a file holds it, with its content hash."""
        return enveloped(KIND, to_plain(asdict(self)))

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
        longer = len(json_list(row.run.get("longer")) or ())
        for trial in row.every:
            beside = {*map(len, (trial.longer, trial.longer_right, trial.longer_due))}
            counted = (trial.due > 0) == (trial.tested > 0) and beside == {longer}
            if not (trial.possible and counted):
                raise EvidenceError(f"the row {said}: seed {trial.seed} has impossible counts")


def _labels(labels: Mapping[str, Label]) -> str:
    return json.dumps(labels, sort_keys=True)
