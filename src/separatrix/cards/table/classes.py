"""The rows and columns of the table, and the one size that all stacks of a column share.

Rows and columns, and the paper's entries, are those of [Ye26] (theory.md, section 8). In a column
every stack has the same layers, heads, head dimension and width: what differs is the mechanism.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from separatrix.stacks.architecture import Architecture

ROWS = {
    "full": "full attention",
    "linear": "linear attention",
    "loglinear": "log-linear attention",
    "sparse": "(B, k)-sparse attention",
    "hybrid": "hybrid",
}
WIDTH = 32
HIDDEN = 64
"""Hidden units of every MLP, but for rows whose mixers have parameters of their own."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """A task, and the size of the stacks that are compared on it."""

    title: str
    task: str
    """The task's text at a size, with "{n}" and "{four_n}" to be filled in."""
    layers: int
    heads: int
    head_dim: int
    block: int
    """Tokens in a block of the sparse row; one block is opened."""
    at: int
    """The size at which stacks are judged first, and for which solving weights are written."""
    batch: int
    optimiser: Literal["muon", "adamw"]
    """The one with which more seeds solved the column's task, measured at the rate of all."""
    hidden: Mapping[str, int]
    """Hidden units of the MLPs of those rows whose mixers have weights of their own: for levels,
    or for places in a block.
    """

    def task_at(self, size: int) -> str:
        return self.task.format(n=size, four_n=4 * size)

    @property
    def size_class(self) -> str:
        """What the stacks of the column share, in words."""
        layers = "1 layer" if self.layers == 1 else f"{self.layers} layers"
        heads = "1 head" if self.heads == 1 else f"{self.heads} heads"
        return f"{layers} of {heads} of {self.head_dim} dimensions, width {WIDTH}"


COLUMNS = {
    "eva": Column(
        title="Eva",
        task="eva:n={n},V={n}",
        layers=1,
        heads=2,
        head_dim=12,
        block=8,
        at=1024,
        batch=128,
        optimiser="muon",
        hidden={"loglinear": 32},
    ),
    "twosum": Column(
        title="2-Sum",
        task="twosum:n={n},M={four_n},form=query",
        layers=1,
        heads=2,
        head_dim=3,
        block=64,
        at=576,
        batch=256,
        optimiser="adamw",
        hidden={"loglinear": 32, "sparse": 62},
    ),
    "seqcomp": Column(
        title="L-SeqComp",
        task="seqcomp:L=2,m={n},n_1=1",
        layers=3,
        heads=1,
        head_dim=7,
        block=8,
        at=16,
        batch=128,
        optimiser="muon",
        hidden={"loglinear": 48},
    ),
}


def stack(row: str, column: Column) -> str:
    """The canonical spec of a row's stack in a column. The hybrid has one full layer behind
    linear ones; in a single layer, one full head beside a linear one.
    """
    sizes = f"heads={column.heads}, head_dim={column.head_dim}"
    if row == "hybrid" and column.layers == 1:
        text = f"full|linear @ heads={column.heads // 2}, head_dim={column.head_dim}"
    elif row == "hybrid":
        text = f"linear*{column.layers - 1} + full @ {sizes}"
    else:
        blocks = f", block={column.block}, topk=1" if row == "sparse" else ""
        text = f"{row}*{column.layers} @ {sizes}{blocks}"
    return Architecture.parse(text).spec


def hidden(row: str, column: Column) -> int:
    """Hidden units of a row's MLPs, so that all stacks of the column have about as many
    parameters.
    """
    return column.hidden.get(row, HIDDEN)
