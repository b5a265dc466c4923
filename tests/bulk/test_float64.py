"""In float64 the bulk path finds what a loop of one text at a time finds: chunks, sorted batches and overlap change nothing.

Tokens are compared exactly. Scores are compared to 1e-10: matrix products of other shapes may round their last bits differently.
"""

from functools import partial

import pytest

from heed.bulk.staged import Stages, chunks, run
from heed.loading import load
from heed.products.generator import Generator
from heed.products.text_stages import Generation
from heed.products.translator import stages
from heed.text.glossary import Glossary
from tests.convert.small import pairs
from tests.helpers import language_package

TEXTS = [source for source, _ in pairs()[:11]]
PROMPTS = ["the dog", "a", "she never finds the street", "the", "who sees", "red house", "dog"]


@pytest.fixture(scope="module")
def translator(translator_folder):
    found = load(translator_folder, "cpu", "torch")
    found.model.double()
    return found


def in_bulk(texts, size, *three):
    """What comes out of three overlapping stages, in order."""
    found = []
    run(chunks(texts, size), Stages(*three), lambda chunk, own: found.extend(own))
    return found


@pytest.mark.parametrize("search", [{"beam": 1}, {"beam": 4, "nbest": 3, "length_penalty": 1.0}], ids=str)
def test_translations_tokens_and_scores(translator, search):
    config = translator.search_config(search)
    ids = [translator.source.encode([translator.source.clean(text)])[0] for text in TEXTS]
    alone = [translator.bundle.search([own], config)[0] for own in ids]
    assert len({len(own) for own in ids}) > 3  # so that sorting moves something
    for size in (4, len(TEXTS)):
        found = in_bulk(
            TEXTS,
            size,
            lambda chunk: stages.prepare(translator, chunk.items, config, Glossary(), batch_tokens=60),
            partial(stages.search, translator),
            partial(stages.finish, translator),
        )
        for own, plain in zip(found, alone, strict=True):
            assert own.ids == plain[0].tokens
            assert own.text == " ".join(translator.target.decode(plain[0].tokens).split())
            assert [one.tokens for one in own.nbest] == [translator.target.pieces(one.tokens) for one in plain]
            assert [one.score for one in own.nbest] == pytest.approx([one.score for one in plain], rel=1e-10)
            for one, other in zip(own.nbest, plain, strict=True):
                assert list(one.token_scores) == pytest.approx(other.scores, rel=1e-10)


@pytest.mark.parametrize("search", [{"seed": 3, "top_p": 0.9}, {"sample": False}, {"beam": 3}], ids=str)
def test_texts_of_a_language_model(search):
    own = language_package("gpt2")
    model = Generator(own.model.double(), own.processors["text"])
    count = 1 if search.get("sample") is False else 2
    generation = Generation(model, batch_tokens=40, length=6, count=count, **search)
    found = in_bulk(PROMPTS, 3, lambda chunk: generation.prepare(chunk.items), generation.search, generation.finish)
    for prompt, each in zip(PROMPTS, found, strict=True):
        plain = model.generate(prompt, length=6, count=count, **search)
        assert [(one.text, one.tokens) for one in each] == [(one.text, one.tokens) for one in plain]
        assert [one.score for one in each] == pytest.approx([one.score for one in plain], rel=1e-10)
