"""Writes docs/experiments.md and its figures from the recorded results: nothing is trained.

.venv/bin/python tools/experiments.py [--check]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from separatrix.errors import SeparatrixError
from separatrix.experiments import EXPERIMENTS, lessons
from separatrix.experiments.writing import section, write_figures
from separatrix.practice.table import Scale, Table, read
from separatrix.report.markdown import table as markdown_table

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "experiments.md"
IMAGES = ROOT / "docs" / "images"
BEGIN = "<!-- from here on written by tools/experiments.py -->\n"
"""Above it people write."""
SCALES: tuple[Scale, ...] = ("laptop", "gpu")


def tables() -> Iterator[Table]:
    """Everything that is recorded, in the order of the experiments."""
    for name in EXPERIMENTS:
        for scale in SCALES:
            table = read(name, scale)
            if table is not None:
                yield table


def page(text: str) -> str:
    """The page with everything below the mark written anew."""
    if BEGIN not in text:
        raise SystemExit(f"error: {PAGE.name} lacks the line {BEGIN.strip()}")
    return text.partition(BEGIN)[0] + BEGIN + "\n" + generated()


def generated() -> str:
    """An overview, a section for each experiment, and what a designer should take from them."""
    sections = [
        section(
            experiment,
            [table for scale in SCALES if (table := read(name, scale)) is not None],
            images="images/",
            heading="##",
        )
        for name, experiment in EXPERIMENTS.items()
    ]
    return "\n".join([overview(), *sections, lessons.section("##")])


def overview() -> str:
    rows: list[tuple[str, ...]] = []
    for name, experiment in EXPERIMENTS.items():
        held = [table for scale in SCALES if (table := read(name, scale)) is not None]
        trained = [
            f"{table.scale}: {sum(len(row.every) for row in table.rows):,} trainings"
            for table in held
        ]
        rows.append((name, experiment.question, "; ".join(trained) or "nothing"))
    return markdown_table(("experiment", "question", "recorded"), rows) + "\n"


def draw() -> list[Path]:
    """Every figure anew; those of no recorded table are removed."""
    written: list[Path] = []
    for table in tables():
        written += write_figures(EXPERIMENTS[table.experiment], table, IMAGES)
    for old in IMAGES.glob("experiment-*.svg"):
        if old not in written:
            old.unlink()
    return written


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes docs/experiments.md from the results.")
    parser.add_argument(
        "--check", action="store_true", help="exit code 1 if the page is not what they give"
    )
    check = parser.parse_args().check
    try:
        text = PAGE.read_text(encoding="utf-8")
        wanted = page(text)
        if check:
            if text == wanted:
                return 0
            print(
                f"error: docs/{PAGE.name} is not what the recorded results give; run `make"
                " experiments`",
                file=sys.stderr,
            )
            return 1
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
