"""Tools of the laws: drawn mixers, inputs, the loop of steps, and comparisons that say what
differs.
"""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import safetensors.torch
import torch
from torch import Tensor

from separatrix.core.errors import SizeError, first_line
from separatrix.mixers import Mixer, State

RELATIVE = 1e-9
"""Of the largest number compared: some 10^6 roundings of float64."""
FORMATS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class LawBroken(AssertionError):
    """A law that a mixer breaks; the message says which output, gradient or state, and by how
    much.
    """


def demand(holds: object, sentence: str) -> None:
    """Raises LawBroken with the sentence unless `holds`; python -O does not remove it."""
    if not holds:
        raise LawBroken(sentence)


class Asked(NamedTuple):
    """What is asked of a run of the laws."""

    tolerance: float = RELATIVE
    """`close` allows so much of the largest number compared: for layers that compute in float32
    inside, say 1e-5.
    """
    formats: tuple[str, ...] = tuple(FORMATS)
    """The laws look at these only."""
    seed: int = 0
    """What laws draw (tokens, lengths, batches, places) follows from it."""


_USUAL = Asked()
_ASKED: ContextVar[Asked] = ContextVar("asked", default=_USUAL)


def asked() -> Asked:
    return _ASKED.get()


@contextmanager
def asking(**changes: Any) -> Iterator[None]:
    """Within it the laws run with these settings of `Asked`."""
    token = _ASKED.set(asked()._replace(**changes))
    try:
        yield
    finally:
        _ASKED.reset(token)


def draws(what: str) -> random.Random:
    """The random numbers of one law in this run."""
    return random.Random(f"{asked().seed}/{what}")


def cast(mixer: Mixer, dtype: torch.dtype = torch.float64) -> Mixer:
    """A copy in a format."""
    return copy.deepcopy(mixer).to(dtype)


def casts(mixer: Mixer) -> Iterator[tuple[str, Mixer]]:
    """Copies in the formats that are asked for, by their names."""
    for name in asked().formats:
        yield name, cast(mixer, FORMATS[name])


