"""What a construction takes of a stack, beside the least that the theorem behind it asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from torch import nn

from separatrix.core.errors import SeparatrixError
from separatrix.core.evidence.records import Construction
from separatrix.models.model import Block, Model
from separatrix.stacks.architecture import Architecture, Mechanism, stack
from separatrix.tasks import Task, parse_task
from separatrix.theory import THEOREMS

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
            _counted(self.layers, "layer"),
            _counted(self.heads, "head"),
            f"head dimension {max(self.head_dim, self.value_dim)}",
            f"residual width {self.width}",
            f"{self.nonzero:,} non-zero weights of {self.parameters:,}",
        ]
        lines = [f"takes: {', '.join(used)}"]
        if self.least is not None:
            least = [_counted(self.least.layers, "layer"), _counted(self.least.heads, "head")]
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
    least = _first(lambda dim: asked(layers, dim)) if sized else None
    return Least(theorem=theorem, layers=layers, heads=1, head_dim=least)


def _first(holds: Callable[[int], bool]) -> int:
    """The smallest head dimension that suffices, where any larger one does."""
    low, high = 0, WIDEST
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high


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


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"
