"""Derives the table of constructions (builds, proves and runs each), and writes it into the package
and docs/constructions.md.

.venv/bin/python tools/constructions.py [--only NAME ...]

With --only, rows of other constructions are kept as they are recorded.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from separatrix.cli.options import PROVED
from separatrix.cli.report.constructions import FILE, KIND, NOTE, cells, recorded
from separatrix.constructions import CONSTRUCTIONS, construct
from separatrix.constructions.precision import FAMILIES, Family, largest_size
from separatrix.core.document.markdown import table
from separatrix.core.errors import CheckFailed, SeparatrixError, SizeError
from separatrix.core.evidence.canonical import canonical
from separatrix.core.evidence.folder import write_atomic
from separatrix.core.evidence.records import enveloped, to_plain
from separatrix.core.evidence.typed import typed
from separatrix.core.numbers.first_size import first_size
from separatrix.findings.running import commit
from separatrix.models.model import Block
from separatrix.proofs.arithmetic import arithmetic
from separatrix.proofs.derivations import DERIVATIONS
from separatrix.proofs.derivations.parts.derivation import all_right, at_once, logits_of
from separatrix.stacks.architecture import Architecture, Mechanism, stack
from separatrix.tasks import Task
from separatrix.tasks.base.task import Tokens
from separatrix.theory import THEOREMS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "constructions.md"
BEGIN = "<!-- written by `make constructions` -->\n"
END = "<!-- end -->\n"


AT = 64
"""The size at which stacks are described, or the largest one below it that is built."""
MOST = 1 << 20
"""The largest size tried."""
WIDEST = 256
"""Head dimensions up to which the least is looked for."""
SECONDS = 4.0
"""Processor time of one proof from which on larger sizes are not tried."""
MOST_INPUTS = 1 << 14
"""Inputs up to which every one is run."""
SMALL = {
    "match2-bits": Family("twosum:n={},M=6", "n", 1),
    "pairs": Family("twosum:n={},M=6,form=decision", "n", 1),
    "neighbour": Family("neighbour:n={},d=3,V=2", "n"),
    "recall": Family("recall:n={},K=4,V=2", "n"),
    "carried-recall": Family("recall:n={},K=4,V=2", "n"),
    "question-first": Family("recall:n={},K=3,V=2,form=last,question=first", "n", 3),
    "khop": Family("khop:n={},V=2,k=2", "n"),
    "mqar": Family("mqar:vocab_size=4,input_seq_len={},num_kv_pairs=1", "input_seq_len", 4),
    "carried-mqar": Family("mqar:vocab_size=4,input_seq_len={},num_kv_pairs=1", "input_seq_len", 4),
    "induction-recall": Family("recall:n={},K=4,V=2", "n"),
    "induction-mqar": Family(
        "mqar:vocab_size=4,input_seq_len={},num_kv_pairs=1", "input_seq_len", 4
    ),
    "induction-noisy-recall": Family("noisy-recall:n=2,noise={},K=2,V=2,N=1", "noise"),
    "induction-twosum": Family("twosum:n={},M=6", "n", 1),
}
"""Families with fewer inputs at a size, for constructions whose own have too many."""
_BATCH = 1 << 12


@dataclass(frozen=True, kw_only=True)
class Limit:
    """How far one number format carries a construction."""

    size: int | None
    """The largest size proved; None where not even the smallest is."""
    capped: bool
    """Whether no larger size was tried."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One construction, at a size at which its stack is described."""

    name: str
    theorem: str
    task: str
    architecture: str
    layers: int
    heads: int
    head_dim: int
    """The larger of what keys and values take."""
    width: int
    nonzero: int
    least_layers: int | None
    """What the theorem asks for at least; None where it names no stack of this kind."""
    least_head_dim: int | None
    exhaustive: str
    """The largest task of which every input was run; empty for none."""
    inputs: int
    grows: str
    """The size that grows, as the family names it."""
    proved: dict[str, Limit]
    """By number format."""


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """All rows, and where they come from."""

    commit: str
    command: str
    date: str
    seconds: float
    rows: tuple[Row, ...]


def read_recorded() -> Recorded:
    """What the package holds."""
    return typed(recorded(), Recorded, "recorded constructions")


