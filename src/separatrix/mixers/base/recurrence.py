"""Recurrences over a state in two forms, apart from the maps that feed them.

A mixer says what the terms are: queries, keys, values, decay, strength. A recurrence says what
happens to them: `step` is the truth, one token at a time, and `outputs` the parallel form.

Shapes: b batch, h heads, t tokens, r queries (t, or 1 for the last token alone), d key dimension, e
value dimension.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from jaxtyping import Int
from torch import Tensor

from separatrix.mixers.base.mixer import State, taken_heads, wide
from separatrix.mixers.base.tensors import OneRead, Reads
from separatrix.mixers.kernels import decayed, delta
from separatrix.mixers.ops.delta_rule import delta_step, delta_written
from separatrix.mixers.ops.places import read_decayed

Terms = tuple[Tensor, ...]
"""Queries (b h r d), keys (b h t d), values (b h t e), then what else the recurrence asks for."""


class Recurrence(ABC):
    """A recurrence in its two forms, for heads side by side."""

    reads_last: ClassVar[bool] = True
    """Whether `outputs` also takes the query of the last token alone, at less cost."""
    reads_places: bool = False
    """Whether `at` takes queries of some places alone, at less cost."""

    @abstractmethod
    def outputs(self, terms: Terms, *, chunk: int, dtype: torch.dtype) -> Reads:
        """The outputs of every token, or of the last one, in a layer of this format."""

    def at(
        self, terms: Terms, places: Int[Tensor, "b r"], *, chunk: int, dtype: torch.dtype
    ) -> Reads:
        """The outputs at some places, whose queries alone are among the terms where
        `reads_places`, and in torch whatever the device.
        """
        return taken_heads(self.outputs(terms, chunk=chunk, dtype=dtype), places)

    @abstractmethod
    def step(self, terms: Terms, state: State, t: int) -> tuple[OneRead, State]:
        """The output of one token and the new state; t tokens came before it."""


class Decayed(Recurrence):
    """S_i = S_{i-1} diag(a_i) + v_i k_i^T,   y_i = S_i q_i

    Terms: q, k, v and log a (b h t d, or b h t 1 for one decay of all key dimensions). The state S
    holds S^T (b h d e). Parallel form: chunks (ops/decay.py), on CUDA fla's kernels. With `scalar`
    there is one decay of all key dimensions, and places are read as ops/places.py has it.
    """

    def __init__(self, *, scalar: bool = False) -> None:
        self.reads_places = scalar

    def outputs(self, terms: Terms, *, chunk: int, dtype: torch.dtype) -> Reads:
        q, k, v, log_a = terms
        return decayed(q, k, v, log_a, chunk=chunk, dtype=dtype)

    def at(
        self, terms: Terms, places: Int[Tensor, "b r"], *, chunk: int, dtype: torch.dtype
    ) -> Reads:
        q, k, v, log_a = terms
        return read_decayed(q, k, v, log_a[..., 0], places)

    def step(self, terms: Terms, state: State, t: int) -> tuple[OneRead, State]:
        q, k, v, log_a = terms
        new = log_a.exp().transpose(-1, -2) * wide(state["S"]) + k.transpose(-1, -2) * v
        return q @ new, {"S": new}


class Delta(Recurrence):
    """S_i = S_{i-1} diag(a_i) (I - b_i k_i k_i^T) + b_i v_i k_i^T,   y_i = S_i q_i

    Terms: q, k, v, log a (b h t d, or b h t 1) and the strength b (b h t 1). There may be several
    updates to a token, one after the other among the keys. The state S holds S^T (b h d e).
    Parallel form: chunks (ops/delta_rule.py), on CUDA fla's kernels. `scalar` as in `Decayed`.
    """

    def __init__(self, *, scalar: bool = False) -> None:
        self.reads_places = scalar

    def outputs(self, terms: Terms, *, chunk: int, dtype: torch.dtype) -> Reads:
        q, k, v, log_a, b = terms
        return delta(q, k, v, log_a, b, chunk=chunk, dtype=dtype)

    def at(
        self, terms: Terms, places: Int[Tensor, "b r"], *, chunk: int, dtype: torch.dtype
    ) -> Reads:
        q, k, v, log_a, b = terms
        written = delta_written(k, v, log_a, b, chunk=chunk)
        return read_decayed(q, k, written, log_a[..., 0], places)

    def step(self, terms: Terms, state: State, t: int) -> tuple[OneRead, State]:
        q, *updates = terms
        new = wide(state["S"])
        # n updates of one token (b h n .), in turn; the query reads after the last
        for update in zip(*(x.split(1, 2) for x in updates), strict=True):
            new = delta_step(new, *update)
        return q @ new, {"S": new}
