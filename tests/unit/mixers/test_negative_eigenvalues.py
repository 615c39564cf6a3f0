"""Delta rules with and without negative eigenvalues, by hand."""

from __future__ import annotations

from typing import Any

import pytest
from support.mixers import ON, ONE, PLANAR, PLANE, made_with, outputs_of, tokens_of


def scalar_with_bits(name: str) -> dict[str, Any]:
    read = {
        "q__weight": [[1, 0, 0]],
        "k__weight": [[1, 0, 0]],
        "v__weight": [[0, 1, 0]],
        "o__weight": [[1], [0], [0]],
    }
    keep: dict[str, Any] = {"gdn": {"a__weight": {}, "a__bias": [-800.0]}}.get(name, {})
    if name == "kda":
        keep = {"a__down__weight": {}, "a__up__weight": {}, "a__up__bias": [-800.0]}
    keep |= {} if name == "deltanet" else {"rate": [0.0]}
    return read | keep | {"b__weight": [[0, 0, 1]]}


@pytest.mark.parametrize("name", ["deltanet", "gdn", "kda"])
def test_negative_eigenvalues_count_parity(name: str) -> None:
    # one dimension: a bit of 1 has b = 2, a sign change; a bit of 0 has b = 0. The first token
    # writes 1 with b = 1
    m = made_with(name, 3, ONE | {"negative": True}, **scalar_with_bits(name))
    bits = [1, 1, 0, 1, 0, 0, 1, 1, 1, 0]
    parity = [(-1) ** sum(bits[: i + 1]) for i in range(len(bits))]
    x = tokens_of((1, 1, 0), *((1, 0, ON if bit else -ON) for bit in bits))
    assert outputs_of(m, x) == pytest.approx([1, *parity], abs=1e-12)


def test_without_negative_eigenvalues_a_full_write_of_zero_erases() -> None:
    # b = 1 is the most there is: the part of the state along the key is gone, not reflected
    m = made_with("deltanet", 6, PLANE, **PLANAR)
    x = tokens_of((ON, 1, 0, 1, 0, 1), (ON, 3, 4, 1, 0, 0), (ON, 3, 4, 3, 4, 0))
    # (1, 0) - (3/5) (3, 4)/5 = (0.64, -0.48), which is orthogonal to the key
    assert outputs_of(m, x) == pytest.approx([1, 0.64, 0], abs=1e-12)
