"""The main job: the paper's table of results with evidence in every cell, and the same questions
asked of real models. Its trainings are a sweep in a store beside the report, which goes on where it
was interrupted; weights are written, and failures found, in seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from separatrix.cards.table.body import Settings, derive, table_cells
from separatrix.cards.table.plan import Cell, Witness
from separatrix.checks.refute import refute
from separatrix.constructions import construct
from separatrix.core.errors import EngineError, EvidenceError
from separatrix.core.evidence.bundles import bundle_envelope
from separatrix.core.evidence.canonical import canonical, code_digest
from separatrix.core.evidence.folder import write_atomic
from separatrix.core.evidence.records import Certificate, Evidence, Measurement
from separatrix.core.progress import bar
from separatrix.models.stored.run import Run
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task
from separatrix.training.alone import measurement, train
from separatrix.training.sweeps.reading import Stored
from separatrix.training.sweeps.store import Store
from separatrix.training.sweeps.sweep import sweep

NAME = "reproduce"
"""Of the sweep."""
SEARCH_SECONDS = 120.0


def reproduce_table(
    settings: Settings, out: Path, *, workers: int = 2, show: bool = True
) -> dict[str, Any]:
    """Makes all evidence, writes evidence.json, the constructions' weights and report.html into
    `out`, and returns the bundle's body.

    Trainings are kept in a store under `out`/.saved, one for each version of the code, so that an
    interrupted run goes on. Raises SizeError for no workers, OutputError for a folder that cannot
    be written, EngineError for a training that failed, and what making the evidence raises.
    """
    from separatrix.cli.report.html import write_report

    saved = out / ".saved"
    told = "Finished trainings; `separatrix reproduce` picks them up. Safe to delete.\n"
    write_atomic(saved / "README", told)
    cells = table_cells(settings)
    trained = {
        (cell, size): _runs(cell, size, settings.seed) for cell in cells for size in cell.sizes
    }
    made: list[Evidence] = [*_trained([*trained.values()], saved, workers=workers, show=show)]
    built = dict.fromkeys(pair for cell in cells for pair in cell.built())
    failing = {
        witness: trained[cell, cell.sizes[-1]][0] for cell in cells for witness in cell.witnesses()
    }
    with bar("weights, failures", shown=show) as advance:
        for stack, task in built:
            found = construct(parse_task(task), Architecture.parse(stack))
            found.save_weights(out)
            made.append(found.record)
            advance(len(made) - len(trained), len(built) + len(failing))
        for witness, run in failing.items():
            made.append(_failure(witness, run, settings.seed))
            advance(len(made) - len(trained), len(built) + len(failing))
    envelope = bundle_envelope(derive(settings, {record.digest: record for record in made}))
    write_atomic(out / "evidence.json", canonical(envelope) + "\n")
    write_report(envelope["body"], out / "report.html")
    return envelope["body"]


def _runs(cell: Cell, size: int, seed: int) -> list[Run]:
    """The trainings of a cell at a size, a seed each."""
    sizes = {"architecture": cell.stack, "task": cell.task_at(size)}
    every = range(seed, seed + cell.kind.seeds)
    return [Run(**sizes, seed=one, **cell.training()) for one in every]


def _trained(
    cells: Sequence[Sequence[Run]], saved: Path, *, workers: int, show: bool
) -> Iterator[Measurement]:
    """What these trainings gave, all seeds of a cell together."""
    runs = [run for own in cells for run in own]
    # what other code has trained is never picked up
    store = saved / f"{code_digest()[:16]}.sqlite"
    sweep(runs, store=store, name=NAME, workers=workers, retry=True, show=show)
    with Store.read(store) as kept:
        rows = {row.key: row for row in kept.rows(NAME)}
    for own in cells:
        yield _measured(own, rows)


def _measured(runs: Sequence[Run], rows: Mapping[str, Stored]) -> Measurement:
    outcomes = []
    for run in runs:
        row = rows[run.key]
        if row.outcome is None:
            raise EngineError(
                f"training {run.architecture} on {run.task}, seed {run.seed}, {row.status}:"
                f" {row.error}; what is done is saved, and the same command goes on"
            )
        # a clock would make two equal results differ
        outcomes.append(replace(row.outcome, seconds=0.0))
    return measurement(runs[0], outcomes)


def _failure(wanted: Witness, run: Run, seed: int) -> Certificate:
    """A certificate: of a drawn model, or of the first trained one's wrong answer, which is trained
    again. Raises EvidenceError for a search that found nothing.
    """
    wrong = wanted.form == "wrong_answer"
    subject = train(run).model if wrong else Architecture.parse(wanted.architecture)
    found = refute(subject, parse_task(wanted.task), budget=SEARCH_SECONDS, seed=seed)
    if not isinstance(found, Certificate):
        said = f"{wanted.architecture} on {wanted.task}: {found}"
        raise EvidenceError(f"{said}; another --seed may find one")
    return found
