"""Sentences said in Korean, word by word, each word with its roles."""

from functools import cache

from heed.data.synthetic.phrasebook.clauses import (
    ACTION,
    BE,
    CASE,
    COMPANION,
    COUNT,
    DETERMINER,
    HEAD,
    LINK,
    MANNER,
    MEANS,
    MOOD,
    NOT,
    OBJECT,
    PLACE,
    PREDICATE,
    QUALITY,
    REASON,
    RECEIVER,
    SECOND,
    SUBJECT,
    TENSE,
    THERE,
    TIME,
    UNIT,
    VOCATIVE,
    WHO,
    Clause,
    Phrase,
    Sentence,
    Words,
    moves,
    paired,
)
from heed.data.synthetic.phrasebook.hangul import Stem, attach, final, formal, infinitive, open_ending, past
from heed.data.synthetic.phrasebook.lexicon import COUNTS
from heed.data.synthetic.phrasebook.words import Adjective, Person, Place, Verb

HONORIFIC = {"먹": Stem("드"), "마시": Stem("드"), "자": Stem("주무")}


def marked(said: Words, particle: str, slot: int) -> Words:
    """The words with a particle on the last of them."""
    text, role = said[-1]
    return (*said[:-1], (attach(text, particle), role | CASE << slot))


def say_phrase(phrase: Phrase, level: str) -> Words:
    """A thing in Korean: 민수의 큰 사과, 책 두 권."""
    noun, owner, quality, count = phrase
    said: list[tuple[str, int]] = []
    if owner:
        said += [(text, DETERMINER) for text in (owner.plain if level == "plain" else owner.polite)]
    if quality:
        text = quality.stem.text
        said.append((text + "는" if text[-1] == "있" else open_ending(quality.stem, "ㄴ"), QUALITY))
    said.append((noun.korean, HEAD))
    if count:
        said += [(COUNTS[count - 1][0], COUNT), (noun.counter, UNIT if noun.unit else HEAD)]
    return tuple(said)


@cache
def say_noun(thing: Person | Phrase | Place, particle: str, level: str, slot: int) -> Words:
    """Someone, something or some place in Korean, with a particle."""
    if isinstance(thing, Phrase):
        said = tuple((text, role << slot) for text, role in say_phrase(thing, level))
    elif isinstance(thing, Place):
        said = tuple((text, HEAD << slot) for text in thing.korean.split())
        said = (*said[:-1], (said[-1][0], 0 if len(said) > 1 else HEAD << slot))
    else:
        said = paired(thing.plain if level == "plain" else thing.polite, thing.english, slot)
    return marked(said, particle, slot) if particle else said


def conclude(stem: Stem, level: str, ending: str) -> str:
    """The last verb of a clause: a stem with the ending that its level, form or conjunction asks for."""
    if ending in ("but", "and", "because"):
        return stem.text + {"but": "지만", "and": "고", "because": "기"}[ending]
    if ending in ("so", "if"):
        return infinitive(stem) + "서" if ending == "so" else open_ending(stem, "면")
    if ending == "lets":
        return stem.text + "자" if level == "plain" else open_ending(stem, "ㅂ시다")
    if ending == "order" and level != "plain":
        return open_ending(HONORIFIC.get(stem.text, stem), "세요" if level == "polite" else "십시오")
    if level == "formal":
        return formal(stem, "까" if ending == "question" else "다")
    return (infinitive(stem) if stem.text != "말" else "마") + ("요" if level == "polite" else "")


def copula(text: str, tense: str, level: str, ending: str) -> str:
    """A noun, or 아니, made a predicate: 학생이야, 의사예요, 학생이었습니다."""
    denied = text == "아니"
    if tense == "past":
        return conclude(Stem(text + ("이었" if final(text) else "었" if denied else "였")), level, ending)
    if level != "formal" and ending in ("statement", "question"):
        short = {"plain": "야", "polite": "에요" if final(text) or denied else "예요"}[level]
        return text + ("이" if final(text) else "") + short
    return conclude(Stem(text if denied else text + "이"), level, ending)


@cache
def concluded(stem: Stem, role: int, tense: str, level: str, ending: str) -> Words:
    """The last words of a clause: one verb, or two where future or 때문에 ask for it."""
    if tense == "future":
        tail = {"plain": "거야", "polite": "거예요"}.get(level, "것입니까" if ending == "question" else "것입니다")
        return ((open_ending(stem, "ㄹ"), role), (tail, TENSE))
    text = conclude(past(stem) if tense == "past" and ending != "so" else stem, level, ending)
    return ((text, role | TENSE), ("때문에", LINK)) if ending == "because" else ((text, role | TENSE | LINK),)