def derived_row(name: str, *, most: int = MOST, seconds: float = SECONDS) -> Row:
    """The row of a construction. Takes up to minutes at the limits given."""
    family = FAMILIES[name]
    exhaustive, inputs = every_input(name, family)
    return replace(
        described_row(name, _described_at(name, family)),
        exhaustive=exhaustive,
        inputs=inputs,
        proved={one: limit(name, family, one, most=most, seconds=seconds) for one in PROVED},
    )


def described_row(name: str, task: Task) -> Row:
    """The row as far as one stack says it: nothing run, nothing looked for."""
    built = construct(task, kind=name)
    theorem = CONSTRUCTIONS[name].theorem
    sizes, parameters = built.record.sizes, list(built.model.parameters())
    blocks = [block for block in built.model.blocks if isinstance(block, Block)]
    least_layers, least_head_dim = least_stack(built.model.architecture, task, theorem)
    return Row(
        name=name,
        theorem=theorem,
        task=task.spec,
        architecture=built.record.architecture,
        layers=sum(any(bool(p.any()) for p in block.parameters()) for block in blocks),
        heads=max(_writing(mixer) for block in blocks for mixer in block.mixers),
        head_dim=max(sizes.get("head_dim", 0), sizes.get("value_dim", 0)),
        width=built.model.config.width,
        nonzero=sum(int(p.count_nonzero()) for p in parameters),
        least_layers=least_layers,
        least_head_dim=least_head_dim,
        exhaustive="",
        inputs=0,
        grows=FAMILIES[name].size,
        proved={},
    )


def _writing(mixer: nn.Module) -> int:
    """Heads of a mixer whose output map is not zero."""
    out = getattr(mixer, "o", None)
    heads = getattr(mixer, "heads", 1)
    if not isinstance(out, nn.Linear) or out.in_features % heads:
        return int(any(bool(p.any()) for p in mixer.parameters()))
    # columns of a head stand side by side
    columns = out.weight.any(0).reshape(heads, -1)
    return int(columns.any(1).sum())


def least_stack(
    architecture: Architecture, task: Task, theorem: str
) -> tuple[int | None, int | None]:
    """The least layers, and dimensions of one head in each (None where the mechanisms have no such
    size), with which the theorem calls a stack of the same kinds of layers SOLVABLE. Where layers
    differ, all of them are kept. Nothing where the theorem names no stack of this kind.
    """

    def solvable(layers: int, head_dim: int) -> bool:
        kinds = [tuple(_sized(part, head_dim) for part in layer) for layer in architecture]
        changed = stack(kinds if layers == len(kinds) else kinds[:1] * layers)
        verdict = THEOREMS[theorem].judge(changed, task)
        return verdict is not None and verdict.status == "SOLVABLE"

    def asked(layers: int, head_dim: int) -> bool:
        try:
            return solvable(layers, head_dim)
        except SeparatrixError:
            # such sizes make no stack
            return False

    count = len(architecture.layers)
    alike = len(set(architecture.layers)) == 1
    layers = next((k for k in range(1 if alike else count, count + 1) if asked(k, WIDEST)), None)
    if layers is None:
        return None, None
    sized = any(_has(part, "head_dim") for layer in architecture for part in layer)
    least = first_size(lambda dim: asked(layers, dim), 1, limit=WIDEST) if sized else None
    return layers, least


def _sized(part: Mechanism, head_dim: int) -> Mechanism:
    """The mechanism with one head of so many dimensions, where it has such sizes."""
    wanted = {"heads": 1, "kv_heads": None, "head_dim": head_dim, "value_dim": head_dim}
    return replace(part, **{name: size for name, size in wanted.items() if _has(part, name)})


def _has(part: Mechanism, name: str) -> bool:
    return any(f.name == name and f.init for f in fields(part))


def limit(name: str, family: Family, one: str, *, most: int, seconds: float) -> Limit:
    """The largest size that a format carries, among those whose proofs take no longer than that."""
    known: dict[int, bool] = {}

    def holds(size: int) -> bool:
        if size not in known:
            known[size] = proved_at(name, family, size, one)
        return known[size]

    # double until proofs take too long, and look no further than there
    end = family.least
    # the first proof of all loads modules
    holds(end)
    began = time.process_time()
    while holds(end) and end < most and time.process_time() - began <= seconds:
        end = min(2 * end, most)
        began = time.process_time()
    found = largest_size(holds, family.least, end)
    return Limit(size=found, capped=found == end)


