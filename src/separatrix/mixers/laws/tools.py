"""Tools of the laws: drawn mixers, inputs, the loop of steps, and comparisons that say what
differs.
"""

from __future__ import annotations

import copy
import os
import pickle
import random
import select
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import safetensors.torch
import torch
from torch import Tensor

from separatrix.core.errors import SizeError, first_line
from separatrix.mixers import Mixer, State

RELATIVE = 1e-9
"""Of the largest number compared: some 10^6 roundings of float64."""
_TOLERANCE: ContextVar[float] = ContextVar("tolerance", default=RELATIVE)
ROUNDING = 1e-12
"""A change of the future may move earlier outputs by this much of the largest: the rounding of a
transform over the whole sequence.
"""
LENGTHS = (1, 63, 64, 65, 200)
"""Tokens of the sequences on which forms are compared: around a chunk of 64, and three chunks
and a bit.
"""


FORMATS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
_FORMATS: ContextVar[tuple[str, ...]] = ContextVar("formats", default=tuple(FORMATS))
_SEED: ContextVar[int] = ContextVar("seed", default=0)


class LawBroken(AssertionError):
    """A law that a mixer breaks; the message says which output, gradient or state, and by how
    much.
    """


def demand(holds: object, sentence: str) -> None:
    """Raises LawBroken with the sentence unless `holds`; python -O does not remove it."""
    if not holds:
        raise LawBroken(sentence)


@contextmanager
def tolerance(relative: float) -> Iterator[None]:
    """Within it `close` allows that much of the largest number compared: for layers that compute
    in float32 inside, say 1e-5.
    """
    token = _TOLERANCE.set(relative)
    try:
        yield
    finally:
        _TOLERANCE.reset(token)


def within() -> float:
    """What `tolerance` allows now."""
    return _TOLERANCE.get()


@contextmanager
def in_formats(names: Sequence[str]) -> Iterator[None]:
    """Within it the laws look at these formats only."""
    token = _FORMATS.set(tuple(names))
    try:
        yield
    finally:
        _FORMATS.reset(token)


def formats_asked() -> dict[str, torch.dtype]:
    """The formats that `in_formats` allows now."""
    return {name: FORMATS[name] for name in _FORMATS.get()}


@contextmanager
def drawing(seed: int) -> Iterator[None]:
    """Within it what laws draw for a run (tokens, lengths, batches, places) follows from `seed`."""
    token = _SEED.set(seed)
    try:
        yield
    finally:
        _SEED.reset(token)


def draws(what: str) -> random.Random:
    """The random numbers of one law in this run."""
    return random.Random(f"{_SEED.get()}/{what}")


@contextmanager
def seeded(seed: int = 0) -> Iterator[None]:
    """PyTorch's random numbers from `seed`, and afterwards as if none had been drawn."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


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


def inputs(mixer: Mixer, batch: int, tokens: int, seed: int = 1) -> Tensor:
    """Normal numbers (batch, tokens, width) in float64."""
    return torch.randn(
        batch,
        tokens,
        mixer.width,
        generator=torch.Generator().manual_seed(seed),
        dtype=torch.float64,
    )


OUTLIER = 10.0
"""Of one number of a token."""


def vocabulary(mixer: Mixer, draw: random.Random) -> dict[str, Tensor]:
    """Tokens (width) by the names that `fed.fed` says."""
    first, second, third, outlier = inputs(mixer, 1, 4, draw.randrange(1 << 30))[0]
    outlier[draw.randrange(mixer.width)] *= OUTLIER
    axes = torch.eye(mixer.width, dtype=first.dtype)
    hot = draw.randrange(mixer.width)
    hots = {f"e{i % mixer.width}": axes[i % mixer.width] for i in (hot, hot + 1)}
    return {"a": first, "b": second, "c": third, "A": outlier, "0": 0 * first} | hots


def drawn_like(tensor: Tensor, seed: int) -> Tensor:
    """Normal numbers of a tensor's shape and format."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(tensor.shape, generator=generator, dtype=torch.float64).to(tensor.dtype)


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
    """Raises LawBroken unless two forms give the same outputs for so many first tokens of x, and
    together the same gradients.
    """
    what = " and ".join(forms)
    outputs = [[form(x[:, :tokens]) for form in forms.values()] for tokens in lengths]
    for tokens, (y, z) in zip(lengths, outputs, strict=True):
        close(y, z, f"T={tokens}, {where}: outputs of {what}".replace(", :", ":"))
    one, other = (gradients(mixer, x, found) for found in zip(*outputs, strict=True))
    all_close(one, other, f"{where}, {what}".removeprefix(", "))


def continues(
    unused: Mixer, x: Tensor, states: Mapping[int, State], steps: Tensor, after: int
) -> None:
    """Raises LawBroken unless a copy that gets only the weights and the state after some tokens of
    x continues with the outputs `steps`.
    """
    for cut, state in states.items():
        end = min(cut + after, x.shape[1])
        rest, _ = stream(copy.deepcopy(unused), x[:, cut:end], state, cut)
        what = f"cut after {cut} tokens: outputs of step in two passes and in one"
        close(rest, steps[:, cut:end], what)


