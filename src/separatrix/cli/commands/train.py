"""`separatrix train`: one model, from a stack and a task to a folder; a grid; an experiment."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, get_origin

from separatrix.cli.commands.runs import summed
from separatrix.cli.options import (
    STORE,
    Asked,
    command,
    engine_free,
    engine_options,
    pairs,
    planned,
    stopped,
    used,
)
from separatrix.cli.printing import Told
from separatrix.core.document import Document, Table
from separatrix.core.errors import SpecError, Stopped
from separatrix.core.evidence.folder import check_new
from separatrix.core.progress import HINT, bar, clock, told
from separatrix.models.stored.run import Run
from separatrix.stacks.architecture.resolve import resolve
from separatrix.tasks import parse_task

if TYPE_CHECKING:
    from separatrix.training.alone import Trained
    from separatrix.training.engine import Trainer

GRIDS = (".yaml", ".yml")


@command
def train(asked: Asked) -> Told:
    """One trained model and its accuracy on fresh prompts, in a folder that verify, refute and task
    evaluate take; every run of a grid, or of an experiment, that the store does not have yet.
    Interrupted, the same command goes on. Examples: train 'full*2 @ heads=1, head_dim=16'
    eva:n=8,V=16; train examples/tiny.yaml --dry-run
    """
    what, *others = asked.words
    if Path(what).suffix in GRIDS:
        if others:
            raise SpecError(f"the file {what} says its own tasks; leave {others[0][:60]!r} out")
        used(asked, "train GRID.yaml", "GRID")
        return _grid(Path(what), asked)
    if not others:
        from separatrix.findings import EXPERIMENTS

        if what in EXPERIMENTS:
            from separatrix.cli.commands.experiment import train_experiment

            used(asked, "train EXPERIMENT", "EXPERIMENT")
            return train_experiment(what, asked)
    used(asked, "train STACK TASK", "STACK")
    if len(others) != 1:
        raise SpecError(
            f"one stack and one task: what should {what[:60]!r} learn? For example: separatrix"
            f" train {quote(what[:60])} eva:n=8,V=16"
        )
    return _one(what, others[0], asked)


def _grid(file: Path, asked: Asked) -> Told:
    """Every run of a file that the store does not have yet, and what came out."""
    from separatrix.training.sweeps.sweep import planned as plan_of
    from separatrix.training.sweeps.sweep import sweep as train_all

    if asked.dry_run:
        with bar("trying some steps", shown=not asked.as_json):
            plan = plan_of(file, **engine_free(asked))
        return planned(plan.name, plan)
    try:
        found = train_all(
            file,
            imports=asked.imports or (),
            retry=asked.retry,
            show=not asked.as_json,
            **engine_options(asked),
        )
    except KeyboardInterrupt:
        raise stopped(asked.store) from None
    failed = found.count("failed")
    if failed:
        place = "" if asked.store == STORE else f" --store {asked.store}"
        print(
            f"{failed:,} failed: `separatrix runs list --status failed{place}` shows them,"
            " `separatrix runs show` says why, and --retry tries them again",
            file=sys.stderr,
        )
    return summed(found, code=int(failed > 0))


def _one(stack_text: str, task: str, asked: Asked) -> Told:
    from separatrix.training.sweeps.engines.pool import devices

    settings = read_settings(asked.set or [], asked.steps)
    out = asked.out or Path("trained")
    check_new(out)
    architecture = resolve(stack_text).spec
    wanted = parse_task(task).spec

    whole = {"architecture": architecture, "task": wanted, "seed": 0} | settings
    run = Run.from_json(whole).canonical()
    run.check()
    place = devices(asked.device)[0]
    file = out.with_name(f"{out.name}.checkpoint")
    trained = _trained(run, file, device=place, shown=not asked.as_json)
    trained.save(out)
    file.unlink(missing_ok=True)
    record, outcome = trained.measurement.envelope(), trained.outcome.to_json()
    data = {"folder": str(out), "outcome": outcome, "record": record}
    return Told(data, _document(trained, out))


def read_settings(texts: Sequence[str], steps: int | None) -> dict[str, Any]:
    """Fields of a run from texts such as "learning_rate=0.003", read as those of a grid; lists from
    those that are given several times. Raises what reading them raises.
    """
    from separatrix.training.sweeps.file import HINTS, Node, value

    lists = [name for name, hint in HINTS.items() if get_origin(hint) is tuple]
    known = [name for name in HINTS if name not in ("architecture", "task")]
    found: dict[str, Any] = {}
    what, example = "setting of a training", "learning_rate=0.003"
    given = [*texts, *([] if steps is None else [f"steps={steps}"])]
    for name, text in pairs("--set", given, known, what, example, several=lists):
        node = Node(f"--set {name}", text=text, bare=True)
        several = Node(node.place, items=(node,))
        read = value(name, several if name in lists else node)
        found[name] = (*found.get(name, ()), *read) if name in lists else read
    return found


def _trained(run: Run, file: Path, *, device: str, shown: bool) -> Trained:
    if shown and file.exists():
        print(f"train: an earlier run saved {file}", file=sys.stderr, flush=True)
    standing = _standing(run)
    with told("train", shown=shown, hint=HINT) as say:
        from separatrix.training.alone import ended, saved
        from separatrix.training.packs import Pack

        try:
            trainer = saved(
                Pack((run,)),
                file,
                device=device,
                told=lambda trainer: say(trainer.step, run.steps, standing(trainer)),
            )
        except KeyboardInterrupt:
            raise Stopped(_saved(file)) from None
        except SystemExit:
            print(_saved(file), file=sys.stderr)
            raise
    if any(outcome.status == "diverged" for outcome in trainer.outcomes().values()):
        file.unlink(missing_ok=True)
    return ended(trainer)


def _saved(file: Path) -> str:
    return f"saved in {file}; the same command goes on from there"


def _standing(run: Run) -> Callable[[Trainer], list[str]]:
    """How a training stands, in words: step, loss and accuracy, steps per second, time left."""
    metric = ""

    def words(trainer: Trainer) -> list[str]:
        nonlocal metric
        for one in trainer.metrics():
            metric = f"loss {one.loss:.3f}, {100 * one.accuracy:.1f} %"
        step = f"{trainer.step:,}/{run.steps:,} steps"
        if not trainer.step or not trainer.seconds:
            return [step, metric]
        pace = trainer.seconds / trainer.step
        left = pace * (run.steps - trainer.step)
        if run.seconds:
            left = min(left, max(0.0, run.seconds - trainer.seconds))
        rate = f"{1 / pace:,.3g} steps/s" if pace > 1e-3 else f"{1 / pace:,.0f} steps/s"
        return [step, metric, rate, f"{clock(left)} left"]

    return words


def _document(trained: Trained, out: Path) -> Document:
    from separatrix.cli.report.run import ended, measured_rows

    run, outcome, place = trained.run, trained.outcome, quote(str(out))
    longer = [] if run.longer else [("larger n", "not measured; --set longer=n=... does")]
    # what refutes has one answer to a prompt
    several = parse_task(run.task).several
    refute = [] if several else [("", f"separatrix refute {place} --task {run.task}")]
    rows = [
        ("trained", f"{run.architecture}  on  {run.task}"),
        *measured_rows(run, outcome),
        *longer,
        ("stopped", ended(run, outcome, outcome.seconds)),
        ("written", str(out)),
        ("next", f"separatrix verify {place}"),
        *refute,
        ("", f"separatrix task {run.task} evaluate {place}"),
    ]
    return Document(Table(rows, labels=True, turns=True))
