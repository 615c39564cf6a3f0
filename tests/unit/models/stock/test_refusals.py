"""What no stock architecture holds, each in one line that names the feature."""

from __future__ import annotations

import pytest
import torch
from support.each import each

import separatrix as sx
from separatrix.constructions import construct
from separatrix.core.errors import SizeError
from separatrix.models.model import build
from separatrix.models.stock import STOCK, places, stock_checkpoint

SEQCOMP = "seqcomp:L=2,m=4,n_1=2"


@pytest.mark.parametrize("stock", STOCK)
@pytest.mark.parametrize(
    ("spec", "architecture", "said"),
    [
        ("parity:n=4", None, "layer 1 writes by deltanet"),
        (SEQCOMP, "gdn + full*2 @ head_dim=8, heads=1", "layer 1 writes by gdn"),
        ("eva:n=8,V=8", "full @ head_dim=8, heads=1, sink=true", "layer 1 has sink=true"),
        ("eva:n=8,V=8", "full @ head_dim=8, heads=1, gate=head", "layer 1 has gate=head"),
        ("eva:n=8,V=8", "full @ head_dim=8, heads=1, qk_norm=head", "layer 1 has qk_norm=head"),
    ],
)
def test_a_feature_in_the_way_is_named(
    stock: str, spec: str, architecture: str | None, said: str
) -> None:
    held = None if architecture is None else sx.Architecture.parse(architecture)
    built = construct(sx.parse_task(spec), held)
    with pytest.raises(SizeError, match=f"{stock}: {said}") as caught:
        stock_checkpoint(built.model, stock)
    assert "\n" not in str(caught.value)


def test_gpt2_has_no_rotations() -> None:
    held = sx.Architecture.parse("full @ head_dim=16, heads=1, rope=true, positions=none")
    built = construct(sx.parse_task("eva:n=8,V=8"), held)
    with pytest.raises(SizeError, match="rope=true"):
        stock_checkpoint(built.model, "gpt2")
    assert stock_checkpoint(built.model, "llama").start is None


def test_trained_models_have_norms() -> None:
    model = build(sx.Architecture.parse("full @ heads=1, head_dim=4"), sx.parse_task("eva:n=4,V=4"))
    with pytest.raises(SizeError, match="the model has norms"):
        stock_checkpoint(model, "gpt2")


@pytest.mark.parametrize("stock", STOCK)
def test_layers_that_write_nothing_are_left_out(stock: str) -> None:
    task = sx.parse_task("eva:n=8,V=8")
    alone = stock_checkpoint(construct(task).model, stock)
    held = sx.Architecture.parse("gdn + full + window(size=4) @ head_dim=4, heads=1")
    among = stock_checkpoint(construct(task, held).model, stock)
    layers = {"gpt2": "n_layer", "llama": "num_hidden_layers"}[stock]
    assert among.config[layers] == alone.config[layers]


def test_places_beyond_what_float32_tells_apart_are_refused() -> None:
    most = places.most_places()
    places.check(most, "llama")
    with pytest.raises(SizeError, match=f"{most:,} .*--format gpt2"):
        places.check(2 * most, "llama")


@each("count", [2, 3, 8, 9, 1000])
def test_the_bits_of_a_place_are_the_signs_of_a_turn(count: int) -> None:
    signs = places.signs_of(count)
    assert len({tuple(row) for row in signs.tolist()}) == count
    number = torch.arange(count, dtype=torch.float64)
    for bit in range(places.bits(count)):
        sine, cosine = places.key(bit)
        angle = number * places.frequency(bit)
        score = places.query(bit) * (angle.cos() * sine + angle.sin() * cosine)
        # the start token wins where the bit is 0, and by 64 at least wherever it stands
        assert torch.equal(score > 0, signs[:, bit] < 0)
        assert float(score.abs().min()) >= 64
