"""`separatrix check-mechanism`: the example keeps every law, each kind of mistake is told, and
nobody sees a traceback.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jaxtyping
import pytest
from support.each import each
from support.named import tree
from support.quick_laws import shorten

from separatrix.cli.main import run
from separatrix.mixers import MIXERS
from separatrix.mixers.laws import LAWS, LawBroken, asking
from separatrix.mixers.plugins import TAKEN, OwnMixer
from separatrix.mixers.plugins import check as checking
from separatrix.mixers.plugins.check import find, growth_of
from separatrix.mixers.plugins.probe import import_module
from separatrix.stacks.mechanisms import MECHANISMS

EXAMPLE = Path(__file__).parents[4] / "examples" / "my_mixer.py"
LAWFUL = EXAMPLE.read_text().replace(
    '@sx.register_mechanism(title="moving averages", source="this example")\n', ""
)


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty folder; modules, paths and mechanisms of a test are gone after it. Shapes are not
    checked in the thousands of steps of a card: for a user they are not either.
    """
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    modules = set(sys.modules)
    before = (dict(MECHANISMS), dict(MIXERS))
    yield
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(
            (str(tmp_path), str(EXAMPLE.parent))
        ):
            del sys.modules[name]
    for registered, kept in zip((MECHANISMS, MIXERS), before, strict=True):
        registered.clear()
        registered.update(kept)  # type: ignore[arg-type]


def write(text: str, name: str = "mine") -> None:
    Path(f"{name}.py").write_text(text)


def broken_variant(*changes: tuple[str, str]) -> str:
    """The example with some of its text replaced."""
    text = LAWFUL
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


@pytest.mark.slow
def test_the_example_keeps_every_law(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run(
            [
                "check-mechanism",
                f"{EXAMPLE}:MyMixer",
                "--set",
                "model_width=8",
                "--set",
                "averages=3",
            ]
        )
        == 0
    )
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "my_mixer   my_mixer:MyMixer   model width 8   format=fp32, averages=3" in printed.out
    # all but chunks, which it has not, and monotone and reach, which it does not declare
    assert f"all {len(LAWS) - 3} laws hold" in printed.out
    assert "FAIL" not in printed.out
    assert [
        line.split()[2:9] for line in printed.out.splitlines() if line.startswith("numbers kept")
    ] == [["24"] * 7]
    assert "growth: constant" in printed.out
    assert "of 2,048 tokens takes" in " ".join(printed.out.split())


