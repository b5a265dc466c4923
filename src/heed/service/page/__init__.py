"""The page: its files, and those it shares with `heed look`."""

import io
import json
import re
from functools import cache
from importlib.resources import files
from pathlib import Path

from heed.lab.colors import DARK_RAMP, LIGHT_RAMP
from heed.lab.fonts import bundled_korean

KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "json": "application/json",
    "ttf": "font/ttf",
}
SHARED = {
    f"lab-{name}": name for name in ("theme.js", "shapes.js", "beam.js", "states.js", "parts.css")
}  # of `heed look`


def asset(name: str) -> tuple[bytes, str] | None:
    """A file of the page and its kind; None if there is none of that name."""
    kind = KINDS.get(name.rpartition(".")[2])
    data = _read(name) if kind and re.fullmatch(r"[\w.-]+", name) else None
    return None if data is None else (data, kind)


def _read(name: str) -> bytes | None:
    if name == "ramps.json":
        return json.dumps({"light": LIGHT_RAMP, "dark": DARK_RAMP}).encode()
    if name == "korean.ttf":
        return next((_plain(path) for path in bundled_korean()), None)
    if name in SHARED:
        return (files("heed.lab") / "page" / SHARED[name]).read_bytes()
    place = files("heed.service.page") / name
    return place.read_bytes() if place.is_file() else None


@cache
def _plain(path: Path) -> bytes:
    """A font without what browsers refuse: the empty tables that the sources of hints left."""
    from fontTools.ttLib import TTFont

    out = io.BytesIO()
    with TTFont(path, lazy=True) as font:
        for name in ("TSI0", "TSI1", "TSI2", "TSI3", "TSI5", "TTFA"):
            if name in font:
                del font[name]
        font.save(out)
    return out.getvalue()
