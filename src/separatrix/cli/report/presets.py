"""Released models known by name, for `list presets`."""

from __future__ import annotations

from typing import Any

from separatrix.cards.memory import layer_titles
from separatrix.stacks.architecture.released import PRESETS, hub_ids, preset_named
from separatrix.stacks.architecture.resolve import preset

SPARED = ("hub id",)
NOTE = "`separatrix list presets NAME` tells its spec and source, `--json` everything of all"


def rows() -> list[dict[str, Any]]:
    """Every preset as data."""
    return [
        {
            "name": name,
            "layers": len(preset(name)),
            "spec": preset(name).spec,
            "source": PRESETS[name]["source"],
            "hub_ids": hub_ids(name),
        }
        for name in PRESETS
    ]


def cells() -> list[dict[str, str]]:
    """Layers in words, and ids on the hub."""
    return [
        {
            "name": name,
            "layers": layer_titles(preset(name)),
            "hub id": " ".join(hub_ids(name)),
        }
        for name in PRESETS
    ]


def describe(name: str) -> list[tuple[str, str]]:
    """(heading, text) pairs of one preset. Raises UnknownNameError."""
    known = preset_named(name) or name
    model = preset(known)
    return [
        (f"{known}: {len(model):,} layers", layer_titles(model)),
        ("spec", model.spec),
        ("hub ids", "\n".join(hub_ids(known))),
        ("source", PRESETS[known]["source"]),
    ]