def _seconds_once(call: Callable[[], object]) -> float:
    """Instead of the best of three, which the example above is timed by."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


@pytest.mark.slow
def test_a_broken_class_in_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "_seconds", _seconds_once)
    write(
        broken_variant(
            ("return self.o(m)\n", "return self.o(m) + 1e-6 * x.mean(1, keepdim=True)\n")
        )
    )
    assert (
        run(["check-mechanism", "mine:MyMixer", "--set", "model_width=4", "--json", "--seed", "3"])
        == 1
    )
    card = json.loads(capsys.readouterr().out)
    assert (card["holds"], card["mechanism"], card["origin"], card["width"]) == (
        False,
        "my_mixer",
        "mine:MyMixer",
        4,
    )
    assert card["sizes"] == {"format": "fp32", "width": 4, "averages": 2}
    assert [law["law"] for law in card["laws"]] == list(LAWS)
    broken = {law["law"] for law in card["laws"] if not law["holds"]}
    assert broken == {"step=forward", "causal", "fed"}
    assert [law["law"] for law in card["laws"] if not law["applies"]] == [
        "chunks",
        "monotone",
        "forgets",
    ]
    assert card["seed"] == 3
    assert card["cache"] == [{"t": t, "numbers": 8} for t in (0, 1, 2, 3, 64, 1000, 4096)]
    assert card["growth"] == "constant"
    assert card["speed"]["tokens"] == 512
    assert card["speed"]["step_seconds"] > 0
    assert "my_mixer" not in MECHANISMS  # checked, not registered


_END = "return self.o(m)\n"
_STEP = "a = self.s.sigmoid()\n        m = a * state"
_FORWARD = "a = self.s.sigmoid()\n        m, reach"
_CHUNK = ("self.o = nn", "self.chunk = 64\n        self.o = nn")
_HIDDEN = (
    'self.kept = self.v(x) + (getattr(self, "kept", 0) if t else 0)\n        a = self.s.sigmoid()\n'
    "        m = self.kept + 0 * state"
)
_WEIGHT = "self.s = nn.Parameter(torch.linspace(-2, 4, width * averages))"
_SIZE = "return width * averages"


@pytest.mark.parametrize(
    ("changes", "law", "said"),
    [
        (
            [(_END, "return self.o(m) + 1e-6 * x.flip(1)\n")],
            "causal",
            r"changing the tokens from \d+ on moves outputs of forward before them",
        ),
        (
            [("m = a * state", "m = 0.9 * a * state")],
            "step=forward",
            "T=63, batch 1: outputs of step and forward differ by",
        ),
        (
            [_CHUNK, (_END, "return self.o(m) * (1 + (self.chunk == 7))\n")],
            "chunks",
            "T=1: outputs of forward and last by default and in chunks of 7",
        ),
        pytest.param(
            [(_SIZE, f"{_SIZE} + 1")],
            "cache",
            "9 are declared",
            marks=pytest.mark.slow,
        ),
        (
            [(_SIZE, f"{_SIZE} - 1")],
            "cache",
            "holds 8 numbers after 0 tokens, but cache_numbers declares 7",
        ),
        (
            [(_END, "return self.o(m) + 0 * x.sum().item()\n")],
            "stacks",
            r"RuntimeError: .*item.*\(mine.py:\d+\)",
        ),
        (
            [(_END, "return self.o(m) + 0 * (x.abs() - 80).exp()\n")],
            "finite",
            r"fp32, inputs of size 100: not finite: the outputs.*first in torch.Tensor.exp \(mine",
        ),
        (
            [(_END, "y = m.abs()\n        return self.o(m) + 0 * y.sqrt()[..., : x.shape[-1]]\n")],
            "finite",
            r"size 0: not finite: the gradient by .*, first in the gradient of"
            r" torch.Tensor.sqrt \(mine.py:\d+\)",
        ),
        (
            [(_FORWARD, f"x = x.nan_to_num()\n        {_FORWARD}")],
            "NaN",
            "NaN in token 0 is hidden: the output of forward",
        ),
        (
            [(_WEIGHT, "self.s = torch.randn(width * averages)")],
            "saved",
            "outputs of forward differ after saving",
        ),
        (
            [("m = a * state", "m = a[:3] * state")],
            "step=forward",
            r"^RuntimeError: The size of tensor a .*\(mine.py:39\)$",
        ),
        (
            [(_END, "return m\n")],
            "step=forward",
            r"returned a tensor of shape \(1, (\d+), 8\) for x of shape \(1, \1, 4\)",
        ),
        (
            [(_STEP, _HIDDEN)],
            "alone",
            "outputs of step, a second sequence in turn, and without it differ",
        ),
    ],
)
def test_each_mistake_is_told(changes: list[tuple[str, str]], law: str, said: str) -> None:
    write(broken_variant(*changes))
    mixer, _ = find("mine:MyMixer", width=4)
    result = checking._result(law, LAWS[law], mixer)
    assert not result.holds
    assert re.search(said, result.broken_by), result.broken_by
    assert "\n" not in result.broken_by


_DROPOUT = (
    (_END, "return F.dropout(self.o(m), 0.5, self.training)\n"),
    ("return self.o(m), {", "return F.dropout(self.o(m), 0.5, self.training), {"),
)


@pytest.mark.slow
def test_dropout_is_off_and_the_card_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mixer that a user made in train mode, as modules are."""
    shorten(monkeypatch)
    monkeypatch.setattr(checking, "_seconds", _seconds_once)
    monkeypatch.setattr(checking, "LONGER", 20)
    monkeypatch.setattr(checking, "STEPS", 20)
    write(broken_variant(*_DROPOUT))
    mixer, _ = find("mine:MyMixer", width=4)
    card = checking.check(mixer)
    assert card.broken == []
    (note,) = card.notes
    assert "train mode" in note


