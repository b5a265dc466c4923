"""Lines of everyday talk: a sentence of the grammar or of a pattern, a set expression, or an expression before a sentence."""

import re
from random import Random
from typing import NamedTuple

from heed.data.synthetic.phrasebook import (
    english,
    expressions,
    expressions_daily,
    expressions_home,
    expressions_outside,
    expressions_talk,
    korean,
    patterns,
    sampling,
    topics,
    topics_daily,
    topics_numbers,
    topics_outside,
)
from heed.data.synthetic.phrasebook.clauses import HEAD, SECOND, VOCATIVE, Sentence, Words
from heed.data.synthetic.phrasebook.korean_inflection import attach_particle
from heed.data.synthetic.phrasebook.lexicon import FRIENDS
from heed.data.synthetic.phrasebook.topic_words import TABLES
from heed.data.synthetic.phrasebook.words import WORDS as LOOKED_UP
from heed.data.synthetic.splits import pick

OPENERS = 1 << 2 * SECOND  # the role of the words of an expression before a sentence
# Words and endings by which a question is known without its mark.
QUESTION = re.compile(
    r"(누구|누가|뭐|뭘|무엇|무슨|어디|언제|왜|어떻|어때|어땠|어떠|어떤|얼마|몇|어느|며칠)|(까|까요|나요|[인은운신한먼떤]가요|니|죠|래|래요)$"
)

REQUEST = re.compile(r"(주시겠어요|주실래요|있을까요)$")
# What people type at the end of a statement or a question; a mark that is in a list several times is drawn more often.
MARKS = (".", ".", ".", "", "", "!")
CHAT_MARKS = (*[".", ""] * 4, *["!", "~"] * 2, "!!", "~!", "...", "^^", "ㅎㅎ")
CHAT_QUESTION_MARKS = (*["?"] * 4, "??", "?!", "~?")
ENDINGS = ".!~^ㅎ"  # the characters of the marks of a statement


class Expression(NamedTuple):
    """A set expression: its Korean without punctuation, whether that is a question, and its English."""

    korean: str
    asks: bool
    english: str


class Line(NamedTuple):
    """The words of both languages with their roles, the final mark of the English, and by what it is split: '' is train."""

    korean: Words
    english: Words
    mark: str
    key: tuple[str, ...]


def read(table: str) -> list[Expression]:
    """The expressions of a table, each way to say one by itself."""
    found = []
    for line in table.strip().splitlines():
        ways, target = line.split(" = ")
        found += [Expression(way.strip().rstrip("?"), way.strip().endswith("?"), target) for way in ways.split(" / ")]
    return found


TOPICS = {
    "greetings": expressions.GREETINGS,
    "thanks": expressions.THANKS,
    "apologies": expressions.APOLOGIES,
    "answers": expressions.ANSWERS,
    "introductions": expressions_daily.INTRODUCTIONS,
    "wishes": expressions_daily.WISHES,
    "feelings": expressions_daily.FEELINGS,
    "restaurant": expressions_daily.RESTAURANT,
    "shopping": expressions_outside.SHOPPING,
    "directions": expressions_outside.WAY,
    "travel": expressions_outside.TRAVEL,
    "phone": expressions_outside.PHONE,
    "weather": expressions_outside.WEATHER,
    "times": expressions_home.TIME,
    "money": expressions_home.MONEY,
    "home": expressions_home.HOME,
    "trouble": expressions_outside.TROUBLE,
    "questions": expressions_talk.QUESTIONS,
    "moods": expressions_talk.MOODS,
    "replies": expressions_talk.REPLIES,
    "orders": expressions_talk.ORDERS,
    "news": expressions_talk.NEWS,
}
EXPRESSIONS = [one for table in TOPICS.values() for one in read(table)]
STATED = {one.korean for one in EXPRESSIONS if not one.asks}
CLEAR = {one.korean for one in EXPRESSIONS if one.asks} - STATED  # questions that are nothing else without their mark
SHORT = [  # what is said most: drawn more often than the rest
    one
    for name in ("greetings", "thanks", "apologies", "answers", "feelings", "questions", "moods", "replies", "orders")
    for one in read(TOPICS[name])
    if len(one.korean.split()) <= 2
]
FIRST = [one for name in ("greetings", "thanks", "apologies") for one in read(TOPICS[name]) if not one.asks]
BEFORE_NAMES = {*FIRST}  # others might take the name for their object
ANSWERED = [one for one in read(TOPICS["answers"]) if one.english in ("Yes.", "No.", "Of course.", "Okay.")]
NAMED_LAST = {  # in English: Thank you, Minsu
    *FIRST,
    *[one for one in read(TOPICS["wishes"]) if not one.asks],
    *[
        one
        for one in EXPRESSIONS
        if one.english in ("I love you.", "I miss you.", "I missed you.", "Good.", "Well done.")
    ],
}
CALLED = {
    "선생님": "teacher", "엄마": "Mom", "아빠": "Dad", "할머니": "Grandma", "할아버지": "Grandpa", "여러분": "everyone",
    "친구야": "my friend",
}  # fmt: skip
WORDS = [(source, target) for source, target in LOOKED_UP.items() if source not in STATED]
EXAMPLES = [  # of what one may ask of a model that was trained on the phrasebook
    read(TOPICS[name])[0] for name in ("greetings", "introductions", "shopping", "directions", "weather", "times")
]
PATTERNS = [
    one
    for table in (topics.PATTERNS | topics_daily.PATTERNS | topics_numbers.PATTERNS | topics_outside.PATTERNS).values()
    for one in table
]


