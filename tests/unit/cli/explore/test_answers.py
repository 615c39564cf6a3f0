"""What the page is told: the card's own JSON in parts, layers as tiles, errors of one stack."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.each import each
from support.hf_configs import QWEN

from separatrix.cards import card_facts
from separatrix.cards.apart import KINDS
from separatrix.cli.explore.answers import Question, answers, architecture, start, tiles
from separatrix.cli.report.card import card_json
from separatrix.core.errors import SeparatrixError
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.resolve import preset


def told(*stacks: str, context: str = "4096", given: tuple[str, ...] = ()) -> Any:
    return list(answers(Question(stacks, context, given)))


def test_the_parts_are_the_card() -> None:
    whole = card_json(card_facts(preset("qwen3-next-80b"), 4096))
    parts = told("qwen3-next-80b")
    assert parts[0]["card"] == whole | {"rows": [], "verdicts": []} | {
        name: parts[0]["card"][name] for name in ("forgets", "assumptions")
    }
    assert [said["card"] for said in parts if "card" in said and "tiles" not in said] == [whole]
    rows = re.findall(r"<summary><span>(.*?)</span><span><b.*?>(\w+)<", of_page(parts))
    asks = [row["asks"].replace("  up to", "compose up to") for row in whole["rows"]]
    assert [text for text, _ in rows] == asks
    assert [status for _, status in rows] == [row["status"] for row in whole["rows"]]


def of_page(parts: list[dict[str, Any]]) -> str:
    return "\n".join(said["html"] for said in parts if "html" in said)


def test_a_row_opens_theorem_numbers_and_assumptions() -> None:
    page = of_page(told("mistral-7b-v0.1", context="1M"))
    (recall,) = re.findall(r"<span>one of n facts of 1 token</span>.*?</details>", page, re.S)
    for word in ("FAILS", "numbers", "assumes", "Theorem R"):
        assert word in recall


def test_two_stacks_are_told_apart() -> None:
    page = of_page(told("full*4", "linear*4", context="1M"))
    assert page.index(KINDS["theorem"]) < page.index("Costs")
    assert page.index("Costs") < page.index("Assumptions")
    (row,) = re.findall(r"<summary><span>2-Sum of any pair.*?</summary>", page)
    assert row.count("<span>") == 3


def test_the_last_part_says_that_it_is_whole() -> None:
    assert told("mamba2 @ heads=1, head_dim=8", "full*2")[-1] == {"answered": True}


@each("text", ["", "gnd*4", "full*0", "{", "/etc/passwd", "~/config.json", "a.json"])
def test_what_is_no_stack(text: str) -> None:
    (said,) = told(text)
    assert said["stack"] == 0
    assert "\n" not in said["error"]


@each("context", ["0", "-1", "1000000000001", "1e6", "long"])
def test_what_is_no_context(context: str) -> None:
    (said,) = told("full", context=context)
    assert "context" in said["error"]


def test_no_context_is_the_smallest_of_their_own() -> None:
    # Qwen3-Next was made for 262,144 tokens, Mistral 7B for 32,768
    said = told("qwen3-next-80b", "mistral-7b-v0.1", context="")
    assert said[0]["card"]["context"] == 32_768


def test_a_path_is_read_only_where_it_was_given(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(QWEN))
    with pytest.raises(SeparatrixError, match=r"config\.json"):
        architecture(str(path), ())
    own = architecture(str(path), (str(path),))
    assert architecture(json.dumps(QWEN), ()).layers == own.layers


@each(
    "text, period, times, rest",
    [
        ("(gdn*3 + full)*12", ["gdn", "gdn", "gdn", "full"], 12, 0),
        ("(rglru*2 + window)*8 + rglru*2", ["rglru", "rglru", "window"], 8, 2),
        ("full + gdn + gdn", ["full", "gdn", "gdn"], 1, 0),
        ("full(heads=2)|gdn + full", ["full(heads=2)|gdn", "full"], 1, 0),
    ],
)
def test_tiles_write_the_stack(text: str, period: list[str], times: int, rest: int) -> None:
    found = tiles(Architecture.parse(text))
    assert (found["period"], found["times"], found["rest"]) == (period, times, rest)
    layers = " + ".join(period * times + period[:rest])
    settings = f" @ {found['settings']}" if found["settings"] else ""
    assert Architecture.parse(layers + settings) == Architecture.parse(text)


def test_no_tiles_of_a_period_that_is_too_long() -> None:
    text = " + ".join(f"full(heads={n})" for n in range(1, 131))
    assert tiles(Architecture.parse(text))["period"] == []


def test_what_may_be_chosen() -> None:
    chosen = start()
    assert "qwen3-next-80b" in chosen["presets"]
    title, group, sizes = chosen["mechanisms"]["gdn"]
    assert (title, group) == ("Gated DeltaNet", "recurrent")
    assert {"heads", "head_dim", "format"} <= set(sizes)
