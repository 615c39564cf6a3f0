"""What a row of the table of model types is made of: where the kinds of layers come from, what
each kind is, and which fields hold its sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import fields as sizes_of
from typing import Any, Literal, Protocol

from separatrix.core.evidence.canonical import json_list
from separatrix.stacks.architecture.hf.draft import Draft, Reading, Size, Unknown, Value
from separatrix.stacks.architecture.hf.factors import scaled
from separatrix.stacks.architecture.hf.fields import Fields, shown
from separatrix.stacks.architecture.hf.lists import indices
from separatrix.stacks.architecture.hf.query_norms import Norm
from separatrix.stacks.architecture.hf.ways import USUAL, Way
from separatrix.stacks.mechanisms import Chunked, Full, Mechanism, Window

Of = str | int | tuple[str, ...] | Callable[[Fields], Value]
"""A size of a mixer: the field that holds it, several spellings of it, a number, or a function of
the file.
"""
Maker = Callable[[Fields], Draft]
"""A layer's mixer, made of the fields of a file."""
Found = tuple[list[str], list[str]]
"""The kind of every layer, and what was assumed to tell it."""
Told = Callable[[Fields], Found]
"""Kinds of layers that always are told, where no list is there."""
Otherwise = Callable[[Fields], Found | None]
"""Kinds of layers where no list is there; None where this is not how they are told."""


def value_of(of: Of, fields: Fields) -> Value:
    if callable(of):
        return of(fields)
    if isinstance(of, int):
        return of
    return fields.size(*((of,) if isinstance(of, str) else of))


def _size(of: Of, fields: Fields) -> Size:
    value = value_of(of, fields)
    assert isinstance(value, (int, Unknown)), "a size that is reckoned with is a number"
    return value


def just(text: str) -> Callable[[Fields], str]:
    """A size that is a word."""
    return lambda fields: text


def divisor(name: str, of: str) -> Callable[[Fields], Size]:
    """The field `name`, which must divide the field `of`."""
    return lambda fields: fields.divisor(name, of)


def either(names: str | tuple[str, ...], otherwise: Of) -> Callable[[Fields], Size]:
    """The field of that name, or what the model class takes where it is absent."""
    spellings = (names,) if isinstance(names, str) else names

    def read(fields: Fields) -> Size:
        given = fields.optional_size(*spellings)
        return _size(otherwise, fields) if given is None else given

    return read


def quotient(whole: Of, part: Of, what: str) -> Callable[[Fields], Size]:
    """whole / part; `what` says in field names what is divided."""
    return lambda fields: fields.quotient(_size(whole, fields), _size(part, fields), what)


def times(whole: Of, *factor: str) -> Callable[[Fields], Size]:
    """`whole` times the factor in a field."""
    return lambda fields: scaled(fields, _size(whole, fields), *factor)


def dividing(part: Of, whole: Of, *, named: str = "") -> Callable[[Fields], Size]:
    """`part`, where it divides `whole`; `named` is what `part` is called where it is no field."""

    def read(fields: Fields) -> Size:
        one, all_ = _size(part, fields), _size(whole, fields)
        if isinstance(one, int) and isinstance(all_, int) and all_ % one:
            name = named or _name(part, fields)
            raise fields.error(
                f"{name} is {one}, which does not divide {_name(whole, fields)} = {all_}; correct"
                " one of them"
            )
        return one

    return read


def _name(of: Of, fields: Fields) -> str:
    """The field that a size was read from, for a message."""
    if callable(of) or isinstance(of, int):
        return "the number of heads"
    names = (of,) if isinstance(of, str) else of
    return f"'{fields.find(*names)}'" if names else "the number of heads"


_USUAL: dict[str, Of] = {
    "format": Fields.model_format,
    "state_format": just("fp32"),
    "accumulator": just("fp32"),
    "running_max": True,
}
"""Sizes that are alike in all files, of mechanisms that have them."""


