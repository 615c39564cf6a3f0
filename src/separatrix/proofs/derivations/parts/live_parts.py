"""The parts of a stack that do anything: live mixers with one live head each, and the MLP after
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import UnionType
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from separatrix.core.errors import CheckFailed
from separatrix.mixers import Mixer
from separatrix.mixers.base.recurrent import RecurrentMixer
from separatrix.mixers.base.softmax import SoftmaxMixer
from separatrix.mixers.full import FoxMixer, FullMixer
from separatrix.mixers.plugins import OwnMixer
from separatrix.models.model import Block, Model
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.derivations.parts.steps import PARAMETERS, Kind, Step, Where, steps
from separatrix.proofs.machine import RESIDUAL, Array, Enclosure, Scores, add, linear, mlp

MATRICES = ("q.weight", "k.weight", "v.weight", "o.weight")


def array(tensor: torch.Tensor) -> Array:
    """A float32 parameter as float64, which holds it exactly."""
    return tensor.detach().numpy().astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class Head:
    """The one live head of a mixer, and its number: q, k (head_dim, width), v (value_dim, width),
    o (width, value_dim); and the options that act between these maps, in order.
    """

    where: str
    """For messages."""
    place: tuple[int, int]
    """Of the mixer."""
    index: int
    q: Array
    k: Array
    v: Array
    o: Array
    steps: tuple[Step, ...] = ()

    def behind(self, kind: Kind, rows: Enclosure, places: Where = None) -> Enclosure:
        """Mapped queries, keys or values of tokens at these places behind the options."""
        for step in self.steps:
            rows = step.mapped(kind, rows, places, f"{self.where}, {kind}")
        return rows

    def mapped(self, kind: Kind, rows: Enclosure, places: Where = None) -> Enclosure:
        """Queries, keys or values of rows of the stream that stand at these places."""
        weight = {"q": self.q, "k": self.k, "v": self.v}[kind]
        return self.behind(kind, linear(rows, weight, what=f"{self.where}, {kind}"), places)

    def keys(self, rows: Enclosure, places: Where = None) -> Enclosure:
        return self.mapped("k", rows, places)

    def asked(self, rows: Enclosure, places: Where = None) -> Enclosure:
        return self.mapped("q", rows, places)

    def values(self, rows: Enclosure) -> Enclosure:
        return self.mapped("v", rows)

    def numbers(self, keys: Enclosure, *asking: Enclosure) -> None:
        """Raises CheckFailed unless every score of tokens within these rows is a number: infinity
        less infinity is none.
        """
        for rows in asking:
            queries = self.asked(rows)
            Scores(keys, queries.used, f"{self.where}, scores").errors(queries)

    @property
    def value_numbers(self) -> int:
        """Numbers of a value that are not always 0."""
        return int((self.v != 0.0).any(1).sum())

    @property
    def rivals(self) -> list[float]:
        """Scores of further keys of a value of 0, which every query meets."""
        return [step.rival for step in self.steps if step.rival is not None]

    def given(self, y: Enclosure, x: Enclosure) -> Enclosure:
        """Averages y, of tokens within x (one row), behind the options."""
        for step in self.steps:
            y = step.given(y, x, self.where)
        return y

    def written(self, y: Enclosure, x: Enclosure) -> Enclosure:
        """What averages y, of tokens within x (one row), add to the stream."""
        return linear(self.given(y, x), self.o, what=f"{self.where}, o")

    @property
    def assumes(self) -> tuple[str, ...]:
        """What the options take for granted of the arithmetic, beyond what every proof does."""
        return tuple(dict.fromkeys(step.assumes for step in self.steps if step.assumes))


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

    def head(
        self,
        kinds: type[Mixer] | UnionType,
        wanted: str,
        *evaluated: str,
        options: frozenset[str] = frozenset(),
    ) -> Head:
        """The live head of a mixer of these kinds with exactly these options. `evaluated`:
        parameters beside the four matrices that the caller evaluates. Raises CheckFailed for
        another mixer, for a parameter that is not read, or unless exactly one head has weights that
        are not zero.
        """
        if not isinstance(self.mixer, kinds):
            raise self.other(wanted)
        if self.mixer.mechanism.altered != options:
            raise CheckFailed(
                f"{self.where}: {self.mixer.mechanism.name} has options (a convolution, rope,"
                f" gates, ...) that the proof does not cover, or not those of {wanted}"
            )
        return self._one(*evaluated)

    def full_head(self) -> Head:
        """The same of full attention without options."""
        return self.head(FullMixer, "full attention")

    def softmax_head(self, kinds: type[Mixer] | UnionType = FullMixer | FoxMixer) -> Head:
        """The same of full attention, forgetting or not, or of other kinds, with its options, each
        with an evaluator (steps.py).
        """
        mixer = self.mixer
        if not isinstance(mixer, kinds):
            raise self.other("full attention")
        assert isinstance(mixer, SoftmaxMixer)
        head = self._one(*PARAMETERS)
        return replace(head, steps=steps(mixer, head.index, self.where))

    def other(self, wanted: str) -> CheckFailed:
        """The error for another mixer than the proof is about."""
        return CheckFailed(
            f"{self.where}: {self.mixer.mechanism.name} is used where the proof is about {wanted}"
        )

    def _one(self, *evaluated: str) -> Head:
        weights = weights_of(self.mixer, self.where, *evaluated)
        return weights.head(weights.only(self.where), self)

    @property
    def weights(self) -> tuple[Array, Array, Array, Array]:
        """Of the MLP. Raises CheckFailed where there is none."""
        if not self.mlp:
            raise CheckFailed(f"{self.where}: an MLP is a part of this construction")
        names = ("up.weight", "up.bias", "down.weight", "down.bias")
        up, up_bias, down, down_bias = (self.mlp[name] for name in names)
        return up, up_bias, down, down_bias

    def after(self, x: Enclosure, y: Enclosure) -> Enclosure:
        """The stream after the layer, of rows x to which the head adds y, row by row; either may be
        one row for all.
        """
        return self.after_mlp(add(x, y, RESIDUAL))

    def after_mlp(self, rows: Enclosure) -> Enclosure:
        """Rows after the MLP, if there is one."""
        if not self.mlp:
            return rows
        return add(rows, mlp(rows, self.weights, what=f"{self.where}, MLP"), RESIDUAL)


class Weights(NamedTuple):
    """The matrices of a mixer, and its heads that write: q, k (updates, groups, head_dim, width), v
    (updates, groups, value_dim, width), o (width, heads, value_dim). Heads that share one group of
    keys or values stand side by side.
    """

    live: list[int]
    q: Array
    k: Array
    v: Array
    o: Array

    def only(self, where: str) -> int:
        """The one head that writes. Raises CheckFailed where there are more, or none."""
        if len(self.live) != 1:
            raise CheckFailed(
                f"{where}: {len(self.live)} heads write; a construction uses one head per layer"
            )
        return self.live[0]

    def own(self, matrix: Array, head: int) -> Array:
        """The part (updates, dim, width) of q, k or v that a head uses."""
        return matrix[:, head // (self.o.shape[1] // matrix.shape[1])]

    def head(self, index: int, part: Live) -> Head:
        """A head with one update."""
        (q,), (k,), (v,) = (self.own(matrix, index) for matrix in (self.q, self.k, self.v))
        o, where, place = self.o[:, index], part.where, part.place
        return Head(where=where, place=place, index=index, q=q, k=k, v=v, o=o)


def weights_of(mixer: Mixer, where: str, *evaluated: str, updates: int = 1) -> Weights:
    """Raises CheckFailed for a parameter beside the matrices and those that the caller evaluates,
    and where a head that does not write is not all zero.
    """
    for name, _ in mixer.named_parameters():
        if name not in (*MATRICES, *evaluated):
            raise CheckFailed(f"{where}: nothing is proved about its parameter {name}")
    assert isinstance(mixer, SoftmaxMixer | RecurrentMixer)
    o = array(mixer.o.weight)
    o = o.reshape(len(o), mixer.heads, -1)
    live = np.flatnonzero((o != 0.0).any(axis=(0, 2)))
    found: dict[str, Array] = {}
    for name, dim in (("q", mixer.head_dim), ("k", mixer.head_dim), ("v", mixer.dv)):
        matrix = array(mixer.get_parameter(f"{name}.weight"))
        matrix = matrix.reshape(1 if name == "q" else updates, -1, dim, matrix.shape[1])
        used = np.unique(live // (mixer.heads // matrix.shape[1]))
        if np.delete(matrix, used, 1).any():
            raise CheckFailed(f"{where}: {name} of a head that is not used is not zero")
        found[name] = matrix
    return Weights(live.tolist(), found["q"], found["k"], found["v"], o)


def live_of(
    model: Model,
    layers: int,
    *,
    placed: bool = True,
    start: bool = False,
    asks: bool = False,
    mlp: bool = True,
) -> list[Live]:
    """The layers that write. Raises CheckFailed where they are not so many, where the stack has a
    start token and the construction none, or the opposite, or, without `mlp`, has an MLP.
    """
    if model.config.bos != start:
        raise CheckFailed(f"this construction has {'a' if start else 'no'} start token")
    live = live_parts(model, placed=placed, asks=asks)
    if len(live) != layers:
        raise CheckFailed(f"{len(live)} layers write; this construction is {layers}")
    if not mlp and any(tensor.any() for part in live for tensor in part.mlp.values()):
        raise CheckFailed("an MLP is no part of this construction, but one is not all zero")
    return live


def live_parts(model: Model, *, placed: bool = True, asks: bool = False) -> list[Live]:
    """The mixers that add something, first layer first; of every other mixer and MLP all
    parameters are exactly zero (CheckFailed otherwise). `placed`: the proof is about a stack with
    embeddings of positions; `asks`: about one whose last token is none of the prompt's.
    """
    if model.config.asks != asks:
        raise CheckFailed(f"this construction has {'a' if asks else 'no'} token behind that asks")
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
        idle: list[tuple[str, nn.Module]] = [
            (m.mechanism.name, m) for _, m in parts if not used or m is not used[0][1]
        ]
        if not used and block.mlp is not None:
            idle.append(("its MLP", block.mlp))
        for name, module in idle:
            if any(bool(tensor.any()) for tensor in module.state_dict().values()):
                raise CheckFailed(
                    f"layer {layer + 1}: {name} is not part of the construction, but its"
                    " parameters are not all zero"
                )
        if used:
            mlp = (
                {}
                if block.mlp is None
                else {name: array(tensor) for name, tensor in block.mlp.named_parameters()}
            )
            live.append(Live(layer, used[0][0], used[0][1], mlp))
    return live


def declared_otherwise(model: Model, arithmetic: Arithmetic) -> str | None:
    """What a layer that is used declares and a proof in the arithmetic is not about; None where
    there is no such layer.
    """
    for part in live_parts(model, placed=False, asks=model.config.asks):
        mechanism, sizes = part.mixer.mechanism, part.mixer.mechanism.sizes()
        # accumulators and states hold the numbers of sums
        summed = [getattr(mechanism, "accumulator_format", None), sizes.get("gate_format")]
        if "state_format" in sizes:
            summed.append(sizes["state_format"] or mechanism.format)
        formats = [(mechanism.format, arithmetic), *((name, arithmetic.inner) for name in summed)]
        for name, held in formats:
            if name and not held.fits_in(name):
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
