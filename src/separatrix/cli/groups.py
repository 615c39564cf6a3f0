"""The commands under headings, and what became of commands and options of earlier versions."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from shlex import join
from typing import NamedTuple

import click
from typer.core import TyperGroup

from separatrix.core.errors import SpecError

HEADINGS: dict[str, dict[str, str]] = {
    "The main job": {"reproduce": "the table of results with evidence in every cell"},
    "Judge": {
        "analyze": "one screen: what a model carries, what it can do, what it cannot",
        "compare": "two models or more: what differs first",
        "design": "layouts that meet tasks within a budget of cache",
    },
    "Try": {
        "trial": "your layouts scaled down and trained to the end",
        "train": "one run, or all of a grid's file; goes on where it stopped",
        "runs": "what a store of runs holds: list, show, export, summary",
        "task": "one task: explain, sample, audit, export, ask of a model",
    },
    "Show": {
        "construct": "weights written down, with their proof",
        "refute": "a certificate of failure, or what was searched",
        "verify": "checks evidence without the code that found it",
        "list": "mechanisms, tasks, presets, theorems, constructions",
        "explore": "the same in a browser: drag layers, see what follows",
    },
    "Your own": {"check-mechanism": "every law on a mixer of your own"},
}
"""Heading -> the commands below it, each in a line."""
EXAMPLES = {
    "reproduce": "reproduce --quick",
    "analyze": "analyze qwen3-next-80b --context 262144",
    "compare": "compare qwen3-next-80b recurrentgemma-2b",
    "design": "design --task seqcomp:L=2 --context 131072 --cache 8GiB",
    "trial": "trial '(gdn*3 + full)*2' 'gdn*7 + full' --task recall --hours 2",
    "train": "train 'full*2 @ heads=1, head_dim=16' eva:n=8,V=16",
    "runs": "runs --sort -accuracy",
    "task": "task eva:n=8 sample",
    "construct": "construct seqcomp:L=3,n=4096 --out model/",
    "refute": "refute 'linear @ heads=1, head_dim=2, p3' --task eva:n=8",
    "verify": "verify certificate.json",
    "list": "list mechanisms gdn",
    "explore": "explore qwen3-next-80b --context 262144",
    "check-mechanism": "check-mechanism examples/my_mixer.py:MyMixer",
}
"""Command -> one use that works."""


class Commands(TyperGroup):
    """All commands: listed under headings; what is misspelt or of an earlier version is told."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for names in HEADINGS.values() for name in names]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        longest = max(map(len, self.commands))
        for heading, lines in HEADINGS.items():
            with formatter.section(heading):
                formatter.write_dl([(f"{name:<{longest}}", line) for name, line in lines.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, *others = args
        if name not in self.commands and (new := now(name, others)):
            raise SpecError(f"`separatrix {name}` is now: {new}")
        if name not in self.commands and not name.startswith("-"):
            near = difflib.get_close_matches(name, self.commands, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise SpecError(f"No such command '{name[:60]}'.{hint} `separatrix --help` lists all.")
        return super().resolve_command(ctx, args)


class Former(NamedTuple):
    """An option of an earlier version: what stands for it now ("" for nothing, and why)."""

    now: str
    why: str = ""


_SETTINGS = (
    *("seed", "seconds", "batch", "optimiser", "learning_rate", "weight_decay", "schedule"),
    *("width", "hidden", "precision", "curriculum", "longer", "tested", "formats"),
    *("stop_at", "plateau", "warmup", "rule"),
)
FORMER: dict[str, dict[str, Former]] = {
    "reproduce": {"--fresh": Former("", "a new --out begins anew")},
    "analyze": {"--explain": Former("--why"), "--kv": Former("--set kv=")},
    "compare": {"--explain": Former("--why"), "--kv": Former("--set kv=")},
    "design": {
        **{
            f"--{name.replace('_', '-')}": Former(f"--set {name}=")
            for name in (
                *("heads", "kv_heads", "head_dim", "format", "state_format"),
                *("state", "window", "block", "topk"),
            )
        },
        "--all": Former("--json", "it has every point of the fronts"),
    },
    "trial": {"--address": Former("--engine ray://")},
    "train": {
        "--task": Former("", "the task is the second word: train STACK eva:n=8"),
        "--address": Former("--engine ray://"),
        **{f"--{name.replace('_', '-')}": Former(f"--set {name}=") for name in _SETTINGS},
    },
    "runs": {
        "--metrics": Former("", "a second file takes them: runs export runs.csv metrics.csv"),
        "--markdown": Former("", "a page is a file now: runs export sweep.md"),
    },
    "task": {
        "--tested": Former("--number"),
        "--fitted": Former("--number", "as many are fitted to and judged on"),
        "--task": Former("", "the task comes first: task eva evaluate DIR"),
        **{f"--{name}": Former(f"--rows {name}=") for name in ("train", "validation", "test")},
    },
    "construct": {
        "--prove": Former("--formats all"),
        "--unproved": Former("--formats none"),
    },
    "list": {
        "--recorded": Former("", "list experiments NAME shows what is recorded"),
        "--record": Former("", "it is for this package: tools/experiments.py --record NAME"),
        "--scale": Former("", "laptop was the only one; train GRID.yaml trains any size"),
    },
    "check-mechanism": {"--width": Former("--set model_width=")},
}
"""Command of today -> options that it, or what it was made of, once had."""


def former_option(command: str, option: str) -> str:
    """What stands for an option of an earlier version; "" for one that never was."""
    found = FORMER.get(command, {}).get(option.partition("=")[0])
    if found is None:
        return ""
    if found.now.endswith(("=", "//")):
        return f"it is now {found.now}{'VALUE' if found.now[-1] == '=' else 'HOST:PORT'}"
    return " ".join(filter(None, (found.now and f"it is now {found.now}", found.why)))


def now(name: str, words: Sequence[str]) -> str:
    """The line to type today for a command of an earlier version; "" for one that never was."""
    words = list(words)
    shown = words[1:] if words[:1] == ["show"] else words
    if name in ("theorems", "mechanisms", "presets", "constructions"):
        return _line("list", ["list", name, *shown])
    if name == "tasks" and words[:1] in (["sample"], ["export"]):
        return _line("task", ["task", *(words[1:2] or ["NAME"]), words[0], *words[2:]])
    if name == "tasks":
        return _line("list", ["list", "tasks", *shown])
    if name == "audit":
        return _line("task", ["task", *(words[:1] or ["NAME"]), "audit", *words[1:]])
    if name == "evaluate":
        task, rest = _taken("--task", words)
        return _line("task", ["task", task or "NAME", "evaluate", *rest])
    if name == "sweep":
        return _line("train", ["train", *words])
    if name == "precision":
        given = {"--formats", "--bits"} & {word.partition("=")[0] for word in words}
        asked = [] if given else ["--formats", "fp64,fp32,bf16,fp16"]
        return _line("list", ["list", "constructions", *words, *asked])
    if name == "experiment":
        told = {"--recorded", "--rows", "--check"} & {word.partition("=")[0] for word in words}
        if told or not words or words[0].startswith("-"):
            return _line("list", ["list", "experiments", *words])
        return _line("train", ["train", *words])
    return ""


def _taken(option: str, words: list[str]) -> tuple[str, list[str]]:
    """The value of an option, and the other words."""
    for place, word in enumerate(words):
        if word == option and place + 1 < len(words):
            return words[place + 1], words[:place] + words[place + 2 :]
        if word.startswith(f"{option}="):
            return word.partition("=")[2], words[:place] + words[place + 1 :]
    return "", words


def _line(command: str, words: list[str]) -> str:
    """The words as one line for a shell, their options as they are called today."""
    said: list[str] = []
    reasons: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        option, equals, value = word.partition("=")
        found = FORMER.get(command, {}).get(option) if option.startswith("--") else None
        if found is None:
            said.append(word)
        elif found.now.endswith(("=", "//")):
            value = value if equals else rest.pop(0) if rest else "VALUE"
            one, _, other = found.now.partition(" ")
            said += [one, f"{other}{value}"]
        elif found.now:
            said += [*found.now.split(" "), *([value] if equals else [])]
        else:
            reasons.append(f"{option}: {found.why}")
            if not equals and rest and not rest[0].startswith("-"):
                rest.pop(0)
    return "; ".join([f"separatrix {join(said)}", *reasons])
