"""Architectures as text: `full*2 + gdn*24`, `(gdn*3 + full)*12 @ heads=16, bf16`,
`full(heads=2)|gdn`.

    architecture := stack ["@" sizes]
    stack        := item ("+" item)*
    item         := (layer | "(" stack ")") ["*" integer]
    layer        := heads ("|" heads)*     head-wise hybrid: several kinds of heads in one layer
    heads        := name ["(" sizes ")"]
    sizes        := size ("," size)*
    size         := name "=" value | number format (fp32, bf16, fp16, pN)

Sizes after "@" hold for every layer that has them; a layer's own sizes win. `format_spec` writes
the canonical text, and parsing it gives the same architecture back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, NamedTuple

from separatrix.core.errors import SizeError, SpecError, UnknownNameError
from separatrix.core.numbers.formats import NumberFormat
from separatrix.stacks.mechanisms import (
    MECHANISMS,
    Mechanism,
    check_size_names,
    mechanism,
    mechanism_named,
)

MOST_LAYERS = 10_000
MOST_PARTS = 2 * MOST_LAYERS
"""Kinds of heads in all layers together."""
_MOST_LETTERS = 2_000_000
_TOKEN = re.compile(
    r"\s*(?:(?P<name>[A-Za-z_][A-Za-z0-9_-]*)|(?P<integer>[0-9][0-9_]*)|(?P<mark>[-+*()|@,=]))"
)

Layer = tuple[Mechanism, ...]


def shown(text: str) -> str:
    """A text as an error message shows it: on one line, at most 100 characters."""
    line = "".join(letter if letter.isprintable() else " " for letter in text[:101])
    return line if len(line) <= 100 else f"{line[:97]}..."


def check_length(parts: Sequence[int], times: int = 1, *, where: str) -> None:
    """Raises SizeError for a stack of too many layers, or too many kinds of heads in all of them;
    `parts` are the kinds of each layer.
    """
    for count, what, most in (
        (len(parts) * times, "layers", MOST_LAYERS),
        (sum(parts) * times, "kinds of heads in its layers", MOST_PARTS),
    ):
        if count > most:
            raise SizeError(f"'{where[:40]}' has {count:,} {what}; a stack has at most {most:,}")


class _Token(NamedTuple):
    kind: str
    text: str
    place: int


def _tokenise(text: str) -> list[_Token]:
    if len(text) > _MOST_LETTERS:
        raise SizeError(
            f"'{shown(text)}' has {len(text):,} letters; a spec has at most {_MOST_LETTERS:,}"
        )
    tokens: list[_Token] = []
    place = 0
    while place < len(text.rstrip()):
        match = _TOKEN.match(text, place)
        if match is None:
            place += len(text[place:]) - len(text[place:].lstrip())
            told = f"unexpected character {text[place]!r} at position {place} of '{shown(text)}'"
            hint = "; sizes stand in brackets, as in swa(size=512)"
            raise SpecError(told + hint * (text[place] == ":"))
        kind = match.lastgroup or ""
        tokens.append(_Token(kind, match[kind], match.start(kind)))
        place = match.end()
    return [*tokens, _Token("end", "the end", len(text))]


class _Heads(NamedTuple):
    """A mechanism's name and own sizes before the global sizes are known."""

    name: str
    sizes: dict[str, Any]
    place: int

    @property
    def known(self) -> set[str]:
        """All sizes of the mechanism."""
        return {f.name for f in fields(MECHANISMS[self.name])}

    def over(self, common: dict[str, Any]) -> _Heads:
        whole = {k: v for k, v in common.items() if k in self.known} | self.sizes
        return self._replace(sizes=whole)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokenise(text)
        self.next = 0

    def parse(self) -> list[Layer]:
        return [tuple(self._resolve(heads) for heads in layer) for layer in self.parse_sizes()]

    def parse_sizes(self) -> list[tuple[_Heads, ...]]:
        """The layers with the sizes that the text gives them, defaults left out."""
        stack = self._stack(0)
        common: dict[str, Any] = {}
        if self._accept("@"):
            place = self._peek().place
            common = self._sizes()
            one_each = {heads.name: heads for layer in stack for heads in layer}
            known = set[str]().union(*(heads.known for heads in one_each.values()))
            for size in common:
                if size not in known:
                    raise UnknownNameError.of("size", size, known, where=self._at(place))
        if self._peek().kind != "end":
            raise self._unexpected("'+', '*', '|', '@' or the end")
        return [tuple(heads.over(common) for heads in layer) for layer in stack]

    def _resolve(self, heads: _Heads) -> Mechanism:
        try:
            return mechanism(heads.name, **heads.sizes)
        except SizeError as error:
            raise SizeError(f"{error}{self._at(heads.place)}") from None

    def _stack(self, depth: int) -> list[tuple[_Heads, ...]]:
        layers = self._item(depth)
        while self._accept("+"):
            layers += self._item(depth)
            self._limit(layers)
        return layers

    def _item(self, depth: int) -> list[tuple[_Heads, ...]]:
        # the parser recurses, and Python's own limit is not to be what stops it
        if depth > 50:
            raise SpecError(
                f"parentheses nested more than 50 deep in '{self.text[:40]}...'; write the stack"
                " flatter"
            )
        if self._accept("("):
            layers = self._stack(depth + 1)
            self._expect(")")
        else:
            layers = [self._layer()]
        if self._accept("*"):
            times = self._integer("how many times")
            # before the layers are made: repeats of repeats can ask for any number
            self._limit(layers, times)
            layers = layers * times
        return layers

    def _layer(self) -> tuple[_Heads, ...]:
        parts = [self._heads()]
        while self._accept("|"):
            parts.append(self._heads())
        layer = tuple(parts)
        self._limit([layer])
        return layer

    def _heads(self) -> _Heads:
        token = self._take("name", "a mechanism")
        where = self._at(token.place)
        name = mechanism_named(token.text, where=where)
        sizes: dict[str, Any] = {}
        if self._accept("("):
            sizes = self._sizes()
            self._expect(")")
            check_size_names(MECHANISMS[name], sizes, where=where)
        return _Heads(name, sizes, token.place)

    def _sizes(self) -> dict[str, Any]:
        sizes: dict[str, Any] = {}
        while True:
            token = self._take("name", "a size such as heads=4, or a number format")
            if self._accept("="):
                key = token.text
                value = self._value()
            else:
                key = "format"
                value = token.text
                try:
                    NumberFormat(value)
                except SpecError:
                    raise SpecError(
                        f"expected '=' after '{value}'{self._at(token.place)}, or a number format"
                        " (fp32, bf16, fp16, pN)"
                    ) from None
            if key in sizes:
                raise SpecError(f"size '{key}' is given twice{self._at(token.place)}")
            sizes[key] = value
            if not self._accept(","):
                return sizes

    def _value(self) -> Any:
        token = self._peek()
        if token.kind == "integer":
            self.next += 1
            return _bounded_int(token.text, self._at(token.place))
        text = self._take("name", "an integer or a word").text
        return {"true": True, "false": False}.get(text, text)

    def _integer(self, what: str) -> int:
        token = self._take("integer", f"an integer ({what})")
        value = _bounded_int(token.text, self._at(token.place))
        if value < 1:
            raise SizeError(f"repeat count 0{self._at(token.place)}; it must be at least 1")
        return value

    def _limit(self, layers: Sequence[tuple[_Heads, ...]], times: int = 1) -> None:
        check_length([len(layer) for layer in layers], times, where=self.text)

    def _peek(self) -> _Token:
        return self.tokens[self.next]

    def _accept(self, mark: str) -> bool:
        found = self._peek().kind == "mark" and self._peek().text == mark
        self.next += found
        return found

    def _expect(self, mark: str) -> None:
        if not self._accept(mark):
            raise self._unexpected(f"'{mark}'")

    def _take(self, kind: str, expected: str) -> _Token:
        token = self._peek()
        if token.kind != kind:
            raise self._unexpected(expected)
        self.next += 1
        return token

    def _unexpected(self, expected: str) -> SpecError:
        token = self._peek()
        found = "the end" if token.kind == "end" else f"'{token.text}'"
        return SpecError(f"expected {expected}, found {found}{self._at(token.place)}")

    def _at(self, place: int) -> str:
        return f" at position {place} of '{shown(self.text)}'"


