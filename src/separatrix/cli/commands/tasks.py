"""`separatrix tasks` (list, show, sample, export) and `separatrix audit`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from separatrix.cli import complete
from separatrix.cli.groups import Listing
from separatrix.cli.options import SIZES, TASK_HELP, TaskText, with_sizes
from separatrix.cli.printing import (
    JsonFlag,
    print_description,
    print_json,
    print_rows,
    print_text,
    width,
)
from separatrix.core.errors import SizeError, SpecError
from separatrix.core.progress import bar

tasks_app = typer.Typer(cls=Listing, rich_markup_mode=None)
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
    from separatrix.cli.report.tasks import page, rows

    if markdown and as_json:
        raise SpecError("--markdown and --json are two forms of the same list; give one")
    if markdown:
        typer.echo(page(), nl=False)
        return
    if as_json:
        print_json(rows())
        return
    wide = width() >= WIDE
    print_rows(
        [row if wide else {"name": row["name"], "asks": row["asks"]} for row in rows()], False
    )
    more = "" if wide else "; a wider terminal lists sizes"
    print_text(f"\n`separatrix tasks NAME` tells sizes, sampler, chance and source of one{more}")


@tasks_app.command("show")
def tasks_show(
    name: Annotated[str, typer.Argument(autocompletion=complete.tasks)], as_json: JsonFlag = False
) -> None:
    """One task: its token table, definition, sampler, sizes from easy to hard, chance and
    source.
    """
    from separatrix.cli.report.parts import keyed
    from separatrix.cli.report.tasks import describe

    print_description(keyed(describe(name)), as_json)


@tasks_app.command("sample", context_settings=SIZES)
def tasks_sample(
    context: typer.Context,
    task: TaskText,
    number: Annotated[int, typer.Option("--number", min=1, max=MOST_SHOWN, help="Instances.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Seed.")] = 0,
    as_json: JsonFlag = False,
) -> None:
    """A few instances, inputs over targets."""
    import numpy as np

    from separatrix.tasks import Task, parse_any_task
    from separatrix.tasks.labels import LABELS, split_labels, token_labels

    text, labels = split_labels(with_sizes(task, context))
    made = parse_any_task(text)
    rng = np.random.default_rng(seed)
    if not isinstance(made, Task):
        if labels:
            raise SpecError(f"{made.spec}: a task in words has no token ids; leave {LABELS} out")
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
    batch = made.sample(number, rng)
    if labels:
        inputs, due = (part.tolist() for part in token_labels(made, batch))
        if as_json:
            print_json(
                [{"input_ids": row, "labels": own} for row, own in zip(inputs, due, strict=True)]
            )
        else:
            for row, own in zip(inputs, due, strict=True):
                lines = [[str(token) for token in line] for line in (row, own)]
                typer.echo(_over(("input_ids", lines[0]), ("labels", lines[1])))
        return
    tokens, targets = (part.tolist() for part in batch)
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
        shown = ["." if answer < 0 else str(answer) for answer in answers]
        typer.echo(_over(("input", [str(token) for token in row]), ("target", shown)))


def _over(*lines: tuple[str, Sequence[str]]) -> str:
    """Titled rows of words above each other, each word in the column of its position."""
    widths = [max(map(len, column)) for column in zip(*(words for _, words in lines), strict=True)]
    longest = max(len(title) for title, _ in lines)
    return "\n".join(
        f"{title:<{longest}}  "
        + " ".join(word.rjust(wide) for word, wide in zip(words, widths, strict=True))
        for title, words in lines
    )


_ROWS = "Rows of this split (default: {}, for lm-eval {})."


@tasks_app.command("export", context_settings=SIZES)
def tasks_export(
    context: typer.Context,
    task: TaskText,
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
    from separatrix.tasks import parse_any_task
    from separatrix.tasks.labels import split_labels

    text, labels = split_labels(with_sizes(task, context))
    wanted = parse_any_task(text)
    splits = {
        name: rows
        for name, rows in (("train", train), ("validation", validation), ("test", test))
        if rows is not None
    }
    with bar(f"exporting {wanted.spec}", shown=not as_json) as progress:
        from separatrix.tasks.exports import export

        made = export(
            wanted,
            format=format,
            out=out,
            splits=splits,
            seed=seed,
            progress=progress,
            labels=labels,
        )
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
            help=f"{TASK_HELP} A bare name: the first sizes of its grid.",
            autocompletion=complete.tasks,
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
    from separatrix.tasks import AUDITED, parse_any_task
    from separatrix.tasks.audits import audit, audit_texts, legend, table

    wanted = with_sizes(task, context)
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
        print_text("\n\n".join([*map(table, found), legend(found[0])]))
    if any(one.leaks for one in found):
        raise typer.Exit(1)
