"""LaTeX formulas of Markdown documents: found as GitHub finds them, and what is wrong with them. No
TeX is needed; what MathJax would stop at, or Markdown spoil before MathJax sees it, is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from support.named import prose

COMMANDS = frozenset(
    re.findall(
        r"\w+",
        """
        alpha ast begin beta binom cdot cdots cos cr delta Delta dots end epsilon exp frac gamma ge
        in lambda Lambda langle lbrace lceil le left leftarrow lfloor ln log mathbb mathcal mathrm
        max mid min ne Omega otimes phi Pi pi pm prod qquad quad rangle rbrace rceil rfloor rho
        right sigma sin sqrt subseteq sum sup tau text theta times to varepsilon varphi Vert
        """,
    )
)
"""Commands that MathJax knows and this project's documents use."""
_DISPLAY = re.compile(r"^\$\$(.*?)\$\$$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_INLINE = re.compile(r"\$([^$]+)\$")
_TOKEN = re.compile(r"\\([A-Za-z]+|.)|([{}&_^])", re.DOTALL)


def formulas(text: str) -> Iterator[tuple[int, str]]:
    """(line number, formula) of every formula outside of code."""
    for line, formula, _ in _found(text):
        yield line, formula


def faults(text: str) -> list[str]:
    """What is wrong with a document's formulas, each with its line."""
    found = [
        f"{line}: {fault}: ${formula}$"
        for line, formula, around in _found(text)
        for fault in (*_wrong(formula), *_outside(around))
    ]
    left = _without_formulas(text)
    found += [
        f"{number}: a dollar sign that opens or closes nothing"
        for number, line in enumerate(left.split("\n"), 1)
        if "$" in line
    ]
    return found


def _plain(text: str) -> str:
    """The text with blanks in place of code, so that places stay."""
    return _CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), prose(text))


def _found(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, formula, and the characters before and behind an inline one ("" for displayed)."""
    plain = _plain(text)
    for formula in _DISPLAY.finditer(plain):
        yield plain.count("\n", 0, formula.start()) + 1, formula[1], ""
    for number, line in enumerate(_blank(_DISPLAY, plain).split("\n"), 1):
        for formula in _INLINE.finditer(line):
            before = line[formula.start() - 1 : formula.start()] or " "
            yield number, formula[1], before + (line[formula.end() : formula.end() + 1] or " ")


def _without_formulas(text: str) -> str:
    return "\n".join(_INLINE.sub("", line) for line in _blank(_DISPLAY, _plain(text)).split("\n"))


def _blank(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def _outside(around: str) -> Iterator[str]:
    """GitHub takes a dollar sign for one of a formula only beside blanks and punctuation."""
    if around and not re.match(r"[\s(\[|:,\"*].|^\s", around):
        yield f"{around[0]!r} stands before the dollar sign"
    if around and not re.match(r"[\s.,;:!?)\]|\"'*]", around[1]):
        yield f"{around[1]!r} stands behind the dollar sign"


def _wrong(formula: str) -> Iterator[str]:
    open_: list[str] = []
    fences = 0
    for found in _TOKEN.finditer(formula):
        command, mark = found[1], found[2]
        if mark == "{":
            open_.append("{")
        elif mark == "}":
            if not open_ or open_.pop() != "{":
                yield "a brace that closes nothing"
                return
        elif mark in ("_", "^"):
            if not re.match(r"[\\{\w*']", formula[found.end() :]):
                yield f"nothing stands behind {mark}"
        elif command and not command.isalpha():
            if command not in " ":  # Markdown takes the backslash before punctuation away
                yield f"\\{command} does not reach MathJax; write a word"
        elif command and command not in COMMANDS:
            yield f"\\{command} is no command that is known here"
        elif command in ("left", "right"):
            fences += 1 if command == "left" else -1
            if fences < 0 or not re.match(
                r"\s*([()\[\]|.]|\\[lr](ceil|floor|brace)|\\[lr]angle|\\vert)",
                formula[found.end() :],
            ):
                yield f"\\{command} without its partner or its bracket"
        elif command in ("begin", "end"):
            name = re.match(r"\{(cases|aligned|matrix)\}", formula[found.end() :])
            if name is None or (command == "end" and name[1] not in open_):
                yield f"\\{command} of no environment"
                return
            if command == "begin":
                open_.append(name[1])
            elif open_.pop() != name[1]:
                yield "environments that cross"
                return
    if open_ or fences:
        yield "a brace, an environment or a \\left that nothing closes"
    if re.search(r"<[A-Za-z/!]", formula):
        yield "a tag of HTML; put a blank behind <"
    if formula != formula.strip() and "\n" not in formula:
        yield "a blank inside the dollar signs"
