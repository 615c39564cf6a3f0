"""Laws on forms: the recurrence, the parallel form, its chunks, some places of it, rows of a batch
and stacked models compute one causal function, also of long sequences. All in float64.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache, partial

import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from separatrix.mixers import Mixer
from separatrix.mixers.base.mixer import taken
from separatrix.mixers.laws.tools import (
    LENGTHS,
    agree,
    all_close,
    asked,
    asking,
    casts,
    close,
    demand,
    drawn,
    draws,
    gradients,
    inputs,
    keeps_past,
    refused,
    stream,
    streamed,
)
from separatrix.mixers.plugins.probe import apart

CHUNKS = (1, 7, 16, 100, 1000)
BATCHES = (1, 2)
SCALED = 70
"""Tokens of small and large inputs."""
PLACED = (1, 2, 63, 65, 130, 200)
ASKED = (1, 5, 300)
"""Tokens of which some outputs are asked for, and how many: more than there are asks some twice."""
HALF = 70
"""Tokens in half formats."""
ULPS = 64
"""Roundings of a half format, of the largest output, by which outputs at places may differ."""
FEW = range(2, 6)
MANY = range(6, 13)
MORE = (13, 70)
"""Batches in which every row must come out as alone; two of more rows are drawn."""
ROW = 130
SHORT = 20
STEPPED = 8
"""Tokens of a row in a few rows, in many, and of `step`; that it equals forward in batches is
another law.
"""
LONG = (400, 1024, 1100)
CHANGED = (128, 256, 257, 512, 600, 768, 1024)
"""Everything from such a token on is changed at once."""


def forms_agree(mixer: Mixer) -> None:
    """`step` equals `forward`: outputs at T = 1, 63, 64, 65, 200 and batch 1 and 2, and of inputs
    of size 0.01 and 30; gradients by the input and by all parameters of one random function of the
    outputs of all lengths together.
    """
    for batch in BATCHES:
        x = inputs(mixer, batch, max(LENGTHS)).requires_grad_()
        # one function of all lengths at once: a single backward pass through the loop of steps
        agree(mixer, x, LENGTHS, {"step": streamed(mixer, x), "forward": mixer}, f"batch {batch}")
    with torch.no_grad():
        for size in (0.01, 30.0):
            x = size * inputs(mixer, 1, SCALED, seed=5)
            what = f"inputs of size {size:g}: outputs of step and forward"
            # sums of large numbers that cancel lose a digit more
            with asking(tolerance=10 * asked().tolerance):
                close(stream(mixer, x)[0], mixer(x), what)


def chunks_do_not_matter(mixer: Mixer) -> None:
    """Any chunk size (1, 7, 16, 100, 1000) gives the outputs and gradients of the default one,
    at every length of `forms_agree`.
    """
    mixer = copy.deepcopy(mixer)  # its chunk is set
    x = inputs(mixer, 1, max(LENGTHS)).requires_grad_()
    wanted = [mixer(x[:, :tokens]) for tokens in LENGTHS]
    by_default = gradients(mixer, x, wanted)
    for mixer.chunk in CHUNKS:
        of = f"in chunks of {mixer.chunk}"
        found = [mixer(x[:, :tokens]) for tokens in LENGTHS]
        for tokens, y, z in zip(LENGTHS, found, wanted, strict=True):
            close(y, z, f"T={tokens}: outputs of forward {of} and by default")
            with torch.no_grad():
                last = mixer.last(x[:, :tokens])
            close(last, y[:, -1], f"T={tokens}, {of}: outputs of last and forward")
        all_close(gradients(mixer, x, found), by_default, f"forward {of} and by default")


def last_is_last(mixer: Mixer) -> None:
    """`last` equals the last output of `forward`, and has its gradients."""
    forms = {"last": mixer.last, "forward": lambda part: mixer(part)[:, -1]}
    for batch in BATCHES:
        x = inputs(mixer, batch, max(LENGTHS)).requires_grad_()
        agree(mixer, x, (1, 2, *LENGTHS[1:]), forms, f"batch {batch}")


def at_is_forward(mixer: Mixer) -> None:
    """`at` equals `forward` gathered at the places, and has its gradients, for one place and for
    several, unsorted and repeated, in every format; places that are no token's are refused.
    """
    x = inputs(mixer, 2, max(PLACED)).requires_grad_()
    forms = {
        "at": lambda part: torch.cat([mixer.at(part, places(part, n)) for n in ASKED], 1),
        "forward": lambda part: taken(mixer(part), torch.cat([places(part, n) for n in ASKED], 1)),
    }
    agree(mixer, x, PLACED, forms, "1, 5 and 300 places")
    for name, half in casts(mixer):
        x = inputs(mixer, 2, HALF, seed=62).to(half._like.dtype)
        with torch.no_grad():
            found, wanted = half.at(x, places(x, 5)), taken(half(x), places(x, 5))
        demand(found.dtype == x.dtype, f"{name}: outputs of at are {found.dtype}")
        # what the format cannot hold is for the law on finite outputs
        if wanted.isfinite().all() and found.isfinite().all():
            with asking(tolerance=ULPS * torch.finfo(x.dtype).eps):
                close(found.double(), wanted.double(), f"{name}: outputs of at and forward")
    for what, wrong in {
        "a negative place": torch.tensor([[0], [-1]]),
        "a place behind the last token": torch.tensor([[0], [4]]),
        "places of another batch": torch.zeros(3, 1, dtype=torch.int64),
        "no places": torch.zeros(2, 0, dtype=torch.int64),
        "places of another format": torch.zeros(2, 1, dtype=torch.int32),
    }.items():
        refused(f"at of {what}", partial(mixer.at, inputs(mixer, 2, 4), wrong))


def places(x: Tensor, count: int) -> Tensor:
    """(batch, count) places of tokens of x: the last, the first, then some in no order."""
    # not drawn: vmap allows no random numbers inside
    rows = torch.arange(1, len(x) + 1)[:, None]
    chosen = (29 * rows * torch.arange(count) + 5) % x.shape[1]
    chosen[:, 0] = x.shape[1] - 1
    chosen[:, 1:2] = 0
    return chosen


def in_training(mixer: Mixer) -> Callable[[Tensor], Tensor]:
    """`forward` of a copy in train mode. With equal random numbers even a mixer with dropout gives
    equal outputs; a norm over tokens or over the batch does not.
    """
    training = copy.deepcopy(mixer).train()

    def forward(x: Tensor) -> Tensor:
        with apart(0):
            return training(x)

    return forward


@torch.no_grad()
def causal(mixer: Mixer) -> None:
    """Changing token t moves no output before t by more than rounding, in train mode neither,
    and does move one from t on.
    """
    # the first tokens, and those around the borders of chunks of 64
    cuts = (0, 1, 31, 63, 64, 65, 128)
    x = inputs(mixer, 1, 130)
    other = inputs(mixer, 1, 1, seed=3).expand_as(x)
    for t, y, z in keeps_past(mixer, x, other, cuts, lambda cut: "", alone=True):
        # a constant would be causal, too
        demand(
            not torch.equal(y[:, t:], z[:, t:]),
            f"a change of token {t} of 130 moves no output of forward from it on",
        )
    forward = in_training(mixer)
    for tokens in (130, 600):
        x, other = (inputs(mixer, 1, tokens, seed) for seed in (1, 4))

        def by_rows(x: Tensor) -> Tensor:
            return torch.cat([forward(row) for row in x.split(1)])

        keeps_past(by_rows, x, other, (40, 100), lambda cut: "in train mode, ")


@torch.no_grad()
def rows_are_alone(mixer: Mixer) -> None:
    """A row alone equals the row in batches of 2 to 12 and in two larger ones, in both forms; in
    train mode, too, changing one row moves no other.
    """
    draw = draws("rows")
    batches = [*FEW, *MANY, *(draw.randint(*MORE) for _ in range(2))]
    rows = inputs(mixer, max(batches), ROW, seed=11)
    forms: dict[str, Callable[[Tensor], Tensor]] = {
        "forward": mixer,
        "last": mixer.last,
        "step": lambda x: stream(mixer, x[:, :STEPPED])[0],
    }
    for name, form in forms.items():
        alone = cache(lambda row, tokens, form=form: form(rows[row : row + 1, :tokens]))
        for batch in batches:
            tokens = ROW if batch in FEW else SHORT
            whole = form(rows[:batch, :tokens])
            # those that were last in a batch before are known alone
            for row in {batch - 1, draw.choice([0, *(b - 1 for b in batches if b <= batch)])}:
                what = f"row {row + 1} alone and in a batch of {batch}: outputs of {name}"
                close(alone(row, tokens), whole[row : row + 1], what)
    forward = in_training(mixer)
    for batch in (2, 5):
        x = rows[:batch].clone()
        y = forward(x)
        x[1] = inputs(mixer, 1, ROW, seed=13)[0]
        z = forward(x)
        others = [row for row in range(batch) if row != 1]
        demand(
            torch.equal(y[others], z[others]),
            "in train mode a change of one row moves outputs of forward in other rows",
        )


def holds_when_long(mixer: Mixer) -> None:
    """At 400, 1,024 and 1,100 tokens `step`, `forward` and `last` agree, at 400 their gradients,
    too, and no future token moves an earlier output.
    """
    x = inputs(mixer, 1, max(LONG), seed=51)
    first = x[:, : min(LONG)].clone().requires_grad_()
    steps, state = stream(mixer, first)
    agree(mixer, first, (min(LONG),), {"step": lambda _: steps, "forward": mixer})
    with torch.no_grad():
        state = {name: kept.detach() for name, kept in state.items()}
        steps = torch.cat([steps, stream(mixer, x[:, min(LONG) :], state, min(LONG))[0]], 1)
        for tokens in LONG:
            y, what = mixer(x[:, :tokens]), f"T={tokens}: outputs of"
            close(steps[:, :tokens], y, f"{what} step and forward")
            close(mixer.last(x[:, :tokens]), y[:, -1], f"{what} last and forward")
            other = inputs(mixer, 1, tokens, seed=52)
            keeps_past(mixer, x[:, :tokens], other, CHANGED, lambda cut, t=tokens: f"T={t}: ")


def stacks(mixer: Mixer) -> None:
    """torch.func.vmap over stacked models equals one model after the other: forward, last, at,
    step, and gradients by the parameters.
    """
    models = [drawn(copy.deepcopy(mixer), seed) for seed in range(3)]
    parameters, buffers = stack_module_state(models)  # type: ignore[arg-type]
    x = torch.stack([inputs(mixer, 2, 130, seed) for seed in range(3)])
    calls: dict[str, Callable[[Mixer, Tensor], Tensor]] = {
        "forward": lambda m, x: type(m).forward(m, x),
        "last": lambda m, x: m.last(x),
        "at": lambda m, x: m.at(x, places(x, 3)),
        "step": lambda m, x: stream(m, x[:, :12])[0],
    }
    for name, call in calls.items():
        runner = copy.deepcopy(mixer)
        # functional_call reaches forward alone
        runner.forward = partial(call, runner)  # type: ignore[method-assign]
        stacked = vmap(partial(functional_call, runner))((parameters, buffers), x)
        alone = torch.stack([call(m, x[i]) for i, m in enumerate(models)])
        close(stacked, alone, f"outputs of {name} under vmap and one model at a time")
        if not parameters:
            continue
        leaves = [p for m in models for p in m.parameters()]
        by_stack, by_alone = (
            torch.autograd.grad(y.square().sum(), wanted, materialize_grads=True, allow_unused=True)
            for y, wanted in ((stacked, list(parameters.values())), (alone, leaves))
        )
        # model after model: every len(parameters)-th gradient is of the same parameter
        grouped = [torch.stack(by_alone[i :: len(parameters)]) for i in range(len(parameters))]
        all_close(
            dict(zip(parameters, by_stack, strict=True)),
            dict(zip(parameters, grouped, strict=True)),
            f"{name} under vmap and one model at a time",
        )
