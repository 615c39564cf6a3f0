"""Constructions in every number format: built, run, written, read and checked; edited ones are
refused.
"""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest
import torch
from support.construction_tools import every

from separatrix.checks.verify import verify
from separatrix.constructions import construct, load
from separatrix.constructions.parts.built import proved_in
from separatrix.core.errors import CannotCheck, CheckFailed, SizeError
from separatrix.mixers.base.mixer import DTYPES
from separatrix.proofs.arithmetic import NAMED, arithmetic
from separatrix.proofs.derivations import DERIVATIONS
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import parse_task

SMALL = ["eva:n=3,V=4", "seqcomp:L=2,m=2,n_1=2", "equality:n=3", "index:n=3,V=4", "parity:n=5"]


@pytest.mark.parametrize(
    ("text", "name"),
    [(SMALL[(i + j) % 5], name) for i, name in enumerate(sorted(NAMED)) for j in (0, 2)],
)
def test_every_input_is_right_in_the_format(text: str, name: str, tmp_path: Path) -> None:
    task = parse_task(text)
    built = construct(task, arithmetic=arithmetic(name))
    derivation = DERIVATIONS[built.record.name]
    tokens = every(derivation.ids(task))
    if derivation.asked is not None:
        tokens = tokens[derivation.asked(task, tokens)]
    model = built.model.to(DTYPES[name])
    with torch.inference_mode():
        found = model(torch.from_numpy(tokens)).argmax(-1).numpy()
    assert (found == task.answer(tokens)).all()


@pytest.mark.parametrize("name", ["fp64", "bf16", "p20"])
def test_a_record_tells_its_formats_and_is_derived_again(name: str, tmp_path: Path) -> None:
    built = construct(parse_task("eva:n=4,V=5"), arithmetic=arithmetic(name))
    built = proved_in(built, ["fp32", "fp16", "p12", name])
    assert built.record.format == name
    assert set(built.record.proofs) == {"fp32", "fp16", "p12"}
    built.save(tmp_path)
    record, _ = load(tmp_path)
    assert record == built.record
    checked = " ".join(verify(record, folder=tmp_path).checks)
    assert "proof in float16" in checked
    assert ("in p20" in checked) == (name == "p20")


@pytest.mark.parametrize(
    ("stack", "text"),
    [
        ("full @ heads=1, head_dim=4, bf16", "eva:n=4,V=4"),
        ("full(format=fp16)*3 @ heads=1, head_dim=8", "seqcomp:L=2,m=2,n_1=2"),
        ("linear(state_format=fp32) + full*2 @ head_dim=8, bf16", "seqcomp:L=2,m=2,n_1=2"),
        pytest.param(
            "gdn(state_format=fp32) + full*2 @ head_dim=8, bf16",
            "seqcomp:L=2,m=2,n_1=2",
            marks=pytest.mark.slow,
        ),
        ("sparse(block=2) @ heads=1, head_dim=4, bf16", "eva:n=4,V=4"),
        ("full @ heads=1, head_dim=4, format=p24", "eva:n=4,V=4"),
    ],
)
def test_a_stack_is_proved_in_the_numbers_that_it_declares(
    stack: str, text: str, tmp_path: Path
) -> None:
    built = construct(parse_task(text), Architecture.parse(stack))
    assert built.record.architecture == Architecture.parse(stack).spec
    assert built.record.format in ("bf16", "fp16", "p24")
    built.save_weights(tmp_path)
    assert verify(built.record, folder=tmp_path).checks


def test_a_layer_that_declares_less_than_the_proof_is_refused(tmp_path: Path) -> None:
    task = parse_task("eva:n=4,V=4")
    stack = Architecture.parse("full @ heads=1, head_dim=4, bf16")
    with pytest.raises(SizeError, match="declares numbers of bf16"):
        construct(task, stack, arithmetic=arithmetic("fp16"))
    with pytest.raises(SizeError, match="hands on 1 bits"):
        construct(
            parse_task("seqcomp:L=2,m=2,n_1=2"),
            Architecture.parse("gdn + full*2 @ head_dim=8, bf16"),
        )


def test_forged_proofs_of_other_formats_are_refused(tmp_path: Path) -> None:
    built = proved_in(construct(parse_task("eva:n=4,V=4")), ["bf16", "p12"])
    built.save_weights(tmp_path)

    def edited(**changes: object) -> None:
        record = dataclasses.replace(built.record, **changes)
        with pytest.raises(CheckFailed):
            verify(record, folder=tmp_path)

    proofs = built.record.proofs
    better = proofs["bf16"] | {"final_margin": "2.00001"}
    edited(proofs=proofs | {"bf16": better})
    edited(proofs=proofs | {"p12": proofs["bf16"]})
    edited(proofs={"fp8": proofs["bf16"]})
    edited(format="bf16")
    edited(format="fp32")
    edited(proof=built.record.proof | {"exact_up_to": 5})


def test_weights_that_a_format_has_not_break_its_proof() -> None:
    """The circle of 7 values on the grid of float32: cosines with 24 digits."""
    built = proved_in(construct(parse_task("twosum:n=3,M=7"), kind="match2"), ["bf16", "fp64"])
    assert "bfloat16" in built.record.proofs["bf16"]["breaks"]
    assert "final_margin" in built.record.proofs["fp64"]


def test_weights_without_a_proof_say_so(tmp_path: Path) -> None:
    built = construct(parse_task("eva:n=4,V=4"), arithmetic=arithmetic("fp32").unproved)
    built.save(tmp_path)
    with pytest.raises(CannotCheck, match="nothing is proved"):
        verify(built.record, folder=tmp_path)
    claims = dataclasses.replace(built.record, statement="it is right")
    with pytest.raises(CheckFailed, match="says no more than"):
        verify(claims, folder=tmp_path)


@pytest.mark.parametrize(("name", "M"), [("bf16", 50), ("fp16", 122)])
@pytest.mark.parametrize("n", [8, 1 << 16])
def test_the_circle_on_the_grid_of_a_half_format(name: str, M: int, n: int, tmp_path: Path) -> None:
    """Sums in float32 are exact on these grids, so that more values are told apart than theory.md's
    pi / sqrt(5 u), which rounds scores: 22 in bfloat16 and 63 in float16.
    """
    built = construct(parse_task(f"twosum:n={n},M={M}"), kind="match2", arithmetic=arithmetic(name))
    (layer,) = built.record.proof["layers"]
    assert layer["score_error"] == "0"
    assert math.pi / math.sqrt(5 * arithmetic(name).stored) < M
    built.save_weights(tmp_path)
    if n == 8:
        assert verify(built.record, folder=tmp_path).checks
    with pytest.raises(SizeError, match=f"n={n},M={M + 1}"):
        construct(parse_task(f"twosum:n={n},M={M + 1}"), kind="match2", arithmetic=arithmetic(name))
