"""The table of model types, `models.toml`, as rows: what stands in each kind of layer, and how a
file tells which layer is of which kind.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import fields as sizes_of
from functools import lru_cache
from typing import Any

from separatrix.stacks.architecture.hf.fields import Draft, Fields
from separatrix.stacks.architecture.hf.sizes import DATA, parsed, value_of
from separatrix.stacks.architecture.hf.ways import USUAL, Way
from separatrix.stacks.mechanisms import MECHANISMS, Mechanism, ShortConvolution


def made(text: str, fields: Fields) -> tuple[Draft, ...]:
    """What an entry of the table makes of a file, side by side where it adds several."""
    node = parsed(text)
    several: list[ast.expr] = []
    while isinstance(node, ast.BinOp):
        several.insert(0, node.right)
        node = node.left
    drafts = (_made(each, fields) for each in (node, *several))
    # a convolution over no token is none
    return tuple(
        draft for draft in drafts if draft.cls is not ShortConvolution or draft.sizes["conv"] != 0
    )


def _made(node: ast.expr, fields: Fields) -> Draft:
    """A mechanism and its sizes; `silent` are fields that size nothing of it."""
    if isinstance(node, ast.Name) and node.id in DATA["mixers"]:
        node = parsed(DATA["mixers"][node.id])
    if isinstance(node, ast.IfExp):
        return _made(node.body if value_of(node.test, fields) else node.orelse, fields)
    cls, said = _sizes(node)
    if "silent" in said:
        fields.harmless(*str(ast.literal_eval(said["silent"])).split())
    own = {size.name for size in sizes_of(cls)} - set(said)
    sizes = {name: value_of(of, fields) for name, of in said.items() if name != "silent"}
    # alike in all files, of mechanisms that have them
    sizes |= {"format": fields.model_format()} if "format" in own else {}
    sizes |= {name: "fp32" for name in ("state_format", "accumulator") if name in own}
    sizes |= {"running_max": True} if "running_max" in own else {}
    return Draft(cls, sizes, fields)


@lru_cache(maxsize=4096)
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


def _softmax(sizes: str, window: str) -> dict[str, str]:
    """Full, sliding and chunked attention with the same heads."""
    full = f"softmax({sizes.strip()})"
    return {
        "full": full,
        "window": f"window({full}, size={window.strip()})",
        "chunked": f"chunked({full}, size=attention_chunk_size)",
    }


_USUAL_KINDS = "layer_types=softmax; window if SLIDES else full"


@dataclass(frozen=True)
class Mlps:
    """What follows the mixers of a model class: sizes are expressions."""

    maps: int = 3
    """Of each MLP; 0 where weights are not counted."""
    dense: str = "DENSE"
    number: str = "EXPERTS"
    chosen: str = "CHOSEN"
    hidden: str = "moe_intermediate_size"
    """Units of an expert."""
    apart: str = "0"
    """Weights of an expert beside its MLP."""
    shared: str = "0"
    """Units that all tokens take beside experts."""
    beside: str = "0"
    """Weights beside router, experts and these."""
    layers: str = ""
    """How many layers have an MLP or experts, if not all."""
    moe: bool = False
    """Whether a file without experts is not whole."""
    both: bool = False
    """Whether a dense MLP stands beside experts."""


@dataclass(frozen=True, eq=False)
class Row:
    """What is known of a model type: keys that no line explains are those of `models.toml`."""

    family: str
    mixers: Mapping[str, str]
    lists: Mapping[str, str]
    """What lists the kind of every layer; where several are there they must agree."""
    otherwise: Sequence[str]
    """How layers are told where none of them is there, the first that does."""
    mlps: Mlps
    depth: str = ""
    """The number of layers, if not `num_hidden_layers` alone."""
    told_by: Sequence[str] = ()
    """Fields that `otherwise` cannot do without, for the message where they are missing."""
    classes: Sequence[str] = ()
    """Names in `architectures` that are not made of the model type, and stand for it."""
    always: Sequence[str] = ()
    """Kinds whose fields are its own, even of a file that has no such layer."""
    before: Sequence[list[Any]] = ()
    """What is looked at first: fields that are refused, sections that are opened."""
    refused: str = ""
    """What its layers do that no mechanism here does."""
    silent: Sequence[str] = ()
    defaults: Mapping[str, int] = field(default_factory=dict[str, int])
    """What the model class takes where released files leave a field out."""
    nested: Mapping[str, int] = field(default_factory=dict[str, int])
    """And where it is within another model's."""
    own: Sequence[str] = ()
    last: str = ""
    """The kind of the last layer, where the model class makes it so."""
    passes: str = ""
    """How often a token passes through them, with a cache for each."""
    reuse: str = ""
    """How many of the last layers read keys and values of earlier ones."""
    state: str = ""
    note: str = ""
    way: Way = USUAL
    norm: str = ""
    experts: str = ""
    around: str = ""
    more: str = "0"
    embedded: str = "0"
    again: str = "0"
    tied: bool = False
    """Whether its head is the embedding where a file is silent."""
    bare: bool = False
    """Whether its recurrent layers have no MLP behind them."""


def _whole(name: str, said: Mapping[str, Any]) -> dict[str, Any]:
    """An entry with what it takes from the one that it is like."""
    if "like" not in said:
        return {"family": name, **said}
    like = said["like"]
    theirs = _whole(like, DATA["kin"].get(like) or DATA["rows"][like])
    whole = {**theirs, **said}
    whole["mixers"] = {**theirs.get("mixers", {}), **said.get("mixers", {})}
    return {key: whole[key] for key in whole if key in said or key not in ("classes", "types")}


_LISTS_OF_NAMES = ("told_by", "classes", "silent", "own")


def _row(name: str, said: Mapping[str, Any]) -> Row:
    own = {key: value for key, value in _whole(name, said).items() if key not in ("like", "types")}
    window = own.pop("window", "sliding_window")
    mixers = _softmax(own.pop("softmax"), window) if "softmax" in own else {}
    own_mixers, mlps = own.pop("mixers", {}), own.pop("mlps", {})
    mixers |= own_mixers
    told = [" ".join(part.split()) for part in own.pop("kinds", _USUAL_KINDS).split(";")]
    lists = [part for part in told if "=" in part and not part.startswith("or ")]
    own |= {key: own[key].split() for key in _LISTS_OF_NAMES if key in own}
    own.setdefault("always", list(own_mixers))
    return Row(
        mixers=mixers,
        lists={field: how for field, _, how in (part.partition("=") for part in lists)},
        otherwise=[part for part in told if part not in lists],
        way=Way.of(own.pop("way", "")),
        mlps=Mlps(**(DATA["special"]["guessed"] if mlps == "guessed" else mlps)),
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
