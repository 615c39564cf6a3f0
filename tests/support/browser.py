"""A page in a real browser: Debian's chromium, driven by Playwright."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from http.server import HTTPServer, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

WAIT = 60_000
RECALL, S5 = (
    f"#rows details:has(summary > :text-is('{asks}'))"
    for asks in ("one of n facts of 1 token", "track S_5")
)
"""Rows of the explorer's page."""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


def serving(server: HTTPServer) -> Iterator[str]:
    """The address of a server while it runs in a thread; it is closed at the end."""
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


def serving_files(folder: Path) -> Iterator[str]:
    """The address of the files of a folder, likewise."""
    handler = functools.partial(Quiet, directory=folder)
    return serving(ThreadingHTTPServer(("127.0.0.1", 0), handler))


class Window:
    """A page, and what it asked of other places or complained of."""

    def __init__(
        self,
        browser: Any,
        address: str,
        link: str,
        prepare: Callable[[Any], object] = bool,
        **settings: Any,
    ) -> None:
        self.page = browser.new_page(**settings)
        prepare(self.page)
        self.elsewhere: list[str] = []
        self.errors: list[str] = []
        self.page.on(
            "request",
            lambda one: one.url.startswith((address, "data:")) or self.elsewhere.append(one.url),
        )
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda said: said.type == "error" and self.errors.append(said.text))
        self.page.goto(address + link)
        self.page.wait_for_selector("body[data-state=answered]", timeout=WAIT)

    def after(self, act: Callable[[], object]) -> None:
        """Does something, and waits for the answer to it."""
        act()
        self.page.wait_for_selector("body[data-state=answered]", timeout=WAIT)

    def text(self, where: str) -> str:
        return str(self.page.locator(where).inner_text())

    def drag(self, tile: int, *, onto: int | None = None) -> None:
        """Drags a tile onto another by pointer, or off all of them, and waits for the answer."""
        places = self.page.locator("#tiles .tile")
        own = places.nth(tile).bounding_box()
        to = own if onto is None else places.nth(onto).bounding_box()

        def act() -> None:
            self.page.mouse.move(own["x"] + 5, own["y"] + 5)
            self.page.mouse.down()
            self.page.mouse.move(to["x"] + 5, to["y"] + (300 if onto is None else 5), steps=8)
            self.page.mouse.up()

        self.after(act)

    def tiles(self) -> list[str]:
        return list(self.page.locator("#tiles .tile").all_inner_texts())
