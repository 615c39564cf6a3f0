"""Tables of trained runs: what an experiment found, with every seed, and where it comes from.

A file holds an envelope with a content hash, and a row a line. Nothing in it is computed from
anything else in it: accuracies, intervals and the choice among learning rates are derived here.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from separatrix.core.errors import EvidenceError, SpecError
from separatrix.core.evidence.canonical import canonical, json_list, json_object
from separatrix.core.evidence.outcome import Outcome
from separatrix.core.evidence.records import enveloped, opened, to_plain
from separatrix.core.evidence.typed import parse_json, typed
from separatrix.core.numbers.seeds import best_rate

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
    cache_bits: int
    """What the model carries at the end of a prompt, in the formats of its spec."""

    @cached_property
    def best(self) -> Rate | None:
        """The rate with the highest median accuracy, chosen on these same seeds; None of none."""
        reached = {rate.learning_rate: [t.accuracy for t in rate.trials] for rate in self.rates}
        chosen = best_rate(reached)
        return next((rate for rate in self.rates if rate.learning_rate == chosen), None)

    @property
    def every(self) -> tuple[Outcome, ...]:
        """All seeds at all rates."""
        return tuple(trial for rate in self.rates for trial in rate.trials)


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
    if not path.exists():
        return None
    try:
        return parse(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, EvidenceError) as error:
        raise SpecError(f"{path}: {error}") from None


def parse(text: str) -> Table:
    """The table that a text holds. Raises EvidenceError for one without, edited or damaged."""
    body = opened(parse_json(text), KIND)[1]
    for row in filter(json_object, json_list(body.get("rows")) or ()):
        # of tables that were recorded before
        row.pop("flops_per_token", None)
    return typed(body, Table, "body")
