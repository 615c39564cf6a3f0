"""The base of token mixers: parameters, a parallel form (`forward`), a recurrence (`step`, the
truth) and the state it carries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, MutableMapping
from math import prod
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from separatrix.core.errors import SizeError
from separatrix.mixers.base.tensors import (
    Channels,
    Keys,
    OneToken,
    Places,
    SomeTokens,
    Token,
    Tokens,
    TokensAt,
)
from separatrix.stacks.mechanisms import Mechanism

State = dict[str, Tensor]
"""What one mixer carries to later tokens: tensors whose first axis is the batch. The number of
tokens seen is free.
"""
Shapes = dict[str, tuple[int, ...]]
"""Shape of every tensor of a state, the batch left out."""
DTYPES = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}
"""Number formats that PyTorch computes in."""


class Mixer(nn.Module, ABC):
    """A token mixer at the sizes of a mechanism. Abstract or final: subclasses are not subclassed,
    and write `_forward`, `_step`, `shapes`.

    Half formats: projections run in the parameters' format, sums over tokens in float32 (`wide`),
    states are stored as declared.
    """

    o: nn.Linear
    """The output map."""
    conv: Any
    """A short convolution (ops/maps.py), or None."""
    chunk: int = 64
    """Tokens per chunk of the parallel form, where it has chunks; any positive value gives the
    same outputs.
    """

    at_rest_first: ClassVar[frozenset[str]] = frozenset()
    """Parts of the state of a monotone recurrence that scale the others, and stand still before
    them while a token repeats.
    """

    exact_state: bool = False
    """Whether the parallel form, too, rounds what is carried as it is declared, after every token:
    equal to `step` bit for bit, and as slow.
    """

    state_dtype: torch.dtype | None = None
    """The format that recurrent states are stored in instead of the declared one, whatever the
    parameters are in; stored inputs and what has no `state_format` stay as they are.
    """

    def __init__(self, mechanism: Mechanism, *, width: int) -> None:
        super().__init__()
        self.mechanism = mechanism
        self.width = width

    def forward(self, x: Tokens) -> Tokens:
        """The parallel form: outputs for a whole sequence from the empty state. NaN or infinity in
        a token may reach earlier outputs here, since 0 times it is NaN; in `step` it cannot. Raises
        SizeError for x of no tokens, another width or another format.
        """
        self._check_input(x, 3)
        return self._streamed(x) if self.streams else self._forward(x)

    def last(self, x: Tokens) -> Token:
        """The output at the last token only; equal to `forward(x)[:, -1]`. Raises SizeError as
        `forward` does.
        """
        self._check_input(x, 3)
        return self._streamed(x)[:, -1] if self.streams else self._last(x)

    @property
    def reads_blocks(self) -> bool:
        """Whether the output at the last token can be computed from blocks of tokens, one after the
        other.
        """
        return False

    def last_of_blocks(self, last: OneToken, blocks: Iterator[Tensor], tokens: int) -> Token:
        """As `last`, of so many tokens that come in blocks (b, c, w), none of which is kept; only
        where `reads_blocks`. Raises SizeError as `forward` does.
        """
        raise NotImplementedError

    def at(self, x: Tokens, places: Int[Tensor, "n k"]) -> TokensAt:
        """The outputs at some tokens only, in any order, also one of them twice; equal to
        `forward(x)` gathered there. Raises SizeError as `forward` does, and, outside of
        torch.func transforms, for a place that is no token's.
        """
        self._check_input(x, 3)
        check_places(places, x)
        if self.streams:
            return taken(self._streamed(x), places)
        # asked at half of the tokens, the parallel form is as quick
        few = 2 * places.shape[1] <= x.shape[1]
        return self._at(x, places) if few else taken(self._forward(x), places)

    def step(self, x: Token, state: State, t: int) -> tuple[Token, State]:
        """One token of the recurrence; t counts the tokens before it. Raises SizeError for a
        state that t tokens cannot have left. The state given stays as it is; from half a MiB on the
        new one may share its memory (`appended`), so neither is to be written to.
        """
        self._check_input(x, 2)
        self._check_state(state, len(x), t)
        return self._step(x, state, t)

    @property
    def streams(self) -> bool:
        """Whether the parallel form is computed token by token: with `exact_state`, where a state
        is stored in a narrower format than sums over tokens have.
        """
        if not self.exact_state:
            return False
        bits = torch.finfo(wide(self._like).dtype).bits
        stored = (self._dtype(name) for name in self.shapes(0) if name not in BUFFERS)
        return any(torch.finfo(dtype).bits < bits for dtype in stored)

    def _streamed(self, x: Tokens) -> Tokens:
        state = self.init_state(len(x))
        outputs: list[Tensor] = []
        for t, token in enumerate(x.unbind(1)):
            y, state = self._step(token, state, t)
            outputs.append(y)
        return torch.stack(outputs, 1)

    def init_state(self, batch: int) -> State:
        """The state before the first token: zeros."""
        return {
            name: torch.zeros(batch, *shape, dtype=self._dtype(name), device=self._like.device)
            for name, shape in self.shapes(0).items()
        }

    @abstractmethod
    def shapes(self, t: int) -> Shapes:
        """Shape of every tensor of the state after t tokens, the batch left out."""

    @abstractmethod
    def _forward(self, x: Tokens) -> Tokens: ...

    @abstractmethod
    def _step(self, x: Token, state: State, t: int) -> tuple[Token, State]: ...

    def _last(self, x: Tokens) -> Token:
        return self._at(x, last_place(x))[:, 0]

    def _at(self, x: Tokens, places: Places) -> TokensAt:
        return taken(self._forward(x), places)

    @torch.no_grad()
    def reset(self, generator: torch.Generator) -> None:
        """Draws every parameter: matrices normal with standard deviation 1/sqrt(fan-in), gates
        and biases as the mechanism says, 0 where it says nothing.
        """
        for parameter in self.parameters():
            if parameter.dim() >= 2:
                fan_in_normal(parameter, generator)
            else:
                parameter.zero_()

    @property
    def _like(self) -> Tensor:
        """A tensor in the parameters' format, on their device."""
        return self.o.weight

    def _dtype(self, name: str) -> torch.dtype:
        """The format a tensor of the state is stored in: the parameters'; for a recurrent state the
        declared `state_format`, where the parameters are in the declared `format`, or
        `state_dtype`.
        """
        ours = self._like.dtype
        if name in BUFFERS:
            return ours
        # "" where that is no size of the mechanism
        declared: str | None = getattr(self.mechanism, "state_format", "")
        if self.state_dtype is not None and declared != "":
            return self.state_dtype
        return self._declared(declared, ours)

    def _declared(self, name: str | None, otherwise: torch.dtype) -> torch.dtype:
        # a mixer cast to another format than its own keeps its states in that one, too
        ours = self._like.dtype
        if not name or DTYPES.get(self.mechanism.format) != ours:
            return otherwise
        return DTYPES.get(name, ours)

    def _summed(self, state: State) -> State:
        """A state in the format of sums over tokens."""
        return {name: x.to(wide(self._like).dtype) for name, x in state.items()}

    def _check_input(self, x: Tensor, axes: int) -> None:
        wrong = None
        if x.dim() != axes:
            wanted = "(batch, tokens, width)" if axes == 3 else "(batch, width)"
            wrong = f"x has shape {tuple(x.shape)}; it must be {wanted}"
        elif 0 in x.shape[:-1]:
            tokens = f" of {x.shape[1]} tokens" if axes == 3 else ""
            wrong = f"x has {x.shape[0]} sequences{tokens}; it needs at least 1 of each"
        elif x.shape[-1] != self.width:
            made = f"this mixer was made for width={self.width}"
            wrong = f"x has {x.shape[-1]} numbers per token; {made}"
        # autocast converts at every product by itself
        elif x.dtype != self._like.dtype and not torch.is_autocast_enabled(x.device.type):
            wrong = f"x is {x.dtype}, the parameters are {self._like.dtype}; convert one of them"
        if wrong:
            raise self._wrong(wrong)

    def _check_state(self, state: State, batch: int, t: int) -> None:
        if type(t) is not int or t < 0:
            raise self._wrong(f"t is {t!r}; it counts the tokens before, an integer from 0")
        if not isinstance(state, dict):
            raise self._wrong(f"state is {state!r}; it must be a dict of tensors, as step gives")
        shapes = self.shapes(t)
        if state.keys() != shapes.keys():
            held, wanted = (", ".join(names) or "nothing" for names in (state, shapes))
            raise self._wrong(f"state holds {held}; it must hold {wanted}")
        for name, shape in shapes.items():
            x, whole, dtype = state[name], (batch, *shape), self._dtype(name)
            if x.shape != whole or x.dtype != dtype:
                raise self._wrong(
                    f"state['{name}'] is {x.dtype} of shape {tuple(x.shape)}; after t={t} tokens it"
                    f" must be {dtype} of shape {whole}"
                )

    def _wrong(self, said: str) -> SizeError:
        return SizeError(f"{self.mechanism.name}: {said}")

    def _convolved(self, x: Channels) -> Channels:
        """Behind the short convolution, where there is one."""
        return x if self.conv is None else self.conv(x)

    def _convolved_step(self, x: Float[Tensor, "b c"], state: State) -> tuple[Tensor, State]:
        """The same of one token, and the convolution's part of the new state."""
        if self.conv is None:
            return x, {}
        y, buffer = self.conv.step(x, state["conv"])
        return y, self._store(conv=buffer)

    def _conv_shapes(self, t: int) -> Shapes:
        return {} if self.conv is None else {"conv": self.conv.shape(t)}

    def _store(self, **tensors: Tensor) -> State:
        return {name: tensor.to(self._dtype(name)) for name, tensor in tensors.items()}


