"""Released models by name: their facts are package data (presets.json)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NotRequired, TypedDict


class Facts(TypedDict):
    """Where a model was released, the family that reads it, and the fields of its config.json
    that matter.
    """

    source: str
    family: str
    config: dict[str, object]
    also: NotRequired[list[str]]
    """Further ids on the hub that were released with the same fields."""


PRESETS: dict[str, Facts] = json.loads(
    Path(__file__).with_name("presets.json").read_text(encoding="utf-8")
)
"""Name -> facts."""
_HUB = "https://huggingface.co/"
WAYS = "Give a preset, the path of a config.json, or a stack such as 'full*2 + gdn*24'."
"""What a text that names an architecture may be."""


def hub_ids(name: str) -> list[str]:
    """The ids on the Hugging Face hub that a preset stands for, its source first."""
    facts = PRESETS[name]
    return [facts["source"].removeprefix(_HUB), *facts.get("also", ())]


def preset_named(text: str) -> str | None:
    """The preset that a text names: by its name, by an id on the hub, or by the address of its
    page there, in any case of letters. None if it is no such name.
    """
    # the page of a model may be given with the path of one of its files, or a query
    page = re.fullmatch(
        r"(?:https?://)?(?:huggingface\.co|hf\.co)/([\w.-]+/[\w.-]+)(?:[/?#].*)?", text
    )
    wanted = (page[1] if page else text.rstrip("/")).casefold()
    for name in PRESETS:
        if wanted == name or wanted in (one.casefold() for one in hub_ids(name)):
            return name
    return None
