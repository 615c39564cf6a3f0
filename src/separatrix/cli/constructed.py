"""`sx.construct`: weights written down for texts or objects, as an answer that shows itself,
and what they take of a stack.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from torch import nn

from separatrix.cli.asked import Shown, Stack, stack_of, task_of
from separatrix.cli.report.evidence import flat, proof_parts
from separatrix.constructions import construct as build
from separatrix.constructions.parts.built import Built
from separatrix.core.document import Document, Line, Part
from separatrix.core.evidence.records import Construction
from separatrix.models.model import Block, Model
from separatrix.proofs.arithmetic import Arithmetic, arithmetic
from separatrix.tasks import Task
from separatrix.theory.words import counted_as


@dataclass(frozen=True, kw_only=True)
class Meters:
    """How much of a stack a construction uses."""

    layers: int
    """Layers in which a mixer or an MLP writes."""
    heads: int
    """Heads that write, in the layer with the most of them."""
    head_dim: int
    """Dimensions of keys that are used, and `value_dim` of values."""
    value_dim: int
    width: int
    hidden: int
    parameters: int
    nonzero: int
    """Parameters that are not zero."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def said(self) -> str:
        """The same in a line."""
        used = [
            counted_as(self.layers, "layer"),
            counted_as(self.heads, "head"),
            f"head dimension {max(self.head_dim, self.value_dim)}",
            f"residual width {self.width}",
            f"{self.nonzero:,} non-zero weights of {self.parameters:,}",
        ]
        return f"takes: {', '.join(used)}"


def metered(model: Model, record: Construction) -> Meters:
    """The meters of a construction."""
    blocks = [block for block in model.blocks if isinstance(block, Block)]
    parameters = list(model.parameters())
    return Meters(
        layers=sum(any(bool(p.any()) for p in block.parameters()) for block in blocks),
        heads=max(_writing(mixer) for block in blocks for mixer in block.mixers),
        head_dim=record.sizes.get("head_dim", 0),
        value_dim=record.sizes.get("value_dim", 0),
        width=model.config.width,
        hidden=model.config.hidden,
        parameters=sum(p.numel() for p in parameters),
        nonzero=sum(int(p.count_nonzero()) for p in parameters),
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


class Constructed(Built, Shown):
    """Explicit weights that answer every input of the task, and the record that says why."""

    def __repr__(self) -> str:
        record = self.record
        return f"{record.name}: {record.task} by {record.architecture}"

    @cached_property
    def meters(self) -> Meters:
        """What it takes of its stack."""
        return metered(self.model, self.record)

    def document(self) -> Document:
        """What is proved of each layer, and what the weights take."""
        parts: list[Part] = [Line(self.record.statement), Line("")]
        parts += proof_parts(self.record.proof)
        for other, told in self.record.proofs.items():
            parts += [Line(f"\nin {arithmetic(other).title}\n"), *proof_parts(told)]
        return Document(*parts, Line(self.meters.said()))

    def to_json(self) -> dict[str, Any]:
        """What `construct --json` prints, but for the file."""
        return {"record": self.record.envelope(), "meters": self.meters.to_json()}

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
