"""Language identification among the served languages: by py3langid, and by script, common words and letter trigrams.
Common words work better for one or two words, py3langid for sentences; their log probabilities are added (`python -m
bench.language_id` measures it). Without py3langid only words are used. Known languages that are not served compete
too, so that a text in one of them is not attributed to a served one with confidence.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import NamedTuple

from heed.service.http.profiles import WORDS
from heed.text import language_id
from heed.text.language_codes import base
from heed.text.languages import SCRIPTS, script, scripts

MAX_CHARACTERS = 600  # more make no difference, and the client waits
TEMPERATURE = 2.0  # the letters of a word are not independent evidence: their log-probabilities are divided by this
LIBRARY_WEIGHT = 4.0  # of py3langid's log-probabilities, which it divides by the root of the length
OTHER_SCRIPT, LATIN_LETTER = -3.0, -0.7  # for a letter of a foreign script; Latin costs less, since others borrow names
HAN = {"zh": 0.0, "ja": -0.3, "ko": -1.5}  # for a Chinese character, which three languages use
UNKNOWN = LIBRARY_WEIGHT * math.log(0.02)  # for a served language that py3langid does not know
SURE, UNLIKELY = 0.6, 0.1  # of another language at least, and of every served one at most
ALPHABET_SIZE = 60  # letters that a word may be made of, about
PSEUDO_COUNT = 0.6  # of every trigram (additive smoothing)
UNSEEN_CONTEXT = -math.log(ALPHABET_SIZE)  # after two letters that never occur together, all are equally likely
WORD_CACHE_SIZE = 1 << 12  # the same words come again and again
_WORD = re.compile(r"[^\W\d_]+")
_NOISE = re.compile(r"https?://\S+|\S+@\S+|\{[^{}]*\}|<[^<>]*>|%\w")


class Detection(NamedTuple):
    language: str
    confidence: float


def detect(text: str, served: Iterable[str]) -> list[Detection]:
    """The served languages, most likely first. Their confidences and those of other languages sum to one."""
    served = list(dict.fromkeys(served))
    shares = _shares(text, served)
    return sorted((Detection(code, shares[code]) for code in served), key=lambda one: -one.confidence)


def other_language(text: str, served: Iterable[str]) -> Detection | None:
    """The language of a text that is certainly in none of the served ones; None if it may be."""
    served = list(dict.fromkeys(served))
    shares = _shares(text, served)
    code = max(shares, key=shares.get, default=None)
    if code is None or code in served or shares[code] < SURE or max(shares[own] for own in served) > UNLIKELY:
        return None
    return Detection(code, shares[code])


def _shares(text: str, served: list[str]) -> dict[str, float]:
    """The probability of each language, the served ones first; without words, of those only."""
    text = _NOISE.sub(" ", text[:MAX_CHARACTERS])
    words = _WORD.findall(text.lower())
    if not words:
        return {code: 1 / len(served) for code in served}
    script_counts = Counter()
    for char, times in Counter("".join(words)).items():
        script_counts[script(char)] += times
    latin_words = Counter(word for word in words if script(word[0]) == "latin")
    served_bases = {base(code) for code in served}
    library = _library_scores(text, served)
    others = [code for code in {**WORDS, **SCRIPTS, **library} if code not in served_bases]
    scores = {code: _score(code, latin_words, script_counts) for code in [*served, *others]}
    if library:
        scores = {code: score + library.get(language_id.known(code), UNKNOWN) for code, score in scores.items()}
    best = max(scores.values())
    shares = {code: math.exp(score - best) for code, score in scores.items()}
    doubt = math.exp(-3 - 0.15 * sum(script_counts.values()))  # less, the longer the text is
    total = sum(shares.values()) + doubt + 0.002
    return {code: share / total for code, share in shares.items()}


def warm_up() -> None:
    """Load py3langid's model, which takes a second, before the first request."""
    _library_scores("text", ["en"])


def _library_scores(text: str, served: list[str]) -> dict[str, float]:
    """The weighted log probabilities of py3langid by language; empty if it is not installed."""
    if not language_id.available():
        return {}
    shares = language_id.probabilities(text, served)
    shares.pop(language_id.NOT_A_LANGUAGE, None)
    return {code: LIBRARY_WEIGHT * math.log(max(share, 1e-12)) for code, share in shares.items()}


def _score(code: str, latin_words: Counter, script_counts: Counter) -> float:
    """The log-likelihood of a text in a language, up to a constant."""
    own_scripts, code = scripts(code), base(code)
    score = 0.0
    for name, count in script_counts.items():
        if name == "han" and "han" in own_scripts:
            score += HAN.get(code, 0.0) * count
        elif name == "latin" and "latin" not in own_scripts:
            score += LATIN_LETTER * count
        elif name not in own_scripts:
            score += OTHER_SCRIPT * count
    if code in WORDS:
        ratios = (times * (_word_logp(code, word) - _word_logp("", word)) for word, times in latin_words.items())
        score += sum(ratios) / TEMPERATURE
    return score


class Profile(NamedTuple):
    """Probabilities of common words; log probabilities of trigrams given two letters, and of an unseen letter after
    these.
    """

    words: dict[str, float]
    trigrams: dict[str, float]
    unseen: dict[str, float]


@cache
def _profile(code: str) -> Profile:
    words = list(dict.fromkeys(WORDS.get(code, "").split()))
    weights = [1 / (rank + 8) for rank in range(len(words))]
    word_probs = {word: 0.5 * weight / sum(weights) for word, weight in zip(words, weights, strict=True)}
    trigrams: Counter = Counter()
    bigrams: Counter = Counter()
    for word in words:
        for trigram in _trigrams(word):
            trigrams[trigram] += 1
            bigrams[trigram[:2]] += 1
    totals = {bigram: times + PSEUDO_COUNT * ALPHABET_SIZE for bigram, times in bigrams.items()}
    seen = {own: math.log((times + PSEUDO_COUNT) / totals[own[:2]]) for own, times in trigrams.items()}
    return Profile(word_probs, seen, {own: math.log(PSEUDO_COUNT / total) for own, total in totals.items()})


@lru_cache(WORD_CACHE_SIZE)
def _word_logp(code: str, word: str) -> float:
    """The log probability of a word: half as a common word, half as a sequence of letters."""
    word_probs, trigrams, unseen = _profile(code)
    spelled = 0.0
    for trigram in _trigrams(word[:30]):
        spelled += trigrams[trigram] if trigram in trigrams else unseen.get(trigram[:2], UNSEEN_CONTEXT)
    return math.log(word_probs.get(word, 0.0) + 0.5 * math.exp(max(spelled, -600.0)))


def _trigrams(word: str) -> list[str]:
    padded = f"  {word} "
    return [padded[i : i + 3] for i in range(len(padded) - 2)]
