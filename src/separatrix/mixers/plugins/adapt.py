"""`adapt`: a layer of transformers or flash-linear-attention, which keeps its past in a cache
object, as a module with `step`.

The state of the adapted module is every floating-point tensor found in the cache object whose first
axis is the batch, by its path, such as "layers.0.conv_states.0". Everything else in the object
(flags, counters of tokens) is learnt from its first three tokens. What does not change stays; an
integer that grows by the same amount every token goes on growing.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from separatrix.core.errors import MissingExtraError, SizeError, SpecError
from separatrix.mixers.base.mixer import State

CACHE_NAMES = ("past_key_values", "cache_params", "past_key_value", "cache")
"""What a layer's `forward` calls its cache: attention and fla, Mamba and Qwen3-Next, older ones."""
_LEARNT = 3
_BATCH = 3
"""Tokens and batch of the run that learns the cache's structure."""
Inputs = Callable[[Tensor, int], dict[str, Any]]


def adapt(
    layer: Any, *, cache: Callable[[], Any] | None = None, inputs: Inputs | None = None
) -> nn.Module:
    """A module with `forward(x)`, `init_state(batch)` and `step(x, state, t)` around a layer that
    takes hidden states and a cache object.

    `cache()` makes the empty cache object (default: fla's Cache for a layer of fla, else
    transformers' DynamicCache of `layer.config`). `inputs(x, t)` gives further arguments of the
    layer for tokens x (b, n, w) with t tokens before them, such as position_embeddings or a mask.
    Dropout is switched off. Use it in a function that `register_mechanism` takes:

        @sx.register_mechanism
        def qwen_gdn(width: int, *, heads: int = 2):
            config = Qwen3NextConfig(
                hidden_size=width,
                linear_num_value_heads=heads,
                num_hidden_layers=1,
                layer_types=["linear_attention"],
            )
            layer = Qwen3NextGatedDeltaNet(config, 0)
            return sx.adapt(layer, cache=lambda: DynamicCache(config=config))

    Raises SpecError for a layer without a cache argument, MissingExtraError where the default
    cache's library is not installed.
    """
    if not isinstance(layer, nn.Module):
        raise SpecError(
            f"adapt: layer is a {type(layer).__name__}; it must be a module, such as"
            " MambaMixer(config, layer_idx=0)"
        )
    parameters = inspect.signature(layer.forward).parameters
    name = next((name for name in CACHE_NAMES if name in parameters), None)
    if name is None:
        raise SpecError(
            f"adapt: {type(layer).__name__}.forward takes no cache; looked for"
            f" {', '.join(CACHE_NAMES)}"
        )
    return Adapted(
        layer.eval(),
        name,
        "use_cache" in parameters,
        cache or _default_cache(layer),
        inputs or (lambda x, t: {}),
    )


def _default_cache(layer: nn.Module) -> Callable[[], Any]:
    if type(layer).__module__.partition(".")[0] == "fla":
        from fla.models.utils import Cache  # type: ignore[import-not-found]

        return Cache
    if (config := getattr(layer, "config", None)) is None:
        raise SpecError(
            f"adapt: {type(layer).__name__} has no config to make a cache from; pass cache=lambda:"
            " DynamicCache(config=config)"
        )
    try:
        from transformers import DynamicCache  # type: ignore[import-not-found]
    except ImportError:
        raise MissingExtraError.of("adapt's default cache", "hf") from None
    return lambda: DynamicCache(config=config)


