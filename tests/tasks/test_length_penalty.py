"""The length penalty of a finished model is chosen on validation sentences."""

import dataclasses
from types import SimpleNamespace

import pytest
import torch

from heed.data.readers import Line
from heed.decoding.config import DecodingConfig
from heed.decoding.hypothesis import Hypothesis
from heed.models.transformer import Transformer, TransformerConfig
from heed.products.translator.model_bundle import ModelBundle
from heed.runs.recipe import parse
from heed.tasks import length_penalty
from heed.tasks.length_penalty import choose, hypotheses, rank
from heed.tasks.translation import DirectionsValidation, TranslationValidation
from heed.vocabularies.sentencepiece import SubwordsConfig, learn

TEXTS = [(f"{a} {b} cat .", f"{b} {a} Katze .") for a in ("one", "two", "three") for b in ("red", "blue", "old")]


@pytest.fixture(scope="module")
def vocabulary():
    return learn([text for pair in TEXTS for text in pair], SubwordsConfig(), 300)


@pytest.fixture(scope="module")
def model(vocabulary):
    torch.manual_seed(3)
    made = Transformer(TransformerConfig(len(vocabulary), dim=8, heads=2, hidden=8, max_length=20)).eval()
    with torch.no_grad():
        tokens = next(weight for weight in made.parameters() if len(weight) == len(vocabulary))
        tokens[vocabulary.special.last].mul_(4.0)  # an end that is likely early, so that lengths compete
    return made


@pytest.mark.parametrize("penalty", ["wu", "length"])
def test_ranking_the_hypotheses_anew_is_searching_anew(model, vocabulary, penalty):
    """With all sequences of up to two tokens in the beam, both are exact."""
    size = len(vocabulary) + 1
    wide = DecodingConfig(beam=size, nbest=size, penalty=penalty, max_length=2, force_end=True)
    pair, few = (vocabulary, vocabulary), TEXTS[:4]
    found, references = hypotheses(model, pair, few, wide, 4096)
    assert references == [target for _, target in few]
    bundle, lengths = ModelBundle([model], pair), set()
    for alpha in (0.0, 4.0):
        search = dataclasses.replace(wide, nbest=1, length_penalty=alpha)
        again = bundle.search(vocabulary.encode([source for source, _ in few]), search)
        for own, (other, *_) in zip(found, again, strict=True):
            assert rank(own, wide, alpha).tokens == other.tokens
            lengths.add((alpha, len(other.tokens)))
    assert {(0.0, 1), (4.0, 2)} <= lengths, "the penalty matters here"


def chosen(monkeypatch, vocabulary, share, worse="", **search):
    """What is chosen between the reference and its first `share`, which is likelier; the whole wins from a penalty of 1 on.

    A search with another penalty than the given one finds `worse` instead.
    """
    reference = "one red cat . two old Katze . three blue cat . one old Katze ."
    ids, other = vocabulary.encode([reference, worse])
    given = DecodingConfig(**{"length_penalty": 1.0, "penalty": "length", **search})

    def search_for(model, pair, texts, config, tokens, engines):
        both = [(ids[: round(share * len(ids))], -10.0), (ids, -13.0)]
        found = [Hypothesis(own, logp / len(own) ** config.length_penalty, None) for own, logp in both]
        best = [Hypothesis(other, -1.0, None)] if worse else [rank(found, config, config.length_penalty)]
        return [found if config.nbest > 1 else best] * 4, [reference] * 4

    monkeypatch.setattr(length_penalty, "hypotheses", search_for)
    return choose(torch.nn.Identity(), [((vocabulary, vocabulary), [("a", "b")] * 4)], given, 100, 100)


def test_the_penalty_that_scores_best_is_taken(monkeypatch, vocabulary):
    found = chosen(monkeypatch, vocabulary, 0.75, length_penalty=0.6)
    assert found.alpha == 1.0, "the smallest change that gains"
    assert found.describe() == (
        f"Length penalty set to 1: on 4 validation sentences with a beam, BLEU 100.00; {found.scores[0.6]:.2f} with 0.6."
    )


