"""From drafts to an architecture: sizes set by hand go over those of the file, and what is still
unknown is named.
"""

from __future__ import annotations

from typing import Any

from separatrix.core.errors import SizeError
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.hf.draft import Draft, Reading, Unknown
from separatrix.stacks.architecture.hf.fields import Fields
from separatrix.stacks.architecture.hf.like import Reader, preset_like
from separatrix.stacks.architecture.outline import Outline, Part, UnknownSizes
from separatrix.stacks.architecture.settings import Settings
from separatrix.stacks.mechanisms import Mechanism

_CONTEXTS = ("max_position_embeddings", "model_max_length", "context_length", "n_positions")
"""Fields that say for how many tokens a model was made; the first that is there counts."""


def built(
    reading: Reading, fields: Fields, name: str, settings: Settings, read: Reader
) -> Architecture:
    """The architecture of a reading. Raises UnknownSizes where sizes stay open, naming the preset
    that has them, as `read` reads it; ConfigError for sizes that do not go together.
    """
    # by identity: a draft that layers share is built once
    drafts = {id(draft): draft for layer in reading.layers for draft in layer}
    among = {draft.cls.name for draft in drafts.values()}
    settings.check_used(among)
    parts: dict[int, Part] = {}
    shapes: dict[int, Part] = {}
    missing: dict[str, Unknown] = {}
    for key, draft in drafts.items():
        sizes = settings.over(draft.cls, draft.sizes, among)
        unknown = {size: value for size, value in sizes.items() if isinstance(value, Unknown)}
        missing |= {
            # a format that the file states of keys and values, and in words that are not read
            "kv" if size == "format" else f"{draft.cls.name}.{size}": value
            for size, value in unknown.items()
        }
        formats = {size for size in unknown if size.endswith("format") or size == "accumulator"}
        shapes[key] = (
            draft.cls
            if set(unknown) - formats
            # any format will do, as shapes tell numbers and never bits
            else _mechanism(draft, sizes | dict.fromkeys(formats, "fp32"), fields)
        )
        parts[key] = draft.cls if unknown else shapes[key]
    layers, shaped = (
        tuple(tuple(found[id(draft)] for draft in layer) for layer in reading.layers)
        for found in (parts, shapes)
    )
    vocabulary = settings.vocabulary or fields.optional_size("vocab_size")
    context = settings.context or next(filter(None, map(fields.optional_size, _CONTEXTS)), None)
    notes = settings.noted(reading.notes)
    if missing:
        like = preset_like(fields.data, layers, name, read)
        outline = Outline(layers, name, tuple(missing), shaped, notes, vocabulary, context, like)
        raise UnknownSizes(_message(missing, fields, like), outline)
    whole = tuple(tuple(part for part in layer if isinstance(part, Mechanism)) for layer in layers)
    return Architecture(whole, name, notes, vocabulary, context)


def _mechanism(draft: Draft, sizes: dict[str, Any], fields: Fields) -> Mechanism:
    try:
        return draft.cls(**sizes)
    except SizeError as error:
        raise fields.error(f"the sizes of a layer do not go together: {error}") from None


def _message(missing: dict[str, Unknown], fields: Fields, like: str | None) -> str:
    looked = list(dict.fromkeys(text for value in missing.values() for text in value.looked_for))
    ways = " ".join(f"--set {name}=..." for name in missing)
    return (
        f"{fields.where}: {'; '.join(looked)}; sizes are not guessed: add it to the file, or pass"
        f" {ways}" + (f"; or take the preset '{like}', which has them" if like else "")
    )
