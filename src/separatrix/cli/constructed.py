"""`sx.construct`: weights written down for texts or objects, as an answer that shows itself."""

from __future__ import annotations

from typing import Any

from separatrix.cli.asked import Shown
from separatrix.cli.report.evidence import flat, proof_parts
from separatrix.constructions import construct as build
from separatrix.constructions.parts.built import Built
from separatrix.core.document import Document, Line, Part
from separatrix.proofs.arithmetic import Arithmetic, arithmetic
from separatrix.stacks.architecture.resolve import Stack, stack_of
from separatrix.tasks import Task, task_of


class Constructed(Built, Shown):
    """Explicit weights that answer every input of the task, and the record that says why."""

    def __repr__(self) -> str:
        record = self.record
        return f"{record.name}: {record.task} by {record.architecture}"

    def document(self) -> Document:
        """What is proved of each layer."""
        parts: list[Part] = [Line(self.record.statement), Line("")]
        parts += proof_parts(self.record.proof)
        for other, told in self.record.proofs.items():
            parts += [Line(f"\nin {arithmetic(other).title}\n"), *proof_parts(told)]
        return Document(*parts)

    def to_json(self) -> dict[str, Any]:
        """What `construct --json` prints, but for the file."""
        return {"record": self.record.envelope()}

    def rows(self) -> list[dict[str, Any]]:
        """A row for each layer of the proof."""
        layers = self.record.proof.get("layers", ())
        rows = [dict(flat("", layer)) for layer in layers]
        names = dict.fromkeys(name for row in rows for name in row)
        return [{name: row.get(name) for name in names} for row in rows]


def construct(
    task: str | Task,
    architecture: Stack | None = None,
    kind: str | None = None,
    arithmetic: Arithmetic | None = None,
) -> Constructed:
    """Weights that answer every input of a task ("seqcomp:L=2,n=16"), placed in an architecture
    (default: the smallest that holds them) and proved in an arithmetic (default: float32, or the
    numbers that the stack declares). `kind` names the construction; without it the first that fits
    is built. Raises SizeError, saying what is needed, where none fits, UnknownNameError for a kind
    that is none, and what reading the texts raises.
    """
    held = None if architecture is None else stack_of(architecture)
    return Constructed(**vars(build(task_of(task), held, kind, arithmetic)))
