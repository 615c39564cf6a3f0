"""Models run in number formats, and inputs of a task that they answer wrongly there. Stacks of
full attention run in formats that no processor has: every operation is rounded to p bits.

Products, sums, differences, quotients and exponentials round to the format one by one; sums over
tokens and over dimensions run from the first to the last, or in pairs, pairs of pairs, and so on.
Numbers of up to 25 digits are computed in float64 and rounded once more, which gives what rounding
once would (Figueroa 1995: 2p + 2 digits are enough for sums, products and quotients).

Shapes: b batch, t tokens, w width, i queries, j keys, d key dimension, e value dimension.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import reduce
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from separatrix.core.errors import SizeError
from separatrix.mixers import Mixer
from separatrix.mixers.base.mixer import DTYPES
from separatrix.mixers.full import FullMixer
from separatrix.models.model import MLP, Block, Model
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.derivations.parts.derivation import Logits, due, given, logits_of
from separatrix.tasks import Task
from separatrix.tasks.base.task import Tokens

Array = NDArray[np.float64]
Order = Literal["sequential", "pairwise"]
ORDERS: tuple[Order, ...] = ("sequential", "pairwise")
MOST_DIGITS = 25


class Emulated:
    """A model whose every operation is rounded to an arithmetic. Raises SizeError for layers other
    than plain full attention, norms, and formats of more than 25 digits.
    """

    def __init__(self, model: Model, arithmetic: Arithmetic, order: Order) -> None:
        if arithmetic.digits > MOST_DIGITS or arithmetic.narrowed:
            raise SizeError(
                f"{arithmetic.name}: formats of at most {MOST_DIGITS} digits are emulated, whose"
                " sums are rounded as their numbers are"
            )
        if model.config.norm:
            raise SizeError("norms are not emulated")
        for block in model.blocks:
            assert isinstance(block, Block)
            for part in block.mixers:
                assert isinstance(part, Mixer)
                _plain(part)
        self.model = model
        self.arithmetic = arithmetic
        self.order: Order = order

    def logits(self, tokens: Tokens, places: Tokens | None = None) -> Array:
        """Logits at these places (b, k) of the prompts, or after the last token: (b, k,
        answers).
        """
        model = self.model
        if model.config.bos:
            start = np.full((len(tokens), 1), model.config.vocabulary)
            tokens = np.concatenate([start, tokens], 1)
        position = self._numbers(model.position.weight)[: tokens.shape[1]]
        x = self._rounded(self._numbers(model.embed.weight)[tokens] + position)
        for number, block in enumerate(model.blocks):
            assert isinstance(block, Block)
            x = self._layer(x, block, places is None and number == len(model.blocks) - 1)
        if places is not None:
            x = np.take_along_axis(x, places[..., None] + int(model.config.bos), 1)
        return self._linear(x, model.head.weight, model.head.bias)

    def _layer(self, x: Array, block: Block, final: bool) -> Array:
        """The tokens after a layer; of the final one the last token alone."""
        y = x[:, -1:] if final else x
        for part in block.mixers:
            assert isinstance(part, Mixer)
            y = self._rounded(y + self._attended(x, _plain(part), final))
        return y if block.mlp is None else self._rounded(y + self._mlp(y, block.mlp))

    def _mlp(self, x: Array, mlp: MLP) -> Array:
        hidden = np.maximum(self._linear(x, mlp.up.weight, mlp.up.bias), 0.0)
        return self._linear(hidden, mlp.down.weight, mlp.down.bias)

    def _attended(self, x: Array, mixer: FullMixer, final: bool) -> Array:
        asking = x[:, -1:] if final else x
        q = _heads(self._linear(asking, mixer.q.weight), mixer.heads)
        shared = mixer.heads // mixer.kv
        k = _heads(self._linear(x, mixer.k.weight), mixer.kv).repeat(shared, 2)
        v = _heads(self._linear(x, mixer.v.weight), mixer.kv).repeat(shared, 2)
        heads = [self._head(q[:, :, h], k[:, :, h], v[:, :, h]) for h in range(mixer.heads)]
        return self._linear(np.concatenate(heads, -1), mixer.o.weight)

    def _head(self, q: Array, k: Array, v: Array) -> Array:
        """(b i d), (b j d), (b j e) -> (b i e); query i stands at token j - i from the end."""
        if not v.any():
            return np.zeros((*q.shape[:2], v.shape[2]))
        used = [d for d in range(q.shape[2]) if q[:, :, d].any() and k[:, :, d].any()]
        scores = np.zeros((*q.shape[:2], k.shape[1]))
        if used:
            scores = self._added([self._rounded(q[:, :, None, d] * k[:, None, :, d]) for d in used])
        ahead = np.triu(np.ones(scores.shape[1:], np.bool_), 1 + k.shape[1] - q.shape[1])
        scores = np.where(ahead, -np.inf, scores)
        less = self._rounded(scores - scores.max(-1, keepdims=True))
        weights = self._rounded(np.exp(less))
        shares = self._rounded(weights / self._summed(weights)[..., None])
        # (b i e), one value dimension after the other
        dims = [self._summed(self._rounded(shares * v[:, None, :, e])) for e in range(v.shape[2])]
        return np.stack(dims, -1)

    def _linear(self, x: Array, weight: torch.Tensor, bias: torch.Tensor | None = None) -> Array:
        matrix = self._numbers(weight)
        read = np.flatnonzero(matrix.any(0))
        terms = [self._rounded(x[..., i, None] * matrix[:, i]) for i in read]
        if bias is not None:
            terms.append(np.broadcast_to(self._numbers(bias), (*x.shape[:-1], len(matrix))))
        return self._added(terms) if terms else np.zeros((*x.shape[:-1], len(matrix)))

    def _added(self, terms: list[Array]) -> Array:
        """The sum of a list, in the order chosen."""
        return self._summed(np.stack(terms, -1))

    def _summed(self, terms: Array) -> Array:
        """The sum over the last axis, in the order chosen."""
        if self.order == "sequential":
            rows = np.moveaxis(terms, -1, 0)
            return reduce(lambda total, term: self._rounded(total + term), rows)
        while terms.shape[-1] > 1:
            even = terms.shape[-1] // 2 * 2
            paired = self._rounded(terms[..., 0:even:2] + terms[..., 1:even:2])
            terms = np.concatenate([paired, terms[..., even:]], -1)
        return terms[..., 0]

    def _numbers(self, weight: torch.Tensor) -> Array:
        return self._rounded(weight.detach().double().numpy())

    def _rounded(self, numbers: Array) -> Array:
        """To nearest; what is too small is flushed to zero, what is too large is infinite."""
        nearest = self.arithmetic.leading(numbers)
        # splitting an infinity gives none
        nearest = np.where(np.isinf(numbers), numbers, nearest)
        size = np.abs(nearest)
        nearest = np.where(size < self.arithmetic.tiny, 0.0, nearest)
        return np.where(size > 2 * self.arithmetic.large, np.copysign(np.inf, nearest), nearest)


def _heads(x: Array, heads: int) -> Array:
    return x.reshape(*x.shape[:2], heads, -1)


def _plain(mixer: Mixer) -> FullMixer:
    if not isinstance(mixer, FullMixer) or not mixer.mechanism.plain:
        raise SizeError(
            f"{mixer.mechanism.name}: only full attention without options is emulated in p bits"
        )
    return mixer


@dataclass(frozen=True)
class Wrong:
    """An input that is answered wrongly, and how it was computed."""

    tokens: list[int]
    answer: int
    """What the model says; -1 where its logits are no numbers. Of several answers, the first that
    is wrong.
    """
    right: int
    how: str


def wrong_in(
    model: Model, arithmetic: Arithmetic, task: Task, tokens: Tokens, *, numbers: int = 1 << 21
) -> Wrong | None:
    """The first input found that is answered wrongly in a format; None where there is none. PyTorch
    computes in its own formats, others are emulated with both orders of sums. Raises SizeError
    for a model that is not emulated in the format.
    """
    wanted = due(task, tokens)
    size = max(1, numbers // (task.length * model.config.width))
    ways: list[tuple[str, Logits]] = []
    if arithmetic.name in DTYPES:
        ways += [("PyTorch", logits_of(copy.deepcopy(model).to(DTYPES[arithmetic.name])))]
    else:
        ways += [(f"{order} sums", Emulated(model, arithmetic, order).logits) for order in ORDERS]
    for how, logits in ways:
        for start in range(0, len(tokens), size):
            some, right = tokens[start : start + size], wanted[start : start + size]
            found, finite = given(logits, task, some)
            found[~finite] = -1
            rows, columns = np.nonzero(found != right)
            if len(rows):
                row, column = rows[0], columns[0]
                return Wrong(
                    some[row].tolist(),
                    int(found[row, column]),
                    int(right[row, column]),
                    how if right.shape[1] == 1 else f"{how}, answer {column + 1}",
                )
    return None
