"""A task takes one file and one line: all that lists, explains, draws, judges, audits and exports
tasks knows one that only the registry knows.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from support.tools import loaded

import separatrix as sx
from separatrix.cli.main import run
from separatrix.cli.report.tasks import rows
from separatrix.core.errors import UnknownNameError
from separatrix.core.numbers.counts import Exact
from separatrix.tasks import TASKS, Batch, Task, parse_task
from separatrix.tasks.audits import audit
from separatrix.tasks.base.described import require
from separatrix.tasks.base.layout import Layout
from separatrix.tasks.base.task import Tokens


class Toy(Task):
    """Toy: add n numbers modulo V.

        n = 3, V = 5:   position   0   1   2
                        input      2   4   3
                        target     .   .   4

    Ids are the numbers 0..V-1; the answer is their sum modulo V.

    Drawn: All numbers are independent and uniform, so any n - 1 of them leave the sum uniform.

    Counted: V: the sums modulo V so far.

    From: this test
    """

    name: ClassVar[str] = "toy"
    title: ClassVar[str] = "toy sum: n numbers; answer their sum modulo V"
    usage: ClassVar[str] = "n, V"
    source: ClassVar[str] = "theory.md, section 2"
    grid: ClassVar[tuple[str, ...]] = ("n=6,V=5", "n=8,V=5", "n=9,V=7")

    n: int
    V: int

    def __post_init__(self) -> None:
        require(self.name, "n", self.n, 2, 10**6)
        require(self.name, "V", self.V, 2, 10**6)

    def layout(self) -> Layout:
        numbers = {"number": self.V}
        return Layout(self.n, numbers, numbers, self.n - 1, Exact(self.V))

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        tokens = rng.integers(self.V, size=(self._batch(batch), self.n))
        return Batch(tokens, self.answer(tokens))

    def answer(self, tokens: Tokens) -> Tokens:
        return self._checked(tokens).sum(axis=1) % self.V


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, Toy.name, Toy)


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    code = run(list(arguments))
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    return " ".join(out.split())


def test_it_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert Toy.title in said(capsys, "list", "tasks")
    assert {"name": "toy", "asks": Toy.title, "sizes": "n, V", "source": Toy.source} in rows()


def test_it_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "list", "tasks", "toy")
    for text in (
        Toy.title,
        Toy.words.asks,
        "input 2 4 3",
        Toy.words.rules,
        Toy.words.drawn,
        Toy.words.counted,
    ):
        assert text in out
    assert "5 ids, 5 answers, chance 1/5" in out


def test_it_is_on_the_page() -> None:
    assert f"| toy | {Toy.title} | n, V |" in loaded("pages").tasks_page()
    assert "| accuracy of level | n=6,V=5 | n=8,V=5 | n=9,V=7 |" in loaded("website").audit("toy")


def test_it_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "task", "toy:n=4,V=3", "sample", "--number", "1", "--json")
    (one,) = json.loads(out)
    assert one["target"] == sum(one["tokens"]) % 3
    assert parse_task("toy:n=4,V=3") == Toy(n=4, V=3)


def test_it_is_judged() -> None:
    """A cache of a few bits cannot keep 10^6 sums apart."""
    small = sx.Architecture.parse("linear @ heads=1, head_dim=1, p2")
    found = sx.judge(small, parse_task("toy:n=9,V=1000000"))
    assert ("I", "FAILS") in {(verdict.theorem, verdict.status) for verdict in found}
    assert all(verdict.task == "toy:n=9,V=1000000" for verdict in found)


def test_it_is_audited(capsys: pytest.CaptureFixture[str]) -> None:
    assert not audit("toy:n=8,V=5").leaks
    out = said(capsys, "task", "toy:easy", "audit")
    assert "toy:n=6,V=5: no shortcut" in out


def test_it_is_exported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / "toy"
    rows_asked = ("--rows", "train=3", "--rows", "validation=0", "--rows", "test=2")
    place = ("--format", "jsonl", "--out", str(folder))
    out = said(capsys, "task", "toy:n=6,V=5", "export", *rows_asked, *place)
    assert "3 train, 2 test" in out
    told = json.loads((folder / "metadata.json").read_text())
    assert told["definition"] == Toy.words.definition
    assert told["drawn"] == Toy.words.drawn
    lines = (folder / "train.jsonl").read_text().splitlines()
    assert all(sum(row["tokens"]) % 5 == row["target"] for row in map(json.loads, lines))
    assert json.loads(lines[0])["prompt"].startswith("Toy sum: ")


def test_without_its_line_it_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(TASKS, "toy")
    with pytest.raises(UnknownNameError, match="'toy'"):
        parse_task("toy:n=4,V=3")
