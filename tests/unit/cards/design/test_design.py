"""`design` as a user meets it: sizes filled in, spaces, hand-derived answers, what stands in the
way, one clear line for a mistake.
"""

from __future__ import annotations

import json
import re
from itertools import product
from math import comb
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bounds import holds
from support.depth_sizes import five, four, three
from support.each import each
from support.paper_sizes import paper_sizes

from separatrix.cards.design.search import design, says, told_apart
from separatrix.cards.design.space import (
    Choices,
    Cost,
    Space,
    space_of,
    task_for_context,
)
from separatrix.cli.main import run
from separatrix.cli.report.charts import states
from separatrix.cli.report.pareto import (
    assumptions,
    design_document,
    design_json,
    obstacles,
)
from separatrix.core.document.plot import check_plot
from separatrix.core.errors import (
    OutputError,
    SeparatrixError,
    SizeError,
    SpecError,
)
from separatrix.core.numbers.accuracy import highest_accuracy, percent
from separatrix.core.numbers.counts import Power
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.resolve import resolve
from separatrix.tasks import SeqComp, parse_task
from separatrix.theory.fails import iii_one_reading_layer as iii
from separatrix.theory.fails import iv_two_reading_layers as iv
from separatrix.theory.fails import v_three_steps as v
from separatrix.theory.judge import THEOREMS, judge
from separatrix.theory.solves.room import Construction


def layers(text: str):
    return Architecture.parse(text).layers


FULL = layers("full(heads=1, head_dim=16, format=bf16)")
GDN = layers("gdn(heads=1, head_dim=8, format=bf16)")


@each(
    "text, context, spec",
    [
        ("eva:V=50000", 262_144, "eva:n=262143,V=50000"),  # n facts and the question
        ("eva", 64, "eva:n=63,V=63"),
        ("seqcomp:L=1", 100, "seqcomp:L=1,m=98"),  # m + 2 tokens
        ("seqcomp:L=3", 8192, "seqcomp:L=3,m=2730,n_1=1,n_2=1"),  # 3m + 2 <= 8192
        ("seqcomp:L=3,n_1=4", 8192, "seqcomp:L=3,m=910,n_1=4,n_2=1"),  # m + 4m + 4m + 2 <= 8192
        ("seqcomp:L=2,n=20", 64, "seqcomp:L=2,m=6,n_1=2"),
        ("seqcomp:L=2,m=5", 64, "seqcomp:L=2,m=5,n_1=1"),
        ("twosum:M=64", 100, "twosum:n=99,M=64,form=query"),  # n + 1 tokens
        ("twosum:M=64,form=decision", 100, "twosum:n=100,M=64,form=decision"),
        ("equality", 1001, "equality:n=500"),  # 2n tokens
        ("dyck:k=2,D=8", 1001, "dyck:n=1000,k=2,D=8"),  # n is even
        ("dyck:k=2,D=8", 777, "dyck:n=776,k=2,D=8"),
        ("dyck:k=1,D=1", 2, "dyck:n=2,k=1,D=1"),
        ("eva:n=5,V=7", 64, "eva:n=5,V=7"),
        ("eva:", 8, "eva:n=7,V=7"),
        ("recall", 9, "recall:n=4,K=4,V=4"),  # 2n + 1 tokens
        ("recall:V=3", 9, "recall:n=4,K=4,V=3"),
        ("khop:V=8,k=2", 4096, "khop:n=4096,V=8,k=2"),
        (
            "seqcomp-forward:L=3",
            4096,
            "seqcomp-forward:L=3,m=1364,n_1=1,n_2=1",
        ),  # 3 m + 2 <= 4096
        ("istree", 100, "istree:n=51"),  # 2 (n - 1) tokens
    ],
)
def test_sizes_left_out_fill_the_context(text: str, context: int, spec: str) -> None:
    assert task_for_context(text, context) == parse_task(spec)


