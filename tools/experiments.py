"""Writes docs/experiments.md and its pictures from the recorded results: nothing is trained.

.venv/bin/python tools/experiments.py [--check | --record NAME]

--record trains an experiment from a clean checkout first, and keeps its table in the package.
"""

from __future__ import annotations

import argparse
import re
import runpy
import sys
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any

from separatrix.cards.measured.table import Provenance, Row, Table, read, result_file
from separatrix.core.document.markdown import table as markdown_table
from separatrix.core.errors import SeparatrixError, SpecError
from separatrix.core.evidence.folder import write_atomic
from separatrix.core.evidence.outcome import Outcome
from separatrix.findings import ASKED, EXPERIMENTS
from separatrix.findings import experiment as named
from separatrix.findings.base import Experiment
from separatrix.findings.own import STUDY
from separatrix.findings.page import made, section
from separatrix.findings.picture import write_pictures
from separatrix.findings.results import Results, checked_lines, of_lines, of_table
from separatrix.findings.running import UNKNOWN, commit, run, runs_of, tabled_row
from separatrix.models.stored.run import Run

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "experiments.md"
IMAGES = ROOT / "docs" / "images"
ROWS = ROOT / "research" / "study" / "rows.jsonl"
PLAN = runpy.run_path(str(ROWS.with_name("plan.py")))
BEGIN = "<!-- from here on written by tools/experiments.py -->\n"
"""Above it people write."""
FIRST = re.compile(r"From the first ([0-9,]+) lines of research/study/rows\.jsonl")
STORE = Path("sweeps.sqlite")
ENOUGH = Fraction(99, 100)


def results(experiment: Experiment, most: int | None) -> tuple[Results, *tuple[str, ...]] | None:
    """What is recorded of an experiment with a page, where it is from, and what is planned beyond
    it; None for nothing.
    """
    if experiment.name == STUDY:
        if not ROWS.exists():
            return None
        rows, name = list(checked_lines(ROWS, most)), ROWS.relative_to(ROOT).as_posix()
        left = unfinished(rows)
        named = f"{len(left)} cells, from {left[0]} on (run.py --list)" if left else "nothing"
        return (
            of_lines(ended(rows)),
            f"From the first {len(rows):,} lines of {name}.",
            f"Planned, and not trained to the last seed: {named}.",
        )
    table = read(experiment.name)
    return None if table is None else (of_table(table), made(table))


