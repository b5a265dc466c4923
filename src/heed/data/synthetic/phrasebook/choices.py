"""Selectional restrictions: which nouns, places and manners fit a verb, which times fit a tense, who acts on whom.

An option that is in a list several times is drawn more often.
"""

from heed.data.synthetic.phrasebook import lexicon
from heed.data.synthetic.phrasebook.lexicon import HE, ME, SHE, THEY, WE, YOU
from heed.data.synthetic.phrasebook.parts_of_speech import Adverb, Person

NAMED, UNNAMED = lexicon.FRIENDS, lexicon.PEOPLE
SUBJECTS = [*[ME] * 6, YOU, *[WE] * 3, *[HE, SHE, THEY] * 2, *NAMED, *UNNAMED]
QUESTION_SUBJECTS = [*[YOU] * 12, HE, SHE, THEY, *NAMED, *UNNAMED]
PARTNERS = [*[ME, YOU] * 6, WE, HE, SHE, THEY, *NAMED, *UNNAMED]
THIS, THAT = Person(("이",), ("이",), ("this",), ()), Person(("그",), ("그",), ("that",), ())
OWNERS = [
    *[THIS, THAT] * 4,
    *[Person(("내",), ("제",), ("my",), ()), Person(("네",), ("당신의",), ("your",), ())] * 3,
    *[Person(("그의",), ("그의",), ("his",), ()), Person(("그녀의",), ("그녀의",), ("her",), ())] * 2,
    *[Person((one.plain[0] + "의",), (one.name, "씨의"), (one.english[0] + "'s",), (), name=one.name) for one in NAMED],
]
ADJECTIVES = {noun: [q for q in lexicon.ADJECTIVES if {*q.kinds} & {*noun.kinds}] for noun in lexicon.NOUNS}
ADJECTIVES |= {job: [q for q in lexicon.ADJECTIVES if q.english in ("kind", "famous", "smart")] for job in lexicon.JOBS}
OBJECTS = {verb: [noun for noun in lexicon.NOUNS if {*verb.objects} & {*noun.kinds}] for verb in lexicon.VERBS}
PLACES = {verb: [place for place in lexicon.PLACES if {*place.kinds} & {*verb.where}] for verb in lexicon.VERBS}
PLACES |= {verb: [place for place in lexicon.PLACES if place.to] for verb in lexicon.VERBS if "moves" in verb.traits}
MEANS = {verb: [means for means in lexicon.MEANS if {*means.kinds} & {*verb.traits}] for verb in lexicon.VERBS}
SLOTS = {
    verb: [
        *["place"] * bool(PLACES[verb] and "moves" not in verb.traits),
        *["means"] * bool(MEANS[verb]),
        *["manner"] * bool(verb.manners),
        *["companion"] * (not {"feels", "receiver", "solo"} & {*verb.traits}),
    ]
    for verb in lexicon.VERBS
}
NOUNS_AT = {spot: [noun for noun in lexicon.NOUNS if {*spot.kinds} & {*noun.kinds}] for spot in lexicon.SPOTS}
TIMES = {
    fit: [time for time, fits in lexicon.TIMES if fit in fits] for fit in ("usual", "now", "soon", "future", "past")
}
TIMES["future"] += TIMES["soon"]
ALWAYS = next(time for time in TIMES["usual"] if time.english == ("always",))
ACTION_VERBS = [verb for verb in lexicon.VERBS if "action" in verb.traits]
FEELING_VERBS = [verb for verb in lexicon.VERBS if "feels" in verb.traits]
VERBS = {"statement": ACTION_VERBS + FEELING_VERBS * 3, "question": ACTION_VERBS + FEELING_VERBS * 2}
VERBS |= {"order": ACTION_VERBS, "lets": ACTION_VERBS, "shall": ACTION_VERBS, "promise": ACTION_VERBS}
VERBS["request"] = [verb for verb in ACTION_VERBS if "receiver" not in verb.traits]  # 보여주세요 is an order
_STATES = ("busy", "happy", "tired", "sick", "hungry", "lonely", "sad")
TEMPORARY_STATES = [q for q in lexicon.ADJECTIVES if q.english in _STATES]
PERSON_ADJECTIVES = [q for q in lexicon.ADJECTIVES if "person" in q.kinds]
DEGREES = [lexicon.MANNERS[korean] for korean in ("아주", "정말", "너무")]
PERSON_DEGREES = [*DEGREES[:2], Adverb(("너무",), ("so",), before_verb=True)]
DESCRIBABLE_NOUNS = [noun for noun in lexicon.NOUNS if ADJECTIVES[noun]]
NAMED_PLACES = [place for place in lexicon.PLACES if place.english]
PLACE_ADJECTIVES = {place: [q for q in lexicon.ADJECTIVES if {*q.kinds} & {*place.kinds}] for place in NAMED_PLACES}

# An aspect is (tense, mood, negated).
FACTUAL_ASPECTS = [
    *[("past", "plain", False)] * 4, *[("future", "plain", False)] * 3, ("past", "plain", True), ("future", "plain", True),
    ("present", "can", False), ("past", "can", False), ("present", "can", True),
]  # fmt: skip
ASPECTS = [
    *FACTUAL_ASPECTS, *[("present", "plain", False)] * 3, *[("present", "plain", True)] * 2, ("past", "unable", True),
    ("present", "unable", True), ("past", "can", True), *[("present", "doing", False)] * 2, ("past", "doing", False),
    ("present", "doing", True), *[("present", "must", False)] * 2, ("past", "must", False), *[("present", "want", False)] * 2, ("past", "want", False), ("present", "want", True),
]  # fmt: skip
QUESTION_ASPECTS = [
    *[("past", "plain", False)] * 3, *[("future", "plain", False)] * 2, *[("present", "plain", False)] * 2,
    ("present", "doing", False), ("present", "want", False), ("present", "can", False), ("present", "must", False),
]  # fmt: skip
FEELING_ASPECTS = [*[("present", "plain", False)] * 4, ("present", "plain", True), ("past", "plain", True)]
FEELING_ASPECTS += [("past", "plain", False), ("future", "plain", False)]
FEELING_QUESTION_ASPECTS = [aspect for aspect in FEELING_ASPECTS if not aspect[2]]
ORDER_ASPECTS = [*[("present", "plain", False)] * 3, ("present", "plain", True)]
# A clause before 'and' is not negated: 가지 않고 would mean 'instead of going'.
FIRST_CLAUSE_ASPECTS = {
    (link, tense): [one for one in ASPECTS if one[0] == tense and not (one[2] and link == "and")]
    for link in ("but", "and", "because")
    for tense in ("present", "past")
}
