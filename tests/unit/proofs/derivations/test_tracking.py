"""Weights of state tracking, changed: each change is refused, or as true as before."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import torch
from support.construction_tools import every
from support.each import each
from torch import Tensor

from separatrix.constructions import construct
from separatrix.core.errors import CheckFailed
from separatrix.models.model import Model
from separatrix.proofs.derivations import DERIVATIONS
from separatrix.proofs.derivations.tracked import about
from separatrix.proofs.exact import Digits, Exactly
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Permutation, Task, parse_task

S3 = ("permutation:n=4,k=3", "deltaproduct @ heads=1, head_dim=6, value_dim=2", "permutation")
TWO = ("parity:n=8", "kda(negative=true) @ heads=2, head_dim=1", "parity")
BITS = ("parity:n=8", "gdn(negative=true) @ heads=1, head_dim=1", "parity")
SWAPS = (
    "permutation:n=4,k=3,shift=swaps",
    "deltanet(negative=true) @ heads=2, head_dim=6, value_dim=9",
    "swaps",
)
MIXER = "blocks.0.mixers.0."


def built(case: tuple[str, str, str]) -> tuple[Task, Model]:
    text, stack, kind = case
    task = parse_task(text)
    return task, construct(task, Architecture.parse(stack), kind).model


def refused(task: Task, model: Model, name: str) -> str:
    """Why it is, "" where it is not."""
    try:
        DERIVATIONS[name].derive(task, model)
    except CheckFailed as error:
        return str(error)
    return ""


def set_one(name: str, place: tuple[int, ...], value: float) -> Callable[[Model], None]:
    def change(model: Model) -> None:
        dict(model.named_parameters())[name][place] = value

    return change


def gate(b: float) -> float:
    """The logit of a strength b = 2 sigmoid(z)."""
    return math.log(b / (2 - b))


FORGERIES: list[tuple[str, tuple[str, str, str], Callable[[Model], None], str]] = [
    (
        "a decay of 1 - 2^-24",
        S3,
        # softplus(z) = 2^-24 where z = ln(e^(2^-24) - 1)
        set_one(MIXER + "a.bias", (0,), math.log(math.expm1(2.0**-24))),
        "binary digits|not exactly 1",
    ),
    ("a decay whose bias is -30", S3, set_one(MIXER + "a.bias", (0,), -30.0), "not exactly 1"),
    ("b = 1.9375", S3, set_one("embed.weight", (3, 1), gate(1.9375) / 128), "not saturated|digits"),
    ("b = 1.9375, in few digits", S3, set_one("embed.weight", (3, 1), 3.5 / 128), "not saturated"),
    ("a reflection that is dropped", S3, set_one("embed.weight", (3, 1), -1.0), "two answers"),
    ("a thing of an exchange", S3, set_one("embed.weight", (1, 5), 0.0), "power of two"),
    ("a key of another length", S3, set_one(MIXER + "k.weight", (0, 3), 0.25), "power of two"),
    ("a value", S3, set_one(MIXER + "v.weight", (0, 3), -2.0), "states do not|two answers"),
    ("the sign of a value", S3, set_one(MIXER + "v.weight", (1, 4), 1.0), "states do not|two"),
    ("a query", S3, set_one(MIXER + "q.weight", (0, 0), 3.0), "power of two"),
    ("a row of the head", S3, set_one("head.weight", (2, 10), 7.0), "largest logit|last token"),
    ("a bias of the head", S3, set_one("head.bias", (5,), 3.0), "largest logit"),
    ("the last token's own say", S3, set_one("head.weight", (0, 4), 1.0), "last token"),
    ("a place that tells", S3, set_one("position.weight", (2, 3), 1.0), "places after the first"),
    ("a bit that does not turn", BITS, set_one("embed.weight", (1, 1), -1.0), "two answers"),
    # infinity times 0: the head that is not used would add NaN
    ("a rate of another head", TWO, set_one(MIXER + "rate", (1,), 128.0), "may overflow"),
    ("a gate of another head", TWO, set_one(MIXER + "b.weight", (1, 0), 1e30), "overflow|digits"),
    ("a gate half open", BITS, set_one("embed.weight", (0, 1), 0.0), "not saturated"),
    ("a gate almost shut", BITS, set_one("embed.weight", (0, 1), -0.5), "not saturated"),
    ("v = 1/8", BITS, set_one(MIXER + "v.weight", (0, 0), 0.125), "largest logit"),
    ("a first token that is not carried", SWAPS, set_one("position.weight", (0, 5), 0.0), ""),
    ("a place in the image", SWAPS, set_one("embed.weight", (1, 6), 0.0), ""),
    ("a unit of the gathering", SWAPS, set_one("blocks.0.mlp.up.bias", (1,), 5.0), "largest"),
]


@each("case, change, why", [one[1:] for one in FORGERIES])
def test_a_changed_weight_is_refused(
    case: tuple[str, str, str], change: Callable[[Model], None], why: str
) -> None:
    task, model = built(case)
    assert refused(task, model, case[2]) == ""
    change(model)
    said = refused(task, model, case[2])
    assert said
    assert np.any([part in said for part in why.split("|")]), said


def test_a_harmless_change_is_proved_anew() -> None:
    """v = 3/4: the state is 0 or 3/2, which still is nearer to the right answer."""
    task, model = built(BITS)
    set_one(MIXER + "v.weight", (0, 0), 0.75)(model)
    derived = DERIVATIONS["parity"].derive(task, model)
    # answer 0 has the logit 0, answer 1 has z - 1/2
    assert derived.margin == Fraction(1, 2)
    assert holds(task, model)


@torch.inference_mode()
def holds(task: Task, model: Model) -> bool:
    tokens = every([task.vocabulary] * task.length)
    if isinstance(task, Permutation) and task.shift == "swaps":
        tokens = tokens[about(task, tokens)]
    logits = model(torch.from_numpy(tokens))
    right = logits.argmax(-1).numpy() == task.answer(tokens)
    return bool((right & logits.isfinite().all(-1).numpy()).all())


@pytest.mark.parametrize(
    "case",
    [pytest.param(S3, marks=pytest.mark.slow), BITS, pytest.param(SWAPS, marks=pytest.mark.slow)],
)
def test_whatever_changes_it_is_refused_or_true(case: tuple[str, str, str]) -> None:
    """One number of one tensor becomes another: what is accepted answers every prompt."""
    task, real = built(case)
    rng = np.random.default_rng(5)
    kept, broken = 0, 0
    tensors = real.state_dict()
    names = sorted(name for name, tensor in tensors.items() if tensor.numel())
    for trial in range(90):
        changed: dict[str, Tensor] = {name: tensor.clone() for name, tensor in tensors.items()}
        flat = changed[names[trial % len(names)]].view(-1)
        used = flat.nonzero()[:, 0]
        some = used if len(used) and rng.random() < 0.8 else torch.arange(len(flat))
        place = int(some[int(rng.integers(len(some)))])
        old = float(flat[place])
        flat[place] = float(rng.choice([0.0, -old, 2 * old, old + 1, old / 2, old * (1 + 2**-20)]))
        model = Model(real.config)
        model.load_state_dict(changed)
        model.requires_grad_(False)
        accepted = not refused(task, model, case[2])
        true = holds(task, model)
        assert true or not accepted, (names[trial % len(names)], place, float(flat[place]))
        kept, broken = kept + accepted, broken + (not true)
    assert kept >= 3
    assert broken >= 15


def test_a_sum_takes_the_digits_that_its_terms_take() -> None:
    """255 = 8 ones: 8 digits; 257 takes 9; 3 + 1/4 is 13 quarters: 4 digits."""
    digits = Digits()
    Exactly(digits).mapped(np.array([[255.0]]), np.array([[1.0]]), what="x")
    assert digits.own == 8
    assert digits.formats() == ("fp32", "bf16", "fp16")
    Exactly(digits).mapped(np.array([[1.0, 1.0]]), np.array([[256.0, 1.0]]), what="x")
    assert digits.own == 9
    assert digits.formats() == ("fp32", "fp16")
    other = Digits()
    Exactly(other).mapped(np.array([[3.0, 1.0]]), np.array([[1.0, 0.25]]), what="x")
    assert other.own == 4
    # beyond fp16's largest number, and below its smallest normal one
    for number in (2.0**16, 2.0**-15):
        far = Digits()
        Exactly(far).mapped(np.array([[number]]), np.array([[1.0]]), what="x")
        assert far.formats() == ("fp32", "bf16")
    with pytest.raises(CheckFailed, match="26 binary digits"):
        Exactly(Digits()).mapped(np.array([[1.0, 1.0]]), np.array([[2.0**25, 1.0]]), what="x")


def test_a_half_format_that_is_too_narrow_is_refused() -> None:
    """Turns of 31 things read numbers of up to 30, and their products are too long."""
    task = parse_task("modular:n=40,m=31")
    derived = DERIVATIONS["modular"].derive(task, construct(task).model)
    # 30 times 30 and half of that, in halves: 2,700, which takes 12 digits
    assert derived.formats == ("fp32",)
    spec = "deltaproduct(householders=30, format=bf16) @ heads=1, head_dim=62, value_dim=1"
    with pytest.raises(Exception, match="declares bf16"):
        construct(task, Architecture.parse(spec))
