"""Capability cards of released models: the figures worked by hand in ux.md and hf_configs.md, in
the text and in the JSON.
"""

from __future__ import annotations

import math
import re
import subprocess
import sys
from typing import Any

import pytest
from support.each import each

from separatrix.cards import CardLine, card, card_facts
from separatrix.cli.printing import show
from separatrix.cli.report.card import card_document, card_json, log10_of, why_document
from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import MECHANISMS, Architecture
from separatrix.stacks.architecture.released import PRESETS
from separatrix.stacks.architecture.resolve import preset, resolve
from separatrix.tasks import parse_task
from separatrix.theory import judge

STUB = [
    CardLine("recall of one of n facts", "FAILS", 7_675_932, "n log V > cache", "I"),
    CardLine("  with chain of thought", "FAILS", 7_675_932, "the same", "I"),
    CardLine("composition", "SOLVABLE", None, "12 full layers", "composition"),
    CardLine("permutation tracking (S_5)", "OPEN", None, "nothing known", "none"),
]


def card_data(
    architecture: Architecture, context: int, *, lines: list[CardLine] | None = None
) -> dict[str, Any]:
    return card_json(card_facts(architecture, context, lines=lines))


def text(
    architecture: Architecture,
    context: int,
    *,
    width: int = 120,
    lines: list[CardLine] | None = None,
    why: str = "",
) -> str:
    facts = card_facts(architecture, context, lines=lines)
    return (why_document(facts, why) if why else card_document(facts)).text(width)


def row(card: str, label: str) -> list[str]:
    """The cells of the memory row that begins with `label`."""
    (line,) = [line for line in card.splitlines() if line.strip().startswith(label + "  ")]
    return [cell for cell in re.split(r"  +", line.strip()) if cell]


def squeezed(card: str) -> str:
    return " ".join(card.split())


def test_recurrentgemma_card() -> None:
    card = text(preset("recurrentgemma-2b"), 8192)
    head = card.splitlines()
    assert head[0].split("   ") == [
        "recurrentgemma-2b",
        "26 layers: 18 RG-LRU, 8 windowed (2,048)",
        "8,192 tokens",
    ]
    assert head[1] == "(r*2 + w)*8 + r*2   bf16, recurrent state fp32 (assumed)"
    said = squeezed(card)
    assert "Carries 16.4 MiB" in said
    # 18 convolutions of 3 tokens before and 8 windows of 2,047 reach back 16,430 tokens
    assert "1,474,560 bits" in said
    assert "after 16,430 tokens" in said
    assert "n = 98,507 on" in said
    # more bits than the states hold must be before the reach: 1,474,560 + 16,430 + 1
    assert "n = 1,490,991 on (R)" in said
    assert "FAILS from" not in card
    memory = text(preset("recurrentgemma-2b"), 8192, why="memory")
    assert row(memory, "Memory of the past")[1:] == ["8,192 tokens", "any length"]
    assert row(memory, "recurrent state") == ["recurrent state", "180.0 KiB", "180.0 KiB"]
    assert row(memory, "convolution buffers") == ["convolution buffers", "270.0 KiB", "270.0 KiB"]
    assert row(memory, "windows") == ["windows", "16.0 MiB", "16.0 MiB"]
    assert row(memory, "together") == ["together", "16.4 MiB", "16.4 MiB, does not grow"]
    assert "keys and values" not in memory
    granted = text(preset("recurrentgemma-2b"), 8192, why="assumptions")
    assert "longest context" in granted


def test_recurrentgemma_recall_fails_where_the_hand_calculation_says() -> None:
    """18 states of 2,560 fp32 numbers hold 1,474,560 bits / log2 256,000 = 82,076.0 facts, and 18
    convolutions of 3 tokens before and 8 windows of 2,047 reach back 16,430 more; a chain of
    thought changes nothing. At 8,192 tokens that excludes nothing.
    """
    found = {v["question"]: v for v in card_data(preset("recurrentgemma-2b"), 8192)["verdicts"]}
    recall = next(v for question, v in found.items() if question.startswith("recall"))
    assert recall["key"] == "recall"
    assert (recall["status"], recall["theorem"], recall["n"]) == ("OPEN", "R", None)
    assert recall["task"] == "eva:n=8191,V=256000"  # and the question
    bound = recall["bound"]
    assert (bound["n"], bound["asked"], bound["larger_fail_too"]) == (98_507, 8191, True)
    assert bound["task"] == "eva:n=98507,V=256000"
    assert bound["sizes"]["state_bits"] == 1_474_560
    thought = found["recall with chain of thought"]
    assert (thought["status"], thought["bound"]["n"]) == ("OPEN", 98_507)
    assert any("fp32 (assumed)" in assumption for assumption in recall["assumptions"])
    composition = next(v for question, v in found.items() if question.startswith("composition, 2"))
    tokens = composition["bound"]["n"]
    n = (tokens - 2) // 2  # z_2 has n entries: n log2 n bits, and n + n + 2 tokens
    assert tokens == 2 * n + 2
    # z_1 is longer than the reach, so that no entry of z_2 is within it
    assert n * math.log2(n) > 1_474_560 >= (n - 1) * math.log2(n - 1)


