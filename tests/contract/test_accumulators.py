"""What is declared of softmax accumulators is what the mixers do: every form of every mixer sums
over tokens in the declared format, and no verdict is contradicted by weights in the mixer itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from separatrix.mixers import MIXERS, Mixer, mixer
from separatrix.mixers.base.mixer import DTYPES
from separatrix.stacks.architecture import Architecture, mechanism
from separatrix.stacks.mechanisms import MECHANISMS
from separatrix.stacks.mechanisms.softmax import Accumulating
from separatrix.tasks import Equality
from separatrix.theory import judge

NAMES = [name for name in MIXERS if issubclass(MECHANISMS[name], Accumulating)]
SIZES: dict[str, Any] = {
    "heads": 2,
    "head_dim": 4,
    "topk": 3,
    "block": 8,
    "stride": 4,
    "selected": 8,
    "window": 5,
    "latent": 6,
    "rope_dim": 2,
    "size": 30,
    "index_dim": 4,
}
SUMS = ("bmm", "baddbmm", "_softmax", "exp", "sum", "cumsum", "addcmul", "logsumexp", "mean")
"""Operations in which mixers sum over tokens; matrices of parameters multiply by `mm`."""
FUSED = "_scaled_dot_product_flash_attention_for_cpu"


def made(name: str, form: str) -> Mixer:
    known = mechanism(name).sizes()
    sizes = {size: value for size, value in SIZES.items() if size in known}
    sizes |= {"block": 1} if name == "indexed" else {}
    part = mixer(mechanism(name, format=form, **sizes), width=8)
    part.reset(torch.Generator().manual_seed(0))
    return part.to(DTYPES[form])


class Sums(TorchDispatchMode):
    """Notes the formats of what is summed, and the widest format of anything."""

    def __init__(self) -> None:
        super().__init__()
        self.formats: dict[str, set[torch.dtype]] = {}
        self.every: set[torch.dtype] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        outputs = [x for x in (result if isinstance(result, tuple) else (result,)) if is_float(x)]
        self.every |= {x.dtype for x in outputs}
        if name in SUMS or name == FUSED:
            inputs = [x for x in args if is_float(x)]
            # sums of whole numbers are none of a softmax
            if found := {x.dtype for x in inputs + outputs[:1]}:
                self.formats.setdefault(name, set()).update(found)
        return result


def is_float(x: object) -> bool:
    return isinstance(x, Tensor) and x.is_floating_point()


def forward(part: Mixer, x: Tensor) -> Tensor:
    return part(x)[:, -1]


def last(part: Mixer, x: Tensor) -> Tensor:
    return part.last(x)


def steps(part: Mixer, x: Tensor) -> Tensor:
    state = part.init_state(len(x))
    y = x[:, 0]
    for t in range(x.shape[1]):
        y, state = part.step(x[:, t], state, t)
    return y


FORMS: tuple[Callable[[Mixer, Tensor], Tensor], ...] = (forward, last, steps)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        # another format for the next mixer
        pytest.param(name, form, marks=[] if form == "bf16" and i % 2 == 0 else pytest.mark.slow)
        for i, name in enumerate(NAMES)
        for form in dict.fromkeys(("bf16", list(DTYPES)[i % len(DTYPES)]))
    ],
)
def test_every_form_sums_in_the_declared_accumulators(name: str, form: str) -> None:
    """Below and above the lengths at which mixers change to fused kernels and to tiles."""
    part = made(name, form)
    declared = part.mechanism
    assert isinstance(declared, Accumulating)
    assert declared.running_max
    wanted = DTYPES[declared.accumulator_format]
    for run in FORMS:
        for tokens in (40, 300)[: 1 if run is steps else 2]:
            x = torch.randn(1, tokens, 8, dtype=DTYPES[form])
            with torch.no_grad(), Sums() as sums:
                run(part, x)
            fused = sums.formats.pop(FUSED, set())
            # the fused kernel takes stored numbers; what it sums in is measured below
            assert fused <= {DTYPES[form], wanted}
            assert fused or sums.formats
            # blocks are chosen by a few shares of what was summed, added up exactly
            chosen = {torch.float64} if name == "nsa" else set[torch.dtype]()
            for operation, formats in sums.formats.items():
                assert formats - chosen == {wanted}, (run.__name__, tokens, operation)
            assert sums.every <= {DTYPES[form], wanted} | chosen


@pytest.mark.parametrize(("form", "tokens"), [("bf16", 100), ("fp16", 300), ("fp32", 100)])
def test_sums_that_cancel_keep_what_a_narrow_accumulator_loses(form: str, tokens: int) -> None:
    """Values between 1 and 2 of either sign that add up to 1: sums in 8 or 11 bits are wrong by
    far more than 1 %, sums in 24 bits are not.
    """
    part = mixer(mechanism("full", heads=1, head_dim=1, format=form), width=1).to(DTYPES[form])
    with torch.no_grad():
        for name, value in (("q", 0), ("k", 0), ("v", 1), ("o", 1)):
            part.get_parameter(f"{name}.weight").fill_(value)
    generator = torch.Generator().manual_seed(0)
    # multiples of 2^-7 from 1 up to 2: exact in every format
    ones = 1 + torch.randint(0, 128, (tokens // 2,), generator=generator) / 128
    values = torch.cat([ones, -ones[torch.randperm(tokens // 2, generator=generator)]])
    values[-1] += 1
    x = values[None, :, None].to(DTYPES[form])
    assert x.double().sum() == 1
    for run in FORMS:
        assert abs(run(part, x).item() * tokens - 1) < 0.01, run.__name__
    for narrow in (torch.bfloat16, torch.float16):
        total = torch.zeros((), dtype=narrow)
        for value in values.to(narrow):
            total = total + value
        assert abs(float(total) - 1) > 0.01


@pytest.mark.parametrize(
    ("head_dim", "n"), [(6, 128), pytest.param(22, 512, marks=pytest.mark.slow)]
)
def test_no_verdict_fails_what_explicit_weights_answer(head_dim: int, n: int) -> None:
    """Equality in bf16, with 24 bits of the string in each numerator.

    Bit j of the first string adds 2^-i to numerator c, bit j of the second takes it away
    (i = j div d, c = j mod d); all scores are equal, but that of the query token, which sees itself
    not. So numerators are multiples of 2^-23 below 2, exact in 24 bits, and all are 0 where the
    strings are equal: numbers have one binary form. 24 d bits are more than the (d + 1) 16 that
    accumulators in the storage format would hold.
    """
    assert (head_dim + 1) * 16 < n <= 24 * head_dim
    spec = Architecture.parse(f"full @ heads=1, head_dim={head_dim}, bf16")
    assert all(verdict.status != "FAILS" for verdict in judge(spec, Equality(n=n)))
    part = mixer(spec.layers[0][0], width=head_dim + 1).to(torch.bfloat16)
    digits = torch.zeros(n, head_dim)
    places = torch.arange(n)
    digits[places, places % head_dim] = 2.0 ** -(places // head_dim)
    with torch.no_grad():
        q, k, v, o = (part.get_parameter(f"{name}.weight").zero_() for name in "qkvo")
        q[0, head_dim] = 1
        k[0, head_dim] = -1
        for c in range(head_dim):
            v[c, c] = o[c, c] = 1

    def answers(first: Tensor, second: Tensor, run: Callable[[Mixer, Tensor], Tensor]) -> Tensor:
        x = torch.zeros(len(first), 2 * n + 1, head_dim + 1)
        x[:, :n, :head_dim] = first[..., None] * digits
        x[:, n : 2 * n, :head_dim] = -second[..., None] * digits
        # <q, k> = -2^14 for the query token itself, 0 for all others
        x[:, -1, head_dim] = 128
        return (run(part, x.to(torch.bfloat16)) == 0).all(-1)

    generator = torch.Generator().manual_seed(0)
    strings = torch.randint(0, 2, (24, n), generator=generator).float()
    assert bool(answers(strings, strings, last).all())
    assert not bool(answers(strings, strings.roll(1, 0), last).any())
    # every place flipped, and carries: 1 0 ... 0 against 0 1 ... 1 in each numerator
    flipped = strings[:1].expand(n, n).clone()
    flipped.diagonal().mul_(-1).add_(1)
    assert not bool(answers(strings[:1].expand(n, n), flipped, last).any())
    carry = (places < head_dim).float()[None]
    assert not bool(answers(carry, 1 - carry, last).any())
    assert bool(answers(strings[:2], strings[:2], forward).all())
    assert not bool(answers(strings[:2], flipped[-2:], forward).any())
