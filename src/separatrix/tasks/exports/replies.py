"""The answer in what a model wrote: `read(reply, shape)`, or None where it is not clear.

Standard library alone: every folder for lm-evaluation-harness carries this file beside its rows.

Thoughts and markup are left out. An answer stands in a box, in JSON, in <answer>, behind "Answer:"
or "The answer is" up to the end, or is all that is said; with nothing else, it may be the first
line. Nothing else is read: sentences that hold an answer, numbers in words, an answer that is
explained behind it in its own line, or taken back.
"""

import json
import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple


class Shape(NamedTuple):
    """What an answer looks like.

    kind "number": an integer from 0 to size - 1; "arrangement": the numbers 0 to size - 1 in some
    order; "names": `size` names, by their pattern, in the order asked for if `ordered`.
    """

    kind: str
    size: int
    ordered: bool = False
    pattern: str = ""


_THOUGHT = r"think(?:ing)?|thoughts?|reasoning|analysis|scratchpad|reflection"
_ENDS = re.compile(
    rf"(?i)</(?:{_THOUGHT})>|\[/THINK\]|◁/think▷|<\|channel\|>final(?:<\|message\|>)?"
)
_BEGINS = re.compile(rf"(?i)<(?:{_THOUGHT})>|\[THINK\]|◁think▷|<\|channel\|>analysis")
_NEXT = re.compile(r"\n[ \t]*(?:Numbers|Input|Question):")
_BOX = re.compile(r"\\boxed\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
_JSON = re.compile(r'\{\s*"answer"\s*:[^{}]*\}')
_SAID = re.compile(
    r"(?im)<answer>|(?:^|[.!?]\s+)[\W_]{0,20}(?:(?:so|thus|therefore|hence),? )?(?:the )?"
    r"(?:final )?answer(?: is:?|\W{0,20}[:—–]|[\W_]{0,20}$)"
)
_MARKUP = (
    (re.compile(r"~~[^~]*~~"), "?"),
    (
        re.compile(r"```\w*\n|</?[a-z]+>|<\|\w+\|>|\\(?:text\w*|math\w+|left|right|[,;:! ()\[\]])"),
        " ",
    ),
    (re.compile(r"(?m)^[ \t]*(?:#{1,6}|>+|[-+•*]|\d+[.)](?=[ \t]+[A-Za-z]))[ \t]+"), ""),
    (re.compile(r"[*`$]|(?<![\w])_+|_+(?![\w])|[{}](?!\s*\d+\s*,)"), ""),
)
_UNCLEAR = re.compile(
    r"(?i)\b(?:or|either|neither|nor|not|no|unknown|none|if|wrong|incorrect)\b|\?"
)


def read(reply: str, shape: Shape, choices: Sequence[str] = ()) -> str | None:
    """The answer as the rows of an export write it; None where there is none or it is not clear.

    `choices` are all names that can be part of an answer, where these are known.
    """
    said = unicodedata.normalize("NFKC", _NEXT.split(_ENDS.split(reply)[-1])[0])
    if _BEGINS.search(said):
        return None  # a thought that was cut off
    if stated := _BOX.findall(said) or [_from_json(found) for found in _JSON.findall(said)]:
        answers = {_bare(part, shape, choices) for part in stated}
        return answers.pop() if len(answers) == 1 else None
    if announced := list(_SAID.finditer(said)):
        return _bare(said[announced[-1].end() :], shape, choices)
    lines = said.strip().splitlines()
    if (whole := _bare(said, shape, choices)) or len(lines) < 2:
        return whole
    first, *others = (_bare(line, shape, choices) for line in lines)
    return None if set(others) - {None, first} else first


def partly(reply: str, shape: Shape, choices: Sequence[str] = ()) -> str | None:
    """The same; where several names are asked for, fewer of them too: part of the answer."""
    sizes = range(shape.size, 0, -1) if shape.kind == "names" else (shape.size,)
    return next(
        filter(None, (read(reply, shape._replace(size=size), choices) for size in sizes)), None
    )


def share(right: str, said: str, shape: Shape) -> float:
    """The share of names asked for, ordered in their places; of any other answer 1 or 0."""
    if shape.kind != "names":
        return float(right == said)
    names, found = right.split(", "), said.split(", ")
    if shape.ordered:
        return sum(one == other for one, other in zip(names, found, strict=False)) / len(names)
    return len(set(names) & set(found)) / len(names)


def _from_json(text: str) -> str:
    try:
        value = json.loads(text)["answer"]
    except ValueError:
        return ""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _bare(text: str, shape: Shape, choices: Sequence[str]) -> str | None:
    for pattern, instead in _MARKUP:
        text = pattern.sub(instead, text)
    text = text.strip(" \t\n\"'.,;:!()[]{}<>|\\&—–")
    if shape.kind == "names":
        return _names(text, shape, choices)
    named = re.match(r"([\w()]+(?: o [\w()]+)*)\s*=\s*[(\[]?", text)
    # "i_2 = 13" and "f(3) = 13" name what is asked for, "n = 13" and "depth = 13" do not
    if named and (shape.kind == "arrangement" or re.search(r"[_(\d]", named[1])):
        text = text[named.end() :]
    if shape.kind == "number":
        found = re.fullmatch(r"(\d{1,3}(?:,\d{3})+|\d+)(?:\.0+)?", text)
        value = int(found[1].replace(",", "")) if found and len(found[1]) < 20 else -1
        return str(value) if 0 <= value < shape.size else None
    if not re.fullmatch(r"[\d\s,;-]+", text):
        return None
    numbers = list(text) if text.isdigit() else re.findall(r"\d+", text)
    order = [int(number) for number in numbers[: shape.size + 1] if len(number) < 20]
    return f"[{','.join(map(str, order))}]" if sorted(order) == [*range(shape.size)] else None


def _names(text: str, shape: Shape, choices: Sequence[str]) -> str | None:
    """As many names as are asked for, and at most three other words, such as "the castle"."""
    known = {" ".join(name.lower().split()): name for name in choices}
    spelt = "|".join(r"[\s_-]+".join(map(re.escape, name.split())) for name in choices)
    name = re.compile(rf"(?i)(?<![^\W_])(?:{spelt or shape.pattern})(?![^\W_])")
    folded = (" ".join(re.split(r"[\s_-]+", each.lower())) for each in name.findall(text))
    found = list(dict.fromkeys(known.get(each, each.capitalize()) for each in folded))
    rest = re.findall(r"\w+", name.sub(" ", text))
    if len(found) != shape.size or len(rest) > 3 or _UNCLEAR.search(text):
        return None
    return ", ".join(found if shape.ordered else sorted(found))
