"""Typed access to the fields of a config.json: a field is right, or the error names it. None has a
default that is a guess, and a size that is not there is unknown and named.
"""

from __future__ import annotations

import difflib
import re
import reprlib
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from separatrix.core.errors import ConfigError
from separatrix.core.evidence.canonical import json_list, json_object
from separatrix.stacks.mechanisms import Mechanism, check_size_names

OF_THE_TYPE = "'model_type' is"
"""How a note begins of a file whose model type no row is for."""


@dataclass(frozen=True)
class Unknown:
    """A size that the file does not give; `looked_for` says under which fields. Reckoning with
    it gives an unknown size again.
    """

    looked_for: tuple[str, ...]

    def _with(self, other: Size) -> Unknown:
        theirs = other.looked_for if isinstance(other, Unknown) else ()
        return Unknown(tuple(dict.fromkeys((*self.looked_for, *theirs))))

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = (
        _with
    )


Size = int | Unknown
Value = int | str | bool | None | Unknown


@dataclass(frozen=True, eq=False)
class Draft:
    """A mechanism with the sizes a file gives. Raises UnknownNameError for a size the mechanism
    does not have.
    """

    cls: type[Mechanism]
    sizes: Mapping[str, Value]
    file: Fields
    """The fields that it was made of."""

    def __post_init__(self) -> None:
        check_size_names(self.cls, self.sizes)


Layers = tuple[tuple[Draft, ...], ...]
"""Drafts of every layer; more than one: side by side."""


def mapped(layers: Layers, change: Callable[[Draft], Draft]) -> Layers:
    """The layers with each draft changed; those that share one share it afterwards too."""
    made = {id(draft): draft for layer in layers for draft in layer}
    made = {key: change(draft) for key, draft in made.items()}
    return tuple(tuple(made[id(draft)] for draft in layer) for layer in layers)


LARGEST = 10**9
WIDTHS = ("hidden_size", "n_embd", "d_model", "embedding_dim")
"""How files call the width of a model."""
MOST_LAYERS = 10_000

