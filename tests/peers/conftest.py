"""The browser of the machine, for the pages that are tried in it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.browser import Window


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("there is no chromium on this machine")
    with sync_api.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def opened(browser: Any, address: str) -> Iterator[Callable[..., Window]]:
    windows: list[Window] = []

    def opens(link: str = "#s=qwen3-next-80b&n=262144", **settings: Any) -> Window:
        windows.append(Window(browser, address, link, **settings))
        return windows[-1]

    yield opens
    for window in windows:
        window.page.close()
        assert (window.elsewhere, window.errors) == ([], [])
