"""Korean realization: the words of a sentence, each with its roles."""

from functools import cache

from heed.data.synthetic.phrasebook.clauses import (  # isort: skip
    ACTION, BE, CASE, COMPANION, COUNT, DETERMINER, HEAD, LINK, MANNER, MEANS, MOOD, NOT, OBJECT, PLACE, PREDICATE,
    QUALITY, REASON, RECEIVER, SECOND, SUBJECT, TENSE, THERE, TIME, UNIT, VOCATIVE, WHAT, WHO, Clause, Phrase,
    Sentence, Words, moves, with_roles,
)  # fmt: skip
from heed.data.synthetic.phrasebook.korean_inflection import (  # isort: skip
    Stem, attach_particle, final_consonant, formal, infinitive, past_stem, with_eu_ending, written,
)  # fmt: skip
from heed.data.synthetic.phrasebook.lexicon import ME, NUMERALS, YOU
from heed.data.synthetic.phrasebook.parts_of_speech import Adjective, Person, Place, Verb

HONORIFIC = {"먹": Stem("드"), "마시": Stem("드"), "자": Stem("주무")}
INTIMATE = ("plain", "written", "state")  # the levels of 나 and 너; 'state' is 'written' of an adjective
DROPPED = "-"  # a particle that is left out in casual speech


def honorific(stem: Stem, mood: str) -> Stem:
    """The stem that honors the listener: 가시, 드시, 계시."""
    if mood == "doing":
        return Stem("계시")
    return Stem(with_eu_ending(HONORIFIC.get(stem.text, stem), "시"))


def with_particle(words: Words, particle: str, slot: int) -> Words:
    """Words with a particle on the last one."""
    text, role = words[-1]
    return (*words[:-1], (text if particle == DROPPED else attach_particle(text, particle), role | CASE << slot))


def realize_phrase(phrase: Phrase, level: str) -> Words:
    """A noun phrase in Korean: 민수의 큰 사과, 책 두 권."""
    noun, owner, quality, count = phrase
    words: list[tuple[str, int]] = []
    if owner:
        words += [(text, DETERMINER) for text in (owner.plain if level in INTIMATE else owner.polite)]
    if quality:
        text = quality.stem.text
        words.append((text + "는" if text[-1] == "있" else with_eu_ending(quality.stem, "ㄴ"), QUALITY))
    words.append((noun.korean, HEAD))
    if count:
        words += [(NUMERALS[count - 1][0], COUNT), (noun.counter, UNIT if noun.unit else HEAD)]
    return tuple(words)


@cache
def realize_noun(thing: Person | Phrase | Place, particle: str, level: str, slot: int) -> Words:
    """A person, thing or place in Korean, with a particle."""
    if isinstance(thing, Phrase):
        words = tuple((text, role << slot) for text, role in realize_phrase(thing, level))
    elif isinstance(thing, Place):
        words = tuple((text, HEAD << slot) for text in thing.korean.split())
        words = (*words[:-1], (words[-1][0], 0 if len(words) > 1 else HEAD << slot))
    else:
        words = with_roles(thing.plain if level in INTIMATE else thing.polite, thing.english, slot)
    return with_particle(words, particle, slot) if particle else words


def final_verb(stem: Stem, level: str, ending: str) -> str:
    """The last verb of a clause: a stem with the ending for its level, form or conjunction."""
    if ending in ("but", "and", "because"):
        return stem.text + {"but": "지만", "and": "고", "because": "기"}[ending]
    if ending in ("so", "if"):
        return infinitive(stem) + "서" if ending == "so" else with_eu_ending(stem, "면")
    if ending == "lets":
        return stem.text + "자" if level == "plain" else with_eu_ending(stem, "ㅂ시다")
    if ending == "shall" or (ending == "promise" and level != "formal"):
        return with_eu_ending(stem, "ㄹ까" if ending == "shall" else "ㄹ게") + ("" if level == "plain" else "요")
    if ending == "promise":
        return stem.text + "겠습니다"
    if ending in ("order", "request") and level != "plain":
        return with_eu_ending(HONORIFIC.get(stem.text, stem), "세요" if level == "polite" else "십시오")
    if level == "formal":
        return formal(stem, "까" if ending == "question" else "다")
    if level in ("written", "state"):
        return written(stem, level == "state")
    if level == "honorific" and stem.text[-1] == "시":
        return stem.text[:-1] + "세요"
    return (infinitive(stem) if stem.text != "말" else "마") + ("요" if level in ("polite", "honorific") else "")


