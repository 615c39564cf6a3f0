"""`separatrix construct`, `refute` and `verify`: evidence made and evidence checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from separatrix.cli import complete
from separatrix.cli.commands.checkpoints import STOCK_HELP, said_of, stock_json, write_stock
from separatrix.cli.options import (
    IMPORTS,
    JSON,
    TASK,
    TASK_HELP,
    Asked,
    arg,
    command,
    opt,
    stack,
    with_sizes,
)
from separatrix.cli.printing import print_json, print_text, show
from separatrix.cli.proofs import (
    FORMAT_HELP,
    built_as,
    formats_named,
    limits_of,
    number_or_stock,
    print_proof,
    title_of,
)
from separatrix.core.document import Document, Line
from separatrix.core.progress import bar, seconds_of

if TYPE_CHECKING:
    from separatrix.checks.verify import Checked

MOST_DESCRIBED = 9
"""Records of a file whose checks are printed one by one; of more only the kinds are counted."""


@command(
    task=TASK,
    out=opt(Path, "New folder for the weights and the proof.", default=...),
    arch=opt(str, "Architecture to hold it (default: the smallest)."),
    kind=opt(
        str,
        "The construction (default: the first that fits) of `list constructions`.",
        autocompletion=complete.constructions,
    ),
    form=opt(str, f"{FORMAT_HELP} {STOCK_HELP}", "--format"),
    formats=opt(
        str,
        "Number formats to prove it in, too, such as fp64,bf16 (recorded); all: every one,"
        " and how far each carries; none: write the weights though nothing is proved of them.",
    ),
    imports=IMPORTS,
    as_json=JSON,
)
def construct(asked: Asked) -> None:
    """Explicit weights that answer every input of the size, with a proof. Example: construct
    seqcomp --L 3 -n 4096 --out model/
    """
    from separatrix.cli.report.meters import metered
    from separatrix.core.evidence.folder import new_folder
    from separatrix.tasks import parse_task

    wanted = parse_task(with_sizes(asked.task, asked.ctx))
    out, formats, as_json = asked.out, asked.formats, asked.as_json
    held = stack(asked.arch) if asked.arch else None
    number, stock = number_or_stock(asked.form)
    unproved = formats == "none"
    others = [] if unproved else formats_named(formats)
    with new_folder(out) as folder, bar(f"constructing {wanted.spec}", shown=not as_json):
        from separatrix.constructions import CONSTRUCTIONS

        built = built_as(wanted, held, number, others, asked.kind, unproved=unproved)
        name = built.save(folder).name
        checkpoint = write_stock(built, stock, folder) if stock else None
        meters = metered(built.model, built.record, CONSTRUCTIONS[built.record.name].theorem)
    path = out / name
    if as_json:
        extra = {"checkpoint": stock_json(checkpoint)} if checkpoint else {}
        print_json(
            {"file": str(path), "record": built.record.envelope(), "meters": meters.to_json()}
            | extra
        )
        return
    print_text(built.record.statement)
    print_proof(built.record.proof)
    for other, told in built.record.proofs.items():
        typer.echo(f"\nin {title_of(other)}")
        print_proof(told)
    if formats == "all":
        typer.echo()
        for sentence in limits_of(built, held):
            print_text(sentence)
    print_text(meters.said())
    for line in said_of(checkpoint, out) if checkpoint else ():
        print_text(line)
    typer.echo(f"written to {path}    check it: separatrix verify {path}")


@command(
    model=arg(
        str,
        "An architecture (a model of it is drawn from --seed), or a folder that"
        " `separatrix train` or `construct` has written.",
        autocompletion=complete.models,
    ),
    task=opt(
        str, f"The task it should fail. {TASK_HELP}", default=..., autocompletion=complete.tasks
    ),
    budget=opt(float, "Seconds to search.", default=60.0, min=0.1, max=86400),
    memory=opt(str, "Most memory to search in.", default="8GiB"),
    seed=opt(int, "Seed of the model and the search.", default=0, min=0),
    method=opt(
        str,
        "What to look for: collision, block_swap, two_runs (two runs of tokens that the"
        " model answers alike), wrong_answer, or auto.",
        default="auto",
    ),
    out=opt(Path, "Where the certificate goes.", default=Path("certificate.json")),
    imports=IMPORTS,
    as_json=JSON,
)
def refute(asked: Asked) -> None:
    """A concrete failure of a model: a certificate that anyone can check, or "not found in this
    budget" (which proves nothing).
    """
    from separatrix.cli.commands.stored import from_folder, holds_model
    from separatrix.core.evidence.atomic import write_atomic
    from separatrix.core.evidence.canonical import canonical
    from separatrix.core.evidence.records import Certificate
    from separatrix.core.numbers.amounts import parse_bits
    from separatrix.tasks import parse_task

    wanted = parse_task(with_sizes(asked.task, asked.ctx))
    room = parse_bits(asked.memory, what="memory") // 8
    model, out = asked.model, asked.out
    subject = from_folder(model).model if holds_model(model) else stack(model)
    with bar("searching", shown=not asked.as_json, unit=" s of the budget") as advance:
        from separatrix.checks.refute import chosen
        from separatrix.checks.refute import refute as search

        told = seconds_of(asked.budget, advance)
        found = search(
            subject,
            wanted,
            budget=asked.budget,
            seed=asked.seed,
            method=chosen(asked.method),
            memory=room,
            progress=told,
        )
    if not isinstance(found, Certificate):
        if asked.as_json:
            print_json({"found": False, "reason": str(found)})
        else:
            print_text(str(found))
        raise typer.Exit(1)
    write_atomic(out, canonical(found.envelope()) + "\n")
    if asked.as_json:
        print_json({"found": True, "file": str(out), "record": found.envelope()})
        return
    from separatrix.cli.report.evidence import FORMS, certificate_parts

    show(Document(Line(FORMS[found.form]), *certificate_parts(found)))
    typer.echo(f"written to {out}    check it: separatrix verify {out}")


@command(
    file=arg(
        Path,
        "A certificate, construction, verdict, measurement, evidence.json, or a folder with"
        " one; or a folder of `separatrix train`, whose weights are run again.",
    ),
    budget=opt(
        float,
        "Most work: 1 is about two minutes and 4 GiB, 10 ten times that.",
        default=1.0,
        min=0.000001,
        max=1e6,
    ),
    imports=IMPORTS,
    as_json=JSON,
)
def verify(asked: Asked) -> None:
    """Checks evidence without the code that found it. Exit code 1 if a claim does not hold, 2 if
    nothing can be said of it.
    """
    with bar("verifying", shown=not asked.as_json) as advance:
        from separatrix.checks.verify import verify_path

        checked = verify_path(asked.file, progress=advance, budget=asked.budget)
    if asked.as_json:
        print_json(
            [
                {"kind": one.record.kind, "sha256": one.record.digest, "checks": one.checks}
                for one in checked
            ]
        )
        return
    if len(checked) <= MOST_DESCRIBED:
        for one in checked:
            record = one.record
            print_text(
                f"{record.kind} {record.digest[:12]}  {record.architecture}  on  {record.task}"
            )
            print_text("\n".join(f"  - {check}" for check in one.checks))
    else:
        print_text("\n".join(_unchecked(checked)))
    kinds = Counter(one.record.kind for one in checked)
    counted = (f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in kinds.items())
    typer.echo(f"holds: {', '.join(counted)}")


def _unchecked(checked: Iterable[Checked]) -> list[str]:
    """What was not checked of many records: each sentence once, notes counted."""
    said: dict[str, set[str]] = {}
    for check in (check for one in checked for check in one.checks):
        what, _, rest = check.partition(": ")
        if what.startswith("not checked"):
            said.setdefault(what, set()).add(rest)
    return [
        f"{what}: {rests.pop() if len(rests) == 1 else f'{len(rests)} notes'}"
        for what, rests in said.items()
    ]
