"""What is said of theorems and of their verdicts, read from theorems.md."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from separatrix.stacks.architecture import Architecture


class Words(NamedTuple):
    """A verdict in short, and why it is so; a theorem's have facts in braces, see theorems.md."""

    text: str
    why: str
    short: str = ""
    """What is missing where nothing decides, in a few words for a table."""
    general: bool = False
    """Whether `short` says no more than that nothing is known."""


def lack(short: str, more: str = "", *, general: bool = False) -> Words:
    """What keeps theorems from deciding: in a few words, and what a sentence adds to them."""
    return Words("", short + more, short, general)


WordsByTask = Mapping[str, Words]
ALL = "all"
"""In place of a task's name: words for any that has none of its own."""


class Told(NamedTuple):
    """All that is said of a theorem or a statement."""

    title: str
    statement: str
    premises: tuple[str, ...]
    source: str
    proof_sketch: str
    words: WordsByTask
    """How its verdicts are told, by the name of the task."""
    words_after_thought: WordsByTask
    """The same where the model may write a chain of thought first."""
    says: str = ""
    """Of a construction: which layers it takes, with the numbers of a verdict in braces."""


_INTRODUCED, *_SECTIONS, _SHARED = (
    Path(__file__)
    .with_name("theorems.md")
    .read_text(encoding="utf-8")
    # what goes on is indented
    .replace("\n  ", " ")
    .split("\n\n# ")
)
SHARED: dict[str, str] = dict(
    line[1:].split("]: ", 1) for line in _SHARED.splitlines() if line.startswith("[")
)
"""Premises that several theorems share, or that verdicts rest on."""
TOLD: dict[str, Told] = {}
"""Key of a theorem, or "known KEY" of a statement -> what is said of it."""

_ELSEWHERE = "step by step in docs/theory.md, under its key"
_WHEN = {"": (0,), "after thought)": (1,), "also after thought)": (0, 1)}


def _told(title: str, lines: list[str], asked: list[str]) -> Told:
    """A section of the file: its lines, and how verdicts are told."""
    premises = [line[2:] for line in lines if line.startswith("- ")]
    source, proof = (
        next((line.removeprefix(label) for line in lines if line.startswith(label)), _ELSEWHERE)
        for label in ("Source: ", "Proof: ")
    )
    told = [line.removeprefix("Told: ") for line in lines if line.startswith("Told: ")]
    says = "".join(line.removeprefix("Says: ") for line in lines if line.startswith("Says: "))
    words: tuple[dict[str, Words], dict[str, Words]] = ({}, {})
    words[0].update((ALL, Words("{statement}", why)) for why in told)
    for section in asked:
        heading, *said = section.splitlines()
        heading, _, other = heading.partition(": as ")
        names, _, when = heading.partition(" (")
        for place in _WHEN[when]:
            for name in names.split(", "):
                own = None if other else Words(said[0] if said[1:] else "{statement}", said[-1])
                words[place][name] = own or TOLD[other].words[name]
    if says and not any("may be chosen" in premise for premise in premises):
        premises.append("[chosen weights]")
    spelled = tuple(one for premise in premises for one in _spelled(premise))
    return Told(title, lines[0], spelled, source, proof, *words, says)


def _spelled(premise: str) -> list[str]:
    """A premise; of a name in brackets all that it stands for."""
    if not premise.startswith("["):
        return [premise]
    return [one for part in SHARED[premise[1:-1]].split(" | ") for one in _spelled(part)]


for _section in _SECTIONS:
    _lines, *_asked = _section.split("\n## ")
    _key, _, _title = _lines.splitlines()[0].partition(": ")
    TOLD[_key] = _told(_title, _lines.splitlines()[1:], _asked)


KNOWN = {key.removeprefix("known "): told for key, told in TOLD.items() if key.startswith("known ")}
"""Statements that decide nothing by themselves here."""


def kept(architecture: Architecture) -> str:
    """What carries the past in a stack whose cache is too small: "states and windows"."""
    groups = {part.group for layer, _ in architecture.counted() for part in layer}
    names = {
        "recurrent": "states",
        "windowed": "windows",
        "convolution": "convolution buffers",
        "full": "keys and values",
        "indexed": "keys and values",
    }
    found = dict.fromkeys(name for group, name in names.items() if group in groups)
    return " and ".join(found) or "nothing"


def layers_of(architecture: Architecture) -> str:
    """The layers that mix tokens, by kind: "18 RG-LRU layers and 1 Mamba layer"."""
    kinds: dict[str, int] = {}
    for layer, times in architecture.counted():
        # "full attention beside Mamba"
        if kind := " beside ".join(dict.fromkeys(p.title for p in layer if p.mixes_tokens)):
            kinds[kind] = kinds.get(kind, 0) + times
    counted = [counted_as(times, f"{kind} layer") for kind, times in kinds.items()]
    return " and ".join(counted) or "no layer"


def counted_as(count: int, thing: str) -> str:
    """A number of things: "1 step", "2 steps"."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
