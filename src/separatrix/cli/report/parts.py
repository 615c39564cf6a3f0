"""The parts of an explanation: each has a heading for people and a key for machines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
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


def section(described: Iterable[tuple[str, str]], wrapped: Callable[[str], str] = str) -> list[str]:
    """An explanation as a section of a page: its first text in a block, then a list; what has
    several lines is a block of its own.
    """
    (title, text), *parts = described
    lines = ["", f"## {title}", "", "```text", wrapped(text), "```", ""]
    for heading, content in parts:
        if "\n" not in content:
            lines.append(f"- {heading}: {content}")
            continue
        # lines of sizes and shifts stand as they are: one line each is what makes them a list
        block = wrapped(content) if "\n\n" in content else content
        lines += ["", f"{heading}:", "", "```text", block, "```"]
    return lines


def paged(lines: Iterable[str]) -> str:
    """The lines as a file, no two blank ones in a row."""
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def slug(title: str) -> str:
    """GitHub's anchor of a heading, by which documents link to each other."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
    return re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
