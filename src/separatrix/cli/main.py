"""The command line: parse, call, print. Exit codes: 0 fine, 1 a check failed, 2 bad input (one
line on stderr), 130 interrupted.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
import typer
import typer.core

from separatrix import __version__
from separatrix.cli import complete, design
from separatrix.cli.design import DEFAULT_CONTEXT
from separatrix.cli.mechanisms import Imports, check_mechanism, mechanisms_app
from separatrix.cli.printing import JsonFlag, console, print_description, print_json, print_rows
from separatrix.cli.tasks import SIZES, audit_command, tasks_app
from separatrix.errors import CheckFailed, SeparatrixError

if TYPE_CHECKING:
    from separatrix.tasks import Task

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
theorems_app = typer.Typer(rich_markup_mode=None)
app.add_typer(theorems_app, name="theorems", help="The theorems; `theorems show III` explains one.")
app.add_typer(
    tasks_app,
    name="tasks",
    help=(
        "The tasks; `tasks show eva` explains one, `tasks sample eva:n=8` draws some, `tasks"
        " export` writes them as files."
    ),
)
app.add_typer(
    mechanisms_app, name="mechanisms", help="The token mixers; `mechanisms show gdn` explains one."
)

INTERRUPTED = 130
typer.core.HAS_RICH = False  # with it typer escapes the brackets of its plain help, too


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"separatrix {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version."
        ),
    ] = False,
) -> None:
    """What a stack of full, linear, log-linear, sparse or hybrid attention provably cannot compute,
    what it provably can, and where training ends up in between.
    """


@app.command()
def reproduce(
    out: Annotated[Path, typer.Option(help="Folder for report.html and evidence.json.")] = Path(
        "report"
    ),
    quick: Annotated[
        bool, typer.Option("--quick", help="Smaller sizes, one seed: under 3 minutes on 2 cores.")
    ] = False,
    config: Annotated[
        list[str] | None,
        typer.Option(
            help="Real models to add: config.json files or presets (default: three presets).",
            autocompletion=complete.models,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Processes.")] = 2,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Forget what an interrupted run has saved.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """The paper's table of results with evidence in every cell: report.html and evidence.json.
    Interrupted, the same command resumes.
    """
    from separatrix.reproduce import Effort, reproduce_table

    body = reproduce_table(
        Effort(quick=quick, seed=seed),
        out,
        models=config,
        workers=workers,
        fresh=fresh,
        show=not as_json,
    )
    if as_json:
        print_json(
            {
                "report": str(out / "report.html"),
                "evidence": str(out / "evidence.json"),
                "cells": body["cells"],
            }
        )
        return
    from separatrix.report.terminal import render_terminal

    console().print(render_terminal(body))
    typer.echo(
        f"report    {out / 'report.html'}\nevidence  {out / 'evidence.json'}    check it:"
        f" separatrix verify {out / 'evidence.json'}"
    )


@app.command()
def analyze(
    model: Annotated[
        str,
        typer.Argument(
            help=(
                "A preset, a config.json or its folder, or a spec such as '(gdn*3 + full)*12 @"
                " heads=16, bf16'."
            ),
            autocompletion=complete.models,
        ),
    ],
    context: Annotated[
        str | None,
        typer.Option(help="Tokens of context, 1 to 10^12 (default: the model's own, else 8192)."),
    ] = None,
    sizes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help=(
                "A size by hand, repeatable: mamba2.state=128, dtype=bf16, vocabulary=32000. Wins"
                " over the file."
            ),
        ),
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option(
            help="The stack of a config.json that does not say it, such as '(mamba2*7 + full)*4'."
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Two sentences of plain English with every verdict.")
    ] = False,
    imports: Imports = None,
    as_json: JsonFlag = False,
) -> None:
    """The capability card of a model: what it carries, what provably fails and from which n,
    what is provably solvable.
    """
    from separatrix.architecture.outline import UnknownSizes
    from separatrix.architecture.resolve import resolve
    from separatrix.architecture.settings import Settings
    from separatrix.numbers.amounts import parse_context

    wanted = None if context is None else parse_context(context)
    try:
        architecture = resolve(model, settings=Settings.parse(sizes or ()), pattern=pattern)
    except UnknownSizes as error:
        from separatrix.report.outline import outline_json, render_outline

        tokens = wanted or error.outline.context or DEFAULT_CONTEXT
        if as_json:
            print_json(outline_json(error.outline, tokens))
        else:
            console().print(render_outline(error.outline, tokens))
        return
    from separatrix.report.card import card_json, render_card

    tokens = wanted or architecture.context or DEFAULT_CONTEXT
    if as_json:
        print_json(card_json(architecture, tokens))
    else:
        console().print(render_card(architecture, tokens, explain=explain))


app.command("check-mechanism")(check_mechanism)
app.command("audit", context_settings=SIZES)(audit_command)
app.command()(design.compare)
app.command()(design.design)


@app.command()
def construct(
    task: Annotated[
        str,
        typer.Argument(
            help="A task: eva, seqcomp, twosum, or with sizes: seqcomp:L=3,m=8,n_1=4,n_2=2.",
            autocompletion=complete.tasks,
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the weights and the proof.")],
    n: Annotated[int | None, typer.Option("-n", help="Size n of the task.")] = None,
    steps: Annotated[
        int | None, typer.Option("--L", help="Composition steps L of seqcomp.")
    ] = None,
    values: Annotated[
        int | None, typer.Option("-V", help="Number of values V of eva (default n).")
    ] = None,
    modulus: Annotated[int | None, typer.Option("-M", help="Modulus M of twosum.")] = None,
    arch: Annotated[
        str | None, typer.Option(help="Architecture to hold it (default: the smallest).")
    ] = None,
    imports: Imports = None,
    as_json: JsonFlag = False,
) -> None:
    """Explicit weights that answer every input of the size, with a proof. Example: construct
    seqcomp --L 3 -n 4096 --out model/
    """
    from separatrix.architecture.resolve import resolve
    from separatrix.constructions import construct as build_construction

    wanted = _task(task, n=n, L=steps, V=values, M=modulus)
    built = build_construction(wanted, resolve(arch) if arch else None)
    path = built.save(out)
    if as_json:
        print_json({"file": str(path), "record": built.record.envelope()})
        return
    typer.echo(built.record.statement)
    proof = dict(built.record.proof)
    layers = proof.pop("layers")
    print_rows(
        [
            {key.replace("_", " "): _brief(value) for key, value in layer.items()}
            for layer in layers
        ],
        False,
    )
    for key, value in proof.items():
        typer.echo(f"{key.replace('_', ' ')}: {value}")
    typer.echo(f"written to {path}    check it: separatrix verify {path}")


@app.command()
def refute(
    model: Annotated[
        str,
        typer.Argument(
            help="An architecture (a model of it is drawn from --seed).",
            autocompletion=complete.models,
        ),
    ],
    task: Annotated[
        str,
        typer.Option(
            help="The task it should fail: eva, seqcomp:L=2,m=4,n_1=1, twosum:n=8,M=16 ...",
            autocompletion=complete.tasks,
        ),
    ],
    n: Annotated[int | None, typer.Option("-n", help="Size n of the task.")] = None,
    steps: Annotated[
        int | None, typer.Option("--L", help="Composition steps L of seqcomp.")
    ] = None,
    values: Annotated[
        int | None, typer.Option("-V", help="Number of values V of eva (default n).")
    ] = None,
    modulus: Annotated[int | None, typer.Option("-M", help="Modulus M of twosum.")] = None,
    budget: Annotated[float, typer.Option(min=0.1, max=86400, help="Seconds to search.")] = 60.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the model and the search.")] = 0,
    out: Annotated[Path, typer.Option(help="Where the certificate goes.")] = Path(
        "certificate.json"
    ),
    imports: Imports = None,
    as_json: JsonFlag = False,
) -> None:
    """A concrete failure of a model: a certificate that anyone can check, or "not found in this
    budget" (which proves nothing).
    """
    from separatrix.architecture.resolve import resolve
    from separatrix.evidence.atomic import write_atomic
    from separatrix.evidence.canonical import canonical
    from separatrix.evidence.records import Certificate
    from separatrix.searches import refute as search

    wanted = _task(task, n=n, L=steps, V=values, M=modulus)
    found = search(resolve(model), wanted, budget=budget, seed=seed)
    if not isinstance(found, Certificate):
        if as_json:
            print_json({"found": False, "reason": str(found)})
        else:
            typer.echo(str(found))
        raise typer.Exit(1)
    write_atomic(out, canonical(found.envelope()) + "\n")
    if as_json:
        print_json({"found": True, "file": str(out), "record": found.envelope()})
        return
    from separatrix.report.certificate import describe_certificate

    typer.echo(describe_certificate(found))
    typer.echo(f"written to {out}    check it: separatrix verify {out}")


@app.command()
def verify(
    file: Annotated[
        Path,
        typer.Argument(
            help=(
                "A certificate, construction, verdict, measurement, evidence.json, or a folder with"
                " one."
            )
        ),
    ],
    imports: Imports = None,
    as_json: JsonFlag = False,
) -> None:
    """Checks evidence without the code that found it. Exit code 1 if a claim does not hold."""
    from separatrix.checks import verify_path
    from separatrix.errors import EvidenceError
    from separatrix.progress import bar

    if not file.exists():
        raise EvidenceError(f"{file}: there is no such file or folder")
    with bar("verify", shown=not as_json) as advance:
        checked = verify_path(file, progress=advance)
    if as_json:
        print_json(
            [
                {"kind": c.record.kind, "sha256": c.record.digest, "checks": c.checks}
                for c in checked
            ]
        )
        return
    for item in checked if len(checked) < 10 else []:
        typer.echo(
            f"{item.record.kind} {item.record.digest[:12]}  {item.record.architecture}  on "
            f" {item.record.task}"
        )
        for check in item.checks:
            typer.echo(f"  - {check}")
    kinds = {
        kind: sum(c.record.kind == kind for c in checked)
        for kind in dict.fromkeys(c.record.kind for c in checked)
    }
    typer.echo(
        "holds: "
        + ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in kinds.items())
    )


@app.command()
def presets(as_json: JsonFlag = False) -> None:
    """Released models known by name."""
    from separatrix.architecture.presets import PRESETS, preset
    from separatrix.report.card import layers_text

    models = {name: preset(name) for name in PRESETS}
    if as_json:
        print_json(
            [
                {
                    "name": name,
                    "layers": len(model),
                    "spec": model.spec,
                    "source": PRESETS[name]["source"],
                }
                for name, model in models.items()
            ]
        )
        return
    print_rows(
        [
            {"name": name, "layers": layers_text(model), "source": PRESETS[name]["source"]}
            for name, model in models.items()
        ],
        False,
    )


@theorems_app.callback(invoke_without_command=True)
def theorems(context: typer.Context, as_json: JsonFlag = False) -> None:
    """The theorems that `analyze` and `reproduce` apply, further known statements, and the
    counts behind Theorem I.
    """
    if context.invoked_subcommand:
        return
    from separatrix.report.listing import list_theorems

    print_rows(list_theorems(), as_json)


@theorems_app.command("show")
def theorems_show(
    key: Annotated[str, typer.Argument(autocompletion=complete.theorems)], as_json: JsonFlag = False
) -> None:
    """One theorem: statement, premises, source, sketch of the proof."""
    from separatrix.report.listing import describe_theorem

    print_description(describe_theorem(key), as_json)


def _task(text: str, **sizes: int | None) -> Task:
    """The task of a text plus sizes given as options; an option repeats no size of the text."""
    from separatrix.tasks import parse_task

    given = [f"{key}={value}" for key, value in sizes.items() if value is not None]
    return parse_task(
        text if not given else f"{text}{',' if ':' in text else ':'}{','.join(given)}"
    )


def _brief(value: object) -> str:
    """A number of a proof with three digits, for people; the file holds all of them."""
    text = str(value)
    return (
        f"{float(text):.2e}"
        if len(text) > 8 and text.replace(".", "").replace("e-", "").isdigit()
        else text
    )


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; a user's mistake becomes one line on stderr."""
    try:
        code = (
            app(
                args=None if arguments is None else list(arguments),
                standalone_mode=False,
                prog_name="separatrix",
            )
            or 0
        )
    except SeparatrixError as error:
        return _fail(str(error), 1 if isinstance(error, CheckFailed) else 2)
    except click.exceptions.NoArgsIsHelpError as error:
        typer.echo(error.format_message())
        return 0
    except click.ClickException as error:
        message = error.format_message()
        message = re.sub(r" \(env var: 'None'\)", "", " ".join(message.split()))
        return _fail(f"{message} `separatrix --help` lists the commands.", 2)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "allocate memory" not in str(error):
            raise
        return _fail(
            "these sizes need more memory than there is; use a smaller n, fewer heads or a smaller"
            " batch",
            2,
        )
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    if code == INTERRUPTED:  # typer turns Ctrl-C into this exit code
        print("interrupted; nothing is half-written", file=sys.stderr)
    return code


def _fail(message: str, code: int) -> int:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    return code


def main() -> None:
    sys.exit(run())
