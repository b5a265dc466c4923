"""The browser in which pages are tested."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
)


NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge")
MACOS = ("Chromium.app/Contents/MacOS/Chromium", "Google Chrome.app/Contents/MacOS/Google Chrome")


def find() -> str:
    """Where a Chromium is: on PATH, or among the applications of macOS."""
    found = [path for name in NAMES if (path := shutil.which(name))]
    found += [str(path) for name in MACOS if (path := Path("/Applications", name)).is_file()]
    assert found, "These tests need a Chromium: install chromium, chromium-browser or google-chrome and put it on PATH."
    return found[0]


@contextmanager
def chromium() -> Iterator[Browser]:
    """A Chromium without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find(), args=list(FLAGS))
        yield browser
        browser.close()
