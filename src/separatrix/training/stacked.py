"""The parameters of several models of one shape as one matrix, a row for each model.

A gradient is then one tensor too, so that a step of an optimiser is a handful of operations however
many parameters a model has.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import torch
from torch import Tensor, nn

from separatrix.models.model import Model


@dataclass(frozen=True)
class Matrices:
    """Hidden matrices of one shape that stand one after another in a row."""

    start: int
    count: int
    rows: int
    columns: int

    @property
    def end(self) -> int:
        return self.start + self.count * self.rows * self.columns

    def before(self, start: int) -> Matrices:
        """Those in rows whose first `start` numbers are left out."""
        return replace(self, start=self.start - start)

    def of(self, flat: Tensor) -> Tensor:
        """Those of rows (members, numbers): (members, count, rows, columns)."""
        return flat[:, self.start : self.end].unflatten(1, (self.count, self.rows, self.columns))


@dataclass(frozen=True)
class Layout:
    """Where each parameter stands in a row: first those that decay, then vectors, which do not,
    then the hidden matrices, those of one shape together.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    decayed: int
    """Numbers of embeddings, head and the like."""
    plain: int
    """Where the hidden matrices begin."""
    matrices: tuple[Matrices, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(prod(shape) for shape in self.shapes)

    @property
    def numbers(self) -> int:
        return sum(self.sizes)

    def views(self, rows: Tensor) -> dict[str, Tensor]:
        """The parameters in rows (..., numbers), by name."""
        parts = rows.split(self.sizes, -1)
        named = zip(self.names, parts, self.shapes, strict=True)
        return {name: part.unflatten(-1, shape) for name, part, shape in named}

    def row(self, model: nn.Module) -> Tensor:
        """The parameters of a model, as a row."""
        own = dict(model.named_parameters())
        return torch.cat([own[name].detach().reshape(-1) for name in self.names])

    @torch.no_grad()
    def write(self, row: Tensor, model: nn.Module) -> None:
        """Inverse of `row`."""
        own = dict(model.named_parameters())
        for name, part in self.views(row).items():
            own[name].copy_(part)


def layout(model: Model, *, muon: bool) -> Layout:
    """The layout of a model's parameters. Hidden matrices are the linear maps of its blocks; all
    else, and without `muon` everything, is for AdamW.
    """
    maps = {
        f"{name}.weight"
        for name, part in model.named_modules()
        if muon and name.startswith("blocks.") and isinstance(part, nn.Linear)
    }
    own = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    hidden: dict[tuple[int, ...], list[str]] = {}
    for name in own:
        if name in maps:
            hidden.setdefault(own[name], []).append(name)
    rest = [name for name in own if name not in maps]
    decayed = [name for name in rest if len(own[name]) >= 2]
    vectors = [name for name in rest if len(own[name]) < 2]
    start = plain = sum(prod(own[name]) for name in rest)
    matrices: list[Matrices] = []
    for (rows, columns), names in hidden.items():
        matrices.append(Matrices(start, len(names), rows, columns))
        start = matrices[-1].end
    names = (*decayed, *vectors, *(name for names in hidden.values() for name in names))
    return Layout(
        names=names,
        shapes=tuple(own[name] for name in names),
        decayed=sum(prod(own[name]) for name in decayed),
        plain=plain,
        matrices=tuple(matrices),
    )