@each(
    "text, context, said",
    [
        ("evaa", 64, "you mean 'eva'?"),
        ("", 64, "task is empty"),
        ("eva:n=65", 64, "takes 65"),
        ("seqcomp:L=3", 7, "of 7 tokens: with m = 2"),
        ("seqcomp", 64, "L"),
        ("seqcomp:L=99", 64, "L is 99"),
        ("seqcomp:L=x", 64, "L is 'x'"),
        ("seqcomp:L=3,m=30", 64, "takes 92 tokens"),
        ("twosum", 64, "size M is missing"),
        ("dyck", 64, "size k is missing"),
        ("dyck:k=2,D=8", 1, "with n = 2 it takes 2"),
        ("eva:W=3", 64, "unknown size 'W'"),
        ("eva:V", 64, "expected size=value"),
        ("eva", 0, "context is 0"),
        ("eva", 10**30, "context is about 2^100"),
        ("eva", 1, "with n = 2 it takes 3"),
    ],
)
def test_tasks_that_do_not_fit_are_one_line(text: str, context: int, said: str) -> None:
    with pytest.raises(SeparatrixError) as caught:
        task_for_context(text, context)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@each(
    "space, said",
    [
        (lambda: Space((), FULL, (GDN,)), "layers: none given"),
        (lambda: Space((0,), FULL, (GDN,)), "layers: 0"),
        (lambda: Space((4,), (), ()).arrangements(), "more mechanisms"),
        (lambda: Space((4,), GDN, ()), "gdn"),
        (lambda: Space((4,), (), (FULL,)), "the bounded ones"),
        (lambda: Space((4,), FULL, (GDN,), readings=(-1,)), "layers: -1"),
        (
            lambda: Space((4,), FULL, (GDN,), places=cast("Any", ("middle",))),
            "even, start, end",
        ),
        (
            lambda: Space((4,), FULL, (GDN,), readings=(5,)).arrangements(),
            "that many layers",
        ),
        (lambda: Space((10_000,), FULL, (GDN,)).arrangements(), "more than 20"),
        (lambda: space_of(Choices(heads=4), resolve("full")), "give --heads without --base"),
        (lambda: space_of(Choices(reading=("full*2",))), "a reading layer is"),
        (lambda: space_of(Choices(bounded=("gnd",))), "you mean 'gdn'?"),
    ],
)
def test_spaces_that_make_no_sense_are_one_line(space, said: str) -> None:
    with pytest.raises(SeparatrixError, match=r"^[^\n]*$") as caught:
        space()
    assert said in str(caught.value)


def test_layouts_are_counted_once() -> None:
    """5 layers: 1 + 5 + binom(5, 2) placements of 0, 1, 2 readers, 2 classes each of 3 and 4 (a
    bounded layer before the second or none), 1 of 5.
    """
    space = Space((5, 5), (*FULL, *FULL), (GDN, (*GDN, *GDN)))
    families = space.arrangements()
    assert [family.reading for family in families] == [0, 1, 2, 3, 4, 5]
    assert sum(family.classes() for family in families) == 1 + 5 + comb(5, 2) + 2 + 2 + 1
    for family in families:
        placed = [layout.architecture for layout in family.layouts()]
        assert len({stack.spec for stack in placed}) == family.classes()
        assert all(len(stack) == 5 and len(stack.reading) == family.reading for stack in placed)


def test_a_base_gives_its_own_layers_and_varies_their_sizes() -> None:
    space = space_of(Choices(), resolve("recurrentgemma-2b"))
    assert space.depths == (26,)
    assert [[part.name for layer in fill for part in layer] for fill in space.fills] == [
        ["rglru", "rglru", "window"]
    ] * 3
    assert sorted(fill[2][0].sizes()["size"] for fill in space.fills) == [
        1024,
        2048,
        4096,
    ]  # hf_configs.md: a window of 2,048
    space = space_of(Choices(layers=(12,), states=(64,)), resolve("qwen3-next-80b"))
    assert (space.depths, len(space.readers), space.fills[0][0][0].sizes()["head_dim"]) == (
        (12,),
        1,
        64,
    )
    assert space.fills[0][0][0].sizes()["value_dim"] == 128  # the values keep their size


def test_a_reader_that_the_base_lacks_has_the_heads_of_its_own_attention() -> None:
    """RecurrentGemma's windows: 10 heads of 256 with one key-value head, sums in fp32."""
    base = resolve("recurrentgemma-2b")
    (window,) = {part for layer in base for part in layer if part.name == "window"}
    (reader,) = space_of(Choices(), base).readers
    (full,) = reader
    sizes = full.sizes()
    assert (full.name, sizes["heads"], sizes["head_dim"], sizes["kv_heads"]) == ("full", 10, 256, 1)
    assert (sizes["format"], sizes["accumulator"], sizes["running_max"]) == ("bf16", "fp32", True)
    shared = set(sizes) & set(window.sizes())
    assert {name: sizes[name] for name in shared} == {name: window.sizes()[name] for name in shared}
    # where the base reads, its readers are more like a new one than its windows
    sparse = Choices(reading=("sparse(block=8)",), bounded=("rglru + window",), blocks=(8,))
    mixed = space_of(sparse, resolve("full(heads=2, head_dim=8) + window(heads=6, head_dim=32)"))
    ((part,), *_) = mixed.readers
    assert (part.sizes()["heads"], part.sizes()["head_dim"], part.sizes()["block"]) == (2, 8, 8)
    ((rglru,), (near,)) = mixed.fills[0]
    assert (near.sizes()["heads"], rglru.sizes()["width"]) == (2, 6 * 32)


