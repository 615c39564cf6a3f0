"""How the files of a tree are written.

Lines are lines of text, a comment line holds nothing but a comment, and pragmas are none.
A packed assignment gives one tuple to another, `a, b = x, y`; its share is that among all plain
assignments.
"""

from __future__ import annotations

import ast
import io
import re
import statistics
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from house.classes import longest_chain
from house.sources import Source

WIDTH = 100
PRAGMA = re.compile(r"#\s*(type:|pyright|noqa|ruff|fmt)")


@dataclass(frozen=True)
class Files:
    """How a tree's files are written. Shares are fractions of 1."""

    files: int
    median_lines: float
    largest_lines: int
    largest_file: str
    wide_lines: float
    comment_lines: float
    packed_assignments: float
    longest_chain: list[str]
    underscore_files: int


def files_of(sources: Mapping[str, Source], base: Path) -> Files:
    largest = max(sources.values(), key=lambda source: len(source.lines))
    lines = [line for source in sources.values() for line in source.lines]
    assignments = [node for source in sources.values() for node in assignments_of(source)]
    comments = sum(count_comments(source.text) for source in sources.values())
    return Files(
        files=len(sources),
        median_lines=statistics.median(len(source.lines) for source in sources.values()),
        largest_lines=len(largest.lines),
        largest_file=str(largest.path.relative_to(base)),
        wide_lines=sum(len(line) > WIDTH for line in lines) / len(lines),
        comment_lines=comments / len(lines),
        packed_assignments=sum(map(is_packed, assignments)) / len(assignments),
        longest_chain=longest_chain(sources),
        underscore_files=sum(map(is_private, sources.values())),
    )


def assignments_of(source: Source) -> Iterator[ast.Assign]:
    return (node for node in ast.walk(source.tree) if isinstance(node, ast.Assign))


def is_packed(node: ast.Assign) -> bool:
    """Whether an assignment is `a, b = x, y`."""
    return isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)


def is_private(source: Source) -> bool:
    return source.path.name.startswith("_") and not source.path.name.startswith("__")


def count_comments(text: str) -> int:
    """Lines with a comment and nothing else, pragmas left out."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = (token for token in tokens if token.type == tokenize.COMMENT)
    alone = (token.string for token in comments if token.line.lstrip().startswith("#"))
    return sum(not PRAGMA.match(comment) for comment in alone)