def _bounded_int(text: str, where: str) -> int:
    digits = text.replace("_", "")
    if len(digits) > 13:
        raise SizeError(f"the number {digits[:13]}...{where} is too large; sizes go up to 10^12")
    return int(digits)


def parse_layers(text: str) -> tuple[Layer, ...]:
    """The layers of a spec, first layer first. Raises SpecError, UnknownNameError or SizeError,
    each with the position.
    """
    if not text.strip():
        raise SpecError("the architecture is empty; write a stack such as 'full*2 + gdn*24'")
    return tuple(_Parser(text).parse())


def parse_sizes(text: str) -> list[tuple[tuple[str, dict[str, Any]], ...]]:
    """As `parse_layers`, but every mechanism as its name and the sizes that the text gives it;
    values are not checked.
    """
    if not text.strip():
        raise SpecError("the architecture is empty; write a stack such as 'full*2 + gdn*24'")
    return [
        tuple((heads.name, heads.sizes) for heads in layer) for layer in _Parser(text).parse_sizes()
    ]


def format_spec(layers: Sequence[Layer]) -> str:
    """The canonical text: repeats folded, sizes shared by all layers that have them after '@'."""
    words, common = worded(layers)
    return f"{fold(words)} @ {common}" if common else fold(words)


def worded(layers: Sequence[Layer]) -> tuple[list[str], str]:
    """A word for each layer, and the sizes shared by all layers that have them."""
    kinds = dict.fromkeys(layers)
    values: dict[str, set[Any]] = {}
    defaults: dict[str, set[Any]] = {}
    for part in (part for layer in kinds for part in layer):
        for f in fields(part):
            values.setdefault(f.name, set()).add(getattr(part, f.name))
            defaults.setdefault(f.name, set()).add(f.default)
    common = {
        k: next(iter(v))
        for k, v in values.items()
        if len(v) == 1 and None not in v and v != defaults[k]
    }
    words = {layer: _format_layer(layer, common) for layer in kinds}
    return [words[layer] for layer in layers], _format_sizes(common)


