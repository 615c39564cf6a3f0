"""What the charts of a report show, in words for those who do not see them, and what their lines
mean.
"""

from __future__ import annotations

from statistics import median

from separatrix.cli.report.charts import task_size
from separatrix.cli.report.side_by_side import share_text
from separatrix.cli.report.view import Cell
from separatrix.core.evidence.records import Measurement
from separatrix.core.numbers.accuracy import WHOLE, percent
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.theory.trained import Ceiling, trained_ceiling


def accuracy_words(cell: Cell) -> str:
    """Medians at every size, chance, what no weights exceed, and where failure is proved."""
    parts: list[str] = []
    for m in cell.measurements:
        reached = share_text(median(m.correct) / m.total)
        parts.append(
            f"at n = {task_size(m.task):,} the median of {len(m.seeds)} seeds of {m.architecture}"
            f" answers {reached} (chance {m.chance})"
        )
    return f"Accuracy after training: {'; '.join(parts)}. {accuracy_lines(cell)}"


def accuracy_lines(cell: Cell) -> str:
    """What the lines of an accuracy chart say: Theorem A's and the bound's."""
    return f"{_highest(cell)} {_bound(cell)}"


def _highest(cell: Cell) -> str:
    ceilings = [found for found in map(_ceiling, cell.measurements) if found is not None]
    if not ceilings:
        return "Theorem A draws no line here: it does not speak of this task."
    least = min(found.at_most for found in ceilings)
    where = "which excludes nothing at the sizes trained"
    if least < WHOLE:
        where = f"down to {percent(least)} here; dotted, what storing as many facts as fit reaches"
    return f"No weights exceed the line named highest (Theorem A), {where}."


def _ceiling(measured: Measurement) -> Ceiling | None:
    return trained_ceiling(Architecture.parse(measured.architecture), parse_task(measured.task))


def _bound(cell: Cell) -> str:
    if cell.bites:
        return f"Dashed upright: the size at which failure is proved, n = {cell.bites[0]:,}."
    if cell.status == "SOLVABLE":
        return "Dashed on top: some weights answer everything, up to the size they are built for."
    return "No size is known at which it fails."


def bound_words(cell: Cell) -> str:
    """Bits needed and bits there are, at both ends of the chart."""
    bound = cell.bound
    if bound is None or not bound["n"]:
        return ""
    kinds = [("need", "needed"), ("have", "there are"), ("fixed", "of these do not grow")]
    said = [
        f"{_bits(bound[key][0])} to {_bits(bound[key][-1])} bits {word}"
        for key, word in kinds
        if key in bound
    ]
    crossing = f" More is needed than there is from n = {cell.bites[0]:,}." if cell.bites else ""
    if "fixed" in bound:
        # another theorem decides, which counts layers and not bits alone
        crossing = ""
    ends = f"{bound['x']} = {bound['n'][0]:,} to {bound['n'][-1]:,}"
    return f"Bits against {ends}: {', '.join(said)}.{crossing}"


def _bits(value: object) -> str:
    text = str(value).strip("[] ").split(" ")[0].partition(".")[0]
    return f"{int(text):,}" if text.isdigit() else text
