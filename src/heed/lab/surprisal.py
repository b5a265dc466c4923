"""The surprisal of each token of a text under a language model, and more likely tokens: as a page, an image or data."""

from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path

from heed.files import write_json, write_text
from heed.lab.colors import ACCENT, FAINT, INK, LIGHT_RAMP, MUTED
from heed.lab.words import label, width, wrap

SUFFIXES = (".html", ".png", ".svg", ".json")
ROW, LEFT, BAR, TOP = 0.3, 0.3, 2.4, 1.0  # inches of a picture
CAPTION = "Each bar is -log2 p of a token given those before it: 1 bit is one in two, 10 bits one in a thousand. Next to it are the model's most likely tokens, in per cent."
STYLE = f"""\
body {{ font: 15px/1.5 system-ui, sans-serif; color: {INK}; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }}
h1 {{ font-size: 1.2rem; }} .muted {{ color: {MUTED}; }} .text {{ font-size: 1.25rem; line-height: 2.1; }}
.text span {{ padding: .15em .1em; border-radius: .2em; }}
table {{ border-collapse: collapse; width: 100%; }} td, th {{ padding: .15rem .6rem .15rem 0; text-align: left; }}
th {{ color: {MUTED}; font-weight: normal; border-bottom: 1px solid {FAINT}; }}
.bar {{ height: .8rem; background: {ACCENT}; min-width: 1px; }} td.number {{ text-align: right; }}
"""


@dataclass(frozen=True)
class TokenSurprisal:
    """One position of a text: its token (None after the last), its surprisal, its rank, and the most likely tokens
    there.
    """

    token: str | None
    bits: float | None
    rank: int | None
    likely: list[tuple[str, float]]


@dataclass(frozen=True)
class Surprisal:
    """The surprisal of each token of a text."""

    model: str
    text: str
    places: list[TokenSurprisal]

    @property
    def bits(self) -> float:
        """The mean over tokens."""
        bits = [place.bits for place in self.places if place.bits is not None]
        return sum(bits) / len(bits)


def draw(look: Surprisal, path: Path) -> str:
    """Write a look to a file and return the characters no font could show, for `fonts.describe_missing`."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"The file {path.name!r} must end in one of {', '.join(SUFFIXES)}, which selects the format.")
    if suffix == ".json":
        write_json(path, asdict(look))
        return ""
    if suffix == ".html":
        write_text(path, page(look))
        return ""
    return picture(look, path)


def page(look: Surprisal) -> str:
    """One self-contained HTML page."""
    max_bits = _max_bits(look)
    spans = "".join(_span(place, max_bits) for place in look.places if place.token is not None)
    rows = "\n".join(_row(place, max_bits) for place in look.places)
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{escape(look.text[:60])} · heed look</title>
<style>
{STYLE}</style>
<h1>{escape(look.model)}</h1>
<p class="text">{spans}</p>
<p>{look.bits:.2f} bits per token, perplexity {2**look.bits:.1f}</p>
<p class="muted">{CAPTION}</p>
<table>
<tr><th>token<th>bits<th style="width:30%"><th>rank<th>most likely</tr>
{rows}
</table>
</html>
"""


def picture(look: Surprisal, path: Path) -> str:
    """Draw the page's content as an image; return the characters missing from all fonts."""
    from heed.lab.canvas import Canvas
    from heed.lab.fonts import find_fonts

    names = [label(place.token) if place.token is not None else "?" for place in look.places]
    likely = [_likely(place) for place in look.places]
    fonts = find_fonts("".join([*names, *likely, look.model, CAPTION]))
    column = LEFT + 0.13 * max(width(name) for name in names) + 0.2
    beside = column + BAR + 0.6
    canvas = Canvas(beside + 0.092 * max(map(width, likely)) + LEFT, TOP + ROW * len(names) + 0.75, fonts)
    canvas.text(LEFT, 0.3, look.model, 11)
    canvas.text(LEFT, 0.6, f"{look.bits:.2f} bits per token, perplexity {2**look.bits:.1f}", 9, MUTED)
    max_bits = _max_bits(look)
    for i, (place, name, others) in enumerate(zip(look.places, names, likely, strict=True)):
        y = TOP + ROW * i
        canvas.text(column - 0.12, y, name, 10, MUTED if place.token is None else INK, anchor="right")
        canvas.text(beside, y, others, 8.5, MUTED)
        if place.bits is not None:
            end = column + BAR * place.bits / max_bits
            canvas.line([column, max(end, column + 0.01)], [y, y], ACCENT, 9)
            canvas.text(end + 0.12, y, f"{place.bits:.1f}", 8.5)
    for i, part in enumerate(wrap(CAPTION, (canvas.width - 2 * LEFT) / 0.115)):
        canvas.text(LEFT, TOP + ROW * len(names) + 0.15 + 0.2 * i, part, 8, MUTED)
    canvas.save(path)
    return fonts.missing


def _max_bits(look: Surprisal) -> float:
    return max(1.0, *(place.bits or 0.0 for place in look.places))


def _span(place: TokenSurprisal, max_bits: float) -> str:
    share, space = place.bits / max_bits, " " if place.token.startswith("▁") else ""
    shade = LIGHT_RAMP[min(len(LIGHT_RAMP) - 1, int(share * len(LIGHT_RAMP)))]
    style = f"background:{shade};color:{'white' if share > 0.55 else INK}"
    return f'<span style="{style}" title="{place.bits:.1f} bits">{escape(space + label(place.token))}</span>'


def _likely(place: TokenSurprisal) -> str:
    return "  ".join(f"{label(token)} {100 * share:.0f}" for token, share in place.likely)


def _row(place: TokenSurprisal, max_bits: float) -> str:
    likely = ", ".join(f"{escape(label(token))} {100 * share:.1f}" for token, share in place.likely)
    if place.token is None:
        return f'<tr class="muted"><td>next<td><td><td><td>{likely}</tr>'
    token, number = escape(label(place.token)), '<td class="number">'
    bar = f'<div class="bar" style="width:{100 * place.bits / max_bits:.1f}%"></div>'
    return f"<tr><td>{token}{number}{place.bits:.2f}<td>{bar}{number}{place.rank:,}<td>{likely}</tr>"