def wanting(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The plan's cells that still want seeds."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["cell"], []).append(row)
    return [one for one in PLAN["cells"](found) if _runs(one) > len(found.get(one["name"], ()))]


def _runs(cell: dict[str, Any]) -> int:
    rates = cell["learning_rate"]
    return len(cell["seeds"]) * (len(rates) if isinstance(rates, list) else 1)


def unfinished(rows: list[dict[str, Any]]) -> list[str]:
    """What the plan still wants to compare: cells, also those whose rate is not chosen yet."""
    return [*dict.fromkeys(one["name"].removesuffix("-rates") for one in wanting(rows))]


def ended(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All rows but of the plan's cells that still want seeds, or were given up: those that end
    first are the quick ones.
    """
    # others choose a rate or look for a task, and are compared with nothing
    short = {one["name"] for one in wanting(rows) if isinstance(one["learning_rate"], float)}
    short.add(PLAN["GIVEN_UP"])
    return [row for row in rows if row["cell"] not in short]


def page(text: str, *, anew: bool = False) -> str:
    """The page with everything below the mark written again: from as many lines of the study as it
    says, or `anew` from all of them.
    """
    if BEGIN not in text:
        raise SystemExit(f"error: {PAGE.name} lacks the line {BEGIN.strip()}")
    most = None if anew else said_lines(text)
    return text.partition(BEGIN)[0] + BEGIN + "\n" + generated(most)


def said_lines(text: str) -> int | None:
    """From how many lines of the study a page says that it is; None where it does not."""
    said = FIRST.search(text)
    return said and int(said[1].replace(",", ""))


def generated(most: int | None) -> str:
    """A section for each experiment with a page, and one table of those that wait."""
    sections: list[str] = []
    for name, experiment in EXPERIMENTS.items():
        if name in ASKED or (found := results(experiment, most)) is None:
            continue
        sections.append(section(experiment, *found, folder="images/", heading="##"))
    return "\n".join([*sections, waiting()])


WAITING = """\
## Not trained to the end

These were trained for a fixed number of steps, most cells not to the end. A cell counted as solved
where its median seed was right in 99 % of answers; grey are those that are not trained to the end
by the rule above. Nothing follows from them: no sentence, card or design uses them, and they stand
here until the study trains them anew. `separatrix list experiments NAME` prints every seed."""


def waiting() -> str:
    """The experiments of which nothing follows."""
    rows = [_row(name, table) for name in ASKED if (table := read(name)) is not None]
    columns = ("experiment", "what was asked", "trained", "cells", "solved", "not solved", "grey")
    return f"{WAITING}\n\n{markdown_table(columns, rows)}\n"


def seeds(row: Row) -> list[Fraction]:
    """Accuracies at the best rate."""
    return [] if row.best is None else [seed.accuracy for seed in row.best.trials]


def _row(name: str, table: Table) -> tuple[str, ...]:
    found = of_table(table)
    steps = sorted({row.run["steps"] for row in table.rows})
    solved = sum(median(seeds(row)) >= ENOUGH for row in table.rows)
    span = f"{steps[0]:,} to {steps[-1]:,}" if len(steps) > 1 else f"{steps[0]:,}"
    many = len(table.rows)
    return (
        name,
        EXPERIMENTS[name].question,
        f"{table.provenance.date}, commit {table.provenance.commit[:10]}",
        f"{many} of {min(len(seeds(row)) for row in table.rows)} seeds",
        f"{solved}",
        f"{many - solved} in {span} steps" if many > solved else "0",
        f"{sum(bool(found.grey(cell)) for cell in found.cells.values())}",
    )


def study(most: int | None, date: str) -> Table:
    """The study's rows as the package keeps them: every seed of what is compared, without curves.
    Runs that choose a rate only are left out, and cells that are still being trained.
    """
    rows = list(checked_lines(ROWS, most))
    own = [row for row in ended(rows) if not row["cell"].startswith(("scout-", "again-"))]
    kept: dict[str, list[tuple[Run, Outcome]]] = {}
    for row in own:
        if not row["cell"].endswith("-rates"):
            pair = (Run.from_json(row["run"]), Outcome.from_json(row["outcome"]))
            kept.setdefault(row["cell"], []).append(pair)
    commits = {row["commit"] for row in rows}
    versions = {row["version"] for row in rows}
    return Table(
        experiment=STUDY,
        provenance=Provenance(
            commit=", ".join(sorted(commits)),
            version=", ".join(sorted(versions)),
            command=f"research/study/run.py, the first {len(rows):,} lines",
            date=date,
            seconds=round(sum(row["seconds"] for row in rows), 1),
            cores=1,
            device="cpu",
        ),
        rows=tuple(
            tabled_row({"cell": name, "stack": pairs[0][0].architecture}, pairs)
            for name, pairs in kept.items()
        ),
    )


def draw() -> list[Path]:
    """Every picture anew; those of no page are removed."""
    written: list[Path] = []
    for name, experiment in EXPERIMENTS.items():
        if name not in ASKED and (found := results(experiment, None)) is not None:
            written += write_pictures(experiment, found[0], IMAGES)
    for old in IMAGES.glob("experiment-*.svg"):
        if old not in written:
            old.unlink()
    return written


def record(name: str) -> None:
    """Trains an experiment and keeps its table in the package. Raises SpecError where this is no
    clean checkout, or where nobody could make the table again.
    """
    wanted = named(name)
    if commit() == UNKNOWN:
        raise SpecError(
            "--record keeps results of a commit only: run the command from a clean checkout, such"
            " as `git worktree add --detach FOLDER` makes"
        )
    table = run(wanted, store=STORE)
    check_recordable(table, len(runs_of(wanted.cells())))
    write_atomic(result_file(table.experiment), table.text())


def check_recordable(table: Table, runs: int) -> None:
    """Raises SpecError for a table of other code than the checkout's, or with runs that failed."""
    if table.provenance.commit == UNKNOWN:
        raise SpecError(
            "--record keeps results of one commit only, and other code trained some of these runs;"
            f" take {STORE} away"
        )
    if (found := sum(len(row.every) for row in table.rows)) < runs:
        raise SpecError(
            f"{runs - found:,} of {runs:,} runs failed, and nothing is recorded; `separatrix"
            " runs list --status failed` shows them"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes docs/experiments.md from the results.")
    parser.add_argument(
        "--check", action="store_true", help="exit code 1 if the page is not what they give"
    )
    parser.add_argument("--record", metavar="NAME", help="train this experiment and keep its table")
    asked = parser.parse_args()
    try:
        if asked.record:
            record(asked.record)
        text = PAGE.read_text(encoding="utf-8")
        old = result_file(STUDY)
        if asked.check:
            kept = read(STUDY)
            lines, date = said_lines(text), kept.provenance.date if kept else ""
            held = old.read_text(encoding="utf-8") == study(lines, date).text()
            if text == page(text) and held:
                return 0
            print(
                f"error: docs/{PAGE.name} is not what the recorded results give; run `make"
                " experiments`",
                file=sys.stderr,
            )
            return 1
        write_atomic(old, study(None, f"{datetime.now(UTC):%Y-%m-%d}").text())
        wanted = page(text, anew=True)
        for path in draw():
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} kB")
    except SeparatrixError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    PAGE.write_text(wanted, encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {len(wanted):,} letters")
    return 0


if __name__ == "__main__":
    sys.exit(main())