def test_qwen_composition_is_solvable_up_to_its_full_layers_and_open_beyond() -> None:
    verdicts = card_data(preset("qwen3-next-80b"), 262_144)["verdicts"]
    recall = next(v for v in verdicts if v["question"].startswith("recall"))
    assert recall["status"] == "SOLVABLE"
    # a value is one of 151,936 tokens: 2^17 < 151,936 <= 2^18
    assert recall["sizes"]["payload_bits"] == 18
    solvable, beyond = (v for v in verdicts if v["question"].startswith("composition,"))
    assert (solvable["status"], beyond["status"]) == ("SOLVABLE", "OPEN")
    assert "12" in solvable["question"]
    assert "13" in beyond["question"]
    assert beyond["n"] is None
    # what conditions ask for is counted, and no failing size is searched for
    assert beyond["bound"]["no_n_up_to"] == 10**12


LAYERS = ("total", "full", "windowed", "indexed", "recurrent", "convolution", "parallel", "other")


def test_what_nobody_said_is_named() -> None:
    assert card_data(preset("qwen3-next-80b"), 10)["unknown"] == []
    assert card_data(preset("recurrentgemma-2b"), 10)["unknown"] == ["context"]
    assert card_data(Architecture.parse("full"), 10)["unknown"] == [
        "vocabulary",
        "context",
    ]


def test_windows_fill_and_buffers_are_whole() -> None:
    early, late = (card_data(preset("recurrentgemma-2b"), t)["cache"] for t in (2, 3000))
    assert early["window_bytes"] == 8 * 2 * 2 * 256 * 2
    assert early["convolution_numbers"] == late["convolution_numbers"] == {"rglru": 3 * 2560}
    # two tokens in each of 8 windows: 8 * 2 * 2 * 256 numbers of 2 bytes
    card = text(preset("recurrentgemma-2b"), 2, lines=STUB, why="memory")
    assert row(card, "windows") == ["windows", "16.0 KiB", "16.0 MiB"]


def test_layers_that_hold_attention_and_recurrence_count_in_both() -> None:
    found = card_json(
        card_facts(
            Architecture.parse("full|gdn + window|full + sparse + mlp + loglinear"), 100, lines=STUB
        )
    )
    assert found["layers"] == dict(zip(LAYERS, (5, 2, 1, 1, 2, 0, 1, 1), strict=True))
    assert found["pattern"] == "hhs-o"


def test_growth_of_sparse_and_log_linear_layers() -> None:
    # sparse: 2 x 4 x 64 fp32 per token, and as much again per block of 32 tokens; log-linear: one
    # more state of 4 x 64 x 64 per doubling
    found = card_data(Architecture.parse("sparse + loglinear"), 1024, lines=STUB)
    assert found["cache"]["kv_bytes_per_token"] == 2 * 4 * 64 * 4 * 33 / 32
    assert found["cache"]["recurrent_numbers"] == {"loglinear": 11 * 4 * 64 * 64}
    card = text(Architecture.parse("sparse + loglinear"), 1024, lines=STUB, why="memory")
    assert row(card, "keys and values")[-1] == "2,112 bytes per token"
    assert row(card, "recurrent state")[-1] == "64.0 KiB more per doubling"
    assert "grows with" in card


def test_bytes_of_odd_formats_are_not_rounded() -> None:
    cache = card_json(
        card_facts(Architecture.parse("full @ heads=1, head_dim=1, p3"), 5, lines=STUB)
    )["cache"]
    assert cache["kv_bytes_per_token"] == 0.75
    assert cache["total_bytes"] == 3.75


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("spec", ["full", "qwen3-next-80b", "(full*3 + gdn|window)*30 @ p5", "mlp"])
def test_every_width_shows_ascii_and_the_deciding_numbers(width: int, spec: str) -> None:
    card = text(resolve(spec), 1000, width=width, lines=STUB)
    assert card.isascii()
    assert max(map(len, card.splitlines())) <= width
    if width >= 80:
        assert "FAILS from n = 7,675,932 on" in squeezed(card)


