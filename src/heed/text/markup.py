"""HTML: its text is translated, its tags stay. Tags within a sentence go where their words went, by word alignment."""

import html
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import NamedTuple

from heed.text import projection, protect
from heed.text.inline import Piece, Style, Translate, Translated
from heed.text.layout import has_words


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


INLINE = _names(
    "a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark q ruby rb rp rt s small span strike strong sub "
    "sup time tt u"
)
CODE = _names("code kbd samp var")  # words of a sentence that are not to be translated
OBJECTS = _names("img wbr input svg math canvas audio video object iframe embed script style template")
WITHIN = _names("svg math canvas audio video object iframe script style template pre textarea")  # left alone
VOID = _names("area base br col embed hr img input link meta param source track wbr")
ATTRIBUTES = ("title", "alt", "placeholder", "aria-label", "label", "summary")
DESCRIBES = ("description", "og:title", "og:description")
_ATTRIBUTE = re.compile(r"""([^\s"'<>/=]+)(\s*=\s*)("[^"]*"|'[^']*'|[^\s"'=<>`]+)""")
STYLE = Style(escape=lambda text: html.escape(text, quote=False).replace("\u00a0", "&nbsp;"))


class Event(NamedTuple):
    """A part of a page: "text", a tag ("open", "close") or something "other". Together they are the page."""

    kind: str
    raw: str
    name: str = ""
    attributes: dict[str, str] = {}  # noqa: RUF012 (never changed)


def translate(
    page: str, translate: Translate, *, attributes: Sequence[str] = ATTRIBUTES, language: str | None = None
) -> str:
    """A page, or a part of one, in another language. `translate` gives texts, with alignments if it can."""
    events = read(page)
    if attributes:
        events = _with_attributes(events, translate, tuple(attributes))
    parts, runs = _parts(events)
    said = iter(projection.translate(runs, translate, STYLE, language))
    return "".join(next(said) if part is None else part for part in parts)


def read(page: str) -> list[Event]:
    """The parts of a page, in order and without a gap."""
    parser = _Parser()
    parser.feed(page)
    parser.close()
    lines = [0, *(match.end() for match in re.finditer("\n", page))]
    places = [lines[line - 1] + column for (line, column), _ in parser.found]
    ends = [*places[1:], len(page)][: len(places)]
    found = [
        event._replace(raw=page[start:end]) for start, end, (_, event) in zip(places, ends, parser.found, strict=True)
    ]
    if places[:1] not in ([], [0]):
        found.insert(0, Event("text", page[: places[0]]))
    joined: list[Event] = []
    for event in found:
        if event.kind == "text" and joined and joined[-1].kind == "text":
            joined[-1] = joined[-1]._replace(raw=joined[-1].raw + event.raw)
        elif event.raw:
            joined.append(event)
    return joined or ([Event("text", page)] if page else [])


class _Parser(HTMLParser):
    """Where each part begins; what it is as text is cut out of the page."""

    def __init__(self):
        super().__init__(convert_charrefs=False)
        self.found: list[tuple[tuple[int, int], Event]] = []

    def _note(self, kind: str, name: str = "", attributes: Sequence[tuple[str, str | None]] = ()) -> None:
        known = {key: value or "" for key, value in attributes}
        self.found.append((self.getpos(), Event(kind, "", name, known)))

    def handle_starttag(self, tag, attrs):
        self._note("open", tag, attrs)

    def handle_startendtag(self, tag, attrs):
        self._note("open" if tag in VOID else "other", tag, attrs)

    def handle_endtag(self, tag):
        self._note("close", tag)

    def handle_data(self, data):
        self._note("text")

    def handle_entityref(self, name):
        self._note("text")

    def handle_charref(self, name):
        self._note("text")

    def handle_comment(self, data):
        self._note("other", "!")

    def handle_decl(self, decl):
        self._note("other")

    def unknown_decl(self, data):
        self._note("other")

    def handle_pi(self, data):
        self._note("other")


def _parts(events: Sequence[Event]) -> tuple[list[str | None], list[list[Piece]]]:
    """What stays as it is, None for each run of text with marks, and these runs."""
    parts: list[str | None] = []
    runs: list[list[Piece]] = []
    run: list[Piece] = []

    def end_run() -> None:
        if any(piece.kind == "text" and has_words(piece.text) for piece in run):
            parts.append(None)
            runs.append(list(run))
        else:
            parts.extend(piece.raw for piece in run)
        run.clear()

    ends, place = _ends(events), 0
    while place < len(events):
        event = events[place]
        last = ends.get(place) if _left_alone(event) else None
        raw = "".join(one.raw for one in events[place : last + 1]) if last is not None else event.raw
        pieces = _pieces(event, raw, events[place : last + 1] if last is not None else [])
        if pieces is None:
            end_run()
            parts.append(raw)
        else:
            run += pieces
        place = place + 1 if last is None else last + 1
    end_run()
    return parts, runs


