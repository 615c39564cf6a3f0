"""The answer in what a model wrote: regular expressions for lm-evaluation-harness, which takes the
first group that matched.

A number or a name counts whatever stands around it: `**5**`, "f(3) = 5", "the castle Pefkor.". Not
read as numbers are parts of other words (i_2), arguments (f(3)), fractions; and neither of two
answers joined by "or" counts.
"""

from __future__ import annotations

from typing import Final

NUMBER: Final = (
    r"(?<![\w./-])(?<!\w\()(?<!\bor )(?!(?<=\d,)\d{3}\b)-?\d+(?:,\d{3})*(?:\.\d+)?(?!\w|/|[.,]\d|"
    r" or\b)"
)
_SAID: Final = r"(?i:\banswer)\W{0,4}(?:is\b|[:=])"
"""Where a model says that the answer comes."""
_LINE: Final = r"\A\s*"
"""The first line that is not empty."""
_ENDS: Final = r"(?=[^\w\n]*(?:\n|\Z)|\s*[.,;:(])"


def alone(answer: str | None) -> str:
    """For an answer by itself; `answer` is the pattern of names, None for numbers.

    In the first line: what stands behind "answer is", else the last number. Of names: what stands
    behind "answer is", else one that the line is about ("Pefkor.", "the castle Pefkor, ...",
    "Pefkor is the castle of ..."), else the last.
    """
    if answer is None:
        return rf"{_LINE}(?:[^\n]*{_SAID}\W*?({NUMBER})|[^\n]*({NUMBER}))"
    name = _name(answer)
    subject = (
        rf"\W*({name})(?=\s+is\s+the\b)|[^\w\n]*(?:(?!{name})[A-Za-z]+[^\w\n]+)*?({name}){_ENDS}"
    )
    return rf"{_LINE}(?:[^\n]*{_SAID}\W*[^\n]*?({name})|{subject}|[^\n]*({name}))"


def after_steps(answer: str | None) -> str:
    """For an answer behind its steps, announced by "answer is" or "answer:".

    Numbers: right behind it, else behind the last "=" of that line, else the last of that line.
    Names: the first.
    """
    if answer is None:
        return rf"{_SAID}(?:\W*?({NUMBER})|[^\n]*=[ $*]*({NUMBER})|[^\n]*({NUMBER}))"
    return rf"{_SAID}\W*[^\n]*?({_name(answer)})"


def _name(pattern: str) -> str:
    return rf"(?<![A-Za-z])(?<!\bor )(?i:{pattern})(?![A-Za-z]| or\b)"
