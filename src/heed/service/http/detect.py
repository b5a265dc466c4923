"""Which language a text is in, among those that are served: by script, by common words, by runs of three letters.

Languages that are not served are weighed too where they are known: a text in one of them is not surely in any of those that are.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import NamedTuple

from heed.service.http.profiles import WORDS
from heed.text.languages import SCRIPTS, base_code, script, scripts

READ = 600  # characters: more make no difference, and who asks waits
CARE = 2.0  # letters of a word are no independent witnesses: their weight is divided by this
FOREIGN, BORROWED = -3.0, -0.7  # a letter of another script; a Latin one, as other scripts borrow names
HAN = {"zh": 0.0, "ja": -0.3, "ko": -1.5}  # Chinese signs, which three languages write
ALPHABET = 60  # letters that a word may be made of, about
RARE = 0.6  # how often letters that were never seen together are taken to have been
NEVER = -math.log(ALPHABET)  # after two that were never seen, each is as likely
MOST_KNOWN = 1 << 12  # words that are remembered: the same ones come again and again
_WORD = re.compile(r"[^\W\d_]+")
_NOISE = re.compile(r"https?://\S+|\S+@\S+|\{[^{}]*\}|<[^<>]*>|%\w")


class Detected(NamedTuple):
    language: str
    confidence: float


def detect(text: str, served: Iterable[str]) -> list[Detected]:
    """The languages served, the likeliest first. Confidences sum to one together with those of languages that are not."""
    served = list(dict.fromkeys(served))
    words = _WORD.findall(_NOISE.sub(" ", text[:READ]).lower())
    letters = Counter()
    for char, times in Counter("".join(words)).items():
        letters[script(char)] += times
    latin = Counter(word for word in words if script(word[0]) == "latin")
    known = {base_code(code) for code in served}
    others = [code for code in {**WORDS, **SCRIPTS} if code not in known]
    scores = {code: _score(base_code(code), latin, letters) for code in [*served, *others]}
    if not words:
        return [Detected(code, 1 / len(served)) for code in served]
    best = max(scores.values())
    shares = {code: math.exp(score - best) for code, score in scores.items()}
    total = sum(shares.values()) + math.exp(-3 - 0.15 * sum(letters.values())) + 0.002  # the doubt that is left
    found = [Detected(code, shares[code] / total) for code in served]
    return sorted(found, key=lambda one: -one.confidence)


def _score(code: str, latin: Counter, letters: Counter) -> float:
    own = scripts(code)
    score = 0.0
    for name, count in letters.items():
        if name == "han" and "han" in own:
            score += HAN.get(code, 0.0) * count
        elif name == "latin" and "latin" not in own:
            score += BORROWED * count
        elif name not in own:
            score += FOREIGN * count
    if "latin" in own:
        score += sum(times * (_word(code, word) - _word("", word)) for word, times in latin.items()) / CARE
    return score


class Profile(NamedTuple):
    """How common words are; the log probabilities of a letter after two others, and of one that was never seen after these two."""

    common: dict[str, float]
    seen: dict[str, float]
    unseen: dict[str, float]


@cache
def _profile(code: str) -> Profile:
    words = list(dict.fromkeys(WORDS.get(code, "").split()))
    weights = [1 / (rank + 8) for rank in range(len(words))]
    common = {word: 0.5 * weight / sum(weights) for word, weight in zip(words, weights, strict=True)}
    triples: Counter = Counter()
    pairs: Counter = Counter()
    for word in words:
        marked = f"  {word} "
        for place in range(len(marked) - 2):
            triples[marked[place : place + 3]] += 1
            pairs[marked[place : place + 2]] += 1
    seen = {own: math.log((times + RARE) / (pairs[own[:2]] + RARE * ALPHABET)) for own, times in triples.items()}
    return Profile(common, seen, {own: math.log(RARE / (times + RARE * ALPHABET)) for own, times in pairs.items()})


@lru_cache(MOST_KNOWN)
def _word(code: str, word: str) -> float:
    """The log probability of a word: as a common one, or spelled letter by letter."""
    common, seen, unseen = _profile(code)
    spelled, marked = 0.0, f"  {word[:30]} "
    for place in range(len(marked) - 2):
        three = marked[place : place + 3]
        spelled += seen[three] if three in seen else unseen.get(three[:2], NEVER)
    return math.log(common.get(word, 0.0) + 0.5 * math.exp(max(spelled, -600.0)))
