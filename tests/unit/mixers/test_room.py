"""What is kept of many tokens has room for later ones: no kept state is written to."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.func import vmap

from separatrix.mixers import mixer
from separatrix.mixers.base import mixer as base
from separatrix.mixers.base.mixer import appended
from separatrix.mixers.laws import drawn
from separatrix.stacks.mechanisms import mechanism

MANY = base.ROOM_FROM // 8


def token(number: float) -> torch.Tensor:
    return torch.full((2, 1, 4), float(number))


@torch.no_grad()
def test_tokens_stand_in_memory_that_is_there_until_it_is_full() -> None:
    kept = torch.zeros(2, MANY, 4)
    places = set()
    for number in range(1, MANY // 4):
        kept = appended(kept, token(number))
        places.add(kept.untyped_storage().data_ptr())
        held = kept.untyped_storage().nbytes() / kept.element_size()
        assert held <= kept.numel() * (1 + 1 / base.ROOM) + 8
    assert kept.shape == (2, MANY + MANY // 4 - 1, 4)
    assert torch.equal(kept[1, :, 3], torch.cat([torch.zeros(MANY), torch.arange(1.0, MANY // 4)]))
    assert len(places) <= 3


@torch.no_grad()
def test_what_is_appended_to_twice_is_copied() -> None:
    first = appended(torch.zeros(2, MANY, 4), token(1))
    before = first.clone()
    one, other = appended(first, token(2)), appended(first, token(3))
    longer = appended(one, token(4))
    assert torch.equal(first, before)
    assert torch.equal(one, torch.cat([before, token(2)], 1))
    assert torch.equal(other, torch.cat([before, token(3)], 1))
    assert torch.equal(longer, torch.cat([before, token(2), token(4)], 1))


@torch.no_grad()
def test_a_window_slides() -> None:
    kept = torch.zeros(2, MANY, 4)
    for number in range(1, MANY // 4):
        kept = appended(kept, token(number), MANY)
        assert kept.shape[1] == MANY
    last = torch.arange(1.0, MANY // 4)
    assert torch.equal(kept[0, :, 0], torch.cat([torch.zeros(MANY - len(last)), last]))


def test_gradients_transforms_and_inference_mode_copy() -> None:
    with torch.inference_mode():
        kept = appended(torch.zeros(2, MANY, 4), token(1))
    with torch.no_grad():
        longer = appended(kept, token(2))
        stacked = vmap(appended)(longer[None], token(3)[None])[0]
        again = appended(longer, token(4))
    assert torch.equal(stacked[:, -1:], token(3))
    assert torch.equal(again[:, -3:], torch.cat([token(1), token(2), token(4)], 1))
    number = token(5).requires_grad_()
    appended(again, number).sum().backward()
    assert number.grad is not None
    assert bool((number.grad == 1).all())


@pytest.mark.parametrize("name", ["full", "fox", "mla", "window", "sparse", "nsa", "moba", "dsa"])
@torch.no_grad()
def test_streams_and_their_branches_are_those_of_the_parallel_form(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "ROOM_FROM", 1)
    small: dict[str, Any] = {
        "size": 5,
        "block": 4,
        "stride": 2,
        "selected": 4,
        "topk": 3,
        "window": 6,
        "latent": 6,
    }
    known = type(mechanism(name, heads=2, head_dim=4)).__dataclass_fields__
    sizes: dict[str, Any] = {size: value for size, value in small.items() if size in known}
    made = drawn(mixer(mechanism(name, heads=2, head_dim=4, **sizes), width=8)).double()
    x = torch.randn(2, 40, 8, dtype=torch.float64)
    other = torch.cat([x[:, :20], -x[:, 20:]], 1)
    state = made.init_state(2)
    kept = []
    for t in range(40):
        kept.append(state)
        y, state = made.step(x[:, t], state, t)
        torch.testing.assert_close(y, made(x[:, : t + 1])[:, -1])
    state = kept[20]
    for t in range(20, 40):
        y, state = made.step(other[:, t], state, t)
        torch.testing.assert_close(y, made(other[:, : t + 1])[:, -1])
