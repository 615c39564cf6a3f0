"""Derives the table of constructions and writes it into the package and docs/constructions.md.

.venv/bin/python tools/constructions.py [--only NAME ...]

With --only, rows of other constructions are kept as they are recorded.
"""

from __future__ import annotations

import argparse
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from separatrix.cli.report.constructions.derived import MOST, SECONDS, derived_row
from separatrix.cli.report.constructions.listing import markdown_table
from separatrix.cli.report.constructions.recorded import FILE, Recorded, read_recorded
from separatrix.constructions import CONSTRUCTIONS
from separatrix.core.errors import SeparatrixError
from separatrix.core.evidence.atomic import write_atomic
from separatrix.findings.provenance import commit

PAGE = Path(__file__).resolve().parent.parent / "docs" / "constructions.md"
BEGIN = "<!-- written by `make constructions` -->\n"
END = "<!-- end -->\n"


def page(text: str, recorded: Recorded) -> str:
    """The page with what stands between the marks written anew."""
    if BEGIN not in text or END not in text:
        raise SystemExit(f"error: {PAGE.name} lacks the lines {BEGIN.strip()} and {END.strip()}")
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{markdown_table(recorded)}\n{END}{rest.partition(END)[2]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", nargs="*", choices=list(CONSTRUCTIONS), default=None)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="most time of a proof")
    parser.add_argument("--most", type=int, default=MOST, help="the largest size tried")
    parser.add_argument("--page", action="store_true", help="write the page alone")
    options = parser.parse_args()
    wanted = [] if options.page else options.only or list(CONSTRUCTIONS)
    kept = {row.name: row for row in read_recorded().rows} if FILE.exists() else {}
    began = time.process_time()
    for name in wanted:
        print(f"{name} ...", flush=True)
        kept[name] = derived_row(name, most=options.most, seconds=options.seconds)
    if wanted:
        recorded = Recorded(
            commit=commit(),
            command="make constructions",
            date=f"{datetime.now(UTC):%Y-%m-%d}",
            seconds=round(time.process_time() - began, 1),
            rows=tuple(kept[name] for name in CONSTRUCTIONS if name in kept),
        )
        write_atomic(FILE, recorded.text())
    write_atomic(PAGE, page(PAGE.read_text(encoding="utf-8"), read_recorded()))


if __name__ == "__main__":
    try:
        main()
    except SeparatrixError as error:
        sys.exit(f"error: {error}")
