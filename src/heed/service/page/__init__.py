"""The page: its files, and those it shares with `heed look`."""

import io
import json
import re
from functools import cache
from importlib.resources import files
from pathlib import Path

from heed.lab.colors import DARK_RAMP, LIGHT_RAMP
from heed.lab.fonts import bundled_korean

CONTENT_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "json": "application/json",
    "ttf": "font/ttf",
}
SHARED = {f"lab-{name}": name for name in ("theme.js", "roles.js", "shapes.js", "beam.js", "states.js", "parts.css")}


def asset(name: str) -> tuple[bytes, str] | None:
    """A file of the page and its content type; None if there is no such file."""
    content_type = CONTENT_TYPES.get(name.rpartition(".")[2])
    data = _read(name) if content_type and re.fullmatch(r"[\w.-]+", name) else None
    return None if data is None else (data, content_type)


def _read(name: str) -> bytes | None:
    if name == "ramps.json":
        return json.dumps({"light": LIGHT_RAMP, "dark": DARK_RAMP}).encode()
    if name == "korean.ttf":
        return next((_without_hinting_sources(path) for path in bundled_korean()), None)
    if name in SHARED:
        return (files("heed.lab") / "page" / SHARED[name]).read_bytes()
    file = files("heed.service.page") / name
    return file.read_bytes() if file.is_file() else None


@cache
def _without_hinting_sources(path: Path) -> bytes:
    """A font without the empty tables of its hinting tools, which browsers reject."""
    from fontTools.ttLib import TTFont

    out = io.BytesIO()
    with TTFont(path, lazy=True) as font:
        for name in ("TSI0", "TSI1", "TSI2", "TSI3", "TSI5", "TTFA"):
            if name in font:
                del font[name]
        font.save(out)
    return out.getvalue()