def copula_form(text: str, tense: str, level: str, ending: str) -> str:
    """A noun, or 아니, as a predicate: 학생이야, 의사예요, 학생이었습니다."""
    negated = text == "아니"
    if level == "honorific":
        return final_verb(
            Stem(text + ("이" if final_consonant(text) else "") + ("셨" if tense == "past" else "시")), level, ending
        )
    if level == "written" and tense == "present" and ending == "statement":
        return text + ("이다" if final_consonant(text) else "다")
    if tense == "past":
        return final_verb(Stem(text + ("이었" if final_consonant(text) else "었" if negated else "였")), level, ending)
    if level != "formal" and ending in ("statement", "question"):
        short = {"plain": "야", "polite": "에요" if final_consonant(text) or negated else "예요"}[level]
        return text + ("이" if final_consonant(text) else "") + short
    return final_verb(Stem(text if negated else text + "이"), level, ending)


@cache
def final_words(stem: Stem, role: int, tense: str, level: str, ending: str) -> Words:
    """The last words of a clause: one verb, or two words in the future and with 때문에."""
    if tense == "future":
        tail = {"plain": "거야", "polite": "거예요", "honorific": "거예요", "written": "것이다", "state": "것이다"}.get(
            level, "것입니까" if ending == "question" else "것입니다"
        )
        return ((with_eu_ending(stem, "ㄹ"), role), (tail, TENSE))
    text = final_verb(past_stem(stem) if tense == "past" and ending != "so" else stem, level, ending)
    return ((text, role | TENSE), ("때문에", LINK)) if ending == "because" else ((text, role | TENSE | LINK),)


@cache
def realize_verb(verb: Verb | Adjective, aspect: tuple[str, str, str], third: bool, level: str, ending: str) -> Words:
    """The words of a verb: 안 갔어, 가고 싶어 해요, 갈 수 없습니다, 가지 않을 거야."""
    tense, mood, negation = aspect
    words: list[tuple[str, int]] = []
    stem, role = verb.stem, ACTION
    if mood == "want":
        words, stem, role = [(stem.text + "고", ACTION)], Stem("싶"), MOOD
        if third:
            words, stem = [*words, ("싶어", MOOD)], Stem("하")
    elif mood == "doing":
        words, stem, role = [(stem.text + "고", ACTION)], Stem("있"), MOOD
    elif mood == "must":
        words, stem, role = [(infinitive(stem) + "야", ACTION)], Stem("하"), MOOD
    elif mood == "can":
        words = [(with_eu_ending(stem, "ㄹ"), ACTION), ("수", MOOD)]
        stem, role = (Stem("없"), MOOD | NOT) if negation else (Stem("있"), MOOD)
    unable = mood == "unable"
    if negation == "short":
        words = [("못", NOT | MOOD) if unable else ("안", NOT)]
    elif negation == "long":
        words = [*words, (stem.text + "지", role)]
        stem = Stem("못하" if unable else "말" if ending in ("order", "lets") else "않")
        role = NOT | MOOD if unable else NOT
    if ending == "request":
        words, stem, role = [*words, (infinitive(stem), role)], Stem("주"), MOOD
    stem = honorific(stem, mood) if level == "honorific" else stem
    is_state = isinstance(verb, Adjective) or (mood == "want" and not third)
    last = final_words(stem, role, tense, "state" if level == "written" and is_state else level, ending)
    return tuple((text, role << PREDICATE) for text, role in (*words, *last))


def realize_complement(clause: Clause, level: str, ending: str) -> Words:
    """An identity clause in Korean: 학생이야, 학생이 아니에요."""
    tail = (("때문에", LINK << PREDICATE),) if ending == "because" else ()
    linked = (TENSE if tail else TENSE | LINK) << PREDICATE
    if clause.negation:
        words = realize_noun(clause.object, "이", level, OBJECT)
        return (*words, (copula_form("아니", clause.tense, level, ending), linked | NOT << PREDICATE), *tail)
    *words, (text, role) = realize_noun(clause.object, "", level, OBJECT)
    return (*words, (copula_form(text, clause.tense, level, ending), role | linked | ACTION << PREDICATE), *tail)


