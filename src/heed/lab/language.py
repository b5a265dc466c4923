"""The language of the lab: texts are English in the code, and Korean in catalogues next to it. A catalogue is a TOML
file in `korean/`, named after its module; each key is the English text in the code, with its {fields}, and each value
the Korean text with the same fields.
"""

import logging
import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.resources import files

LANGUAGES = ("en", "ko")
_language: ContextVar[str] = ContextVar("language of the lab", default="en")


def tr(text: str, **values: object) -> str:
    """Return a text in the current language, with `values` formatted into its fields."""
    if _language.get() == "ko":
        text = korean().get(text, text)
    return text.format(**values) if values else text


def current_language() -> str:
    """Return the current language."""
    return _language.get()


def title_weight() -> str:
    """Return the font weight of titles: bold in English; a Korean title with a few bold letters is hard to read."""
    return "bold" if _language.get() == "en" else "normal"


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Use a language for texts and fonts within this block."""
    if language not in LANGUAGES:
        raise ValueError(f"no language {language!r}; there are {' and '.join(LANGUAGES)}")
    from matplotlib import rc_context

    from heed.lab.fonts import families, find_fonts

    token, log = _language.set(language), logging.getLogger("matplotlib.font_manager")
    level = log.level
    log.setLevel(logging.ERROR)  # many Korean fonts have no bold face, which is no news to a reader
    try:
        with rc_context({} if language == "en" else {"font.family": families(find_fonts("가나다 abc"))}):
            yield
    finally:
        log.setLevel(level)
        _language.reset(token)


def system_language() -> str:
    """Return the language of the system's locale if the lab supports it, else English."""
    locale = next((os.environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if os.environ.get(name)), "")
    return "ko" if locale.startswith("ko") else "en"


@cache
def korean() -> dict[str, str]:
    """Return all catalogues as one."""
    texts: dict[str, str] = {}
    for file in sorted((files("heed.lab") / "korean").iterdir(), key=lambda file: file.name):
        texts |= tomllib.loads(file.read_text(encoding="utf-8"))
    return texts