@dataclass(frozen=True, eq=False)
class Mixer:
    """A mechanism, and where its sizes stand."""

    cls: type[Mechanism]
    sizes: dict[str, Of] = field(default_factory=dict[str, Of])
    silent: tuple[str, ...] = ()
    """Fields that size nothing of it."""

    def __call__(self, fields: Fields) -> Draft:
        fields.harmless(*self.silent)
        own = {size.name for size in sizes_of(self.cls)}
        usual = {name: of for name, of in _USUAL.items() if name in own and name not in self.sizes}
        return Draft(
            self.cls,
            {name: value_of(of, fields) for name, of in (*self.sizes.items(), *usual.items())},
        )


HIDDEN_PER_HEAD = quotient(
    "hidden_size", "num_attention_heads", "hidden_size / num_attention_heads"
)
DIM = either("head_dim", HIDDEN_PER_HEAD)
"""`head_dim`, or what the model class makes of others where it is absent."""
KV_STATED = divisor("num_key_value_heads", "num_attention_heads")


def kv_or_heads(fields: Fields) -> Size:
    """`num_key_value_heads`, or as many as query heads where the model class has it so."""
    if fields.has("num_key_value_heads"):
        return fields.divisor("num_key_value_heads", "num_attention_heads")
    return fields.size("num_attention_heads")


def softmax(
    *,
    heads: Of = "num_attention_heads",
    kv: Of = KV_STATED,
    dims: Of = "head_dim",
    window: Of = "sliding_window",
) -> dict[str, Mixer]:
    """Full, sliding and chunked attention with the same heads."""
    sizes: dict[str, Of] = {"heads": heads, "kv_heads": kv, "head_dim": dims}
    return {
        "full": Mixer(Full, sizes),
        "window": Mixer(Window, sizes | {"size": window}),
        "chunked": Mixer(Chunked, sizes | {"size": "attention_chunk_size"}),
    }


class Lists(Protocol):
    """Kinds of layers that fields list one by one."""

    @property
    def field(self) -> str:
        """The field, as messages name it."""
        ...

    def __call__(self, fields: Fields) -> list[str] | None:
        """The kind of every layer, None where the field is absent."""
        ...


@dataclass(frozen=True)
class Listed:
    """A list or text with an entry for every layer, or repeated over the depth. Entries of layers
    for multi-token prediction, which are not part of the stack, may follow.
    """

    field: str
    words: Mapping[Any, str]
    tiled: bool = False

    def __call__(self, fields: Fields) -> list[str] | None:
        if not fields.has(self.field):
            return None
        value = fields.value(self.field)
        layers = fields.layers()
        predicted = fields.optional_size("num_nextn_predict_layers", low=0)
        entries = json_list(value)
        if predicted and entries is not None and len(entries) == layers + predicted:
            fields = fields.with_data({**fields.data, self.field: entries[:layers]})
        return fields.kinds(self.field, self.words, tiled=self.tiled)


@dataclass(frozen=True)
class Numbered:
    """A list of the numbers of the layers of one kind."""

    field: str
    kind: str
    others: str
    base: int | None = 0
    """From where they are numbered; None where the numbers must tell."""

    def __call__(self, fields: Fields) -> list[str] | None:
        if not fields.has(self.field):
            return None
        layers = fields.layers()
        there = set(indices(fields, self.field, layers, base=self.base))
        return [self.kind if i in there else self.others for i in range(layers)]


FULL = {"full_attention": "full", "attention": "full"}
SLIDING = FULL | {"sliding_attention": "window"}
WORDS = SLIDING | {"chunked_attention": "chunked"}
"""`layer_types` of models with softmax attention alone."""
LAYER_TYPES = Listed("layer_types", WORDS)


def everywhere(kind: str, *depth: str, note: str = "", silent: Sequence[str] = ()) -> Told:
    """All layers are of one kind."""

    def read(fields: Fields) -> Found:
        fields.harmless(*silent)
        return [kind] * fields.layers(*depth), [note] if note else []

    return read


def plain(fields: Fields) -> Found:
    """All layers slide if `sliding_window` is set and not switched off, else see every token.
    Raises ConfigError for chunks, which no model class has that is read so.
    """
    sliding = fields.has("sliding_window") and fields.flag("use_sliding_window") is not False
    if not sliding and fields.has("attention_chunk_size"):
        raise fields.error(
            f"'attention_chunk_size' is {shown(fields.data['attention_chunk_size'])}, but attention"
            " of this model type has no chunks; set it to null"
        )
    return ["window" if sliding else "full"] * fields.layers(), []


