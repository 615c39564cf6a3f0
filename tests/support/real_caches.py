"""What a model of transformers really carries from a prompt: every tensor that its output's cache
holds, and every tensor that its layers hide in themselves, counted by layer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from transformers.cache_utils import Cache

CACHES = ("past_key_values", "cache_params", "state", "past_buckets_states", "mems")
"""Names under which a model's output holds its cache."""
_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks|block|layer)\.(\d+)(?:\.|$)")
_HOUSEKEEPING = ("cumulative_length", "_sliding_window_tensor", "seen_tokens", "seqlen_offset")
"""Counters of tokens: they tell the length, and nothing of the tokens."""


def tensors(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every tensor reachable from `value`, with the names and places that lead to it."""
    seen: set[int] = set()

    def walk(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
        if path and path[-1] in _HOUSEKEEPING:
            return
        if isinstance(value, torch.Tensor):
            yield path, value
        elif isinstance(value, nn.Module) or id(value) in seen:
            return
        elif isinstance(value, dict):
            for key, inner in value.items():
                yield from walk(inner, (*path, str(key)))
        elif isinstance(value, (list, tuple)):
            for place, inner in enumerate(value):
                yield from walk(inner, (*path, str(place)))
        elif type(value).__module__.startswith("transformers"):
            seen.add(id(value))
            yield from walk(vars(value), path)

    yield from walk(value, path)


def hidden(model: nn.Module) -> dict[tuple[str, str], torch.Tensor]:
    """Tensors that modules hold as plain attributes, neither parameters nor buffers."""
    return {
        (path, name): value
        for path, module in model.named_modules()
        for name, value in vars(module).items()
        if isinstance(value, torch.Tensor)
    }


@contextmanager
def _made() -> Iterator[list[Cache]]:
    """The caches that are made meanwhile: some models do not hand theirs out."""
    made: list[Cache] = []
    real = Cache.__init__

    def init(self: Cache, *args: Any, **options: Any) -> None:
        real(self, *args, **options)
        made.append(self)

    Cache.__init__ = init
    try:
        yield made
    finally:
        Cache.__init__ = real


def carried(model: nn.Module, ids: torch.Tensor, **inputs: Any) -> Counter[int | None]:
    """Numbers that each layer carries after the prompt `ids` of one sequence (None: a tensor that
    belongs to no layer).
    """
    before = {key: id(value) for key, value in hidden(model).items()}
    with torch.no_grad(), _made() as caches:
        output = model(input_ids=ids, use_cache=True, **inputs)
    found: dict[Any, tuple[int | None, torch.Tensor]] = {}
    for cache in (*(getattr(output, name, None) for name in CACHES), *caches):
        for path, tensor in tensors(cache):
            place = next((int(part) for part in path if part.isdecimal()), None)
            found.setdefault(_same(tensor), (place, tensor))
    for (path, name), tensor in hidden(model).items():
        if before.get((path, name)) != id(tensor):
            layer = _LAYER.search(path)
            found.setdefault(_same(tensor), (int(layer[1]) if layer else None, tensor))
    counts: Counter[int | None] = Counter()
    for place, tensor in found.values():
        counts[place] += tensor.numel()
    return counts


def _same(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Equal for two views of the same numbers."""
    if not tensor.numel():
        return (id(tensor),)
    return (tensor.data_ptr(), tuple(tensor.shape), tensor.stride())