def test_statuses_are_coloured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    card = card_document(card_facts(Architecture.parse("full"), 10, lines=STUB))
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "120"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    show(card)
    assert "\x1b[1;31mFAILS" in capsys.readouterr().out
    monkeypatch.delenv("FORCE_COLOR")
    show(card)
    assert "\x1b" not in capsys.readouterr().out


def test_markup_in_a_name_is_printed_as_it_is() -> None:
    model = Architecture(Architecture.parse("full").layers, "[bold]x[/nothing]")
    assert "[bold]x[/nothing]" in text(model, 10, lines=STUB)


@each(
    "log2_n, expected",
    [("1000", 301.0299956639812), ("2.5e3", 752.5749891599529), ("n^2", None), (None, None)],
)
def test_log10_of_an_n_too_large_to_write(log2_n: str | None, expected: float | None) -> None:
    verdict = Verdict(
        architecture="full",
        task="x",
        status="OPEN",
        theorem="Ye26-1.1",
        statement="",
        log2_n=log2_n,
    )
    assert log10_of(verdict) == (
        expected if expected is None else pytest.approx(expected, rel=1e-12)
    )


def test_log10_beyond_floats_is_text() -> None:
    verdict = Verdict(
        architecture="full",
        task="x",
        status="OPEN",
        theorem="Ye26-1.1",
        statement="",
        log2_n=str(10**400),
    )
    assert log10_of(verdict) == "3.010300e+399"


def test_every_mechanism_belongs_to_a_kind_of_layer() -> None:
    assert {cls.group for cls in MECHANISMS.values()} <= set(LAYERS)
    assert len({cls.symbol for cls in MECHANISMS.values()} | {"h"}) == len(MECHANISMS) + 1


def test_a_card_needs_no_torch() -> None:
    program = (
        "import sys; from separatrix.stacks.architecture.resolve import resolve; from"
        " separatrix.cards import card_facts;"
        " from separatrix.cli.report.card import card_json;"
        "card_json(card_facts(resolve('qwen3-next-80b'), 1000));"
        " assert 'torch' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "name",
    [
        # cards of stacks with three to six reading layers search for parameters
        pytest.param(
            name,
            marks=[pytest.mark.slow] if i % 6 or 3 <= len(preset(name).reading) <= 6 else [],
        )
        for i, name in enumerate(PRESETS)
        if i % 3 == 0
    ],
)
def test_every_line_names_its_task_and_says_of_it_what_the_theorems_say(name: str) -> None:
    model = preset(name)
    data = card_data(model, 10_000)["verdicts"]
    # what no theorem decides holds no record there
    unanswered = {v["question"] for v in data if v["task"] is None}
    counted = {v["question"] for v in data if v.get("bound", {}).get("no_n_up_to")}
    assert unanswered <= {"permutation tracking (S_5)", *counted}
    assert all(v["assumptions"] for v in data if v["task"] is not None)
    for line in card(model, 10_000):
        # of a needle that has room no more is known
        assert 2 - (line.key == "needle") <= len(re.findall(r"[.;] |[.]$", line.explain)) <= 4, (
            line.explain
        )
        if (
            line.verdict is None or line.theorem == "thought"
        ):  # `judge` answers at once, without a chain of thought
            continue
        assert parse_task(line.verdict.task).spec == line.verdict.task
        statuses = {verdict.status for verdict in judge(model, parse_task(line.verdict.task))}
        assert line.status in statuses, (line.question, statuses)
        assert line.status != "OPEN" or statuses == {"OPEN"}, (line.question, statuses)


def line(spec: str, question: str, context: int = 1000) -> CardLine:
    (found,) = [
        line
        for line in card(Architecture.parse(spec), context)
        if line.question.startswith(question)
    ]
    return found


def test_two_sum_against_a_cache_counted_by_hand() -> None:
    """Two fp32 numbers, 64 bits: n values of 1,024 n make sum_{j <= n} binomial(1024 n, j) sets,
    more than 2^64 first at n = 6.
    """
    sets = {n: sum(math.comb(1024 * n, j) for j in range(1, n + 1)) for n in range(1, 8)}
    first = min(n for n, count in sets.items() if count > 1 << 64)
    found = line("linear @ heads=1, head_dim=1", "2-Sum per query")
    assert (found.status, found.theorem, found.n) == ("FAILS", "I", first)


