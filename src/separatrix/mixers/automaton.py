"""A finite automaton.

    r_i = argmax_r <K_r, x_i> + c_r,   s_i = sign(T[r_i, s_{i-1}]),   y_i = O s_i

The state is `bits` truth values, one bit each, the digits of the number of a state, lowest first;
outside of it a bit that is set is +1, another -1. At the start no bit is set. T holds for each of
`rules` rules and each state the bits of the next. Of equal products the first counts. Nothing here
has a slope but O: it is a machine to be written, not trained.
Source: theory.md, section 3 (tightness of Theorem I).
State: S (bits), truth values. Parallel form: the maps of states of all tokens, composed by
doubling.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from separatrix.mixers.base.mixer import Mixer, Shapes, State, linear, unbuilt
from separatrix.mixers.base.tensors import SomeTokens, Token, Tokens
from separatrix.stacks.mechanisms import Automaton

MOST_BITS = 20
"""A table has a column for each of 2^bits states."""


class AutomatonMixer(Mixer):
    """A finite automaton."""

    def __init__(self, mechanism: Automaton, *, width: int) -> None:
        unbuilt(mechanism, bits=mechanism.bits > MOST_BITS)
        super().__init__(mechanism, width=width)
        self.bits = mechanism.bits
        self.rules = nn.Linear(width, mechanism.rules)
        self.table = nn.Parameter(torch.empty(mechanism.rules, 1 << self.bits, self.bits))
        self.o = linear(self.bits, width)

    def shapes(self, t: int) -> Shapes:
        return {"S": (self.bits,)}

    @property
    def streams(self) -> bool:
        # bits are not rounded in either form
        return False

    def _dtype(self, name: str) -> torch.dtype:
        return torch.bool

    def _forward(self, x: Tokens) -> Tokens:
        rule, seen = self._chosen(x)
        maps = self._next()[rule]  # b t s
        step = 1
        while step < x.shape[1]:
            # what the tokens up to i - step lead to, and then those from there to i
            later = maps[:, step:].gather(2, maps[:, :-step])
            maps = torch.cat([maps[:, :step], later], 1)
            step *= 2
        return self._out(maps[:, :, 0], seen)

    def _step(self, x: Token, state: State, t: int) -> tuple[Token, State]:
        rule, seen = self._chosen(x)
        old = self._number(state["S"])
        number = self._next()[rule].gather(1, old[:, None])[:, 0]
        return self._out(number, seen), self._store(S=self._signs(number) > 0)

    def _chosen(self, x: SomeTokens) -> tuple[Int[Tensor, "*b"], Float[Tensor, "*b 1"]]:
        """The rule of each token, and a 0 that is no number where its input is none."""
        scores = self.rules(x)
        return scores.argmax(-1), 0 * scores.sum(-1, keepdim=True)

    def _next(self) -> Int[Tensor, "r s"]:
        return self._number(self.table)

    def _number(self, bits: Shaped[Tensor, "*b n"]) -> Int[Tensor, "*b"]:
        powers = 1 << torch.arange(self.bits, device=bits.device)
        return ((bits > 0) * powers).sum(-1)

    def _signs(self, number: Int[Tensor, "*b"]) -> Int[Tensor, "*b n"]:
        shift = torch.arange(self.bits, device=number.device)
        return 2 * ((number[..., None] >> shift) & 1) - 1

    def _out(self, number: Int[Tensor, "*b"], seen: Float[Tensor, "*b 1"]) -> SomeTokens:
        signs = self._signs(number).to(seen.dtype)
        # the table has no slope anywhere: 0 times it says so
        return self.o(signs + seen + 0 * self.table.sum())