_TABLES = tomllib.loads(Path(__file__).with_name("fields.toml").read_text(encoding="utf-8"))
FIELDS: dict[str, dict[str, list[str]]] = {
    table: {key: text.split() for key, text in rows.items()} for table, rows in _TABLES.items()
}
"""Names that are known, by what is known of them."""
FORMATS = {"float64": "fp64", "float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
_RECURRENT = ("mamba_", "ssm_", "linear_", "lightning_", "rwkv_", "lru_")

_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = 60


def missing(*names: str) -> str:
    first, *others = names
    also = f" (also looked for {', '.join(others)})" if others else ""
    return f"'{first}' is missing{also}"


def shown(value: Any) -> str:
    """A value from a file as it may stand in a message: short, on one line."""
    try:
        return _short.repr(value)
    except ValueError:  # Python does not print integers of more than 4,300 digits
        return f"a value of type {type(value).__name__} too large to print"


def some(names: Sequence[str]) -> str:
    """The first of these fields, as a message lists them."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(f"'{name[:60]}'" for name in names[:5]) + more


@cache
def one_of(words: str) -> re.Pattern[str]:
    """A regular expression for any of these words of fields.toml."""
    return re.compile("|".join(FIELDS["words"][words]))


def holds(words: str, text: str) -> bool:
    """Whether any of them is in a text."""
    return one_of(words).search(text) is not None


@dataclass(frozen=True)
class Fields:
    """The fields of one model; `where` begins every message. A field that is null counts as
    absent.

    `read` are the names that a reader has asked for so far: what it never asked for, it does not
    know (`unread`). `notes` are what it assumed.
    """

    data: Mapping[str, Any]
    where: str
    read: set[str] = field(default_factory=set[str], compare=False, repr=False)
    notes: list[str] = field(default_factory=list[str], compare=False, repr=False)
    layer: int = 0
    """Of which the kind is asked, by rules that tell layers by their numbers."""
    most: int = LARGEST
    """Of a size, where nothing else is said."""

    def note(self, *texts: str) -> None:
        """Says what was assumed, once."""
        self.notes.extend(text for text in dict.fromkeys(texts) if text not in self.notes)

    def assume(self, what: str) -> None:
        self.note(f"{what} (assumed): the file does not say, and transformers takes it so")

    def error(self, text: str) -> ConfigError:
        return ConfigError(f"{self.where}: {text}")

    def wrong(self, name: str, rule: str) -> ConfigError:
        """The error for a field that breaks a rule, which follows "it must"."""
        return self.error(f"'{name}' is {shown(self.data.get(name))}; it must {rule}")

    def check_entries(
        self, name: str, entries: Iterable[Any], right: Callable[[Any], bool], rule: str
    ) -> None:
        """Raises ConfigError for the first entry of a list that breaks a rule."""
        for place, entry in enumerate(entries, 1):
            if not right(entry):
                raise self.error(f"entry {place} of '{name}' is {shown(entry)}; it must {rule}")

    def has(self, name: str) -> bool:
        return self.value(name) is not None

    def value(self, name: str) -> Any:
        """What stands there, None where the field is absent; from now on it counts as read."""
        self.read.add(name)
        return self.data.get(name)

    def harmless(self, *names: str) -> None:
        """Says that these fields change nothing that is read from the file: they count as read."""
        self.read.update(names)

    def replaced(self, **changes: Any) -> Fields:
        """The same file with other values in some fields, or more of them."""
        return self.with_data({**self.data, **changes})

    def with_data(self, data: Mapping[str, Any]) -> Fields:
        """Other data of the same file: what is read and assumed there is so here."""
        return replace(self, data=data)

    def section(self, name: str) -> Fields:
        """These fields and those of the object `name`, spelled "name.field". Raises ConfigError
        where `name` is there and no object.
        """
        inner = self.value(name)
        if inner is None:
            return self
        own = json_object(inner)
        if own is None:
            raise self.wrong(name, "be an object with fields of its own")
        nested = {f"{name}.{key}": value for key, value in own.items()}
        return self.with_data({**self.data, **nested})

    def find(self, *names: str) -> str | None:
        """The spelling under which a field is there. Raises ConfigError when two spellings
        disagree.
        """
        there = [name for name in names if self.has(name)]
        for other in there[1:]:
            if self.data[other] != self.data[there[0]]:
                raise self.unlike(there[0], self.data[there[0]], other, self.data[other])
        return there[0] if there else None

    def unlike(self, name: str, value: Any, other: str, another: Any) -> ConfigError:
        """The error for two fields that say one thing."""
        return self.error(
            f"'{name}' is {shown(value)} and '{other}' is {shown(another)}; they name one thing and"
            " disagree: remove the wrong one"
        )

    def size(self, *names: str, low: int = 1, high: int | None = None) -> Size:
        """The integer in [low, high] under one of these spellings, unknown if it is missing.
        Raises ConfigError if it is no such integer.
        """
        value = self.optional_size(*names, low=low, high=high)
        return Unknown((missing(*names),)) if value is None else value

    def needed(self, *names: str, low: int = 1, high: int | None = None) -> int:
        """As `size`, but raises ConfigError where the field is missing: for what no outline can
        be drawn without.
        """
        return self.known(self.size(*names, low=low, high=high))

    def known(self, size: Size) -> int:
        """The size. Raises ConfigError where it is missing."""
        if isinstance(size, Unknown):
            raise self.error(f"{size.looked_for[0]}, and sizes are not guessed; add it to the file")
        return size

    def optional_size(self, *names: str, low: int = 1, high: int | None = None) -> int | None:
        """As `size`, or None where the field is absent."""
        name = self.find(*names)
        if name is None:
            return None
        value, high = self.data[name], self.most if high is None else high
        # not isinstance: to it true and false are integers
        if type(value) is not int or not low <= value <= high:
            raise self.wrong(name, f"be an integer from {low} to {high:,}")
        return value

    def quotient(self, whole: Size, part: Size, what: str) -> Size:
        """whole / part, where it is an integer by definition; `what` says in field names what is
        divided, for the error.
        """
        if isinstance(whole, int) and isinstance(part, int) and whole % part:
            raise self.error(f"{what} is {whole} / {part}, which is no integer; correct the fields")
        return whole // part

    def flag(self, name: str) -> bool | None:
        """True, false, or None where the field is absent."""
        value = self.value(name)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(name, "be true or false")
        return value

    def number_format(self, *names: str) -> str | None:
        """The number format a dtype field names, or None where no such field is there."""
        name = self.find(*names)
        if name is None:
            return None
        value = self.data[name]
        short = value.removeprefix("torch.") if isinstance(value, str) else ""
        if short not in FORMATS:
            raise self.wrong(name, f"be one of {', '.join(FORMATS)}")
        return FORMATS[short]

    def model_format(self) -> str:
        """The model's number format, from `dtype` or the older `torch_dtype`; bf16 where the file
        states none, which a note says (`notes.format_notes`).
        """
        return self.number_format("dtype", "torch_dtype") or "bf16"

    def layers(self) -> int:
        """Number of layers. Raises ConfigError where it is missing."""
        return self.needed("num_hidden_layers", high=MOST_LAYERS)

    def each_layer(self, name: str, layers: int) -> list[Any]:
        """The entries of a list or text with one for every layer, after which those of layers for
        multi-token prediction may follow. Raises ConfigError for another length.
        """
        value = self.value(name)
        entries = list(value) if isinstance(value, str) else json_list(value)
        if entries is None:
            raise self.wrong(name, "list every layer")
        predicted = self.optional_size("num_nextn_predict_layers", low=0) or 0
        if len(entries) not in (layers, layers + predicted):
            raise self.error(
                f"'{name}' has {len(entries)} entries and must have num_hidden_layers = {layers};"
                " correct one of them"
            )
        return entries[:layers]

    def recurrence(self) -> str:
        """The first field that speaks of a recurrence by its name; "" for none."""
        # keys of a dict from Python may be no texts
        names = (str(name) for name, value in self.data.items() if value is not None)
        return next((name for name in names if name.startswith(_RECURRENT)), "")

    def untold(self, looked_for: Sequence[str]) -> ConfigError:
        """The error for a model whose layers cannot be told apart."""
        there = f"'{found[:60]}' is there but " if (found := self.recurrence()) else ""
        looked = ", ".join(map(repr, looked_for))
        return self.error(
            f"{there}no field says which layers are of which kind (looked for {looked}); add it to"
            " the file, or pass the stack as a spec, such as '(mamba2*7 + full)*4'"
        )

    def unknown(self, known: Collection[str] = ()) -> str:
        """Says that no row is for this model type; of the nearest of the known ones, and how to
        take another's.
        """
        kind = self.value("model_type")
        if kind is None:
            return f"{OF_THE_TYPE} missing"
        text = kind if isinstance(kind, str) else ""
        near = difflib.get_close_matches(text[:60], known, n=1)
        asked = f"did you mean {near[0]}? " if near else ""
        hint = f" ({asked}--set like=TYPE reads it as another)" if known else ""
        return f"{OF_THE_TYPE} {shown(kind)}, which is not known{hint}"

    def unknown_family(self, known: Sequence[str]) -> ConfigError:
        """The error for a model type that no row is for, without the usual fields."""
        return self.error(
            f"{self.unknown(known)}; {len(known)} types are known, such as {', '.join(known[:3])}."
            " For another model, pass the stack as a spec, such as '(gdn*3 + full)*12"
            " @ heads=16, bf16'"
        )
