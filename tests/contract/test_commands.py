"""Twelve commands, the main job and one for mixers of your own: what names of before are told."""

from __future__ import annotations

import shlex

import click
import pytest
from support.each import each
from support.named import tree

from separatrix.cli.groups import EXAMPLES, FORMER, HEADINGS
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
def test_every_option_of_before_has_a_place_or_is_told_of(
    old: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command, names = BEFORE[old]
    for option in (f"--{name}" for name in names.split()):
        if option not in options(command):
            assert run([command, option]) == 2
            said = capsys.readouterr().err
            assert f"{option} is now " in said or f"--set {option[2:].replace('-', '_')}=" in said


def test_no_name_of_today_is_a_former_one() -> None:
    assert not FORMER.keys() & set(EXAMPLES)
    everywhere = set.intersection(*(options(name) for name in tree().commands))
    assert not FORMER.keys() & everywhere


@each("old", [name for name in FORMER if not name.startswith("-")])
def test_an_old_command_is_told_the_line_to_type(
    old: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([old, "eva", "--tested", "4"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    said = err.partition("is now: separatrix ")[2]
    assert said.split()[0] in EXAMPLES


@pytest.mark.parametrize(
    ("old", "said"),
    [
        ("analyze full --kv fp8", "--set kv=VALUE"),
        ("analyze full --explain", "--explain is now --why"),
        ("trial full gdn --task eva --address h:1", "is now --engine ray://HOST:PORT"),
        ("design --task eva --cache 1GiB --heads 4", "--set heads=VALUE"),
        ("construct eva:n=4 --out m --prove", "is now --formats all"),
        ("train full --task eva:n=4", "train STACK TASK"),
        ("train full eva:n=4 --learning-rate=1", "--set learning_rate=VALUE"),
        ("list experiments depth --recorded", "now list experiments NAME"),
        ("reproduce --fresh", "--fresh is now a new --out"),
        ("list constructions match2 --bits 12:14", "--bits is now --formats pFROM:TO"),
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
