"""A theorem takes one file and one line: `judge`, the card, `compare`, `design` and `theorems` know
one that only the registry knows.
"""

from __future__ import annotations

import json
from typing import ClassVar

import pytest

import separatrix as sx
from separatrix.cli.main import run
from separatrix.core.errors import CheckFailed, EvidenceError
from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Eva, Permutation, SeqComp, Task, parse_task
from separatrix.theory import THEOREMS, Theorem, judge, recheck
from separatrix.theory.base import FAILS, SOLVABLE
from separatrix.theory.words import Words, WordsByTask

GDN = "gdn*2 @ heads=1, head_dim=8"
FROM = 100
"""The toy theorem says that such stacks lose track of 100 permutations and more."""


class Toy(Theorem):
    """Gated DeltaNet alone cannot follow long rows of permutations. (It is not true.)"""

    key = "toy"
    title = "stacks of Gated DeltaNet alone lose track of permutations"
    statement = "A stack of Gated DeltaNet alone fails permutation tracking from n = 100 on."
    premises = ("every layer is Gated DeltaNet",)
    source = "this test"
    proof_sketch = "There is none."
    larger_fail_too = True

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        kinds = {part.name for layer in architecture for part in layer}
        if kinds != {"gdn"} or not isinstance(task, Permutation):
            return None
        status = "FAILS" if task.n >= FROM else "OPEN"
        return self.verdict(
            architecture, task, status, f"too long from n = {FROM} on", n=FROM, numbers={"turns": 3}
        )


class ToldToy(Toy):
    """The toy theorem with words of its own."""

    shows = FAILS
    words: ClassVar[WordsByTask] = {
        "permutation": Words("{turns} turns are too many from n = {n} on", "It turns too slowly.")
    }


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> Toy:
    theorem = Toy()
    monkeypatch.setitem(THEOREMS, theorem.key, theorem)
    return theorem


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    code = run([*arguments])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    return " ".join(out.split())


def tracked(capsys: pytest.CaptureFixture[str], stack: str) -> dict[str, object]:
    verdicts = json.loads(said(capsys, "analyze", stack, "--context", "512", "--json"))["verdicts"]
    (found,) = (v for v in verdicts if v["question"].startswith("permutation"))
    return found


def test_judge_asks_it() -> None:
    model = Architecture.parse(GDN)
    first = judge(model, Permutation(n=FROM, k=5))[0]
    assert (first.theorem, first.status, first.n) == ("toy", "FAILS", FROM)
    recheck(first)
    before = judge(model, Permutation(n=FROM - 1, k=5))[0]
    assert (before.theorem, before.status) == ("toy", "OPEN")
    assert [v.theorem for v in sx.judge(model, Eva(n=9, V=9))] != ["toy"]


@pytest.mark.parametrize("context", [50, 512])
def test_it_is_on_the_card(capsys: pytest.CaptureFixture[str], context: int) -> None:
    """Also at a context at which it does not bite yet: the card names the n."""
    card = said(capsys, "analyze", GDN, "--context", str(context))
    fails = f"OPEN fails from n = {FROM} on" if context < FROM else f"FAILS from n = {FROM} on"
    assert f"track S_5 {fails} (toy)" in card
    out = said(capsys, "analyze", GDN, "--context", str(context), "--why", "s5")
    where = f"FAILS from n = {FROM} on says"
    if context < FROM:
        where = f"OPEN says the bound bites at 2 times this size, from n = {FROM} on:"
    assert where in out
    assert "by Theorem toy:" in out
    assert f"row of {FROM} rearrangements" in out
    assert "list theorems toy" in out


def test_it_is_in_the_json_of_the_card(capsys: pytest.CaptureFixture[str]) -> None:
    found = tracked(capsys, GDN)
    assert (found["status"], found["theorem"], found["n"]) == ("FAILS", "toy", FROM)
    assert (found["task"], found["sizes"]) == (f"permutation:n={FROM},k=5", {"turns": 3})
    other = tracked(capsys, "gdn + full @ heads=1, head_dim=8")
    assert (other["status"], other["theorem"], other["task"]) == (
        "OPEN",
        "none",
        "permutation:n=512,k=5",
    )


def test_the_card_tells_it_in_its_own_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(THEOREMS, "toy", ToldToy())
    found = tracked(capsys, GDN)
    assert str(found["text"]).endswith(f"from n = {FROM} on")
    assert str(found["explain"]).endswith("turns too slowly.")