def test_recall_by_hand() -> None:
    """64 facts of 64 values take 384 bits. A state of 8 x 8 bf16 numbers has 1,024: not excluded;
    one of 2 x 2 has 64: excluded. A full layer of 16 + 16 bf16 numbers a token has 32,768 bits at
    64 tokens and retrieves.
    """
    small = layers("gdn(heads=1, head_dim=2, format=bf16)")
    found = design(
        [parse_task("eva:n=64,V=64")],
        context=64,
        cache_bits=1 << 20,
        space=Space((2,), FULL, (GDN, small)),
    )
    assert [(p.cost, p.layout.architecture) for p in found.not_excluded] == [
        (Cost(2048, 2 * 7 * 64, 0), Architecture(GDN * 2))
    ]
    (proved,) = found.proved
    assert proved.cost == Cost(
        64 * 32 * 16 + 4 * 16, 2 * 32 * 64 + 7 * 4, 1
    )  # scores and values; seven operations per number of the state
    assert {layout.architecture.layers for layout in proved.layouts} == {FULL + small, small + FULL}
    (fewer,) = [other for other in proved.neighbours if other.change == "one full layer fewer"]
    assert (fewer.status, fewer.theorem, fewer.n) == (
        "FAILS",
        "I",
        27,
    )  # V = n: 26 log2 26 < 128 bits of cache < 27 log2 27
    assert found.excluded == {("I", "eva:n=64,V=64"): 1}


def test_nothing_fits_and_what_would_do() -> None:
    space = Space((2,), FULL, (layers("gdn(heads=1, head_dim=2, format=bf16)"),))
    found = design([parse_task("eva:n=64,V=64")], context=64, cache_bits=1000, space=space)
    assert found.not_excluded == found.proved == ()
    assert found.beyond is not None
    assert found.beyond.cost.cache_bits == 64 * 32 * 16 + 4 * 16
    assert found.beyond_proved is not None
    said = obstacles(found)
    assert "FAILS on eva:n=64,V=64 for 1 " in said[0]
    assert any("--cache 4104bytes" in line for line in said)  # (32,768 + 64) / 8
    nothing = design(
        [parse_task("eva:n=64,V=64")],
        context=64,
        cache_bits=1 << 30,
        space=Space((2,), (), space.fills),
    )
    assert nothing.beyond is None
    assert "no budget" in " ".join(obstacles(nothing))


@each(
    "changed, said",
    [
        ({"tasks": []}, "task is given"),
        ({"context": 0}, "context is 0"),
        ({"context": 10**30}, "from 1 to 1,000,000,000,000"),
        ({"cache_bits": -1}, "cache budget is -1"),
        ({"context": 63}, "takes 64"),
    ],
)
def test_bad_calls(changed, said: str) -> None:
    given = {
        "tasks": [parse_task("eva:n=64,V=64")],
        "context": 64,
        "cache_bits": 1,
        "space": Space((2,), FULL, (GDN,)),
    } | changed
    with pytest.raises(SizeError) as caught:
        design(given.pop("tasks"), **given)
    assert said in str(caught.value)


