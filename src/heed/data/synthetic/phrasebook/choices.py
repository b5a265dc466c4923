"""What goes with what: who speaks to whom, which things fit a verb, which times fit a tense.

A choice that stands more than once in a list is drawn more often.
"""

from heed.data.synthetic.phrasebook import lexicon
from heed.data.synthetic.phrasebook.lexicon import HE, ME, SHE, THEY, WE, YOU
from heed.data.synthetic.phrasebook.words import Person

NAMED, OTHERS = lexicon.FRIENDS, lexicon.PEOPLE
SPEAKERS = [*[ME] * 6, YOU, *[WE] * 3, *[HE, SHE, THEY] * 2, *NAMED, *OTHERS]
ASKED = [*[YOU] * 12, HE, SHE, THEY, *NAMED, *OTHERS]
PARTNERS = [*[ME, YOU] * 6, WE, HE, SHE, THEY, *NAMED, *OTHERS]
THIS, THAT = Person(("이",), ("이",), ("this",), ()), Person(("그",), ("그",), ("that",), ())
OWNERS = [
    *[THIS, THAT] * 4,
    *[Person(("내",), ("제",), ("my",), ()), Person(("네",), ("당신의",), ("your",), ())] * 3,
    *[Person(("그의",), ("그의",), ("his",), ()), Person(("그녀의",), ("그녀의",), ("her",), ())] * 2,
    *[Person((one.plain[0] + "의",), (one.name, "씨의"), (one.english[0] + "'s",), (), name=one.name) for one in NAMED],
]
FITTING = {noun: [q for q in lexicon.QUALITIES if {*q.kinds} & {*noun.kinds}] for noun in lexicon.THINGS}
FITTING |= {job: [q for q in lexicon.QUALITIES if q.english in ("kind", "famous", "smart")] for job in lexicon.WORK}
OBJECTS = {verb: [noun for noun in lexicon.THINGS if {*verb.objects} & {*noun.kinds}] for verb in lexicon.ACTIONS}
PLACES = {verb: [site for site in lexicon.SITES if {*site.kinds} & {*verb.where}] for verb in lexicon.ACTIONS}
PLACES |= {verb: [site for site in lexicon.SITES if site.to] for verb in lexicon.ACTIONS if "moves" in verb.traits}
TOOLS = {verb: [tool for tool in lexicon.TOOLS if {*tool.kinds} & {*verb.traits}] for verb in lexicon.ACTIONS}
SLOTS = {
    verb: [
        *["place"] * bool(PLACES[verb] and "moves" not in verb.traits),
        *["means"] * bool(TOOLS[verb]),
        *["manner"] * bool(verb.manners),
        *["companion"] * (not {"feels", "receiver", "solo"} & {*verb.traits}),
    ]
    for verb in lexicon.ACTIONS
}
LAID = {spot: [noun for noun in lexicon.THINGS if {*spot.kinds} & {*noun.kinds}] for spot in lexicon.CORNERS}
TIMES = {
    fit: [time for time, fits in lexicon.SEASONS if fit in fits] for fit in ("usual", "now", "soon", "future", "past")
}
TIMES["future"] += TIMES["soon"]
ALWAYS = next(time for time in TIMES["usual"] if time.english == ("always",))
DEEDS = [verb for verb in lexicon.ACTIONS if "action" in verb.traits]
FEELS = [verb for verb in lexicon.ACTIONS if "feels" in verb.traits]
VERBS = {"statement": DEEDS + FEELS * 3, "question": DEEDS + FEELS * 2, "order": DEEDS, "lets": DEEDS}
PASSING = [q for q in lexicon.QUALITIES if q.english in ("busy", "happy", "tired", "sick", "hungry", "lonely", "sad")]
TRAITS = [q for q in lexicon.QUALITIES if "person" in q.kinds]
DEGREES = [lexicon.WAYS[korean] for korean in ("아주", "정말", "너무")]
DESCRIBED = [noun for noun in lexicon.THINGS if FITTING[noun]]
SIGHTS = {site: [q for q in lexicon.QUALITIES if {*q.kinds} & {*site.kinds}] for site in lexicon.SITES if site.english}

# tense, mood, denied
FACTS = [*[("past", "plain", False)] * 4, *[("future", "plain", False)] * 3, ("past", "plain", True)]
FACTS += [("future", "plain", True), ("present", "can", False), ("past", "can", False), ("present", "can", True)]
EVENTS = [
    *FACTS,
    *[("present", "plain", False)] * 3,
    *[("present", "plain", True)] * 2,
    ("past", "unable", True),
    ("present", "unable", True),
    ("past", "can", True),
    *[("present", "doing", False)] * 2,
    ("past", "doing", False),
    ("present", "doing", True),
    *[("present", "want", False)] * 2,
    ("past", "want", False),
    ("present", "want", True),
]
QUERIES = [*[("past", "plain", False)] * 3, *[("future", "plain", False)] * 2, *[("present", "plain", False)] * 2]
QUERIES += [("present", "doing", False), ("present", "want", False), ("present", "can", False)]
FEELINGS = [*[("present", "plain", False)] * 4, ("present", "plain", True), ("past", "plain", True)]
FEELINGS += [("past", "plain", False), ("future", "plain", False)]
ASKED_FEELINGS = [how for how in FEELINGS if not how[2]]
ORDERS = [*[("present", "plain", False)] * 3, ("present", "plain", True)]
# what may come before 'and' is not denied: 가지 않고 would mean 'instead of going'
BEFORE = {
    (link, tense): [how for how in EVENTS if how[0] == tense and not (how[2] and link == "and")]
    for link in ("but", "and", "because")
    for tense in ("present", "past")
}
