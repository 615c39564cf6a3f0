"""Laws on forms: the recurrence, the parallel form, its chunks, and stacked models compute one
causal function. All in float64.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from separatrix.mixers import Mixer
from separatrix.mixers.laws.places import places
from separatrix.mixers.laws.tools import (
    LENGTHS,
    ROUNDING,
    all_close,
    close,
    demand,
    drawn,
    gradients,
    inputs,
    keeps_past,
    largest,
    moved,
    seeded,
    stream,
    stream_and_keep,
    tolerance,
    within,
)

CHUNKS = (1, 7, 16, 100, 1000)
BATCHES = (1, 5)
SCALED = 70
"""Tokens of small and large inputs."""


def forms_agree(mixer: Mixer) -> None:
    """`step` equals `forward`: outputs at T = 1, 63, 64, 65, 200 and batch 1 and 5, and of inputs
    of size 0.01 and 30; gradients by the input and by all parameters of one random function of the
    outputs of all lengths together.
    """
    for batch in BATCHES:
        x = inputs(mixer, batch, max(LENGTHS)).requires_grad_()
        steps, _ = stream(mixer, x)
        whole = [mixer(x[:, :tokens]) for tokens in LENGTHS]
        for tokens, y in zip(LENGTHS, whole, strict=True):
            close(steps[:, :tokens], y, f"T={tokens}, batch {batch}: outputs of step and forward")
        # one function of all lengths at once: a single backward pass through the loop of steps
        by_step = gradients(mixer, x, [steps[:, :tokens] for tokens in LENGTHS])
        all_close(by_step, gradients(mixer, x, whole), f"batch {batch}, step and forward")
    with torch.no_grad():
        for size in (0.01, 30.0):
            x = size * inputs(mixer, 1, SCALED, seed=5)
            what = f"inputs of size {size:g}: outputs of step and forward"
            # sums of large numbers that cancel lose a digit more
            with tolerance(10 * within()):
                close(stream(mixer, x)[0], mixer(x), what)


def chunks_do_not_matter(mixer: Mixer) -> None:
    """Any chunk size (1, 7, 16, 100, 1000) gives the outputs and gradients of the default one,
    at every length of `forms_agree`.
    """
    mixer = copy.deepcopy(mixer)  # the loop below sets its chunk
    x = inputs(mixer, 2, max(LENGTHS)).requires_grad_()
    wanted = [mixer(x[:, :tokens]) for tokens in LENGTHS]
    by_default = gradients(mixer, x, wanted)
    for mixer.chunk in CHUNKS:
        found = [mixer(x[:, :tokens]) for tokens in LENGTHS]
        for tokens, y, z in zip(LENGTHS, wanted, found, strict=True):
            close(y, z, f"T={tokens}: outputs of forward in chunks of {mixer.chunk} and by default")
            close(
                mixer.last(x[:, :tokens]),
                z[:, -1],
                f"T={tokens}, chunks of {mixer.chunk}: outputs of last and forward",
            )
        all_close(
            by_default,
            gradients(mixer, x, found),
            f"forward in chunks of {mixer.chunk} and by default",
        )


def last_is_last(mixer: Mixer) -> None:
    """`last` equals the last output of `forward`, and has its gradients."""
    for batch in BATCHES:
        x = inputs(mixer, batch, max(LENGTHS)).requires_grad_()
        wanted = []
        found = []
        for tokens in (1, 2, *LENGTHS[1:]):
            wanted.append(mixer(x[:, :tokens])[:, -1])
            found.append(mixer.last(x[:, :tokens]))
            close(found[-1], wanted[-1], f"T={tokens}, batch {batch}: outputs of last and forward")
        all_close(
            gradients(mixer, x, found),
            gradients(mixer, x, wanted),
            f"batch {batch}, last and forward",
        )


@torch.no_grad()
def causal(mixer: Mixer) -> None:
    """Changing token t moves no output before t by more than rounding, in train mode neither,
    and does move one from t on.
    """
    x = inputs(mixer, 1, 130)
    y = mixer(x)
    # the first tokens, and those around the borders of chunks of 64
    for t in (0, 1, 31, 63, 64, 65, 128):
        changed = x.clone()
        changed[:, t] = inputs(mixer, 1, 1, seed=3)[:, 0]
        z = mixer(changed)
        gap = largest([y[:, :t] - z[:, :t]])
        demand(
            gap <= ROUNDING * largest([y, z]),
            f"a change of token {t} moves outputs of forward before it, by {gap:.3g}",
        )
        # a constant would be causal, too
        demand(
            not torch.equal(y[:, t:], z[:, t:]),
            f"a change of token {t} of 130 moves no output of forward from it on",
        )
    for tokens in (130, 600):
        _causal_in_training(mixer, inputs(mixer, 1, tokens))


def _causal_in_training(mixer: Mixer, x: Tensor) -> None:
    """With equal random numbers even a mixer with dropout gives equal outputs; a norm over tokens
    does not.
    """
    mixer = copy.deepcopy(mixer).train()
    other = inputs(mixer, 1, x.shape[1], seed=4)

    def forward(x: Tensor) -> Tensor:
        with seeded():
            return mixer(x)

    keeps_past(forward, x, other, (40, 100), "in train mode, ")


@torch.no_grad()
def split_is_one_pass(mixer: Mixer) -> None:
    """A second mixer that gets only the weights and the state continues as if it had seen every
    token.
    """
    x = inputs(mixer, 3, 80)
    unused = copy.deepcopy(mixer)
    whole, states = stream_and_keep(copy.deepcopy(unused), x, (1, 17, 32, 64))
    states = {cut: moved(state) for cut, state in states.items()}
    # a store outside of state and weights would now hold other tokens
    stream(copy.deepcopy(unused), inputs(mixer, 3, 80, seed=7))
    for cut, state in states.items():
        end = min(cut + 30, x.shape[1])
        rest, _ = stream(copy.deepcopy(unused), x[:, cut:end], state, cut)
        close(
            rest,
            whole[:, cut:end],
            f"cut after {cut} tokens: outputs of step in two passes and in one",
        )


def stacks(mixer: Mixer) -> None:
    """torch.func.vmap over stacked models equals one model after the other: forward, last, at,
    step, and gradients by the parameters.
    """
    models = [drawn(copy.deepcopy(mixer), seed) for seed in range(3)]
    parameters, buffers = stack_module_state(models)  # type: ignore[arg-type]
    x = torch.stack([inputs(mixer, 2, 130, seed) for seed in range(3)])
    calls: dict[str, Callable[[Mixer, Tensor], Tensor]] = {
        "forward": lambda m, x: m(x),
        "last": lambda m, x: m.last(x),
        "at": lambda m, x: m.at(x, places(x, 3)),
        "step": lambda m, x: stream(m, x[:, :12])[0],
    }
    runners = {name: _Runner(copy.deepcopy(mixer), call) for name, call in calls.items()}
    for name, runner in runners.items():
        stacked = vmap(
            lambda p, b, x, runner=runner: functional_call(
                runner, ({f"mixer.{k}": v for k, v in (p | b).items()},), (x,)
            )
        )(parameters, buffers, x)
        alone = torch.stack([calls[name](m, x[i]) for i, m in enumerate(models)])
        close(stacked, alone, f"outputs of {name} under vmap and one model at a time")
        if not parameters:
            continue
        by_stack = torch.autograd.grad(
            stacked.square().sum(),
            list(parameters.values()),
            materialize_grads=True,
            allow_unused=True,
        )
        by_alone = torch.autograd.grad(
            alone.square().sum(),
            [p for m in models for p in m.parameters()],
            materialize_grads=True,
            allow_unused=True,
        )
        # model after model: every len(parameters)-th gradient is of the same parameter
        grouped = [torch.stack(by_alone[i :: len(parameters)]) for i in range(len(parameters))]
        all_close(
            dict(zip(parameters, by_stack, strict=True)),
            dict(zip(parameters, grouped, strict=True)),
            f"{name} under vmap and one model at a time",
        )


class _Runner(torch.nn.Module):
    """Lets functional_call reach methods other than forward."""

    def __init__(self, mixer: Mixer, call: Callable[[Mixer, Tensor], Tensor]) -> None:
        super().__init__()
        self.mixer = mixer
        self.call = call

    def forward(self, x: Tensor) -> Tensor:
        return self.call(self.mixer, x)
