"""Laws on forms: the recurrence, the parallel form, its chunks, some places of it, rows of a batch
and stacked models compute one causal function, also of long sequences. All in float64.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from separatrix.mixers import Mixer
from separatrix.mixers.base.mixer import taken
from separatrix.mixers.laws.tools import (
    LENGTHS,
    agree,
    all_close,
    close,
    continues,
    demand,
    drawn,
    formats_asked,
    inputs,
    keeps_past,
    refused,
    seeded,
    stream,
    streamed_elsewhere,
    tolerance,
    within,
)

CHUNKS = (1, 7, 16, 100, 1000)
BATCHES = (1, 5)
SCALED = 70
"""Tokens of small and large inputs."""
PLACED = (1, 2, 63, 65, 130, 200)
ASKED = (1, 5, 300)
"""Tokens of which some outputs are asked for, and how many: more than there are asks some twice."""
HALF = 70
"""Tokens in half formats."""
ULPS = 64
"""Roundings of a half format, of the largest output, by which outputs at places may differ."""
OTHERS = (2, 3, 4, 9)
"""Batches in which every row must come out as in the one of 5."""
ROW = 130
STEPS = 20
"""Tokens of a row, and those of `step`; that step equals forward in batches is another law."""
LONG = (600, 1100)
CUTS = (127, 129, 300, 511, 512, 600, 1023)
AFTER = 24
"""Tokens streamed after a cut; after 300, a whole block of 256."""
CHANGED = (128, 256, 257, 512, 600, 768, 1024)
"""Everything from such a token on is changed at once."""


def forms_agree(mixer: Mixer) -> None:
    """`step` equals `forward`: outputs at T = 1, 63, 64, 65, 200 and batch 1 and 5, and of inputs
    of size 0.01 and 30; gradients by the input and by all parameters of one random function of the
    outputs of all lengths together.
    """
    for batch in BATCHES:
        x = inputs(mixer, batch, max(LENGTHS)).requires_grad_()
        # one function of all lengths at once: a single backward pass through the loop of steps
        agree(mixer, x, LENGTHS, {"step": _streamed(mixer, x), "forward": mixer}, f"batch {batch}")
    with torch.no_grad():
        for size in (0.01, 30.0):
            x = size * inputs(mixer, 1, SCALED, seed=5)
            what = f"inputs of size {size:g}: outputs of step and forward"
            # sums of large numbers that cancel lose a digit more
            with tolerance(10 * within()):
                close(stream(mixer, x)[0], mixer(x), what)


def _streamed(mixer: Mixer, x: Tensor) -> Callable[[Tensor], Tensor]:
    """The outputs of `step` for the first tokens of x."""
    steps, _ = stream(mixer, x)
    return lambda part: steps[:, : part.shape[1]]


def chunks_do_not_matter(mixer: Mixer) -> None:
    """Any chunk size (1, 7, 16, 100, 1000) gives the outputs and gradients of the default one,
    at every length of `forms_agree`.
    """
    mixer = copy.deepcopy(mixer)  # its chunk is set
    default = mixer.chunk
    x = inputs(mixer, 2, max(LENGTHS)).requires_grad_()

    def run(part: Tensor, *, chunk: int, last: bool = False) -> Tensor:
        mixer.chunk = chunk
        return mixer.last(part) if last else mixer(part)

    for chunk in CHUNKS:
        of = f"in chunks of {chunk}"
        forward = partial(run, chunk=chunk)
        by_default = partial(run, chunk=default)
        agree(mixer, x, LENGTHS, {f"forward {of}": forward, "by default": by_default})
        with torch.no_grad():
            for tokens in LENGTHS:
                y = run(x[:, :tokens], chunk=chunk, last=True)
                what = f"T={tokens}, {of}: outputs of last and forward"
                close(y, forward(x[:, :tokens])[:, -1], what)


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
    x = inputs(mixer, 3, max(PLACED)).requires_grad_()
    for asked in ASKED:
        forms = {
            "at": lambda part, asked=asked: mixer.at(part, places(part, asked)),
            "forward": lambda part, asked=asked: taken(mixer(part), places(part, asked)),
        }
        agree(mixer, x, PLACED, forms, f"{asked} places")
    for name, dtype in formats_asked().items():
        _at_in_format(copy.deepcopy(mixer).to(dtype), name, dtype)
    for what, wrong in {
        "a negative place": torch.tensor([[0], [-1]]),
        "a place behind the last token": torch.tensor([[0], [4]]),
        "places of another batch": torch.zeros(3, 1, dtype=torch.int64),
        "no places": torch.zeros(2, 0, dtype=torch.int64),
        "places of another format": torch.zeros(2, 1, dtype=torch.int32),
    }.items():
        refused(f"at of {what}", partial(mixer.at, inputs(mixer, 2, 4), wrong))


def places(x: Tensor, asked: int) -> Tensor:
    """(batch, asked) places of tokens of x: the last, the first, then some in no order."""
    # not drawn: vmap allows no random numbers inside
    rows = torch.arange(1, len(x) + 1)[:, None]
    chosen = (29 * rows * torch.arange(asked) + 5) % x.shape[1]
    chosen[:, 0] = x.shape[1] - 1
    chosen[:, 1:2] = 0
    return chosen


@torch.no_grad()
def _at_in_format(mixer: Mixer, name: str, dtype: torch.dtype) -> None:
    x = inputs(mixer, 2, HALF, seed=62).to(dtype)
    chosen = places(x, 5)
    wanted = taken(mixer(x), chosen)
    found = mixer.at(x, chosen)
    # what the format cannot hold is for the law on finite outputs
    if not (wanted.isfinite().all() and found.isfinite().all()):
        return
    demand(found.dtype == dtype, f"{name}: outputs of at are {found.dtype}")
    with tolerance(ULPS * torch.finfo(dtype).eps):
        close(found.double(), wanted.double(), f"{name}: outputs of at and forward")


@torch.no_grad()
def causal(mixer: Mixer) -> None:
    """Changing token t moves no output before t by more than rounding, in train mode neither,
    and does move one from t on.
    """
    # the first tokens, and those around the borders of chunks of 64
    cuts = (0, 1, 31, 63, 64, 65, 128)
    x = inputs(mixer, 1, 130)
    other = inputs(mixer, 1, 1, seed=3).expand_as(x)
    for t, y, z in keeps_past(mixer, x, other, cuts, "", alone=True):
        # a constant would be causal, too
        demand(
            not torch.equal(y[:, t:], z[:, t:]),
            f"a change of token {t} of 130 moves no output of forward from it on",
        )
    training = copy.deepcopy(mixer).train()

    def forward(x: Tensor) -> Tensor:
        # with equal random numbers even a mixer with dropout gives equal outputs; a norm over
        # tokens does not
        with seeded():
            return training(x)

    for tokens in (130, 600):
        x, other = (inputs(mixer, 1, tokens, seed) for seed in (1, 4))
        keeps_past(forward, x, other, (40, 100), "in train mode, ")


@torch.no_grad()
def rows_are_alone(mixer: Mixer) -> None:
    """A row alone equals the row in batches of 2 to 5 and 9, in both forms; in train mode, too,
    changing one row moves no other.
    """
    many = inputs(mixer, max(OTHERS), ROW, seed=11)
    batch = max(BATCHES)
    forms: dict[str, Callable[[Tensor], Tensor]] = {
        "forward": mixer,
        "last": mixer.last,
        "step": lambda x: stream(mixer, x[:, :STEPS])[0],
    }
    for name, form in forms.items():
        whole = form(many[:batch])
        for row in range(batch):
            # the rest follows from the outputs of step and forward in a batch
            if name != "step" or row in (0, batch - 1):
                what = f"row {row + 1} alone and in a batch of {batch}: outputs of {name}"
                close(form(many[row : row + 1]), whole[row : row + 1], what)
        for others in OTHERS:
            same = min(others, batch)
            what = f"the first rows in a batch of {others} and of {batch}: outputs of {name}"
            close(form(many[:others])[:same], whole[:same], what)
    for size in (2, batch):
        _rows_in_training(copy.deepcopy(mixer).train(), size)


def _rows_in_training(mixer: Mixer, batch: int) -> None:
    """With equal random numbers even a mixer with dropout gives one row whatever the others
    hold; a norm over the batch does not.
    """
    x = inputs(mixer, batch, ROW, seed=12)
    changed = x.clone()
    changed[1] = inputs(mixer, 1, ROW, seed=13)[0]
    with seeded():
        y = mixer(x)
    with seeded():
        z = mixer(changed)
    others = [row for row in range(batch) if row != 1]
    demand(
        torch.equal(y[others], z[others]),
        "in train mode a change of one row moves outputs of forward in other rows",
    )


def holds_when_long(mixer: Mixer) -> None:
    """At 600 and 1,100 tokens `step`, `forward` and `last` agree, also for a row alone, and at 600
    their gradients; a mixer continues from states of another process on the way; and no future
    token moves an earlier output.
    """
    _long_values(mixer)
    x = inputs(mixer, 1, min(LONG), seed=53).requires_grad_()
    agree(mixer, x, (min(LONG),), {"step": _streamed(mixer, x), "forward": mixer})


@torch.no_grad()
def _long_values(mixer: Mixer) -> None:
    x = inputs(mixer, 2, max(LONG), seed=51)
    unused = copy.deepcopy(mixer)
    # in another process, so that no store of this one can help what is continued below
    steps, states = streamed_elsewhere(mixer, x, CUTS)
    for tokens in LONG:
        y = mixer(x[:, :tokens])
        what = f"T={tokens}: outputs of"
        close(steps[:, :tokens], y, f"{what} step and forward")
        close(mixer.last(x[:, :tokens]), y[:, -1], f"{what} last and forward")
        close(mixer(x[1:, :tokens]), y[1:], f"{what} forward for a row alone and in a batch of 2")
    for tokens in {*LONG, 1 << (max(LONG).bit_length() - 1)}:
        other = inputs(mixer, 1, tokens, seed=52)
        keeps_past(mixer, x[:1, :tokens], other, CHANGED, f"T={tokens}: ")
    for cut, state in states.items():
        continues(unused, x, {cut: state}, steps, 256 if cut == 300 else AFTER)


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
    for name, call in calls.items():
        runner = _Runner(copy.deepcopy(mixer), call)
        stacked = vmap(
            lambda p, b, x, runner=runner: functional_call(
                runner, ({f"mixer.{k}": v for k, v in (p | b).items()},), (x,)
            )
        )(parameters, buffers, x)
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


class _Runner(torch.nn.Module):
    """Lets functional_call reach methods other than forward."""

    def __init__(self, mixer: Mixer, call: Callable[[Mixer, Tensor], Tensor]) -> None:
        super().__init__()
        self.mixer = mixer
        self.call = call

    def forward(self, x: Tensor) -> Tensor:
        return self.call(self.mixer, x)
