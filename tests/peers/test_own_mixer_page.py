"""The layers of docs/own-mixer.md, as printed there, keep every law."""

from __future__ import annotations

import copy
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import jaxtyping
import pytest
from support.quick_laws import shorten

from separatrix.mixers import MIXERS, Mixer, mixer
from separatrix.mixers.laws import LAWS, asking, drawn
from separatrix.stacks.mechanisms import MECHANISMS, mechanism

pytest.importorskip("transformers")
PAGE = Path(__file__).parents[2] / "docs" / "own-mixer.md"
_CASES = [
    (name, law)
    for name in ("qwen_gdn", "mistral")
    for law in LAWS
    if law != "chunks" and (name, law) != ("mistral", "stacks")
]
"""Fused attention has no batching rule, so that stacks of mistral warn and run one by one."""


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    before = dict(MECHANISMS), dict(MIXERS)
    yield
    for registered, kept in zip((MECHANISMS, MIXERS), before, strict=True):
        registered.clear()
        registered.update(kept)  # type: ignore[arg-type]


@cache
def _printed() -> dict[str, Mixer]:
    """What the page's code registers, made while it is registered, which ends with the test."""
    blocks = re.findall(r"(?:^(?: {4}.*)?\n)+", PAGE.read_text(), re.MULTILINE)
    (block,) = (block for block in blocks if "def qwen_gdn" in block)
    exec(compile(textwrap.dedent(block), str(PAGE), "exec"), {})
    return {
        name: drawn(mixer(mechanism(name, width=16), width=16)) for name in ("qwen_gdn", "mistral")
    }


def _keeps(name: str, law: str) -> None:
    within = 1e-5 if name == "qwen_gdn" else 1e-9
    formats = ("fp32", "bf16") if name == "qwen_gdn" else ("fp32", "bf16", "fp16")
    with asking(tolerance=within, formats=formats):
        LAWS[law](copy.deepcopy(_printed()[name]))


@pytest.mark.parametrize(("name", "law"), _CASES)
def test_the_layers_of_the_page_keep_the_laws(
    name: str, law: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten(monkeypatch)
    _keeps(name, law)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "law"), _CASES)
def test_at_their_own_sizes(name: str, law: str) -> None:
    _keeps(name, law)


def test_the_page_names_the_options_used_here() -> None:
    page = PAGE.read_text()
    line = "check-mechanism my_layers:qwen_gdn --set tolerance=1e-5 --set formats=fp32,bf16"
    assert line in page
