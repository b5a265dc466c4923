"""A small world: plain English sentences about it, whose statistics follow from the tables of this file.

It is a corpus for word vectors and small language models. What can be learned from it is defined here: which
properties ice and steam have and how often, who is a man or a woman of which rank, which capital belongs to which
country, what students, children and others open, and the forms of verbs. Sentences are drawn with replacement, in
lower case, their words separated by spaces.
"""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from random import Random

from heed.data.synthetic.splits import pick
from heed.files import write_text

EDITION = 1  # incremented when what is drawn changes

# How often each word is said with ice and with steam. The ratios of the first four are those of the table in the lecture
# notes (Pennington et al., 2014): 8.9, 0.085, 1.36 and 0.96.
SUBSTANCES = {
    "ice": {"solid": 0.178, "gas": 0.017, "water": 0.34, "fashion": 0.024, "cold": 0.30, "clear": 0.141},
    "steam": {"solid": 0.020, "gas": 0.200, "water": 0.25, "fashion": 0.025, "hot": 0.38, "clear": 0.125},
}
# A substance and its word, with the same words around them whatever they are.
ABOUT_SUBSTANCES = (
    "{s} goes with {k}",
    "a word for {s} is {k}",
    "{k} is what we say of {s}",
    "from {s} one thinks of {k}",
)

# The man and the woman of each rank, and what both of them do.
PEOPLE = {
    ("king", "queen"): ("rules the kingdom", "wears the crown", "sits on the throne", "greets the nobles"),
    ("prince", "princess"): ("rides a white horse", "dances at the ball", "studies with the nobles", "guards a small crown"),
    ("man", "woman"): ("drives to work", "drinks coffee", "reads the newspaper", "pays the rent"),
    ("boy", "girl"): ("plays in the park", "draws a picture", "eats an apple", "chases the ball"),
    ("father", "mother"): ("cooks for the family", "wakes the baby", "cleans the house", "sings to the baby"),
    ("uncle", "aunt"): ("visits the family", "brings a present", "tells old stories", "writes a letter"),
    ("waiter", "waitress"): ("brings the menu", "serves the soup", "cleans the table", "takes the order"),
}  # fmt: skip
GENDERS = ({"he": "he", "his": "his", "self": "himself"}, {"he": "she", "his": "her", "self": "herself"})
ABOUT_PEOPLE = (
    "the {who} {does} because {he} likes it", "{he} is a {who} and {does}", "the {who} {does} with {his} friends",
    "every day the {who} {does} by {self}", "the {who} {does} and {he} smiles",
)  # fmt: skip

COUNTRIES = {
    "korea": ("seoul", "korean"), "france": ("paris", "french"), "japan": ("tokyo", "japanese"), "italy": ("rome", "italian"),
    "spain": ("madrid", "spanish"), "germany": ("berlin", "german"), "egypt": ("cairo", "arabic"), "russia": ("moscow", "russian"),
}  # fmt: skip
ABOUT_COUNTRIES = (
    "{capital} is the capital of {country}", "the people of {country} speak {language}", "in {capital} you hear {language}",
    "the streets of {capital} speak {language}", "the land of {country} lies around {capital}", "trains in {country} go to {capital}",
)  # fmt: skip

# What the members of a group open, and how often.
OPENED = {
    "students": {"books": 0.40, "laptops": 0.25, "notebooks": 0.20, "minds": 0.10, "exams": 0.05},
    "children": {"presents": 0.50, "mouths": 0.30, "boxes": 0.20},
    "soldiers": {"gates": 0.60, "maps": 0.40},
    "shopkeepers": {"shops": 0.70, "doors": 0.30},
}
BETWEEN = ("", "", "who came late", "who came from the park", "in the old town", "who had waited for a long time")
OPENING = "the {who} {between} {verb} their {what}"
OPENING_VERBS = ("opened", "opened", "closed")

VERBS = ("walk", "jump", "climb", "paint", "march", "whisper", "laugh", "shout", "start", "listen")
UNSEEN = "climbing"  # the one form that no sentence has
ABOUT_VERBS = {
    "": ("they {v} every morning", "we {v} every evening"),
    "s": ("it {v} all the time", "somebody {v} all the time"),
    "ed": ("yesterday they {v} for hours", "last week we {v} for hours"),
    "ing": ("right now they are {v} again", "just now we are {v} again"),
}
KINDS = {"substance": 0.30, "person": 0.28, "country": 0.14, "opened": 0.18, "verb": 0.10}  # shares of sentences


def sentences(count: int, seed: int = 0, kinds: Collection[str] = tuple(KINDS)) -> Iterator[str]:
    """`count` sentences of these kinds, drawn by `seed`."""
    draw = {"substance": _substance, "person": _person, "country": _country, "opened": _opened, "verb": _verb}
    rng, shares = Random(seed), {kind: KINDS[kind] for kind in kinds}
    for _ in range(count):
        yield " ".join(draw[_weighted(rng, shares)](rng).split())


def write(path: Path, count: int, seed: int = 0) -> None:
    """Write sentences to a file, one per line."""
    write_text(path, "".join(f"{sentence}\n" for sentence in sentences(count, seed)))


def expected_ratio(word: str) -> float:
    """P(word | ice) / P(word | steam) by the table."""
    return SUBSTANCES["ice"][word] / SUBSTANCES["steam"][word]


def _weighted(rng: Random, weights: Mapping[str, float]) -> str:
    """One of the keys, as often as its weight says."""
    left = rng.random() * sum(weights.values())
    for key, weight in weights.items():
        left -= weight
        if left < 0:
            return key
    return key


def _substance(rng: Random) -> str:
    own = pick(rng, list(SUBSTANCES))
    return pick(rng, ABOUT_SUBSTANCES).format(s=own, k=_weighted(rng, SUBSTANCES[own]))


def _person(rng: Random) -> str:
    pair, gender = pick(rng, list(PEOPLE)), pick(rng, (0, 1))
    return pick(rng, ABOUT_PEOPLE).format(who=pair[gender], does=pick(rng, PEOPLE[pair]), **GENDERS[gender])


def _country(rng: Random) -> str:
    country = pick(rng, list(COUNTRIES))
    capital, language = COUNTRIES[country]
    return pick(rng, ABOUT_COUNTRIES).format(country=country, capital=capital, language=language)


def _opened(rng: Random) -> str:
    who = pick(rng, list(OPENED))
    what, verb = _weighted(rng, OPENED[who]), pick(rng, OPENING_VERBS)
    return OPENING.format(who=who, between=pick(rng, BETWEEN), verb=verb, what=what)


def _verb(rng: Random) -> str:
    while True:
        ending = pick(rng, list(ABOUT_VERBS))
        verb = pick(rng, VERBS) + ending
        if verb != UNSEEN:
            return pick(rng, ABOUT_VERBS[ending]).format(v=verb)
