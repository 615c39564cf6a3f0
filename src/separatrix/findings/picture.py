"""The picture of an experiment, steps until each seed solved the task, and the folder for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from separatrix.cards.measured.table import Table
from separatrix.core.document.drawing import libraries
from separatrix.core.document.plot_file import FAILS, MUTED, SOLVES, plot_spec, write_spec
from separatrix.core.evidence.atomic import write_atomic
from separatrix.core.evidence.folder import new_folder
from separatrix.findings.base import Experiment
from separatrix.findings.page import made, notes, section
from separatrix.findings.results import Results

KINDS = ("solved", "not in all its steps", "not trained to the end")
"""What a seed may be; a shape beside a colour, so that it is seen without colours as well."""


def picture(experiment: Experiment, results: Results) -> dict[str, Any]:
    """The Vega-Lite specification. Raises MissingExtraError."""
    alt, _ = libraries()
    rows = [
        {
            "cell": cell.name,
            "seed": seed.seed,
            "steps": seed.steps if seed.solved else cell.steps,
            "accuracy": float(seed.accuracy),
            "kind": KINDS[2] if results.grey(cell) else KINDS[0 if seed.solved else 1],
        }
        for cell in results.cells.values()
        for seed in cell.seeds
    ]
    legend = alt.Legend(orient="bottom", title=None, labelLimit=0)
    shapes = alt.Scale(domain=list(KINDS), range=["circle", "triangle-right", "cross"])
    colours = alt.Scale(domain=list(KINDS), range=[SOLVES, FAILS, MUTED])
    marks = (
        alt.Chart(alt.Data(values=rows))
        .mark_point(filled=True, size=46, opacity=0.85)
        .encode(
            y=alt.Y(
                "cell:N",
                sort=list(results.cells),
                title=None,
                axis=alt.Axis(grid=True, labelLimit=0),
            ),
            yOffset=alt.YOffset("seed:O"),
            x=alt.X("steps:Q", title="steps until solved", scale=alt.Scale(zero=True)),
            shape=alt.Shape("kind:N", scale=shapes, legend=legend),
            color=alt.Color("kind:N", scale=colours, legend=legend),
            tooltip=[
                alt.Tooltip("cell:N"),
                alt.Tooltip("seed:Q"),
                alt.Tooltip("steps:Q"),
                alt.Tooltip("accuracy:Q", format=".1%"),
            ],
        )
    )
    return plot_spec(marks, experiment.title, [experiment.question])


def write_picture(experiment: Experiment, results: Results, path: Path) -> None:
    """Draws it as SVG, in place of an older one. Raises OutputError and MissingExtraError."""
    spec = picture(experiment, results)
    path.unlink(missing_ok=True)
    write_spec(spec, experiment.title, path)


def write_out(experiment: Experiment, table: Table, results: Results, out: Path) -> None:
    """A new folder with page, picture and numbers, whole or not at all. Raises what a claim raises
    that the rows do not bear.
    """
    name = f"experiment-{experiment.name}.svg"
    said = [*notes(results), made(table)]
    page = section(experiment, results, said, picture=name, heading="#")
    with new_folder(out) as folder:
        write_picture(experiment, results, folder / name)
        write_atomic(folder / f"{experiment.name}.md", page)
        write_atomic(folder / f"{experiment.name}.json", table.text())
