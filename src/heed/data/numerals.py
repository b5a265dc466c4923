"""The numbers of a text, however they are written: in digits, as times and dates, with units (10万, 3 million) or in
words. A number has several readings where its text is ambiguous: 2:30 is at night or in the afternoon, 10만 is 100,000 or
"only 10".
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import NamedTuple

# Separators between digits are dropped, since languages write them differently: 1,000 and 1.000; 2:30 and 2.30.
NUMBER = re.compile(r"\d+(?:[.,:'’]\d+|[ \u00a0\u202f]\d{3}(?!\d))*")
_SEPARATOR = re.compile(r"\D")


class Mention(NamedTuple):
    """A number in a text. `digits` is how many digits it is written with: 0 in words. `part` is the digits before a unit,
    or the hour, if they may be a number of their own.
    """

    readings: set[str]
    digits: int
    part: set[str] = frozenset()

    def agrees(self, other: "Mention") -> bool:
        return not (self.readings | self.part).isdisjoint(other.readings) or not self.readings.isdisjoint(other.part)


def plain(number: str) -> str:
    """The digits of a number alone, 0 to 9 for those of any script."""
    digits = _SEPARATOR.sub("", number)
    if not digits.isascii():
        digits = "".join(str(unicodedata.decimal(digit)) for digit in digits)
    return digits.lstrip("0") or "0"


def mentions(text: str) -> list[Mention]:
    """All numbers of a text, those in words too."""
    return _read(text, (_fraction, _time, _named, partial(_with_units, _SUMS), _in_words, _in_korean))


def parts(text: str) -> list[Mention]:
    """The same with times, dates and sums in parts: 2:30 is 2 and 30, 2024.3.5 and 5.3.2024 are 2024, 3 and 5."""
    text = _DATE.sub(r"\1\4 \2\5 \3\6", unicodedata.normalize("NFKC", text))
    return _read(_COLON.sub(" ", text), (_fraction, _named, partial(_with_units, _UNITS), _in_words, _in_korean))


def explained(wanted: Sequence[Mention], found: Sequence[Mention]) -> bool:
    """Whether each wanted number can have one of its own among those that were found."""
    wanted, found = _without_common(wanted, found)
    return len(wanted) <= len(found) and _all_matched(wanted, found)


def _without_common(first: Sequence[Mention], second: Sequence[Mention]) -> tuple[list[Mention], list[Mention]]:
    """What is left of both without the numbers of one reading that they share."""
    shared = Counter(filter(None, map(_only_reading, first))) & Counter(filter(None, map(_only_reading, second)))
    return _without(first, shared.copy()), _without(second, shared.copy())


def _without(own: Sequence[Mention], shared: Counter[str | None]) -> list[Mention]:
    rest = []
    for mention in own:
        reading = _only_reading(mention)
        if shared[reading]:
            shared[reading] -= 1
        else:
            rest.append(mention)
    return rest


def _only_reading(mention: Mention) -> str | None:
    return next(iter(mention.readings)) if len(mention.readings) == 1 and not mention.part else None


def _all_matched(wanted: Sequence[Mention], found: Sequence[Mention]) -> bool:
    """Whether there is a matching that covers all wanted numbers: each is added by an augmenting path."""
    owner: dict[int, int] = {}  # of a found number: the wanted one that it is matched with
    match: dict[int, int] = {}  # the same the other way round
    for number in range(len(wanted)):
        reached: dict[int, int] = {}  # found numbers, and the wanted one from which
        place = _free(number, wanted, found, owner, reached)
        if place is None:
            return False
        while place is not None:  # the path back: each moves to the number that it reached
            own = reached[place]
            owner[place], match[own], place = own, place, match.get(own)
    return True


def _free(
    number: int, wanted: Sequence[Mention], found: Sequence[Mention], owner: dict[int, int], reached: dict[int, int]
) -> int | None:
    """A found number without an owner that a wanted one can have, directly or if others move; None if there is none."""
    queue = [number]
    for own in queue:
        for other, mention in enumerate(found):
            if other not in reached and wanted[own].agrees(mention):
                reached[other] = own
                if other not in owner:
                    return other
                queue.append(owner[other])
    return None


Found = Iterator[tuple[re.Match, set[str], set[str]]]  # where, its readings, and its part
Reader = Callable[[str], Found]


def _read(text: str, readers: Sequence[Reader]) -> list[Mention]:
    """What each reader finds, and the digits that are left."""
    text, found = unicodedata.normalize("NFKC", text).lower(), []
    for reader in (*readers, _in_digits):
        rest = text
        for match, readings, part in reader(text):
            digits = 0 if reader is _fraction else len(re.findall(r"\d", match[0]))
            found.append(Mention(readings, digits, part))
            rest = rest[: match.start()] + " " * len(match[0]) + rest[match.end() :]
        text = rest
    return found


_FRACTION = re.compile(r"(?<![\d.,])(\d+(?:,\d{3})*)\s?분의\s?(\d+)")


def _fraction(text: str) -> Found:
    """4분의 1, for which other languages have words."""
    for match in _FRACTION.finditer(text):
        yield match, set(map(plain, match.groups())), set()


def _in_digits(text: str) -> Found:
    for match in NUMBER.finditer(text):
        yield match, {plain(match[0])}, set()


_DATE = re.compile(r"\b(?:(\d{4})\.\s?(\d{1,2})\.\s?(\d{1,2})|(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4}))\b")
_COLON = re.compile(r"(?<=\d):(?=\d)")

# Numerals of Chinese, Japanese and Korean, with or without digits among them
_DIGITS = {
    char: value for chars in ("零一二三四五六七八九", "영일이삼사오육칠팔구") for value, char in enumerate(chars)
}
_DIGITS |= {"〇": 0, "공": 0, "육": 6, "륙": 6}
_TENS = {"十": 10, "百": 100, "千": 1000, "십": 10, "백": 100, "천": 1000}
_MYRIADS = {char: 10**zeros for chars, zeros in (("万萬만", 4), ("亿億억", 8), ("兆조", 12)) for char in chars}
_FIGURES = r"\d+(?:[.,]\d+)*"
_DIGIT, _UNIT = f"[{''.join(_DIGITS)}]", f"[{''.join((*_TENS, *_MYRIADS))}]"
_COUNTS = rf"(?<![\d.,])(?:(?:{_FIGURES}|{_DIGIT}++)?\s?{_UNIT}\s?)+(?:{_DIGIT}+(?![가-힣]))?"
_KANJI = "[〇一二三四五六七八九]+"
_UNITS = re.compile(rf"{_COUNTS}|{_KANJI}")
_SUMS = re.compile(rf"{_COUNTS}(?:{_FIGURES})?|{_KANJI}")
_TOKEN = re.compile(rf"{_FIGURES}|{_DIGIT}+|{_UNIT}")
_COUNTED = re.compile(r"[\s\d원엔년명개달번시분층.,!?]|$")  # what follows a Korean numeral, and hardly another word


def _with_units(pattern: re.Pattern, text: str) -> Found:
    """10万, 1억 2천만, 三百, 오천 and 五. Digits before a unit may be alone: 만 is a particle, too."""
    for match in pattern.finditer(text):
        tokens, words = _TOKEN.findall(match[0]), match[0].strip()
        korean = "가" <= words[0] <= "힣"
        if korean and (
            "가" <= text[match.start() - 1 : match.start()] <= "힣"
            or not (match[0][-1].isspace() or _COUNTED.match(text, match.end()))
        ):
            continue
        yield match, {_as_text(_cjk_value(tokens))}, {plain(token) for token in tokens[:1] if token.isdecimal()}


def _cjk_value(tokens: Sequence[str]) -> Decimal:
    total, section, number = Decimal(0), Decimal(0), None
    for token in tokens:
        if token in _TENS:
            section, number = section + (1 if number is None else number) * _TENS[token], None
        elif token in _MYRIADS:
            section += number or 0
            total, section, number = total + (section or 1) * _MYRIADS[token], Decimal(0), None
        else:
            number = _value("".join(str(_DIGITS.get(char, char)) for char in token))
    return total + section + (number or 0)


def _value(figures: str) -> Decimal:
    """1,000 and 1.000 are a thousand; 1.5 is not."""
    if re.fullmatch(r"\d{1,3}(?:[.,]\d{3})+", figures):
        return Decimal(_SEPARATOR.sub("", figures))
    try:
        return Decimal(figures.replace(",", ""))
    except InvalidOperation:  # 1.2.3
        return Decimal(_SEPARATOR.sub("", figures))


def _as_text(value: Decimal) -> str:
    return plain(format(value.normalize(), "f"))


# Times
_HALF_DAYS = {"오전": 0, "午前": 0, "上午": 0, "오후": 12, "午後": 12, "下午": 12, "a": 0, "p": 12}
_KOREAN_HOURS = dict(
    zip(
        ("한", "두", "세", "네", "다섯", "여섯", "일곱", "여덟", "아홉", "열", "열한", "열두"),
        range(1, 13),
        strict=True,
    )
)
_HOUR = rf"\d{{1,2}}|[一二三四五六七八九十]{{1,3}}|{'|'.join(sorted(_KOREAN_HOURS, key=len, reverse=True))}"
_TIME = re.compile(
    rf"""(?<![\d.,:])(?:(?P<before>오전|오후|午前|午後|上午|下午)\s*)?(?:
    (?P<hour>{_HOUR})\s*(?:시|[時时点點])\s*(?:(?P<minute>\d{{1,2}}|{_DIGIT[:-1]}십十]+)\s*[분分]|(?P<half>[반半]))?
    |(?P<clock>\d{{1,2}})(?:[:.](?P<past>\d\d))?\s?(?:(?P<after>[ap])\.?\s?m\b|o'clock|uhr\b)
    |(?P<french>\d{{1,2}})\s?h(?:\s?(?P<quarter>\d\d))?\b
    |(?P<bare>\d{{1,2}}):(?P<rest>\d\d)(?![\d:.]\d)
    )""",
    re.VERBOSE,
)


def _time(text: str) -> Found:
    """3 p.m., 15:00, 오후 3시, 午後三時半 and 14 h 30; without a half of the day, both."""
    for match in _TIME.finditer(text):
        written = match["hour"] or match["clock"] or match["french"] or match["bare"]
        hour = _small(written)
        past = match["minute"] or match["past"] or match["quarter"] or match["rest"]
        minute = 30 if match["half"] else _small(past) if past else 0
        if hour > 24 or minute > 59 or "가" <= written <= text[match.start() - 1 : match.start()] <= "힣":
            continue
        start = _HALF_DAYS.get(match["before"] or match["after"])
        if start is None or hour > 12:
            hours = [hour % 12, hour % 12 + 12] if hour <= 12 else [hour % 24]
        else:
            hours = [hour % 12 + start]
        readings = {f"{own}:{minute:02}" for own in hours}
        readings |= {plain(f"{hour}{past}")} if past and past.isascii() else set()
        yield match, readings, set() if minute else {str(hour)}


def _small(written: str) -> int:
    if written.isascii():
        return int(written)
    return _KOREAN_HOURS.get(written) or int(_cjk_value(_TOKEN.findall(written)))


# Words
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_BASES = {"hex": 16, "dec": 10, "oct": 8, "bin": 2}
_NAMED = re.compile(
    r"\b(?:(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?|may(?=,?\s\d)|(?<=\d\s)may|(?<=(?:th|st|nd|rd|in|of)\s)may)|"
    r"(hex(?:adecimal)?|decimal|octal|binary))\b"
)


def _named(text: str) -> Found:
    """The months, and the bases that Korean names by a number: 3월, 16진수."""
    for match in _NAMED.finditer(text):
        month, base = match.groups()
        yield match, {str(1 + _MONTHS.index(month[:3]) if month else _BASES[base[:3]])}, set()


_BELOW_20 = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_ENGLISH = {word: value for value, word in enumerate(_BELOW_20)}
_ENGLISH |= {
    f"{word}ty": 10 * value
    for value, word in enumerate(("twen", "thir", "for", "fif", "six", "seven", "eigh", "nine"), 2)
}
_ENGLISH |= {(f"{word[:-1]}ie" if word[-1] == "y" else word) + "th": value for word, value in _ENGLISH.items()}
_ENGLISH |= {"first": 1, "second": 2, "third": 3, "fifth": 5, "eighth": 8, "ninth": 9, "twelfth": 12}
_SCALES = {"hundred": 100, "hundert": 100, "thousand": 10**3, "tausend": 10**3, "mille": 10**3, "million": 10**6,
           "millionen": 10**6, "milliard": 10**9, "milliarde": 10**9, "milliarden": 10**9, "billion": 10**9,
           "trillion": 10**12}  # fmt: skip
_WORD = "|".join(sorted((*_ENGLISH, *_SCALES), key=len, reverse=True))
_WORDS = re.compile(
    rf"(?<![\w.,])(?:({_FIGURES})[\s-]?(?:{'|'.join(_SCALES)})s?|(?:{_WORD})s?)(?:(?:[\s-]+|\sand\s)(?:{_WORD})s?)*\b"
)
_EACH = re.compile(rf"{_FIGURES}|{_WORD}")


def _in_words(text: str) -> Found:
    """Twenty-five, third, two hundred and 3 million; what stands before a million is also read alone."""
    for match in _WORDS.finditer(text):
        total, number, alone = Decimal(0), Decimal(0), {match[1]} if (match[1] or "").isdecimal() else set()
        for word in _EACH.findall(match[0]):
            if word in _ENGLISH:
                number += _ENGLISH[word]
            elif word not in _SCALES:
                number = _value(word)
            elif _SCALES[word] == 100:
                number = (number or 1) * 100
            else:
                alone |= {_as_text(number)} if number and number == int(number) else set()
                total, number = total + (number or 1) * _SCALES[word], Decimal(0)
        yield match, {_as_text(total + number)}, alone


_ONES = {**_KOREAN_HOURS, "하나": 1, "둘": 2, "셋": 3, "넷": 4}
_TIES = dict(zip(("열", "스물", "서른", "마흔", "쉰", "예순", "일흔", "여든", "아흔"), range(10, 100, 10), strict=True))
_TIES |= {"스무": 20}
_KOREAN = re.compile(
    rf"(?<![가-힣])(?:({'|'.join(_TIES)})\s?)?({'|'.join(sorted(_ONES, key=len, reverse=True))})?(?=[\s살명개번마장권대달]|$)"
)


def _in_korean(text: str) -> Found:
    """열세 살, 두 명."""
    for match in _KOREAN.finditer(text):
        if match[0]:
            yield match, {str(_TIES.get(match[1], 0) + _ONES.get(match[2], 0))}, set()