class Adapted(nn.Module):
    """See `adapt`."""

    def __init__(
        self, layer: nn.Module, name: str, use_cache: bool, cache: Callable[[], Any], inputs: Inputs
    ) -> None:
        super().__init__()
        self.layer = layer
        self._name = name
        self._use = use_cache
        self._cache = cache
        self._inputs = inputs
        self._learnt: list[tuple[Any, dict[str, Tensor]]] = []

    def forward(self, x: Tensor) -> Tensor:
        return _first(self.layer(x, **self._named(self._inputs(x, 0))))

    def init_state(self, batch: int) -> State:
        """Nothing: a cache object is empty before the first token."""
        return {}

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        if not self._learnt:
            self._learn(x)
        y, cache, written = self._call(x, self._filled(state, t), t)
        found = dict(_leaves(cache))
        new: State = {}
        for path in self._learnt[min(t + 1, _LEARNT) - 1][1]:
            if not isinstance(tensor := found.get(path), Tensor):
                raise SizeError(
                    f"the cache of {type(self.layer).__name__} has no tensor at {path} after"
                    f" {t + 1} tokens"
                )
            # a copy: caches hold views of their inputs, and of larger tensors
            new[path] = written.of(tensor).clone()
        return y, new

    def _named(self, more: dict[str, Any]) -> dict[str, Any]:
        """Arguments of the layer: `inputs`' own, and an empty mask where the layer asks for one."""
        parameters = inspect.signature(self.layer.forward).parameters
        mask = parameters.get("attention_mask")
        return (
            {"attention_mask": None} if mask is not None and mask.default is mask.empty else {}
        ) | more

    def _call(self, x: Tensor, cache: Any, t: int) -> tuple[Tensor, Any, _OutOfPlace]:
        tokens = x[:, None]
        named = (
            self._named(self._inputs(tokens, t))
            | {self._name: cache}
            | ({"use_cache": True} if self._use else {})
        )
        with _OutOfPlace() as written:
            result = self.layer(tokens, **named)
        # some layers give back a new cache instead of writing into the one given
        returned = (
            [item for item in result[1:] if isinstance(item, type(cache))]
            if isinstance(result, tuple)
            else []
        )
        return _first(result)[:, 0], returned[0] if returned else cache, written

    @torch.no_grad()
    def _learn(self, x: Tensor) -> None:
        """The cache after 1, 2 and 3 tokens of zeros, with a mark, an empty tensor, in the place of
        every tensor of the state.
        """
        cache = self._cache()
        learnt = []
        zeros = torch.zeros(_BATCH, x.shape[-1], dtype=x.dtype, device=x.device)
        for t in range(_LEARNT):
            _, cache, _ = self._call(zeros, cache, t)
            found = {path: tensor for path, tensor in _leaves(cache) if _is_state(tensor)}
            marks = {path: torch.empty(0) for path in found}
            # deepcopy takes what its memo has by id as copied: marks replace the tensors
            memo: dict[int, Any] = {id(tensor): marks[path] for path, tensor in found.items()}
            learnt.append((copy.deepcopy(cache, memo), marks))
        self._learnt = learnt

    def _filled(self, state: State, t: int) -> Any:
        if t == 0:
            return self._cache()
        known, marks = self._learnt[min(t, _LEARNT) - 1]
        # the memo again, now from marks to tensors: clones, since a cache may write into its own
        held = {id(mark): state[path].clone() for path, mark in marks.items() if path in state}
        cache = copy.deepcopy(known, held)
        if t > _LEARNT:
            before, last = (dict(_leaves(self._learnt[i][0])) for i in (-2, -1))
            # a flag is a bool, whose type is not int, so it does not grow
            for path, value in last.items():
                if type(value) is int and type(before.get(path)) is int and value != before[path]:
                    _put(cache, path, value + (t - _LEARNT) * (value - before[path]))
        return cache


class _OutOfPlace(TorchFunctionMode):
    """Remembers what `a.copy_(b)` would write into a and leaves a alone, so that autograd and
    vmap can follow a cache written in place.
    """

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[int, tuple[Tensor, Tensor]] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is Tensor.copy_ and isinstance(args[1], Tensor):
            into = args[0]
            new = args[1].to(args[0].dtype)
            # `into` is kept as well, so that no other tensor gets its id
            self._kept[id(into)] = into, new.expand_as(into)
            return into
        return func(*args, **(kwargs or {}))

    def of(self, tensor: Tensor) -> Tensor:
        """What a tensor holds after the writes."""
        return self._kept[id(tensor)][1] if id(tensor) in self._kept else tensor


def _first(result: Any) -> Tensor:
    return result[0] if isinstance(result, tuple) else result


def _is_state(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point() and value.shape[:1] == (_BATCH,)


def _leaves(
    value: Any, path: str = "", seen: frozenset[int] = frozenset()
) -> Iterator[tuple[str, Any]]:
    """(path, value) of tensors and integers inside lists, tuples, dicts and attributes
    of objects.
    """
    if isinstance(value, Tensor | int):
        yield path, value
    elif id(value) not in seen and not isinstance(
        value, type | nn.Module | torch.dtype | torch.device
    ):
        # only cycles are cut: what two parents share has a path through each
        seen |= {id(value)}
        for name, part in _parts(value):
            yield from _leaves(part, f"{path}.{name}" if path else str(name), seen)


def _parts(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list | tuple):
        yield from enumerate(value)
    # functions have a __dict__, too
    elif hasattr(value, "__dict__") and not callable(value):
        yield from vars(value).items()


def _put(value: Any, path: str, number: int) -> None:
    """Writes an integer at a path; tuples are left as they are."""
    *way, last = path.split(".")
    for name in way:
        value = next(part for key, part in _parts(value) if str(key) == name)
    if isinstance(value, dict):
        value[next(key for key in value if str(key) == last)] = number
    elif isinstance(value, list):
        value[int(last)] = number
    elif not isinstance(value, tuple):
        setattr(value, last, number)
