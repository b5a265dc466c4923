"""Fonts that can show a text, found on this machine and embedded into pages."""

import io
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

from heed.lab.words import one_line

NO_EMBEDDING = 0x0002  # the bit of OS/2 fsType by which a font forbids embedding


@dataclass(frozen=True)
class Fonts:
    """The fonts a text needs, in order, each with the characters it is needed for, and the characters that none has."""

    needed: dict[Path, str]
    missing: str


def find_fonts(text: str) -> Fonts:
    """Choose as few fonts as are needed: matplotlib's own first, then the bundled Korean one, then the system's."""
    left = set(one_line(text)) - {" "}
    needed: dict[Path, str] = {default_font(): ""}
    for path in (path for fonts in (lambda: [default_font()], bundled_korean, system_fonts) for path in fonts()):
        covered = {char for char in left if ord(char) in characters_of(path)}
        if covered:
            needed[path] = "".join(sorted(covered))
        left -= covered
        if not left:  # before the system's fonts are listed, which takes long
            break
    return Fonts(needed, "".join(sorted(left)))


def describe_missing(characters: str) -> str:
    """Return one sentence about characters missing from all fonts; empty if there are none."""
    if not characters:
        return ""
    shown = " ".join(f"{char} (U+{ord(char):04X})" for char in characters[:8])
    more = f" and {len(characters) - 8} more" if len(characters) > 8 else ""
    instead = "images show an open square instead; pages use the reader's own fonts"
    return f"No font on this machine has {shown}{more}; {instead}."


def default_font() -> Path:
    """Return the font that comes with matplotlib."""
    import matplotlib

    return Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"


def bundled_korean() -> list[Path]:
    """Return NanumGothic of koreanize_matplotlib, found without importing it, since the import changes rcParams."""
    spec = find_spec("koreanize_matplotlib")
    folders = (spec and spec.submodule_search_locations) or []
    paths = [Path(folder) / "fonts" / "NanumGothic.ttf" for folder in folders]
    return [path for path in paths if path.is_file()]


@cache
def system_fonts() -> tuple[Path, ...]:
    """Return the fonts of this machine, plain faces before bold and slanted ones."""
    from matplotlib.font_manager import fontManager

    def fancy(entry) -> tuple:
        return (entry.style != "normal", str(entry.weight) not in ("400", "normal", "regular"), entry.name, entry.fname)

    # The "last resort" font that comes with matplotlib claims every character and shows a box for each.
    entries = [entry for entry in fontManager.ttflist if not entry.name.startswith("Last Resort")]
    return tuple(Path(entry.fname) for entry in sorted(entries, key=fancy) if Path(entry.fname).is_file())


@cache
def characters_of(path: Path) -> frozenset[int]:
    """Return the code points a font has outlines for; none for bitmap fonts, which cannot be drawn."""
    from fontTools.ttLib import TTFont, TTLibError

    try:
        with path.open("rb") as file, TTFont(file, fontNumber=0, lazy=True) as font:
            outlines = "glyf" in font or "CFF " in font or "CFF2" in font
            return frozenset(font.getBestCmap() or ()) if outlines else frozenset()
    except (TTLibError, OSError):
        return frozenset()


def may_embed(path: Path) -> bool:
    """Whether the licence bits of a font allow embedding it."""
    from fontTools.ttLib import TTFont

    with TTFont(path, fontNumber=0, lazy=True) as font:
        return "OS/2" in font and not font["OS/2"].fsType & NO_EMBEDDING


@lru_cache(maxsize=32)
def subset(path: Path, characters: str) -> bytes:
    """Return a WOFF of a font with these characters only."""
    from fontTools.subset import Options, Subsetter, load_font, save_font

    options = Options()
    options.set(flavor="woff", layout_features=[], notdef_outline=True, hinting=False, font_number=0)
    options.drop_tables += ["TSI0", "TSI1", "TSI2", "TSI3", "TSI5", "TTFA"]  # sources of hinting, which is dropped
    font = load_font(str(path), options)
    subsetter = Subsetter(options)
    subsetter.populate(text=characters)
    subsetter.subset(font)
    out = io.BytesIO()
    save_font(font, out, options)
    font.close()
    return out.getvalue()


def families(fonts: Fonts) -> list[str]:
    """Register the fonts with matplotlib, and return their family names in order."""
    from matplotlib.font_manager import FontProperties, fontManager

    known = {entry.fname for entry in fontManager.ttflist}
    for path in fonts.needed:
        if str(path) not in known:
            fontManager.addfont(path)
    return [FontProperties(fname=path).get_name() for path in fonts.needed]