def unbuilt(mechanism: Mechanism, **values: object) -> None:
    """Raises SizeError where one of these sizes has a value that no mixer here has."""
    for name in (name for name, asked in values.items() if asked):
        value = str(getattr(mechanism, name)).lower()
        raise SizeError(
            f"{mechanism.name}: {name}={value}: no mixer of '{mechanism.name}' here has that; such"
            " layers can be judged, but not built"
        )


BUFFERS = frozenset(
    {"conv", "shift", "channel_shift", "latents", "rotated", "index_keys", "gates"}
    | {f"{prefix}{name}" for prefix in ("", "near_", "raw_") for name in ("keys", "values")}
)
"""Parts of a state that are stored inputs, in the mechanism's `format`; the others are recurrent
states.
"""


@torch.no_grad()
def fan_in_normal(weight: Tensor, generator: torch.Generator, gain: float = 1.0) -> None:
    """Fills a (fan-out, fan-in) matrix with normal numbers of standard deviation
    gain/sqrt(fan-in).
    """
    weight.normal_(0.0, gain / weight.shape[-1] ** 0.5, generator=generator)


def linear(inputs: int, outputs: int) -> nn.Linear:
    """A matrix without bias."""
    return nn.Linear(inputs, outputs, bias=False)


def wide(x: Tensor) -> Tensor:
    """x in float32, if it is in a half format."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


ROOM_FROM = 1 << 17
"""Numbers from which on what is kept has room for later tokens: copying fewer costs nothing."""
ROOM = 8
"""The part of them that is room: one in so many."""
_rooms: MutableMapping[Tensor, tuple[Tensor, dict[int, bool], int]] = WeakTensorKeyDictionary()
"""What `appended` gave -> the memory that it is a view of, the place from which on that is free,
if it still is, and the view's end.
"""


def appended(kept: Tensor, new: Tensor, size: int | None = None) -> Tensor:
    """Both in a row (.. t d), the last `size` of them (all if None), for states of tokens.

    A stream that keeps much copies it once in a while: the result is then a view of memory with
    room for tokens to come, an eighth. No view of it is ever written to: what is appended to twice
    is copied the second time, and so is all of it under autograd and torch.func transforms.
    """
    count = new.shape[-2]
    length = kept.shape[-2] + count
    found = length if size is None else min(length, size)
    old = kept.narrow(-2, length - found, found - count)
    if (
        kept.numel() < ROOM_FROM
        or kept.dtype != new.dtype
        or torch.is_grad_enabled()
        or torch._C._are_functorch_transforms_active()
    ):
        return torch.cat([old, new], -2)
    memory, free, end = _rooms.get(kept, (kept, {}, 0))
    fits = (
        end + count <= memory.shape[-2]
        and memory.is_inference() <= torch.is_inference_mode_enabled()
    )
    # taken in one operation, since threads may append to one tensor
    if not fits or not free.pop(end, False):
        shape = [*kept.shape]
        end = found - count
        shape[-2] = found + found // ROOM
        memory, free = kept.new_empty(shape), {}
        memory.narrow(-2, 0, end).copy_(old)
    memory.narrow(-2, end, count).copy_(new)
    end += count
    free[end] = True
    result = memory.narrow(-2, end - found, found)
    _rooms[result] = (memory, free, end)
    return result


EPSILON = 1e-6
"""Added to mean squares under the root of a norm."""


def normed(x: SomeTokens, epsilon: float = EPSILON, axes: int | tuple[int, ...] = -1) -> SomeTokens:
    """x / rms(x), the mean over these axes, formed in float32 at least."""
    y = wide(x)
    return (y * (y.square().mean(axes, keepdim=True) + epsilon).rsqrt()).to(x.dtype)


def last_place(x: Tokens) -> Places:
    return torch.full((len(x), 1), x.shape[1] - 1, device=x.device)


def taken(x: Tokens, places: Places) -> TokensAt:
    """Every row's tokens at its own places."""
    return x.gather(1, places[..., None].expand(-1, -1, x.shape[2]))


