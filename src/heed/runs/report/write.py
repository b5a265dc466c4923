"""The report of a run as one self-contained page."""

import re
from collections.abc import Callable
from html import escape
from pathlib import Path

from heed.evaluation.sentence_page import asset, fill, page_text, sentence_list
from heed.files import write_text
from heed.lab.viewer import embedded
from heed.runs.model_card import shape
from heed.runs.report import sections
from heed.runs.report.collect import Options, collect
from heed.runs.report.findings import Findings
from heed.version import __version__

FILE = "report.html"
_FOLDER = Path(__file__).parent / "page"


def write_report(
    folder: Path,
    out: Path | None = None,
    options: Options | None = None,
    tell: Callable[[str], None] = lambda what: None,
) -> Path:
    """Analyse a run and write its page, by default into its folder; returns the path."""
    out = out or folder / FILE
    if out.is_dir():
        raise ValueError(f"--out {out} is a folder: give the name of a file")
    write_text(out, page(collect(folder, options or Options(), tell)))
    return out


def page(f: Findings) -> str:
    """Return the page as text."""
    every = (
        sections.scores, sections.next_steps, sections.curves, sections.against, sections.problems, sections.examples,
        sections.settings, sections.notes,
    )  # fmt: skip
    shown = "\n".join(filter(None, (section(f) for section in every)))
    glyphs = embedded(re.sub(r"<[^>]*>", "", shown) + page_text(f.sentences or []))
    parts = {
        "name": escape(f.folder.resolve().name),
        "title": escape(f.title),
        "lede": escape(_lede(f)),
        "style": glyphs + asset("sentences.css") + (_FOLDER / "report.css").read_text("utf-8"),
        "sections": shown,
        "list": f'<div class="every part"><h2>Every sentence</h2>{sentence_list(f.sentences)}</div>'
        if f.sentences
        else "",
        "footer": f"Made with heed {__version__} from {escape(str(f.folder))}. It is self-contained.",
        "script": f"<script>\n{asset('sentences.js')}\n</script>" if f.sentences else "",
    }
    return fill((_FOLDER / "report.html").read_text("utf-8"), parts)


def _lede(f: Findings) -> str:
    state = "finished" if f.log.finished else "not finished"
    return f"{shape(dict(f.model))} · {state} at step {f.log.steps:,} · {sections.duration(f.log.seconds)}"
