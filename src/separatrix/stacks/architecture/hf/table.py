"""The table of model types, `models.toml`, as rows: what stands in each kind of layer, and how a
file tells which layer is of which kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import fields as sizes_of
from functools import cache
from typing import Any

from separatrix.core.evidence.canonical import json_list
from separatrix.stacks.architecture.hf.draft import Draft
from separatrix.stacks.architecture.hf.fields import Fields
from separatrix.stacks.architecture.hf.hooks import BY, CHECKS
from separatrix.stacks.architecture.hf.sizes import DATA, Of, value_of
from separatrix.stacks.architecture.hf.ways import USUAL, Norm, Way
from separatrix.stacks.mechanisms import MECHANISMS, Mechanism

Maker = Callable[[Fields], Draft]
"""A layer's mixer, made of the fields of a file."""


@dataclass(frozen=True, eq=False)
class Mixer:
    """A mechanism, and where its sizes stand."""

    cls: type[Mechanism]
    sizes: Mapping[str, Of]
    silent: Sequence[str] = ()
    """Fields that size nothing of it."""
    check: str = ""
    """What is refused first."""
    section: str = ""
    """The object that its fields may stand in, where the row does not open it."""

    def __call__(self, fields: Fields) -> Draft:
        if self.check:
            CHECKS[self.check](fields)
        fields = fields.section(self.section) if self.section else fields
        fields.harmless(*self.silent)
        own = {size.name for size in sizes_of(self.cls)} - set(self.sizes)
        sizes = {name: value_of(of, fields) for name, of in self.sizes.items()}
        # alike in all files, of mechanisms that have them
        sizes |= {"format": fields.model_format()} if "format" in own else {}
        sizes |= {name: "fp32" for name in ("state_format", "accumulator") if name in own}
        return Draft(self.cls, sizes | ({"running_max": True} if "running_max" in own else {}))


@dataclass(frozen=True, eq=False)
class Picked:
    """One of several mixers, as the file says."""

    by: Callable[[Fields], str]
    makers: Mapping[str, Maker]

    def __call__(self, fields: Fields) -> Draft:
        return self.makers[self.by(fields)](fields)


@cache
def named(name: str) -> Maker:
    """The mixer of that name in the table, or the mechanism without sizes."""
    return mixer({"is": name})


def mixer(said: Mapping[str, Any]) -> Maker:
    """The mixer that an entry of the table says."""
    own = dict(said)
    if "by" in own:
        by = BY[own.pop("by")]
        return Picked(by, {key: mixer(entry) for key, entry in own.items()})
    while (base := own.pop("is")) in DATA["mixers"]:
        own = {**DATA["mixers"][base], **own}
    cls = MECHANISMS[own.pop("as", base)]
    rest = {key: own.pop(key) for key in ("check", "section") if key in own}
    silent = tuple(own.pop("silent", ()))
    return Mixer(cls, own, silent, **rest)


def _makers(said: Any) -> tuple[Maker, ...]:
    """What stands side by side in a kind of layer."""
    entries = json_list(said) or [said]
    return tuple(named(one) if isinstance(one, str) else mixer(one) for one in entries)


def softmax(*, window: Of = "sliding_window", **sizes: Of) -> dict[str, tuple[Maker, ...]]:
    """Full, sliding and chunked attention with the same heads."""
    usual: dict[str, Of] = {**DATA["mixers"]["softmax"], **sizes}
    return {
        "full": (mixer(usual),),
        "window": (mixer({**usual, "as": "window", "size": window}),),
        "chunked": (mixer({**usual, "as": "chunked", "size": "attention_chunk_size"}),),
    }


