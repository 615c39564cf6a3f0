"""The parts of a stack that do anything: live mixers with one live head each, the MLP after
them, and who writes which coordinate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from separatrix.checks.exact import Array, Picks, columns
from separatrix.errors import CheckFailed
from separatrix.mixers import Mixer
from separatrix.mixers.base.recurrent import RecurrentMixer
from separatrix.mixers.full import FullMixer
from separatrix.mixers.sparse import SparseMixer
from separatrix.model import Block, Model
from separatrix.plugins import OwnMixer
from separatrix.tasks import Task

Coordinates = NDArray[np.bool_]


def array(tensor: torch.Tensor) -> Array:
    """A float32 parameter as float64, which holds it exactly."""
    return tensor.detach().numpy().astype(np.float64)


@dataclass(frozen=True)
class Head:
    """The one live head of a mixer: q, k (head_dim, width), v (value_dim, width), o (width,
    value_dim).
    """

    q: Picks
    k: Picks
    v: Picks
    o: Picks


@dataclass(frozen=True)
class Live:
    """A mixer that adds something, and the tensors of the MLP after it ({} when there is none)."""

    layer: int
    part: int
    mixer: Mixer
    mlp: Mapping[str, Array]

    @property
    def place(self) -> tuple[int, int]:
        return self.layer, self.part

    def full_head(self) -> tuple[int, Head]:
        """Index and live head of full attention. Raises CheckFailed for another mixer, or unless
        exactly one head has weights that are not zero.
        """
        mixer = self.mixer
        if not isinstance(mixer, FullMixer):
            raise self._other("full attention")
        return self._head({"q": mixer.head_dim, "k": mixer.head_dim, "v": mixer.dv}, mixer.heads)

    def sparse_head(self) -> tuple[int, Head]:
        """Index and live head of block-sparse attention. Raises CheckFailed as `full_head` does."""
        mixer = self.mixer
        if not isinstance(mixer, SparseMixer):
            raise self._other("sparse attention")
        return self._head({"q": mixer.head_dim, "k": mixer.head_dim, "v": mixer.dv}, mixer.heads)

    def recurrent_head(self) -> tuple[int, Head]:
        """Index and live head of a mixer with a matrix state. Raises CheckFailed as `full_head`
        does.
        """
        mixer = self.mixer
        if not isinstance(mixer, RecurrentMixer):
            raise self._other("a recurrent layer")
        return self._head({"q": mixer.head_dim, "k": mixer.head_dim, "v": mixer.dv}, mixer.heads)

    def _other(self, wanted: str) -> CheckFailed:
        return CheckFailed(
            f"layer {self.layer + 1}: {self.mixer.mechanism.name} is used where the proof is about"
            f" {wanted}"
        )

    def _head(self, dims: dict[str, int], heads: int) -> tuple[int, Head]:
        where = f"layer {self.layer + 1}"
        if not self.mixer.mechanism.plain:
            raise CheckFailed(
                f"{where}: {self.mixer.mechanism.name} has options (a convolution, rope, gates,"
                " ...) that the proof does not cover"
            )
        o = array(self.mixer.get_parameter("o.weight"))
        # (width, heads, value_dim): a head writes through its own columns of o
        o = o.reshape(len(o), heads, -1)
        live = np.flatnonzero((o != 0.0).any(axis=(0, 2)))
        if len(live) != 1:
            raise CheckFailed(
                f"{where}: {len(live)} heads write; a construction uses one head per layer"
            )
        found = {"o": o[:, live[0]]}
        for name, dim in dims.items():
            groups = array(self.mixer.get_parameter(f"{name}.weight"))
            # (groups, dim, width); where none are shared every head is a group
            groups = groups.reshape(-1, dim, groups.shape[1])
            # heads that share one group of keys or values stand side by side
            used = int(live[0]) // (heads // len(groups))
            if np.delete(groups, used, 0).any():
                raise CheckFailed(f"{where}: {name} of a head that is not used is not zero")
            found[name] = groups[used]
        return int(live[0]), Head(
            *(Picks.of(found[name], f"{where}, {name}") for name in ("q", "k", "v", "o"))
        )


def live_parts(model: Model) -> list[Live]:
    """The mixers that add something, first layer first; of every other mixer and MLP all
    parameters are exactly zero (CheckFailed otherwise).
    """
    live: list[Live] = []
    for layer, block in enumerate(model.blocks):
        assert isinstance(block, Block)
        parts = [(part, m) for part, m in enumerate(block.mixers) if isinstance(m, Mixer)]
        for _, m in parts:
            if isinstance(m, OwnMixer):
                raise CheckFailed(
                    f"layer {layer + 1}: {m.mechanism.name} is a user's own mixer; nothing is"
                    " proved of what it adds"
                )
        used = [(part, m) for part, m in parts if bool(m.get_parameter("o.weight").any())]
        if len(used) > 1:
            raise CheckFailed(
                f"layer {layer + 1}: two mixers write; a construction uses one per layer"
            )
        for _, m in parts:
            if (not used or m is not used[0][1]) and not _all_zero(m):
                raise CheckFailed(
                    f"layer {layer + 1}: {m.mechanism.name} is not part of the construction, but"
                    " its parameters are not all zero"
                )
        if used:
            mlp = (
                {}
                if block.mlp is None
                else {name: array(tensor) for name, tensor in block.mlp.named_parameters()}
            )
            live.append(Live(layer, used[0][0], used[0][1], mlp))
        elif block.mlp is not None and not _all_zero(block.mlp):
            raise CheckFailed(
                f"layer {layer + 1}: its MLP is not part of the construction, but its parameters"
                " are not all zero"
            )
    return live


def _all_zero(module: nn.Module) -> bool:
    return not any(bool(tensor.any()) for tensor in module.state_dict().values())


class Writers:
    """Who writes each coordinate of the residual stream: embeddings of tokens, of positions, the
    attention and the MLP of each live part.
    """

    def __init__(self, embed: Array, position: Array, live: list[Live]) -> None:
        self.written: dict[str, Coordinates] = {
            "tokens": columns(embed),
            "positions": columns(position),
        }
        for number, part in enumerate(live):
            self.written[f"attention {number}"] = columns(
                array(part.mixer.get_parameter("o.weight")).T
            )
            if part.mlp:
                self.written[f"mlp {number}"] = columns(part.mlp["down.weight"].T) | (
                    part.mlp["down.bias"] != 0.0
                )

    def allow(self, reads: Coordinates, what: str, *sources: str) -> None:
        """Raises CheckFailed unless every coordinate that `what` reads has at most one writer,
        and that one among `sources`.
        """
        # with a single writer a coordinate holds what that part writes, and nothing is added to it
        total = sum(
            (mask.astype(np.int64) for mask in self.written.values()),
            np.zeros(len(reads), np.int64),
        )
        if (reads & (total > 1)).any():
            raise CheckFailed(f"{what} reads a coordinate that more than one part writes")
        for name, mask in self.written.items():
            if name not in sources and (reads & mask).any():
                raise CheckFailed(
                    f"{what} reads a coordinate written by {name}; allowed: {' and '.join(sources)}"
                )


class Stack:
    """The embeddings a proof reads, and who writes which coordinate."""

    def __init__(self, task: Task, model: Model, live: list[Live]) -> None:
        self.model = model
        self.embed = array(model.embed.weight)
        position = array(model.position.weight)
        self.position = position[: task.length]
        self.writers = Writers(self.embed, position, live)
        self.nothing = np.zeros((1, model.config.width))
        """What the hop before the first has left: one row of zeros."""
