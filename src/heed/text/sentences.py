"""Sentence splitting: rules for Korean, English, German, French and Japanese, and sensible ones for other languages.

If in doubt, the text is not split: joining two sentences harms a translation less than splitting one.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from heed.text import abbreviations

STOPS = ".!?…‥‼⁇⁈⁉。！？．｡؟۔।॥"
WIDE = "。！？．｡"  # full-width stops, which need no space after them
CLOSING = "\"'”’»›)]}」』】〉》）］｝〕“"  # the last one closes a German quotation
OPENING = "\"'“‘„‚«‹([{「『【〈《（［｛〔¿¡"
PAIRS = {"(": ")", "[": "]", "{": "}", "（": "）", "［": "］", "「": "」", "『": "』", "【": "】", "“": "”", "«": "»"}
BRACKETS, QUOTES = ")]}）］】", "\"'”’"
MAX_ASIDE, MAX_WORD = 400, 100  # characters of an aside in brackets or quotes, and of a word
LINE = r"(?:\r\n|[\n\r\u2028\u2029])"
_STOP, _CLOSE = re.escape(STOPS), re.escape(CLOSING)
_END = re.compile(rf"([{_STOP}](?:[{_STOP}]|[ \u00a0\u202f](?=[!?]))*)((?:[{_CLOSE}]|[ \u00a0\u202f]»)*)")
_BLANK = re.compile(rf"{LINE}[^\S\r\n]*{LINE}|\u2029")
_PAIRED = re.compile(f"[{re.escape(''.join([*PAIRS, *PAIRS.values()]))}]")
_SPACE = re.compile(r"\s*")
_DATE = re.compile(r"(?:\d{4}\.\s?)?\d{1,2}\.\s?\d{1,2}$")
_HANGUL, _HIRAGANA = re.compile(r"[가-힣]"), re.compile(r"[\u3041-\u309f]")
_KANA_HAN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff々]")
_KOREAN_ENDINGS = "다요죠까네군나라자지걸데오음함됨임것"  # last syllables of Korean sentences
# These continue a Korean sentence after a quotation.
_AFTER_SPEECH = ("하고", "하며", "라고", "라며", "이라고", "이라며", "고 ", "라는", "하는")


class Candidate(NamedTuple):
    """A possible end of a sentence: the stops, the closing marks after them, and the context on both sides."""

    stops: str
    closing: str
    before: str
    word: str  # the one that the stops end, without them
    is_first: bool  # whether that word begins the sentence
    closes_aside: bool  # whether the closing marks were opened within the sentence
    has_space: bool  # whether white space follows
    after: str


def split(text: str, language: str | None = None) -> list[str]:
    """The sentences of a text."""
    return [text[start:end] for start, end in spans(text, language)]


def spans(text: str, language: str | None = None) -> list[tuple[int, int]]:
    """The start and end of each sentence. Everything outside these spans is white space."""
    language = re.split("[-_]", language or "")[0].lower() or None
    found, start = [], 0
    for end in [*_boundaries(text, language), len(text)]:
        sentence = text[start:end]
        if sentence.strip():
            found.append((start + len(sentence) - len(sentence.lstrip()), start + len(sentence.rstrip())))
        start = end
    return found


def _boundaries(text: str, language: str | None) -> Iterator[int]:
    """The positions, in order, at which a sentence or a paragraph ends."""
    asides = _asides(text)
    lead = _SPACE.match(text).end()
    for match in sorted([*_END.finditer(text), *_BLANK.finditer(text)], key=re.Match.end):
        start, end = match.span()
        if match.re is _END:
            low, high = (bisect_left(asides, (position, 0)) for position in (start - MAX_ASIDE, start))
            around = [(opens, closes) for opens, closes in asides[low:high] if lead < opens and start <= closes]
            if any(end <= closes for _, closes in around):
                continue
            if not _ends_sentence(_candidate(text, match, lead, around), language):
                continue
        yield end
        lead = _SPACE.match(text, max(lead, end)).end()


def _candidate(text: str, match: re.Match, lead: int, around: list[tuple[int, int]]) -> Candidate:
    begin = max(lead, match.start() - MAX_WORD)
    before = text[begin : match.start()]
    word = before.split()[-1] if before and not before[-1].isspace() else ""
    rest = text[match.end() : match.end() + MAX_WORD]
    closes_aside = any(text[closes] in BRACKETS for _, closes in around)
    if match[2][:1] in QUOTES and match[2]:
        opened = before.rfind({"”": "“", "’": "‘"}.get(match[2][0], match[2][0]))
        closes_aside = closes_aside or bool(before[: max(0, opened)].strip())
    is_first = match.start() - len(word) <= lead
    after, word = rest.lstrip(), word.lstrip(OPENING)
    return Candidate(match[1], match[2], before, word, is_first, closes_aside, rest != after, after)


def _asides(text: str) -> list[tuple[int, int]]:
    """The short spans within brackets and quotation marks, by where they begin."""
    opened: list[tuple[str, int]] = []
    found = []
    for match in _PAIRED.finditer(text):
        position, char = match.start(), match[0]
        closed = max((i for i, (closer, _) in enumerate(opened) if closer == char), default=None)
        if closed is not None:
            if position - opened[closed][1] <= MAX_ASIDE:
                found.append((opened[closed][1], position))
            del opened[closed:]
        elif char in PAIRS:
            opened.append((PAIRS[char], position))
            del opened[:-20]  # a text full of unclosed brackets must not take quadratic time
    return sorted(found)


def _ends_sentence(candidate: Candidate, language: str | None) -> bool:
    after = candidate.after.lstrip(OPENING + "-–—*_ ")
    if not candidate.has_space and not _needs_no_space(candidate, after):
        return False
    last = candidate.word[-1:]
    caseless = _HANGUL.match(last) or _KANA_HAN.match(last)  # then lower case after it is only another script
    if (after[:1].islower() and not caseless) or candidate.after[:1] in tuple(",;:)]}»" + STOPS):
        return False
    if not candidate.word and not candidate.closing and candidate.is_first:
        return False  # stops alone are no sentence
    if candidate.closing and not after[:1].isupper() and (candidate.closes_aside or after.startswith(_AFTER_SPEECH)):
        return False
    if candidate.stops in (".", "．"):
        return _full_stop_ends(candidate, after, language)
    if candidate.stops.startswith(("..", "…", "‥")) and not set(candidate.stops) & set("!?！？"):
        return after[:1].isupper() or last in tuple(_KOREAN_ENDINGS)
    return True


def _needs_no_space(candidate: Candidate, after: str) -> bool:
    """Whether a sentence may end with no space after it, as in Japanese and Chinese."""
    last, stop = candidate.word[-1:], candidate.stops[-1]
    if not after or (stop == "．" and last.isdigit() and after[:1].isdigit()):
        return False
    if candidate.closing and _HIRAGANA.match(after):
        return False  # 「…。」と言った
    return stop in WIDE or (stop in "!?" and bool(_KANA_HAN.match(last) and _KANA_HAN.match(after)))


def _full_stop_ends(candidate: Candidate, after: str, language: str | None) -> bool:
    """Whether a single full stop ends the sentence."""
    word = re.split("['’]", candidate.word.strip(OPENING + CLOSING))[-1].lower()
    next_word = (after.split() or [""])[0].strip(STOPS + CLOSING + ",;:").lower()
    if word[-1:].isdigit():
        return _number_ends(candidate, word, after, language)
    if word in abbreviations.nonbreaking(language) or (word in abbreviations.NUMERIC_ONLY and after[:1].isdigit()):
        return False
    if word.endswith("str") and after[:1].isdigit() and language in ("de", None):  # Hauptstr. 5
        return False
    if re.fullmatch(r"[^\W\d_]", word) and not _HANGUL.match(word):  # an initial, or the label of a list item
        return word == "i" and not candidate.is_first and language in ("en", None)
    if word in abbreviations.MAY_END or re.fullmatch(r"(?:[^\W\d_]\.)+[^\W\d_]", word):
        return next_word in abbreviations.STARTERS
    label = re.fullmatch(r"[가나다라마바사아자차카타파하]|[ivxlc]+", word)  # 가. and iv. in a list
    return not (candidate.is_first and label)


def _number_ends(candidate: Candidate, word: str, after: str, language: str | None) -> bool:
    """Whether the full stop after a number ends the sentence."""
    if candidate.is_first and len(word) <= 3:  # 1. in a list
        return False
    if after[:1].isdigit():  # 2024. 5. 3.
        return not re.fullmatch(r"\d{1,4}", word)
    if _HANGUL.match(after) and _DATE.search(candidate.before):
        return False
    starts = (after.split() or [""])[0].lower() in abbreviations.STARTERS
    return starts or not (language == "de" and re.fullmatch(r"\d{1,2}", word))  # am 3. Oktober
