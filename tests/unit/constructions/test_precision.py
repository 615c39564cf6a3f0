"""The precision map: limits found by halving, failures by growing, and the slope, by hand; and a
small map of Match2, whose failures are failures.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.each import each

from separatrix.cli.main import run
from separatrix.constructions import CONSTRUCTIONS, construct
from separatrix.constructions.precision import (
    FAMILIES,
    _failing,
    family_of,
    largest_size,
    precision_map,
    slope,
    wrong_in,
)
from separatrix.core.errors import SizeError, SpecError
from separatrix.proofs.arithmetic import BF16, arithmetic
from separatrix.proofs.derivations.parts.derivation import due
from separatrix.tasks import parse_task


@each("limit", [2, 3, 7, 8, 9, 31, 63, 64])
def test_the_largest_size_is_found(limit: int) -> None:
    asked: list[int] = []

    def holds(size: int) -> bool:
        asked.append(size)
        return size <= limit

    assert largest_size(holds, 2, 64) == limit
    assert max(asked) <= 64
    assert len(asked) == len(set(asked))


def test_nothing_holds() -> None:
    assert largest_size(lambda size: False, 2, 64) is None


@each("first", [11, 12, 17, 40])
def test_the_smallest_failure_is_found(first: int) -> None:
    """Failures from some size on: that size itself, and the one before it survived."""
    assert _failing(lambda size: size >= first, 10, 2, 1000) == (first - 1, first)


def test_no_failure_is_none() -> None:
    survived, failing = _failing(lambda size: False, 10, 2, 60)
    assert failing is None
    assert survived is not None
    assert 40 < survived <= 60


def test_what_cannot_be_run_did_not_survive() -> None:
    """The size proved is run as all others are; the first that cannot be run ends the search."""
    assert _failing(lambda size: None, 10, 2, 60) == (None, None)
    assert _failing(lambda size: None if size > 10 else False, 10, 2, 60) == (10, None)
    assert _failing(lambda size: size >= 5, 10, 2, 60) == (None, 10)


def test_the_slope_by_hand() -> None:
    """Two digits for each doubling: 8 digits at 16, 10 at 32, 12 at 64."""
    assert slope([(8, 16), (10, 32), (12, 64)]) == pytest.approx(2.0)
    assert slope([(8, 16), (10, 32)]) is None
    assert slope([(8, 16), (10, 16), (12, 16)]) is None


def test_families_are_those_of_constructions(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, family in FAMILIES.items():
        assert isinstance(family.task(max(16, family.least)), CONSTRUCTIONS[name].task)
    assert family_of("match2", "twosum:n=8,M={}").size == "M"
    assert family_of("match2", "twosum:n=8,M={}").least == 3
    assert family_of("match2", "twosum:M=8,n={}").size == "n"
    with pytest.raises(SizeError, match="must be"):
        family_of("match2", "twosum:M=2,n={}")
    with pytest.raises(SpecError, match="size that grows"):
        family_of("match2", "twosum:n=8,M=4")
    monkeypatch.delitem(FAMILIES, "parity")
    with pytest.raises(SpecError, match="say which sizes"):
        family_of("parity", None)


def mapped(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """A map of Match2 along n = M, as data."""
    assert run(["list", "constructions", "match2", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_bfloat16_fails_where_float32_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    """2 pi^2 / M^2 of a score is to be more than a few roundings of 2^-8: bfloat16 tells some 50
    values apart. Its failure is one, within 4 times the size proved, and no pessimism.
    """
    found = mapped(capsys, "--formats", "bf16", "--most", "64", "--tokens", "8000")
    (bf16,) = found["formats"]
    assert not bf16["capped"]
    assert 16 <= bf16["proved"] < bf16["fails"] <= 4 * bf16["proved"]
    task = FAMILIES["match2"].task(bf16["fails"])
    wrong = bf16["wrong"]
    tokens = np.array([wrong["tokens"]])
    assert task.answer(tokens)[0] == wrong["right"] != wrong["answer"]
    assert (
        construct(task, None, "match2").model(torch.from_numpy(tokens)).argmax() == wrong["right"]
    )
    unproved = construct(task, None, "match2", BF16.unproved).model.to(torch.bfloat16)
    assert unproved(torch.from_numpy(tokens)).argmax() == wrong["answer"]


def test_brackets_come_in_pairs() -> None:
    """An odd n is no task: what breaks is a proof, and larger sizes are run."""
    (line,) = precision_map("brackets", FAMILIES["brackets"], ["p16"], most=13, tokens=64)
    assert line.capped or "not proved" in (line.breaks or "")
    (line,) = precision_map("brackets", FAMILIES["brackets"], ["bf16"], most=13, tokens=64)
    assert (line.proved, line.survived, line.capped) == (12, 12, True)


WAITING = (
    *("khop", "cgram", "encoder", "qsa", "carried-recall", "carried-mqar"),
    *("brackets", "carried", "match2-bits", "neighbour", "pairs", "seqcomp"),
)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in WAITING)) for name in FAMILIES]
)
def test_every_construction_is_run(name: str) -> None:
    """Also chains of thought, several questions, and sizes of which the task draws nothing; no run
    where PyTorch does not compute.
    """
    family = FAMILIES[name]
    float32, p16 = precision_map(name, family, ["fp32", "p16"], most=family.least, tokens=64)
    assert (float32.proved, float32.survived, float32.unrun) == (family.least, family.least, None)
    assert (p16.survived, p16.fails, p16.unrun) == (None, None, None)


def test_a_wrong_answer_of_several_is_found() -> None:
    """A head that never says the last token of some prompt fails there, and says another."""
    for spec, name in (
        ("seqcomp:L=2,m=2,n_1=2,thought=pairs", "bf16"),
        ("mqar:vocab_size=8,input_seq_len=12,num_kv_pairs=2", "fp32"),
    ):
        task = parse_task(spec)
        prompts = task.asked.sample(20, np.random.default_rng(0)).tokens
        model = construct(task).model
        assert wrong_in(model, arithmetic(name), task, prompts) is None
        last = int(due(task, prompts)[3, -1])
        with torch.no_grad():
            model.head.bias[last] = -1000.0
        wrong = wrong_in(model, arithmetic(name), task, prompts)
        assert wrong is not None
        assert wrong.right == last != wrong.answer
        assert wrong.right in due(task, np.array([wrong.tokens]))
        assert re.fullmatch(r"PyTorch, answer [123]", wrong.how)


@pytest.mark.slow
def test_digits_grow_with_the_logarithm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two digits for each doubling of n = M."""
    out = tmp_path / "map"
    words = ("--formats", "fp32,p15:22", "--most", "256", "--tokens", "8000")
    found = mapped(capsys, *words, "--out", str(out))
    fp32, *bits = found["formats"]
    assert fp32["capped"]
    assert (fp32["proved"], fp32["fails"]) == (256, None)
    proved = [(line["digits"], line["proved"]) for line in bits if not line["capped"]]
    assert len(proved) >= 6
    assert slope(proved) == pytest.approx(2.0, abs=0.25)
    assert json.loads((out / "precision.json").read_text()) == found
    assert "<svg" in (out / "precision.svg").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["match3"], "match3"),
        (["match2", "--formats", "fp8"], "fp8"),
        (["match2", "--formats", "20:30"], "write a range"),
        (["match2", "--formats", "fp32,p30:20"], "write a range"),
        (["match2", "--formats", "p4:20"], "p4"),
        (["match2", "--formats", "p12:65"], "N from 12 to 64"),
        (["match2", "--sizes", "twosum:n=4,M=4"], "write {}"),
        (["match2", "--sizes", "eva:n={},V=4"], "does not solve"),
    ],
)
def test_bad_input_is_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["list", "constructions", *words, "--most", "8"]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("command", ["list", "construct"])
def test_help_names_the_formats_that_are_taken(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([command, "--help"]) == 0
    assert "N of pN is 12 to 64" in " ".join(capsys.readouterr().out.split())
    assert [arithmetic(f"p{bits}").name for bits in (12, 64)] == ["p12", "p64"]


def test_an_existing_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "list",
        "constructions",
        "match2",
        "--formats",
        "bf16",
        "--most",
        "4",
        "--out",
        str(tmp_path),
    ]
    (tmp_path / "kept").write_text("kept")
    assert run(words) == 2
    assert "kept" not in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept"]
