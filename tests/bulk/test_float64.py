"""In float64 the bulk path finds what a loop of one text at a time finds: chunks, sorted batches and overlap change nothing.

Tokens are compared exactly. Scores are compared to 1e-10: matrix products of other shapes may round their last bits differently.
"""

import threading
from functools import partial

import pytest

from heed.data.staged import Stages, chunks, run
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


@pytest.mark.parametrize(
    "options",
    [{"beam": 4, "nbest": 2}, {"beam": 1, "too_long": "refuse"}, {"prefix": "the"}, {"sample": True, "seed": 5}],
    ids=str,
)
def test_a_long_list_is_translated_in_chunks_whose_stages_overlap(translator, monkeypatch, options):
    """A sample depends on the number of its text in the list, which is not that in a chunk."""
    plain, used = stages.prepare, []
    whole = translator.translate(TEXTS, **options)

    def prepare(translator, texts, *of, **more):
        used.append((len(texts), threading.current_thread() is threading.main_thread()))
        return plain(translator, texts, *of, **more)

    monkeypatch.setattr(stages, "prepare", prepare)
    monkeypatch.setattr(stages, "CHUNK", 4)
    found = translator.translate(TEXTS, **options)
    assert used == ([(11, True)] if "sample" in options else [(4, False), (4, False), (3, False)])
    assert [[own.source, own.text, own.ids] for own in found] == [[own.source, own.text, own.ids] for own in whole]
    for own, other in zip(found, whole, strict=True):
        assert [one.tokens for one in own.nbest] == [one.tokens for one in other.nbest]
        assert own.score == pytest.approx(other.score, rel=1e-10)


def test_errors_count_the_texts_of_the_whole_list(translator, monkeypatch):
    monkeypatch.setattr(stages, "CHUNK", 4)
    with pytest.raises(ValueError, match=r"^text 7 has \d+ subwords, and the model reads at most"):
        translator.translate([*TEXTS[:6], " ".join(TEXTS * 9), *TEXTS], too_long="refuse")
    found = translator.translate(TEXTS, prefix=[""] * len(TEXTS))  # one for each text: not in chunks
    assert [own.text for own in found] == [own.text for own in translator.translate(TEXTS)]
    with pytest.raises(ValueError, match="2 prefixes for 11 texts"):
        translator.translate(TEXTS, prefix=["a", "b"])


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
