"""The same work with well-kept libraries: a file is read, its texts are translated, and it is written again.

What is translated follows the same rules as in Heed (heed/text/markup.py), so that only the parsers differ.
"""

import io
import re
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from typing import Any, NamedTuple

from heed.text.layout import has_words
from heed.text.markup import ATTRIBUTES, CODE, DESCRIPTIONS, UNTOUCHED

Translate = Callable[[list[str]], list[str]]


class Library(NamedTuple):
    """A library for a format: its name on PyPI (others that it needs after it), parsing alone, and the whole work."""

    packages: tuple[str, ...]
    parse: Callable[[bytes], Any]
    translate: Callable[[bytes, Translate], bytes]

    @property
    def name(self) -> str:
        return self.packages[0]

    def missing(self) -> list[str]:
        return [name for name in self.packages if version(name) is None]


def version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


# Markdown: markdown-it-py knows the lines of a block, but not the place of a text in it, so texts are searched there.


def _markdown_it() -> Any:
    from markdown_it import MarkdownIt
    from mdit_py_plugins.deflist import deflist_plugin
    from mdit_py_plugins.footnote import footnote_plugin
    from mdit_py_plugins.front_matter import front_matter_plugin
    from mdit_py_plugins.tasklists import tasklists_plugin

    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
    return parser.use(front_matter_plugin).use(footnote_plugin).use(deflist_plugin).use(tasklists_plugin)


def parse_markdown(data: bytes) -> Any:
    return _markdown_it().parse(data.decode())


def translate_markdown(data: bytes, translate: Translate) -> bytes:
    text, spans, position = data.decode(), [], 0
    starts = [0, *(match.end() for match in re.finditer("\n", text)), len(text)]
    for token in _markdown_it().parse(text):
        if token.type == "inline" and token.map:
            position = max(position, starts[token.map[0]])
            found, position = _markdown_spans(
                text, token.children, position, starts[max(token.map[1], token.map[0] + 1)]
            )
            spans += found
    return _spliced(text, spans, translate).encode()


def _markdown_spans(text: str, children: list, position: int, end: int) -> tuple[list[tuple[int, int]], int]:
    """Where the texts of a block are, searched for in their order; of a link and a picture the address is passed over."""
    spans, addresses = [], []
    for child in children:
        wanted = child.content
        if child.type == "link_open":
            addresses.append(child.attrs.get("href", ""))
        if child.type == "image":
            wanted = child.attrs.get("src", "")
        elif child.type == "link_close":
            wanted = addresses.pop()
        elif child.type not in ("text", "code_inline", "html_inline"):
            continue
        start = text.find(wanted, position, end)
        if start >= 0:
            position = start + len(wanted)
            if child.type == "text" and has_words(wanted):
                spans.append((start, position))
    return spans, position


def _spliced(text: str, spans: list[tuple[int, int]], translate: Translate) -> str:
    translations = translate([text[start:end] for start, end in spans])
    parts, position = [], 0
    for (start, end), translation in zip(spans, translations, strict=True):
        parts += [text[position:start], translation]
        position = end
    return "".join([*parts, text[position:]])


def translate_mdformat(data: bytes, translate: Translate) -> bytes:
    from markdown_it import MarkdownIt
    from mdformat.plugins import PARSER_EXTENSIONS
    from mdformat.renderer import MDRenderer

    parser, env = MarkdownIt("commonmark"), {}
    extensions = [PARSER_EXTENSIONS[name] for name in ("gfm", "footnote", "frontmatter")]
    parser.options.update({"parser_extension": extensions, "store_labels": True, "mdformat": {}})
    for extension in extensions:
        extension.update_mdit(parser)
    tokens = parser.parse(data.decode(), env)
    texts = [
        child for token in tokens for child in token.children or () if child.type == "text" and has_words(child.content)
    ]
    for child, translation in zip(texts, translate([child.content for child in texts]), strict=True):
        child.content = translation
    return MDRenderer().render(tokens, parser.options, env).encode()


# HTML: both libraries give a tree of elements with text and tail, and write a page of their own.


def parse_lxml(data: bytes) -> Any:
    import lxml.html

    text = data.decode()
    if re.search("<html|<!doctype", text, re.I):
        return lxml.html.document_fromstring(re.sub(r"\A<\?xml[^>]*>\s*", "", text))
    return lxml.html.fragment_fromstring(text, create_parent="heed-fragment")


def translate_lxml(data: bytes, translate: Translate) -> bytes:
    from lxml import etree

    root = parse_lxml(data)
    _translate_tree(root, translate)
    whole = root.getroottree() if root.tag == "html" else root
    text = etree.tostring(whole, encoding="unicode", method="html", with_tail=False)
    return re.sub("</?heed-fragment>", "", text).encode()


def parse_html5lib(data: bytes) -> Any:
    import html5lib

    text = data.decode()
    parser = html5lib.HTMLParser(namespaceHTMLElements=False)
    return parser.parse(text) if re.search("<html|<!doctype", text, re.I) else parser.parseFragment(text)


