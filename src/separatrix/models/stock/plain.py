"""What of a model a stock architecture must hold: its softmax heads that write, as matrices, and
its MLPs.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F
from torch import Tensor

from separatrix.core.errors import SizeError
from separatrix.core.numbers.rotary import Rotation
from separatrix.mixers import Mixer
from separatrix.mixers.full import FullMixer
from separatrix.models.model import MLP, Block, Model
from separatrix.models.stock.checkpoint import NO_ANSWER
from separatrix.stacks.mechanisms import Full, Mechanism

LARGEST = 2.0**17
"""The largest number of an embedding that is surely rounded away beside 2^60, squared."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Head:
    """One softmax head: scores <q x_i, k x_j>, and o v x_j of what it reads."""

    q: Tensor  # d w
    k: Tensor  # d w
    v: Tensor  # e w
    o: Tensor  # w e
    rotation: Rotation | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Layer:
    """The heads of a layer that write, and its MLP where it does."""

    heads: list[Head]
    mlp: MLP | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Plain:
    """A model taken apart."""

    model: Model
    layers: list[Layer]

    @property
    def heads(self) -> int:
        """The most heads of a layer."""
        return max(1, *(len(layer.heads) for layer in self.layers))

    @property
    def hidden(self) -> int:
        """The most hidden units of a layer."""
        return max((layer.mlp.up.out_features for layer in self.layers if layer.mlp), default=0)

    def rows(self, count: int) -> Tensor:
        """The embeddings of `count` ids, zeros for those that the model lacks."""
        table = self.model.embed.weight
        return F.pad(table, (0, 0, 0, count - len(table)))

    def ids(self) -> int:
        """Ids read or written, the start token among them."""
        config = self.model.config
        return max(config.vocabulary + config.bos, config.answers)

    def logits(self, count: int) -> tuple[Tensor, Tensor]:
        """Weights and biases of the logits of `count` ids: a very low one where it is no answer."""
        head = self.model.head
        none = count - self.model.config.answers
        return F.pad(head.weight, (0, 0, 0, none)), F.pad(head.bias, (0, none), value=NO_ANSWER)


def plain(model: Model, stock: str, *, rotates: bool) -> Plain:
    """The model taken apart, for a stock architecture that rotates queries and keys or does not.

    Layers that write nothing are left out. Raises SizeError, naming what the stock architecture
    lacks.
    """
    if model.config.norm:
        raise SizeError(
            f"{stock}: the model has norms without a choice of their epsilon, as trained ones have;"
            " constructions are written without norms"
        )
    if model.config.asks:
        raise SizeError(f"{stock}: a token behind the prompt asks, which nothing puts there")
    if float(model.embed.weight.abs().max()) >= LARGEST:
        raise SizeError(
            f"{stock}: its norms are the identity for embeddings below {LARGEST:g} only"
        )
    layers: list[Layer] = []
    for number, (block, parts) in enumerate(zip(model.blocks, model.architecture, strict=True), 1):
        assert isinstance(block, Block)
        mixing = [part for part in parts if part.mixes_tokens]
        heads = [
            head
            for mixer, part in zip(block.mixers, mixing, strict=True)
            for head in _heads(mixer, part, f"{stock}: layer {number}", rotates)
        ]
        mlp = block.mlp
        if mlp is not None and not any(bool(own.any()) for own in mlp.down.parameters()):
            mlp = None
        if heads or mlp is not None:
            layers.append(Layer(heads=heads, mlp=mlp))
    return Plain(model=model, layers=layers)


def _heads(mixer: torch.nn.Module, part: Mechanism, where: str, rotates: bool) -> list[Head]:
    """The heads of a mixer that write. Raises SizeError where stock softmax attention is not what
    they do.
    """
    assert isinstance(mixer, Mixer)
    if not any(bool(parameter.any()) for parameter in mixer.parameters()):
        return []
    if not isinstance(part, Full) or not isinstance(mixer, FullMixer):
        raise SizeError(f"{where} writes by {part.name}; stock layers are full softmax attention")
    held = {"rope", "rope_dim", "rope_scaling"} if rotates else set()
    odd = [
        f"{f.name}={str(getattr(part, f.name)).lower()}"
        for f in fields(part)
        if f.metadata.get("alters") and f.name not in held and getattr(part, f.name) != f.default
    ]
    if odd:
        raise SizeError(f"{where} has {', '.join(odd)}, which its attention lacks")
    shared = mixer.heads // mixer.kv
    found: list[Head] = []
    for head in range(mixer.heads):
        # query heads that share a key-value head each get a copy of it
        kv = head // shared
        one = Head(
            q=_rows(mixer.q.weight, head, mixer.head_dim),
            k=_rows(mixer.k.weight, kv, mixer.head_dim),
            v=_rows(mixer.v.weight, kv, mixer.dv),
            o=_rows(mixer.o.weight.T, head, mixer.dv).T,
            rotation=mixer.rotation,
        )
        if bool(one.o.any()):
            found.append(one)
    return found


def _rows(matrix: Tensor, number: int, size: int) -> Tensor:
    """The rows of one head, of several side by side."""
    return matrix[number * size : (number + 1) * size].detach()
