"""What trained models gave on longer prompts than they were trained on."""

from __future__ import annotations

from fractions import Fraction
from statistics import median

from separatrix.practice.table import Row
from separatrix.tasks.resized import resized


def by_length(row: Row) -> dict[int, Fraction]:
    """Tokens of a prompt -> median accuracy over the seeds at the best rate: at the size trained,
    and at every longer one.
    """
    found = {row.task.length: row.median}
    for size in dict.fromkeys(one[0] for trial in row.trials for one in trial.longer):
        at = [trial.at(size) for trial in row.trials]
        # a seed that diverged was tested nowhere
        shares = [Fraction(0) if one is None else one.accuracy for one in at]
        found[resized(row.task, size).task.length] = median(shares)
    return dict(sorted(found.items()))