def test_it_is_compared(capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(said(capsys, "compare", GDN, "kda @ heads=1, head_dim=8", "--json"))
    row = next(row for row in data["rows"] if row["row"] == "track S_5")
    assert row["cells"][0] == f"FAILS from n = {FROM} on (toy)"
    assert row["cells"][1].startswith("OPEN: ")
    assert row["differs"]


DESIGN = ("--task", f"permutation:n={FROM},k=5", "--context", str(FROM), "--cache", "1GiB")
LAYERS = ("--layers", "2", "--bounded", "gdn", "--set", "heads=1", "--set", "head_dim=8")


def test_design_excludes_by_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stack of Gated DeltaNet alone, the cheapest layout, is kept without the theorem."""
    arguments = ("design", *DESIGN, *LAYERS, "--readers", "0-1", "--json")
    found = json.loads(said(capsys, *arguments))
    assert {row["theorem"] for row in found["excluded"]} == {"toy"}
    assert all("full" in point["architecture"] for point in found["not_excluded"])
    monkeypatch.delitem(THEOREMS, "toy")
    without = json.loads(said(capsys, *arguments))
    assert without["excluded"] == []
    assert any("full" not in point["architecture"] for point in without["not_excluded"])


def test_a_construction_that_design_never_saw(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Solver(Toy):
        key = "solver"
        shows = SOLVABLE

        def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
            if architecture.reading != (1,) or not isinstance(task, Permutation):
                return None
            return self.verdict(architecture, task, "SOLVABLE", "the second layer reads")

    monkeypatch.setitem(THEOREMS, "solver", Solver())
    found = json.loads(said(capsys, "design", *DESIGN, *LAYERS, "--readers", "0-1", "--json"))
    (point,) = found["proved_sufficient"]
    assert Architecture.parse(point["architecture"]).reading == (1,)


def test_it_is_listed_and_explained(capsys: pytest.CaptureFixture[str]) -> None:
    listed = json.loads(said(capsys, "list", "theorems", "--json"))
    assert {"key": "toy", "title": Toy.title, "source": Toy.source} in listed
    assert "toy stacks" in said(capsys, "list", "theorems")
    out = said(capsys, "list", "theorems", "toy")
    for text in (Toy.title, Toy.statement, *Toy.premises, Toy.proof_sketch, Toy.source):
        assert text in out


def test_composition_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bound on more steps than any construction covers takes the place of the open line."""

    class Steps(Toy):
        shows = FAILS
        least_steps = 9

        def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
            if not isinstance(task, SeqComp) or self.least_steps > task.L:
                return None
            n = 1000
            status = "FAILS" if task.length >= n else "OPEN"
            return self.verdict(architecture, task, status, "too many steps", n=n)

    monkeypatch.setitem(THEOREMS, "toy", Steps())
    # of seven reading layers no parameters are searched for
    stack = "full*7 @ heads=2, head_dim=64"
    data = json.loads(said(capsys, "analyze", stack, "--context", "512", "--json"))["verdicts"]
    lines = {v["question"]: v for v in data if v["question"].startswith("composition,")}
    assert list(lines) == [
        "composition, L <= 6 steps",
        "composition, 7 to 8 steps",
        "composition, 9 steps",
    ]
    last = lines["composition, 9 steps"]
    assert (last["status"], last["theorem"], last["n"]) == ("OPEN", "toy", None)
    assert last["bound"]["n"] == 1000
    assert parse_task(str(last["bound"]["task"])).length >= 1000 > parse_task(last["task"]).length


def test_after_a_chain_of_thought(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A theorem about chains of thought is asked about these alone."""

    class Written(Toy):
        shows = SOLVABLE
        at_once = False
        after_thought = True

        def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
            few = isinstance(task, SeqComp) and task.L <= 7
            return self.verdict(architecture, task, "SOLVABLE", "written down") if few else None

    monkeypatch.setitem(THEOREMS, "toy", Written())
    stack = "sparse*3 @ heads=1, head_dim=4"
    data = json.loads(said(capsys, "analyze", stack, "--context", "512", "--json"))["verdicts"]
    lines = {v["question"]: v["theorem"] for v in data if "SOLVABLE" in v["status"]}
    ((question, theorem),) = lines.items()
    assert "L <= 7" in question
    assert theorem == "toy"
    assert "toy" not in {
        v.theorem for v in judge(Architecture.parse(stack), SeqComp(L=2, m=9, branching=(1,)))
    }


def test_among_chooses_who_is_asked() -> None:
    model = Architecture.parse(GDN)
    task = Permutation(n=FROM, k=5)
    assert [v.theorem for v in judge(model, task, among=lambda t: t.key == "toy")] == ["toy"]
    assert judge(model, task, among=lambda t: t.key == "I") == []
    assert [v.theorem for v in judge(model, task, among=lambda t: t.key == "none")] == ["none"]


def test_a_theorem_that_contradicts_another_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    class Contrary(Toy):
        key = "contrary"

        def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
            return self.verdict(architecture, task, "SOLVABLE", "all is well")

    monkeypatch.setitem(THEOREMS, "contrary", Contrary())
    with pytest.raises(EvidenceError, match="toy: FAILS, contrary: SOLVABLE"):
        judge(Architecture.parse(GDN), Permutation(n=FROM, k=5))


def test_without_its_line_it_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = judge(Architecture.parse(GDN), Permutation(n=FROM, k=5))[0]
    monkeypatch.delitem(THEOREMS, "toy")
    assert judge(Architecture.parse(GDN), Permutation(n=FROM, k=5))[0].theorem == "none"
    with pytest.raises(CheckFailed, match="'toy'"):
        recheck(verdict)