def _format_sizes(sizes: dict[str, Any]) -> str:
    return ", ".join(
        f"{k}={str(v).lower() if isinstance(v, bool) else v}" for k, v in sorted(sizes.items())
    )


def _format_layer(layer: Layer, common: dict[str, Any]) -> str:
    texts: list[str] = []
    for part in layer:
        own = {
            f.name: getattr(part, f.name)
            for f in fields(part)
            if f.name not in common and getattr(part, f.name) != f.default
        }
        texts.append(f"{part.name}({_format_sizes(own)})" if own else part.name)
    return "|".join(texts)


def fold(words: Sequence[str]) -> str:
    """Words joined by ' + ', repeats written 'a*3' or '(a + b)*3', the longest repeat at each
    place first.
    """
    items: list[str] = []
    i = 0
    while i < len(words):
        best_period = 1
        best_times = 1
        # longer periods are not tried, which bounds the search at each place
        for period in range(1, min(64, (len(words) - i) // 2) + 1):
            times = 1
            while words[i + times * period : i + (times + 1) * period] == words[i : i + period]:
                times += 1
            if times > 1 and times * period > best_times * best_period:
                best_period = period
                best_times = times
        block = words[i : i + best_period]
        if best_times == 1:
            items.append(words[i])
            i += 1
            continue
        items.append(
            f"{block[0]}*{best_times}" if best_period == 1 else f"({fold(block)})*{best_times}"
        )
        i += best_period * best_times
    return " + ".join(items)