def normal(*shape: int, seed: int) -> Tensor:
    """Normal numbers in float64."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def inputs(mixer: Mixer, batch: int, tokens: int, seed: int = 1) -> Tensor:
    """Normal numbers (batch, tokens, width) in float64."""
    return normal(batch, tokens, mixer.width, seed=seed)


def drawn(mixer: Mixer, seed: int = 0) -> Mixer:
    """The mixer in float64 and in eval mode, drawn, and every parameter moved a little, so that
    none sits at a special value such as 0.
    """
    mixer = mixer.double().eval()
    generator = torch.Generator().manual_seed(seed)
    mixer.reset(generator)
    with torch.no_grad():
        for parameter in mixer.parameters():
            parameter.add_(
                0.1 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            )
    return mixer


OUTLIER = 10.0
"""Of one number of a token."""


def vocabulary(mixer: Mixer, draw: random.Random) -> dict[str, Tensor]:
    """Tokens (width) by the names that `fed.fed` says."""
    first, second, third, outlier = inputs(mixer, 1, 4, draw.randrange(1 << 30))[0]
    outlier[draw.randrange(mixer.width)] *= OUTLIER
    axes = torch.eye(mixer.width, dtype=first.dtype)
    hot = draw.randrange(mixer.width)
    hots = {f"e{i % mixer.width}": axes[i % mixer.width] for i in (hot, hot + 1)}
    normal = {"a": first, "b": second, "c": third, "A": outlier}
    scaled = {"-a": -first, "30a": 30 * first, "a/100": first / 100}
    return normal | scaled | {"0": 0 * first, "1": torch.ones_like(first)} | hots


def moved(state: State) -> State:
    """The numbers of a state and nothing else, by way of bytes."""
    whole = {name: tensor.detach().clone().contiguous() for name, tensor in state.items()}
    return safetensors.torch.load(safetensors.torch.save(whole))


def stream(
    mixer: Mixer, x: Tensor, state: State | None = None, start: int = 0
) -> tuple[Tensor, State]:
    """Outputs of `step` token by token, and the state after the last."""
    outputs, states = stream_and_keep(mixer, x, [start + x.shape[1]], state, start)
    return outputs, states[start + x.shape[1]]


def stream_and_keep(
    mixer: Mixer, x: Tensor, cuts: Sequence[int], state: State | None = None, start: int = 0
) -> tuple[Tensor, dict[int, State]]:
    """Outputs of `step`, and the states after so many tokens."""
    state = mixer.init_state(len(x)) if state is None else state
    outputs = []
    states = {}
    for t in range(start, start + x.shape[1]):
        # a view would show the whole sequence to who looks behind it
        y, state = mixer.step(x[:, t - start].clone(), state, t)
        outputs.append(y)
        if t + 1 in cuts:
            states[t + 1] = state
    return torch.stack(outputs, 1), states


def agree(
    mixer: Mixer,
    x: Tensor,
    lengths: Sequence[int],
    forms: Mapping[str, Callable[[Tensor], Tensor]],
    where: str = "",
) -> None:
    """Raises LawBroken unless all forms give the outputs of the first for so many first tokens of
    x, and together its gradients.
    """
    found: dict[str, tuple[list[Tensor], dict[str, Tensor]]] = {}
    for name, form in forms.items():
        outputs = [form(x[:, :tokens]) for tokens in lengths]
        found[name] = outputs, gradients(mixer, x, outputs)
    (first, (outputs, slopes)), *others = found.items()
    for name, (more, by_name) in others:
        for tokens, y, z in zip(lengths, outputs, more, strict=True):
            close(y, z, f"T={tokens}{where}: outputs of {first} and {name}")
        all_close(slopes, by_name, f"{where}, {first} and {name}".removeprefix(", "))


@dataclass(kw_only=True)
class Near:
    """Outputs (batch, tokens, width) that others are compared with, token by token. They may differ
    by rounding, and by a little more than what changes of the inputs by one part in 1 / `jitter`
    make of them, as where a choice between equal scores tips over, or a number near 0 divides. That
    is asked only where rounding does not do.
    """

    run: Callable[[Tensor], Tensor]
    x: Tensor
    y: Tensor
    tolerance: float
    jitter: float
    amplified: float
    of_token: bool = False
    """Whether rounding is measured at each token's largest output, not at the sequence's."""

    @cached_property
    def allowed(self) -> Tensor:
        """What rounding leaves of each token (batch, tokens, 1)."""
        size = self.y.detach().double().abs().amax(-1, keepdim=True)
        return self.tolerance * (size if self.of_token else size.amax(1, True).expand_as(size))

    @cached_property
    @torch.no_grad()
    def moved(self) -> Tensor:
        """How far each token's outputs move (batch, tokens, 1)."""
        # four changes in one pass
        x = self.x.repeat(4, 1, 1)
        noise = self.jitter * x.abs().mean() * normal(*x.shape, seed=0)
        changed = self.run(x + noise.to(x.dtype)).double()
        gaps = (changed - self.y.repeat(4, 1, 1)).abs().amax(-1, keepdim=True)
        return gaps.unflatten(0, (4, -1)).amax(0)

    def steady(self) -> Tensor:
        """1 at tokens that such changes move by no more than rounding, 0 at others."""
        return (self.moved <= self.allowed).to(self.y.dtype)

    def excess(self, y: Tensor, rows: Sequence[int] | None = None, start: int = 0) -> float:
        """By how much outputs of some rows, from a token on, differ more than they may; infinity
        where there is NaN.
        """
        rows = range(len(self.y)) if rows is None else rows
        here = (list(rows), slice(start, start + y.shape[1]))
        gap = (y.detach().double() - self.y[here]).abs()
        allowed = self.allowed[here]
        if (gap <= allowed).all():
            return 0.0
        over = gap - allowed - self.amplified * self.moved[here]
        return float("inf") if over.isnan().any() else max(0.0, over.max().item())


ROUNDING = 1e-12
ULPS = 4.0
"""A change of the future may move earlier outputs by so much of their token's largest, or so many
roundings of the format, or of the inputs: what a transform over the whole sequence rounds.
"""
ROWS = 16
"""Changes that are tried in one call."""


def keeps_past(
    forward: Callable[[Tensor], Tensor],
    x: Tensor,
    other: Tensor,
    cuts: Sequence[int],
    where: Callable[[int], str],
) -> None:
    """Raises LawBroken where changing the tokens of x (1, tokens, width) from a cut on into those
    of `other` moves an output of `forward` before them.
    """
    eps = torch.finfo(x.dtype).eps
    cuts = [cut for cut in cuts if cut < x.shape[1]]
    for start in range(0, len(cuts), ROWS):
        some = cuts[start : start + ROWS]
        changed = [torch.cat([x[:, :cut], other[:, cut:]], 1) for cut in some]
        # rows of one call are compared: products may round by the batch
        y, *found = forward(torch.cat([x, *changed])).split(1)
        # of the token, not of all: sums over tokens grow, and would hide what the first ones see
        near = Near(
            run=forward,
            x=x,
            y=y,
            tolerance=max(ROUNDING, ULPS * eps),
            jitter=eps,
            amplified=ULPS,
            of_token=True,
        )
        for cut, z in zip(some, found, strict=True):
            # infinity may reach earlier outputs as NaN: 0 times it; another law forbids infinity
            gap = near.excess(z[:, :cut]) if y.isfinite().all() and z.isfinite().all() else 0
            change = f"changing the tokens from {cut} on moves outputs of forward before them"
            demand(gap == 0, f"{where(cut)}{change}, by {gap:.3g} more than rounding")