def test_a_penalty_must_keep_what_the_ranking_promises(monkeypatch, vocabulary):
    """A search of its own may find what is longer and worse."""
    found = chosen(monkeypatch, vocabulary, 0.75, worse="cat cat cat cat cat cat", length_penalty=0.6)
    assert found.alpha == 0.6 and found.scores[1.0] > found.scores[0.6] + 1


def test_without_a_clear_gain_it_stays(monkeypatch, vocabulary):
    found = chosen(monkeypatch, vocabulary, 1.0)
    assert found.alpha == found.before == 1.0
    assert "kept at 1: on 4 validation sentences with a beam, none of 0.6 to 1.4 is clearly better" in found.describe()


def test_a_greedy_search_has_nothing_to_choose(monkeypatch, vocabulary):
    assert chosen(monkeypatch, vocabulary, 0.75, beam=1) is None


@pytest.mark.parametrize("several", [False, True])
def test_it_is_chosen_on_the_validation_pairs_of_every_direction(several, vocabulary, monkeypatch):
    recipe = parse({"data": {"source": ["a"], "target": ["b"]}, "task": {"tune_length_penalty": 7}})
    pair, given = (vocabulary, vocabulary), []

    def validation(rows):
        lines = [Line(*row, "here") for row in rows]
        return TranslationValidation(lines, pair, search=DecodingConfig(), max_source=None, budget=99, samples=0)

    def choose(model, sets, search, sentences, batch_tokens, engines):
        given.append(([(own, list(texts)) for own, texts in sets], sentences))
        return SimpleNamespace(alpha=0.3, describe=lambda: "told")

    monkeypatch.setattr(length_penalty, "choose", choose)
    one, other = TEXTS[:4], TEXTS[4:6]
    own = DirectionsValidation({"a": validation(one), "b": validation(other)}) if several else validation(one)
    found, told = recipe.task.final_search(recipe, torch.nn.Identity(), own)
    assert given == [([(pair, one), (pair, other)] if several else [(pair, one)], 7)]
    assert found == dataclasses.replace(recipe.decoding, length_penalty=0.3) and told == "told"


@pytest.mark.parametrize(
    ("seconds", "each", "sentences"),
    [(1000.0, 0.1, 200), (40.1, 0.1, 192), (12.1, 0.1, 52), (11.0, 0.1, 0), (1.0, 0.1, 0), (0.0, 0.0, 0)],
)
def test_in_little_time_fewer_sentences_are_searched(monkeypatch, vocabulary, seconds, each, sentences):
    """Sixteen are timed, in all directions together; then each may be searched twice. Fewer than fifty say nothing."""
    now, asked = [0.0], []

    def search_for(model, pair, texts, config, *rest):
        asked.append((len(texts), config.nbest))
        now[0] += each * len(texts)

    monkeypatch.setattr(length_penalty, "hypotheses", search_for)
    sets = [((vocabulary, vocabulary), TEXTS * 100)] * 2
    given = torch.nn.Identity(), sets, DecodingConfig(beam=5), 200, 4096, None
    assert length_penalty.affordable(*given, seconds, clock=lambda: now[0]) == sentences
    assert asked == ([(8, 5)] * 2 if seconds else [])


def test_without_time_the_penalty_stays_what_it_was(monkeypatch, model, vocabulary):
    lines = [Line(source, target, "") for source, target in TEXTS]
    recipe = parse({"data": {"source": ["a"], "target": ["b"]}, "task": {"tune_length_penalty": 8}})
    search = dataclasses.replace(recipe.decoding, max_length=8)
    recipe = dataclasses.replace(recipe, decoding=search)
    options = {"search": search, "max_source": 20, "budget": 500, "samples": 0}
    validation = TranslationValidation(lines, (vocabulary, vocabulary), **options)
    found, said = recipe.task.final_search(recipe, model, validation, 0.0)
    assert found is None and said == "Length penalty kept at 0.6: no time is left for tuning it."
    found, said = recipe.task.final_search(recipe, model, validation, 1e6)
    assert (found, said) == recipe.task.final_search(recipe, model, validation) and "on 8 validation sentences" in said
