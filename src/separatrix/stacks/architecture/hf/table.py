"""The table of model types, `models.toml`, as rows: what stands in each kind of layer, and how a
file tells which layer is of which kind.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import fields as sizes_of
from functools import lru_cache
from typing import Any, Self

from separatrix.stacks.architecture.hf.fields import Draft, Fields
from separatrix.stacks.architecture.hf.hooks import CHECKS
from separatrix.stacks.architecture.hf.sizes import DATA, parsed, value_of
from separatrix.stacks.architecture.hf.ways import USUAL, Norm, Way
from separatrix.stacks.mechanisms import MECHANISMS, Chunked, Mechanism, Window

Maker = Callable[[Fields], Draft]
"""A layer's mixer, made of the fields of a file."""


@dataclass(frozen=True, eq=False)
class Mixer:
    """A mechanism, and where its sizes stand."""

    cls: type[Mechanism]
    sizes: Mapping[str, ast.expr]
    silent: str = ""
    """Fields that size nothing of it."""
    check: str = ""
    """What is refused first."""
    section: str = ""
    """The object that its fields may stand in, where the row does not open it."""

    @classmethod
    def of(cls, mechanism: type[Mechanism], sizes: Mapping[str, ast.expr]) -> Self:
        words = ("silent", "check", "section")
        beside = {name: ast.literal_eval(sizes[name]) for name in words if name in sizes}
        own = {name: of for name, of in sizes.items() if name not in beside}
        return cls(mechanism, own, **beside)

    def __call__(self, fields: Fields) -> Draft:
        if self.check:
            CHECKS[self.check](fields)
        fields = fields.section(self.section) if self.section else fields
        fields.harmless(*self.silent.split())
        own = {size.name for size in sizes_of(self.cls)} - set(self.sizes)
        sizes = {name: value_of(of, fields) for name, of in self.sizes.items()}
        # alike in all files, of mechanisms that have them
        sizes |= {"format": fields.model_format()} if "format" in own else {}
        sizes |= {name: "fp32" for name in ("state_format", "accumulator") if name in own}
        return Draft(self.cls, sizes | ({"running_max": True} if "running_max" in own else {}))


@dataclass(frozen=True, eq=False)
class Picked:
    """One of two mixers, as the file says."""

    test: ast.expr
    makers: tuple[Maker, Maker]

    def __call__(self, fields: Fields) -> Draft:
        return self.makers[not value_of(self.test, fields)](fields)


@lru_cache(maxsize=4096)
def makers(text: str) -> tuple[Maker, ...]:
    """What an entry of the table makes, side by side where it adds several."""
    node = parsed(text)
    several: list[ast.expr] = []
    while isinstance(node, ast.BinOp):
        several.insert(0, node.right)
        node = node.left
    return tuple(map(_maker, (node, *several)))


def _maker(node: ast.expr) -> Maker:
    if isinstance(node, ast.Name) and node.id in DATA["mixers"]:
        # one for all that have it
        return makers(DATA["mixers"][node.id])[0]
    if isinstance(node, ast.IfExp):
        return Picked(node.test, (_maker(node.body), _maker(node.orelse)))
    return Mixer.of(*_sizes(node))


def _sizes(node: ast.expr) -> tuple[type[Mechanism], dict[str, ast.expr]]:
    """A mechanism and its sizes: those of a mixer of the table, or of the one in its parentheses,
    and over them its own.
    """
    args, own = [], {}
    if isinstance(node, ast.Call):
        args, own = node.args, {str(each.arg): each.value for each in node.keywords}
        node = node.func
    name = ast.unparse(node)
    if name in DATA["mixers"]:
        cls, sizes = _sizes(parsed(DATA["mixers"][name]))
    else:
        cls = MECHANISMS[name]
        sizes = _sizes(args[0])[1] if args else {}
    return cls, {**sizes, **own}


def softmax(sizes: str = "") -> dict[str, tuple[Maker, ...]]:
    """Full, sliding and chunked attention with the same heads."""
    cls, own = _sizes(parsed(f"softmax({sizes.strip()})"))
    window = {"size": own.pop("window", parsed("sliding_window"))}
    chunk = {"size": parsed("attention_chunk_size")}
    return {
        "full": (Mixer.of(cls, own),),
        "window": (Mixer.of(Window, own | window),),
        "chunked": (Mixer.of(Chunked, own | chunk),),
    }


