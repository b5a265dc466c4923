"""A look as one self-contained HTML page: data, style, script and glyphs are embedded."""

import hashlib
import json
import re
from base64 import b64encode
from html import escape
from importlib.resources import files

from heed.lab.attention import Look, to_json
from heed.lab.attention_map import CAPTIONS, TITLES
from heed.lab.colors import DARK_RAMP, LIGHT_RAMP
from heed.lab.fonts import Fonts, default_font, find_fonts, may_embed, subset
from heed.lab.words import aligned_words, words

SCRIPTS = ("model", "roles", "theme", "shapes", "sentence", "heads", "steps", "beam", "states", "look")
ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}  # what could end a script or start a tag


def build_page(look: Look, part: str, layer: int | None, head: int | None) -> tuple[str, str]:
    """Return the page, and the characters missing from all fonts."""
    fonts = find_fonts(_characters(look))
    script = '(() => {\n"use strict";\n' + "\n".join(_read(f"{name}.js") for name in SCRIPTS) + "})();\n"
    parts = {
        "title": escape(f"{_short(look.source_text)} → {_short(look.target_text)} · heed look"),
        "script_hash": b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "fonts": font_faces(fonts),
        "style": _read("look.css") + _read("parts.css"),
        "script": script,
        "look": to_json(look).translate(ESCAPES),
        "settings": json.dumps(_settings(look, part, layer, head), ensure_ascii=False).translate(ESCAPES),
    }
    # One pass over the template: inserted text is not searched again, so it cannot act as a placeholder.
    page = re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _read("look.html"))
    return page, fonts.missing


def _settings(look: Look, part: str, layer: int | None, head: int | None) -> dict:
    """Return what the page needs besides the look."""
    return {
        "part": part,
        "layer": (layer or 0) - 1,
        "head": (head or 0) - 1,
        "titles": TITLES,
        "reading": CAPTIONS,
        "ramps": {"light": LIGHT_RAMP, "dark": DARK_RAMP},
        "words": {name: words(getattr(look, name)) for name in ("source", "target", "inputs")},
        "aligned": aligned_words(look),
    }


def embedded(text: str) -> str:
    """Return CSS with the glyphs of a text that may be missing on the reader's machine."""
    return font_faces(find_fonts(text))


def font_faces(fonts: Fonts) -> str:
    """Return CSS with the embedded glyphs that may be missing on the reader's machine."""
    faces = []
    for path, characters in fonts.needed.items():
        if path == default_font() or not may_embed(path):
            continue
        data = b64encode(subset(path, characters)).decode()
        ranges = ", ".join(f"U+{ord(char):X}" for char in characters)
        source = f'url(data:font/woff;base64,{data}) format("woff")'
        faces.append(f'@font-face {{ font-family: "Heed glyphs"; src: {source}; unicode-range: {ranges}; }}')
    return "\n".join(faces)


def _characters(look: Look) -> str:
    """Return all text the page can show."""
    others = [token for step in look.predictions for token, _ in step]
    others += [candidate.token for step in look.search for candidate in step]
    tokens = "".join([*look.source, *look.target, *look.inputs, *others]).replace("\u2581", "")
    return tokens + look.source_text + look.target_text + look.model


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"


def _read(name: str) -> str:
    return (files("heed.lab") / "page" / name).read_text("utf-8")
