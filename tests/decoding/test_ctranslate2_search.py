"""Heed's search by the rules of CTranslate2: the same translations, n-best and scores.

CTranslate2 computes in float32: scores are the same to 1e-4.
"""

import ctranslate2
import pytest
from ctranslate2.converters.transformers import MarianMTLoader

from heed.decoding import limits
from heed.decoding.beam import beam_search
from heed.decoding.ranking import length_power, stop_exact, stop_first
from heed.decoding.sample import stepwise_search
from tests.decoding.marian import LAST, LONGEST, PAD, UNKNOWN, marian, searched, sources

TEXTS, SOURCE = sources(200)
WORDS = ["</s>", "<unk>", *(f"w{i}" for i in range(2, PAD))]  # without padding, as CTranslate2 has Marian's words
ENDING = 1.5


@pytest.fixture(scope="module")
def model():
    return marian(ENDING)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """The same model in CTranslate2, by its own converter."""
    spec = MarianMTLoader().get_model_spec(marian(ENDING).float())
    spec.register_source_vocabulary(WORDS)
    spec.register_target_vocabulary(WORDS)
    spec.config.eos_token = spec.config.bos_token = spec.config.decoder_start_token = "</s>"
    spec.validate()
    spec.optimize()
    folder = tmp_path_factory.mktemp("ctranslate2")
    spec.save(str(folder))
    return ctranslate2.Translator(str(folder), compute_type="float32", inter_threads=1, intra_threads=1)


def translated(theirs, nbest, **options):
    texts = [[WORDS[i] for i in text] for text in TEXTS]
    options = {"max_decoding_length": LONGEST, "num_hypotheses": nbest, "return_scores": True} | options
    return [
        [([WORDS.index(word) for word in words], score) for words, score in zip(r.hypotheses, r.scores, strict=True)]
        for r in theirs.translate_batch(texts, return_end_token=True, **options)
    ]


def ours(model, nbest, length_penalty, stop=stop_first, rules=(), least=1):
    """At least one word, and what may not be said is left out before probabilities are taken."""
    rules = [limits.BanTokens([PAD]), limits.min_length(least, LAST), *rules]
    options = {"beams": 4, "nbest": nbest, "alpha": length_penalty, "penalty": length_power, "stop": stop}
    return searched(beam_search, model, SOURCE, rules=rules, renormalize=True, **options)


def same(found, expected):
    for own, other in zip(found, expected, strict=True):
        assert [tokens for tokens, _ in own] == [tokens for tokens, _ in other]
        assert [score for _, score in own] == pytest.approx([score for _, score in other], abs=1e-4)


@pytest.mark.parametrize("length_penalty", [0.6, 1.0, 2.0])
def test_beams_are_those_of_ctranslate2(model, theirs, length_penalty):
    found = ours(model, 4, length_penalty)
    assert len({len(tokens) for own in found for tokens, _ in own}) > 8
    same(found, translated(theirs, 4, beam_size=4, length_penalty=length_penalty))


def test_without_a_length_penalty_the_best_is_that_of_ctranslate2(model, theirs):
    """It stops then when the best candidate of all ends, and nothing better can come."""
    same(ours(model, 1, 0.0, stop=stop_exact), translated(theirs, 1, beam_size=4, length_penalty=0.0))


LIMITS = {
    "disable_unk": (True, {"rules": [limits.BanTokens([UNKNOWN])]}),
    "min_decoding_length": (5, {"least": 5}),
    "no_repeat_ngram_size": (2, {"rules": [limits.no_repeat_ngram(2)]}),
    "suppress_sequences": ([["w3"], ["w30"]], {"rules": [limits.BanTokens([3, 30])]}),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits_are_those_of_ctranslate2(model, theirs, name):
    value, options = LIMITS[name]
    same(ours(model, 4, 1.0, **options), translated(theirs, 4, beam_size=4, **{name: value}))


def test_greedy_search_is_that_of_ctranslate2(model, theirs):
    rules = [limits.BanTokens([PAD]), limits.min_length(1, LAST)]
    found = searched(stepwise_search, model, SOURCE, rules=rules, renormalize=True, alpha=1.0, penalty=length_power)
    same(found, translated(theirs, 1, beam_size=1, length_penalty=1.0))