def _pieces(event: Event, raw: str, inner: Sequence[Event]) -> list[Piece] | None:
    """What a part of a page is within a sentence; None: it ends one."""
    if event.kind == "text":
        return _text(raw)
    if inner:
        words = html.unescape("".join(one.raw for one in inner if one.kind == "text"))
        if event.name in CODE or (event.name in INLINE and has_words(words)):
            return [Piece("opaque", raw, " ".join(words.split()))]
        return [Piece("point", raw)] if event.name in OBJECTS | INLINE else None
    if event.name in INLINE | CODE and event.kind in ("open", "close"):
        return [Piece(event.kind, raw, name=event.name)]
    return [Piece("point", raw)] if event.name in OBJECTS | INLINE | {"!"} else None


def _text(raw: str) -> list[Piece]:
    """Text, and what must stay in it as it is."""
    text = html.unescape(raw)
    found, place = [], 0
    for piece in protect.find(text):
        found += [text[place : piece.start], piece]
        place = piece.end
    if not found:
        return [Piece("text", raw, text)]
    escaped = [STYLE.escape(part.text if isinstance(part, protect.Piece) else part) for part in [*found, text[place:]]]
    if "".join(escaped) != raw:  # written in other ways: then it cannot be cut without changing it
        return [Piece("text", raw, text)]
    kinds = [*("opaque" if isinstance(part, protect.Piece) else "text" for part in found), "text"]
    texts = [*(part.text if isinstance(part, protect.Piece) else part for part in found), text[place:]]
    return [Piece(kind, raw, text) for kind, raw, text in zip(kinds, escaped, texts, strict=True) if raw]


def _left_alone(event: Event) -> bool:
    """Whether what is in an element is not to be touched."""
    if event.kind != "open" or event.name in VOID:
        return False
    named = (
        event.attributes.get("translate", "").lower() == "no"
        or "notranslate" in event.attributes.get("class", "").split()
    )
    bare = event.name in ("sub", "sup")  # numbers of notes: seen below
    return named or event.name in WITHIN | CODE or bare


def _ends(events: Sequence[Event]) -> dict[int, int]:
    """For each element that is left alone, where it ends; one that never ends is not there."""
    found: dict[int, int] = {}
    opened: dict[str, list[int]] = {}
    for place, event in enumerate(events):
        if event.kind == "open" and event.name not in VOID:
            opened.setdefault(event.name, []).append(place)
        elif event.kind == "close" and opened.get(event.name):
            found[opened[event.name].pop()] = place
    for begin, end in list(found.items()):
        words = any(one.kind == "text" and has_words(html.unescape(one.raw)) for one in events[begin:end])
        if events[begin].name in ("sub", "sup") and words:
            del found[begin]
    return found


def _with_attributes(events: list[Event], translate: Translate, names: tuple[str, ...]) -> list[Event]:
    """The parts of a page, with the texts in attributes translated."""
    ends, asked, place = _ends(events), [], 0
    while place < len(events):
        if events[place].kind in ("open", "other") and events[place].attributes:
            for match in _ATTRIBUTE.finditer(events[place].raw):
                value = html.unescape(match[3].strip("\"'") if match[3][0] in "\"'" else match[3])
                if _is_text(events[place], match[1].lower(), names) and has_words(value):
                    asked.append((place, match, value))
        alone = _left_alone(events[place]) and place in ends
        place = ends[place] + 1 if alone else place + 1
    said = translate([value for *_, value in asked]) if asked else []
    changed = list(events)
    for (place, match, value), own in reversed(list(zip(asked, said, strict=True))):
        text = own.text if isinstance(own, Translated) else own
        if text != value:
            quote = match[3][0] if match[3][0] in "\"'" else '"'
            safe = html.escape(text, quote=False).replace(quote, "&quot;" if quote == '"' else "&#39;")
            raw = changed[place].raw
            raw = raw[: match.start(3)] + quote + safe + quote + raw[match.end(3) :]
            changed[place] = changed[place]._replace(raw=raw)
    return changed


def _is_text(event: Event, name: str, names: tuple[str, ...]) -> bool:
    if event.name == "meta":
        return name == "content" and (event.attributes.get("name") or event.attributes.get("property")) in DESCRIBES
    if name == "value":
        return event.name == "input" and event.attributes.get("type", "").lower() in ("submit", "button", "reset")
    return name in names and (name != "label" or event.name in ("option", "optgroup", "track"))