@pytest.mark.parametrize(
    "held",
    ["__import__('threading').Lock()", "__import__('sys').__stdout__"],
)
def test_a_module_that_cannot_be_copied_is_told(
    held: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(broken_variant(("self.o = nn", f"self.held = {held}\n        self.o = nn")))
    assert run(["check-mechanism", "mine:MyMixer", "--set", "model_width=4"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "cannot be copied" in said
    assert "no file" in said


def test_random_numbers_of_its_own_are_told() -> None:
    """NumPy's generators can be copied, and forms then differ."""
    rng = "__import__('numpy').random.default_rng(0)"
    write(
        broken_variant(
            ("self.o = nn", f"self.rng = {rng}\n        self.o = nn"),
            (_END, "return self.o(m) + 1e-3 * self.rng.random()\n"),
        )
    )
    mixer, _ = find("mine:MyMixer", width=4)
    assert (
        "forward differ" in checking._result("step=forward", LAWS["step=forward"], mixer).broken_by
    )


def test_a_mixer_without_gradients_is_told() -> None:
    write(broken_variant((_END, "return self.o(m).detach()\n")))
    mixer, _ = find("mine:MyMixer", width=4)
    for law in ("at", "derivatives"):
        assert "is something detached?" in checking._result(law, LAWS[law], mixer).broken_by


def test_a_law_that_needs_more_than_its_budget_is_stopped() -> None:
    write(broken_variant((_END, "while True:\n            pass\n")))
    mixer, _ = find("mine:MyMixer", width=4)
    result = checking._result("at", LAWS["at"], mixer, budget=0.2)
    assert not result.holds
    assert result.broken_by.startswith("stopped after 0.2 s")
    assert result.seconds > 0.1
    # no alarm is left behind
    assert signal.getitimer(signal.ITIMER_PROF)[0] == 0


def test_laws_that_take_too_long_are_told() -> None:
    results = [
        checking.LawResult(law="fed", says="", holds=True, seconds=21.0),
        checking.LawResult(law="cache", says="", holds=True, seconds=2.0),
    ]
    assert "'fed' (21 s)" in checking._long(results)
    assert checking._long(results[1:]) == ""


def test_the_page_lists_the_names_that_are_taken_and_who_imports() -> None:
    page = (EXAMPLE.parents[1] / "docs" / "own-mixer.md").read_text()
    listed = page.partition("no size may have them:\n")[2].partition(".")[0]
    assert tuple(re.findall(r"`(\w+)`", listed)) == TAKEN
    assert {"slots", "p", "kept", "reading", "drift", "machine"} <= set(TAKEN)
    listed = page.partition("`--import` names a module or file, on ")[2].partition(":")[0]
    assert set(re.findall(r"`([\w -]+)`", listed)) == set(_importing(tree()))


def _importing(command: Any, name: str = "") -> Iterator[str]:
    """Commands with --import, by their whole names."""
    for part, below in getattr(command, "commands", {}).items():
        yield from _importing(below, f"{name} {part}".strip())
    if any("--import" in parameter.opts for parameter in command.params):
        yield name


def test_formats_that_are_not_asked_for_are_left_alone() -> None:
    """Squares of 10^4 fit float32 and bfloat16, not float16."""
    write(broken_variant((_END, "return self.o(m) + 0 * (x * x)\n")))
    mixer, _ = find("mine:MyMixer", width=4)
    assert "fp16" in checking._result("finite", LAWS["finite"], mixer).broken_by
    with asking(formats=("fp32", "bf16")):
        assert checking._result("finite", LAWS["finite"], mixer).holds


def test_a_reset_of_its_own_that_forgets_is_told() -> None:
    write(
        broken_variant(
            (
                "    def init_state",
                "    def reset(self, generator):\n        pass\n\n    def init_state",
            )
        )
    )
    mixer, _ = find("mine:MyMixer", width=4)
    assert "reset leaves" in checking._result("reset", LAWS["reset"], mixer).broken_by


@pytest.mark.slow
def test_an_exception_everywhere_still_prints_a_card(capsys: pytest.CaptureFixture[str]) -> None:
    write(broken_variant(("m, reach =", "raise KeyError('weights')\n        m, reach =")))
    assert run(["check-mechanism", "mine:MyMixer", "--set", "model_width=4"]) == 1
    printed = capsys.readouterr()
    assert "Traceback" not in printed.out + printed.err
    assert "KeyError: 'weights' (mine.py:" in printed.out
    assert "not measured" in printed.out
    assert "laws broken: step=forward" in printed.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("nsa", {}),
        ("moba", {"topk": 1}),
        ("sparse", {"block": 8, "topk": 2}),
        ("indexed", {"topk": 8}),
        ("dsa", {"topk": 8}),
    ],
)
def test_float32_chooses_as_float64_does(name: str, sizes: dict[str, int]) -> None:
    LAWS["formats"](find(name, sizes=sizes)[0])


def test_a_choice_by_sums_of_float32_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    made: Any = find("nsa")[0]
    right = type(made)._scores_of_blocks

    def rounded(self: Any, shares: Any, blocks: int) -> Any:
        return right(self, shares, blocks).to(shares.dtype)

    monkeypatch.setattr(type(made), "_scores_of_blocks", rounded)
    # the ranks of two selected blocks that share one compressed block differ by 5e-11
    with pytest.raises(LawBroken, match="float32"):
        LAWS["formats"](made)


@pytest.mark.slow
def test_a_built_in_name(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "--set",
        "heads=1",
        "--set",
        "head_dim=2",
        "--set",
        "negative=true",
        "--set",
        "fp64",
        "--set",
        "model_width=2",
    ]
    assert run(["check-mechanism", "gdn", *arguments]) == 0
    assert "width 2   format=fp64, heads=1, head_dim=2" in capsys.readouterr().out


def test_imports(capsys: pytest.CaptureFixture[str]) -> None:
    write(
        "import separatrix as sx\nfrom mine_too import"
        " MyMixer\nsx.register_mechanism(name='mean')(MyMixer)\n"
    )
    write(LAWFUL, "mine_too")
    assert run(["list", "mechanisms", "--json", "--import", "mine"]) == 0
    assert json.loads(capsys.readouterr().out)[-1]["name"] == "mean"
    assert run(["analyze", "mean*2 @ width=8", "--import", "mine.py", "--json"]) == 0
    assert "'mean'" in capsys.readouterr().out  # among what is taken for granted
    assert run(["compare", "mean", "gdn", "--import", "mine", "--json"]) == 0


_PICKY = LAWFUL.replace(
    "super()", "assert width % 3 == 0, 'width must be a multiple of 3'; super()"
)


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        ("", ["mine:MyMixer"], "unknown name 'MyMixer'"),
        ("class MyMixr: pass", ["mine:MyMixer"], "Did you mean 'MyMixr'?"),
        ("class MyMixer: pass", ["mine:MyMixer"], "MyMixer is neither an nn.Module"),
        (
            "from torch.nn import Linear as MyMixer",
            ["mine:MyMixer"],
            "name='linear' is taken",
        ),
        ("MyMixer = 3", ["mine:MyMixer"], "3"),
        (
            "import no_such_thing",
            ["mine:MyMixer"],
            ("ModuleNotFoundError: No module named 'no_such_thing' (mine.py:1)"),
        ),
        (
            "1 / 0",
            ["mine:MyMixer"],
            "ZeroDivisionError: division by zero (mine.py:1)",
        ),
        ("def f(:", ["mine:MyMixer"], "SyntaxError: invalid syntax (mine.py, line 1)\n"),
        (
            "raise SystemExit(3)",
            ["mine:MyMixer"],
            "importing mine raises SystemExit: 3 (mine.py:1)",
        ),
        ("", ["yours:MyMixer"], "no module 'yours'"),
        ("", ["yours.py:MyMixer"], "yours.py: there is no"),
        ("", ["mine/x:MyMixer"], "'mine/x' is no module"),
        ("", ["mine:"], "'mine:'"),
        ("", ["gnd"], "you mean 'gdn'?"),
        ("", ["compressed"], "'compressed'"),
        (LAWFUL, ["mine:MyMixer", "--set", "average=3"], "you mean 'averages'?"),
        (LAWFUL, ["mine:MyMixer", "--set", "averages=x"], "averages is 'x'"),
        (
            LAWFUL,
            ["mine:MyMixer", "--set", "averages=0"],
            "averages is 0",
        ),
        (
            LAWFUL,
            ["mine:MyMixer", "--set", "averages=1", "--set", "averages=2"],
            "--set averages is given",
        ),
        (
            LAWFUL,
            ["mine:MyMixer", "--set", "width=8"],
            "is given with --set model_width",
        ),
        (LAWFUL, ["mine:MyMixer", "--set", "averages="], "write averages=VALUE"),
        (LAWFUL, ["mine:MyMixer", "--set", "fp7"], "unknown number format 'fp7'"),
        (LAWFUL, ["mine:MyMixer", "--set", "formats=fp23"], "unknown format 'fp23'"),
        (LAWFUL, ["mine:MyMixer", "--set", "model_width=0"], "model_width"),
        (LAWFUL, ["mine:MyMixer", "--set", "tolerance=wide"], "--set tolerance=wide"),
        (LAWFUL, ["mine:MyMixer", "--set", "tolerance=nan"], "--set tolerance=nan"),
        (LAWFUL, ["mine:MyMixer", "--set", "tolerance=1"], "from 0 to 0.1"),
        (LAWFUL, ["mine:MyMixer", "--set", "budget=0"], "--set budget=0: write a number from 1"),
        (LAWFUL, ["mine:MyMixer", "--on", "nowhere"], "--on 'nowhere'"),
        (LAWFUL, ["mine:MyMixer", "--task", "eva:n=8"], "its folder with --on"),
        (
            _PICKY,
            ["mine:MyMixer"],
            "at width 16",
        ),
        ("def MyMixer(width): return 3", ["mine:MyMixer"], "which is no nn.Module"),
        (
            "from torch import nn\ndef MyMixer(width): return nn.Linear(1, 1)",
            ["mine:MyMixer"],
            "which is no nn.Module",
        ),
    ],
)
def test_bad_input_is_one_line(
    text: str, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(text)
    assert run(["check-mechanism", *arguments]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert printed.err.startswith("error: ")
    assert said in printed.err


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """A folder with the example in its second layer, after one step; no law but that on prompts."""
    monkeypatch.setattr(checking, "LAWS", {})
    monkeypatch.setattr(checking, "_seconds", _seconds_once)
    words = ["full + my_mixer @ width=8, heads=1, head_dim=8", "eva:n=4", "--import", str(EXAMPLE)]
    words += ["--set", "width=8"]
    assert run(["train", *words, "--steps", "1", "--out", "d"]) == 0
    capsys.readouterr()
    return "d"


def test_trained_weights_on_prompts(trained: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["check-mechanism", f"{EXAMPLE}:MyMixer", "--on", trained, "--json", "--seed", "1"]
    assert run([*words, "--task", "eva:n=3,V=4"]) == 0
    card = json.loads(capsys.readouterr().out)
    law = card["laws"][-1]
    assert (law["law"], law["holds"]) == ("prompts", True)
    # three facts, the question and the start token
    assert any("13 prompts of 5 tokens" in note for note in card["notes"])


def test_what_a_trained_layer_does_at_its_prompts_is_told(
    trained: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A leak at one length, which is that of the prompts."""
    right = OwnMixer._forward

    def leaks(self: OwnMixer, x: Any) -> Any:
        y = right(self, x)
        return y + x.mean(1, keepdim=True) if x.shape[1] == 5 else y

    monkeypatch.setattr(OwnMixer, "_forward", leaks)
    words = ["check-mechanism", f"{EXAMPLE}:MyMixer", "--on", trained, "--task", "eva:n=3,V=4"]
    assert run(words) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "FAIL layer 2: T=5, batch 1, " in printed


@pytest.mark.parametrize(
    ("target", "more", "said"),
    [
        ("gdn", [], "layer of 'gdn'"),
        ("full", ["--task", "eva:n=9,V=9"], "eva:n=9"),
        ("full", ["--task", "eva:n=4000,V=4"], "eva:n=4000"),
        ("full", ["--task", "evva"], "Did you mean"),
    ],
)
def test_prompts_that_cannot_be_given(
    target: str, more: list[str], said: str, trained: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check-mechanism", target, "--on", trained, *more]) == 2
    printed = capsys.readouterr().err
    assert said in printed
    assert printed.count("\n") == 1


def test_interrupted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def stop(mixer: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(LAWS, "causal", stop)
    assert (
        run(["check-mechanism", "shortconv", "--set", "model_width=2", "--set", "width=2"]) == 130
    )
    assert "Traceback" not in capsys.readouterr().err


@each(
    "numbers, growth",
    [
        ([64, 64, 64, 64], "constant"),
        ([8, 64, 64, 64], "constant"),
        ([125, 250, 500, 1000], "linear"),
        ([127, 252, 502, 1002], "linear"),
        ([70, 80, 90, 100], "logarithmic"),
        ([11, 15, 22, 31], "other"),  # square roots
        ([125**2, 250**2, 500**2, 1000**2], "other"),
    ],
)
def test_growth_classes(numbers: list[int], growth: str) -> None:
    a, b, c, d = numbers
    assert growth_of([0, a, b, b, c, c, c, c, d]) == growth


def test_two_files_of_one_name_are_two_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a file that has the name of a module of the standard library."""
    monkeypatch.setattr("sys.path", list(sys.path))
    for folder, name, value in (("a", "same_stem", 1), ("b", "same_stem", 2), ("c", "json", 3)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.py").write_text(f"VALUE = {value}\n")
    files = [
        str(tmp_path / folder / f"{name}.py")
        for folder, name in (("a", "same_stem"), ("b", "same_stem"), ("c", "json"))
    ]
    loaded = [import_module(file) for file in files]
    assert [module.VALUE for module in loaded] == [1, 2, 3]
    assert [import_module(file) for file in files] == loaded
    for module in loaded:
        del sys.modules[module.__name__]