BITS = st.one_of(st.just(0), st.integers(1, 400))
H = st.integers(1, 64)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(H, BITS, BITS, st.integers(2, 60), st.integers(1, 30))
def test_what_theorem_iii_shows_is_never_called_silent(h, sigma_0, sigma_1, m, n_1) -> None:
    sizes = three(h=h, sigma_0=sigma_0, sigma_1=sigma_1)
    shown = any(
        holds(iii.TheoremIII(), iii.Parameters(m=m, n_1=n_1, r=r, t=t), sizes)
        for r in range(1, m + 1)
        for t in {1, 2, 3, 5, 9, m // 2, m}
        if 1 <= t <= m
    )
    assert not (shown and iii.TheoremIII().surely_silent(sizes, (m, n_1)))


@settings(deadline=None, max_examples=25, derandomize=True)
@given(
    st.integers(1, 6),
    st.integers(1, 6),
    st.integers(0, 6),
    st.integers(0, 6),
    st.integers(2, 14),
    st.integers(20, 300),
)
def test_what_theorem_iv_shows_is_never_called_silent(h_1, h_2, sigma_1, sigma_2, m, n_1) -> None:
    sizes = four(h_1=h_1, h_2=h_2, sigma_1=sigma_1, sigma_2=sigma_2)
    steps = (2, 3, 5, 8, 14)
    shown = any(
        holds(iv.TheoremIV(), iv.Parameters(m=m, n_1=n_1, r=r, q=q, t=t, g=g), sizes)
        for q, r, t, g in product(steps, steps, (1, *steps), (1, 4, 20))
        if r <= q <= m and t <= m
    )
    assert not (shown and iv.TheoremIV().surely_silent(sizes, (m, n_1)))


def test_what_the_table_of_theory_shows_is_not_called_silent() -> None:
    """theory.md, section 5: (1,16,16) with a layer before and after fails at n = 334,706;
    (1,4,8) at 11,902 by IV and at 12,242 by V.
    """
    layer = 16 * 17 * 16
    h = 17 * 16
    of_one = iii.TheoremIII()
    assert not of_one.surely_silent(three(h=h, sigma_0=layer, sigma_1=layer), (1101, 303))
    two = four(h_1=40, h_2=40, sigma_1=0, sigma_2=0)
    assert not iv.TheoremIV().surely_silent(two, (34, 349))
    groups = five(h_1=40, h_2=40, sigma_0=0, sigma_1=0, sigma_2=4 * 5 * 8)
    assert not v.TheoremV().surely_silent(groups, (241, 1, 6300))
    # 16 log2 16 < h
    assert of_one.surely_silent(three(h=h, sigma_0=0, sigma_1=layer), (16, 1))


def result():
    tasks = [parse_task("eva:n=64,V=64"), parse_task("seqcomp:L=2,m=16,n_1=1")]
    return design(
        tasks,
        context=64,
        cache_bits=1 << 18,
        space=Space((4,), FULL, (GDN, layers("gdn(heads=1, head_dim=1, format=bf16)"))),
    )


def test_json_is_plain_and_whole() -> None:
    data = json.loads(json.dumps(design_json(result()), allow_nan=False))
    assert data["budget_bytes"] == 1 << 15
    point = data["proved_sufficient"][0]
    assert Architecture.parse(point["architecture"]).cache_bits(64) == 8 * point["cache_bytes"]
    assert Architecture.parse(point["architecture"]).flops(64) == point["flops_per_token"]
    assert point["reading_layers"] == 2  # two layers and a carrier follow two steps
    assert {"status", "theorem", "n", "task", "change", "architecture"} <= set(
        point["neighbours"][0]
    )


@pytest.mark.parametrize("width", [60, 80, 100])
def test_the_table_fits_the_terminal(width: int) -> None:
    text = design_document(result()).text(width)
    # but for a command, which is copied
    lines = [line for line in text.splitlines() if "separatrix trial" not in line]
    assert all(len(line) <= width for line in lines)
    assert text.isascii()
    assert "Proved sufficient" in text
    assert "Not excluded" in text


def test_plots_are_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "states.svg"
    states({"full": Architecture.parse("full")}).write(path)
    data = path.read_bytes()
    assert b"<svg" in data
    # a file stands alone: no colour is left to a page, nothing is run or loaded
    assert not re.search(rb"var\(|<script|href=", data)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    with pytest.raises(OutputError, match="exists already"):
        check_plot(path)


@pytest.mark.parametrize("name", ["front.png", "front"])
def test_plots_that_cannot_be_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(OutputError, match="is an SVG"):
        check_plot(tmp_path / name)


Capsys = pytest.CaptureFixture[str]
OPTIONS: dict[str, Any] = {
    "task": ["eva:n=64,V=64"],
    "context": "64",
    "cache": "1MiB",
    "layers": "2",
    "set": ["heads=1", "head_dim=16"],
}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"cache": "2"}, "--cache: '2'"),
        ({"cache": None}, "Missing option '--cache'"),
        ({"task": None}, "Missing option '--task'"),
        ({"task": ["evaa"]}, "you mean 'eva'?"),
        ({"context": "0"}, "context is 0"),
        ({"context": "1" + "0" * 30}, "from 1 to 1,000,000,000,000"),
        ({"context": "10^30"}, "context is '10^30'"),
        ({"context": "-5"}, "such as 131072 or 128k"),
        ({"layers": "0"}, "layers: 0; give numbers"),
        ({"layers": "two"}, "--layers 'two': 'two'"),
        ({"layers": "4-2"}, "the smaller first"),
        ({"layers": "9000-9001"}, "20 million"),
        ({"layers": ""}, "no whole number"),
        ({"readers": "3"}, "that many layers"),
        ({"place": "middle"}, "even, start, end"),
        ({"set": ["heads=0"]}, "heads"),
        ({"set": ["heads=1,2"]}, "number of heads"),
        ({"set": ["haeds=1"]}, "you mean 'heads'?"),
        ({"set": ["state=8", "state=9"]}, "given twice"),
        ({"set": ["format=bf17"]}, "unknown number format 'bf17'"),
        ({"base": "qwen4-next"}, "unknown architecture"),
    ],
)
def test_mistakes_on_the_command_line(
    changed, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(words({**OPTIONS, **changed})) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def words(options: dict[str, Any]) -> list[str]:
    """A command line with these options; None leaves one out."""
    given = {
        name: value if isinstance(value, list) else [value]
        for name, value in options.items()
        if value is not None
    }
    return ["design", *(f"--{name}={value}" for name, own in given.items() for value in own)]


def test_the_command_prints_and_exits(capsys: Capsys) -> None:
    assert run([*words(OPTIONS), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["tasks"] == ["eva:n=64,V=64"]
    assert data["proved_sufficient"]
    assert run(words({**OPTIONS, "cache": "1 byte"})) == 1
    assert "Nothing fits" in capsys.readouterr().out


def test_one_reading_layer_is_asked_for_by_name() -> None:
    space = space_of(Choices(layers=(2,), reading=("full|gdn",), heads=2, head_dim=8))
    assert [[part.name for part in layer] for layer in space.readers] == [
        ["full", "gdn"]
    ] * 3  # at every state size
    with pytest.raises(SpecError, match="is no reading layer"):
        space_of(Choices(reading=("gdn",)))


def test_a_budget_and_what_goes_a_little_beyond_it_are_told_apart() -> None:
    """Seven full layers of 3.5 GiB and a state of half a MiB: 3.5005 GiB are more than 3.5."""
    full = layers("full(heads=16, kv_heads=8, head_dim=128, format=bf16)")
    space = Space((8,), full, (layers("gdn(heads=16, head_dim=128, format=bf16)"),), readings=(7,))
    task = parse_task("eva:n=131072,V=131072")
    budget = 7 * 131_072 * 2 * 8 * 128 * 16
    assert budget == 7 * 2**29 * 8
    found = design([task], context=131_072, cache_bits=budget, space=space)
    said = " ".join(obstacles(found))
    assert "--cache 3758620672bytes" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fill", "reader"),
    [
        # the windows show that nothing is embedded: places are what a reader before has counted
        ("window(size=8, positions=none, head_dim=8)", "full(head_dim=32)"),
        # readers without places live on what layers before them count
        (
            "mamba(state=4, width=64, format=bf16, state_format=fp32)",
            "full(positions=none, head_dim=32)",
        ),
    ],
)
@pytest.mark.parametrize("text", ["eva:n=30,V=16", "seqcomp:L=2,m=8,n_1=1"])
def test_layouts_are_proved_where_judge_solves_them(fill: str, reader: str, text: str) -> None:
    task = parse_task(text)
    statuses = set[bool]()
    for readers in (1, 2, 3):
        space = Space((5 + readers,), layers(reader), (layers(fill),), readings=(readers,))
        found = design([task], context=64, cache_bits=1 << 30, space=space)
        proved = {layout.architecture for point in found.proved for layout in point.layouts}
        (arrangement,) = space.arrangements()
        for layout in arrangement.layouts():
            solved = judge(layout.architecture, task)[0].status == "SOLVABLE"
            statuses.add(solved)
            assert (layout.architecture in proved) == solved, layout.architecture.spec
    # three readers, one of which counts, are too few for two steps
    assert len(statuses) == (1 if fill.startswith("window") and text.startswith("seqcomp") else 2)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("retrieval", "index:n=8,V=8"),
        ("match2", "twosum:n=8,M=8,form=query"),
        ("pairs", "twosum:n=8,M=8,form=decision"),
        ("last-layer", "cgram:n=12,V=4,c=2"),
        ("copying", "copying:n=4,V=4"),
        ("counting", "counting:n=24"),
        ("qsa", "qsa:n=8,q=3,V=2"),
        ("equality", "equality:n=4"),
        ("neighbour", "neighbour:n=4,d=12,V=2"),
        ("composition", "seqcomp:L=2,m=8,n_1=1"),
        ("composition", "seqcomp:L=3,m=8,n_1=1,n_2=1"),
        ("encoder", "seqcomp:L=2,m=8,n_1=1"),
    ],
)
def test_no_construction_is_ruled_out_that_has_room(key: str, text: str) -> None:
    """And some stack of as few full layers as it is said to take has room."""
    theorem, task = THEOREMS[key], parse_task(text)
    assert isinstance(theorem, Construction)
    full = layers("full + window(size=99) + dsa(topk=99)")
    kinds = (*full, *layers("full(causal=false) + shortconv(conv=4, width=64)"))
    fewest = list[int]()
    for depth in (1, 2, 3, 4):
        for stack in map(Architecture, product(kinds, repeat=depth)):
            if says("SOLVABLE", theorem, stack, task):
                assert theorem.may_solve(stack, task), stack.spec
                fewest.append(sum(layer in full for layer in stack))
    least = theorem.full
    assert min(fewest) == (least if isinstance(least, int) else least(task))


