"""Laws on what is kept: the state after t tokens, that nothing is kept beside it and the weights,
that tensors given and given back are apart, how far back a layer reads (which Theorem R rests on),
and the weights in a file.

A store on the module, in a closure, a list, a buffer, a global table or the state of the random
numbers would carry bits that no verdict counts.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from separatrix.core.numbers.bits import sum_bits
from separatrix.mixers import Mixer, State, state_numbers
from separatrix.mixers.base.mixer import BUFFERS, DTYPES
from separatrix.mixers.laws import tools
from separatrix.mixers.plugins.probe import apart

CACHE_LENGTHS = (1, 2, 3, 64, 1000, 4096)
SHORT = 64
"""Tokens for which the state is also counted in float64, and for two sequences."""
LATER = 5
"""States, beside those after CACHE_LENGTHS, that are looked at again after the last token."""


class Kept(NamedTuple):
    """What one sequence carries in the format that the mixer declares, p16 as float64."""

    sizes: dict[int, tuple[int, int]]
    """(numbers, bits) after 0 and after each of CACHE_LENGTHS tokens."""
    most: list[int]
    """The most numbers carried after at most 0, 1, 2, ... tokens."""


def kept_by(mixer: Mixer) -> Kept:
    """Streams as many tokens as the longest of CACHE_LENGTHS. Raises LawBroken for a state without
    a batch axis, and for one that a later step writes into.
    """
    declared = DTYPES.get(mixer.mechanism.format, torch.float64)
    return _streamed(tools.cast(mixer, declared), CACHE_LENGTHS, 1)


def cache_as_declared(mixer: Mixer, kept: Kept | None = None) -> None:
    """The state holds what the mechanism declares after t = 0, 1, 2, 3, 64, 1,000 and 4,096 tokens:
    as many numbers (float64, up to 64 tokens), and as many bits, summed over the tensors of a mixer
    cast to the declared `format`. A format PyTorch lacks (p16) has numbers only. States that were
    kept, these and five more, are at the end what they were.

    `kept` is what `kept_by` has measured of this mixer.
    """
    shorter = _streamed(mixer, [t for t in CACHE_LENGTHS if t <= SHORT], 2).sizes
    for t, (numbers, bits) in (kept or kept_by(mixer)).sizes.items():
        wanted = sum_bits(item.bits for item in mixer.mechanism.cache(t))
        several = {numbers, shorter[t][0]} if t in shorter else {numbers}
        counts = [("numbers", found, wanted.numbers) for found in several]
        if mixer.mechanism.format in DTYPES:
            counts.append(("bits", bits, mixer.mechanism.cache_bits(t)))
        for what, found, said in counts:
            tools.demand(
                found == said,
                f"after {t} tokens the state holds {found:,} {what}; {said:,} are declared"
                f" ({wanted})",
            )


# some 15 % quicker than without gradients alone
@torch.inference_mode()
def _streamed(mixer: Mixer, lengths: Sequence[int], batch: int) -> Kept:
    x = tools.inputs(mixer, batch, max(lengths)).to(mixer._like.dtype)
    state = mixer.init_state(batch)
    found = {0: (state_numbers(state), _bits(state))}
    most = [found[0][0]]
    some = tools.draws("cache").sample(range(1, max(lengths)), k=min(LATER, max(lengths) - 1))
    looked_at = []
    for t in range(x.shape[1]):
        _, state = mixer.step(x[:, t], state, t)
        most.append(max(most[-1], state_numbers(state)))
        if t + 1 in lengths:
            for name, tensor in state.items():
                tools.demand(
                    tensor.dim() and len(tensor) == batch,
                    f"state['{name}'] after {t + 1} tokens: its first axis is not the batch",
                )
            found[t + 1] = state_numbers(state), _bits(state)
        if t + 1 in (*lengths, *some):
            looked_at.append((t + 1, state, _numbers(state)))
    for t, state, before in looked_at:
        what = f"after {t} tokens, kept, is another one after {x.shape[1]:,}: a later step writes"
        _same(before, state, f"{what} into it")
    return Kept(found, most)


def _bits(state: State) -> int:
    # a truth value is one bit, though PyTorch gives it a byte
    return sum(
        tensor[0].numel() * (1 if tensor.dtype == torch.bool else tensor.element_size() * 8)
        for tensor in state.values()
    )


def _numbers(tensors: State) -> State:
    return {name: tensor.detach().clone() for name, tensor in tensors.items()}


def _same(before: State, after: State, otherwise: str) -> None:
    for name, tensor in before.items():
        tools.demand(torch.equal(tensor, after[name]), f"'{name}': {otherwise}")


LOADED = (150, 1200)
"""Tokens read with weights that were loaded, from and to."""


@torch.no_grad()
def survives_saving(mixer: Mixer) -> None:
    """A new mixer of the same sizes that loads the weights from safetensors bytes gives equal
    outputs, in both forms, `forward` at a drawn length.
    """
    other = type(mixer)(mixer.mechanism, width=mixer.width).double().train(mixer.training)
    # what the file does not hold stays NaN
    for tensor in other.state_dict().values():
        if tensor.is_floating_point():
            tensor.fill_(float("nan"))
    other.load_state_dict(tools.moved(mixer.state_dict()))
    x = tools.inputs(mixer, 2, tools.draws("saved").randint(*LOADED))
    tools.demand(
        torch.equal(mixer(x), other(x)), "outputs of forward differ after saving and loading"
    )
    tools.demand(
        torch.equal(tools.stream(mixer, x[:, :5])[0], tools.stream(other, x[:, :5])[0]),
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
        tools.demand(
            torch.equal(a, b),
            f"reset leaves {name} undrawn, or draws it differently for the same seed",
        )


ALONE = 150
AFTER = 20


@torch.no_grad()
def nothing_is_kept(mixer: Mixer) -> None:
    """Two sequences in turn give what each gives by itself; calling changes no weight, buffer or
    random number; and outputs do not depend on what was called before, on how the input lies in
    memory, on equal rows, or on whether gradients are taken or weights ask for them.
    """
    x = tools.inputs(mixer, 2, ALONE, seed=61)
    alone, _ = tools.stream(copy.deepcopy(mixer), x)
    before = _numbers(_held(mixer))
    with apart(0):
        random = torch.get_rng_state()
        y = mixer(x)
        steps = _in_turn(mixer, x)
        tools.demand(
            torch.equal(random, torch.get_rng_state()),
            "forward or step draws from PyTorch's random numbers in eval mode",
        )
    tools.close(steps, alone, "outputs of step, a second sequence in turn, and without it")
    _called_again(mixer, x, y, steps)
    for name, tensor in _held(mixer).items():
        tools.demand(
            name in before
            and before[name].shape == tensor.shape
            and torch.equal(before[name].nan_to_num(), tensor.nan_to_num()),
            f"calling forward or step in eval mode changes {name}",
        )


def _held(mixer: Mixer) -> State:
    """Weights and buffers, those that are not saved among them."""
    return dict(mixer.named_parameters()) | dict(mixer.named_buffers())


def _in_turn(mixer: Mixer, x: Tensor) -> Tensor:
    both = (x, tools.inputs(mixer, 2, ALONE, seed=62))
    states = [mixer.init_state(2), mixer.init_state(2)]
    outputs = []
    for t in range(ALONE):
        for place, tokens in enumerate(both):
            y, states[place] = mixer.step(tokens[:, t].clone(), states[place], t)
            outputs.append(y)
    return torch.stack(outputs[::2], 1)


def _called_again(mixer: Mixer, x: Tensor, y: Tensor, steps: Tensor) -> None:
    """The other way round, after another sequence, and with gradients."""
    few, then = x[:, :AFTER], steps[:, :AFTER]
    mixer(tools.inputs(mixer, 3, 40, seed=63))
    tools.close(tools.stream(mixer, few)[0], then, "outputs of step, called again,")
    frozen = copy.deepcopy(mixer).requires_grad_(False)
    tools.close(frozen(x), y, "outputs of forward with weights that ask for gradients and without")
    tools.close(tools.stream(frozen, few)[0], then, "outputs of step of such weights")
    # the same numbers between others in memory, and every row twice
    for what, times, given in (
        ("strided", 1, lambda x: torch.stack([x, x], -1)[..., 0]),
        ("repeated", 2, lambda x: x.repeat_interleave(2, 0)),
    ):
        what = f"of {what} inputs and of others"
        found = mixer(given(x))
        tools.close(found, y.repeat_interleave(times, 0), f"outputs of forward {what}")
        state = mixer.init_state(len(x) * times)
        for t in range(AFTER):
            found, state = mixer.step(given(x[:, t]), state, t)
            wanted = then[:, t].repeat_interleave(times, 0)
            tools.close(found, wanted, f"outputs of step {what}")
    with torch.inference_mode():
        tools.close(mixer(x.clone()), y, "outputs of forward in inference mode and outside of it")
    with torch.enable_grad(), apart(7):
        found = mixer(x.clone().requires_grad_())
        tools.close(found, y, "outputs of forward with and without gradients")
        found, _ = tools.stream(mixer, few.clone().requires_grad_())
        tools.close(found, then, "outputs of step with and without gradients")


STEPS = 140
"""Tokens looked at: beyond two chunks of 64, and most windows and blocks."""


@torch.no_grad()
def tensors_are_apart(mixer: Mixer) -> None:
    """`forward` and `step` change neither input nor the state given, the new state shares no memory
    with input or output, and keeps no more alive than it holds numbers.
    """
    x = tools.inputs(mixer, 2, STEPS, seed=21)
    before = {"x": x.clone()}
    mixer(x)
    mixer.last(x)
    _same(before, {"x": x}, "forward or last changes its input in place; clone it")
    noise = tools.inputs(mixer, 2, 1, seed=22)[:, 0]
    state = mixer.init_state(2)
    _no_larger(state, 0)
    for t in range(STEPS):
        token = x[:, t].clone()
        before = _numbers(state)
        y, new = mixer.step(token, state, t)
        tools.demand(
            torch.equal(token, x[:, t]), f"token {t}: step changes its input in place; clone it"
        )
        _same(before, state, f"token {t}: step changes the state it is given in place; clone it")
        _no_larger(new, t + 1)
        after = _numbers(new)
        # a caller may use one buffer for every token, and add to what it gets
        for what, given in (("input", token), ("output", y)):
            given.copy_(noise)
            what = f"the new state changes when the {what} is overwritten; clone it"
            _same(after, new, f"token {t}: {what}")
        state = new


def _no_larger(state: State, t: int) -> None:
    """Views of one tensor may share its memory; what no view shows must not stay."""
    held = sum(tensor.numel() * tensor.element_size() for tensor in state.values())
    storages = [tensor.untyped_storage() for tensor in state.values()]
    found = sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())
    tools.demand(
        found <= held,
        f"after {t} tokens the state holds {held:,} bytes but keeps {found:,} alive, as views of"
        " larger tensors; clone them",
    )


CUT = 9
"""Tokens before the cut, no border of a chunk of 2, 4 or 8."""
BEYOND = 3
"""Outputs that are looked at beyond the reach."""


@torch.no_grad()
def forgets(mixer: Mixer) -> None:
    """Two inputs differ in their first 9 tokens, and one is given the other's recurrent state where
    the mechanism hands it over. Beyond the reach that the mechanism declares, their outputs are
    then equal bit for bit, and not one token earlier; the state has as many numbers as declared.
    """
    reach = mixer.mechanism.reach
    if reach is None or mixer.mechanism.origin:
        return
    handed = reach.handed(CUT)
    beyond = reach.beyond(CUT)
    ours = tools.inputs(mixer, 1, beyond + BEYOND, seed=91)
    theirs = torch.cat([tools.inputs(mixer, 1, CUT, seed=92), ours[:, CUT:]], 1)
    one, other = mixer.init_state(1), mixer.init_state(1)
    for t in range(beyond + BEYOND):
        y, one = mixer.step(ours[:, t], one, t)
        z, other = mixer.step(theirs[:, t], other, t)
        if t + 1 == handed:
            states = {name: x.clone() for name, x in one.items() if name not in BUFFERS}
            found = sum(x.numel() for x in states.values())
            wanted = mixer.mechanism.handed_over(handed).numbers
            tools.demand(
                found == wanted,
                f"after {handed} tokens the recurrent state holds {found:,} numbers; {wanted:,} are"
                " declared to be handed over",
            )
            other = other | states
        if t + 1 == beyond:
            tools.demand(
                not torch.equal(y, z),
                f"{beyond - CUT} tokens behind the cut are declared to be within reach, and the"
                " last of them sees nothing of what stands before it",
            )
        tools.demand(
            t < beyond or torch.equal(y, z),
            f"{t + 1 - CUT} tokens behind a cut an output still depends on what stands before it,"
            f" though states are equal; the declared reach is {beyond - CUT}",
        )
