"""Sizes of the built site, and how long its pages take in this machine's chromium.

    python benchmarks/site.py [ROUNDS]

Each round (3) opens every page in a new browser, so that nothing is kept from the one before. The
seconds are on the clock: the load that stands beside them says how busy the machine was.
"""

from __future__ import annotations

import gzip
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.browser import serving_files

ROOT = Path(__file__).parents[1]
PUBLIC = ROOT / "build" / "site" / "public"
PAGES = ("index.html", "lesson.html", "theory/iii.html")
WAIT = 240_000
CHANGED = "(old) => ![undefined, '', old[0]].includes(document.querySelector('#caches')?.innerText)"


def sizes(public: Path) -> None:
    """Bytes of all files, of the explorer, and of the text that a page and the search take."""
    files = {path: path.stat().st_size for path in public.rglob("*") if path.is_file()}
    explorer = {path: size for path, size in files.items() if "explore" in path.parts}
    packed = sum(len(gzip.compress(path.read_bytes())) for path in explorer)
    cards, search = (files[public / name] for name in ("explore/cards.bin", "search.json"))
    print(f"pages {sum(files.values()) - sum(explorer.values()):,} bytes (search.json {search:,})")
    print(f"explorer {sum(explorer.values()):,} bytes, packed {packed:,} (cards.bin {cards:,})")
    made = {path: path.stat().st_size for path in (public.parent / "pages").rglob("*.md")}
    largest = max(made, key=lambda path: made[path])
    print(f"{len(made)} pages of Markdown, the largest {largest.stem} of {made[largest]:,} bytes")


def seconds(browser: Any, address: str) -> dict[str, float]:
    """What is waited for -> seconds from the moment it was asked."""
    page = browser.new_page()
    page.set_default_timeout(WAIT)
    found = {}
    for path in PAGES:
        begin = perf_counter()
        page.goto(address + path)
        found[f"{path} loaded"] = perf_counter() - begin

    def answer(what: str, ask: Callable[[], object]) -> None:
        begin, before = perf_counter(), page.locator("#caches").all_inner_texts()
        ask()
        page.wait_for_function(CHANGED, arg=before)
        found[f"{what}: memory"] = perf_counter() - begin
        page.wait_for_selector("body[data-state=answered]")
        found[f"{what}: whole card"] = perf_counter() - begin

    answer("a preset, from the start", lambda: page.goto(f"{address}explore/index.html"))
    answer("own layers, engine loading", lambda: page.fill("#spec", "(gdn*7 + full)*6"))
    answer("another context, engine loaded", lambda: page.fill("#context", "100000"))
    page.close()
    return found


def main(rounds: int) -> None:
    from playwright.sync_api import sync_playwright

    if not (PUBLIC / "explore" / "start.json").exists():
        return print("the site has not been built: make site ARGS=--whole")
    sizes(PUBLIC)
    served = serving_files(PUBLIC)
    address = next(served)
    told: list[dict[str, float]] = []
    with sync_playwright() as driver:
        for _ in range(rounds):
            browser = driver.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            told.append(seconds(browser, address))
            browser.close()
    next(served, None)  # ends the server
    for what in told[0]:
        print(f"{what:44}", *(f"{one[what]:7.2f}" for one in told))
    print(f"load of the machine, last minute and last five: {os.getloadavg()[:2]}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