def test_a_design_names_the_positions_that_its_proofs_rest_on() -> None:
    space = Space((3,), FULL, (GDN,), (1,))
    result = design([parse_task("eva:n=16,V=8")], context=64, cache_bits=1 << 30, space=space)
    assert result.proved
    places, tokens = result.rests_on
    assert places.startswith("positions: ")
    assert "16 token ids" in tokens
    assert set(result.rests_on) <= set(assumptions(result))


def test_theorem_vii_may_speak_of_long_tables_only() -> None:
    """Of three readers of h = 2 and more at the corollary's sizes; of two entries nothing can be
    said.
    """
    tiny = layers(f"full @ {paper_sizes(1, 1, 1)}")
    far = SeqComp(L=3, m=556 * 2**6, branching=(3 * 2, 6 * 2**2))
    near = SeqComp(L=3, m=2, branching=(1, 1))
    space = Space((5,), tiny, (GDN,), readings=(3,))
    assert told_apart((far,), space) >= 3
    assert told_apart((near,), space) == 2


@pytest.mark.slow
def test_placements_are_told_apart_where_theorems_vi_and_vii_may_speak() -> None:
    """Three readers of h = 2 in five layers: every gap counts for the corollary's task, which
    fails; of short tables none of them speaks.
    """
    tiny = layers(f"full @ {paper_sizes(1, 1, 1)}")
    space = Space((5,), tiny, (GDN,), readings=(3,))
    m, n_1, n_2 = 556 * 2**6, 3 * 2, 6 * 2**2
    far = SeqComp(L=3, m=m, branching=(n_1, n_2))
    near = SeqComp(L=3, m=2, branching=(1, 1))
    assert told_apart((near, far), space) == 3
    (apart,) = space.arrangements(told_apart=3)
    assert apart.classes() == len(apart.layouts()) == comb(5, 3)
    alone = Architecture(tiny * 3)
    assert says("FAILS", THEOREMS["VII"], alone, far)


def test_a_layout_that_fails_says_how_badly(capsys: pytest.CaptureFixture[str]) -> None:
    """Beside the layout that is not excluded, one whose states hold 4 heads of 64 x 128 numbers of
    16 bits in each of 4 layers: Theorem A at exactly that many bits.
    """
    arguments = ["design", "--task", "eva:V=50000", "--context", "262144", "--cache", "1MiB"]
    arguments += ["--layers", "4", "--readers", "0", "--set", "state=64,128", "--set", "heads=4"]
    assert run([*arguments, "--json"]) == 0
    (point,) = json.loads(capsys.readouterr().out)["not_excluded"]
    (fewer,) = point["neighbours"]
    bits = 8 * fewer["cache_bytes"]
    assert bits == 4 * 4 * 64 * 128 * 16
    n = 262_143
    at_most = highest_accuracy(Power(50_000, n), n, 50_000, bits)
    assert fewer["accuracy_at_most"] == at_most / 10**6
    assert run(arguments) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].split()[:2] == ["tasks", f"eva:n={n},V=50000"]
    said = " ".join(out.split())
    assert f"at most {percent(at_most)}" in said
