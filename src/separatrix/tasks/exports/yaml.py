"""YAML as people write it, for what the exports need: mappings, lists, texts, numbers, and
references to functions. Standard library only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


class Function(str):
    """`module.name` of a function beside the YAML file, for `!function`."""


def yaml(value: Mapping[str, Any]) -> str:
    """`value` in block style; a text of several lines stands as such."""
    return "".join(line + "\n" for line in _mapping(value))


def _mapping(value: Mapping[str, Any]) -> Iterator[str]:
    for key, part in value.items():
        first, *rest = _node(part)
        yield f"{_scalar(key)}:{first}"
        yield from rest


def _node(value: Any) -> Iterator[str]:
    """Lines of a value: the first goes on behind its key, the others stand below it."""
    if isinstance(value, Mapping) and value:
        yield ""
        yield from ("  " + line for line in _mapping(value))
    elif isinstance(value, Sequence) and not isinstance(value, str) and value:
        yield ""
        for item in value:
            lines = list(_mapping(item)) if isinstance(item, Mapping) else [_scalar(item)]
            yield from (f"{'  ' if number else '- '}{line}" for number, line in enumerate(lines))
    elif isinstance(value, str) and _is_block(value):
        # "|-" has no newline at the end, "|" has one, "|+" keeps more
        end = len(value) - len(value.rstrip("\n"))
        yield " |" + ("-", "")[end] if end < 2 else " |+"
        yield from ("  " + line if line else "" for line in value.removesuffix("\n").split("\n"))
    else:
        yield " " + _scalar(value)


def _is_block(text: str) -> bool:
    return (
        "\n" in text.strip("\n")
        and not text.startswith((" ", "\n"))
        and text.replace("\n", "").isprintable()
    )


def _scalar(value: Any) -> str:
    if isinstance(value, Function):
        return f"!function {value}"
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=isinstance(value, str) and not value.isprintable())