def taken_heads(x: Keys, places: Places) -> Float[Tensor, "b h k d"]:
    """As `taken`, of heads."""
    return x.gather(2, places[:, None, :, None].expand(-1, x.shape[1], -1, x.shape[3]))


def traced() -> bool:
    """Whether a transform or a compiler runs: inside there are no values to look at."""
    return torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()


def check_places(places: Tensor, x: Tokens, before: int = 0) -> None:
    """Raises SizeError unless the places are whole numbers, k for each sequence of x, and, where
    their values can be seen, those of tokens; the first `before` tokens are not counted.
    """
    batch, tokens = x.shape[:2]
    if places.dim() != 2 or len(places) != batch or not places.shape[1]:
        raise SizeError(
            f"places have shape {tuple(places.shape)}; they must be (batch, places) with batch"
            f" {batch} and at least one place"
        )
    if places.dtype != torch.int64:
        raise SizeError(f"places are {places.dtype}; they must be torch.int64")
    # on a GPU a look would wait for it
    if places.is_cuda or traced():
        return
    low, high = (int(end) for end in places.aminmax())
    if low < 0 or high >= tokens - before:
        raise SizeError(
            f"places run from {low} to {high}; the {tokens - before} tokens are numbered from 0 to"
            f" {tokens - before - 1}"
        )


