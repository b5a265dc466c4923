"""Where sentences end: Korean, English, German, French, Japanese, and sane rules for the rest.

What is not sure is not cut: two sentences in one cost a translator less than one in two.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from heed.text import abbreviations

STOPS = ".!?…‥‼⁇⁈⁉。！？．｡؟۔।॥"
WIDE = "。！？．｡"  # after these no space is needed
CLOSING = "\"'”’»›)]}」』】〉》）］｝〕“"  # the last closes in German, right after a stop
OPENING = "\"'“‘„‚«‹([{「『【〈《（［｛〔¿¡"
PAIRS = {"(": ")", "[": "]", "{": "}", "（": "）", "［": "］", "「": "」", "『": "』", "【": "】", "“": "”", "«": "»"}
BRACKETS, QUOTES = ")]}）］】", "\"'”’"
ASIDE, WORD = 400, 100  # the longest aside within brackets, and the longest word, in characters
LINE = r"(?:\r\n|[\n\r\u2028\u2029])"
_STOP, _CLOSE = re.escape(STOPS), re.escape(CLOSING)
_END = re.compile(rf"([{_STOP}](?:[{_STOP}]|[ \u00a0\u202f](?=[!?]))*)((?:[{_CLOSE}]|[ \u00a0\u202f]»)*)")
_BLANK = re.compile(rf"{LINE}[^\S\r\n]*{LINE}|\u2029")
_PAIRED = re.compile(f"[{re.escape(''.join([*PAIRS, *PAIRS.values()]))}]")
_DATE = re.compile(r"(?:\d{4}\.\s?)?\d{1,2}\.\s?\d{1,2}$")
_HANGUL, _HIRAGANA = re.compile(r"[가-힣]"), re.compile(r"[\u3041-\u309f]")
_KANA_HAN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff々]")
_SAYS = "다요죠까네군나라자지걸데오음함됨임것"  # how Korean sentences end
_QUOTED = (
    "하고",
    "하며",
    "라고",
    "라며",
    "이라고",
    "이라며",
    "고 ",
    "라는",
    "하는",
)  # what goes on after Korean speech


class Spot(NamedTuple):
    """A place where a sentence may end: its stops, what closes after them, and what stands around."""

    stops: str
    closing: str
    before: str
    token: str  # the word that the stops end, without them
    first: bool  # whether that word begins the sentence
    aside: bool  # whether what closes opened within the sentence
    space: bool  # whether white space follows
    after: str


def split(text: str, language: str | None = None) -> list[str]:
    """The sentences of a text."""
    return [text[start:end] for start, end in spans(text, language)]


def spans(text: str, language: str | None = None) -> list[tuple[int, int]]:
    """Where each sentence begins and ends. Between them, before and after is white space and nothing else."""
    language = re.split("[-_]", language or "")[0].lower() or None
    found, start = [], 0
    for end in [*_ends(text, language), len(text)]:
        piece = text[start:end]
        if piece.strip():
            found.append((start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())))
        start = end
    return found


def _ends(text: str, language: str | None) -> Iterator[int]:
    """The places, in order, where a sentence ends or a paragraph does."""
    asides = _asides(text)
    lead = _skip(text, 0)
    spots = [
        *((match.end(), match) for match in _END.finditer(text)),
        *((m.end(), None) for m in _BLANK.finditer(text)),
    ]
    for end, match in sorted(spots, key=lambda pair: pair[0]):
        if match is not None:
            low, high = (bisect_left(asides, (place, 0)) for place in (match.start() - ASIDE, match.start()))
            within = [(a, b) for a, b in asides[low:high] if lead < a and match.start() <= b]
            if any(end <= b for _, b in within) or not _ends_here(_spot(text, match, lead, within), language):
                continue
        yield end
        lead = _skip(text, max(lead, end))


def _skip(text: str, place: int) -> int:
    """The next place without white space."""
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def _spot(text: str, match: re.Match, lead: int, within: list[tuple[int, int]]) -> Spot:
    begin = max(lead, match.start() - WORD)
    before = text[begin : match.start()]
    token = before.split()[-1] if before and not before[-1].isspace() else ""
    rest = text[match.end() : match.end() + WORD]
    aside = any(text[b] in BRACKETS for _, b in within)
    if match[2][:1] in QUOTES and match[2]:
        opened = before.rfind({"”": "“", "’": "‘"}.get(match[2][0], match[2][0]))
        aside = aside or bool(before[: max(0, opened)].strip())
    first = match.start() - len(token) <= lead
    return Spot(match[1], match[2], before, token.lstrip(OPENING), first, aside, rest != rest.lstrip(), rest.lstrip())


def _asides(text: str) -> list[tuple[int, int]]:
    """What stands within brackets and quotation marks that are closed again soon, by where it begins."""
    opened: list[tuple[str, int]] = []
    found = []
    for match in _PAIRED.finditer(text):
        place, char = match.start(), match[0]
        closed = max((i for i, (closer, _) in enumerate(opened) if closer == char), default=None)
        if closed is not None:
            if place - opened[closed][1] <= ASIDE:
                found.append((opened[closed][1], place))
            del opened[closed:]
        elif char in PAIRS:
            opened.append((PAIRS[char], place))
            del opened[:-20]  # signs that are never closed are not waited for
    return sorted(found)


def _ends_here(spot: Spot, language: str | None) -> bool:
    after = spot.after.lstrip(OPENING + "-–—*_ ")
    if not spot.space and not _needs_no_space(spot, after):
        return False
    caseless = _HANGUL.match(spot.token[-1:]) or _KANA_HAN.match(spot.token[-1:])  # what follows may be another script
    if (after[:1].islower() and not caseless) or spot.after[:1] in tuple(",;:)]}»" + STOPS):
        return False
    if not spot.token and not spot.closing and spot.first:
        return False  # stops alone are no sentence
    if spot.closing and not after[:1].isupper() and (spot.aside or after.startswith(_QUOTED)):
        return False
    if spot.stops in (".", "．"):
        return _full_stop(spot, after, language)
    if spot.stops.startswith(("..", "…", "‥")) and not set(spot.stops) & set("!?！？"):
        return after[:1].isupper() or spot.token[-1:] in tuple(_SAYS)
    return True


def _needs_no_space(spot: Spot, after: str) -> bool:
    """Whether a sentence may end with no space after it: as Japanese and Chinese are written."""
    if not after or (spot.stops[-1] == "．" and spot.token[-1:].isdigit() and after[:1].isdigit()):
        return False
    if spot.closing and _HIRAGANA.match(after):
        return False  # 「…。」と言った
    asian = _KANA_HAN.match(spot.token[-1:]) and _KANA_HAN.match(after)
    return spot.stops[-1] in WIDE or (spot.stops[-1] in "!?" and bool(asian))


def _full_stop(spot: Spot, after: str, language: str | None) -> bool:
    """Whether one full stop ends a sentence."""
    word = re.split("['’]", spot.token.strip(OPENING + CLOSING))[-1].lower()
    head = (after.split() or [""])[0].strip(STOPS + CLOSING + ",;:").lower()
    if word[-1:].isdigit():
        return _after_number(spot, word, after, language)
    if word in _before(language) or (word in abbreviations.NUMBERED and after[:1].isdigit()):
        return False
    if word.endswith("str") and after[:1].isdigit() and language in ("de", None):  # Hauptstr. 5
        return False
    if re.fullmatch(r"[^\W\d_]", word) and not _HANGUL.match(word):  # an initial, or the name of an item
        return word == "i" and not spot.first and language in ("en", None)
    if word in abbreviations.AFTER or re.fullmatch(r"(?:[^\W\d_]\.)+[^\W\d_]", word):
        return head in abbreviations.BEGINS
    return not (spot.first and re.fullmatch(r"[가나다라마바사아자차카타파하]|[ivxlc]+", word))  # 가. and iv. in a list


def _after_number(spot: Spot, word: str, after: str, language: str | None) -> bool:
    if spot.first and len(word) <= 3:  # 1. in a list
        return False
    if after[:1].isdigit():  # 2024. 5. 3.
        return not re.fullmatch(r"\d{1,4}", word)
    if _HANGUL.match(after) and _DATE.search(spot.before):
        return False
    begins = (after.split() or [""])[0].lower() in abbreviations.BEGINS
    return begins or not (language == "de" and re.fullmatch(r"\d{1,2}", word))  # am 3. Oktober


@cache
def _before(language: str | None) -> frozenset[str]:
    return abbreviations.before(language)
