"""A mechanism that is declared, built and registered is there for everything else, and what is
asked of mechanisms is answered by their classes alone.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from support.quick_laws import broken_laws, shorten
from support.tools import loaded
from support.toy_mechanism import Leak, LeakMixer

import separatrix
from separatrix.cli.main import run
from separatrix.cli.report.mechanisms import describe, rows
from separatrix.core.errors import SizeError, UnknownNameError
from separatrix.mixers import MIXERS, mixer
from separatrix.mixers.laws import LAWS, drawn
from separatrix.models.model import Model, build
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import MECHANISMS, Mechanism
from separatrix.tasks import parse_task
from separatrix.theory.judge import judge

SPEC = "leak*2 @ width=8, bf16"


@pytest.fixture(autouse=True)
def leak(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two registries with the new mechanism, for one test."""
    monkeypatch.setitem(MECHANISMS, Leak.name, Leak)
    monkeypatch.setitem(MIXERS, Leak.name, LeakMixer)


Printed = Callable[..., str]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    def call(*arguments: str) -> str:
        assert run(list(arguments)) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return call


def json_of(printed: Printed, *arguments: str) -> Any:
    return json.loads(printed(*arguments, "--json"))


def test_specs_and_json_know_it() -> None:
    stack = Architecture.parse(SPEC)
    assert [part for layer in stack for part in layer] == [Leak(width=8, format="bf16")] * 2
    assert Architecture.parse(stack.spec) == stack
    assert Architecture.from_json(stack.to_json()).layers == stack.layers
    assert stack.cache_bits(1000) == 2 * 8 * 16
    with pytest.raises(UnknownNameError, match="'width'"):
        Architecture.parse("leak(widht=8)")
    with pytest.raises(SizeError, match="leak: width is 0"):
        Architecture.parse("leak(width=0)")


def test_tables_and_pages_list_it(printed: Printed) -> None:
    row = next(row for row in rows() if row["name"] == "leak")
    assert (row["mixer"], row["grows"], row["state"]) == ("yes", "constant", 16)
    assert "leaky sums" in loaded("pages").mechanisms_page()
    assert "width" in next(text for title, text in describe("leak") if "defaults" in title)
    assert "leaky sums" in printed("list", "mechanisms")
    assert "h_i = a h_{i-1} + V x_i" in printed("list", "mechanisms", "leak")


def test_cards_and_comparisons_show_it(printed: Printed) -> None:
    card = json_of(printed, "analyze", SPEC, "--context", "4096")
    assert card["layers"]["recurrent"] == 2
    text = printed("analyze", SPEC, "--context", "4096")
    assert "2 leaky sums" in text
    text = printed("analyze", SPEC, "--context", "4096", "--why", "parity")
    assert "OPEN" in text
    assert "leak*2" in printed("compare", SPEC, "gdn*2 @ bf16", "--context", "4096")


def test_theorems_judge_it() -> None:
    stack = Architecture.parse(SPEC)
    verdicts = judge(stack, parse_task("eva:n=4096,V=2"))
    assert [verdict.status for verdict in verdicts if verdict.theorem == "I"] == ["FAILS"]
    task = parse_task("seqcomp:L=1,m=4")
    carried = Architecture.parse("leak(width=8) + full")
    alone = Architecture.parse("leak(width=1) + full")
    assert any(v.theorem == "composition" for v in judge(carried, task))
    assert not any(v.theorem == "composition" for v in judge(alone, task))


def test_design_varies_it(printed: Printed) -> None:
    found = json_of(
        printed,
        *("design", "--task", "eva:V=64", "--context", "1024", "--cache", "4MiB"),
        *("--bounded", "leak(width=64)", "--reading", "full", "--layers", "2"),
        *("--readers", "0-1", "--set", "heads=2", "--set", "head_dim=64", "--set", "state=32,64"),
    )
    stacks = [point["architecture"] for point in found["proved_sufficient"]]
    assert stacks == ["leak + full @ format=bf16, heads=2, width=32"]
    assert found["layouts"] == 6  # two widths; no full layer, or one in two places


@pytest.mark.parametrize("law", ["step=forward", "at", "causal", "cache", "stacks", "reset"])
def test_its_mixer_keeps_the_laws(law: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(monkeypatch)
    assert broken_laws(drawn(mixer(Leak(width=5), width=6)), [law]) == set()


def test_models_of_it_are_built_and_run() -> None:
    task = parse_task("eva:n=4,V=3")
    stack = Architecture.parse("leak(width=8) + full @ heads=2, head_dim=4")
    model = build(stack, task, width=8, seed=0)
    assert isinstance(model, Model)
    assert model(torch.zeros(2, task.length, dtype=torch.long)).shape == (2, task.answers)


@pytest.mark.slow
def test_check_mechanism_reports_on_it(printed: Printed) -> None:
    report = printed("check-mechanism", "leak", "--set", "width=4", "--set", "model_width=6")
    for law in LAWS:
        assert f"{law} " in report
    assert "constant" in report


def test_without_its_entry_nobody_knows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(MECHANISMS, "leak")
    with pytest.raises(UnknownNameError, match="'leak'"):
        Architecture.parse(SPEC)


def test_a_mechanism_that_says_nothing_claims_nothing() -> None:
    class Plain(Mechanism):
        name = "plain"

    plain = Plain()
    assert not plain.carries(1)
    assert plain.carries(0)
    assert plain.retrieval_head is plain.opened_blocks is plain.facts is None
    assert (plain.diagonal, plain.compresses_blocks, plain.cache_stride) == (False, False, 1)
    assert plain.varied_sizes() == {}
    assert plain.resized() == plain


ROOMS = (
    "theory",
    "cards",
    "cli",
    "findings",
    "checks/refute",
    "tasks/exports",
    "training",
    "tasks/audits",
)
_ROOMS = ("contents", "products", "recall", "steps")
ABOUT_ONE = {f"theory/solves/{name}.py" for name in _ROOMS} | {"theory/written.py"}
"""Constructions about one mechanism, which they name, and the layers that they write into."""


def test_nobody_tells_mechanisms_apart_by_their_classes() -> None:
    """`isinstance` and `issubclass` with a class of mechanisms/, in rooms that judge and print."""
    root = Path(separatrix.__file__).parent
    names = {cls.__name__ for cls in MECHANISMS.values()} | {"MatrixState", "Softmax", "Heads"}
    found = []
    for room in ROOMS:
        assert (root / room).is_dir()
        for path in (root / room).rglob("*.py"):
            where = str(path.relative_to(root))
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Name)
                    and node.func.id in ("isinstance", "issubclass")
                    and names & {x.id for x in ast.walk(node.args[1]) if isinstance(x, ast.Name)}
                    and where not in ABOUT_ONE
                ):
                    found.append(f"{where}:{node.lineno}")
    assert found == []
