"""Every causal family of the installed transformers, tiny and with random weights: the numbers in
its real cache against what is printed of the config.json that it saves.

Each model reads a prompt 64 and 128 tokens longer than its window. Where counts differ by more
than the listed differences of implementation, one of the two is wrong.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from support.real_caches import carried  # noqa: E402
from support.tiny_configs import VOCABULARY, WINDOW, tiny  # noqa: E402
from transformers.models.auto import modeling_auto  # noqa: E402

from separatrix.architecture.hf import from_config  # noqa: E402
from separatrix.architecture.outline import UnknownSizes  # noqa: E402
from separatrix.errors import ConfigError  # noqa: E402
from separatrix.mechanisms import Mechanism  # noqa: E402

AUTO: dict[str, Any] = {
    **dict.fromkeys(
        modeling_auto.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES, transformers.AutoModelForMultimodalLM
    ),
    **dict.fromkeys(
        modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
        transformers.AutoModelForImageTextToText,
    ),
    **dict.fromkeys(
        modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, transformers.AutoModelForCausalLM
    ),
}
"""Model type -> what builds it."""
LENGTHS = (WINDOW + 64, WINDOW + 128)

ONE_COLUMN_MORE: frozenset[str] = frozenset(())
"""Short convolutions keep K columns in transformers: the oldest is shifted out before it is used,
so K - 1 are enough, and are what is printed.
"""
ALL_KEPT: frozenset[str] = frozenset(())
"""Keys and values of all tokens stay in transformers' cache, and a mask hides those before the
window; what is printed is what later tokens can see.
"""
UNSAID_DEFAULTS: dict[str, dict[str, int]] = {}
"""Sizes that transformers leaves out of the file it saves, set by hand as the message asks."""
REFUSED: dict[str, str] = {}
"""Families that are not read, and the words of the reason."""
NOT_RUN: dict[str, str] = {}
"""Families that cannot be built or run on text alone, and the error that says so."""
TOO_LARGE = {"inkling_mm_model"}
"""Not built: an embedding of images of 24 GB that no field makes smaller."""


def _real(kind: str, folder: Path) -> tuple[list[dict[int | None, int]], dict[str, Any]]:
    """Numbers carried per layer at both lengths, and the config.json that the model saves."""
    torch.manual_seed(0)
    model = AUTO[kind].from_config(tiny(kind)).eval()
    found = []
    for length in LENGTHS:
        ids = torch.randint(4, VOCABULARY - 4, (1, length))
        found.append(dict(carried(model, ids)))
    model.config.save_pretrained(folder)
    return found, json.loads((folder / "config.json").read_text())


def _printed(kind: str, part: Mechanism, t: int) -> int:
    """Numbers of one mechanism after t tokens, the listed differences applied."""
    total = 0
    for item in part.cache(t):
        numbers = item.bits.numbers
        if item.kind == "convolution" and kind in ONE_COLUMN_MORE:
            conv = part.sizes()["conv"]
            numbers = numbers // (conv - 1) * conv
        elif item.kind == "window":
            numbers = _window(kind, part, t, numbers)
        total += numbers
    return total


def _window(kind: str, part: Mechanism, t: int, numbers: int) -> int:
    """A window drops the token that the next query no longer sees, so that one less is kept."""
    size = part.sizes()["size"]
    if kind in ALL_KEPT:
        return numbers // size * t
    if part.name != "compressed":
        return numbers // size * (size - 1)
    # tokens that wait for their entry are counted at their most; here they are what they are
    sizes = part.sizes()
    waiting = t % sizes["ratio"]
    width = sizes["head_dim"] + sizes["index_dim"]
    back = sizes["ratio"] if sizes["overlap"] else 0
    wide = 2 if sizes["overlap"] else 1
    return (size - 1) * sizes["head_dim"] + 2 * width * (waiting * wide + back)
