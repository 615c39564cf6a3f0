"""Where a layer's tokens know their places from: rotations, embeddings, distances, or nothing.

The fields of the file say it, and, where a model class fixes it, its row (`Row.way`), as
transformers defines that class.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from separatrix.core.evidence.canonical import json_list, json_object
from separatrix.stacks.architecture.hf.draft import Draft, Reading, Value
from separatrix.stacks.architecture.hf.fields import LARGEST, MOST_LAYERS, Fields, shown
from separatrix.stacks.architecture.hf.rotary_fields import LISTS, NAMES, Spot
from separatrix.stacks.architecture.hf.ways import (
    INTERVALS,
    ROTATING,
    Norm,
    Seen,
    Way,
    fla,
    native,
    query_norm,
    unplaced,
)
from separatrix.stacks.architecture.settings import Settings
from separatrix.stacks.mechanisms import (
    Chunked,
    Compressed,
    LatentCache,
    Mechanism,
    ReusedWindow,
    Window,
)
from separatrix.stacks.mechanisms.base import POSITIONS

_CAPS = ("attn_logit_softcapping", "attn_logit_softcap")
_INNER = ("attn_cfg", "attn_config")
_WORDS: dict[type[Mechanism], tuple[str, ...]] = {
    Window: ("sliding_attention", "main"),
    ReusedWindow: ("sliding_attention", "main"),
    Chunked: ("chunked_attention",),
    Compressed: ("compress",),
}
"""How files call a kind of layer; full_attention where it is not listed."""


def placed(
    reading: Reading, file: Fields, settings: Settings, way: Way, norm: Norm | None
) -> Reading:
    """The reading with the positions of every layer that mixes tokens, as the fields and `way`
    say. Raises ConfigError for fields of positions that are of the wrong type, length or range.
    """
    # a base of layers that are not there, a factor that an object says too: nothing else reads them
    prefixes = ("", *(f"{name}." for name in _INNER), *_attn_prefixes(file))
    file.harmless(*(prefix + name for prefix in prefixes for name in (*NAMES, *INTERVALS)))
    if not any(_has(draft.cls, "positions") for layer in reading.layers for draft in layer):
        return reading
    lists = _lists(file, len(reading.layers))
    inner = _inner(file, len(reading.layers))
    among = {draft.cls.name for layer in reading.layers for draft in layer}
    # layers that share a draft share it afterwards too, unless their positions differ
    made: dict[tuple[int, Seen, int, bool, str], Draft] = {}
    notes: list[str] = []
    layers: list[tuple[Draft, ...]] = []
    for index, layer in enumerate(reading.layers):
        drafts: list[Draft] = []
        for draft in layer:
            if not _attends(draft):
                drafts.append(draft)
                continue
            size = settings.over(draft.cls, draft.sizes, among).get(
                "rope_dim" if issubclass(draft.cls, LatentCache) else "head_dim"
            )
            words = _WORDS.get(draft.cls, ("full_attention",))
            known = size if isinstance(size, int) else None
            seen = way.seen(Spot(inner[index][0], lists, index, words, known, inner[index][1]))
            cap, cap_notes = _cap(file, draft.cls, way.softcap)
            bounded = _has(draft.cls, "bounded") and (
                way.bounded
                or _clipped(inner[index][0])
                or (seen.turned is not None and norm is not None and norm.bounded(file))
            )
            notes += (*seen.notes, *cap_notes)
            normed = query_norm(norm, inner[index][0])
            key = (id(draft), seen, cap, bounded, normed)
            if key not in made:
                found = _with(draft, seen, cap, bounded=bounded)
                made[key] = Draft(found.cls, {**_around(file, draft, way, normed), **found.sizes})
            drafts.append(made[key])
        layers.append(tuple(drafts))
    embedding = _embedding(layers, way)

    def entered(draft: Draft) -> Draft:
        # recurrences and convolutions know what the tokens of the stack know
        placed = _has(draft.cls, "positions") and not _attends(draft)
        return Draft(draft.cls, {"positions": embedding, **draft.sizes}) if placed else draft

    said = tuple(dict.fromkeys((*reading.notes, *notes)))
    return Reading(tuple(layers), said).mapped(entered)


def _attends(draft: Draft) -> bool:
    """Whether its layer is attention, which may look at places by itself."""
    return _has(draft.cls, "positions") and _has(draft.cls, "rope")


def _embedding(layers: list[tuple[Draft, ...]], way: Way) -> str:
    """Where places come from as tokens enter the stack: what its attention layers say; where there
    are none, what is known of the model class.
    """
    said = {draft.sizes["positions"] for layer in layers for draft in layer if _attends(draft)}
    if said:
        return next(way for way in (*POSITIONS[:0:-1], "embedded") if way in said)
    return "none" if way.rule in (fla, unplaced, native) else "unknown"


def _lists(file: Fields, layers: int) -> dict[str, list[Any]]:
    """The fields that hold an entry per layer. Entries of layers for multi-token prediction, which
    are not part of the stack, may follow. Raises ConfigError for another length or entry.
    """
    found: dict[str, list[Any]] = {}
    for name in (*ROTATING, *LISTS):
        entries = json_list(file.value(name))
        if entries is None and file.has(name) and name != "rope_theta":
            raise file.wrong(name, "list every layer")
        if not entries:
            continue
        predicted = file.optional_size("num_nextn_predict_layers", low=0) or 0
        if len(entries) not in (layers, layers + predicted):
            raise file.error(
                f"'{name}' has {len(entries)} entries and must have num_hidden_layers = {layers};"
                " correct one of them"
            )
        for number, entry in enumerate(entries if name in ROTATING else (), 1):
            if type(entry) not in (int, bool) or entry not in (0, 1):
                raise file.error(
                    f"entry {number} of '{name}' is {shown(entry)}; it must be one of 1, 0"
                )
        found[name] = entries
    return found


def _inner(file: Fields, layers: int) -> list[tuple[Fields, str]]:
    """For every layer the fields with those of the object that holds its attention, and the
    prefix of the latter.
    """
    for name in _INNER:
        if json_object(file.data.get(name)) is not None:
            return [(file.section(name), f"{name}.")] * layers
    found = [(file, "")] * layers
    whole = json_object(file.data.get("attn"))
    several = json_list(file.data.get("attn")) or []
    named = [("attn", whole)] if whole else [(f"attn[{i}]", e) for i, e in enumerate(several)]
    for name, entry in named:
        inner = json_object(entry) or {}
        part = file.with_data({**file.data, name: inner}).section(name)
        for i in json_list(inner.get("layers")) or []:
            if type(i) is int and 0 <= i < layers:
                found[i] = (part, f"{name}.")
    return found


def _attn_prefixes(file: Fields) -> list[str]:
    """How the fields of flash-linear-attention's attention layers begin."""
    several = json_list(file.data.get("attn")) or []
    return ["attn.", *(f"attn[{i}]." for i in range(min(len(several), MOST_LAYERS)))]


