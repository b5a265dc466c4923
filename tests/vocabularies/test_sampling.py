"""Random segmentations of words: the cache does not change them."""

import math
import pickle
import zlib
from random import Random

import numpy as np
import pytest

from heed.vocabularies import sampling
from heed.vocabularies.sampling import DRAWS, Sampler, sentencepiece_sampler
from heed.vocabularies.sentencepiece import SubwordsConfig, learn

ODD = ["한국어", "🙂", "a", "aaaaaaaaaaaa", "<s>", "x" * 40, "Straße,", "\U0010ffff"]


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def vocabulary(request, pairs):
    return learn([text for pair in pairs for text in pair], SubwordsConfig(kind=request.param), 350)


@pytest.fixture(scope="module")
def words(pairs):
    return sorted({word for pair in pairs for text in pair for word in text.split()}) + ODD


def reference_bpe_dropout(score, word, amount, rng):
    """BPE-dropout by definition: every pair is checked in every step."""
    pieces = list(word)
    while True:
        best, place = -math.inf, -1
        for i in range(len(pieces) - 1):
            rank = score.get(pieces[i] + pieces[i + 1])
            if rank is not None and rank > best and rng.random() >= amount:
                best, place = rank, i
        if place < 0:
            return pieces
        pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]


@pytest.mark.parametrize("amount", [0.0, 0.1, 0.5])
def test_a_segmentation_follows_the_definition(learned, words, amount):
    one = sentencepiece_sampler(learned, amount)
    draws = np.random.default_rng(0).integers(0, DRAWS, len(words))
    for word, number, found in zip(words, draws.tolist(), one.segment(words, draws), strict=True):
        pieces = reference_bpe_dropout(
            one.score, f"▁{word}", amount, Random(zlib.crc32(word.encode()) * DRAWS + number)
        )
        expected = [[one.ids[p]] if p in one.ids else [one.bytes[b] for b in p.encode()] for p in pieces]
        assert found.tolist() == [i for own in expected for i in own]


def segmentations(one, words, seed):
    return [ids.tolist() for ids in one.segment(words, np.random.default_rng(seed).integers(0, DRAWS, len(words)))]


def test_the_cache_does_not_matter(vocabulary, words, monkeypatch):
    twice = [*words, *reversed(words)]
    expected = [segmentations(sentencepiece_sampler(vocabulary, 0.3), twice, seed) for seed in range(20)]
    cached = sentencepiece_sampler(vocabulary, 0.3)
    assert [segmentations(cached, twice, seed) for seed in range(20)] == expected
    assert len(cached.numbers) == len(set(words))
    assert [segmentations(cached, twice, seed) for seed in range(20)] == expected
    for limit, most in (("MAX_CACHED_WORDS", 10), ("MAX_CACHED_IDS", 1000)):
        bounded = sentencepiece_sampler(vocabulary, 0.3)
        with monkeypatch.context() as change:
            change.setattr(sampling, limit, most)
            assert [segmentations(bounded, twice, seed) for seed in range(20)] == expected
        assert bounded.used < cached.used


def test_another_process_starts_with_an_empty_cache(vocabulary, words):
    one = sentencepiece_sampler(vocabulary, 0.3)
    expected = segmentations(one, words, 1)
    other = pickle.loads(pickle.dumps(one))
    assert (len(other.numbers), len(other.cached)) == (0, 0)
    assert segmentations(other, words, 1) == expected


def test_a_vocabulary_samples_as_its_sampler_does(vocabulary, pairs):
    texts = [text for pair in pairs[:30] for text in pair]
    assert vocabulary.sample(texts, 0.3, seed=4) == sentencepiece_sampler(vocabulary, 0.3).encode(texts, 4)


def test_no_words_are_no_ids():
    assert len(Sampler({"a": 9}, {"a": -1.0}, range(256), 0.1).segment([], np.zeros(0, dtype=np.int64))) == 0
    assert Sampler({"a": 9}, {"a": -1.0}, range(256), 0.1).encode(["", " "], 1) == [[], []]
