"""HTML: the text is translated, the tags are kept. Tags within a sentence are projected by word alignment."""

import html
from collections.abc import Sequence
from itertools import accumulate

from heed.text import projection, protect
from heed.text.html_tokenizer import VOID, HtmlToken, tokenize
from heed.text.inline import InlineToken, Style, Translate, text_of
from heed.text.layout import has_words


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


INLINE = _names("""a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark q ruby rb rp rt s small span
    strike strong sub sup time tt u""")  # fmt: skip
CODE = _names("code kbd samp var")  # parts of a sentence that are not translated
READINGS = _names("rt rp")  # of the word before them: no part of the sentence
OBJECTS = _names("img wbr input svg math canvas audio video object iframe embed script style template")
UNTOUCHED = _names("svg math canvas audio video object iframe script style template pre textarea") | READINGS
ATTRIBUTES = ("title", "alt", "placeholder", "aria-label", "label", "summary")
DESCRIPTIONS = ("description", "og:title", "og:description")
STYLE = Style(escape=lambda text: html.escape(text, quote=False).replace("\u00a0", "&nbsp;"))


def translate(
    page: str, translate: Translate, language: str | None = None, *, attributes: Sequence[str] = ATTRIBUTES
) -> str:
    """Translate a page or a fragment. `translate` returns texts, with alignments if possible."""
    tokens = tokenize(page)
    if attributes:
        tokens = _translate_attributes(tokens, translate, tuple(attributes))
    parts, runs = split_runs(tokens)
    translations = iter(projection.translate(runs, translate, STYLE, language))
    return "".join(next(translations) if part is None else part for part in parts)


def split_runs(tokens: Sequence[HtmlToken]) -> tuple[list[str | None], list[list[InlineToken]]]:
    """What is not translated, with None for each run of text and inline tags, and these runs."""
    parts: list[str | None] = []
    runs: list[list[InlineToken]] = []
    run: list[InlineToken] = []

    def end_run() -> None:
        if any(token.kind == "text" and has_words(token.text) for token in run):
            parts.append(None)
            runs.append(list(run))
        else:
            parts.extend(token.raw for token in run)
        run.clear()

    ends, position = _element_ends(tokens), 0
    while position < len(tokens):
        token = tokens[position]
        last = ends.get(position) if _is_untouched(token) else None
        element = tokens[position : last + 1] if last is not None else []
        raw = "".join(one.raw for one in element) if last is not None else token.raw
        inline_tokens = _inline_tokens(token, raw, element)
        if inline_tokens is None:
            end_run()
            parts.append(raw)
        else:
            run += inline_tokens
        position = position + 1 if last is None else last + 1
    end_run()
    return parts, runs


def _inline_tokens(token: HtmlToken, raw: str, element: Sequence[HtmlToken]) -> list[InlineToken] | None:
    """Part of a page as inline tokens; None if it ends the sentence. `element` is an untranslated one, with its
    content.
    """
    if token.kind == "text":
        return _text_tokens(raw)
    if element:
        words = html.unescape("".join(one.raw for one in element if one.kind == "text"))
        if token.name in CODE or (token.name in INLINE - READINGS and has_words(words)):
            return [InlineToken("opaque", raw, " ".join(words.split()))]
        return [InlineToken("point", raw)] if token.name in OBJECTS | INLINE else None
    if token.name in INLINE | CODE and token.kind in ("open", "close"):
        return [InlineToken(token.kind, raw, name=token.name)]
    return [InlineToken("point", raw)] if token.name in OBJECTS | INLINE | {"!"} else None


def _text_tokens(raw: str) -> list[InlineToken]:
    """Text, with its protected spans as opaque tokens."""
    text = html.unescape(raw)
    parts = protect.pieces(text)
    escaped = [STYLE.escape(part) for _, part in parts]
    if "".join(escaped) != raw:  # entities written otherwise: cutting would change them
        return [InlineToken("text", raw, text)]
    return [InlineToken(kind, raw, part) for (kind, part), raw in zip(parts, escaped, strict=True)]


def _is_untouched(token: HtmlToken) -> bool:
    """Whether the content of an element is not translated."""
    if token.kind != "open" or token.name in VOID:
        return False
    marked = token.attribute("translate").lower() == "no" or "notranslate" in token.attribute("class").split()
    note_number = token.name in ("sub", "sup")  # _element_ends leaves out those with words
    return marked or token.name in UNTOUCHED | CODE or note_number


def _element_ends(tokens: Sequence[HtmlToken]) -> dict[int, int]:
    """The closing tag of each element, by its opening tag, without sub and sup that have words."""
    found: dict[int, int] = {}
    opened: dict[str, list[int]] = {}
    for position, token in enumerate(tokens):
        if token.kind == "open" and token.name not in VOID:
            opened.setdefault(token.name, []).append(position)
        elif token.kind == "close" and opened.get(token.name):
            found[opened[token.name].pop()] = position
    worded = (token.kind == "text" and has_words(html.unescape(token.raw)) for token in tokens)
    before = [0, *accumulate(worded)]
    wordless = {start for start, end in found.items() if before[start] == before[end]}
    return {start: end for start, end in found.items() if start in wordless or tokens[start].name not in ("sub", "sup")}


def _translate_attributes(tokens: list[HtmlToken], translate: Translate, names: tuple[str, ...]) -> list[HtmlToken]:
    """The tokens of a page, with the texts in attributes translated."""
    ends, values, position = _element_ends(tokens), [], 0
    while position < len(tokens):
        token = tokens[position]
        texts = (value for name, value in token.attributes.items() if _is_text(token, name, names))
        values += [(position, value) for value in texts if has_words(value.text)]
        position = ends[position] + 1 if _is_untouched(token) and position in ends else position + 1
    translations = translate([value.text for _, value in values]) if values else []
    changed = list(tokens)
    for (position, value), translation in reversed(list(zip(values, translations, strict=True))):
        text = text_of(translation)
        if text != value.text:
            quote = value.quote or '"'
            safe = html.escape(text, quote=False).replace(quote, "&quot;" if quote == '"' else "&#39;")
            raw = changed[position].raw
            raw = raw[: value.start] + quote + safe + quote + raw[value.end :]
            changed[position] = changed[position]._replace(raw=raw)
    return changed


def _is_text(token: HtmlToken, name: str, names: tuple[str, ...]) -> bool:
    """Whether an attribute holds text to translate."""
    if token.name == "meta":
        return name == "content" and (token.attribute("name") or token.attribute("property")) in DESCRIPTIONS
    if name == "value":
        return token.name == "input" and token.attribute("type").lower() in ("submit", "button", "reset")
    return name in names and (name != "label" or token.name in ("option", "optgroup", "track"))
