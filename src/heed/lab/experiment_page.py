"""The result of a lab as a self-contained HTML page, and the index of several."""

import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from heed.lab.charts import Table
from heed.lab.language import current_language, tr
from heed.lab.viewer import embedded

TEXT = 10  # letters: a column with more of them in a cell is text, which wraps


@dataclass(frozen=True)
class Shown:
    """What the reader sees of one experiment: its texts, its plot as PNG, and the command that made it."""

    name: str
    title: str
    summary: str
    tables: Sequence[Table]
    picture: bytes
    command: str


def build_page(shown: Shown) -> str:
    """The page of one experiment, in the current language."""
    sections = [f"<section>{_image(shown)}</section>", *map(_table, shown.tables)]
    return _fill(shown.title, escape(shown.summary), "\n".join(sections), _made_by(shown.command))


def build_index(labs: Sequence[Shown], command: str) -> str:
    """The index page for several experiments in the same folder."""
    sections = []
    for shown in labs:
        link = f'<a href="{shown.name}.html">{escape(shown.title)}</a>'
        sections.append(f"<section><h2>{link}</h2><p>{escape(shown.summary)}</p>{_image(shown)}</section>")
    lede = escape(
        tr("Each experiment measures the modules that Heed's models are built from. Choose a title to see its tables.")
    )
    return _fill(tr("The lab: what each part of a Transformer is for"), lede, "\n".join(sections), _made_by(command))


def _image(shown: Shown) -> str:
    data = b64encode(shown.picture).decode()
    image = f'<img src="data:image/png;base64,{data}" alt="{escape(shown.title)}">'
    return f'<div class="scroll">{image}</div>'  # on a phone it scrolls, so that its labels can be read


def _table(table: Table) -> str:
    columns = zip(*table.rows, strict=True) if table.rows else [()] * len(table.columns)
    kinds = [' class="prose"' if any(map(_is_text, cells)) else "" for cells in columns]
    head = "".join(
        f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in zip(table.columns, kinds, strict=True)
    )
    rows = "".join(_row(row, kinds) for row in table.rows)
    # the tabindex lets a keyboard scroll a table that is wider than the screen
    scroll = f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.title)}">'
    body = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f"<section><h2>{escape(table.title)}</h2>{scroll}{body}</div></section>"


def _is_text(cell: str) -> bool:
    """Whether a column is left-aligned text, unlike numbers and names."""
    return sum(map(str.isalpha, cell)) > TEXT


def _row(row: Sequence[str], kinds: Sequence[str]) -> str:
    cells = (f"<td{kind}>{escape(cell)}</td>" for cell, kind in zip(row, kinds, strict=True))
    return f"<tr>{''.join(cells)}</tr>"


def _made_by(command: str) -> str:
    return f"{escape(tr('Made with:'))} <code>{escape(command)}</code>"


def _fill(title: str, lede: str, body: str, footer: str) -> str:
    parts = {
        "language": current_language(),
        "title": escape(title),
        "style": embedded(re.sub(r"<[^>]*>", "", title + lede + body + footer)) + _read("experiment.css"),
        "lede": lede,
        "body": body,
        "footer": footer,
    }
    # One pass over the template: inserted text is not searched again, so it cannot act as a placeholder.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _read("experiment.html"))


def _read(name: str) -> str:
    return (files("heed.lab") / "page" / name).read_text("utf-8")