def proved_at(name: str, family: Family, size: int, one: str) -> bool:
    """Whether weights of a size are built and proved in a number format."""
    try:
        construct(family.task(size), None, name, arithmetic(one))
    except (SizeError, CheckFailed):
        return False
    return True


def every_input(name: str, family: Family) -> tuple[str, int]:
    """The largest task of the family of which every input was run, and how many those are. Raises
    CheckFailed where one is answered wrongly.
    """
    best = ("", 0)
    few = SMALL.get(name, family)
    for size in range(few.least, few.least + AT):
        try:
            task = few.task(size)
            ids = DERIVATIONS[name].ids(task)
            if prod(ids) > MOST_INPUTS:
                break
            model = construct(task, kind=name).model
        except SizeError:
            # some sizes are none of the task's
            continue
        number = 0
        for tokens in all_inputs(name, task):
            all_right(logits_of(model), task, tokens, at_once(model, task), "")
            number += len(tokens)
        best = (task.spec, number)
    return best


def all_inputs(name: str, task: Task) -> Iterator[Tokens]:
    """Every input that a construction is about, in batches."""
    derivation = DERIVATIONS[name]
    ids = derivation.ids(task)
    for start in range(0, prod(ids), _BATCH):
        numbers = np.arange(start, min(start + _BATCH, prod(ids)))
        tokens = np.stack(np.unravel_index(numbers, ids), -1).astype(np.int64)
        some = tokens if derivation.asked is None else tokens[derivation.asked(task, tokens)]
        if len(some):
            yield some


def _described_at(name: str, family: Family) -> Task:
    """The task at the size at which the stack is described."""
    for size in range(max(AT, family.least), family.least - 1, -1):
        if proved_at(name, family, size, "fp32"):
            return family.task(size)
    raise SizeError(f"{name}: no size up to {AT} is proved in float32")


def page(text: str) -> str:
    """The page with what stands between the marks written anew."""
    if BEGIN not in text or END not in text:
        raise SystemExit(f"error: {PAGE.name} lacks the lines {BEGIN.strip()} and {END.strip()}")
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{recorded_table()}\n{END}{rest.partition(END)[2]}"


def recorded_table() -> str:
    """The recorded table, its legend and where it comes from, as docs/constructions.md has it."""
    there = recorded()
    made = (
        f"Derived by `{there['command']}` at commit {there['commit'][:12]}, {there['date']}."
        " A test derives rows again."
    )
    rows = cells()
    lines = [list(row.values()) for row in rows]
    return f"{table(list(rows[0]), lines)}\n\n{NOTE}\n\n{made}\n"


def text_of(found: Recorded) -> str:
    """The content of the file: a row a line, so that a change shows what changed."""
    envelope = enveloped(KIND, to_plain(asdict(found)))
    body = envelope.pop("body")
    rows = ",\n".join(canonical(row) for row in body.pop("rows"))
    return f'{{"body": {{{_inside(body)}, "rows": [\n{rows}\n]}}, {_inside(envelope)}}}\n'


def _inside(fields: dict[str, Any]) -> str:
    """An object as JSON, without its braces."""
    return json.dumps(fields, sort_keys=True)[1:-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", nargs="*", choices=list(CONSTRUCTIONS), default=None)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="most time of a proof")
    parser.add_argument("--most", type=int, default=MOST, help="the largest size tried")
    parser.add_argument("--page", action="store_true", help="write the page alone")
    options = parser.parse_args()
    wanted = [] if options.page else options.only or list(CONSTRUCTIONS)
    kept = {row.name: row for row in read_recorded().rows} if FILE.exists() else {}
    began = time.process_time()
    for name in wanted:
        print(f"{name} ...", flush=True)
        kept[name] = derived_row(name, most=options.most, seconds=options.seconds)
    if wanted:
        recorded = Recorded(
            commit=commit(),
            command="make constructions",
            date=f"{datetime.now(UTC):%Y-%m-%d}",
            seconds=round(time.process_time() - began, 1),
            rows=tuple(kept[name] for name in CONSTRUCTIONS if name in kept),
        )
        write_atomic(FILE, text_of(recorded))
    write_atomic(PAGE, page(PAGE.read_text(encoding="utf-8")))


if __name__ == "__main__":
    try:
        main()
    except SeparatrixError as error:
        sys.exit(f"error: {error}")
