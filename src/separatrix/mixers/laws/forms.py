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
from separatrix.mixers.laws import tools
from separatrix.mixers.plugins.probe import apart

CHUNKS = (1, 7, 16, 100, 1000)
LENGTHS = (1, 63, 64, 65, 200)
"""Tokens of the sequences on which forms are compared: around a chunk of 64, and three chunks
and a bit.
"""
ROWS = ((1, (63, 65, 400)), (2, (1, 64, 75)))
"""Batches, and lengths at which `step` and `forward` are compared."""
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
LARGE = (128, 300)
"""Batches in which every row must come out as alone; one of more rows is drawn, with as many tokens
as few rows have, and a large one, as models train on.
"""
ROW = 130
SHORT = 20
STEPPED = 8
"""Tokens of a row in a few rows, in many, and of `step`; that it equals forward in batches is
another law.
"""
STACKED = (201, 400)
"""Tokens on which stacked models are compared, from and to."""
LONG = (200, 768)
CHANGED = (1, 63, 64, 128, 199, 257, 512)
"""Everything from such a token on is changed at once, and from drawn ones one after the other."""
DRAWN = 8


def forms_agree(mixer: Mixer) -> None:
    """`step` equals `forward`: outputs of one row at T = 63, 65, 400 and of two at 1, 64, 75;
    gradients by the input and by all parameters of one random function of the outputs of all
    lengths together.
    """
    for batch, lengths in ROWS:
        x = tools.inputs(mixer, batch, max(lengths)).requires_grad_()
        steps, _ = tools.stream(mixer, x)
        # one function of all lengths at once: a single backward pass through the loop of steps
        forms = {"step": lambda part, y=steps: y[:, : part.shape[1]], "forward": mixer}
        tools.agree(mixer, x, lengths, forms, f", batch {batch}")


def chunks_do_not_matter(mixer: Mixer) -> None:
    """Any chunk size (1, 7, 16, 100, 1000) gives the outputs and gradients of the default one,
    of `forward` and `last`, at T = 1, 63, 64, 65, 200.
    """
    mixer = copy.deepcopy(mixer)  # its chunk is set

    def forward_and_last(x: Tensor, chunk: int) -> Tensor:
        mixer.chunk = chunk
        return torch.cat([mixer(x), mixer.last(x)[:, None]], 1)

    forms = {f"in chunks of {n}": partial(forward_and_last, chunk=n) for n in CHUNKS}
    first = {"forward and last by default": partial(forward_and_last, chunk=mixer.chunk)}
    x = tools.inputs(mixer, 1, max(LENGTHS)).requires_grad_()
    tools.agree(mixer, x, LENGTHS, first | forms)


def at_is_forward(mixer: Mixer) -> None:
    """`last` equals the last output of `forward`, and `at` those gathered at the places, one and
    several, unsorted and repeated, in every format; both have its gradients; places that are no
    token's are refused.
    """

    def some(part: Tensor) -> Tensor:
        asked_at = [mixer.at(part, places(part, count)) for count in ASKED]
        return torch.cat([mixer.last(part)[:, None], *asked_at], 1)

    def every(part: Tensor) -> Tensor:
        return taken(mixer(part), torch.cat([places(part, count) for count in (1, *ASKED)], 1))

    x = tools.inputs(mixer, 2, max(PLACED)).requires_grad_()
    tools.agree(mixer, x, PLACED, {"last and at": some, "forward": every})
    for name, half in tools.casts(mixer):
        x = tools.inputs(mixer, 2, HALF, seed=62).to(half._like.dtype)
        with torch.no_grad():
            found, wanted = half.at(x, places(x, 5)), taken(half(x), places(x, 5))
        tools.demand(found.dtype == x.dtype, f"{name}: outputs of at are {found.dtype}")
        # what the format cannot hold is for the law on finite outputs
        if wanted.isfinite().all() and found.isfinite().all():
            with tools.asking(tolerance=ULPS * torch.finfo(x.dtype).eps):
                tools.close(found.double(), wanted.double(), f"{name}: outputs of at and forward")
    for what, wrong in {
        "a negative place": torch.tensor([[0], [-1]]),
        "a place behind the last token": torch.tensor([[0], [4]]),
        "places of another batch": torch.zeros(3, 1, dtype=torch.int64),
        "no places": torch.zeros(2, 0, dtype=torch.int64),
        "places of another format": torch.zeros(2, 1, dtype=torch.int32),
    }.items():
        tools.refused(f"at of {what}", partial(mixer.at, tools.inputs(mixer, 2, 4), wrong))


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
    """Changing all tokens from one on moves no output before it by more than rounding, in no format
    and not in train mode; and other tokens have other outputs.
    """
    x, other = (tools.inputs(mixer, 1, min(LONG), seed) for seed in (1, 4))
    # a constant would be causal, too
    same = torch.equal(mixer(x), mixer(other))
    tools.demand(not same, "outputs of forward are the same for other tokens")
    training = in_training(mixer)
    start = tools.draws("causal").randrange(LONG[0], LONG[-1] - DRAWN)
    changed = (*CHANGED, *range(start, start + DRAWN))

    def by_rows(x: Tensor) -> Tensor:
        return torch.cat([training(row) for row in x.split(1)])

    for tokens in LONG:
        x, other = (tools.inputs(mixer, 1, tokens, seed) for seed in (1, 4))
        tools.keeps_past_in_all(mixer, x, other, changed, lambda cut, t=tokens: f", T={t}")
        tools.keeps_past(by_rows, x, other, (40, 100), lambda cut: "in train mode, ")