def keeps_past(
    forward: Callable[[Tensor], Tensor],
    x: Tensor,
    other: Tensor,
    cuts: Sequence[int],
    what: str,
    *,
    rounding: float = ROUNDING,
    alone: bool = False,
) -> list[tuple[int, Tensor, Tensor]]:
    """Raises LawBroken where changing the tokens of x from a cut on into those of `other`, or that
    one `alone`, moves an output of `forward` before it. Gives cuts and outputs before and after.
    """
    y = forward(x)
    found = []
    for t in (t for t in cuts if t < x.shape[1]):
        end = t + 1 if alone else x.shape[1]
        z = forward(torch.cat([x[:, :t], other[:, t:end], x[:, end:]], 1))
        # infinity may reach earlier outputs as NaN: 0 times it; another law forbids it in formats
        if x.dtype == torch.float64 or (y.isfinite().all() and z.isfinite().all()):
            gap = largest([(y[:, :t] - z[:, :t]).double()])
            change = (
                f"a change of token {t} moves outputs of forward before it"
                if alone
                else f"changing the tokens from {t} on moves outputs of forward before them"
            )
            demand(gap <= rounding * largest([y, z]), f"{what}{change}, by {gap:.3g}")
        found.append((t, y, z))
    return found


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


def close(a: Tensor, b: Tensor, what: str, scale: float = 0.0) -> None:
    """Raises LawBroken where two tensors differ by more than rounding, measured at their largest
    number or at `scale`.
    """
    demand(a.shape == b.shape, f"{what}: shapes {tuple(a.shape)} and {tuple(b.shape)}")
    gap = largest([a.detach() - b.detach()])
    scale = max(scale, largest([a, b]))
    # <= is false for NaN: two tensors with NaN or with infinity at one place differ
    demand(gap <= _TOLERANCE.get() * scale, f"{what} differ by {gap:.3g}, of {scale:.3g}")


def all_close(a: Mapping[str, Tensor], b: Mapping[str, Tensor], what: str) -> None:
    """Gradients of one function: a gradient that is 0 in exact arithmetic (of q after one token)
    is compared at the size of the others.
    """
    scale = largest(a.values())
    for name in a:
        close(a[name], b[name], f"{what}: the gradients by {name}", scale)


def largest(tensors: object) -> float:
    """The largest absolute value in some tensors; 0 for none, NaN where one is NaN."""
    found = [t.detach().abs().max() for t in tensors if t.numel()]  # type: ignore[attr-defined]
    return torch.stack(found).max().item() if found else 0.0


def gradients(
    mixer: Mixer, x: Tensor, outputs: Sequence[Tensor], seed: int = 2
) -> dict[str, Tensor]:
    """Gradients of one random linear function of all `outputs` by the input x and by every
    parameter.
    """
    wanted = {
        "the input": x,
        **{name: p for name, p in mixer.named_parameters() if p.requires_grad},
    }
    generator = torch.Generator().manual_seed(seed)
    total = torch.stack(
        [
            (torch.randn(y.shape, generator=generator, dtype=torch.float64).to(y.dtype) * y).sum()
            for y in outputs
        ]
    ).sum()
    if not total.requires_grad:
        raise LawBroken(
            "the outputs do not depend on the input or any parameter, as autograd sees it; is"
            " something detached?"
        )
    found = torch.autograd.grad(
        total, list(wanted.values()), allow_unused=True, materialize_grads=True
    )
    return dict(zip(wanted, found, strict=True))


Result = TypeVar("Result")
PATIENCE = 300.0
"""Seconds after which the other process is given up."""
POSSIBLE = hasattr(os, "fork")
"""Elsewhere (Windows) the call is made in this process, which sees fewer stores."""


def elsewhere(call: Callable[[], Result]) -> Result:
    """What `call` returns in a copy of this process. Raises LawBroken with the last line of an
    error of its own. Results are tensors, numbers and dicts of them.
    """
    if not POSSIBLE:
        return call()
    end, start = os.pipe()
    # the copy begins with the threads of nobody but the caller
    process = os.fork()
    if process == 0:
        _answer(call, start)
    os.close(start)
    try:
        data = _read(end)
    finally:
        os.close(end)
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    if not data:
        raise LawBroken("step did not end in a second process; does it need threads of its own?")
    what, value = pickle.loads(data)
    if what == "error":
        raise LawBroken(f"step raises in a second process: {value}")
    return value


def streamed_elsewhere(
    mixer: Mixer, x: Tensor, cuts: Sequence[int]
) -> tuple[Tensor, dict[int, State]]:
    """`stream_and_keep` of a copy in another process; of the states their numbers alone."""

    def call() -> tuple[Tensor, dict[int, State]]:
        outputs, states = stream_and_keep(copy.deepcopy(mixer), x, cuts)
        return outputs, {cut: moved(state) for cut, state in states.items()}

    return elsewhere(call)


def _answer(call: Callable[[], object], pipe: int) -> None:
    """Writes the result and ends the process, whatever happens: nothing of the caller may run
    twice.
    """
    try:
        torch.set_num_threads(1)
        try:
            message = ("result", call())
        except Exception as error:
            message = ("error", f"{type(error).__name__}: {error}")
        # lists of numbers instead of the shared memory that torch would hand over
        with os.fdopen(pipe, "wb") as out:
            out.write(pickle.dumps(message))
    finally:
        os._exit(0)


def _read(pipe: int) -> bytes:
    """Everything until the other end closes; nothing after PATIENCE."""
    found = []
    until = time.monotonic() + PATIENCE
    while select.select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
        part = os.read(pipe, 1 << 20)
        if not part:
            return b"".join(found)
        found.append(part)
    return b""
