"""YAML, or Python data, as a tree in which every value knows its place.

Scalars stay texts: what one means is decided by the field it is for, never by YAML's guesses, to
which `1e-3` is a text, `no` false and `010` eight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NoReturn

from separatrix.core.errors import SeparatrixError, SpecError

if TYPE_CHECKING:
    from yaml.events import Event

MOST_LETTERS = 200_000
"""Letters of a file that are read."""
MOST_DEPTH = 8
"""Lists and mappings inside each other; a sweep needs five."""
MOST_SHOWN = 60
"""Letters of a value that an error quotes."""


@dataclass(frozen=True)
class Scalar:
    """A text, with quotes or without."""

    place: str
    """What an error begins with: "sweep.yaml, line 3, column 5"."""
    text: str
    quoted: bool

    @property
    def shown(self) -> str:
        """As an error quotes it."""
        return f"'{self.text[:MOST_SHOWN]}'"


@dataclass(frozen=True)
class Items:
    """A list."""

    place: str
    nodes: tuple[Node, ...]
    flow: bool = False
    """Between brackets, where commas part the items."""


@dataclass(frozen=True)
class Fields:
    """A mapping: name -> (the name's place, the value)."""

    place: str
    nodes: Mapping[str, tuple[str, Node]]


Node = Scalar | Items | Fields


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


# ---- from YAML


def from_yaml(text: str, where: str) -> Node:
    """The tree of a YAML text; `where` names the text in errors. Raises SpecError for what is not
    YAML, or is more than a sweep needs: anchors, tags, several documents, deep nesting.
    """
    from yaml import MarkedYAMLError, SafeLoader, parse
    from yaml.reader import ReaderError

    if len(text) > MOST_LETTERS:
        raise SpecError(
            f"{where} has {len(text):,} letters; a sweep's file has {MOST_LETTERS:,} at most."
            " A sweep of very many runs is easier said in Python: sx.sweep(runs, store=...)"
        )
    try:
        return _Reader(parse(text, Loader=SafeLoader), where).document()
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = where if mark is None else _place(where, mark)
        refuse(place, _problem(str(error.problem or error.context or "no YAML")))
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        refuse(f"{where}, line {line}", "a character that no text has; save the file as UTF-8")


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
    for words, meaning in _CLEARER.items():
        if words in said:
            return meaning
    return f"not YAML: {said}"


def _place(where: str, mark: Any) -> str:
    return f"{where}, line {mark.line + 1}, column {mark.column + 1}"


class _Reader:
    """Builds the tree from PyYAML's events, so that nothing is resolved, merged or repeated."""

    def __init__(self, events: Iterator[Event], where: str) -> None:
        self.events = events
        self.where = where

    def document(self) -> Node:
        from yaml.events import DocumentEndEvent, DocumentStartEvent, StreamEndEvent

        next(self.events)  # the stream's start
        if not isinstance(next(self.events), DocumentStartEvent):
            refuse(self.where, "the file is empty; a sweep has `baseline:` and `grid:`")
        node = self.node(next(self.events), 0)
        assert isinstance(next(self.events), DocumentEndEvent)
        after = next(self.events)
        if not isinstance(after, StreamEndEvent):
            place = _place(self.where, after.start_mark)
            refuse(place, "a second document begins; a file holds one sweep")
        return node

    def node(self, event: Event, depth: int) -> Node:
        from yaml.events import AliasEvent, MappingStartEvent, ScalarEvent

        place = _place(self.where, event.start_mark)
        if isinstance(event, AliasEvent):
            refuse(
                place,
                f"*{event.anchor} is an alias; write the value itself, or put a text"
                " that begins with * into quotes",
            )
        if (anchor := getattr(event, "anchor", None)) is not None:
            refuse(place, f"&{anchor} is an anchor; write the value where it is needed")
        if getattr(event, "tag", None) is not None:
            refuse(place, "a tag (!...) stands here; fields know their types, so leave it out")
        if depth > MOST_DEPTH:
            refuse(place, f"lists in lists, more than {MOST_DEPTH} deep; a sweep needs five")
        if isinstance(event, ScalarEvent):
            return Scalar(place, event.value, quoted=event.style is not None)
        if isinstance(event, MappingStartEvent):
            return self.mapping(place, depth)
        return self.sequence(place, depth, flow=bool(getattr(event, "flow_style", False)))

    def sequence(self, place: str, depth: int, *, flow: bool) -> Node:
        from yaml.events import SequenceEndEvent

        nodes: list[Node] = []
        while not isinstance(event := next(self.events), SequenceEndEvent):
            nodes.append(self.node(event, depth + 1))
        return Items(place, tuple(nodes), flow)

    def mapping(self, place: str, depth: int) -> Node:
        from yaml.events import MappingEndEvent

        nodes: dict[str, tuple[str, Node]] = {}
        while not isinstance(event := next(self.events), MappingEndEvent):
            key = self.node(event, depth + 1)
            if not isinstance(key, Scalar):
                refuse(key.place, "a list or mapping stands where a name is due")
            if key.text in nodes:
                before = within(nodes[key.text][0])
                refuse(key.place, f"{key.shown} stands twice; it is in {before} already")
            nodes[key.text] = (key.place, self.node(next(self.events), depth + 1))
        return Fields(place, nodes)


# ---- from Python


def from_python(value: object, place: str, depth: int = 0) -> Node:
    """The tree of Python data: mappings, lists, texts and numbers. Raises SpecError for others."""
    if depth > MOST_DEPTH:
        refuse(place, f"lists in lists, more than {MOST_DEPTH} deep; a sweep needs five")
    if isinstance(value, str):
        return Scalar(place, value, quoted=True)
    if value is None or isinstance(value, bool):
        # what no field takes, with or without quotes
        return Scalar(place, str(value), quoted=True)
    if isinstance(value, Integral):
        return Scalar(place, str(int(value)), quoted=False)
    if isinstance(value, Real):
        return Scalar(place, repr(float(value)), quoted=False)
    if isinstance(value, Mapping):
        return _from_mapping(value, place, depth)
    # arrays of numpy are no sequences to Python
    if isinstance(value, Sequence) or hasattr(value, "__array__"):
        return Items(
            place,
            tuple(
                from_python(inner, f"{place}[{number}]", depth + 1)
                for number, inner in enumerate(value)  # pyright: ignore[reportArgumentType]
            ),
        )
    refuse(place, f"{repr(value)[:MOST_SHOWN]} is no text, number, list or mapping")


def _from_mapping(value: Mapping[Any, object], place: str, depth: int) -> Fields:
    nodes: dict[str, tuple[str, Node]] = {}
    for key, inner in value.items():
        if not isinstance(key, str):
            refuse(place, f"the key {repr(key)[:MOST_SHOWN]} is no text")
        inside = f"{place}.{key[:MOST_SHOWN]}"
        nodes[key] = (place, from_python(inner, inside, depth + 1))
    return Fields(place, nodes)
