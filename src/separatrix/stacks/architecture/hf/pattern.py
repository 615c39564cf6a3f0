"""A stack given by hand (`--pattern`) for a file that does not say which layer is which: the
file gives the sizes.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from separatrix.stacks.architecture.hf.draft import Draft, Reading, Unknown, Value
from separatrix.stacks.architecture.hf.fields import Fields
from separatrix.stacks.architecture.hf.notes import (
    ACCUMULATORS,
    cache_note,
    convolution_note,
    state_note,
)
from separatrix.stacks.architecture.hf.table import PATTERN
from separatrix.stacks.architecture.hf.unread import doubted, unread
from separatrix.stacks.architecture.spec import parse_sizes
from separatrix.stacks.mechanisms import MECHANISMS, Mechanism
from separatrix.stacks.mechanisms.base import ATTENTION

_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")


def by_pattern(fields: Fields, pattern: str) -> Reading:
    """The layers of `pattern`, its sizes over those of the file. Raises what a spec raises, and
    ConfigError for another number of layers.
    """
    stack = parse_sizes(pattern)
    stated = fields.optional_size(*_LAYERS)
    if stated is not None and stated != len(stack):
        raise fields.error(
            f"--pattern has {len(stack):,} layers, but '{fields.find(*_LAYERS)}' is {stated:,};"
            " they must be equal"
        )
    names = list(dict.fromkeys(name for layer in stack for name, _ in layer))
    of_file = Reading(tuple((_made(fields, name),) for name in names))
    odd = unread(fields, of_file)
    # what is said by hand stands over what the file leaves in doubt
    known = {
        name: layer[0] for name, layer in zip(names, doubted(of_file, odd).layers, strict=True)
    }
    drafts: dict[tuple[str, str], Draft] = {}
    for name, sizes in (part for layer in stack for part in layer):
        made = known[name]
        drafts.setdefault((name, repr(sizes)), Draft(made.cls, {**made.sizes, **sizes}))
    layers = tuple(tuple(drafts[name, repr(sizes)] for name, sizes in layer) for layer in stack)
    shown = pattern if len(pattern) <= 200 else f"{pattern[:197]}..."
    return Reading(
        layers,
        (
            f"layers set by hand: --pattern '{' '.join(shown.split())}'",
            *_notes(fields, [d.cls for d in drafts.values()]),
            *_unread_note(odd),
        ),
    )


def _unread_note(names: list[str]) -> list[str]:
    """Says which fields that may change attention the pattern stands for."""
    if not names:
        return []
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    listed = ", ".join(f"'{name[:60]}'" for name in names[:5])
    return [f"not read, the pattern stands for them: {listed}{more}"]


def _notes(fields: Fields, classes: list[type[Mechanism]]) -> list[str]:
    """The assumptions that go with these mechanisms in any file."""
    stateful = any(cls.group == "recurrent" for cls in classes)
    softmax = any(cls.group in ATTENTION for cls in classes)
    dtype = fields.model_format()
    return [
        *([state_note("fp32"), convolution_note(dtype)] if stateful else []),
        *([cache_note(dtype), ACCUMULATORS] if softmax else []),
    ]


def _made(file: Fields, name: str) -> Draft:
    """A mechanism by the fields that usually hold its sizes; sizes that no field is known for
    are unknown.
    """
    if name in PATTERN.mixers:
        return PATTERN.mixers[name][0](file)
    cls = MECHANISMS[name]
    sizes: dict[str, Value] = {}
    for field in fields(cls):
        if field.name == "format":
            sizes["format"] = file.model_format()
        elif field.name == "state_format":
            sizes["state_format"] = "fp32"
        elif _is_size(field.default):
            sizes[field.name] = Unknown((f"no field is known to hold '{field.name}' of '{name}'",))
    return Draft(cls, sizes)


def _is_size(default: Any) -> bool:
    """Whether a field is a number that a layer cannot do without; 0 and None stand for "none"
    and for another size.
    """
    return default is not MISSING and type(default) is int and default > 0
