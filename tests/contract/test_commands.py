"""Twelve commands, the main job and one for mixers of your own: what every option of before has
become, and what each use of an old name is told.
"""

from __future__ import annotations

import re
import shlex

import click
import pytest
from support.each import each
from support.named import tree

from separatrix.cli.groups import EXAMPLES, FORMER, HEADINGS, former_option, now
from separatrix.cli.main import run

EVERYWHERE = {"--json", "--import"}
"""One option each, whatever command takes it."""
BEFORE = {
    # command of before: (command that has its options now, its options then)
    "reproduce": ("reproduce", "out quick config seed workers fresh"),
    "analyze": ("analyze", "context set pattern memory weights batch kv why"),
    "check-mechanism": ("check-mechanism", "width set tolerance formats"),
    "audit": ("task", "sizes fitted tested seed"),
    "compare": ("compare", "context set plot memory weights batch kv why"),
    "design": (
        "design",
        "task context cache base layers readers place reading bounded state window block topk heads"
        " kv-heads head-dim format state-format plot all",
    ),
    "construct": ("construct", "out arch kind format prove formats unproved"),
    "constructions": ("list", "markdown"),
    "refute": ("refute", "task budget seed method out"),
    "verify": ("verify", "budget"),
    "precision": ("list", "sizes formats bits most tokens seed out"),
    "sweep": ("train", "store engine workers device address dry-run retry fresh compile"),
    "experiment": ("list", "scale rows recorded check seed out record"),
    "experiment NAME": ("train", "store workers device dry-run out"),
    "trial": (
        "trial",
        "task hours seeds steps store engine workers device address dry-run out",
    ),
    "train": (
        "train",
        "task out seed steps seconds batch optimiser learning-rate weight-decay schedule width"
        " hidden precision curriculum longer tested formats stop-at plateau device compile fresh",
    ),
    "evaluate": ("task", "task tested seed"),
    "tasks": ("list", "markdown"),
    "tasks sample": ("task", "number seed"),
    "tasks export": ("task", "out format train validation test seed tokenizer tokens"),
    "mechanisms": ("list", "markdown"),
    "runs list": ("runs", "store sweep status sort limit"),
    "runs show": ("runs", "store"),
    "runs export": ("runs", "store sweep status metrics"),
    "runs summary": ("runs", "store sweep markdown"),
}


def options(command: str) -> set[str]:
    params = tree().commands[command].params
    return {one.opts[0] for one in params if isinstance(one, click.Option)}


def test_commands_stand_under_headings() -> None:
    listed = [name for lines in HEADINGS.values() for name in lines]
    assert sorted(listed) == sorted(tree().commands) == sorted(EXAMPLES)
    assert len(listed) == 12 + 2


def test_at_most_ninety_options() -> None:
    """Beside those of the page: where it begins, and where it is."""
    own = sum(len(options(name) - EVERYWHERE) for name in tree().commands if name != "explore")
    assert own + len(EVERYWHERE) <= 90
    assert options("explore") - EVERYWHERE == {"--context", "--port"}


@each("old", BEFORE)
def test_every_option_of_before_has_a_place_or_a_reason(old: str) -> None:
    command, names = BEFORE[old]
    for option in (f"--{name}" for name in names.split()):
        if option not in options(command):
            new, why = FORMER[command][option]
            assert new or why, option
            assert new.split(" ")[0] in {"", *options(command)}, option


def test_no_option_of_today_is_called_a_former_one() -> None:
    assert not [
        (command, option)
        for command, former in FORMER.items()
        for option in former
        if option in options(command)
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sweep a.yaml --address h:1 --retry", "train a.yaml --engine ray://h:1 --retry"),
        ("experiment", "list experiments"),
        ("experiment study --rows f.jsonl", "list experiments study --rows f.jsonl"),
        ("experiment depth --workers 2", "train depth --workers 2"),
        ("experiment depth --recorded --json", "list experiments depth --json"),
        ("tasks", "list tasks"),
        ("tasks show eva", "list tasks eva"),
        ("tasks sample eva:n=8 --number 1", "task eva:n=8 sample --number 1"),
        (
            "tasks export eva:n=4 --train 100 --format hf --out d",
            "task eva:n=4 export --rows train=100 --format hf --out d",
        ),
        ("audit twosum --tested 400", "task twosum audit --number 400"),
        ("evaluate d --task eva:n=4 --n 4,8", "task eva:n=4 evaluate d --n 4,8"),
        ("evaluate d", "task NAME evaluate d"),
        ("presets --json", "list presets --json"),
        ("theorems III", "list theorems III"),
        ("theorems show III", "list theorems III"),
        ("mechanisms show gdn", "list mechanisms gdn"),
        ("constructions --markdown", "list constructions"),
        (
            "precision match2 --out m",
            "list constructions match2 --out m --formats fp64,fp32,bf16,fp16",
        ),
        ("precision match2 --bits 4:5", "list constructions match2 --formats p4:5"),
        (
            "precision match2 --formats fp32 --bits=13:26",
            "list constructions match2 --formats fp32 --formats p13:26",
        ),
    ],
)
def test_an_old_command_is_told_the_line_to_type(
    old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(shlex.split(old)) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert re.search(rf"is now: separatrix {re.escape(new)}(?:$|;)", err.strip())


def test_what_never_was_is_no_old_command() -> None:
    assert now("analyse", []) == ""
    assert former_option("analyze", "--contxt") == ""


@pytest.mark.parametrize(
    ("old", "said"),
    [
        ("analyze full --kv fp8", "--kv: it is now --set kv=VALUE"),
        ("analyze full --explain", "--explain: it is now --why"),
        ("trial full gdn --task eva --address h:1", "it is now --engine ray://HOST:PORT"),
        ("design --heads 4", "it is now --set heads=VALUE"),
        ("construct eva:n=4 --out m --prove", "is now --formats all"),
        ("train full --task eva:n=4", "the second word"),
        ("train full eva:n=4 --learning-rate 1", "it is now --set learning_rate=VALUE"),
        ("list experiments depth --recorded", "NAME shows what is"),
        ("check-mechanism gdn --width 8", "it is now --set model_width=VALUE"),
        ("reproduce --fresh", "a new --out begins anew"),
        ("list constructions match2 --bits 12:14", "--bits: it is now --formats pFROM:TO"),
        ("task eva export --tokenizer m --tokens 4k", "--tokens 32k:TOKENIZER"),
    ],
)
def test_an_old_option_is_told_what_replaced_it(
    old: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(shlex.split(old)) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    ["analyze", "compare", "trial", "train", "task", "construct", "refute", "check-mechanism"],
)
def test_a_missing_argument_shows_a_use(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command]) == 2
    assert f"For example: separatrix {EXAMPLES[command]}" in capsys.readouterr().err


@each("command", EXAMPLES)
def test_examples_have_options_that_are_there(command: str) -> None:
    name, *words = shlex.split(EXAMPLES[command])
    assert name == command
    assert {word for word in words if word.startswith("--")} <= options(command)
