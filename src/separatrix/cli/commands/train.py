"""`separatrix train`: one model, from an architecture and a task to a folder with both measured."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from separatrix.cli import complete
from separatrix.cli.options import TASK_HELP, Imports, stack, with_sizes
from separatrix.cli.printing import JsonFlag, print_json, print_text
from separatrix.core.errors import OutputError, Stopped
from separatrix.core.progress import clock, lines

if TYPE_CHECKING:
    from separatrix.training.alone import Trained
    from separatrix.training.engine import Trainer
    from separatrix.training.run import Run

HINT = "Ctrl-C saves and stops; the same command goes on"
_SAY_EVERY = 20.0
"""Seconds between two lines where there is no terminal."""


def train(
    context: typer.Context,
    arch: Annotated[str, typer.Argument(help="The architecture.", autocompletion=complete.models)],
    task: Annotated[
        str, typer.Option(help=f"The task. {TASK_HELP}", autocompletion=complete.tasks)
    ],
    out: Annotated[Path, typer.Option(help="New folder for the model and its measurement.")] = Path(
        "trained"
    ),
    seed: Annotated[
        int | None, typer.Option(help="Of weights, training and test prompts (default: 0).")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Most steps (default: 1000).")] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Most seconds of training, 0 for no limit (default: 0).")
    ] = None,
    batch: Annotated[int | None, typer.Option(help="Prompts in a step (default: 128).")] = None,
    optimiser: Annotated[
        str | None,
        typer.Option(help="muon (its rest by AdamW) or adamw (default: muon)."),
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="The highest learning rate (default: 0.003).")
    ] = None,
    weight_decay: Annotated[
        float | None, typer.Option(help="Of matrices alone (default: 0.01).")
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option(help="After the warm-up: cosine, constant or linear (default: cosine)."),
    ] = None,
    warmup: Annotated[
        int | None, typer.Option(help="Its steps, 0 for 5 % of all, 10 at least (default: 0).")
    ] = None,
    width: Annotated[int | None, typer.Option(help="Of the residual stream (default: 32).")] = None,
    hidden: Annotated[
        int | None, typer.Option(help="Units of each MLP, 0 for none (default: 64).")
    ] = None,
    precision: Annotated[
        str | None, typer.Option(help="Of training: fp32 or bf16 (default: fp32).")
    ] = None,
    curriculum: Annotated[
        list[str] | None,
        typer.Option(
            help="Sizes to begin with, and until which step: n=4@100, repeatable (default: none)."
        ),
    ] = None,
    longer: Annotated[
        list[str] | None,
        typer.Option(help="Sizes to measure accuracy at, too: n=64, repeatable (default: none)."),
    ] = None,
    tested: Annotated[int | None, typer.Option(help="Fresh test prompts (default: 2048).")] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option(
            help="Number formats (bf16, fp16) that carried states are rounded to in a further test,"
            " repeatable (default: none)."
        ),
    ] = None,
    stop_at: Annotated[
        float | None,
        typer.Option(
            help="Running accuracy of 20 steps that ends training early (default: 0.995)."
        ),
    ] = None,
    plateau: Annotated[
        int | None,
        typer.Option(help="Steps without progress that end training, 0 for never (default: 0)."),
    ] = None,
    rule: Annotated[
        str | None,
        typer.Option(help="own, or study: held to the study's rule of stopping (default: own)."),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, or cuda:1.")] = "cpu",
    compile: Annotated[bool, typer.Option("--compile", help="Compile with torch.compile.")] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Forget what an interrupted training has saved.")
    ] = False,
    imports: Imports = None,
    as_json: JsonFlag = False,
) -> None:
    """One trained model and its accuracy on fresh prompts, in a folder that verify, refute and
    evaluate take. Interrupted, the same command goes on. Example: train 'full*2 @ heads=1,
    head_dim=16' --task eva --n 8 --V 16
    """
    from separatrix.core.evidence.folder import check_new
    from separatrix.tasks import parse_task

    check_new(out)
    given = dict(locals())
    settings = _settings(given)
    architecture = stack(arch).spec
    asked = parse_task(with_sizes(task, context)).spec
    from separatrix.training.run import Run

    whole = {"architecture": architecture, "task": asked, "seed": 0} | settings
    run = Run.from_json(whole).canonical()
    run.check()
    where = _device(device)
    file = out.with_name(f"{out.name}.checkpoint")
    if fresh:
        _forget(file)
    trained = _trained(run, file, device=where, compile=compile, shown=not as_json)
    trained.save(out)
    file.unlink(missing_ok=True)
    if as_json:
        print_json(
            {
                "folder": str(out),
                "outcome": trained.outcome.to_json(),
                "record": trained.measurement.envelope(),
            }
        )
        return
    print_text("\n".join(_said(trained, out)))


def _forget(file: Path) -> None:
    """Removes what an interrupted training has saved. Raises OutputError."""
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{file}: cannot be removed: {error.strerror or error}") from None


def _device(device: str) -> str:
    """The device to train on. Raises EngineError for one that is not there."""
    from separatrix.training.sweeps.engines.local import devices

    return devices(device)[0]


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    """The fields of a run that were given, by name; the others have the run's own defaults."""
    from separatrix.training.run import Run

    names = [field.name for field in fields(Run) if field.name not in ("architecture", "task")]
    return {name: given[name] for name in names if given[name] is not None}


