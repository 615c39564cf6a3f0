"""The experiments, a page each: what training finds, beside what is proved."""

from __future__ import annotations

from pathlib import Path

from separatrix.core.errors import UnknownNameError
from separatrix.findings.base import Experiment, Picture, read_page

PAGES = Path(__file__).parent / "pages"
TITLE = "Recorded in November 2026, not trained to the end"
WHOLE = "{{table}}\n\n{{picture}}"
ASKED: dict[str, str] = {
    "capacity": "How many bits of a prompt's facts does a trained state hold for each number?",
    "depth": "Does accuracy drop when there are more functions to compose than full layers, and do"
    " recurrent layers beside them help?",
    "zoology": "Which mechanisms need a width that grows with the prompt to recall many pairs?",
    "length": "How far beyond the lengths that training shows do recurrences and full attention"
    " solve state tracking, recall and copying?",
    "cot": "Does writing the steps down make up for layers, and does a hybrid need fewer of them?",
    "shift": "Does a stack that was trained on prompts of one distribution answer those of"
    " another?",
    "state-tracking": "Which layers learn to follow a state that every token may change, and do"
    " they follow it in longer prompts?",
    "multi-layer-sparse": "Does a second (B, k)-sparse layer answer 2-Sum where one does not?",
    "head-wise": "At equal cache and parameters, do heads of both kinds in every layer learn more"
    " than layers of one kind each?",
}
"""Name -> question of the experiments of November 2026, which were not trained to the end. Their
runs are those that `cards/measured/results/NAME.json` names; nothing follows from them until they
are trained anew.
"""
EXPERIMENTS: dict[str, Experiment] = {
    **{path.stem: read_page(path) for path in sorted(PAGES.glob("*.md"))},
    **{
        name: Experiment(
            name=name, title=TITLE, question=question, text=WHOLE, pictures={"": Picture(TITLE)}
        )
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