@dataclass(frozen=True, eq=False)
class Row:
    """What is known of a model type."""

    family: str
    """Whose kin it is: a file whose class is of another family is refused."""
    mixers: Mapping[str, tuple[Maker, ...]]
    """Kind of layer -> what stands in it, side by side where there are several."""
    lists: Mapping[str, str] = field(default_factory=lambda: {"layer_types": "softmax"})
    """What lists the kind of every layer; where several are there they must agree."""
    otherwise: Sequence[str] = ("plain",)
    """How layers are told where none of them is there, the first that does."""
    told_by: Sequence[str] = ()
    """Fields that `otherwise` cannot do without, for the message where they are missing."""
    classes: Sequence[str] = ()
    """Names in `architectures` that are not made of the model type, and stand for it."""
    stateful: bool = False
    """Whether some kinds are recurrences or convolutions, whose fields are then its own."""
    before: Sequence[list[Any]] = ()
    """What is looked at first: fields that are refused, sections that are opened."""
    silent: Sequence[str] = ()
    """Fields that change nothing in this model type."""
    defaults: Mapping[str, int] = field(default_factory=dict[str, int])
    """What the model class takes where released files leave a field out."""
    own: Sequence[str] = ()
    """Fields of single layers that are read here, and refused elsewhere."""
    after: str = ""
    """What is done to the layers, such as copies and shared keys; and what is said of it."""
    state: str = ""
    """The field that states the format of the recurrent state, or the sentence on it."""
    notes: Sequence[str] = ()
    """Sentences that are said of every file."""
    read: str = ""
    """A reader of its own, where the row alone cannot tell."""
    way: Way = USUAL
    """Where its layers know places from."""
    norm: Norm | None = None
    """The norm of queries and keys; None where flags alone say it."""
    mlps: str = ""
    """What follows the mixers, where its weights are counted."""
    tied: bool = False
    """Whether its head is the embedding where a file is silent."""
    bare: bool = False
    """Whether its recurrent layers have no MLP behind them."""


def _whole(said: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with what it takes from the one that it is like."""
    if "like" not in said:
        return dict(said)
    other = DATA["kin"].get(said["like"]) or DATA["rows"][said["like"]]
    whole = {**_whole(other), **said}
    return {key: whole[key] for key in whole if key in said or key not in ("classes", "types")}


def _row(said: Mapping[str, Any]) -> Row:
    own = {key: value for key, value in _whole(said).items() if key not in ("like", "types")}
    mixers = softmax(**own.pop("softmax")) if "softmax" in own else {}
    mixers |= {kind: _makers(entry) for kind, entry in own.pop("mixers", {}).items()}
    way, norm = Way.of(own.pop("way", {})), Norm.of(own.pop("norm", []))
    return Row(mixers=mixers, way=way, norm=norm, **own)


def _rows() -> dict[str, Row]:
    found: dict[str, Row] = {}
    for name, said in (*DATA["rows"].items(), *DATA["kin"].items()):
        row = _row(said)
        own = [] if name in DATA["kin"] else [name]
        found |= dict.fromkeys((*own, *said.get("types", ())), row)
    return found


ROWS: dict[str, Row] = _rows()
"""`model_type` -> what is known of it."""
NATIVE = _row(DATA["special"]["mamba_ssm"])
"""Files of mamba_ssm, which have no model type."""
UNKNOWN = _row(DATA["special"]["unknown"])
"""Files of a model type that nobody knows, by their usual fields."""
PATTERN = _row(DATA["special"]["pattern"])
"""A stack given by hand: mechanism -> the fields that usually hold its sizes."""
_SQUEEZED = {kind.translate(str.maketrans("", "", "_-")): kind for kind in ROWS}
_CLASSES = {name: kind for kind, row in ROWS.items() for name in row.classes}
_ENDS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")


def of_class(name: Any) -> str | None:
    """The model type of a class in `architectures`: classes are named after it, but for a few.
    None for a class that is not known.
    """
    if not isinstance(name, str):
        return None
    stems = (name.removesuffix(end) for end in _ENDS if name.endswith(end))
    return _CLASSES.get(name) or _SQUEEZED.get(next(stems, "").replace("_", "").lower())
