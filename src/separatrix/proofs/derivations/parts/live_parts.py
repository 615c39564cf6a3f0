"""The parts of a stack that do anything: live mixers with one live head each, and the MLP after
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from separatrix.core.errors import CheckFailed
from separatrix.mixers import Mixer
from separatrix.mixers.delta import DeltaNetMixer, GDNMixer
from separatrix.mixers.fox import FoxMixer
from separatrix.mixers.full import FullMixer
from separatrix.mixers.indexed import IndexedMixer
from separatrix.mixers.linear import LinearMixer
from separatrix.mixers.plugins import OwnMixer
from separatrix.mixers.sparse import SparseMixer
from separatrix.mixers.window import WindowMixer
from separatrix.models.model import Block, Model
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.derivations.parts.steps import PARAMETERS, Kind, Rows, Step, steps
from separatrix.proofs.exact import Digits
from separatrix.proofs.machine import Array, Enclosure, linear
from separatrix.stacks.mechanisms import Mechanism

MATRICES = ("q.weight", "k.weight", "v.weight", "o.weight")


def array(tensor: torch.Tensor) -> Array:
    """A float32 parameter as float64, which holds it exactly."""
    return tensor.detach().numpy().astype(np.float64)


@dataclass(frozen=True)
class Head:
    """The one live head of a mixer, and its number: q, k (head_dim, width), v (value_dim, width),
    o (width, value_dim); and the options that act between these maps, in order.
    """

    index: int
    q: Array
    k: Array
    v: Array
    o: Array
    steps: tuple[Step, ...] = ()

    def behind(self, kind: Kind, rows: Rows, what: str) -> Rows:
        """Mapped queries, keys or values behind the options."""
        for step in self.steps:
            rows = step.mapped(kind, rows, what)
        return rows

    def keys(self, rows: Enclosure, places: NDArray[np.int64] | None, where: str) -> Enclosure:
        """Keys of rows of the stream that stand at these places."""
        return self._alone("k", self.k, rows, places, f"{where}, k")

    def asked(self, rows: Enclosure, places: NDArray[np.int64] | None, where: str) -> Enclosure:
        """Queries of rows of the stream that stand at these places."""
        return self._alone("q", self.q, rows, places, f"{where}, q")

    def values(self, rows: Enclosure, where: str) -> Enclosure:
        """Values of rows of the stream."""
        return self._alone("v", self.v, rows, None, f"{where}, v")

    @property
    def rivals(self) -> list[float]:
        """Scores of further keys of a value of 0, which every query meets."""
        return [step.rival for step in self.steps if step.rival is not None]

    def written(self, y: Enclosure, x: Enclosure, where: str) -> Enclosure:
        """What averages y, of tokens within x (one row), add to the stream."""
        for step in self.steps:
            y = step.given(y, x, where)
        return linear(y, self.o, what=f"{where}, o")

    @property
    def assumes(self) -> tuple[str, ...]:
        """What the options take for granted of the arithmetic, beyond what every proof does."""
        return tuple(dict.fromkeys(step.assumes for step in self.steps if step.assumes))

    def _alone(
        self,
        kind: Kind,
        weight: Array,
        rows: Enclosure,
        places: NDArray[np.int64] | None,
        what: str,
    ) -> Enclosure:
        (found,) = self.behind(kind, Rows((linear(rows, weight, what=what),), places), what).parts
        return found


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

    @property
    def where(self) -> str:
        """For messages."""
        return f"layer {self.layer + 1}"

    def full_head(self) -> Head:
        """The live head of full attention. Raises CheckFailed for another mixer, for a parameter
        that is not read, or unless exactly one head has weights that are not zero.
        """
        mixer = self.mixer
        if not isinstance(mixer, FullMixer):
            raise self.other("full attention")
        return self._head(mixer.head_dim, mixer.dv, mixer.heads)

    def softmax_head(self) -> Head:
        """The same of full attention, forgetting or not, with its options, each with an evaluator
        (steps.py).
        """
        mixer = self.mixer
        if not isinstance(mixer, FullMixer | FoxMixer):
            raise self.other("full attention")
        head = self._weights(mixer.head_dim, mixer.dv, mixer.heads, *PARAMETERS)
        return replace(head, steps=steps(mixer, head.index, self.where))

    def convolved_head(self) -> Head:
        """The same of full attention behind a short convolution, which the caller evaluates."""
        mixer = self.mixer
        if not isinstance(mixer, FullMixer) or mixer.mechanism.altered != {"conv"}:
            raise self.other("full attention behind a short convolution, with no other option")
        return self._weights(mixer.head_dim, mixer.dv, mixer.heads, "conv.weight")

    def encoder_head(self) -> Head:
        """The same of full attention in which every token sees the whole prompt."""
        mixer = self.mixer
        if not isinstance(mixer, FullMixer) or mixer.mechanism.altered != {"causal"}:
            raise self.other("full attention with causal=false and no other option")
        return self._weights(mixer.head_dim, mixer.dv, mixer.heads)

    def sparse_head(self) -> tuple[SparseMixer, Head]:
        """The same of block-sparse attention, and the mixer. Raises CheckFailed as `full_head`
        does.
        """
        mixer = self.mixer
        if not isinstance(mixer, SparseMixer):
            raise self.other("sparse attention")
        more = ("pool_k", "pool_v", "mix")
        return mixer, self._head(mixer.head_dim, mixer.dv, mixer.heads, *more)

    def indexed_head(self) -> tuple[IndexedMixer, Head]:
        """The same of indexed attention, and the mixer."""
        mixer = self.mixer
        if not isinstance(mixer, IndexedMixer):
            raise self.other("indexed attention")
        more = ("index_q.weight", "index_k.weight", "index_w.weight")
        return mixer, self._head(mixer.head_dim, mixer.dv, mixer.heads, *more)

    def window_head(self) -> tuple[WindowMixer, Head]:
        """The same of sliding-window attention with its options, and the mixer."""
        mixer = self.mixer
        if not isinstance(mixer, WindowMixer):
            raise self.other("sliding-window attention")
        head = self._weights(mixer.head_dim, mixer.dv, mixer.heads, *PARAMETERS)
        return mixer, replace(head, steps=steps(mixer, head.index, self.where))

    def linear_head(self) -> tuple[LinearMixer, Head]:
        """The same of linear attention. Raises CheckFailed as `full_head` does."""
        mixer = self.mixer
        if not isinstance(mixer, LinearMixer):
            raise self.other("linear attention")
        return mixer, self._head(mixer.head_dim, mixer.dv, mixer.heads)

    def delta_head(self) -> tuple[DeltaNetMixer | GDNMixer, Head]:
        """The same of DeltaNet, gated or not. Raises CheckFailed as `full_head` does."""
        mixer = self.mixer
        if not isinstance(mixer, DeltaNetMixer | GDNMixer):
            raise self.other("DeltaNet, gated or not")
        gates = ("a.weight", "a.bias", "rate") if isinstance(mixer, GDNMixer) else ()
        return mixer, self._head(mixer.head_dim, mixer.dv, mixer.heads, "b.weight", *gates)

    def other(self, wanted: str) -> CheckFailed:
        """The error for another mixer than the proof is about."""
        return CheckFailed(
            f"layer {self.layer + 1}: {self.mixer.mechanism.name} is used where the proof is about"
            f" {wanted}"
        )

    def _head(self, head_dim: int, value_dim: int, heads: int, *more: str) -> Head:
        """`more`: parameters beside the four matrices that the caller evaluates."""
        if not self.mixer.mechanism.plain:
            raise CheckFailed(
                f"{self.where}: {self.mixer.mechanism.name} has options (a convolution, rope,"
                " gates, ...) that the proof does not cover"
            )
        return self._weights(head_dim, value_dim, heads, *more)

    def _weights(self, head_dim: int, value_dim: int, heads: int, *more: str) -> Head:
        """The four matrices of the live head."""
        where = self.where
        for name, _ in self.mixer.named_parameters():
            if name not in (*MATRICES, *more):
                raise CheckFailed(f"{where}: nothing is proved about its parameter {name}")
        o = array(self.mixer.get_parameter("o.weight"))
        # (width, heads, value_dim): a head writes through its own columns of o
        o = o.reshape(len(o), heads, -1)
        live = np.flatnonzero((o != 0.0).any(axis=(0, 2)))
        if len(live) != 1:
            raise CheckFailed(
                f"{where}: {len(live)} heads write; a construction uses one head per layer"
            )
        index = int(live[0])
        found = {}
        for name, dim in (("q", head_dim), ("k", head_dim), ("v", value_dim)):
            groups = array(self.mixer.get_parameter(f"{name}.weight"))
            # (groups, dim, width); where none are shared every head is a group
            groups = groups.reshape(-1, dim, groups.shape[1])
            # heads that share one group of keys or values stand side by side
            used = index // (heads // len(groups))
            if np.delete(groups, used, 0).any():
                raise CheckFailed(f"{where}: {name} of a head that is not used is not zero")
            found[name] = groups[used]
        return Head(index, found["q"], found["k"], found["v"], o[:, index])


def live_parts(model: Model, *, placed: bool = True) -> list[Live]:
    """The mixers that add something, first layer first; of every other mixer and MLP all
    parameters are exactly zero (CheckFailed otherwise). `placed`: the proof is about a stack with
    embeddings of positions.
    """
    if placed and not isinstance(model.position, nn.Embedding):
        raise CheckFailed("the stack has no embeddings of positions, of which the proof is made")
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


def too_narrow(mechanism: Mechanism, arithmetic: Arithmetic) -> str | None:
    """A format that a mechanism declares and that does not hold the numbers of the arithmetic:
    those stored, or, in accumulators and states, those of sums. None where all do.
    """
    if not arithmetic.fits_in(mechanism.format):
        return mechanism.format
    sizes = mechanism.sizes()
    summed = [getattr(mechanism, "accumulator_format", None), sizes.get("gate_format")]
    if "state_format" in sizes:
        summed.append(sizes["state_format"] or mechanism.format)
    return next((name for name in summed if name and not arithmetic.inner.fits_in(name)), None)


def declared_otherwise(model: Model, arithmetic: Arithmetic) -> str | None:
    """What a layer that is used declares and a proof in the arithmetic is not about; None where
    there is no such layer.
    """
    for part in live_parts(model, placed=False):
        mechanism = part.mixer.mechanism
        name = too_narrow(mechanism, arithmetic)
        if name is not None:
            return (
                f"{part.where} declares numbers of {name}, which do not hold those of"
                f" {arithmetic.title}, or of its sums"
            )
        if not getattr(mechanism, "running_max", True):
            return (
                f"{part.where} declares a softmax without a running maximum (running_max=false),"
                " which no mixer computes here, and in which scores may overflow"
            )
    return None


def exact_formats(part: Live, digits: Digits) -> tuple[str, ...]:
    """The formats that hold so many digits. Raises CheckFailed where the layer declares another."""
    formats = digits.formats()
    declared = part.mixer.mechanism.formats
    if not declared <= {*formats, "fp64"}:
        raise CheckFailed(
            f"{part.where} declares {', '.join(sorted(declared))}, and nothing is rounded only in"
            f" {', '.join(formats)}: {digits.own} binary digits are asked for"
        )
    return formats


def _all_zero(module: nn.Module) -> bool:
    return not any(bool(tensor.any()) for tensor in module.state_dict().values())