@cache
def say_verb(verb: Verb | Adjective, how: tuple[str, str, str], third: bool, level: str, ending: str) -> Words:
    """The verb's words: 안 갔어, 가고 싶어 해요, 갈 수 없습니다, 가지 않을 거야."""
    tense, mood, negation = how
    said: list[tuple[str, int]] = []
    stem, role = verb.stem, ACTION
    if mood == "want":
        said, stem, role = [(stem.text + "고", ACTION)], Stem("싶"), MOOD
        if third:
            said, stem = [*said, ("싶어", MOOD)], Stem("하")
    elif mood == "doing":
        said, stem, role = [(stem.text + "고", ACTION)], Stem("있"), MOOD
    elif mood == "can":
        said = [(open_ending(stem, "ㄹ"), ACTION), ("수", MOOD)]
        stem, role = (Stem("없"), MOOD | NOT) if negation else (Stem("있"), MOOD)
    unable = mood == "unable"
    if negation == "short":
        said = [("못", NOT | MOOD) if unable else ("안", NOT)]
    elif negation == "long":
        said = [*said, (stem.text + "지", role)]
        stem = Stem("못하" if unable else "말" if ending in ("order", "lets") else "않")
        role = NOT | MOOD if unable else NOT
    last = concluded(stem, role, tense, level, ending)
    return tuple((text, role << PREDICATE) for text, role in (*said, *last))


def say_complement(clause: Clause, level: str, ending: str) -> Words:
    """What someone is, in Korean: 학생이야, 학생이 아니에요."""
    tail = (("때문에", LINK << PREDICATE),) if ending == "because" else ()
    linked = (TENSE if tail else TENSE | LINK) << PREDICATE
    if clause.negation:
        said = say_noun(clause.object, "이", level, OBJECT)
        return (*said, (copula("아니", clause.tense, level, ending), linked | NOT << PREDICATE), *tail)
    *said, (text, role) = say_noun(clause.object, "", level, OBJECT)
    return (*said, (copula(text, clause.tense, level, ending), role | linked | ACTION << PREDICATE), *tail)


def say_predicate(clause: Clause, level: str, ending: str) -> Words:
    """The predicate of a clause in Korean, its complement included."""
    if clause.verb is BE:
        return say_complement(clause, level, ending)
    if clause.verb is THERE:
        stem = Stem("없") if clause.negation else clause.verb.stem
        text = conclude(past(stem) if clause.tense == "past" else stem, level, ending)
        role = ACTION | TENSE | (NOT if clause.negation else 0)
        return (*say_noun(clause.object, "이", level, OBJECT), (text, role << PREDICATE))
    third = clause.mood == "want" and clause.subject.agreement in ("he", "they")
    return say_verb(clause.verb, (clause.tense, clause.mood, clause.negation), third, level, ending)


def say_setting(clause: Clause, level: str) -> list[tuple[str, int]]:
    """Where, with whom, to whom and by what, in Korean."""
    said: list[tuple[str, int]] = []
    place = clause.place
    goes = place and moves(clause)
    if place and not goes:
        said += say_noun(place, "에" if clause.verb is THERE else "에서", level, PLACE)
    if clause.companion:
        said += (*say_noun(clause.companion, "과", level, COMPANION), ("함께", UNIT << COMPANION))
    if clause.receiver:
        said += say_noun(clause.receiver, "에게", level, RECEIVER)
    if clause.means:
        said += say_noun(clause.means, "으로", level, MEANS)
    if goes:
        said += say_noun(place, "에", level, PLACE)
    return said


def say_clause(clause: Clause, level: str, ending: str, topic: str) -> list[tuple[str, int]]:
    """A clause in Korean; `topic` is the particle of its subject, or '' where the subject goes without saying."""
    who = say_noun(clause.subject, topic, level, SUBJECT) if clause.subject and topic else ()
    when = paired(clause.time.korean, clause.time.english, TIME) if clause.time else ()
    said = [*when, *who] if clause.time_first else [*who, *when]
    if clause.reason:
        said += paired(clause.reason.korean, (), REASON)
    said += say_setting(clause, level)
    if clause.object and clause.verb is not BE and clause.verb is not THERE:
        said += say_noun(clause.object, "을", level, OBJECT)
    if clause.manner:
        said += paired(clause.manner.korean, (), MANNER)
    said += say_predicate(clause, level, ending)
    return said


def say(sentence: Sentence) -> list[tuple[str, int]]:
    """A sentence in Korean, word by word."""
    first, second, level = sentence.first, sentence.second, sentence.level
    said: list[tuple[str, int]] = []
    if sentence.vocative:
        name = sentence.vocative.name
        called = (attach(name, "아") + ",",) if level == "plain" else (name, "씨,")
        said += [(text, HEAD << VOCATIVE) for text in called]
    if second is None:
        said += say_clause(first, level, sentence.form, "이" if first.subject is WHO else "은")
    else:
        shared = second.subject is first.subject
        said += say_clause(first, level, sentence.link, "은" if shared or sentence.link in ("but", "and") else "이")
        rest = say_clause(second, level, "statement", "" if shared else "은")
        said += [(text, role << SECOND) for text, role in rest]
    text, role = said[-1]
    said[-1] = (text + ("?" if sentence.form == "question" else "."), role)
    return said
