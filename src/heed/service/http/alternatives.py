"""Other words at one place of a translation, each with the sentence as it goes on from there."""

import dataclasses
import math
from typing import Any, NamedTuple

from torch import Tensor

from heed.decoding.ranking import PENALTIES
from heed.decoding.steps import Hypothesis
from heed.products.translator import attention_trace, lazy_scores
from heed.products.translator.alignment import words_of
from heed.products.translator.term_tokens import RequiredTerms
from heed.products.translator.translator import Translator
from heed.text.glossary import Glossary

OPENS = ("▁", "Ġ", " ")  # what pieces that begin a word begin with
NO_TERMS = Glossary()
MORE = 3  # times as many beginnings are tried as words are wanted: some are of one word
MOST_WRITTEN = 4_000  # subwords of a sentence, times the beginnings that are gone on from: a model has one worker


class Other(NamedTuple):
    """A word, how likely it is there, and the sentence with it; `score` is the sentence's."""

    word: str
    probability: float
    text: str
    score: float
    current: bool


def alternatives(
    translator: Translator, text: str, translation: str, word: int, count: int, terms: Glossary = NO_TERMS
) -> dict[str, Any]:
    """The likeliest words at a place; "" is that the sentence ends there. Sentences that go on say the terms."""
    words = translation.split()
    if not 0 <= word <= len(words):
        raise ValueError(f"word is {word}; the translation has {len(words)} words, counted from 0")
    prefix, current = " ".join(words[:word]), words[word] if word < len(words) else ""
    text = translator.source.clean(text)
    source, target = translator.encode_pairs([text], [translation])[0]
    if not source:
        raise ValueError("the text has no words")
    _check_cost(max(len(source), len(target)), count)
    before = translator.target.encode([prefix])[0] if prefix else []
    chances = _next(translator, source, before)
    starts = [[*before, token] for token in _beginnings(translator, chances, before, MORE * count)]
    others: dict[str, Other] = {}
    wanted = translator.term_encoder.required([text], terms, translator.decoding)[0]
    for said, scores in _decoded(translator, source, starts, wanted):
        whole = " ".join(translator.target.decode(said.tokens).split())
        own = whole.split()
        if own[:word] != words[:word] or len(own) <= word:
            continue
        chance = math.exp(sum(scores[len(before) : _last(translator, said.tokens, len(before))]))
        if own[word] not in others or others[own[word]].probability < chance:
            others[own[word]] = Other(own[word], chance, whole, said.score, False)
    ends = float(chances[translator.marks[1].last])
    if not current or (word and ends > 0.01):
        others[""] = Other("", ends, prefix, math.log(max(ends, 1e-30)), not current)
    if current:
        others[current] = _current(translator, source, target, word, (current, " ".join(words)))
    best = sorted(others.values(), key=lambda one: -one.probability)
    kept = best[:count] + [one for one in best[count:] if one.current]
    return {"prefix": prefix, "word": current, "alternatives": [one._asdict() for one in kept]}


def _check_cost(length: int, count: int) -> None:
    """Refuse what would keep others waiting: each beginning is gone on from to the end of the sentence."""
    if length > (most := MOST_WRITTEN // (MORE * count)):
        raise ValueError(
            f"the sentence has {length} subwords; where count is {count}, one of at most {most} is gone on from"
        )


def _current(translator: Translator, source: list[int], target: list[int], word: int, shown: tuple[str, str]) -> Other:
    """The word that stands there, with the sentence as it is."""
    free = len(translator.marks[1].before)
    scores = translator.bundle.token_logprobs([(source, target)])[0][free:]
    own = [
        score
        for score, number in zip(scores, words_of(translator.target.pieces(target)), strict=False)
        if number == word
    ]
    config = translator.decoding
    whole = sum(scores) / PENALTIES[config.penalty](len(scores), config.length_penalty)
    return Other(shown[0], math.exp(sum(own)), shown[1], float(whole), True)


def _next(translator: Translator, source: list[int], before: list[int]) -> Tensor:
    """The probabilities of each token after what was said."""
    marks = translator.marks
    logp = attention_trace.trace_pair(translator.model, (source, before), marks).logp
    return logp[len(marks[1].before) + len(before)].exp()


def _beginnings(translator: Translator, chances: Tensor, before: list[int], count: int) -> list[int]:
    """The likeliest tokens that go on with a new word."""
    tokens = chances.topk(min(chances.shape[-1], 4 * count)).indices.tolist()
    own = translator.marks[1]
    marks = {own.pad, own.unknown, own.first, own.last, *own.before, *own.never}
    pieces = translator.target.pieces(tokens)
    new = [
        t for t, piece in zip(tokens, pieces, strict=True) if t not in marks and (not before or piece.startswith(OPENS))
    ]
    return new[:count]


def _decoded(
    translator: Translator, source: list[int], starts: list[list[int]], wanted: RequiredTerms
) -> list[tuple[Hypothesis, list[float]]]:
    """The best sentence for each beginning, with the log probability of each token."""
    if not starts:
        return []
    config = dataclasses.replace(
        translator.decoding, nbest=1, beam=min(2, translator.decoding.beam), sample=False, renormalize=False
    )
    sources = [source] * len(starts)
    found = translator.search_ids(sources, config, starts, required=[wanted] * len(starts))
    scores = lazy_scores.token_scores(translator.bundle, sources, found, 4096)
    free = len(translator.marks[1].before)
    each = []
    for own, score in zip(found, scores, strict=True):
        values = score[0]() if callable(score[0]) else score[0]
        skip = free if tuple(own[0].tokens[:free]) == translator.marks[1].before else 0
        each.append((own[0]._replace(tokens=own[0].tokens[skip:]), list(values)[skip:]))
    return each


def _last(translator: Translator, tokens: list[int], start: int) -> int:
    """Where the word that begins at a token ends."""
    pieces = translator.target.pieces(tokens)
    for place in range(start + 1, len(tokens)):
        if pieces[place].startswith(OPENS) or tokens[place] == translator.marks[1].last:
            return place
    return len(tokens)
