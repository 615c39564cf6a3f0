"""The experiments, a page each: what training finds, beside what is proved."""

from __future__ import annotations

from pathlib import Path

from separatrix.core.errors import UnknownNameError
from separatrix.findings.base import Experiment, read_page
from separatrix.findings.recorded import ASKED, TITLE

PAGES = Path(__file__).parent / "pages"
EXPERIMENTS: dict[str, Experiment] = {
    **{path.stem: read_page(path) for path in sorted(PAGES.glob("*.md"))},
    **{
        name: Experiment(name=name, title=TITLE, question=question)
        for name, question in ASKED.items()
    },
}
"""Name -> experiment."""


def experiment(name: str) -> Experiment:
    """Raises UnknownNameError, suggesting the nearest name."""
    if name not in EXPERIMENTS:
        raise UnknownNameError.of(
            "experiment", name[:60], EXPERIMENTS, listing="separatrix list experiments"
        )
    return EXPERIMENTS[name]
