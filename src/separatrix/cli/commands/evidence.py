"""`separatrix construct`, `refute` and `verify`: evidence made and evidence checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from separatrix.cli.options import PROVED, Asked, command, formats_named
from separatrix.cli.printing import Answer, Told
from separatrix.cli.report.evidence import FORMS, certificate_parts
from separatrix.core.document import Document, Line
from separatrix.core.errors import SizeError, SpecError, UnknownNameError
from separatrix.core.evidence.canonical import canonical
from separatrix.core.evidence.folder import check_new, new_folder, write_atomic
from separatrix.core.evidence.records import Certificate
from separatrix.core.numbers.amounts import parse_bits
from separatrix.core.numbers.formats import NumberFormat
from separatrix.core.progress import bar, seconds_of
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.resolve import resolve
from separatrix.tasks import Task, parse_task

if TYPE_CHECKING:
    from separatrix.checks.verify import Checked
    from separatrix.constructions import Built
    from separatrix.models.model import Model
    from separatrix.models.stock import Checkpoint

MOST_DESCRIBED = 9
"""Records of a file whose checks are printed one by one; of more only the kinds are counted."""

STOCK_NAMES = ("gpt2", "llama")
"""Those of `separatrix.models.stock.STOCK`, known without torch."""


@command
def construct(asked: Asked) -> Answer:
    """Explicit weights that answer every input of the size, with a proof. Example: construct
    seqcomp:L=3,n=4096 --out model/
    """
    wanted = parse_task(asked.task)
    held = resolve(asked.arch) if asked.arch else None
    number, stock = number_or_stock(asked.format)
    unproved = asked.formats == "none"
    others = [] if unproved or asked.formats is None else formats_named(asked.formats)
    constructing = bar(f"constructing {wanted.spec}", shown=not asked.as_json)
    with new_folder(asked.out) as folder, constructing:
        from separatrix.cli.constructed import Constructed

        found = built_as(wanted, held, number, others, asked.kind, unproved=unproved)
        built = Constructed(**vars(found))
        name = built.save(folder).name
        checkpoint = write_stock(built, stock, folder) if stock else None
        data = {"file": str(asked.out / name)} | built.to_json()
    said: list[str] = []
    if checkpoint:
        start, remarks = checkpoint.start, list(checkpoint.remarks)
        data["checkpoint"] = {"model_type": checkpoint.name, "start": start, "remarks": remarks}
        prompt = "" if start is None else f"; every prompt begins with the id {start}"
        said.append(
            f"{checkpoint.name}: AutoModelForCausalLM.from_pretrained({str(asked.out)!r}) loads it"
            f" without any code of ours{prompt}"
        )
        said += [f"  {remark}" for remark in remarks]
    return Told(data, built.document() + Document(*map(Line, said), _written(asked.out / name)))


def _written(path: Path) -> Line:
    return Line(f"written to {path}\ncheck it: separatrix verify {path}")


def number_or_stock(text: str | None) -> tuple[str | None, str | None]:
    """A number format or a stock architecture, as --format names them. Raises UnknownNameError."""
    if text is None or text in STOCK_NAMES:
        return None, text
    try:
        return NumberFormat(text).name, None
    except SpecError:
        known = (*PROVED, "pN", *STOCK_NAMES)
        raise UnknownNameError.of("format", text[:60], known) from None


def built_as(
    task: Task,
    architecture: Architecture | None,
    number: str | None,
    others: list[str],
    kind: str | None = None,
    *,
    unproved: bool,
) -> Built:
    """The construction in a number format, with its proofs in others. Raises SizeError, with the
    largest size that is proved, for one that is not.
    """
    from separatrix.constructions import construct
    from separatrix.constructions.parts.built import proved_in
    from separatrix.constructions.precision import limit_below
    from separatrix.proofs.arithmetic import FP32, arithmetic

    wanted = None if number is None else arithmetic(number)
    if unproved:
        return construct(task, architecture, kind, (wanted or FP32).unproved)
    try:
        return proved_in(construct(task, architecture, kind, wanted), others)
    except SizeError as error:
        found = limit_below(task, architecture, kind, wanted)
        if found is None:
            raise
        title = (wanted or FP32).title
        least = "at least " * found.capped
        raise SizeError(
            f"{error} (the largest {found.size} proved in {title}, all else the same, is"
            f" {least}{found.n:,}; --formats none proves nothing and writes what has room)"
        ) from None


def write_stock(built: Built, name: str, folder: Path) -> Checkpoint:
    """Writes the checkpoint beside the record, in place of the model's own config.json. Raises
    SizeError, naming the feature in the way, and OutputError.
    """
    from separatrix.models.stock import stock_checkpoint

    if built.record.format:
        raise SizeError(
            f"{name}: the proof is about {built.record.format}; a checkpoint of a stock"
            " architecture is written, and computes, in float32"
        )
    checkpoint = stock_checkpoint(built.model, name)
    checkpoint.save(folder)
    return checkpoint


@command
def refute(asked: Asked) -> Answer:
    """A concrete failure of a model: a certificate that anyone can check, or "not found in this
    budget" (which proves nothing).
    """
    wanted = parse_task(asked.task)
    room = parse_bits(asked.memory, what="--memory") // 8
    model, out = asked.model, asked.out
    # told before the search
    check_new(out)
    subject = from_folder(model).model if holds_model(model) else resolve(model)
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
        from separatrix.cli.report.html import verify_path

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


CONSTRUCTED = "construction.json"


@dataclass(frozen=True, kw_only=True)
class FromFolder:
    """A model, and the task that it was made for."""

    model: Model
    task: str
    trained: bool


def holds_model(text: str) -> bool:
    """Whether a text names a folder with a model of this program."""
    from separatrix.models.stored.trained import is_trained

    folder = Path(text).expanduser()
    try:
        return folder.is_dir() and (is_trained(folder) or (folder / CONSTRUCTED).exists())
    except (OSError, ValueError):
        # a spec may be no path at all
        return False


def from_folder(text: str) -> FromFolder:
    """The model in a folder. Raises EvidenceError for one that is damaged, edited or half there."""
    from separatrix.models.stored.trained import is_trained, read_stored

    folder = Path(text).expanduser()
    if is_trained(folder):
        stored = read_stored(folder)
        return FromFolder(model=stored.model(), task=stored.record.task, trained=True)
    from separatrix.constructions import load

    record, model = load(folder)
    return FromFolder(model=model, task=record.task, trained=False)