@torch.no_grad()
def rows_are_alone(mixer: Mixer) -> None:
    """A row alone equals the row in batches of 2 to 12 and in two larger ones, in both forms; in
    train mode, too, changing one row moves no other.
    """
    draw = tools.draws("rows")
    many = draw.randint(*MORE)
    batches = [*FEW, *MANY, draw.randint(*LARGE), many]
    rows = tools.inputs(mixer, max(batches), ROW, seed=11)
    forms: dict[str, Callable[[Tensor], Tensor]] = {
        "forward": mixer,
        "last": mixer.last,
        "step": lambda x: tools.stream(mixer, x[:, :STEPPED])[0],
    }
    for name, form in forms.items():
        alone = cache(lambda row, tokens, form=form: form(rows[row : row + 1, :tokens]))
        for batch in batches:
            tokens = ROW if batch in (*FEW, many) else SHORT
            whole = form(rows[:batch, :tokens])
            # those that were last in a batch before are known alone
            for row in {batch - 1, draw.choice([0, *(b - 1 for b in batches if b <= batch)])}:
                what = f"row {row + 1} alone and in a batch of {batch}: outputs of {name}"
                tools.close(alone(row, tokens), whole[row : row + 1], what)
    forward = in_training(mixer)
    for batch in (2, 5):
        x = rows[:batch].clone()
        y = forward(x)
        x[1] = tools.inputs(mixer, 1, ROW, seed=13)[0]
        z = forward(x)
        others = [row for row in range(batch) if row != 1]
        tools.demand(
            torch.equal(y[others], z[others]),
            "in train mode a change of one row moves outputs of forward in other rows",
        )


def stacks(mixer: Mixer) -> None:
    """torch.func.vmap over stacked models equals one model after the other: forward, last, at,
    step, and gradients by the input and the parameters.
    """
    models = [tools.drawn(copy.deepcopy(mixer), seed) for seed in range(2)]
    parameters, buffers = stack_module_state(models)  # type: ignore[arg-type]
    tokens = tools.draws("stacks").randint(*STACKED)
    x = torch.stack([tools.inputs(mixer, 2, tokens, seed) for seed in range(2)]).requires_grad_()
    calls: dict[str, Callable[[Mixer, Tensor], Tensor]] = {
        "forward": lambda m, x: type(m).forward(m, x),
        "last": lambda m, x: m.last(x),
        "at": lambda m, x: m.at(x, places(x, 3)),
        "step": lambda m, x: tools.stream(m, x[:, :12])[0],
    }

    def slopes(y: Tensor) -> dict[str, Tensor]:
        wanted = {"the input": x} | parameters
        found = torch.autograd.grad(
            y.square().sum(), list(wanted.values()), materialize_grads=True, allow_unused=True
        )
        return dict(zip(wanted, found, strict=True))

    for name, call in calls.items():
        runner = copy.deepcopy(mixer)
        # functional_call reaches forward alone
        runner.forward = partial(call, runner)  # type: ignore[method-assign]
        stacked = vmap(partial(functional_call, runner))((parameters, buffers), x)
        each = [{n: y[i] for n, y in (parameters | buffers).items()} for i in range(len(models))]
        alone = torch.stack([functional_call(runner, m, (x[i],)) for i, m in enumerate(each)])
        tools.close(stacked, alone, f"outputs of {name} under vmap and one model at a time")
        what = f"{name} under vmap and one model at a time"
        tools.all_close(slopes(stacked), slopes(alone), what)
