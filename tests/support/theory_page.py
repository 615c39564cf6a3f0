"""docs/theory.md in its sections, and the cells of its tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from support.console import ROOT

PAGE = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
PARTS = ("Statement", "Intuition", "Proof", "Numbers", "Assumed", "Open")


@dataclass(frozen=True)
class Section:
    """What stands below one heading, and the keys of the theorems that it is about."""

    heading: str
    keys: tuple[str, ...]
    text: str

    def part(self, name: str) -> str:
        """What stands behind **name.**"""
        found = re.search(
            rf"^\*\*{name}\.\*\*(.*?)(?=^\*\*(?:{'|'.join(PARTS)})\.\*\*|\Z)",
            self.text,
            re.DOTALL | re.MULTILINE,
        )
        assert found is not None, f"{self.heading}: no {name}"
        return found[1].strip()

    def rows(self, first: str) -> list[list[str]]:
        """The cells of the table whose head begins so, without head."""
        lines = self.text.split("\n")
        start = next(at for at, line in enumerate(lines) if line.startswith(f"| {first} |"))
        table = []
        for line in lines[start + 2 :]:
            if not line.startswith("|"):
                break
            table.append([cell.strip() for cell in line.strip("|").split("|")])
        return table


def sections(page: str) -> Iterator[Section]:
    for block in re.split(r"(?m)^(?=#{2,3} )", page)[1:]:
        heading, _, text = block.partition("\n")
        yield Section(heading.lstrip("# "), tuple(re.findall(r"\(`([^`]+)`\)", heading)), text)


SECTIONS = [section for section in sections(PAGE) if section.keys]


def section(key: str) -> Section:
    (found,) = (section for section in SECTIONS if key in section.keys)
    return found


def integers(cell: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", cell)]
