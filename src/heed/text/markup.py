"""HTML: its text is translated, its tags stay. Tags within a sentence go where their words went, by word alignment."""

import html
from collections.abc import Sequence
from itertools import accumulate

from heed.text import projection, protect
from heed.text.inline import Piece, Style, Translate, Translated
from heed.text.layout import has_words
from heed.text.tags import VOID, Event, read


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


INLINE = _names(
    "a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark q ruby rb rp rt s small span strike strong sub "
    "sup time tt u"
)
CODE = _names("code kbd samp var")  # words of a sentence that are not to be translated
OBJECTS = _names("img wbr input svg math canvas audio video object iframe embed script style template")
WITHIN = _names("svg math canvas audio video object iframe script style template pre textarea")  # left alone
ATTRIBUTES = ("title", "alt", "placeholder", "aria-label", "label", "summary")
DESCRIBES = ("description", "og:title", "og:description")
STYLE = Style(escape=lambda text: html.escape(text, quote=False).replace("\u00a0", "&nbsp;"))


def translate(
    page: str, translate: Translate, *, attributes: Sequence[str] = ATTRIBUTES, language: str | None = None
) -> str:
    """A page, or a part of one, in another language. `translate` gives texts, with alignments if it can."""
    events = read(page)
    if attributes:
        events = _with_attributes(events, translate, tuple(attributes))
    found, runs = parts(events)
    said = iter(projection.translate(runs, translate, STYLE, language))
    return "".join(next(said) if part is None else part for part in found)


def parts(events: Sequence[Event]) -> tuple[list[str | None], list[list[Piece]]]:
    """What stays as it is, None for each run of text with marks, and these runs."""
    found: list[str | None] = []
    runs: list[list[Piece]] = []
    run: list[Piece] = []

    def end_run() -> None:
        if any(piece.kind == "text" and has_words(piece.text) for piece in run):
            found.append(None)
            runs.append(list(run))
        else:
            found.extend(piece.raw for piece in run)
        run.clear()

    ends, place = _ends(events), 0
    while place < len(events):
        event = events[place]
        last = ends.get(place) if _left_alone(event) else None
        raw = "".join(one.raw for one in events[place : last + 1]) if last is not None else event.raw
        pieces = _pieces(event, raw, events[place : last + 1] if last is not None else [])
        if pieces is None:
            end_run()
            found.append(raw)
        else:
            run += pieces
        place = place + 1 if last is None else last + 1
    end_run()
    return found, runs


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
    named = event.says("translate").lower() == "no" or "notranslate" in event.says("class").split()
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
    words = (event.kind == "text" and has_words(html.unescape(event.raw)) for event in events)
    before = [0, *accumulate(words)]
    bare = {begin for begin, end in found.items() if before[begin] == before[end]}
    return {begin: end for begin, end in found.items() if begin in bare or events[begin].name not in ("sub", "sup")}


def _with_attributes(events: list[Event], translate: Translate, names: tuple[str, ...]) -> list[Event]:
    """The parts of a page, with the texts in attributes translated."""
    ends, asked, place = _ends(events), [], 0
    while place < len(events):
        if events[place].kind in ("open", "other") and events[place].attributes:
            for name, value in events[place].attributes.items():
                if _is_text(events[place], name, names) and has_words(value.text):
                    asked.append((place, value))
        alone = _left_alone(events[place]) and place in ends
        place = ends[place] + 1 if alone else place + 1
    said = translate([value.text for _, value in asked]) if asked else []
    changed = list(events)
    for (place, value), own in reversed(list(zip(asked, said, strict=True))):
        text = own.text if isinstance(own, Translated) else own
        if text != value.text:
            quote = value.quote or '"'
            safe = html.escape(text, quote=False).replace(quote, "&quot;" if quote == '"' else "&#39;")
            raw = changed[place].raw
            changed[place] = changed[place]._replace(raw=raw[: value.start] + quote + safe + quote + raw[value.end :])
    return changed


def _is_text(event: Event, name: str, names: tuple[str, ...]) -> bool:
    if event.name == "meta":
        return name == "content" and (event.says("name") or event.says("property")) in DESCRIBES
    if name == "value":
        return event.name == "input" and event.says("type").lower() in ("submit", "button", "reset")
    return name in names and (name != "label" or event.name in ("option", "optgroup", "track"))