def every(period: int, *names: str, others: str = "window") -> Told:
    """A full layer every so many layers, the last of each period, as a field says or, where it is
    absent, as transformers takes it.
    """
    or_else = names[0] if names else "any other field for it"

    def read(fields: Fields) -> Found:
        given = fields.optional_size(*names) if names else None
        by = given or period
        kinds = ["full" if (i + 1) % by == 0 else others for i in range(fields.layers())]
        silent = f"{period} layers (assumed): the file has neither 'layer_types' nor '{or_else}'"
        if others == "recurrent":
            silent = f"{period}th layer (assumed): the file does not say"
        note = f"full attention every {silent}, and transformers takes {period}"
        return kinds, [] if given else [note]

    return read


def period(name: str, offset: str, others: str = "recurrent") -> Otherwise:
    """Full where the layer's number leaves `offset` when divided by `name`."""

    def read(fields: Fields) -> Found | None:
        if not fields.has(name):
            return None
        by = fields.needed(name)
        rest = fields.needed(offset, low=0, high=by - 1)
        return ["full" if i % by == rest else others for i in range(fields.layers())], []

    return read


def switched(*, unless_said: bool = False) -> Told:
    """Sliding only if `use_sliding_window` is true (`unless_said` where it is absent),
    `sliding_window` is there, and from layer `max_window_layers` on (Qwen2 and kin).
    """

    def read(fields: Fields) -> Found:
        layers = fields.layers()
        switch = fields.flag("use_sliding_window")
        # without the switch, neither of them says anything
        fields.harmless("sliding_window", "max_window_layers")
        if not (unless_said if switch is None else switch) or not fields.has("sliding_window"):
            return ["full"] * layers, []
        first = fields.needed("max_window_layers", low=0)
        return ["window" if i >= first else "full" for i in range(layers)], []

    return read


Layers = tuple[tuple[Draft, ...], ...]


@dataclass(frozen=True, eq=False)
class Row:
    """What is known of a model type."""

    family: str
    """Whose kin it is: a file whose class is of another family is refused."""
    mixers: Mapping[str, Maker | tuple[Maker, ...]]
    """Kind of layer -> what stands in it, side by side where there are several."""
    lists: tuple[Lists, ...] = (LAYER_TYPES,)
    """What lists the kind of every layer; where several are there they must agree."""
    otherwise: tuple[Otherwise, ...] = (plain,)
    """How layers are told where none of them is there, the first that does."""
    told_by: tuple[str, ...] = ()
    """Fields that `otherwise` cannot do without, for the message where they are missing."""
    classes: tuple[str, ...] = ()
    """Names in `architectures` that are not made of the model type, and stand for it."""
    stateful: bool = False
    """Whether some kinds are recurrences or convolutions, whose fields are then its own."""
    before: Callable[[Fields], Fields] = lambda fields: fields
    """What is looked at first: fields that are refused, sections that are opened."""
    silent: tuple[str, ...] = ()
    """Fields that change nothing in this model type."""
    defaults: Mapping[str, int] = field(default_factory=dict[str, int])
    """What the model class takes where released files leave a field out."""
    own: tuple[str, ...] = ()
    """Fields of single layers that are read here, and refused elsewhere."""
    after: Callable[[Fields, list[str], Layers], tuple[Layers, list[str]]] | None = None
    """What is done to the layers, such as copies and shared keys; and what is said of it."""
    state: Callable[[Fields], str] | None = None
    """The sentence on the format of the recurrent state, where it is not the usual one."""
    notes: tuple[str, ...] = ()
    read: Callable[[Row, Fields], Reading] | None = None
    """A reader of its own, where the row alone cannot tell."""
    way: Way = USUAL
    """Where its layers know places from."""
    norm: Norm | None = None
    """The norm of queries and keys; None where flags alone say it."""
    mlps: Literal["", "gated", "mixtral", "qwen", "deepseek"] = ""
    """What follows the mixers, where its weights are counted."""
    tied: bool = False
    """Whether its head is the embedding where a file is silent."""
    bare: bool = False
    """Whether its recurrent layers have no MLP behind them."""
