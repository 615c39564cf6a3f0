"""`separatrix evaluate`: how often a model in a folder answers right, at other sizes too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from separatrix.cli import complete
from separatrix.cli.options import TASK_HELP, Imports, with_sizes
from separatrix.cli.printing import JsonFlag, print_json, print_rows, print_text
from separatrix.core.errors import SpecError
from separatrix.core.progress import bar

if TYPE_CHECKING:
    from separatrix.models.stored.accuracy import Tally
    from separatrix.tasks import Task


def evaluate(
    context: typer.Context,
    folder: Annotated[
        str, typer.Argument(help="A folder that `separatrix train` or `construct` has written.")
    ],
    task: Annotated[
        str | None,
        typer.Option(
            help=f"What to ask (default: what it was made for). {TASK_HELP}",
            autocompletion=complete.tasks,
        ),
    ] = None,
    n: Annotated[
        list[str] | None,
        typer.Option("--n", "-n", help="Sizes n to try, repeatable or with commas: --n 8,16,32."),
    ] = None,
    tested: Annotated[int, typer.Option(min=1, max=10**9, help="Fresh prompts at each size.")] = (
        2048
    ),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the prompts.")] = 0,
    imports: Imports = None,
    as_json: JsonFlag = False,
) -> None:
    """The accuracy of a trained or constructed model on fresh prompts, with its 95 % interval and
    chance beside it. Example: evaluate trained/ --task eva:n=16,V=64 --n 16,32,64
    """
    from separatrix.cli.commands.stored import from_folder, holds_model

    if not holds_model(folder):
        raise SpecError(
            f"'{folder[:200]}' is no folder that `separatrix train` or `construct` has written"
        )
    with bar("evaluating", shown=not as_json, unit=" sizes") as advance:
        from separatrix.cli.report.accuracies import chance, interval
        from separatrix.core.document.cells import accuracy
        from separatrix.core.numbers.wilson import wilson, wilson_of_answers
        from separatrix.models.stored.accuracy import evaluation_stream, reads, tally
        from separatrix.tasks import parse_task
        from separatrix.theory.trained import check_answers

        found = from_folder(folder)
        asked = parse_task(with_sizes(found.task if task is None else task, context))
        sizes = [size.strip() for text in n or () for size in text.split(",")]
        tasks = [_at(asked, size) for size in sizes] or [asked]
        for one in tasks:
            reads(found.model, parse_task(found.task), one)
        counts: list[Tally] = []
        for one in tasks:
            told = tally(found.model, one, tested, evaluation_stream(seed))
            check_answers(found.model.architecture, one, [(told.right, told.due)], tested)
            counts.append(told)
            advance(len(counts), len(tasks))
    if as_json:
        print_json(
            [
                {
                    "task": one.spec,
                    "tokens": one.length,
                    "correct": told.correct,
                    "total": tested,
                    "interval": list(wilson(told.correct, tested)),
                    "right": told.right,
                    "due": told.due,
                    "interval_of_answers": list(wilson_of_answers(told.right, told.due, tested)),
                    "bits": told.bits,
                    "chance": str(one.chance),
                    "seed": seed,
                }
                for one, told in zip(tasks, counts, strict=True)
            ]
        )
        return
    several = any(one.several for one in tasks)
    made = "trained" if found.trained else "constructed"
    print_text(f"{found.model.architecture.spec}  {made} for  {found.task}")
    print_rows(
        [
            {
                "task": one.spec,
                "tokens": f"{one.length:,}",
                "accuracy": accuracy(told.right, told.due),
                "right": f"{told.right:,} of {told.due:,}",
                "95 % interval": interval(told.right, told.due, tested),
                **({"whole prompts": accuracy(told.correct, tested)} if several else {}),
                "chance": chance(one.chance),
            }
            for one, told in zip(tasks, counts, strict=True)
        ],
        False,
    )


def _at(task: Task, size: str) -> Task:
    """The task with another n, or the same where it has that n already."""
    from separatrix.tasks.resized import resized

    return task if str(task.sizes().get("n")) == size else resized(task, f"n={size}").task
