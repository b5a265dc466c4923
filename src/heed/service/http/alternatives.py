"""Alternatives for one word of a translation, each with the sentence completed from there."""

import dataclasses
import math
from typing import Any, NamedTuple

from torch import Tensor

from heed.decoding.hypothesis import Hypothesis
from heed.decoding.ranking import PENALTIES
from heed.products.translator import attention_trace, lazy_scores
from heed.products.translator.alignment import words_of
from heed.products.translator.term_tokens import RequiredTerms
from heed.products.translator.translator import Translator
from heed.text.glossary import Glossary

WORD_STARTS = ("▁", "Ġ", " ")  # how a piece begins that begins a word
NO_TERMS = Glossary()
CANDIDATES = 3  # first tokens tried for each alternative asked for: several may lead to the same word
MAX_DECODED = 4_000  # subwords of the sentence times first tokens: a model has only one worker for everyone


class Alternative(NamedTuple):
    """A word with its probability, and the whole sentence with that word and its score."""

    word: str
    probability: float
    text: str
    score: float
    current: bool


def alternatives(
    translator: Translator, text: str, translation: str, word: int, count: int, terms: Glossary = NO_TERMS
) -> dict[str, Any]:
    """The most likely words at a position; "" means that the sentence ends there. Completed sentences contain the
    terms.
    """
    words = translation.split()
    if not 0 <= word <= len(words):
        raise ValueError(f"word is {word}; the translation has {len(words)} words, counted from 0")
    prefix, current = " ".join(words[:word]), words[word] if word < len(words) else ""
    text = translator.source.clean(text)
    source, target = translator.encode_pairs([text], [translation])[0]
    if not source:
        raise ValueError("the text has no words")
    _check_cost(max(len(source), len(target)), count)
    prefix_ids = translator.target.encode([prefix])[0] if prefix else []
    probs = _next_token_probs(translator, source, prefix_ids)
    starts = [[*prefix_ids, token] for token in _first_tokens(translator, probs, prefix_ids, CANDIDATES * count)]
    found: dict[str, Alternative] = {}
    wanted = translator.term_encoder.required([text], terms, translator.decoding)[0]
    for hypothesis, scores in _decode(translator, source, starts, wanted):
        sentence = " ".join(translator.target.decode(hypothesis.tokens).split())
        new_words = sentence.split()
        if new_words[:word] != words[:word] or len(new_words) <= word:
            continue
        new = new_words[word]
        end = _word_end(translator, hypothesis.tokens, len(prefix_ids))
        probability = math.exp(sum(scores[len(prefix_ids) : end]))
        if new not in found or found[new].probability < probability:
            found[new] = Alternative(new, probability, sentence, hypothesis.score, False)
    end_prob = float(probs[translator.special[1].last])
    if not current or (word and end_prob > 0.01):
        found[""] = Alternative("", end_prob, prefix, math.log(max(end_prob, 1e-30)), not current)
    if current:
        found[current] = _current(translator, source, target, word, (current, " ".join(words)))
    best = sorted(found.values(), key=lambda one: -one.probability)
    shown = best[:count] + [one for one in best[count:] if one.current]
    return {"prefix": prefix, "word": current, "alternatives": [one._asdict() for one in shown]}


def _check_cost(length: int, count: int) -> None:
    """Refuse requests that would block others: every first token is decoded to the end of the sentence."""
    if length > (most := MAX_DECODED // (CANDIDATES * count)):
        allowed = f"with a count of {count}, at most {most} are allowed"
        raise ValueError(f"the sentence has {length} subwords; {allowed}")


def _current(
    translator: Translator, source: list[int], target: list[int], word: int, shown: tuple[str, str]
) -> Alternative:
    """The word of the translation itself, with its sentence, as given."""
    forced = len(translator.special[1].before)
    scores = translator.bundle.token_logprobs([(source, target)])[0][forced:]
    numbers = words_of(translator.target.pieces(target))
    word_scores = [score for score, number in zip(scores, numbers, strict=False) if number == word]
    config = translator.decoding
    sentence_score = sum(scores) / PENALTIES[config.penalty](len(scores), config.length_penalty)
    return Alternative(shown[0], math.exp(sum(word_scores)), shown[1], float(sentence_score), True)


def _next_token_probs(translator: Translator, source: list[int], prefix: list[int]) -> Tensor:
    special = translator.special
    logp = attention_trace.trace_pair(translator.model, (source, prefix), special).logp
    return logp[len(special[1].before) + len(prefix)].exp()


def _first_tokens(translator: Translator, probs: Tensor, prefix: list[int], count: int) -> list[int]:
    """The most likely tokens that begin a new word."""
    tokens = probs.topk(min(probs.shape[-1], 4 * count)).indices.tolist()
    own = translator.special[1]
    special = {own.pad, own.unknown, own.first, own.last, *own.before, *own.never}
    pieces = translator.target.pieces(tokens)
    both = zip(tokens, pieces, strict=True)
    return [t for t, piece in both if t not in special and (not prefix or piece.startswith(WORD_STARTS))][:count]


def _decode(
    translator: Translator, source: list[int], starts: list[list[int]], wanted: RequiredTerms
) -> list[tuple[Hypothesis, list[float]]]:
    """The best hypothesis for each prefix, with the log probability of each token; without special tokens before it."""
    if not starts:
        return []
    beam = min(2, translator.decoding.beam)
    config = dataclasses.replace(
        translator.decoding, nbest=1, beam=beam, sample=False, renormalize=False, rerank="none"
    )
    sources = [source] * len(starts)
    found = translator.search_ids(sources, config, starts, required=[wanted] * len(starts))
    scores = lazy_scores.token_scores(translator.bundle, sources, found, 4096)
    before = translator.special[1].before
    decoded = []
    for (best, *_), own in zip(found, scores, strict=True):
        score = own[0] if own else best.scores
        values = score() if callable(score) else score
        skip = len(before) if tuple(best.tokens[: len(before)]) == before else 0
        decoded.append((best._replace(tokens=best.tokens[skip:]), list(values)[skip:]))
    return decoded


def _word_end(translator: Translator, tokens: list[int], start: int) -> int:
    """The position after the last token of the word that begins at `start`."""
    pieces = translator.target.pieces(tokens)
    for position in range(start + 1, len(tokens)):
        if pieces[position].startswith(WORD_STARTS) or tokens[position] == translator.special[1].last:
            return position
    return len(tokens)