def _trained(run: Run, file: Path, *, device: str, compile: bool, shown: bool) -> Trained:
    with _live(run, file, shown) as told:
        from separatrix.training.alone import ended
        from separatrix.training.packs import Pack
        from separatrix.training.session import saved

        try:
            trainer = saved(Pack((run,)), file, device=device, compile=compile, told=told)
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


@contextmanager
def _live(run: Run, file: Path, shown: bool) -> Iterator[Callable[[Trainer], None]]:
    """What to tell of a training that goes on: a line at the foot of a terminal, a line now and
    then elsewhere.
    """
    standing = _Standing(run)
    if not shown:
        yield lambda trainer: None
        return
    if file.exists():
        print(f"train: an earlier run saved {file}", file=sys.stderr, flush=True)
    if not sys.stderr.isatty():
        said = [time.monotonic()]

        def say(trainer: Trainer) -> None:
            standing.look(trainer)
            if time.monotonic() - said[0] >= _SAY_EVERY:
                said[0] = time.monotonic()
                step = f"step {trainer.step:,} of {run.steps:,}"
                words = (step, standing.metric, standing.rate, standing.left)
                print(f"train: {'  '.join(filter(None, words))}", file=sys.stderr, flush=True)

        yield say
        return
    from rich.progress import TextColumn

    columns = [TextColumn(f"{{task.fields[{name}]}}") for name in ("done", "metric", "rate")]
    with lines(*columns, left=TextColumn("{task.fields[left]}")) as shown_lines:
        shown_lines.console.print(HINT)
        bar = shown_lines.add_task("train", total=None, done="", metric="", rate="", left="")

        def show(trainer: Trainer) -> None:
            standing.look(trainer)
            shown_lines.update(
                bar,
                completed=trainer.step,
                total=run.steps,
                done=f"{100 * trainer.step // run.steps} %",
                metric=standing.metric,
                rate=standing.rate,
                left=standing.left,
            )

        yield show


class _Standing:
    """How a training stands, in words: loss and accuracy, steps per second, time left."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.metric = ""
        self.rate = ""
        self.left = ""
        self._first: tuple[int, float] | None = None

    def look(self, trainer: Trainer) -> None:
        for metric in trainer.metrics():
            self.metric = f"loss {metric.loss:.3f}, {100 * metric.accuracy:.1f} % right"
        now = time.monotonic()
        if self._first is None:
            # the first steps take longer than the others
            self._first = (trainer.step, now)
            return
        step, begin = self._first
        if trainer.step == step:
            return
        pace = (now - begin) / (trainer.step - step)
        left = pace * (self.run.steps - trainer.step)
        if self.run.seconds:
            left = min(left, max(0.0, self.run.seconds - trainer.seconds))
        self.rate = f"{1 / pace:,.3g} steps/s" if pace > 1e-3 else f"{1 / pace:,.0f} steps/s"
        self.left = f"{clock(left)} left"


_STOPPED = {
    "solved": "solved: the running accuracy of 20 steps reached {stop_at:g}",
    "plateau": "plateau: {plateau:,} steps without progress of the running loss",
    "steps": "all steps done",
    "seconds": "its {seconds:g} seconds were over",
}


def _said(trained: Trained, out: Path) -> list[str]:
    """What came out, line by line."""
    from separatrix.cli.report.accuracies import chance, interval
    from separatrix.core.document.cells import accuracy
    from separatrix.tasks import parse_task

    run = trained.run
    outcome = trained.outcome
    task = parse_task(run.task)

    def counted(answers: tuple[int, int], correct: int, several: bool) -> str:
        among = f" of answers; {accuracy(correct, run.tested)} of prompts as a whole"
        return (
            f"{accuracy(*answers)} (95 % interval {interval(*answers, run.tested)})"
            f"{among if several else ''}"
        )

    why = _STOPPED[outcome.stopped].format(
        stop_at=run.stop_at, plateau=run.plateau, seconds=run.seconds
    )
    beyond = [
        f"{text}: {counted(outcome.longer_answers(place), outcome.longer[place], one.several)},"
        f" chance {chance(one.chance)}"
        for place, (text, one) in enumerate(zip(run.longer, run.longer_tasks, strict=True))
    ] or ["not measured; --longer n=... does"]
    place = shlex.quote(str(out))
    own = f"{outcome.correct:,} of {run.tested:,} fresh prompts"
    if task.several:
        own = f"{outcome.right:,} of {outcome.due:,} answers in {run.tested:,} fresh prompts"
    return [
        f"trained   {run.architecture}  on  {run.task}",
        f"accuracy  {counted(outcome.answers, outcome.correct, task.several)}, chance"
        f" {chance(task.chance)}: {own}",
        *(
            f"{each.format:10}{counted((each.right, each.due), each.correct, task.several)} with"
            f" states rounded to {each.format}"
            for each in outcome.formats
        ),
        *(f"{'' if number else 'larger n':10}{text}" for number, text in enumerate(beyond)),
        f"stopped   at step {outcome.steps_done:,} of {run.steps:,}, {why};"
        f" {outcome.seconds:.1f} s, {outcome.parameters:,} parameters",
        f"written   {out}",
        f"next      separatrix verify {place}",
        # what refutes has one answer to a prompt
        *([] if task.several else [f"          separatrix refute {place} --task {run.task}"]),
        f"          separatrix evaluate {place} --task {run.task}",
    ]
