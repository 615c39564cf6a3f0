"""The page of `separatrix explore` in a real browser: Debian's chromium, driven by Playwright."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.browser import RECALL, S5, WAIT, Window, serving
from support.hf_configs import QWEN

from separatrix.cli.explore.server import LARGEST, Server


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = Server(0, [])
    yield from serving(server)
    server.server_close()


def test_the_card(opened: Callable[..., Window]) -> None:
    window = opened()
    # 12 layers of 2 heads of 256 keys and values in bf16: 24,576 bytes per token
    assert "24,576 bytes per token" in window.text("#caches")
    assert window.page.locator("#whole i").count() == 48
    assert "SOLVABLE" in window.text(RECALL)
    window.page.click(f"{S5} summary")
    assert "Theorem S" in window.text(f"{S5} table >> nth=0")


def test_tiles_are_dragged(opened: Callable[..., Window]) -> None:
    window = opened()
    window.drag(3, onto=0)
    assert window.tiles() == ["full", "gdn", "gdn", "gdn"]
    window.drag(0)
    assert window.tiles() == ["gdn"] * 3
    assert "FAILS" in window.text("#rows") or "OPEN" in window.text(RECALL)


def test_tiles_are_moved_by_keyboard(opened: Callable[..., Window]) -> None:
    window = opened()
    window.page.locator("#tiles .tile").nth(3).focus()
    window.after(lambda: window.page.keyboard.press("ArrowLeft"))
    assert window.tiles() == ["gdn", "gdn", "full", "gdn"]
    window.after(lambda: window.page.keyboard.press("Delete"))
    assert window.tiles() == ["gdn"] * 3
    for _ in range(2):
        window.after(lambda: window.page.keyboard.press("Delete"))
    window.page.keyboard.press("Delete")
    assert window.tiles() == ["gdn"]  # a period keeps its last layer


def test_the_palette_and_the_periods(opened: Callable[..., Window]) -> None:
    window = opened("#s=gdn*2&n=4096")
    window.after(lambda: window.page.click("#palette >> text=+ full"))
    assert window.tiles() == ["gdn", "full"]
    window.after(lambda: window.page.locator("#times").fill("5"))
    assert window.page.locator("#whole i").count() == 10


def test_the_slider_moves_the_context(opened: Callable[..., Window]) -> None:
    window = opened("#s=mistral-7b-v0.1&n=4096")
    window.after(lambda: window.page.locator("#slider").fill("20"))
    assert "1,048,576 tokens" in window.text("#caches")
    assert "FAILS" in window.text(RECALL)


def test_a_link_holds_all(opened: Callable[..., Window], browser: Any) -> None:
    window = opened()
    window.after(lambda: window.page.click("#compare"))
    window.after(lambda: window.page.locator("#spec").fill("(gdn*7 + full)*6"))
    again = opened("#" + window.page.url.partition("#")[2])
    assert again.text("#caches") == window.text("#caches")
    assert again.text("#rows") == window.text("#rows")
    rows = again.text("#rows")
    assert rows.index("for some only") < rows.index("Costs") < rows.index("Alike")
    window.after(lambda: window.page.click("#single"))
    assert "Alike" not in window.text("#rows")


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ("#s=gnd*4&n=4096", "gnd"),
        ("#s=full&n=0", "context is 0"),
        ("#s=full&n=10000000000000", ""),
        ("#s=gnd&s=gmd&n=0", "gmd"),
        ("#garbage", "names no stack"),
        ("#s=&n=4096", "names no stack"),
    ],
)
def test_a_link_that_cannot_be_read(opened: Callable[..., Window], link: str, said: str) -> None:
    window = opened(link)
    told = window.text("#wrong")
    assert "cannot be read" in told or said == "names no stack"
    assert said in told
    assert "Shown instead: " in told
    assert "tokens" in window.text("#caches")


def test_the_next_link_takes_the_complaint_away(opened: Callable[..., Window]) -> None:
    window = opened("#garbage")
    assert "Shown instead: qwen3-next-80b" in window.text("#wrong")
    window.page.evaluate("location.hash = '#s=full*3&n=4096'")
    window.page.wait_for_selector("#whole i:nth-child(3):last-child", timeout=WAIT)
    assert window.page.locator("#wrong").is_hidden()
    window.page.evaluate("location.hash = ''")  # no link is no fault
    window.page.wait_for_selector("#whole i:nth-child(48)", timeout=WAIT)
    assert window.page.locator("#wrong").is_hidden()


def test_the_longest_context(opened: Callable[..., Window]) -> None:
    assert "1,000,000,000,000 tokens" in opened("#s=full*2&n=1000000000000").text("#caches")


def test_a_stack_without_a_card_lends_no_words(opened: Callable[..., Window]) -> None:
    window = opened("#s=qwen3-next-80b&s=recurrentgemma-2b&n=131072")
    window.page.locator("#context").fill("0")
    window.page.wait_for_selector("#wrong:has-text('context is 0')", timeout=WAIT)
    window.page.click("#which .a")
    window.page.select_option("#preset", "mamba2-2.7b")
    window.page.wait_for_selector("body[data-state=refused]", timeout=WAIT)
    window.page.click("#rows details summary >> nth=0")
    # of A nothing is known: what stands there is B's, under B's name
    assert "mamba2" not in window.text("#rows")


@pytest.mark.parametrize("context", ["-1", "0", "10000000000000", "a few"])
def test_a_refused_context(opened: Callable[..., Window], context: str) -> None:
    window = opened("#s=full*2&n=4096")
    window.page.locator("#context").fill(context)
    window.page.wait_for_selector("body[data-state=refused]", timeout=WAIT)
    assert context in window.text("#wrong")
    window.after(lambda: window.page.locator("#context").fill("1,000,000,000,000"))
    window.after(lambda: window.page.locator("#context").fill("1"))
    assert "at 1 token;" in window.text("#caches")
    assert window.page.get_attribute("#slider", "aria-valuetext") == "1 token"


def test_a_link_of_three_stacks(opened: Callable[..., Window]) -> None:
    window = opened("#s=full*2&s=gdn*2&s=mamba2*2&n=4096")
    assert "3 stacks" in window.text("#wrong")
    assert window.page.locator("#which [aria-pressed]").count() == 2


def test_files(opened: Callable[..., Window], tmp_path: Path) -> None:
    window = opened()
    large, other, good = (tmp_path / name for name in ("large.json", "a.png", "config.json"))
    large.write_bytes(b"{" * (10 * LARGEST))
    other.write_bytes(b"\x89PNG\r\n")
    good.write_text(json.dumps(QWEN))
    for path, said in ((large, "10 MiB"), (other, "no config.json")):
        window.page.set_input_files("#file", str(path))
        window.page.wait_for_selector(f"#wrong:has-text('{said}')", timeout=WAIT)
    window.page.set_input_files("#file", str(good))
    window.page.wait_for_selector("#whole i:nth-child(8):last-child", timeout=WAIT)
    assert window.page.locator("#wrong").is_hidden()
    # the link holds the stack that was read, not the file
    assert "model_type" not in window.page.url
    # one that cannot be read leaves the stack, its tiles and its link
    link, tiles = window.page.url, window.tiles()
    good.write_text("{}")
    window.page.set_input_files("#file", str(good))
    window.page.wait_for_selector("#wrong:has-text('model_type')", timeout=WAIT)
    window.page.wait_for_selector("body[data-state=answered]", timeout=WAIT)
    assert (window.page.url, window.tiles()) == (link, tiles)


def test_code_in_a_short_answer(opened: Callable[..., Window]) -> None:
    window = opened("#s=dsa(index_dim=8)*4")
    assert window.page.locator("#rows summary code:has-text('retrieval')").count()
    assert "`" not in window.text("#rows")


def test_a_text_that_does_not_parse(opened: Callable[..., Window]) -> None:
    window = opened()
    window.page.locator("#spec").fill("full*2 + gnd")
    window.page.wait_for_selector("#wrong code:has-text('list mechanisms')", timeout=WAIT)
    assert "'gdn'" in window.text("#wrong")
    # it is no longer asked: whoever waits for an answer learns that there is none
    window.page.wait_for_selector("body[data-state=refused]", timeout=WAIT)
    window.page.locator("#context").fill("0")
    window.page.wait_for_selector("body[data-state=refused]", timeout=WAIT)
    window.page.locator("#context").fill("4096")
    window.after(lambda: window.page.locator("#spec").fill("full*2 + gdn"))
    assert window.page.locator("#wrong").is_hidden()


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits(opened: Callable[..., Window], width: int, scheme: str) -> None:
    window = opened(
        "#s=qwen3-next-80b&s=kimi-k3&n=262144",
        viewport={"width": width, "height": 844},
        color_scheme=scheme,
    )
    assert window.page.evaluate("document.documentElement.scrollWidth") <= width
