"""docs/tasks.md is what the code writes; every task is listed, shown and
sampled.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from support.console import ROOT
from support.each import each
from support.tools import loaded

from separatrix.cli.main import run
from separatrix.cli.report.tasks import describe
from separatrix.core.errors import SpecError, UnknownNameError
from separatrix.tasks import TASKS, Batch, Eva, parse_task
from separatrix.tasks.text import TEXT_TASKS


@pytest.mark.skipif(not (ROOT / "tools").exists(), reason="belongs to a checkout")
def test_the_page_is_what_the_code_writes() -> None:
    page = loaded("pages").tasks_page()
    written = (ROOT / "docs" / "tasks.md").read_text(encoding="utf-8")
    assert written == page, "write it again: tools/pages.py tasks"


@each("name", [*TASKS, *TEXT_TASKS])
def test_every_task_is_described(name: str) -> None:
    parts = dict(describe(name))
    assert next(iter(parts)).startswith(f"{name}: ")
    assert {"sizes", "drawn", "from easy to hard", "source"} <= set(parts)
    assert all(parts.values())


def test_chains_of_thought_are_described() -> None:
    parts = dict(describe("thought"))
    assert "permutation" in parts["composition tasks"]
    assert "thought=values|pairs" in dict(describe("seqcomp:L=2"))["sizes"]
    assert "thought" not in dict(describe("eva"))["sizes"]


def test_tasks_in_words_are_known_as_such() -> None:
    for name in TEXT_TASKS:
        with pytest.raises(SpecError, match="a task in words"):
            parse_task(f"{name}:k=2,n=4")


def test_an_unknown_task() -> None:
    with pytest.raises(UnknownNameError, match="'seqcomp'"):
        describe("seqcmp")


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def test_sample_shows_inputs_over_targets(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "task", "eva:n=4,V=30", "sample", "--number", "2", "--seed", "1")
    assert code == 0
    lines = out.splitlines()
    assert len(lines) == 4
    tokens, target = (line.split()[1:] for line in lines[:2])
    assert target == ["."] * 4 + [tokens[int(tokens[4])]]
    assert len(lines[0]) == len(lines[1])


def test_sample_of_several_answers_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(
        capsys, "task", "seqcomp:L=2,m=2,n_1=1,thought=values", "sample", "--number", "1", "--json"
    )
    (one,) = json.loads(out)
    z_2 = one["tokens"][:2]
    z_1 = one["tokens"][2:4]
    z_0 = one["tokens"][4]
    assert code == 0
    assert one["targets"] == [-1] * 5 + [z_1[z_0], z_2[z_1[z_0]]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("task", "eva", "sample"), "the size n is missing"),
        (("task", "eva", "export"), "task eva:easy export --format hf --out exported/"),
        (("task", "eva", "export", "--format=hf", "--out=x"), "; or eva:easy"),
        (("task", "eva", "sample", "--V"), "No such option: --V; sizes stand in the text"),
        (("task", "eva", "sample", "8"), "takes no more words"),
        (("task", "eva:n=8,n=9", "sample"), "given twice"),
        (("task", "eva:n=1000000", "sample"), "too many to look at"),
        (("task", "eva:n=4", "sample", "--number", "0"), "--number"),
        (("task", "evs:n=4", "sample"), "Did you mean 'eva'"),
        (("list", "tasks", "multihob"), "Did you mean 'multihop'"),
        (("list", "tasks", "--markdown"), "docs/ has the pages"),
        (("task", "evs", "audit"), "Did you mean 'eva'"),
        (("task", "eva:n=0", "audit"), "n is 0"),
        (("task", "eva:n=0"), "n is 0"),
        (("task", "eva:m=8"), "unknown size 'm'"),
        (("list", "constructions", "--formats"), "`separatrix list --help` lists the options"),
        (("task", "eva", "audit", "--number", "3"), "--number"),
        (("task",), "Missing argument"),
        (("task", "eva", "audit", "--sizes", "2"), "eva:easy"),
        (("task", "eva", "audit", "--out", "x"), "--out says nothing"),
        (("task", "audit"), "task NAME audit"),
        (("task", "audit", "eva"), "task eva audit"),
        (("task", "eva:esay", "sample"), "expected size=value, found 'esay'"),
        (
            (
                "task",
                "eva:n=8",
                "export",
                "--out",
                "x",
                "--format",
                "jsonl",
                "--rovs",
                "train=3",
            ),
            "Did you mean --rows?",
        ),
        (("task", "eva:n=8", "export", "--out", "x"), "--format"),
        (
            ("task", "eva:n=8", "export", "--out", "x", "--format", "csv"),
            "unknown format 'csv'",
        ),
        (("task", "eva:n=8", "export", "--format", "jsonl"), "--out"),
    ],
)
def test_bad_input(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    code, out, err = said(capsys, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_audit_exits_with_1_at_a_leak(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, _ = said(capsys, "task", "eva:n=9,V=4", "audit", "--json")
    assert code == 0
    assert [one["task"] for one in json.loads(out)] == ["eva:n=9,V=4"]
    honest = Eva.sample

    def leaky(self: Eva, batch: int, rng: np.random.Generator) -> Batch:
        """Asks for the first entry in every second prompt."""
        tokens = honest(self, batch, rng).tokens
        tokens[::2, -1] = 0
        return Batch(tokens, self.answer(tokens))

    monkeypatch.setattr(Eva, "sample", leaky)
    code, out, _ = said(capsys, "task", "eva:n=9,V=4", "audit")
    assert code == 1
    assert "LEAK; position" in out


def test_a_shift_promises_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """What stands at one place is more often asked for under local; the audit says what that
    gains, and calls it no leak.
    """
    code, out, _ = said(capsys, "task", "eva:n=9,V=4,shift=local", "audit")
    assert code == 0
    row = next(line for line in out.splitlines() if line.startswith("position"))
    assert row.split()[-1] == "above"
    assert "without its shift" in " ".join(out.split())