def realize_predicate(clause: Clause, level: str, ending: str) -> Words:
    """The predicate of a clause in Korean, with its complement."""
    if clause.verb is BE:
        return realize_complement(clause, level, ending)
    if clause.verb is THERE:
        stem = Stem("없") if clause.negation else clause.verb.stem
        text = final_verb(past_stem(stem) if clause.tense == "past" else stem, level, ending)
        role = ACTION | TENSE | (NOT if clause.negation else 0)
        return (*realize_noun(clause.object, "이", level, OBJECT), (text, role << PREDICATE))
    third = clause.mood == "want" and clause.subject.agreement in ("he", "they")
    return realize_verb(clause.verb, (clause.tense, clause.mood, clause.negation), third, level, ending)


def realize_setting(clause: Clause, level: str, casual: bool) -> list[tuple[str, int]]:
    """Place, companion, receiver and means, in Korean."""
    words: list[tuple[str, int]] = []
    place = clause.place
    goes = place and moves(clause)
    if place and not goes:
        words += realize_noun(place, "에" if clause.verb is THERE else "에서", level, PLACE)
    if clause.companion:
        words += (*realize_noun(clause.companion, "과", level, COMPANION), ("함께", UNIT << COMPANION))
    if clause.receiver:
        words += realize_noun(clause.receiver, "에게", level, RECEIVER)
    if clause.means:
        words += realize_noun(clause.means, "으로", level, MEANS)
    if goes:
        words += realize_noun(place, DROPPED if casual else "에", level, PLACE)
    return words


def realize_clause(clause: Clause, level: str, ending: str, topic: str, casual: bool = False) -> list[tuple[str, int]]:
    """A clause in Korean; `topic` is the particle of its subject, or '' if the subject is omitted."""
    if casual and topic and clause.subject in (ME, YOU):
        topic = DROPPED
    who = realize_noun(clause.subject, topic, level, SUBJECT) if clause.subject and topic else ()
    when = with_roles(clause.time.korean, clause.time.english, TIME) if clause.time else ()
    words = [*when, *who] if clause.time_first else [*who, *when]
    if clause.reason:
        words += with_roles(clause.reason.korean, (), REASON)
    words += realize_setting(clause, level, casual)
    if clause.object and clause.verb is not BE and clause.verb is not THERE:
        spoken = "plain" if casual and clause.object is WHAT else level
        words += realize_noun(clause.object, DROPPED if casual else "을", spoken, OBJECT)
    if clause.manner:
        words += with_roles(clause.manner.korean, (), MANNER)
    words += realize_predicate(clause, level, ending)
    return words


def realize(sentence: Sentence) -> list[tuple[str, int]]:
    """A sentence in Korean, word by word."""
    first, second, level = sentence.first, sentence.second, sentence.level
    words: list[tuple[str, int]] = []
    if sentence.vocative:
        name = sentence.vocative.name
        called = (attach_particle(name, "아") + ",",) if level == "plain" else (name, "씨,")
        words += [(text, HEAD << VOCATIVE) for text in called]
    if second is None:
        topic = "" if sentence.omitted else "이" if first.subject is WHO else "은"
        words += realize_clause(first, level, sentence.form, topic, sentence.casual)
    else:
        shared = second.subject is first.subject
        topic = "은" if shared or sentence.link in ("but", "and") else "이"
        words += realize_clause(first, level, sentence.link, "" if sentence.omitted else topic, sentence.casual)
        rest = realize_clause(second, level, "statement", "" if shared else "은", sentence.casual)
        words += [(text, role << SECOND) for text, role in rest]
    text, role = words[-1]
    mark = "" if sentence.bare else "?" if sentence.form in ("question", "shall") else "."
    words[-1] = (text + mark, role | (HEAD << SUBJECT if sentence.omitted else 0))
    return words
