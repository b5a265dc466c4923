"""The examples of CommonMark's specification, translated: is the page the same but for its words?

The specification is `spec.txt` of https://github.com/commonmark/commonmark-spec. It is not part of this repository.
"""

import re
from pathlib import Path

from markdown_it import MarkdownIt

from bench.parsers.measure import Work, capitals, identity

_EXAMPLE = re.compile(r"^`{32} example\n(.*?)^\.\n.*?^`{32}$", re.M | re.S)
_PAGE = MarkdownIt("commonmark")


def examples(spec: Path) -> list[str]:
    found = [match[1].replace("→", "\t") for match in _EXAMPLE.finditer(spec.read_text("utf-8"))]
    if not found:
        raise SystemExit(f"{spec} has no examples: take spec.txt of commonmark/commonmark-spec")
    return found


def page(text: str) -> str:
    """The page of a text, without differences of case, white space and entities."""
    made = re.sub(r"\s*(<[^>]*>)\s*", r"\1", re.sub(r"\s+", " ", _PAGE.render(text))).strip().lower()
    return made.replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&")


def compare(spec: Path, works: dict[str, Work]) -> None:
    texts = examples(spec)
    print(
        f"\n| of {len(texts)} examples of CommonMark | the same to the byte, untranslated | the same page, translated |\n|---|---|---|"
    )
    for name, work in works.items():
        same = sum(work(text.encode(), identity) == text.encode() for text in texts)
        kept = sum(page(work(text.encode(), capitals).decode()) == page(text) for text in texts)
        print(f"| {name} | {same} | {kept} |")
