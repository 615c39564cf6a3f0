"""The parts of an explanation: each has a heading for people and a key for machines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

ABOUT = "about"
"""The key of the first part, whose heading is the name and title of what is explained."""


class Part(NamedTuple):
    """A key in snake case, the heading it has in print, and the text below."""

    key: str
    heading: str
    text: str


def keyed(pairs: Iterable[tuple[str, str]]) -> list[Part]:
    """Headings and texts with keys: "prefix classes" has prefix_classes, and what stands in
    brackets, such as "(after 4,096 tokens)", belongs to no key.
    """
    (first, text), *others = pairs
    return [Part(ABOUT, first, text), *(Part(_key(head), head, body) for head, body in others)]


def _key(heading: str) -> str:
    return heading.partition(" (")[0].replace(" ", "_")
