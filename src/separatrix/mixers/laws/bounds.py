"""Laws on bad and extreme input: half formats, NaN, and states that cannot be."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode, resolve_name

from separatrix.mixers import Mixer
from separatrix.mixers.laws import tools
from separatrix.mixers.plugins.probe import place_of

SIZES = (0.0, 1e-3, 1.0, 1e2, 1e4)
LONG = 1000
ROOM = 16.0
"""Well within a format's range: below its largest number by this factor."""


def finite(mixer: Mixer) -> None:
    """Outputs and gradients are finite in fp32, bf16 and fp16 wherever the format has room for
    them.

    Inputs of size 0, 1e-3, 1, 1e2 and 1e4: normal numbers; one token repeated, so that sums over
    tokens grow as fast as they can; and one large token among small ones, so that gates and softmax
    saturate. "Has room": with the same weights and inputs, rounded to the format but computed in
    float64, inputs, outputs and gradients all stay below 1/16 of the format's largest number. What
    only passes through larger numbers on the way (a score, a sum over tokens, a decay's inverse)
    has no such excuse; a mixer whose true outputs overflow has. float64 itself must be finite on
    all of these inputs, and float64 and fp32 on 1,000 normal tokens: what grows with the length,
    such as the inverse of a product of decays, shows there.
    """
    x = tools.inputs(mixer, 1, LONG)
    for name, dtype in (("float64", torch.float64), ("fp32", torch.float32)):
        with torch.no_grad():
            y = tools.cast(mixer, dtype)(x.to(dtype))
        tools.demand(
            y.isfinite().all(), f"{name}, {LONG:,} tokens of size 1: the outputs are not finite"
        )
    kinds = ("normal inputs", "one token repeated", "one large token")
    for name, half in tools.casts(mixer):
        for size in SIZES:
            finite_in(half, _hard(mixer, size), name, kinds, f" of size {size:g}")


def finite_in(half: Mixer, x: Tensor, name: str, kinds: Sequence[str] = (), of: str = "") -> None:
    """Raises LawBroken unless outputs and gradients of a mixer in a format are finite where it has
    room for them: in one pass where all rows fit together, else row by row, of these kinds.
    """
    dtype = half._like.dtype
    exact = tools.cast(half)
    x = x.to(dtype)
    kinds = kinds or ["inputs"] * len(x)
    for what, part in (("inputs", x), *zip(kinds, x.split(1), strict=True)):
        true, slopes = _finite_run(exact, part.double(), f"float64, inputs{of}")
        if tools.largest([part, true, *slopes.values()]) <= torch.finfo(dtype).max / ROOM:
            though = ", though float64 is far from the format's limits"
            _finite_run(half, part, f"{name}, {what}{of}", though)
            if what == "inputs":
                return


def _hard(mixer: Mixer, size: float) -> Tensor:
    """Three sequences of 65 tokens: normal, one token repeated, one large token among small
    ones.
    """
    normal, repeated, spike = tools.inputs(mixer, 3, 65)
    spike = 1e-3 * spike
    # size 1 again, among tokens of 1e-3
    spike[40] *= 1e3
    return size * torch.stack([normal, repeated[:1].expand(65, -1), spike])


def _finite_run(
    mixer: Mixer, x: Tensor, where: str, though: str = ""
) -> tuple[Tensor, dict[str, Tensor]]:
    y, found = tools.run(mixer, x)
    bad = [] if _finite(y) else ["the outputs"]
    bad += [f"the gradient by {name}" for name, x_ in found.items() if not _finite(x_)]
    if bad:
        first = cause(lambda: tools.run(mixer, x))
        more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
        raise tools.LawBroken(f"{where}: not finite: {bad[0]}{more}{first}{though}")
    return y, found