def said_first(text: str) -> str:
    """English that follows something: with a small letter, unless it begins with I or a name."""
    return text if text.split()[0] in ("I", "Korean") else text[0].lower() + text[1:]


def final_mark(rng: Random, text: str, asks: bool, chat: bool = False) -> str:
    """The mark at the end of a Korean text: none sometimes, where that leaves no doubt; `chat`: also ~ and ^^."""
    requests = REQUEST.search(text) and text not in STATED  # a polite request: 물 좀 주시겠어요?
    if not asks and not requests:
        return pick(rng, CHAT_MARKS if chat else MARKS)
    marks = CHAT_QUESTION_MARKS if chat else ("?", "?")
    clear = requests or QUESTION.search(text) or text in CLEAR
    return pick(rng, (*marks, *[""] * (len(marks) // 2))) if clear else pick(rng, marks)


def expression_line(rng: Random) -> Line:
    """A set expression, alone or to someone by name."""
    one = pick(rng, SHORT if rng.random() < 0.25 else EXPRESSIONS)
    source, target = one.korean.split(), said_first(one.english.rstrip(".?")).split()
    if len(source) <= 3 and rng.random() < 0.1:  # as it is often typed: 뭐해, 어디가세요
        source = ["".join(source)]
    heads = [(text, 1) for text in source], [(text, 1) for text in target]
    mark = final_mark(rng, one.korean, one.asks, chat=True)
    if rng.random() < 0.85:
        return Line((*heads[0][:-1], (source[-1] + mark, 1)), tuple(heads[1]), one.english[-1], ())
    called, name = draw_vocative(rng)
    comma = "," * (called[0] in CALLED or rng.random() < 0.7)  # 엄마 어디 있어? asks where she is
    if one not in BEFORE_NAMES or rng.random() < 0.6:
        called[-1] += comma
        source[-1] += mark
        ko = [*[(text, 2) for text in called], *[(text, 1) for text in source]]
    else:
        source[-1] += comma
        called[-1] += mark
        ko = [*[(text, 1) for text in source], *[(text, 2) for text in called]]
    if one in NAMED_LAST:
        en = [*heads[1][:-1], (target[-1] + ",", 1), *[(text, 2) for text in name]]
    else:
        en = [*[(text, 2) for text in name[:-1]], (name[-1] + ",", 2), *heads[1]]
    return Line(tuple(ko), tuple(en), one.english[-1], ())


def draw_vocative(rng: Random) -> tuple[list[str], list[str]]:
    """Whom one speaks to, in both languages: 민수 씨, 민수야, 선생님."""
    if rng.random() < 0.3:
        called = pick(rng, (*CALLED,))
        return [called], CALLED[called].split()
    friend = pick(rng, FRIENDS)
    return [friend.name, "씨"] if rng.random() < 0.5 else [attach_particle(friend.name, "아")], [*friend.english]


def word_line(rng: Random) -> Line:
    """A word alone, as one looks it up."""
    source, target = pick(rng, WORDS)
    *words, last = source.split()
    ko = [*words, last + pick(rng, ("", "", "", ".", "!"))]
    return Line(tuple((text, 1) for text in ko), tuple((text, 1) for text in target.split()), ".", ())


def pattern_line(rng: Random) -> Line:
    """A sentence of a pattern."""
    drawn = patterns.realize(pick(rng, PATTERNS), TABLES, rng, pick(rng, patterns.LEVELS))
    *words, (text, role) = drawn.korean
    text += final_mark(rng, " ".join([word for word, _ in drawn.korean]), drawn.asks)
    return Line(
        (*words, (text, role)), drawn.english, "?" if drawn.asks else ".", tuple(text for text, _ in drawn.english)
    )


def sentence_line(sentence: Sentence, english_words: Words) -> Line:
    """A sentence of the grammar, given its English words."""
    key = tuple(text for text, _ in english_words)
    if sentence.vocative:
        english_words = ((sentence.vocative.english[0] + ",", HEAD << VOCATIVE), *english_words)
    mark = "?" if sentence.form in ("question", "shall") else "."
    return Line(tuple(korean.realize(sentence)), tuple(english_words), mark, key)


def composed_line(rng: Random) -> Line:
    """A sentence of the grammar or of a pattern."""
    if rng.random() < 0.72:
        return pattern_line(rng)
    sentence = sampling.draw(rng)
    return sentence_line(sentence, tuple(english.realize(sentence)))


def opened_line(rng: Random) -> Line:
    """A set expression and then a sentence or another: 안녕하세요. 저는 민수예요."""
    one = pick(rng, ANSWERED if rng.random() < 0.4 else FIRST)
    line = expression_line(rng) if rng.random() < 0.4 else composed_line(rng)
    source, target = one.korean.split(), said_first(one.english).split()
    source[-1] += pick(rng, (".", ".", "!", ",", ","))
    (text, role), *rest = line.english
    said = ((text[0].upper() + text[1:], role), *rest)
    return line._replace(
        korean=(*[(word, OPENERS) for word in source], *line.korean),
        english=(*[(word, OPENERS) for word in target], *said),
    )


def draw_complete(rng: Random) -> Line:
    """A complete sentence of the grammar, at random."""
    sentence = sampling.draw_complete(rng)
    return sentence_line(sentence, tuple(english.realize(sentence)))


def draw(rng: Random) -> Line:
    """A line of the phrasebook, at random."""
    chance = rng.random()
    if chance < 0.32:
        return expression_line(rng) if chance < 0.29 else word_line(rng)
    return opened_line(rng) if chance < 0.36 else composed_line(rng)
