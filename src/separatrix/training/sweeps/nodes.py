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
    import yaml

MOST_LETTERS = 200_000
"""Letters of a file that are read."""
MOST_DEPTH = 8
"""Lists and mappings inside each other; a sweep needs five."""
MOST_SHOWN = 60
"""Letters of a value that an error quotes."""
TOO_DEEP = f"lists in lists, more than {MOST_DEPTH} deep; a sweep needs five"


@dataclass(frozen=True)
class Node:
    """A text, a list, or a mapping of names to their places and values."""

    place: str
    """What an error begins with: "sweep.yaml, line 3, column 5"."""
    value: str | tuple[Node, ...] | Mapping[str, tuple[str, Node]]
    bare: bool = False
    """A text without quotes, or a list between brackets, where commas part the items."""

    @property
    def items(self) -> tuple[Node, ...] | None:
        return self.value if isinstance(self.value, tuple) else None

    @property
    def fields(self) -> Mapping[str, tuple[str, Node]] | None:
        return self.value if isinstance(self.value, Mapping) else None

    @property
    def text(self) -> str | None:
        return self.value if isinstance(self.value, str) else None

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
        # before anything is built: no alias is followed, and no depth is too deep for Python
        depth = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MOST_DEPTH + 1:
                refuse(_place(where, event.start_mark), TOO_DEEP)
            if isinstance(event, yaml.NodeEvent):
                _check_plain(event, _place(where, event.start_mark))
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = where if mark is None else _place(where, mark)
        refuse(place, _problem(str(error.problem or error.context or "no YAML")))
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        refuse(f"{where}, line {line}", "a character that no text has; save the file as UTF-8")
    if root is None:
        refuse(where, "the file is empty; a sweep has `baseline:` and `grid:`")
    return _tree(root, where)


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
    "another document": "a second document begins; a file holds one sweep",
}
"""What PyYAML says -> what a person can act on."""


def _problem(said: str) -> str:
    for words, meaning in _CLEARER.items():
        if words in said:
            return meaning
    return f"not YAML: {said}"


def _place(where: str, mark: Any) -> str:
    return f"{where}, line {mark.line + 1}, column {mark.column + 1}"


def _check_plain(event: yaml.NodeEvent, place: str) -> None:
    from yaml import AliasEvent

    if isinstance(event, AliasEvent):
        refuse(
            place,
            f"*{event.anchor} is an alias; write the value itself, or put a text"
            " that begins with * into quotes",
        )
    if event.anchor is not None:
        refuse(place, f"&{event.anchor} is an anchor; write the value where it is needed")
    if getattr(event, "tag", None) is not None:
        refuse(place, "a tag (!...) stands here; fields know their types, so leave it out")


def _tree(node: yaml.Node, where: str) -> Node:
    from yaml import ScalarNode, SequenceNode

    place = _place(where, node.start_mark)
    if isinstance(node, SequenceNode):
        items = tuple(_tree(inner, where) for inner in node.value)
        return Node(place, items, bare=bool(node.flow_style))
    if isinstance(node, ScalarNode):
        return Node(place, node.value, bare=node.style is None)
    fields: dict[str, tuple[str, Node]] = {}
    for named, inner in node.value:
        key = _tree(named, where)
        if key.text is None:
            refuse(key.place, "a list or mapping stands where a name is due")
        if key.text in fields:
            before = within(fields[key.text][0])
            refuse(key.place, f"{key.shown} stands twice; it is in {before} already")
        fields[key.text] = (key.place, _tree(inner, where))
    return Node(place, fields)


def from_python(value: object, place: str, depth: int = 0) -> Node:
    """The tree of Python data: mappings, lists, texts and numbers. Raises SpecError for others."""
    if depth > MOST_DEPTH:
        refuse(place, TOO_DEEP)
    if value is None or isinstance(value, str | bool):
        # what is no text is taken by no field, with or without quotes
        return Node(place, str(value))
    if isinstance(value, Integral):
        return Node(place, str(int(value)), bare=True)
    if isinstance(value, Real):
        return Node(place, repr(float(value)), bare=True)
    if isinstance(value, Mapping):
        fields: dict[str, tuple[str, Node]] = {}
        for key, inner in value.items():
            if not isinstance(key, str):
                refuse(place, f"the key {repr(key)[:MOST_SHOWN]} is no text")
            inside = f"{place}.{key[:MOST_SHOWN]}"
            fields[key] = (place, from_python(inner, inside, depth + 1))
        return Node(place, fields)
    # arrays of numpy are no sequences to Python
    if isinstance(value, Sequence) or hasattr(value, "__array__"):
        inner: Any = value
        items = (from_python(one, f"{place}[{n}]", depth + 1) for n, one in enumerate(inner))
        return Node(place, tuple(items))
    refuse(place, f"{repr(value)[:MOST_SHOWN]} is no text, number, list or mapping")