_USUAL_KINDS = "layer_types=softmax; plain"


@dataclass(frozen=True, eq=False)
class Row:
    """What is known of a model type: keys that no line explains are those of `models.toml`."""

    family: str
    mixers: Mapping[str, tuple[Maker, ...]]
    lists: Mapping[str, str]
    """What lists the kind of every layer; where several are there they must agree."""
    otherwise: Sequence[str]
    """How layers are told where none of them is there, the first that does."""
    told_by: Sequence[str] = ()
    """Fields that `otherwise` cannot do without, for the message where they are missing."""
    classes: Sequence[str] = ()
    """Names in `architectures` that are not made of the model type, and stand for it."""
    stateful: bool = False
    """Whether some kinds are recurrences or convolutions, whose fields are then its own."""
    before: Sequence[list[Any]] = ()
    """What is looked at first: fields that are refused, sections that are opened."""
    refused: str = ""
    """What its layers do that no mechanism here does."""
    silent: Sequence[str] = ()
    defaults: Mapping[str, int] = field(default_factory=dict[str, int])
    """What the model class takes where released files leave a field out."""
    own: Sequence[str] = ()
    last: str = ""
    """The kind of the last layer, where the model class makes it so."""
    after: str = ""
    """What is done to the layers, such as copies and shared keys; and what is said of it."""
    state: str = ""
    """The field that states the format of the recurrent state, or the sentence on it."""
    notes: Sequence[str] = ()
    """Sentences that are said of every file."""
    read: str = ""
    """A reader of its own, where the row alone cannot tell."""
    way: Way = USUAL
    norm: Norm | None = None
    mlps: str = ""
    tied: bool = False
    """Whether its head is the embedding where a file is silent."""
    bare: bool = False
    """Whether its recurrent layers have no MLP behind them."""


def _whole(name: str, said: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with what it takes from the one that it is like."""
    if "like" not in said:
        return {"family": name, **said}
    like = said["like"]
    whole = {**_whole(like, DATA["kin"].get(like) or DATA["rows"][like]), **said}
    return {key: whole[key] for key in whole if key in said or key not in ("classes", "types")}


_LISTS_OF_NAMES = ("told_by", "classes", "silent", "own", "notes")


def _row(name: str, said: Mapping[str, Any]) -> Row:
    own = {key: value for key, value in _whole(name, said).items() if key not in ("like", "types")}
    mixers = softmax(own.pop("softmax")) if "softmax" in own else {}
    mixers |= {kind: makers(entry) for kind, entry in own.pop("mixers", {}).items()}
    told = [part.strip().partition("=") for part in own.pop("kinds", _USUAL_KINDS).split(";")]
    own |= {key: own[key].split() for key in _LISTS_OF_NAMES if key in own}
    groups = {each.cls.group for of in mixers.values() for each in of if isinstance(each, Mixer)}
    own.setdefault("stateful", not groups.isdisjoint(("recurrent", "convolution")))
    return Row(
        mixers=mixers,
        lists={field: how for field, equals, how in told if equals},
        otherwise=[rule for rule, equals, _ in told if rule and not equals],
        way=Way.of(own.pop("way", "")),
        norm=Norm.of(own.pop("norm", [])),
        **own,
    )


def _rows() -> dict[str, Row]:
    found: dict[str, Row] = {}
    for name, said in (*DATA["rows"].items(), *DATA["kin"].items()):
        own = [] if name in DATA["kin"] else [name]
        found |= dict.fromkeys((*own, *said.get("types", "").split()), _row(name, said))
    return found


ROWS: dict[str, Row] = _rows()
"""`model_type` -> what is known of it."""
NATIVE = _row("mamba_ssm", DATA["special"]["mamba_ssm"])
"""Files of mamba_ssm, which have no model type."""
UNKNOWN = _row("unknown", DATA["special"]["unknown"])
"""Files of a model type that nobody knows, by their usual fields."""
PATTERN = _row("pattern", DATA["special"]["pattern"])
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
