"""Laws on what is kept: the state after t tokens, and the weights in a file."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import NamedTuple

import safetensors.torch
import torch

from separatrix.core.numbers.bits import sum_bits
from separatrix.mixers import Mixer, State, state_numbers
from separatrix.mixers.base.mixer import DTYPES
from separatrix.mixers.laws.tools import demand, draws, inputs, stream

CACHE_LENGTHS = (1, 2, 3, 64, 1000, 4096)
SHORT = 64
"""Tokens for which the state is also counted in float64."""
LATER = 5
"""States, beside those after CACHE_LENGTHS, that are looked at again after the last token."""


class Kept(NamedTuple):
    """What one sequence carries in the format that the mixer declares, p16 as float64."""

    sizes: dict[int, tuple[int, int]]
    """(numbers, bits) after 0 and after each of CACHE_LENGTHS tokens."""
    most: list[int]
    """The most numbers carried after at most 0, 1, 2, ... tokens."""


@torch.no_grad()
def kept_by(mixer: Mixer) -> Kept:
    """Streams as many tokens as the longest of CACHE_LENGTHS. Raises LawBroken for a state without
    a batch axis, and for one that a later step writes into.
    """
    declared = DTYPES.get(mixer.mechanism.format)
    return _streamed(
        mixer if declared is None else copy.deepcopy(mixer).to(declared), CACHE_LENGTHS
    )


@torch.no_grad()
def cache_as_declared(mixer: Mixer, kept: Kept | None = None) -> None:
    """The state holds what the mechanism declares after t = 0, 1, 2, 3, 64, 1,000 and 4,096 tokens:
    as many numbers (float64, up to 64 tokens), and as many bits, summed over the tensors of a mixer
    cast to the declared `format`. A format PyTorch lacks (p16) has numbers only. States that were
    kept, these and five more, are at the end what they were.

    `kept` is what `kept_by` has measured of this mixer.
    """
    measured = (kept or kept_by(mixer)).sizes
    shorter = _streamed(mixer, [t for t in CACHE_LENGTHS if t <= SHORT]).sizes
    for t, (numbers, bits) in measured.items():
        wanted = sum_bits(item.bits for item in mixer.mechanism.cache(t))
        for found in (numbers, shorter.get(t, (numbers, 0))[0]):
            demand(
                found == wanted.numbers,
                f"after {t} tokens the state holds {found:,} numbers; {wanted.numbers:,} are"
                " declared",
            )
        if mixer.mechanism.format in DTYPES:
            demand(
                bits == mixer.mechanism.cache_bits(t),
                f"after {t} tokens the state holds {bits:,} bits; {mixer.mechanism.cache_bits(t):,}"
                f" are declared ({wanted})",
            )


def _streamed(mixer: Mixer, lengths: Sequence[int]) -> Kept:
    """What is carried in the format of the mixer."""
    x = inputs(mixer, 2, max(lengths)).to(mixer._like.dtype)
    state = mixer.init_state(2)
    found = {0: (state_numbers(state), _bits(state))}
    most = [found[0][0]]
    again = {
        *lengths,
        *draws("cache").sample(range(1, max(lengths)), k=min(LATER, max(lengths) - 1)),
    }
    looked_at = []
    for t in range(x.shape[1]):
        _, state = mixer.step(x[:, t], state, t)
        most.append(max(most[-1], state_numbers(state)))
        if t + 1 in lengths:
            for name, tensor in state.items():
                demand(
                    tensor.dim() and len(tensor) == 2,
                    f"state['{name}'] after {t + 1} tokens: its first axis is not the batch",
                )
            found[t + 1] = state_numbers(state), _bits(state)
        if t + 1 in again:
            looked_at.append((t + 1, state, {name: part.clone() for name, part in state.items()}))
    for t, state, before in looked_at:
        for name, tensor in before.items():
            demand(
                torch.equal(tensor, state[name]),
                f"state['{name}'] after {t} tokens, kept, is another one after {x.shape[1]:,}: a"
                " later step writes into it",
            )
    return Kept(found, most)


def _bits(state: State) -> int:
    # a truth value is one bit, though PyTorch gives it a byte
    return sum(
        tensor[0].numel() * (1 if tensor.dtype == torch.bool else tensor.element_size() * 8)
        for tensor in state.values()
    )


@torch.no_grad()
def survives_saving(mixer: Mixer) -> None:
    """A new mixer of the same sizes that loads the weights from safetensors bytes gives equal
    outputs, in both forms.
    """
    data = safetensors.torch.save(
        {name: tensor.contiguous() for name, tensor in mixer.state_dict().items()}
    )
    other = type(mixer)(mixer.mechanism, width=mixer.width).double().train(mixer.training)
    # what the file does not hold stays NaN
    for tensor in other.state_dict().values():
        if tensor.is_floating_point():
            tensor.fill_(float("nan"))
    other.load_state_dict(safetensors.torch.load(data))
    x = inputs(mixer, 2, 70)
    demand(torch.equal(mixer(x), other(x)), "outputs of forward differ after saving and loading")
    demand(
        torch.equal(stream(mixer, x[:, :5])[0], stream(other, x[:, :5])[0]),
        "outputs of step differ after saving and loading",
    )


@torch.no_grad()
def reset_draws_all(mixer: Mixer) -> None:
    """`reset` writes every parameter, and writes the same for the same seed."""
    mixers = [copy.deepcopy(mixer) for _ in range(2)]
    for one in mixers:
        for parameter in one.parameters():
            # NaN does not equal itself, so a parameter left undrawn fails below
            parameter.fill_(float("nan"))
        one.reset(torch.Generator().manual_seed(5))
    for (name, a), b in zip(mixers[0].named_parameters(), mixers[1].parameters(), strict=True):
        demand(
            torch.equal(a, b),
            f"reset leaves {name} undrawn, or draws it differently for the same seed",
        )