def plus_product(
    x: Float[Tensor, "*b i r"], a: Float[Tensor, "*b i j"], c: Float[Tensor, "*b j r"]
) -> Float[Tensor, "*b i r"]:
    """x + a c, without a tensor for the product."""
    flat = (y.flatten(0, -3) for y in (x, a, c))
    return torch.baddbmm(*flat).unflatten(0, x.shape[:-2])


def even(tokens: int, size: int) -> int:
    """A length near `size` that cuts the tokens into equal chunks, of which none is mostly filled
    up.
    """
    return -(-tokens // max(1, round(tokens / size)))


def split_chunks(x: Keys, size: int) -> Float[Tensor, "b h n c d"]:
    """Chunks of min(size, t) tokens, the last one filled up with zeros; later than every token,
    they are seen by none.
    """
    size = min(size, x.shape[2])
    missing = -x.shape[2] % size
    # in one piece: a matrix product would copy it to that each time
    whole = F.pad(x, (0, 0, 0, missing)) if missing else x.contiguous()
    return rearrange(whole, "b h (n c) d -> b h n c d", c=size)


def join_chunks(x: Float[Tensor, "b h n c d"], tokens: int) -> Keys:
    """The inverse of `split_chunks`."""
    return rearrange(x, "b h n c d -> b h (n c) d")[:, :, :tokens]


def state_numbers(state: State) -> int:
    """Numbers one sequence carries in a state."""
    return sum(prod(tensor.shape[1:]) for tensor in state.values())