def translate_html5lib(data: bytes, translate: Translate) -> bytes:
    import html5lib

    root = parse_html5lib(data)
    _translate_tree(root, translate)
    written = html5lib.serialize(root, tree="etree", omit_optional_tags=False, quote_attr_values="spec")
    return written.encode()


def _translate_tree(root: Any, translate: Translate) -> None:
    places = [(node, place) for node, place in _texts(root) if has_words(_value(node, place))]
    for (node, place), translation in zip(places, translate([_value(*one) for one in places]), strict=True):
        if place in ("text", "tail"):
            setattr(node, place, translation)
        else:
            node.set(place[1:], translation)


def _value(node: Any, place: str) -> str:
    return (getattr(node, place) if place in ("text", "tail") else node.get(place[1:])) or ""


def _texts(root: Any) -> Iterator[tuple[Any, str]]:
    """The places of texts in a tree, without recursion: ("text", "tail", or @ and the name of an attribute)."""
    waiting: list[tuple[Any, str]] = [(root, "text")]
    while waiting:
        node, place = waiting.pop()
        if place == "tail":
            yield node, "tail"
            continue
        waiting.append((node, "tail"))
        if not isinstance(node.tag, str) or _is_untouched(node):
            continue
        yield from ((node, f"@{name}") for name in _attributes(node))
        yield node, "text"
        waiting += [(child, "text") for child in reversed(list(node))]


def _is_untouched(node: Any) -> bool:
    marked = node.get("translate") == "no" or "notranslate" in (node.get("class") or "").split()
    return marked or node.tag in UNTOUCHED | CODE | {"rt", "rp"}


def _attributes(node: Any) -> list[str]:
    if node.tag == "meta":
        return ["content"] if node.get("name") in DESCRIPTIONS else []
    button = node.tag == "input" and node.get("type") in ("submit", "button", "reset")
    return [name for name in ATTRIBUTES if node.get(name)] + ["value"] * button


# Word: python-docx gives paragraphs with runs, tables, and the headers and footers of sections.


def parse_python_docx(data: bytes) -> Any:
    import docx

    return docx.Document(io.BytesIO(data))


def translate_python_docx(data: bytes, translate: Translate) -> bytes:
    document = parse_python_docx(data)
    places = [document] + [part for section in document.sections for part in (section.header, section.footer)]
    runs = [run for place in places for run in _docx_runs(place) if has_words(run.text)]
    for run, translation in zip(runs, translate([run.text for run in runs]), strict=True):
        if translation != run.text:
            run.text = translation
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def _docx_runs(place: Any) -> Iterator[Any]:
    for block in place.iter_inner_content():
        if hasattr(block, "rows"):
            for row in block.rows:
                for cell in row.cells:
                    yield from _docx_runs(cell)
        else:
            for part in block.iter_inner_content():
                yield from getattr(part, "runs", [part])


# Subtitles.


def parse_pysubs2(data: bytes, kind: str) -> Any:
    import pysubs2

    return pysubs2.SSAFile.from_string(data.decode(), format_=kind, keep_html_tags=True)


def translate_pysubs2(data: bytes, translate: Translate, kind: str) -> bytes:
    cues = parse_pysubs2(data, kind)
    texts = [event for event in cues if has_words(event.text)]
    for event, translation in zip(texts, translate([event.text for event in texts]), strict=True):
        event.text = translation
    return cues.to_string(kind).encode()


def parse_srt(data: bytes) -> Any:
    import srt

    return list(srt.parse(data.decode()))


def translate_srt(data: bytes, translate: Translate) -> bytes:
    import srt

    cues = parse_srt(data)
    for cue, translation in zip(cues, translate([cue.content for cue in cues]), strict=True):
        cue.content = translation
    return srt.compose(cues, reindex=False).encode()


def parse_webvtt(data: bytes) -> Any:
    import webvtt

    return webvtt.from_string(data.decode())


def translate_webvtt(data: bytes, translate: Translate) -> bytes:
    cues = parse_webvtt(data)
    for cue, translation in zip(cues, translate([cue.raw_text for cue in cues]), strict=True):
        cue.text = translation
    return cues.content.encode()


LIBRARIES = {
    "md": [
        Library(("markdown-it-py", "mdit-py-plugins"), parse_markdown, translate_markdown),
        Library(
            ("mdformat", "mdformat-gfm", "mdformat-footnote", "mdformat-frontmatter"),
            parse_markdown,
            translate_mdformat,
        ),
    ],
    "html": [
        Library(("lxml",), parse_lxml, translate_lxml),
        Library(("html5lib",), parse_html5lib, translate_html5lib),
    ],
    "docx": [Library(("python-docx",), parse_python_docx, translate_python_docx)],
    "srt": [
        Library(("pysubs2",), partial(parse_pysubs2, kind="srt"), partial(translate_pysubs2, kind="srt")),
        Library(("srt",), parse_srt, translate_srt),
    ],
    "vtt": [
        Library(("pysubs2",), partial(parse_pysubs2, kind="vtt"), partial(translate_pysubs2, kind="vtt")),
        Library(("webvtt-py",), parse_webvtt, translate_webvtt),
    ],
}
