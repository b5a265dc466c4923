"""A table of sentences from worst to best, for programs (.tsv) or for readers (.html)."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from heed.evaluation.sentence_page import write_html
from heed.evaluation.sentence_scores import SentenceScore, score_sentences
from heed.evaluation.translation import Scores
from heed.files import write_text

__all__ = ["SentenceScore", "score_sentences", "write", "write_html", "write_tsv"]

_COLUMNS = [field.name for field in fields(SentenceScore)]
_SECOND = ("second", "second_chrf", "difference")
# Everything that str.splitlines takes for a line end, the tab, and the backslash that escapes them.
_ESCAPES = {ord(mark): mark.encode("unicode_escape").decode() for mark in "\\\t\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"}


def write(table: Sequence[SentenceScore], scores: Scores, path: Path | str, **options) -> None:
    """Write the table in the format of the path's suffix, .tsv or .html; `options` are those of `write_html`."""
    suffix = Path(path).suffix
    if suffix == ".tsv":
        write_tsv(table, path)
    elif suffix == ".html":
        write_html(table, scores, path, **options)
    else:
        raise ValueError(f"The path {str(path)!r} ends in {suffix!r}; it must end in .tsv or .html.")


def write_tsv(table: Sequence[SentenceScore], path: Path | str) -> None:
    r"""Write one row per line under a header; tabs, line ends and backslashes in texts become \t, \n and \\."""
    paired = any(row.second is not None for row in table)
    columns = [name for name in _COLUMNS if paired or name not in _SECOND]
    lines = ["\t".join(columns)]
    lines += ["\t".join(_cell(getattr(row, name)) for name in columns) for row in table]
    write_text(Path(path), "\n".join(lines) + "\n")


def _cell(value: str | int | float | None) -> str:
    """Return one value as text without tabs or line ends."""
    if isinstance(value, float):
        return f"{value:.4f}"
    return "" if value is None else str(value).translate(_ESCAPES)
