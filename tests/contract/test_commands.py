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
