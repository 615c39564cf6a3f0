"""`sx.construct`: weights written down for texts or objects, as an answer that shows itself: what
they take of a stack, beside the least that the theorem behind them asks for.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any

from torch import nn

from separatrix.cli.asked import Shown
from separatrix.cli.report.evidence import flat, proof_parts
from separatrix.constructions import CONSTRUCTIONS
from separatrix.constructions import construct as build
from separatrix.constructions.parts.built import Built
from separatrix.core.document import Document, Line, Part
from separatrix.core.errors import SeparatrixError
from separatrix.core.evidence.records import Construction
from separatrix.core.numbers.first_size import first_size
from separatrix.models.model import Block, Model
from separatrix.proofs.arithmetic import Arithmetic, arithmetic
from separatrix.stacks.architecture import Architecture, Mechanism, stack
from separatrix.stacks.architecture.resolve import resolve
from separatrix.tasks import Task, parse_task
from separatrix.theory import THEOREMS
from separatrix.theory.words import counted_as

WIDEST = 256
"""Head dimensions up to which the least is looked for."""


@dataclass(frozen=True, kw_only=True)
class Least:
    """The smallest stack of this kind that the theorem lets solve the task."""

    theorem: str
    layers: int
    heads: int
    head_dim: int | None
    """None where the mechanisms have no such size."""


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
    least: Least | None
    """None where the theorem names no stack of this kind."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def said(self) -> str:
        """Two lines for people."""
        used = [
            counted_as(self.layers, "layer"),
            counted_as(self.heads, "head"),
            f"head dimension {max(self.head_dim, self.value_dim)}",
            f"residual width {self.width}",
            f"{self.nonzero:,} non-zero weights of {self.parameters:,}",
        ]
        lines = [f"takes: {', '.join(used)}"]
        if self.least is not None:
            least = [counted_as(self.least.layers, "layer"), counted_as(self.least.heads, "head")]
            if self.least.head_dim is not None:
                least.append(f"head dimension {self.least.head_dim}")
            lines.append(f"theorem {self.least.theorem}: {', '.join(least)}")
        return "\n".join(lines)


def metered(model: Model, record: Construction, theorem: str) -> Meters:
    """The meters of a construction. `theorem` is the key of the one behind it."""
    blocks = [block for block in model.blocks if isinstance(block, Block)]
    task = parse_task(record.task)
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
        least=least_stack(model.architecture, task, theorem),
    )


def least_stack(architecture: Architecture, task: Task, theorem: str) -> Least | None:
    """The least layers, then heads of one head a layer, with which the theorem calls a stack of the
    same kinds of layers SOLVABLE. Where layers differ, all of them are kept.
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
        return None
    sized = any(_has(part, "head_dim") for layer in architecture for part in layer)
    least = first_size(lambda dim: asked(layers, dim), 1, limit=WIDEST) if sized else None
    return Least(theorem=theorem, layers=layers, heads=1, head_dim=least)


def _sized(part: Mechanism, head_dim: int) -> Mechanism:
    """The mechanism with one head of so many dimensions, where it has such sizes."""
    wanted = {"heads": 1, "kv_heads": None, "head_dim": head_dim, "value_dim": head_dim}
    return replace(part, **{name: size for name, size in wanted.items() if _has(part, name)})


def _has(part: Mechanism, name: str) -> bool:
    return any(f.name == name and f.init for f in fields(part))


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
        return metered(self.model, self.record, CONSTRUCTIONS[self.record.name].theorem)

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
    architecture: str | Architecture | None = None,
    kind: str | None = None,
    arithmetic: Arithmetic | None = None,
) -> Constructed:
    """Weights that answer every input of a task ("seqcomp:L=2,n=16"), placed in an architecture
    (default: the smallest that holds them) and proved in an arithmetic (default: float32, or the
    numbers that the stack declares). `kind` names the construction; without it the first that fits
    is built. Raises SizeError, saying what is needed, where none fits, UnknownNameError for a kind
    that is none, and what reading the texts raises.
    """
    wanted = parse_task(task) if isinstance(task, str) else task
    held = resolve(architecture) if isinstance(architecture, str) else architecture
    return Constructed(**vars(build(wanted, held, kind, arithmetic)))
