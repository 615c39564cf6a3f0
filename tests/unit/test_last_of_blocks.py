"""A single layer that reads its tokens block by block gives the last token's logits of the whole
prompt, with every option of full attention; who asks for gradients, and every short prompt, is
served as before.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from separatrix.constructions import construct
from separatrix.mixers.ops.softmax import running_softmax
from separatrix.models import model as models
from separatrix.models.model import Model, build
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task

TASK = parse_task("eva:n=40,V=7")
OPTIONS = [
    "",
    "(sink=true)",
    "(softcap=20)",
    "(rope=true)",
    "(qk_norm=head, gate=sigmoid)",
    "(kv_heads=1)",
    "(value_dim=3)",
]


def built(spec: str) -> Model:
    return build(Architecture.parse(f"{spec} @ heads=2, head_dim=8"), TASK, width=12, seed=3)


def in_blocks(monkeypatch: pytest.MonkeyPatch, *, width: int = 12) -> None:
    """From now on every prompt is long, and a block of a batch of 3 has 5 tokens."""
    monkeypatch.setattr(models, "LONG", 0)
    monkeypatch.setattr(models, "BLOCK", 3 * 5 * width)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("length", [1, 4, 5, 9, 41])
def test_blocks_give_the_logits_of_the_whole(
    options: str, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = built(f"full{options}").double()
    tokens = torch.randint(7, (3, length), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        whole = model(tokens)
        in_blocks(monkeypatch)
        monkeypatch.setattr(Model, "_embed", None)
        torch.testing.assert_close(model(tokens), whole, rtol=1e-12, atol=1e-12)


def test_heads_side_by_side_read_the_blocks_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    model = built("full|full(sink=true)").double()
    tokens = torch.randint(7, (3, 13), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        whole = model(tokens)
        in_blocks(monkeypatch)
        torch.testing.assert_close(model(tokens), whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("format", [torch.bfloat16, torch.float16])
def test_half_formats_sum_in_float32(format: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """One rounding of the output, as without blocks: one unit of the format apart at most."""
    model = built("full").to(format)
    tokens = torch.randint(7, (3, 41), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        whole = model(tokens)
        in_blocks(monkeypatch)
        unit = torch.finfo(format).eps
        torch.testing.assert_close(model(tokens), whole, rtol=8 * unit, atol=8 * unit)


def test_others_do_not_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients, convolutions, recurrences and deeper stacks take the whole prompt; so does what
    is short.
    """

    def refused(*_: object) -> None:
        raise AssertionError("in blocks")

    tokens = torch.randint(7, (3, 41), generator=torch.Generator().manual_seed(1))
    monkeypatch.setattr(Model, "_of_blocks", refused)
    with torch.no_grad():
        built("full")(tokens)
    in_blocks(monkeypatch)
    built("full")(tokens).sum().backward()
    with torch.no_grad():
        for spec in ("full(conv=2)", "full + full", "gdn", "full|gdn"):
            built(spec)(tokens)
        with pytest.raises(AssertionError, match="in blocks"):
            built("full")(tokens)
    with pytest.raises(AssertionError, match="in blocks"):
        built("full").requires_grad_(False)(tokens)


@pytest.mark.parametrize("text", ["eva:n=9,V=6", "twosum:n=9,M=12"])
def test_constructions_answer_alike(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task = parse_task(text)
    model = construct(task).model
    in_blocks(monkeypatch, width=model.config.width)
    batch = task.sample(200, np.random.default_rng(4))
    tokens = torch.from_numpy(batch.tokens)
    assert (model(tokens).argmax(-1).numpy() == batch.targets).all()


def test_running_sums_of_extreme_scores() -> None:
    """By hand: scores 1000, 0, 1000 in three blocks weigh 1/2, 0, 1/2; no exponential overflows."""
    blocks = [
        (torch.full((1, 1, 1, 1), score), torch.full((1, 1, 1, 1), value))
        for score, value in ((1000.0, 1.0), (0.0, 5.0), (1000.0, 4.0))
    ]
    assert running_softmax(blocks).item() == 2.5