def test_two_sum_of_any_pair_fails_in_one_full_layer_and_is_solved_by_two() -> None:
    """h = 4 x 66 x 32 = 8,448 bits; all but two of n tokens hold sets of values of one sign but
    one: sum_{j <= n-2} binomial(N'-1, j).
    """

    def more_than_read(n: int) -> bool:
        half = (1024 * n - 1) // 2
        return sum(math.comb(half - 1, j) for j in range(1, n - 1)) > 1 << 8448

    one = line("full", "2-Sum of any pair")
    two = line("full*2", "2-Sum of any pair")
    assert (one.status, one.theorem, two.status, two.theorem) == (
        "FAILS",
        "I'",
        "SOLVABLE",
        "pairs",
    )
    assert one.n is not None
    assert more_than_read(one.n)
    assert not more_than_read(one.n - 1)


@pytest.mark.parametrize(
    ("spec", "depth"),
    [
        (
            "linear @ heads=1, head_dim=1",
            64,
        ),  # 64 bits: 1 + 2^64 + 2^62 + ... stacks are too many, 1 + 2^63 + ... < 2^64 are not
        (
            "loglinear @ heads=1, head_dim=8",
            30_720,
        ),  # 15 states of 64 fp32 numbers for 2^14 <= t < 2^15, 14 of them hold 28,672 > t before
        ("mlp", 1),
        ("full", None),  # a key and a value hold more than the bit of one bracket
        ("loglinear + full", None),
    ],
)
def test_brackets_fail_from_the_depth_that_the_cache_cannot_hold(
    spec: str, depth: int | None
) -> None:
    found = line(spec, "nested brackets")
    within = depth is not None and 2 * depth <= 1000
    assert found.status == ("FAILS" if within else "OPEN")
    assert (found.bound is None) == (depth is None or within)
    if depth is not None:
        assert f"depth {depth:,} on" in found.text
        assert found.record is not None
        assert found.record.task == f"dyck:n={2 * depth},k=2,D={depth}"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("mamba*3", "no n is known"),
        ("rglru*2 + full", "TC0"),
        ("full*4", "TC0 != NC1"),
        ("gla @ fp64, positions=none", "beyond 10^12"),
        ("gdn(negative=true)", ""),
        ("kda + full", ""),
    ],
)
def test_state_tracking_says_what_is_known_without_an_n(spec: str, said: str) -> None:
    found = line(spec, "permutation")
    assert found.status == "OPEN"
    assert found.n is None
    assert said in found.text
    # parity lies in TC0, so nothing follows for full attention
    assert "TC0" not in line(spec, "parity").text


@pytest.mark.parametrize(
    "names",
    [("recurrentgemma-2b", "falcon-h1-7b"), pytest.param(tuple(PRESETS), marks=pytest.mark.slow)],
    ids=["two", "all"],
)
def test_conditional_statements_are_never_failures(names: tuple[str, ...]) -> None:
    for name in names:
        for found in card(preset(name), 10**6):
            if "TC0" in found.text or "no n is known" in found.text:
                assert found.status == "OPEN", name
                assert found.n is None
                assert found.bound is None


def test_what_theorem_p_takes_for_granted_stands_on_the_card_where_it_fails() -> None:
    # a state in float32 is rounded nowhere else in step by step decoding
    stack = Architecture.parse("gla @ bf16, positions=none, state_format=fp32")
    for context, said in ((10**9, False), (10**10, True)):
        found = card_facts(stack, context)
        assert any("as in decoding" in text for text in found.assumptions) is said
        assert any("stack without" in text for text in found.assumptions) is said


def test_state_tracking_of_mamba2_beside_deltaproduct() -> None:
    far = next(x for x in card(preset("mamba2-2.7b"), 8192) if x.question == "parity of bits")
    T = 1 + 64 * (2**32 + 2)
    assert far.bound is not None
    assert (far.status, far.theorem, far.bound.n) == ("OPEN", "P", 2 * T + 1)
    assert far.text.startswith("64 Mamba-2 layers: ")
    for question in ("parity", "permutation"):
        near = line("deltaproduct(householders=4)*24", question)
        assert (near.status, near.theorem) == ("SOLVABLE", "state-tracking")
    (short,) = [
        x
        for x in card(Architecture.parse("mamba2*2 @ bf16, positions=none"), 2**20)
        if x.question.startswith("permutation")
    ]
    assert (short.status, short.n) == ("FAILS", 2 * (1 + 2 * 65_535) + 1)


def test_explanations_are_printed_where_asked_for() -> None:
    told = text(Architecture.parse("full*2"), 100, width=200, why="equality")
    sentence = "One layer fetches each bit's partner, a second one looks for a pair that differs."
    assert sentence in squeezed(told)
    assert sentence in squeezed(text(Architecture.parse("full*2"), 100, width=200, why="all"))
    assert sentence not in squeezed(text(Architecture.parse("full*2"), 100, width=200))
