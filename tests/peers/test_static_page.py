"""The explorer's page of the site: its theory in Node against the package's own answers, and the
page in a real browser. `make site` builds it; where it has not, these are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.browser import RECALL, S5, WAIT, Window, serving_files
from support.hf_configs import QWEN
from support.static_page import CONTEXTS, SPECS, built, in_node

from separatrix.cards import card_facts
from separatrix.cards.facts import TOPICS
from separatrix.cli.explore.answers import Question, told
from separatrix.cli.explore.server import LARGEST
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.released import PRESETS

FEW = ("recurrentgemma-2b", "qwen3-next-80b", "llama-3.1-8b", *SPECS[:3], SPECS[-1], "gnd*4")


def asked(stacks: tuple[str, ...], context: str) -> dict[str, Any]:
    return {"stacks": list(stacks), "context": context}


def compare(questions: list[dict[str, Any]]) -> None:
    """The same answers, byte for byte."""
    for question, found in zip(questions, in_node(questions), strict=True):
        parts = told(Question(tuple(question["stacks"]), question["context"]))
        assert found == f"[{','.join(map(json.dumps, parts))}]", question


def test_answers_in_node_are_the_packages_own() -> None:
    files = asked((json.dumps(QWEN),), "")
    two = asked(("(gdn*3 + full)*2", "mamba2*8"), "65536")
    wrong = [asked(("full",), context) for context in ("0", "10000000000000")]
    compare([*(asked((one,), "8192") for one in FEW), files, two, *wrong])


@pytest.mark.long
def test_all_presets_in_node_are_answered_as_by_the_package() -> None:
    compare([asked((one,), str(n)) for one in (*PRESETS, *SPECS) for n in CONTEXTS])


def test_nothing_of_it_is_too_large() -> None:
    # what is fetched before a card is shown, and all of it
    cards = (built() / "cards.bin").stat().st_size
    everything = sum(path.stat().st_size for path in built().rglob("*") if path.is_file())
    assert cards < 400_000
    assert everything < 26_000_000


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    yield from serving_files(built())


@pytest.fixture(scope="module")
def window(browser: Any, address: str) -> Iterator[Window]:
    """One window for all that needs the engine, which is loaded once."""
    found = Window(browser, address, "#s=qwen3-next-80b&n=262144")
    yield found
    found.page.close()
    assert (found.elsewhere, found.errors) == ([], [])


def opening(window: Window, link: str) -> None:
    window.page.evaluate(
        "(link) => { document.body.dataset.state = ''; history.replaceState(null, '', link);"
        " dispatchEvent(new Event('hashchange')); }",
        link,
    )


def follow(window: Window, link: str) -> None:
    """Another link, in a window that is open: what it says is answered."""
    opening(window, link)
    window.page.wait_for_selector("body[data-state=answered]", timeout=WAIT)


def test_a_preset_is_shown_before_the_engine_is_there(window: Window) -> None:
    assert "24,576 bytes per token" in window.text("#caches")
    assert window.page.locator("#whole i").count() == 48
    window.page.click(f"{S5} summary")
    assert "Theorem S" in window.text(f"{S5} table >> nth=0")


def test_tiles_are_dragged_and_moved_by_keyboard(window: Window) -> None:
    follow(window, "#s=qwen3-next-80b&n=262144")
    window.page.evaluate("scrollTo(0, 0)")
    window.drag(3, onto=0)
    assert window.tiles() == ["full", "gdn", "gdn", "gdn"]
    assert "SOLVABLE" in window.text(RECALL)
    window.page.locator("#tiles .tile").nth(0).focus()
    window.after(lambda: window.page.keyboard.press("ArrowRight"))
    assert window.tiles() == ["gdn", "full", "gdn", "gdn"]
    window.after(lambda: window.page.keyboard.press("Delete"))
    assert window.tiles() == ["gdn"] * 3
    assert "OPEN" in window.text(RECALL)


def test_what_the_browser_says_is_what_the_package_says(window: Window) -> None:
    spec, context = "(gdn*7 + full)*2 @ heads=4, head_dim=64, rope_base=10000", 100_000
    follow(window, f"#s={spec.replace('+', '%2B')}&n={context}")
    own = card_facts(Architecture.parse(spec), context).table
    shown = window.page.locator("#rows details").all_inner_texts()
    # behind the questions stand memory, costs and what is taken for granted
    assert len(shown) == len(own) + len(TOPICS)
    for row, text in zip(own, shown, strict=False):
        assert row.asks.strip() in text
        assert row.said in text.replace("\n", " ")


def test_a_link_holds_two_stacks(window: Window) -> None:
    follow(window, "#s=qwen3-next-80b&s=mamba2*48&n=65536")
    rows = window.text("#rows")
    assert rows.index("for some only") < rows.index("Costs") < rows.index("Alike")
    window.after(lambda: window.page.click("#single"))


@pytest.mark.parametrize(
    ("link", "said"), [("#s=gnd*4&n=4096", "gnd"), ("#s=full&n=0", "context is 0")]
)
def test_a_link_that_cannot_be_read(window: Window, link: str, said: str) -> None:
    follow(window, link)
    assert "cannot be read" in window.text("#wrong")
    assert said in window.text("#wrong")
    assert "tokens" in window.text("#caches")


def test_a_refused_context(window: Window) -> None:
    follow(window, "#s=full*2&n=4096")
    window.page.locator("#context").fill("-1")
    window.page.wait_for_selector("body[data-state=refused]", timeout=WAIT)
    assert "context is '-1'" in window.text("#wrong")


def test_the_longest_context(window: Window) -> None:
    follow(window, "#s=full*2&n=1000000000000")
    assert "1,000,000,000,000 tokens" in window.text("#caches")


def test_files(window: Window, tmp_path: Path) -> None:
    large, other, good = (tmp_path / name for name in ("large.json", "a.png", "config.json"))
    large.write_bytes(b"{" * (10 * LARGEST))
    other.write_bytes(b"\x89PNG\r\n")
    good.write_text(json.dumps(QWEN))
    for path, said in ((large, "10 MiB"), (other, "no config.json")):
        window.page.set_input_files("#file", str(path))
        window.page.wait_for_selector(f"#wrong:has-text('{said}')", timeout=WAIT)
    window.page.set_input_files("#file", str(good))
    window.page.wait_for_selector("#whole i:nth-child(8):last-child", timeout=WAIT)
    window.page.wait_for_selector("body[data-state=answered]", timeout=WAIT)
    assert window.page.locator("#wrong").is_hidden()


def test_a_long_search_gives_way(window: Window) -> None:
    # 2^24 offsets of rotated keys are looked at one by one
    opening(window, "#s=full*2 @ rope_base=10000, head_dim=128&n=16777216")
    window.page.wait_for_selector("#caches:has-text('16,777,216')", timeout=WAIT)
    window.page.wait_for_timeout(1_500)
    follow(window, "#s=gdn*3&n=4096")
    assert "4,096 tokens" in window.text("#caches")
    assert window.tiles() == ["gdn"]  # a period, three times


def test_a_question_that_ends_the_engine(browser: Any, address: str, tmp_path: Path) -> None:
    # so deep that the browser's own stack does not hold it
    deep = tmp_path / "deep.json"
    deep.write_text('{"a":' + "[" * 100_000)
    window = Window(browser, address, "#s=gdn*4&n=4096")
    link = window.page.url
    window.page.set_input_files("#file", str(deep))
    window.page.wait_for_selector("#wrong:has-text('deep.json')", timeout=WAIT)
    window.page.wait_for_selector("body[data-state=answered]", timeout=WAIT)
    assert window.page.url == link
    window.after(lambda: window.page.locator("#spec").fill("gdn*2 + full"))
    assert window.page.locator("#whole i").count() == 3
    window.page.close()


def without_webassembly(page: Any) -> None:
    page.add_init_script("delete globalThis.WebAssembly")


def without_python(page: Any) -> None:
    # in the worker, whose requests Playwright does not always see
    source = (built() / "worker.mjs").read_text()
    broken = source.replace('"./pyodide/"', '"./nowhere/"')
    assert broken != source
    reply = {"body": broken, "content_type": "text/javascript"}
    page.route("**/worker.mjs", lambda route: route.fulfill(**reply))


def without_its_theory(page: Any) -> None:
    page.route("**/theory.mjs", lambda route: route.abort())


def without_its_worker(page: Any) -> None:
    page.route("**/worker.mjs", lambda route: route.abort())


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        (without_webassembly, "no WebAssembly"),
        (without_python, "cannot run here"),
        (without_its_theory, "could not be loaded"),
        (without_its_worker, "could not be loaded"),
    ],
)
def test_without_an_engine_presets_are_shown(
    browser: Any, address: str, prepare: Callable[[Any], object], said: str
) -> None:
    window = Window(browser, address, "#s=kimi-k3", prepare)
    window.page.wait_for_selector(f"#notice:has-text('{said}')", timeout=WAIT)
    assert "tokens" in window.text("#caches")
    window.after(lambda: window.page.select_option("#preset", "recurrentgemma-2b"))
    window.page.locator("#spec").fill("gdn*2")
    window.page.wait_for_selector("#wrong:has-text('separatrix explore')", timeout=WAIT)
    window.after(lambda: window.page.select_option("#preset", "qwen3-next-80b"))
    assert window.page.locator("#wrong").is_hidden()
    assert window.elsewhere == []
    window.page.close()


def test_a_link_that_needs_the_engine_says_that_there_is_none(browser: Any, address: str) -> None:
    window = Window(browser, address, "#s=qwen3-next-80b", without_webassembly)
    opening(window, "#s=gdn*4")
    window.page.wait_for_selector("#wrong:has-text('separatrix explore')", timeout=WAIT)
    window.page.close()


@pytest.mark.parametrize("system", ["light", "dark"])
@pytest.mark.parametrize(("kept", "shown"), [("slate", "dark"), ("default", "light"), (None, None)])
def test_it_is_light_or_dark_as_the_site(
    browser: Any, address: str, system: str, kept: str | None, shown: str | None
) -> None:
    # as the site's switch keeps it; what is kept and cannot be read is none
    palette = "{" if kept is None else json.dumps({"index": 1, "color": {"scheme": kept}})
    keep = f"localStorage.setItem('/.__palette', {json.dumps(palette)})"
    window = Window(
        browser,
        address,
        "#s=qwen3-next-80b",
        lambda page: page.add_init_script(keep),
        color_scheme=system,
    )
    behind = window.page.evaluate("getComputedStyle(document.body).backgroundColor")
    night = (shown or system) == "dark"
    assert behind == ("rgb(17, 22, 27)" if night else "rgb(253, 253, 252)")
    window.page.emulate_media(media="print")
    paper = window.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == "rgb(253, 253, 252)"
    assert (window.elsewhere, window.errors) == ([], [])
    window.page.close()


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits(opened: Callable[..., Window], width: int, scheme: str) -> None:
    window = opened(viewport={"width": width, "height": 844}, color_scheme=scheme)
    assert window.page.evaluate("document.documentElement.scrollWidth") <= width
