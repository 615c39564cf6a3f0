"""Every bounded layer that the theorem counts hands z_0 on before the first full layer, or i_1
between the first two: right on every input of small sizes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from support.construction_tools import wrong
from unit.constructions.test_seqcomp import every_prompt

import separatrix as sx
from separatrix.checks.verify.construction import verify_construction
from separatrix.constructions import construct
from separatrix.core.errors import CheckFailed, SizeError
from separatrix.proofs.derivations import DERIVATIONS
from separatrix.stacks.architecture import MECHANISMS, Architecture
from separatrix.tasks import SeqComp, parse_task
from separatrix.theory import written as known
from separatrix.theory.solves.room import SEEN_WHOLE

OPTIONS = ["gate=none", "conv=4", "gate=norm", "conv=4, gate=silu", "conv=1, gate=sigmoid"]
MATRIX = [
    "linear(feature=identity",
    "linear(feature=relu, normaliser=false",
    "linear(feature=elu",
    "linear(feature=elu, normaliser=false",
    "linear(feature=taylor",
    "lightning(heads=4",
    "retnet(heads=4",
    "gla(heads=4",
    "hgrn2(heads=4",
    "deltanet(negative=true",
    "gdn(heads=4, key_heads=2",
    "deltaproduct(householders=3",
    "kda(heads=4",
    "mlstm(heads=4",
    "loglinear(feature=elu",
    "loglinear(base=gdn",
    "loglinear(base=mamba2",
    "rwkv(heads=12, version=7",
    "rwkv(heads=12, version=6, shifts=2",
]
OTHERS = [
    "mamba2",
    "mamba2(conv=4, groups=2)",
    "shortconv",
    "window(size=2)",
    "window(qk_norm=all, sink=true, conv=3, gate=head)",
    "rglru",
    "rglru(conv=4)",
    "mamba",
    "mamba(conv=1)",
    "mamba(conv=4, norms=true)",
]
SIZES = "head_dim=16, value_dim=16"
EVERY = [*(f"{name}, {SIZES}, {o})" for name in MATRIX for o in OPTIONS), *OTHERS]


def spec(carrier: str, L: int, *, between: bool) -> str:
    full = "full(head_dim=16, heads=1)"
    if not between:
        return f"{carrier} + {full}*{L}"
    return f"{full} + {carrier}" + (f" + {full}*{L - 1}" if L > 1 else "")


QUICK = {0, 17, 40, 63, len(MATRIX) * len(OPTIONS), len(EVERY) - 1}
TURNS = {
    *(len(OPTIONS) * i + i % len(OPTIONS) for i in range(len(MATRIX))),
    *range(len(MATRIX) * len(OPTIONS), len(EVERY)),
}
"""Every layer once, with one of the options by turns."""


@pytest.mark.parametrize(
    "number",
    [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in sorted(QUICK | TURNS)],
)
def test_every_carrier_is_right_on_every_input(number: int) -> None:
    """Before and between by turns, of one and of two functions."""
    L, m, branching = [(1, 3, ()), (2, 2, (2,))][number % 4 // 2]
    stack = Architecture.parse(spec(EVERY[number], L, between=number % 2 == 1))
    built = construct(SeqComp(L=L, m=m, branching=branching), stack)
    assert built.record.name == "carried"
    assert not wrong(built, *every_prompt(L, m, branching))


@pytest.mark.slow
@pytest.mark.parametrize("carrier", [EVERY[number] for number in sorted(TURNS)])
def test_every_carrier_on_long_prompts(carrier: str) -> None:
    """100 random and adversarial inputs of 461 tokens, beyond one chunk of any parallel form."""
    task = SeqComp(L=2, m=153, branching=(2,))
    built = construct(task, Architecture.parse(spec(carrier, 2, between=len(carrier) % 2 == 1)))
    rng = np.random.default_rng(5)
    tokens = task.sample(100, rng).tokens
    # all values alike, ascending, and at their ends
    tokens[0, :-2] = 0
    tokens[1, :-2] = np.arange(len(tokens[1]) - 2) % 153
    tokens[2, :-2] = 152
    assert not wrong(built, tokens, task.answer(tokens), batch=50)


@pytest.mark.slow
def test_whatever_a_card_says_is_built_is_built() -> None:
    """Every mechanism before and between full layers: `construct` takes exactly those that cards
    say it takes, and all that the theorem counts. Of a mixer that fixes the model's width cards
    do not know whether what is written has room there.
    """
    task = SeqComp(L=2, m=3, branching=(1,))
    refused = set()
    for name in (name for name, kind in MECHANISMS.items() if not kind.reading):
        for between in (False, True):
            stack = Architecture.parse(spec(name, 2, between=between))
            verdicts = [v for v in sx.judge(stack, task) if v.theorem == "composition"]
            try:
                names = (construct(task, stack).record.name,)
            except SizeError:
                names = ()
            built = [known.built_by(v) for v in verdicts]
            fixed = MECHANISMS[name]().model_width is not None
            assert built == ([()] if fixed else [names]) or not (built or names)
            # a chunk that holds the prompt counts as full attention, and nothing is written into it
            if not names and any(SEEN_WHOLE not in verdict.assumptions for verdict in verdicts):
                refused.add(name)
    assert not refused


@pytest.mark.parametrize(
    ("carrier", "between"),
    [("kda", True), ("mamba", False), ("window(size=2)", True), ("shortconv", False)],
)
def test_an_edited_carrier_is_refused(carrier: str, between: bool) -> None:
    """A bit of the value negated in the output map: the proof derived again fails."""
    task = SeqComp(L=1, m=3)
    built = construct(task, Architecture.parse(spec(carrier, 1, between=between)))
    o = built.model.get_parameter(f"blocks.{int(between)}.mixers.0.o.weight")
    o[o != 0] *= torch.tensor([-1.0, 1.0])
    with pytest.raises(CheckFailed):
        DERIVATIONS["carried"].derive(task, built.model)


@pytest.mark.parametrize("between", [False, True])
def test_a_record_is_verified(between: bool, tmp_path: Path) -> None:
    built = construct(SeqComp(L=1, m=3), Architecture.parse(spec("hgrn2", 1, between=between)))
    said = verify_construction(built.record, built.save(tmp_path).parent)
    assert any("every answer right" in one for one in said)


@pytest.mark.parametrize(
    ("spec", "stack"),
    [("index:n=4,V=3", "gdn*3 + full"), ("counting:n=5,V=2", "mamba2*2 + full")],
)
def test_one_full_layer_behind_a_recurrent_stack(spec: str, stack: str) -> None:
    """What one full layer looks up or counts it does behind recurrent layers, too, which add zero:
    right on 300 inputs.
    """
    task = parse_task(spec)
    built = construct(task, Architecture.parse(stack))
    tokens = task.sample(300, np.random.default_rng(7)).tokens
    assert not wrong(built, tokens, task.answer(tokens))
