"""The law on what is kept elsewhere: nothing is, beside the weights and the state.

A store on the module, in a closure, a list, a buffer, a global table or the state of the random
numbers would carry bits that no verdict counts.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from separatrix.mixers import Mixer
from separatrix.mixers.laws.elsewhere import streamed_elsewhere
from separatrix.mixers.laws.tools import close, demand, inputs, seeded, stream

TOKENS = 150
CUTS = (1, 33, 64, 129)
AFTER = 20


@torch.no_grad()
def nothing_is_kept(mixer: Mixer) -> None:
    """A mixer continues from the states of another process; two sequences in turn give what each
    gives by itself; calling changes no weight, buffer or random number; and outputs do not depend
    on what was called before, or on whether gradients are taken.
    """
    unused = copy.deepcopy(mixer)
    x = inputs(mixer, 2, TOKENS, seed=61)
    # before this process has seen a token of x, so that no store of its own can help
    states = streamed_elsewhere(unused, x[:, : max(c for c in CUTS if c < TOKENS)], CUTS)[1]
    rests = {
        cut: stream(copy.deepcopy(unused), x[:, cut : cut + AFTER], state, cut)[0]
        for cut, state in states.items()
    }
    before = _numbers(mixer)
    with seeded():
        random = torch.get_rng_state()
        y = mixer(x)
        steps, _ = stream(mixer, x)
        same = torch.equal(random, torch.get_rng_state())
    demand(same, "forward or step draws from PyTorch's random numbers in eval mode")
    for cut, rest in rests.items():
        close(
            rest,
            steps[:, cut : cut + AFTER],
            f"cut after {cut} tokens: outputs of step continued from the state of another process"
            " and in one pass",
        )
    _in_turn(copy.deepcopy(unused), x, steps)
    _called_again(mixer, x, y, steps)
    for name, tensor in _numbers(mixer).items():
        demand(
            name in before and _equal(before[name], tensor),
            f"calling forward or step in eval mode changes {name}",
        )


def _in_turn(mixer: Mixer, x: Tensor, steps: Tensor) -> None:
    """Two sequences through one mixer, a token of each in turn."""
    other = inputs(mixer, 2, TOKENS, seed=62)
    states = [mixer.init_state(2), mixer.init_state(2)]
    outputs = []
    for t in range(TOKENS):
        y, states[0] = mixer.step(x[:, t].clone(), states[0], t)
        _, states[1] = mixer.step(other[:, t].clone(), states[1], t)
        outputs.append(y)
    close(
        torch.stack(outputs, 1),
        steps,
        "outputs of step with a second sequence in turn and without it",
    )


def _called_again(mixer: Mixer, x: Tensor, y: Tensor, steps: Tensor) -> None:
    """The other way round, after another sequence, and with gradients."""
    mixer(inputs(mixer, 3, 40, seed=63))
    close(stream(mixer, x[:, :AFTER])[0], steps[:, :AFTER], "outputs of step, called again,")
    with torch.inference_mode():
        close(mixer(x.clone()), y, "outputs of forward in inference mode and outside of it")
    with torch.enable_grad(), seeded(7):
        close(mixer(x.clone().requires_grad_()), y, "outputs of forward with and without gradients")
        close(
            stream(mixer, x[:, :AFTER].clone().requires_grad_())[0],
            steps[:, :AFTER],
            "outputs of step with and without gradients",
        )


def _numbers(mixer: Mixer) -> dict[str, Tensor]:
    """Every parameter and buffer, those that are not saved among them."""
    found = {**dict(mixer.named_parameters()), **dict(mixer.named_buffers())}
    return {name: tensor.detach().clone() for name, tensor in found.items()}


def _equal(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and torch.equal(a.nan_to_num(), b.nan_to_num())
