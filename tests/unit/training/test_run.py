"""A run: its identity, its texts, and the combinations that no model can be trained with."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import fields, replace
from typing import Any

import pytest
from support.each import each

from separatrix.core.errors import SeparatrixError, SizeError, SpecError, UnknownNameError
from separatrix.core.evidence.canonical import canonical, sha256
from separatrix.models import model
from separatrix.models.stored.run import MOST_NUMBERS, Run
from separatrix.tasks import parse_task

RUN = Run(architecture="full*2 @ heads=1, head_dim=16", task="parity:n=16", seed=3)


def test_the_key_is_the_hash_of_the_canonical_run() -> None:
    whole = RUN.canonical()
    assert whole.canonical() == whole
    assert RUN.key == whole.key == sha256(canonical(whole.to_json()))
    # written otherwise, and the same
    assert replace(RUN, architecture="full + full @ head_dim=16, heads=1").key == RUN.key
    assert replace(RUN, task="parity: n=16").key == RUN.key
    assert replace(RUN, learning_rate=1).key == replace(RUN, learning_rate=1.0).key
    assert replace(RUN, longer=(" n = 32",)).key == replace(RUN, longer=("n=32",)).key
    assert replace(RUN, curriculum=("n=4 @ 10",)).key == replace(RUN, curriculum=("n=4@010",)).key
    assert pickle.loads(pickle.dumps(RUN)).key == RUN.key


CHANGES: dict[str, Any] = {
    "architecture": "full @ heads=1, head_dim=16",
    "task": "parity:n=17",
    "seed": 4,
    "steps": 999,
    "seconds": 1.5,
    "batch": 64,
    "optimiser": "adamw",
    "learning_rate": 1e-3,
    "weight_decay": 0.0,
    "schedule": "linear",
    "width": 16,
    "hidden": 0,
    "precision": "bf16",
    "curriculum": ("n=4@100", "n=8@200"),
    "longer": ("n=32",),
    "tested": 100,
    "formats": ("fp16", "bf16"),
    "stop_at": 2.0,
    "plateau": 50,
    "warmup": 30,
    "rule": "study",
}


def test_every_field_tells_runs_apart_and_comes_back() -> None:
    assert set(CHANGES) == {f.name for f in fields(Run)}
    keys = {RUN.key}
    for name, value in CHANGES.items():
        other = replace(RUN, **{name: value})
        # the study's rule asks for a warm-up in steps
        (other if name != "rule" else replace(other, warmup=30)).check()
        assert Run.from_json(json.loads(json.dumps(other.to_json()))) == other
        keys.add(other.key)
    assert len(keys) == len(CHANGES) + 1


@each(
    "changed, said",
    [
        ({"stop_at": 0.99}, "stop_at is 0.99"),
        ({"plateau": 100}, "its steps alone"),
        ({"seconds": 5.0}, "its steps alone"),
        ({"warmup": 0}, "a share of the steps"),
    ],
)
def test_the_rule_of_stopping_is_kept(changed: dict[str, Any], said: str) -> None:
    kept = replace(RUN, rule="study", warmup=50)
    kept.check()
    with pytest.raises(SizeError, match=said):
        replace(kept, **changed).check()


def test_a_warm_up_is_no_longer_than_training() -> None:
    replace(RUN, warmup=1000).check()
    with pytest.raises(SizeError, match=r"1,001 steps, .*1,000"):
        replace(RUN, warmup=1001).check()


def test_what_says_nothing_is_in_no_key() -> None:
    """So that runs of earlier versions have the keys that they had."""
    assert not {"warmup", "rule", "formats"} & set(RUN.to_json())


def test_what_may_train_together_has_one_shape() -> None:
    for name, value in CHANGES.items():
        same = replace(RUN, **{name: value}).shape == RUN.shape
        assert same == (name in ("seed", "learning_rate", "weight_decay")), name


def test_defaults_may_be_missing_and_nothing_else() -> None:
    data = {"architecture": RUN.architecture, "task": RUN.task, "seed": 3}
    assert Run.from_json(data) == RUN
    for name in data:
        with pytest.raises(SpecError, match=f"needs the field '{name}'"):
            Run.from_json({key: value for key, value in data.items() if key != name})
    with pytest.raises(UnknownNameError, match="'learning_rate'"):
        Run.from_json(data | {"learning-rate": 1.0})
    for other in (None, [], "run", 3):
        with pytest.raises(SpecError, match="a run is an object"):
            Run.from_json(other)


HOSTILE = (
    *(
        None,
        True,
        False,
        -1,
        10**40,
        10**5000,
        2**63,
        math.nan,
        math.inf,
        -math.inf,
        1e308,
        -0.5,
        "",
        "x",
    ),
    *("n=4", [], [[]], [None], {}, {"a": 1}, b"x", "\x1b[31m", "x" * 10_000),
)


@each("name", CHANGES)
def test_any_value_in_any_field(name: str) -> None:
    """It is refused in a short line, or the run comes back from JSON as it is."""
    for value in HOSTILE:
        said = refusal(name, value)
        assert said.isprintable()
        # a spec that cannot be read is quoted
        assert len(said) < (12_000 if name in ("architecture", "task") else 400)


def refusal(name: str, value: object) -> str:
    """What an error says of a run with that value; "" where there is none."""
    try:
        run = replace(RUN, **{name: value})  # pyright: ignore[reportArgumentType]
        run.check()
    except SeparatrixError as error:
        return str(error)
    assert Run.from_json(json.loads(json.dumps(run.to_json()))) == run
    assert type(getattr(run, name)) is type(getattr(RUN, name))
    return ""


@each(
    "change, kind, said",
    [
        ({"steps": 0}, SizeError, "steps is 0"),
        ({"seed": True}, SizeError, "seed is True"),
        ({"learning_rate": 0}, SizeError, "learning_rate is 0"),
        ({"learning_rate": "3e-3"}, SizeError, "learning_rate is '3e-3'"),
        ({"seconds": math.nan}, SizeError, "seconds is nan"),
        ({"optimiser": "moun"}, UnknownNameError, "optimiser 'moun'."),
        ({"schedule": "cosin"}, UnknownNameError, "Did you mean 'cosine'"),
        ({"precision": "fp16"}, UnknownNameError, "Did you mean 'fp32'|bf16"),
        ({"longer": "n=64"}, SpecError, "longer is 'n=64'"),
        ({"task": 3}, SpecError, "task is 3"),
    ],
)
def test_bad_values(change: dict[str, Any], kind: type[SeparatrixError], said: str) -> None:
    with pytest.raises(kind, match=said):
        replace(RUN, **change)


@each(
    "change, kind, said",
    [
        ({"task": "parity:n=9999999999999"}, SizeError, "n is 9999999999999"),
        ({"task": "parity:n=9999999"}, SizeError, r"more than 2\^30"),
        ({"task": "parity:n=9999999", "batch": 1, "width": 512}, SizeError, "tables would hold"),
        ({"task": "parety:n=16"}, UnknownNameError, "Did you mean 'parity'"),
        ({"architecture": "ful"}, UnknownNameError, "Did you mean 'full'"),
        (
            {"architecture": "window(size=64)"},
            SizeError,
            "window: size=64",
        ),
        ({"architecture": "nsa"}, SizeError, "nsa: window=512"),
        ({"architecture": "full + rwkv4"}, SizeError, "'rwkv4'"),
        ({"architecture": "full @ positions=alibi"}, SizeError, "judged, but not trained"),
        ({"architecture": "rwkv @ heads=1, head_dim=16"}, SizeError, "set width=16 for the run"),
        ({"architecture": "full @ heads=4, kv_heads=3"}, SizeError, "does not divide"),
        ({"curriculum": ("n=4",)}, SpecError, "sizes and the step"),
        ({"curriculum": ("@5",)}, SpecError, "no size is named"),
        ({"curriculum": ("n=4@0",)}, SizeError, "ends at step 0"),
        ({"curriculum": ("n=4@20", "n=8@10")}, SizeError, "ends at step 10"),
        ({"curriculum": ("n=4@1000",)}, SizeError, "step 1,000, but training has 1,000"),
        ({"longer": ("n=8",)}, SizeError, "8 tokens, but training shows 16"),
        ({"longer": ("n=32", "n=32")}, SizeError, "stands there twice"),
        ({"longer": ("n=24",), "curriculum": ("n=32@5",)}, SizeError, "24 tokens, but .* 32"),
        ({"longer": ("m=32",)}, UnknownNameError, "unknown size 'm'"),
        ({"task": "eva:n=16", "longer": ("n=64",)}, SizeError, "cannot read both"),
    ],
)
def test_impossible_combinations(
    change: dict[str, Any], kind: type[SeparatrixError], said: str
) -> None:
    run = replace(RUN, **change)
    with pytest.raises(kind, match=said) as found:
        run.check()
    assert "\n" not in str(found.value)


def test_a_window_as_long_as_the_longest_prompt() -> None:
    run = replace(RUN, architecture="window(size=32) @ heads=1, head_dim=8")
    with pytest.raises(SizeError, match="size=32"):
        run.check()
    replace(run, longer=("n=32",)).check()
    replace(run, architecture="window(size=16) @ heads=1, head_dim=8").check()


def test_the_model_has_places_for_the_longest_prompt() -> None:
    assert RUN.length == 16
    assert replace(RUN, longer=("n=24", "n=64")).length == 64
    assert replace(RUN, curriculum=("n=32@10",)).length == 32
    run = replace(RUN, curriculum=("n=4@10", "n=8@20"), longer=("n=64",))
    assert [(stage.task, stage.until) for stage in run.stages] == [
        (parse_task("parity:n=4"), 10),
        (parse_task("parity:n=8"), 20),
    ]
    assert run.longer_tasks == (parse_task("parity:n=64"),)


def test_the_limit_is_the_models_own() -> None:
    assert MOST_NUMBERS == model.MOST_NUMBERS


def test_runs_of_a_sweep_share_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred thousand runs differ in seed and learning rate: their texts are read once."""
    many = [replace(RUN, task="parity:n=19", seed=seed) for seed in range(50)]
    first = many[0]
    assert first.key
    monkeypatch.setattr("separatrix.models.stored.run.parse_task", None)
    assert len({run.key for run in many}) == 50
    assert all(run.shape == first.shape for run in many)
