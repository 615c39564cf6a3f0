"""`separatrix tasks` (list, show, sample, export) and `separatrix audit`: registered in cli.py."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated, Any

import typer

from separatrix.cli import complete
from separatrix.cli.printing import JsonFlag, console, print_description, print_json, print_rows
from separatrix.errors import SizeError, SpecError

tasks_app = typer.Typer(rich_markup_mode=None)
MOST_SHOWN = 1000
WIDE = 130
"""Columns of a terminal that has room for the whole table of tasks."""


@tasks_app.callback(invoke_without_command=True)
def tasks(
    context: typer.Context,
    markdown: Annotated[
        bool,
        typer.Option("--markdown", help="Print all of them as one Markdown page, audits included."),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """The tasks, what they ask, and their sizes."""
    if context.invoked_subcommand:
        return
    from separatrix.report.tasks import page, rows

    if markdown and as_json:
        raise SpecError("--markdown and --json are two forms of the same list; give one")
    if markdown:
        from separatrix.audits import accuracies

        typer.echo(page(accuracies), nl=False)
        return
    if as_json:
        print_json(rows())
        return
    wide = console().width >= WIDE
    print_rows(
        [row if wide else {"name": row["name"], "asks": row["asks"]} for row in rows()], False
    )
    typer.echo(
        "\n`separatrix tasks show NAME` tells sizes, sampler, chance and source of one"
        + ("" if wide else "; a wider terminal lists sizes")
    )


@tasks_app.command("show")
def tasks_show(
    name: Annotated[str, typer.Argument(autocompletion=complete.tasks)], as_json: JsonFlag = False
) -> None:
    """One task: its token table, definition, sampler, sizes from easy to hard, chance and
    source.
    """
    from separatrix.report.tasks import describe

    print_description(describe(name), as_json)


def with_sizes(text: str, more: list[str]) -> str:
    """A task text with the sizes of further arguments: ["--L", "3", "-n", "64"] or ["--L=3"]
    adds L=3,n=64. Raises SpecError for anything else.
    """
    sizes = []
    rest = list(more)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or not name:
            raise SpecError(
                f"'{word}' is no size of the task; write sizes as --n 64, or in the text:"
                f" {text.partition(':')[0]}:n=64"
            )
        if near := (
            difflib.get_close_matches(name, OPTIONS, n=1, cutoff=0.7) if len(name) > 3 else []
        ):
            raise SpecError(f"{word} is no option. Did you mean --{near[0]}?")
        if not equals:
            if not rest:
                raise SpecError(f"{word} needs a value; write --{name.rstrip('0123456789')} 64")
            value = rest.pop(0)
        sizes.append(f"{name}={value}")
    return text if not sizes else f"{text}{',' if ':' in text else ':'}{','.join(sizes)}"


OPTIONS = (
    "out",
    "format",
    "train",
    "validation",
    "test",
    "seed",
    "json",
    "number",
    "sizes",
    "fitted",
    "tested",
)
"""Options of the commands that take sizes beside them."""
SIZES = {"allow_extra_args": True, "ignore_unknown_options": True}
_TASK = "A task with sizes, in one text (seqcomp:L=2,n=64) or beside it (seqcomp --L 2 --n 64)."


@tasks_app.command("sample", context_settings=SIZES)
def tasks_sample(
    context: typer.Context,
    task: Annotated[str, typer.Argument(help=_TASK, autocompletion=complete.tasks)],
    number: Annotated[int, typer.Option("--number", min=1, max=MOST_SHOWN, help="Instances.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Seed.")] = 0,
    as_json: JsonFlag = False,
) -> None:
    """A few instances, inputs over targets."""
    import numpy as np

    from separatrix.tasks import Task
    from separatrix.tasks.text import parse_any_task

    made = parse_any_task(with_sizes(task, context.args))
    rng = np.random.default_rng(seed)
    if not isinstance(made, Task):
        items = made.sample(number, rng)
        if as_json:
            print_json([item._asdict() for item in items])
        else:
            typer.echo("\n\n".join(f"{item.prompt} {made.target(item)}" for item in items))
        return
    if made.length > 100_000:
        raise SizeError(
            f"{made.spec}: {made.length:,} tokens are too many to look at; choose smaller sizes, or"
            " export them"
        )
    tokens, targets = (part.tolist() for part in made.sample(number, rng))
    if as_json:
        print_json(
            [
                {"tokens": row, "targets" if made.several else "target": due}
                for row, due in zip(tokens, targets, strict=True)
            ]
        )
        return
    for row, due in zip(tokens, targets, strict=True):
        answers = due if made.several else [-1] * (len(row) - 1) + [due]
        shown = [
            ["." if answer < 0 else str(answer) for answer in answers],
            [str(token) for token in row],
        ]
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        for title, line in (("input ", shown[1]), ("target", shown[0])):
            typer.echo(
                f"{title}  "
                + " ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
            )


_ROWS = "Rows of this split (default: {}, for lm-eval {})."


@tasks_app.command("export", context_settings=SIZES)
def tasks_export(
    context: typer.Context,
    task: Annotated[str, typer.Argument(help=_TASK, autocompletion=complete.tasks)],
    out: Annotated[Path, typer.Option(help="The folder to make; it must not exist.")],
    format: Annotated[
        str,
        typer.Option(
            help=(
                "hf: parquet files and a card. jsonl. lm-eval: a task folder of"
                " lm-evaluation-harness."
            )
        ),
    ],
    train: Annotated[int | None, typer.Option(min=0, help=_ROWS.format("10,000", 100))] = None,
    validation: Annotated[int | None, typer.Option(min=0, help=_ROWS.format("1,000", 0))] = None,
    test: Annotated[int | None, typer.Option(min=0, help=_ROWS.format("1,000", "the same"))] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed: the same task, rows and seed give the same bytes.")
    ] = 0,
    as_json: JsonFlag = False,
) -> None:
    """Instances as files for use elsewhere, each once. Example: tasks export seqcomp --L 3 --n
    4096 --format hf --out seqcomp/
    """
    from separatrix.exports import export
    from separatrix.progress import bar
    from separatrix.tasks.text import parse_any_task

    wanted = parse_any_task(with_sizes(task, context.args))
    splits = {
        name: rows
        for name, rows in (("train", train), ("validation", validation), ("test", test))
        if rows is not None
    }
    with bar(f"exporting {wanted.spec}", shown=not as_json) as progress:
        made = export(wanted, format=format, out=out, splits=splits, seed=seed, progress=progress)
    if as_json:
        files = [str(path) for path in made.paths]
        print_json(
            {
                "task": wanted.spec,
                "format": format,
                "rows": made.rows,
                "files": files,
                "sha256": made.sha256,
            }
        )
        return
    rows = ", ".join(f"{count:,} {name}" for name, count in made.rows.items())
    typer.echo(f"{wanted.spec} as {format}: {rows}, seed {seed}")
    for path in made.paths:
        typer.echo(f"  {path}")
    typer.echo(f"sha256  {made.sha256}")


def audit_command(
    context: typer.Context,
    task: Annotated[
        str,
        typer.Argument(
            help=f"{_TASK} A bare name: the first sizes of its grid.", autocompletion=complete.tasks
        ),
    ],
    sizes: Annotated[
        int | None,
        typer.Option(
            "--sizes",
            min=1,
            max=100,
            help="How many sizes of the grid, for a bare name (default 3).",
        ),
    ] = None,
    fitted: Annotated[
        int, typer.Option(min=100, max=1_000_000, help="Instances that probes are fitted to.")
    ] = 4000,
    tested: Annotated[
        int, typer.Option(min=100, max=1_000_000, help="Other instances that they are judged on.")
    ] = 4000,
    seed: Annotated[int, typer.Option(min=0, help="Seed.")] = 0,
    as_json: JsonFlag = False,
) -> None:
    """Whether a task can be guessed: shortcuts against the level each may reach. Exit code 1 if
    one goes beyond.
    """
    from separatrix.audits import audit, audit_texts, legend, table
    from separatrix.progress import bar
    from separatrix.tasks import AUDITED
    from separatrix.tasks.text import parse_any_task

    wanted = with_sizes(task, context.args)
    if ":" in wanted and sizes is not None:
        raise SpecError(
            f"--sizes tells how many sizes of the grid to take, but {wanted} has its own; leave one"
            " of them out"
        )
    texts = audit_texts(wanted, sizes=sizes or AUDITED)
    found: list[Any] = []
    with bar(f"auditing {task}", shown=not as_json) as progress:
        for done, text in enumerate(texts):
            progress(done, len(texts))
            found.append(audit(parse_any_task(text), seed=seed, fitted=fitted, tested=tested))
    if as_json:
        print_json([one.to_json() for one in found])
    else:
        typer.echo("\n\n".join([*map(table, found), legend(found[0])]))
    if any(one.leaks for one in found):
        raise typer.Exit(1)
