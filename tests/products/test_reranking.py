"""Reranking by minimum Bayes risk in a translator."""

import pytest

from heed.decoding.config import DecodingConfig
from heed.evaluation.mbr import mbr_order

MBR = {"rerank": "mbr", "candidates": 5, "max_length": 12}


def pool(translator, text, kind):
    """The candidates, found by searches of their own."""
    beam = translator.translate(text, beam=5, nbest=5, max_length=12).nbest
    samples = translator.translate(text, sample=True, nbest=5, max_length=12).nbest
    return {"beam": beam, "samples": samples, "both": [*beam, *samples]}[kind]


@pytest.mark.parametrize("kind", ["beam", "samples", "both"])
@pytest.mark.parametrize("utility", ["chrf", "bleu"])
def test_the_candidates_are_those_of_the_searches_in_the_order_of_their_utility(translator, texts, kind, utility):
    for text in texts[:3]:
        candidates = pool(translator, text, kind)
        order = mbr_order([one.text for one in candidates], [one.score for one in candidates], utility)
        found = translator.translate(text, **MBR, candidates_from=kind, utility=utility, nbest=3)
        assert [(one.text, one.score) for one in found.nbest] == [
            (candidates[number].text, candidates[number].score) for number in order[:3]
        ]
        assert found.text == found.nbest[0].text


def test_the_same_seed_gives_the_same_and_batches_do_not_matter(translator, texts):
    options = {**MBR, "candidates_from": "samples"}
    one = [found.text for found in translator.translate(texts, **options, seed=7)]
    assert one == [found.text for found in translator.translate(texts, **options, seed=7, batch_tokens=20)]
    assert one != [found.text for found in translator.translate(texts, **options, seed=8)]


def test_terms_go_with_the_beam_and_not_with_samples(translator):
    text, glossary = "나는 책을 읽어요.", {"책": "milk"}
    assert not translator.translate(text, **MBR, glossary=glossary).missing
    with pytest.raises(ValueError, match='candidates_from is "both", but glossary terms'):
        translator.translate(text, **MBR, candidates_from="both", glossary=glossary)


def test_a_look_shows_the_search_itself(translator, texts):
    assert (
        translator.look(texts[0], rerank="mbr", max_length=12).target_text
        == translator.translate(texts[0], max_length=12).text
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"candidates": 1}, "candidates is 1; it must be at least 2, and at most 1,000"),
        ({"candidates": 4, "nbest": 5}, "candidates is 4; it must be at least 5, as many as nbest, and at most 1,000"),
        ({"sample": True}, 'rerank is "mbr" and sample is true: set candidates_from to "samples" instead of sample'),
    ],
)
def test_what_does_not_go_together_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        DecodingConfig(rerank="mbr", **settings)


def test_more_than_the_beam_are_ranked():
    assert DecodingConfig(rerank="mbr", beam=2, nbest=8).nbest == 8
