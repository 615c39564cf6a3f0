"""What made a table of results: the code, the command, the machine."""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path

from separatrix.cards.measured.table import RESULTS, Provenance, Table
from separatrix.core.errors import SpecError
from separatrix.core.evidence.code import code_version
from separatrix.findings.base import Planned

UNKNOWN = "unknown"
PACKAGE = Path(__file__).resolve().parent.parent


def provenance(
    command: str, *, versions: Collection[str], seconds: float, cores: int, device: str
) -> Provenance:
    """`versions` are those of the code that trained: where it was other code than this, the commit
    is unknown.
    """
    own = code_version()
    return Provenance(
        commit=commit() if set(versions) <= {own} else UNKNOWN,
        version=", ".join(sorted(versions)) or own,
        command=command,
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        seconds=round(seconds, 1),
        cores=cores,
        device=device,
    )


def commit(package: Path = PACKAGE) -> str:
    """The commit of the checkout that the package is run from; "unknown" where it is run from none,
    or its sources differ from the commit. Recorded results may have changed.
    """
    root = package.parent.parent
    top = _git(root, "rev-parse", "--show-toplevel")
    # a package installed inside of another project's checkout is none of its commits
    if top is None or Path(top).resolve() != root or package.parent.name != "src":
        return UNKNOWN
    results = package / "cards" / "measured" / RESULTS.name
    changed = _git(root, "status", "--porcelain", "--", "src", f":(exclude){results}")
    found = _git(root, "rev-parse", "HEAD")
    return UNKNOWN if changed != "" or found is None else found


def check_clean() -> None:
    """Raises SpecError where this is no clean checkout: before hours of training."""
    if commit() == UNKNOWN:
        raise SpecError(
            "--record keeps results of a commit only: run the command from a clean checkout, such"
            " as `git worktree add --detach FOLDER` makes"
        )


def check_recordable(table: Table, cells: Sequence[Planned]) -> None:
    """Raises SpecError for a table that nobody could make again: of other code than the checkout's,
    or with runs that failed.
    """
    check_clean()
    if table.provenance.commit == UNKNOWN:
        raise SpecError(
            "--record keeps results of one commit only, and other code trained some of these runs;"
            " give the command another --store"
        )
    wanted = sum(len(cell.runs) for cell in cells)
    found = sum(len(row.every) for row in table.rows)
    if found < wanted:
        raise SpecError(
            f"{wanted - found:,} of {wanted:,} runs failed, and nothing is recorded; `separatrix"
            " runs list --status failed` shows them"
        )


def _git(folder: Path, *words: str) -> str | None:
    """What git says; None where it is not installed or refuses."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
