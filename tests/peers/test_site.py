"""The built site in a real browser, as a teacher walks through it. `make site` builds it; where it
has not, these are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.browser import WAIT, serving_files
from support.console import ROOT
from support.static_page import built

PUBLIC = ROOT / "build" / "site" / "public"
Opens = Callable[..., Any]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    built()
    if not (PUBLIC / "index.html").exists():
        pytest.skip("the site has not been built: make site")
    yield from serving_files(PUBLIC)


@pytest.fixture
def opens(browser: Any, address: str) -> Iterator[Opens]:
    """Opens a page; at the end none has complained or asked another place."""
    wrong: list[str] = []
    opened: list[Any] = []

    def opens(path: str, **settings: Any) -> Any:
        page = browser.new_page(**settings)
        opened.append(page)
        page.on("console", lambda said: said.type == "error" and wrong.append(said.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        own = (address, "data:", "blob:")
        page.on("request", lambda one: one.url.startswith(own) or wrong.append(one.url))
        page.goto(address + path)
        return page

    yield opens
    for page in opened:
        page.close()
    assert wrong == []


def test_a_teacher_walks_from_home_to_the_end_of_the_lesson(opens: Opens) -> None:
    page = opens("index.html")
    page.click("article >> text=a lesson in five steps")
    page.wait_for_selector(".katex", timeout=WAIT)
    for step in range(1, 6):
        page.click(f".md-sidebar--secondary a[href*='#{step}-']")
        page.wait_for_url(f"**#{step}-*")
    # every picture is drawn, told in words, and wide enough to be read
    pictures = page.locator("article figure.drawn img")
    assert pictures.count() == 5
    seen = pictures.evaluate_all("all => all.filter((one) => one.naturalWidth && one.alt).length")
    assert seen == 5
    page.click("article >> text=the explorer")
    page.wait_for_selector("body[data-state=answered]", timeout=WAIT)
    page.click("#rows summary >> nth=0")
    page.click("#rows a[href^='../theory/'] >> nth=0")
    page.wait_for_selector("#as-the-software-applies-it, article h1", timeout=WAIT)
    page.click(".md-tabs >> text=Learn")
    page.wait_for_url("**/lesson.html")
    page.click(".md-footer__link--next")
    page.wait_for_url("**/tutorials/compare.html")


def test_the_search_finds_a_theorem(opens: Opens) -> None:
    page = opens("index.html")
    page.click("text=Search >> visible=true")
    page.locator("input[placeholder] >> visible=true").fill("windows forget")
    page.wait_for_selector("a[href*='theory/r.html'] >> visible=true", timeout=WAIT)


def test_report_and_site_lead_to_each_other(opens: Opens, address: str) -> None:
    if not (PUBLIC / "report" / "index.html").exists():
        pytest.skip("no report was at hand when the site was built: make reproduce")
    page = opens("report.html")
    page.click("text=Open it")
    page.click("a[href='#cell-eva-linear']")
    page.click(".panel:target summary a >> nth=0")
    page.click("article >> text=linear attention on Eva")
    page.wait_for_selector("#cell-eva-linear >> visible=true")
    page.click("header nav a")
    page.wait_for_url(f"{address}index.html")


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_and_pictures_have_their_colours(opens: Opens, width: int, scheme: str) -> None:
    size = {"width": width, "height": 844}
    for path in ("index.html", "lesson.html", "theory/i.html", "tasks/eva.html", "not-said.html"):
        page = opens(path, viewport=size, color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        if width == 390:
            # a table of few columns is broken, not scrolled
            tables = (
                "[...document.querySelectorAll('.separatrix table, article table')]"
                ".filter((one) => one.querySelectorAll('tr:first-child > *').length < 5"
                " && one.getBoundingClientRect().right > innerWidth).length"
            )
            assert page.evaluate(tables) == 0, path
    page = opens("index.html", viewport=size, color_scheme=scheme)
    assert page.evaluate(
        "getComputedStyle(document.documentElement.querySelector('[data-md-color-scheme]'))"
        ".colorScheme.includes('dark')"
    ) == (scheme == "dark")
