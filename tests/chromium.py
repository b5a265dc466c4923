"""The browser in which pages are tested."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A Chromium without a window."""
    found = [path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))]
    assert found, "These tests need a Chromium: install chromium, chromium-browser or google-chrome and put it on PATH."
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found[0], args=list(FLAGS))
        yield browser
        browser.close()
