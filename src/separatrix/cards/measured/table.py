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
from math import inf
from pathlib import Path
from statistics import median
from typing import Any, Literal, NamedTuple

from separatrix.core.errors import EvidenceError, SpecError, UnknownNameError
from separatrix.core.evidence.canonical import canonical, json_object
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


class Longer(NamedTuple):
    """What a trained model gave at another size of its task."""

    size: str
    """As the run names it, such as "n=64"."""
    correct: int
    right: int
    due: int


class Rounded(NamedTuple):
    """What a trained model gave with what its recurrent layers carry rounded to a format."""

    format: str
    correct: int
    right: int
    due: int
    bits: float


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One seed at one learning rate. A seed that diverged is not tested: none of its answers is
    right.
    """

    seed: int
    stopped: str
    """What ended its training: solved, plateau, steps, seconds or diverged."""
    steps: int
    """Done."""
    correct: int
    """Test prompts with every answer right."""
    tested: int
    """Test prompts; 0 where it diverged."""
    right: int
    """Answers right, of all that were due in the test prompts."""
    due: int
    bits: float
    """Mean over all answers due of -log2 p(right answer); 0 where none was due."""
    bits_squares: float
    """Mean over the prompts of the square of (mean over the prompt's answers of -log2 p)."""
    longer: tuple[Longer, ...] = ()
    formats: tuple[Rounded, ...] = ()
    parameters: int
    seconds: float

    @property
    def diverged(self) -> bool:
        return self.stopped == "diverged"

    @property
    def accuracy(self) -> Fraction:
        """Per answer; 0 where it diverged."""
        return share(self.right, self.due)


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A learning rate, with its seeds in order."""

    learning_rate: float
    trials: tuple[Trial, ...]


@dataclass(frozen=True, kw_only=True)
class Row:
    """A cell of an experiment: runs that differ in seed and learning rate only."""

    labels: dict[str, str | int]
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
        found = {rate.learning_rate: rate for rate in self.rates}
        chosen = best_rate(
            {value: [trial.accuracy for trial in rate.trials] for value, rate in found.items()}
        )
        return None if chosen is None else found[chosen]

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The seeds at the best rate."""
        return () if self.best is None else self.best.trials

    @property
    def every(self) -> tuple[Trial, ...]:
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
    """Of the repository; "unknown" where the package was not run from one, or from a changed
    one.
    """
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
        return enveloped(KIND, to_plain(asdict(self)))

    def text(self) -> str:
        """The whole file: canonical JSON, but for a line for each row."""
        envelope = self.to_json()
        body = envelope["body"]
        rows = ",\n".join(canonical(row) for row in body["rows"])
        empty = canonical(envelope | {"body": body | {"rows": []}})
        # inside a text of JSON, quotes are escaped: this stands there once
        return empty.replace('"rows":[]', f'"rows":[\n{rows}\n]', 1) + "\n"


def share(right: int, due: int) -> Fraction:
    """Of all answers due, how many are right; 0 where none was due."""
    return Fraction(right, due) if due else Fraction(0)


def result_file(name: str) -> Path:
    """Where the package keeps an experiment's results."""
    return RESULTS / f"{name}.json"


def names() -> tuple[str, ...]:
    """Experiments of which the package holds results."""
    return tuple(sorted(path.stem for path in RESULTS.glob("*.json")))


@cache
def read(name: str) -> Table | None:
    """The recorded table of an experiment; None where the package holds none. Raises SpecError for
    a damaged file.
    """
    path = result_file(name)
    # a name is no path
    if path.parent != RESULTS or not path.exists():
        return None
    table = read_file(path)
    if table.experiment != name:
        raise SpecError(f"{path}: holds results of '{table.experiment}', not of '{name}'")
    return table


def read_file(path: Path) -> Table:
    """The table of a file. Raises SpecError, on one line, for one that cannot be read or is
    damaged.
    """
    try:
        return parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise SpecError(f"{path}: not a text file") from None
    except EvidenceError as error:
        raise SpecError(f"{path}: {error}") from None


def parse(text: str) -> Table:
    """The table that a file's text holds. Raises EvidenceError for one that holds none, or that was
    edited or damaged.
    """
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
        for trial in row.every:
            if not _possible(trial):
                raise EvidenceError(f"the row {said}: seed {trial.seed} has impossible counts")


def _possible(trial: Trial) -> bool:
    return (
        0 <= trial.correct <= trial.tested
        and 0 <= trial.right <= trial.due
        and trial.diverged == (trial.tested == 0)
        and (trial.tested == 0) == (trial.due == 0)
        and 0 <= trial.bits < inf
        and 0 <= trial.bits_squares < inf
        and trial.steps >= 1
        and all(one.correct >= 0 and 0 <= one.right <= one.due for one in trial.longer)
        and all(
            one.correct >= 0 and 0 <= one.right <= one.due and 0 <= one.bits < inf
            for one in trial.formats
        )
    )


def _labels(labels: Mapping[str, Label]) -> str:
    return json.dumps(labels, sort_keys=True)
