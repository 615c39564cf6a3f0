"""Bad input of mixers: the message names the argument."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from support.each import each
from support.mixers import one_head

from separatrix.core.errors import SizeError


@each(
    "call, says",
    [
        (
            lambda m: m(torch.zeros(1, 0, 2, dtype=torch.float64)),
            "x has 1 sequences of 0",
        ),
        (lambda m: m(torch.zeros(0, 3, 2, dtype=torch.float64)), "x has 0 sequences of 3 tokens"),
        (lambda m: m(torch.zeros(1, 3, 2)), "x is torch.float32"),
        (
            lambda m: m.step(torch.zeros(1, 2, dtype=torch.float64), m.init_state(1), -1),
            "t is -1",
        ),
        (
            lambda m: m.step(torch.zeros(1, 2, dtype=torch.float64), m.init_state(1), 1),
            "after t=1",
        ),
        (
            lambda m: m.step(torch.zeros(1, 2, dtype=torch.float64), {}, 0),
            "must hold keys, values",
        ),
    ],
)
def test_bad_input_names_the_argument(call: Any, says: str) -> None:
    with pytest.raises(SizeError, match=says) as caught:
        call(one_head("full"))
    assert "\n" not in str(caught.value)