def keeps_past_in_all(
    mixer: Mixer, x: Tensor, other: Tensor, cuts: Sequence[int], where: Callable[[int], str]
) -> None:
    """`keeps_past` of `forward` in every format."""
    for name, half in (("float64", cast(mixer)), *casts(mixer)):
        one, two = (part.to(half._like.dtype) for part in (x, other))
        keeps_past(half, one, two, cuts, lambda cut, name=name: f"{name}{where(cut)}: ")


def refused(what: str, call: Callable[[], object]) -> None:
    """Raises LawBroken unless the call raises SizeError."""
    try:
        call()
    except SizeError:
        return
    except Exception as error:
        raise LawBroken(
            f"{what} raises {type(error).__name__} instead of SizeError: {first_line(error)}"
        ) from error
    raise LawBroken(f"{what} is taken without an error; it must raise SizeError")


def close(a: Tensor, b: Tensor, what: str, scale: float = 0.0, more: float = 0.0) -> None:
    """Raises LawBroken where two tensors differ by more than rounding, measured at their largest
    number or at `scale`, and by more than `more`.
    """
    demand(a.shape == b.shape, f"{what}: shapes {tuple(a.shape)} and {tuple(b.shape)}")
    gap = largest([a.detach().double() - b.detach().double()])
    scale = max(scale, largest([a, b]))
    allowed = max(asked().tolerance * scale, more)
    # <= is false for NaN: two tensors with NaN or with infinity at one place differ
    demand(gap <= allowed, f"{what} differ by {gap:.3g}, of {scale:.3g}")


def all_close(a: Mapping[str, Tensor], b: Mapping[str, Tensor], what: str) -> None:
    """Gradients of one function: a gradient that is 0 in exact arithmetic (of q after one token)
    is compared at the size of the others.
    """
    scale = largest(a.values())
    for name in a:
        close(a[name], b[name], f"{what}: the gradients by {name}", scale)


def largest(tensors: Iterable[Tensor]) -> float:
    """The largest absolute value in some tensors; 0 for none, NaN where one is NaN."""
    found = [t.detach().abs().max() for t in tensors if t.numel()]
    return torch.stack(found).max().item() if found else 0.0


def summed_with(y: Tensor, place: int = 0) -> Tensor:
    """The weights of outputs in the function that `gradients` derives."""
    return normal(*y.shape, seed=2 + place).to(y.dtype)


def gradients(mixer: Mixer, x: Tensor, outputs: Sequence[Tensor]) -> dict[str, Tensor]:
    """Gradients of one random linear function of all `outputs` by the input x and by every
    parameter.
    """
    wanted = {"the input": x} | {n: p for n, p in mixer.named_parameters() if p.requires_grad}
    total = torch.stack([(summed_with(y, i) * y).sum() for i, y in enumerate(outputs)]).sum()
    demand(
        total.requires_grad,
        "the outputs do not depend on the input or any parameter, as autograd sees it; is something"
        " detached?",
    )
    found = torch.autograd.grad(
        total, list(wanted.values()), allow_unused=True, materialize_grads=True
    )
    return dict(zip(wanted, found, strict=True))


def run(
    mixer: Mixer,
    x: Tensor,
    weights: float | Tensor = 1.0,
    form: Callable[[Mixer, Tensor], Tensor] = Mixer.__call__,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Outputs of a form of a mixer, and the gradients of them times weights."""
    x = x.detach().clone().requires_grad_()
    y = form(mixer, x)
    return y.detach(), gradients(mixer, x, [weights * y])


def steps(mixer: Mixer, x: Tensor) -> Tensor:
    return stream(mixer, x)[0]


PATIENCE = 300.0
"""Seconds after which the other process is given up."""


def streamed_elsewhere(
    mixer: Mixer, x: Tensor, cuts: Sequence[int]
) -> tuple[Tensor, dict[int, State]]:
    """`stream_and_keep` of a copy in a copy of this process; of the states their numbers alone.
    Raises LawBroken with the last line of an error of its own.
    """

    def call() -> tuple[Tensor, dict[int, State]]:
        outputs, states = stream_and_keep(copy.deepcopy(mixer), x, cuts)
        return outputs, {cut: moved(state) for cut, state in states.items()}

    # on Windows the call is made in this process, which sees fewer stores
    if not hasattr(os, "fork"):
        return call()
    context = multiprocessing.get_context("fork")
    end, start = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(call, start), daemon=True)
    process.start()
    start.close()
    try:
        data = end.recv_bytes() if end.poll(PATIENCE) else b""
    except EOFError:
        data = b""
    finally:
        end.close()
        process.kill()
        process.join()
    demand(data, "step did not end in a second process; does it need threads of its own?")
    what, value = pickle.loads(data)
    demand(what == "result", f"step raises in a second process: {value}")
    return value


def _answer(call: Callable[[], object], pipe: Any) -> None:
    # the copy begins with the threads of nobody but the caller
    torch.set_num_threads(1)
    try:
        message = ("result", call())
    except Exception as error:
        message = ("error", f"{type(error).__name__}: {error}")
    # bytes instead of the shared memory that torch would hand over
    pipe.send_bytes(pickle.dumps(message))
