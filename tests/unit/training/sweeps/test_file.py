"""Sweep files: what they mean, and one line for everything that may be wrong with them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from support.each import each

from separatrix.core.errors import SeparatrixError, SizeError, SpecError, UnknownNameError
from separatrix.models.stored.run import Run
from separatrix.training.sweeps.file import MOST_RUNS, parse_sweep, python_sweep, read_sweep

GOOD = """\
name: widths
baseline:
  task: eva:n=4,V=4   # four numbers
  steps: 200
  learning_rate: 1e-3
grid:
  architecture:
    - full*2
    - {architecture: gdn*2, hidden: 52}
  width: [16, 32]
seeds: 2
"""


def read(text: str) -> list[Run]:
    return list(parse_sweep(text, "a.yaml", name="a").runs)


def test_the_grid_is_every_combination_with_the_seeds_changing_fastest() -> None:
    sweep = parse_sweep(GOOD, "a.yaml", name="a")
    assert sweep.name == "widths"
    assert [(r.architecture, r.hidden, r.width, r.seed) for r in sweep.runs] == [
        ("full*2", 64, 16, 0),
        ("full*2", 64, 16, 1),
        ("full*2", 64, 32, 0),
        ("full*2", 64, 32, 1),
        ("gdn*2", 52, 16, 0),
        ("gdn*2", 52, 16, 1),
        ("gdn*2", 52, 32, 0),
        ("gdn*2", 52, 32, 1),
    ]
    assert {(r.task, r.steps, r.learning_rate) for r in sweep.runs} == {("eva:n=4,V=4", 200, 1e-3)}


def test_a_file_without_a_name_has_that_of_its_path(tmp_path: Path) -> None:
    path = tmp_path / "mqar at two widths.yaml"
    path.write_text("\ufeff" + GOOD.replace("name: widths\n", ""), encoding="utf-8")
    assert read_sweep(path).name == "mqar at two widths"


def test_a_list_of_grids_is_their_union_and_overlaps_are_trained_once() -> None:
    runs = read(
        "baseline: {task: 'eva:n=4,V=4'}\n"
        "grid:\n"
        "  - architecture: [full, gdn]\n"
        "  - architecture: ['full*1']\n"  # the same stack in other words
        "    width: [32, 64, 64]\n"
        "seeds: [7, 7]\n"
    )
    assert [(r.architecture, r.width, r.seed) for r in runs][1:] == [
        ("gdn", 32, 7),
        ("full*1", 64, 7),
    ]
    assert len(runs) == 3


@each(
    "text, number",
    [("1e-3", 1e-3), ("1.0E-3", 1e-3), (".5", 0.5), ("3.", 3.0), ("+2e0", 2.0), ("1", 1.0)],
)
def test_numbers_are_read_as_people_write_them(text: str, number: float) -> None:
    """YAML 1.1 takes 1e-3 for a text, since it has no point."""
    runs = read(f"baseline: {{task: 'eva:n=4,V=4', architecture: full, learning_rate: {text}}}")
    assert [(r.learning_rate, r.seed) for r in runs] == [(number, 0), (number, 1), (number, 2)]


def test_the_same_in_python() -> None:
    source: dict[str, Any] = {
        "baseline": {"task": "eva:n=4,V=4", "steps": np.int64(200), "learning_rate": 1e-3},
        "grid": {
            "architecture": ["full*2", {"architecture": "gdn*2", "hidden": 52}],
            "width": np.array([16, 32]),
        },
        "seeds": range(2),
    }
    assert python_sweep(source, name="widths") == parse_sweep(GOOD, "a.yaml", name="a")
    runs = read(GOOD)
    assert list(python_sweep(runs, name="x").runs) == runs


MQAR = "mqar:vocab_size=64,input_seq_len=32,num_kv_pairs=4"
HEAD = "baseline:\n  task: eva:n=4,V=4\n"
"""Two lines; those of the grid come next."""
FULL = HEAD + "  architecture: full\n"


@each(
    "text, kind, place, words",
    [
        ("", SpecError, "a.yaml", "empty"),
        ("# nothing but words\n", SpecError, "a.yaml", "empty"),
        ("- full\n", SpecError, "line 1", "a mapping with `baseline:` and `grid:`"),
        ("baseline:\n\ttask: eva\n", SpecError, "line 2", "not YAML"),
        ("baseline: {task: [\n", SpecError, "line 2", "not YAML"),
        (FULL + "seeds: 2\nseeds: 3\n", SpecError, "line 5", "twice; it is in line 4"),
        (FULL + "---\nseeds: 3\n", SpecError, "line 4", "another document"),
        ("baseline\n  task: eva\n", SpecError, "line 2", "not YAML: mapping values are not"),
        (FULL + "? [a, b]\n: 1\n", SpecError, "line 4", "where a name is due"),
        ("\0", SpecError, "line 1", "UTF-8"),
        (FULL + "name: \x07\n", SpecError, "line 4", "UTF-8"),
        # what YAML can do and a sweep does not need
        ("a: &a [x, x]\nb: &b [*a, *a]\n", SpecError, "line 1", "an anchor (&)"),
        ("baseline: &one {task: eva}\n", SpecError, "line 1", "an anchor (&)"),
        (FULL + "grid: {width: [*all]}\n", SpecError, "line 4", "an alias (*)"),
        (FULL + "  <<: {width: 3}\n", UnknownNameError, "line 4", "unknown field '<<'"),
        (FULL + "seeds: !!python/object/apply:os.system [a]\n", SpecError, "line 4", "a tag (!)"),
        (FULL + "seeds: " + "[" * 300 + "]" * 300, SpecError, "line 4", "lists in lists"),
        # names
        ("basline:\n  task: eva\n", UnknownNameError, "line 1", "Did you mean 'baseline'?"),
        ("width: 32\n", SpecError, "line 1", "put it under `baseline:` or `grid:`"),
        (HEAD + "  widht: 32\n", UnknownNameError, "line 3", "Did you mean 'width'?"),
        (HEAD + "grid:\n  achitecture: [full]\n", UnknownNameError, "line 4", "'architecture'?"),
        (HEAD + "  seed: 3\n", SpecError, "line 3", "`seeds:` with a count or list"),
        (FULL + "grid: {seeds: [0]}\n", SpecError, "line 4", "`seeds:` with a count or list"),
        (FULL + "  optimiser: adam\n", UnknownNameError, "line 4", "unknown optimiser 'adam'."),
        (HEAD + "grid:\n  architecture: [full, gnd]\n", UnknownNameError, "line 4", "'gdn'"),
        ("baseline: {task: mqr}\n", UnknownNameError, "line 1", "Did you mean 'mqar'?"),
        (FULL + "  schedule: cosin\n", UnknownNameError, "line 4", "Did you mean 'cosine'?"),
        (HEAD + "grid: {width: [3]}\n", SpecError, "line 3", "architecture is not set"),
        (HEAD, SpecError, "line 2", "architecture is not set"),
        # types
        (FULL + "  width: yes\n", SizeError, "line 4", "width is 'yes'; it must be an integer"),
        (FULL + "  width: '32'\n", SizeError, "line 4", "width is '32'"),
        (FULL + "  width: 32.0\n", SizeError, "line 4", "width is '32.0'"),
        (FULL + "  steps: 1e3\n", SizeError, "line 4", "steps is '1e3'"),
        (FULL + "  width: 010\n", SizeError, "line 4", "width is '010'"),
        (FULL + "  width: 0x10\n", SizeError, "line 4", "width is '0x10'"),
        (FULL + "  seconds: 1:30\n", SizeError, "line 4", "seconds is '1:30'"),
        (FULL + "  steps: " + "9" * 5000 + "\n", SizeError, "line 4", "steps is '999"),
        (FULL + "  width:\n", SizeError, "line 4", "width is ''"),
        (FULL + "  width: [3]\n", SizeError, "line 4", "width is ('3',)"),
        (FULL + "  width: {a: 3}\n", SpecError, "line 4", "a mapping stands here"),
        (FULL + "  learning_rate: .inf\n", SizeError, "line 4", "it must be a number"),
        (FULL + "  learning_rate: 1e999\n", SizeError, "line 4", "learning_rate is inf"),
        (FULL + "  learning_rate: fast\n", SizeError, "line 4", "learning_rate is 'fast'"),
        (FULL + "  learning_rate: -1\n", SizeError, "line 4", "learning_rate is -1.0"),
        (FULL + "  batch: 0\n", SizeError, "line 4", "batch is 0; it must be an integer"),
        (FULL + "  longer: n=8\n", SpecError, "line 4", "a list of texts"),
        ("baseline:\n  task:\n", SpecError, "line 2", "task is empty"),
        (FULL + "name: ''\n", SpecError, "line 4", "1 to 100 letters"),
        (FULL + "name: " + "n" * 101 + "\n", SpecError, "line 4", "1 to 100 letters"),
        # grids
        (FULL + "grid: {width: 32}\n", SpecError, "line 4", "write width: [32]"),
        (FULL + "grid: {width: []}\n", SpecError, "line 4", "the grid has no run"),
        (FULL + "grid: []\n", SpecError, "line 4", "an empty list"),
        (FULL + "grid: 3\n", SpecError, "line 4", "a mapping of fields to lists"),
        (FULL + "grid:\n  width:\n  - 32\n  - 032\n", SizeError, "line 7", "width is '032'"),
        (
            HEAD + "grid:\n  architecture:\n  - {hidden: 32}\n",
            SpecError,
            "line 5",
            "not architecture itself",
        ),
        (
            HEAD + "grid:\n  architecture:\n  - {architecture: full, hidden: 3}\n  hidden: [3]\n",
            SpecError,
            "line 6",
            "a field varies in one place",
        ),
        # seeds
        (FULL + "seeds: 0\n", SizeError, "line 4", "seeds is 0"),
        (FULL + "seeds: -1\n", SizeError, "line 4", "seeds is -1"),
        (FULL + "seeds: {a: 1}\n", SpecError, "line 4", "a mapping stands here"),
        (FULL + "seeds: three\n", SizeError, "line 4", "seeds is 'three'"),
        (FULL + "seeds: []\n", SpecError, "line 4", "no run is left"),
        (FULL + "seeds: [-4]\n", SizeError, "line 4", "seed is -4"),
        (FULL + "seeds: 99999999999999\n", SizeError, "line 4", "from 1 to 1,000,000"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(
    text: str, kind: type[SeparatrixError], place: str, words: str
) -> None:
    with pytest.raises(SeparatrixError) as raised:
        read(text)
    message = str(raised.value)
    assert message.startswith(f"a.yaml, {place}" if place != "a.yaml" else "a.yaml: ")
    assert words in message
    assert raised.type is kind


def test_a_huge_grid_is_counted_before_it_is_expanded() -> None:
    hundred = list(range(1, 101))
    axes = "".join(f"  {name}: {hundred}\n" for name in ("width", "hidden", "steps", "batch"))
    text = FULL + f"grid:\n{axes}"
    with pytest.raises(SizeError, match="200,000,000"):
        read(text + "seeds: 2\n")
    assert MOST_RUNS == 1_000_000


@each(
    "text, places",
    [
        # another vocabulary does not fit, whatever the stack
        (
            f"baseline: {{task: '{MQAR}'}}\n"
            "grid:\n"
            "  architecture: [full, gdn]\n"
            "  longer: [[input_seq_len=64],\n"
            "           [vocab_size=128]]\n",
            "a.yaml, line 1, column 18, with line 3: 'vocab_size=128'",
        ),
        # one task has this size, the other has not
        (
            "baseline: {architecture: full}\n"
            "grid:\n"
            f"  task: ['{MQAR}', 'parity:n=8']\n"
            "  longer: [[], [input_seq_len=64]]\n",
            f"a.yaml, line 3, column {14 + len(MQAR)}, with line 1: ",
        ),
        # more numbers than memory has
        (
            FULL + "  width: 15\n  hidden: 999999999999\n",
            "a.yaml, line 2, column 9, with line 3: ",
        ),
    ],
)
def test_an_impossible_combination_names_its_lines(text: str, places: str) -> None:
    with pytest.raises(SeparatrixError) as raised:
        read(text)
    assert str(raised.value).startswith(places)


@each(
    "source, words",
    [
        ({"baseline": {"width": True}}, "sweep.baseline.width: width is 'true'"),
        ({"baseline": {"width": None}}, "sweep.baseline.width: width is 'null'"),
        ({"grid": {"widht": [1]}}, "Did you mean 'width'?"),
        ({"baseline": {3: 4}}, "unknown field '3'"),
        ({"baseline": {"width": {1, 2}}}, "is no text, number, list or mapping"),
        ({"seeds": object()}, "is no text, number, list or mapping"),
        ([], "no runs"),
        ([3], "runs[0] is 3"),
        ([Run(architecture="full", task="evva", seed=0)], "runs[0]: unknown task"),
    ],
)
def test_what_is_wrong_in_python_is_said_with_its_place(source: Any, words: str) -> None:
    with pytest.raises(SeparatrixError) as raised:
        python_sweep(source, name="x")
    assert words in str(raised.value)


def test_files_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SpecError, match=r"no\.yaml: No such file"):
        read_sweep(tmp_path / "no.yaml")
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("name: a\nbaseline: {}  # für".encode("latin-1"))
    with pytest.raises(SpecError, match=r"latin\.yaml, line 2: no UTF-8"):
        read_sweep(latin)
    with pytest.raises(SpecError, match="200,001 letters"):
        parse_sweep("#" * 200_001, "long.yaml", name="long")


VALUES = {
    "architecture": st.sampled_from(["full", "gdn*2", "full|gdn", "(gdn*3 + full)*2"]),
    "steps": st.integers(1, 10**6),
    "width": st.integers(1, 4096),
    "learning_rate": st.floats(1e-9, 1e5),
    "stop_at": st.floats(0.01, 2.0),
    "optimiser": st.sampled_from(["muon", "adamw"]),
    "longer": st.lists(
        st.sampled_from(["input_seq_len=64", "input_seq_len=34"]), max_size=2, unique=True
    ),
}


@settings(deadline=None, max_examples=15)
@given(
    grid=st.fixed_dictionaries(
        {"architecture": st.lists(VALUES["architecture"], min_size=1, max_size=3, unique=True)},
        optional={
            name: st.lists(values, min_size=1, max_size=2, unique_by=repr)
            for name, values in VALUES.items()
            if name != "architecture"
        },
    ),
    seeds=st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=3, unique=True),
    flow=st.booleans(),
)
def test_what_yaml_writes_is_read_back(
    grid: dict[str, list[Any]], seeds: list[int], flow: bool
) -> None:
    """Whatever PyYAML writes, block style or flow, quoted or not, has the meaning it had."""
    source = {"baseline": {"task": MQAR}, "grid": grid, "seeds": seeds}
    text = yaml.safe_dump(source, default_flow_style=flow, sort_keys=False)
    wanted = [
        Run(task=MQAR, seed=seed, **dict(zip(grid, values, strict=True)))
        for values in itertools.product(*grid.values())
        for seed in seeds
    ]
    assert read(text) == wanted == list(python_sweep(source, name="a").runs)
