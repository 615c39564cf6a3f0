"""The law on what `step` is given and what it gives back: tensors of its own."""

from __future__ import annotations

import torch
from torch import Tensor

from separatrix.mixers import Mixer, State
from separatrix.mixers.laws.tools import demand, inputs

STEPS = 140
"""Tokens looked at: beyond two chunks of 64, and most windows and blocks."""


@torch.no_grad()
def tensors_are_apart(mixer: Mixer) -> None:
    """`step` changes neither its input nor the state it is given, keeps no part of the input, and
    its state keeps no more memory alive than it holds numbers.
    """
    x = inputs(mixer, 2, STEPS, seed=21)
    noise = inputs(mixer, 2, 1, seed=22)[:, 0]
    state = mixer.init_state(2)
    _no_larger(state, 0)
    for t in range(STEPS):
        token = x[:, t].clone()
        before = {name: tensor.clone() for name, tensor in state.items()}
        _, new = mixer.step(token, state, t)
        demand(torch.equal(token, x[:, t]), f"token {t}: step changes its input in place")
        _same(before, state, f"token {t}: step changes the state it is given in place")
        _no_larger(new, t + 1)
        after = {name: tensor.clone() for name, tensor in new.items()}
        # a caller may use one buffer for every token
        token.copy_(noise)
        _same(after, new, f"token {t}: the new state changes when the input is overwritten")
        state = new


def _same(a: State, b: State, otherwise: str) -> None:
    for name in a:
        demand(torch.equal(a[name], b[name]), f"{otherwise} (state['{name}']); clone it")


def _no_larger(state: State, t: int) -> None:
    """Views of one tensor may share its memory; what no view shows must not stay."""
    held = sum(tensor.numel() * tensor.element_size() for tensor in state.values())
    found = sum(_memory(list(state.values())).values())
    demand(
        found <= held,
        f"after {t} tokens the state holds {held:,} bytes but keeps {found:,} alive, as views of"
        " larger tensors; clone them",
    )


def _memory(tensors: list[Tensor]) -> dict[int, int]:
    """Bytes of every piece of memory behind some tensors."""
    storages = [tensor.untyped_storage() for tensor in tensors]
    return {storage.data_ptr(): storage.nbytes() for storage in storages}