def _cap(file: Fields, cls: type[Mechanism], usual: int) -> tuple[int, tuple[str, ...]]:
    """What scores are capped at, 0 where they are not, and what was assumed."""
    name = file.find(*_CAPS)
    if name is None:
        missing = usual and not any(cap in file.data for cap in _CAPS)
        note = (
            f"attention scores capped at {usual} (assumed): the file does not say, and transformers"
            " takes it so"
        )
        return (usual, (note,)) if missing else (0, ())
    value = file.data[name]
    if type(value) not in (int, float) or not 1 <= value <= LARGEST or value != int(value):
        raise file.wrong(name, f"be a whole number from 1 to {LARGEST:,}")
    if not _has(cls, "softcap"):
        raise file.error(f"'{name}' is there, but scores of '{cls.name}' are not capped; remove it")
    return int(value), ()


def _around(file: Fields, draft: Draft, way: Way, norm: str) -> dict[str, Value]:
    """Sizes that say what stands around a softmax: QK-norm and output gate."""
    gate = "none" if file.flag("attn_output_gate") is False else way.gate
    said = {"qk_norm": norm, "gate": gate}
    return {name: what for name, what in said.items() if what != "none" and _has(draft.cls, name)}


def _clipped(file: Fields) -> bool:
    """Whether queries, keys and values are clipped at a number of the file."""
    found = [value for name, value in file.data.items() if name.rpartition(".")[2] == "clip_qkv"]
    return any(value is not None for value in found)


def _with(draft: Draft, seen: Seen, cap: int, *, bounded: bool) -> Draft:
    """The draft with what is known of its positions; what it has already wins."""
    sizes: dict[str, Value] = {"positions": seen.positions, "rope": seen.turned is not None}
    if seen.turned is not None:
        sizes |= {"rope_base": seen.turned.base, "rope_scaling": seen.turned.scaling}
        sizes |= {} if issubclass(draft.cls, LatentCache) else {"rope_dim": seen.turned.dims}
    sizes |= {"softcap": cap} if cap else {}
    sizes |= {"bounded": True} if bounded else {}
    return Draft(draft.cls, {**sizes, **draft.sizes})


def _has(cls: type[Mechanism], size: str) -> bool:
    return any(field.name == size for field in fields(cls))
