"""`separatrix construct`, `refute` and `verify`: evidence made and evidence checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from separatrix.cli.commands.checkpoints import said_of, stock_json, write_stock
from separatrix.cli.options import Asked, command, stack
from separatrix.cli.printing import Answer, Told
from separatrix.cli.proofs import built_as, formats_named, limits_of, number_or_stock
from separatrix.core.document import Document, Line, Part
from separatrix.core.progress import bar, seconds_of

if TYPE_CHECKING:
    from separatrix.checks.verify import Checked

MOST_DESCRIBED = 9
"""Records of a file whose checks are printed one by one; of more only the kinds are counted."""


@command
def construct(asked: Asked) -> Answer:
    """Explicit weights that answer every input of the size, with a proof. Example: construct
    seqcomp:L=3,n=4096 --out model/
    """
    from separatrix.core.evidence.folder import new_folder
    from separatrix.tasks import parse_task

    wanted = parse_task(asked.task)
    held = stack(asked.arch) if asked.arch else None
    number, stock = number_or_stock(asked.format)
    unproved = asked.formats == "none"
    others = [] if unproved else formats_named(asked.formats)
    constructing = bar(f"constructing {wanted.spec}", shown=not asked.as_json)
    with new_folder(asked.out) as folder, constructing:
        from separatrix.cli.constructed import Constructed

        found = built_as(wanted, held, number, others, asked.kind, unproved=unproved)
        built = Constructed(**vars(found))
        name = built.save(folder).name
        checkpoint = write_stock(built, stock, folder) if stock else None
        data = built.to_json()
    path = asked.out / name
    extra = {"checkpoint": stock_json(checkpoint)} if checkpoint else {}
    more: list[Part] = []
    if asked.formats == "all":
        more = [Line(""), *map(Line, limits_of(built, held))]
    more += map(Line, said_of(checkpoint, asked.out) if checkpoint else ())
    shown = built.document() + Document(*more, _written(path))
    return Told({"file": str(path)} | data | extra, shown)


def _written(path: Path) -> Line:
    return Line(f"written to {path}\ncheck it: separatrix verify {path}")


@command
def refute(asked: Asked) -> Answer:
    """A concrete failure of a model: a certificate that anyone can check, or "not found in this
    budget" (which proves nothing).
    """
    from separatrix.cli.commands.stored import from_folder, holds_model
    from separatrix.cli.report.evidence import FORMS, certificate_parts
    from separatrix.core.evidence.atomic import write_atomic
    from separatrix.core.evidence.canonical import canonical
    from separatrix.core.evidence.records import Certificate
    from separatrix.core.numbers.amounts import parse_bits
    from separatrix.tasks import parse_task

    wanted = parse_task(asked.task)
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
        return Told({"found": False, "reason": str(found)}, Document(Line(str(found))), code=1)
    write_atomic(out, canonical(found.envelope()) + "\n")
    data = {"found": True, "file": str(out), "record": found.envelope()}
    parts = certificate_parts(found)
    return Told(data, Document(Line(FORMS[found.form]), *parts, _written(out)))


@command
def verify(asked: Asked) -> Answer:
    """Checks evidence without the code that found it. Exit code 1 if a claim does not hold, 2 if
    nothing can be said of it.
    """
    with bar("verifying", shown=not asked.as_json) as advance:
        from separatrix.checks.verify import verify_path

        checked = verify_path(asked.file, progress=advance, budget=asked.budget)
    data = [
        {"kind": one.record.kind, "sha256": one.record.digest, "checks": one.checks}
        for one in checked
    ]
    lines = _unchecked(checked)
    if len(checked) <= MOST_DESCRIBED:
        lines = [line for one in checked for line in _checks(one)]
    kinds = Counter(one.record.kind for one in checked)
    counted = (f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in kinds.items())
    return Told(data, Document(*map(Line, [*lines, f"holds: {', '.join(counted)}"])))


def _checks(one: Checked) -> Iterable[str]:
    record = one.record
    yield f"{record.kind} {record.digest[:12]}  {record.architecture}  on  {record.task}"
    yield from (f"  - {check}" for check in one.checks)


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