@torch.no_grad()
def nan_is_seen(mixer: Mixer) -> None:
    """NaN in a token comes out as NaN at that token, and in no other row, in both forms."""
    # the first token, one inside the first chunk of 64, one in the next chunk
    places = (0, 40, 65)
    x = tools.inputs(mixer, 4, 66)
    for row, place in enumerate(places):
        x[row, place] = float("nan")
    for form, y in (("forward", mixer(x)), ("step", tools.stream(mixer, x)[0])):
        for row, place in enumerate(places):
            tools.demand(
                y[row, place].isnan().any(),
                f"NaN in token {place} is hidden: the output of {form} there is finite",
            )
        tools.demand(y[-1].isfinite().all(), f"NaN in a row reaches outputs of {form} in others")


@torch.no_grad()
def refuses_bad_input(mixer: Mixer) -> None:
    """No tokens, another width, and a state of another shape, dtype, batch or with other names
    raise SizeError, and nothing else.
    """
    x = tools.inputs(mixer, 2, 4)
    _, state = tools.stream(mixer, x[:, :3])
    twice = torch.cat([x, x], -1)
    for what, call in {
        "forward of a sequence of 0 tokens": lambda: mixer(x[:, :0]),
        "last of a sequence of 0 tokens": lambda: mixer.last(x[:, :0]),
        "forward of an input of another width": lambda: mixer(twice),
        "step of an input of another width": lambda: mixer.step(twice[:, 3], state, 3),
        "a state with one tensor too many": lambda: mixer.step(x[:, 3], state | {"more": x}, 3),
    }.items():
        tools.refused(what, call)
    for name, tensor in state.items():
        bad = {
            "too few tensors": {other: kept for other, kept in state.items() if other != name},
            "another batch": state | {name: torch.cat([tensor, tensor])},
            "an axis too many": state | {name: tensor[..., None]},
            "another dtype": state | {name: tensor.to(torch.float16)},
        }
        for axis, grown in product(range(1, tensor.dim()), (True, False)):
            other = torch.cat([tensor, tensor], axis) if grown else tensor.narrow(axis, 0, 0)
            # an axis of size 0 is the same when doubled or emptied
            if other.shape != tensor.shape:
                bad[f"another shape, {tuple(other.shape)} instead of {tuple(tensor.shape)}"] = (
                    state | {name: other}
                )
        for what, wrong in bad.items():
            tools.refused(f"state['{name}']: {what}", partial(mixer.step, x[:, 3], wrong, 3))


def cause(call: Callable[[], object]) -> str:
    """Where a number that is not finite first comes from: ", first in the gradient of torch.sqrt
    (mine.py:35)" of a run that goes forward and back; nothing where no call of torch makes it of
    finite ones, as in a backward pass of the author's own.
    """
    calls = _Calls()
    with calls:
        call()
    for name, place, given, output in calls.made:
        if not _finite(output) and all(map(_finite, given)):
            return f", first in {name}{place}"
    # going back, from the last call on
    for name, place, given, output in reversed(calls.made):
        came = calls.gradients.get(id(output))
        left = [calls.gradients[id(x)] for x in given if id(x) in calls.gradients]
        if came is not None and _finite(came) and not all(map(_finite, left)):
            return f", first in the gradient of {name}{place}"
    return ""


class _Calls(TorchFunctionMode):
    """Remembers every call that makes a tensor, and the gradients that come back to it."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[tuple[str, str, list[Tensor], Tensor]] = []
        self.gradients: dict[int, Tensor] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = resolve_name(func) or getattr(func, "__name__", "")
        given = [x for x in _tensors((args, kwargs)) if x.is_floating_point()]
        for output in _tensors(result):
            if output.is_floating_point() and "grad" not in name:
                where = place_of(traceback.extract_stack()[:-1])
                self.made.append((name, where, given, output))
                for x in (output, *given):
                    if x.requires_grad:
                        x.register_hook(lambda gradient, x=x: self._keep(x, gradient))
        return result

    def _keep(self, x: Tensor, gradient: Tensor) -> None:
        self.gradients[id(x)] = gradient


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _tensors(part)


def _finite(x: Tensor) -> bool:
    return bool(x.detach().isfinite().all())
