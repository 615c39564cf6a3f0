"""YAML, or Python data, as a tree in which every value knows its place.

Scalars stay texts: what one means is decided by the field it is for, never by YAML's guesses, to
which `1e-3` is a text, `no` false and `010` eight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NoReturn

from separatrix.core.errors import SeparatrixError, SpecError

if TYPE_CHECKING:
    import yaml

MOST_LETTERS = 200_000
MOST_DEPTH = 8
"""Lists and mappings inside each other; a sweep needs five."""
MOST_SHOWN = 60
"""Letters of a value that an error quotes."""
TOO_DEEP = f"lists in lists, more than {MOST_DEPTH} deep; a sweep needs five"


@dataclass(frozen=True)
class Node:
    """A text, a list (`items`) or a mapping (`fields`)."""

    place: str
    """What an error begins with: "sweep.yaml, line 3, column 5"."""
    text: str | None = None
    items: tuple[Node, ...] | None = None
    fields: Mapping[str, Node] | None = None
    bare: bool = False
    """A text without quotes, or a list between brackets, where commas part the items."""
    named: str = ""
    """In a mapping, the place of its name."""

    @property
    def shown(self) -> str:
        """A text as an error quotes it."""
        return f"'{(self.text or '')[:MOST_SHOWN]}'"


def refuse(place: str, message: str) -> NoReturn:
    """Raises SpecError for what stands at a place."""
    raise SpecError(f"{place}: {message}")


def within(place: str) -> str:
    """A place for whoever knows the file already: "line 3"."""
    _, comma, line = place.rpartition(", line ")
    return f"line {line.partition(',')[0]}" if comma else place


@contextmanager
def placed(place: str) -> Iterator[None]:
    """An error of what is done inside names the place first."""
    try:
        yield
    except SeparatrixError as error:
        # a run does not know that it stands in a sweep
        raise type(error)(f"{place}: {str(error).removeprefix('training: ')}") from None


def from_yaml(text: str, where: str) -> Node:
    """The tree of a YAML text; `where` names the text in errors. Raises SpecError for what is not
    YAML, or is more than a sweep needs: anchors, tags, several documents, deep nesting.
    """
    import yaml
    from yaml.reader import ReaderError

    if len(text) > MOST_LETTERS:
        raise SpecError(
            f"{where} has {len(text):,} letters; a sweep's file has {MOST_LETTERS:,} at most."
            " A sweep of very many runs is easier said in Python: sx.sweep(runs, store=...)"
        )
    try:
        # of events a tree, so that no alias is followed and no depth is too deep for Python
        events = iter(yaml.parse(text, Loader=yaml.SafeLoader))
        root = None
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent) and root is not None:
                place = _place(where, event.start_mark)
                refuse(place, "a second document begins; a file holds one sweep")
            if isinstance(event, yaml.NodeEvent):
                root = _tree(event, events, where)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = where if mark is None else _place(where, mark)
        refuse(place, _problem(str(error.problem or error.context or "no YAML")))
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        refuse(f"{where}, line {line}", "a character that no text has; save the file as UTF-8")
    if root is None:
        refuse(where, "the file is empty; a sweep has `baseline:` and `grid:`")
    return root


_CLEARER = {
    "'\\t'": "a tab; YAML is indented with blanks",
    "mapping values are not allowed here": (
        "a colon with a blank behind it inside a value, a line indented by mistake, or a line"
        " before it that lacks its colon; put a text with ': ' into quotes"
    ),
    "could not find expected ':'": "a line that is neither `key: value` nor `- value`",
    "expected <block end>": "a line that is indented otherwise than those it belongs to",
    "cannot start any token": "a value begins with a sign that YAML keeps for itself; put it into"
    " quotes",
}
"""What PyYAML says -> what a person can act on."""


def _problem(said: str) -> str:
    found = (meaning for words, meaning in _CLEARER.items() if words in said)
    return next(found, f"not YAML: {said}")


def _place(where: str, mark: Any) -> str:
    return f"{where}, line {mark.line + 1}, column {mark.column + 1}"


def _tree(event: Any, events: Iterator[yaml.Event], where: str, depth: int = 0) -> Node:
    """What begins with an event; the events of what is inside are taken."""
    import yaml

    place = _place(where, event.start_mark)
    if depth > MOST_DEPTH:
        refuse(place, TOO_DEEP)
    if isinstance(event, yaml.AliasEvent):
        refuse(
            place,
            f"*{event.anchor} is an alias; write the value itself, or put a text"
            " that begins with * into quotes",
        )
    if event.anchor is not None:
        refuse(place, f"&{event.anchor} is an anchor; write the value where it is needed")
    if event.tag is not None:
        refuse(place, "a tag (!...) stands here; fields know their types, so leave it out")
    if isinstance(event, yaml.ScalarEvent):
        return Node(place, text=event.value, bare=event.style is None)
    inside: list[Node] = []
    while not isinstance(inner := next(events), yaml.CollectionEndEvent):
        inside.append(_tree(inner, events, where, depth + 1))
    if isinstance(event, yaml.SequenceStartEvent):
        return Node(place, items=tuple(inside), bare=bool(event.flow_style))
    fields: dict[str, Node] = {}
    for key, value in zip(inside[::2], inside[1::2], strict=True):
        if key.text is None:
            refuse(key.place, "a list or mapping stands where a name is due")
        if key.text in fields:
            before = within(fields[key.text].named)
            refuse(key.place, f"{key.shown} stands twice; it is in {before} already")
        fields[key.text] = replace(value, named=key.place)
    return Node(place, fields=fields)


def from_python(value: object, place: str, depth: int = 0) -> Node:
    """The tree of Python data: mappings, lists, texts and numbers. Raises SpecError for others."""
    if depth > MOST_DEPTH:
        refuse(place, TOO_DEEP)
    if value is None or isinstance(value, str | bool):
        # what is no text is taken by no field, with or without quotes
        return Node(place, text=str(value))
    if isinstance(value, Integral):
        return Node(place, text=str(int(value)), bare=True)
    if isinstance(value, Real):
        return Node(place, text=repr(float(value)), bare=True)
    if isinstance(value, Mapping):
        fields: dict[str, Node] = {}
        for key, inner in value.items():
            if not isinstance(key, str):
                refuse(place, f"the key {repr(key)[:MOST_SHOWN]} is no text")
            node = from_python(inner, f"{place}.{key[:MOST_SHOWN]}", depth + 1)
            fields[key] = replace(node, named=place)
        return Node(place, fields=fields)
    # arrays of numpy are no sequences to Python
    if isinstance(value, Sequence) or hasattr(value, "__array__"):
        every: Any = value
        items = (from_python(one, f"{place}[{n}]", depth + 1) for n, one in enumerate(every))
        return Node(place, items=tuple(items))
    refuse(place, f"{repr(value)[:MOST_SHOWN]} is no text, number, list or mapping")
