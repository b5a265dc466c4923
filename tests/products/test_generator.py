"""Text that goes on: by chance and without, the same each time, as it comes and whole."""

import math
from dataclasses import replace

import pytest
import torch

from heed.models.rnn_lm import RNNLanguageModel, RNNLanguageModelConfig
from heed.products.generator import Generator
from heed.vocabularies import sentencepiece, words
from heed.vocabularies.sentencepiece import SubwordsConfig

LINES = ["the cat sat on the mat , it was warm", "a dog saw the cat", "세 마리 고양이"]


def build(vocabulary) -> Generator:
    torch.manual_seed(0)
    model = RNNLanguageModel(RNNLanguageModelConfig(vocab_size=len(vocabulary), dim=6, hidden=6)).double()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, 0.6)
    return Generator(model, vocabulary)


@pytest.fixture(scope="module")
def generator():
    return build(words.learn(LINES, SubwordsConfig(kind="words", least=1)))


@pytest.fixture(scope="module")
def of_subwords():
    return build(sentencepiece.learn(LINES * 3, SubwordsConfig(), 330))


def test_the_same_seed_gives_the_same_text_and_another_another(generator):
    texts = [generator.generate("the cat", length=20, seed=seed)[0].text for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


def test_texts_drawn_together_are_those_drawn_alone(generator):
    many = generator.generate("the cat", length=12, count=4, seed=3)
    alone = generator.generate("the cat", length=12, seed=3)[0]
    assert replace(many[0], token_scores=[]) == replace(alone, token_scores=[])
    assert many[0].token_scores == pytest.approx(alone.token_scores, abs=1e-12)  # a batch may round otherwise
    assert len({one.text for one in many}) > 1


@pytest.mark.parametrize("how", [{"seed": 5}, {"sample": False}, {"seed": 2, "top_k": 3, "one_line": True}])
@pytest.mark.parametrize("prompt", ["the cat", "", "the cat\n", "a dog\nsaw"])
def test_as_it_comes_it_is_what_it_is_whole(generator, of_subwords, how, prompt):
    for one in (generator, of_subwords):
        assert "".join(one.stream(prompt, length=15, **how)) == one.generate(prompt, length=15, **how)[0].text


def test_the_likeliest_is_that_of_a_plain_loop(generator):
    ids = generator.encode("the cat")
    for _ in range(8):
        logits = generator.model(torch.tensor([[3, *ids]]))[0, -1]
        logits[[0, 1, 2]] = -torch.inf
        ids.append(int(logits.argmax()))
    found = generator.generate("the cat", length=8, sample=False)[0]
    assert found.tokens == generator.vocabulary.pieces(ids[2:])
    assert generator.generate("the cat", length=8, beam=1, sample=False)[0] == found


def test_a_beam_finds_nothing_worse_than_the_likeliest(generator):
    greedy = generator.generate("the", length=6, sample=False)[0]
    found = generator.generate("the", length=6, beam=8, count=3)
    assert found[0].score >= greedy.score
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


def test_the_unknown_word_and_special_tokens_are_never_generated_and_a_line_may_end(generator):
    said = " ".join(one.text for one in generator.generate("", length=60, count=5))
    assert "<" not in said
    assert "\n" in said
    lines = [one.text for one in generator.generate("", length=60, count=5, one_line=True)]
    assert all("\n" not in line.removesuffix("\n") for line in lines)


def test_scores_are_those_of_the_tokens_after_their_prompt(generator):
    one = generator.generate("the", length=5, seed=4)[0]
    logp = generator.model(torch.tensor([[3, *generator.encode("the" + one.text)]]))[0].log_softmax(dim=-1)
    ids = generator.encode("the" + one.text)
    assert one.token_scores == pytest.approx([logp[i, ids[i]].item() for i in range(1, 6)], abs=1e-10)
    assert one.score == pytest.approx(sum(one.token_scores))


def test_lines_are_scored_each_by_itself_whatever_stands_beside_them(generator):
    together = generator.score([*LINES, ""])
    for line, one in zip([*LINES, ""], together, strict=True):
        ids = [*generator.vocabulary.encode([line])[0], 3]
        logp = generator.model(torch.tensor([[3, *ids]]))[0].log_softmax(dim=-1)
        plain = [logp[i, token].item() for i, token in enumerate(ids)]
        assert one.token_scores == pytest.approx(plain, abs=1e-10)
        assert one.logp == pytest.approx(sum(plain))
        assert one.tokens[-1] == "</s>"


def test_a_look_tells_bits_ranks_and_what_was_likelier(generator):
    found = generator.look("the cat sat", likely=3)
    scores = generator.score(["the cat sat"])[0].token_scores[:-1]
    assert [place.bits for place in found.places[:-1]] == pytest.approx([-s / math.log(2) for s in scores])
    assert found.places[-1].token is None
    for place in found.places:
        assert [p for _, p in place.likely] == sorted((p for _, p in place.likely), reverse=True)
        assert (place.rank == 1) == (place.token == place.likely[0][0])


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda g: g.generate("zebra quagga"), "the model knows no word of 'zebra quagga'"),
        (lambda g: g.generate("the", length=0), "length is 0"),
        (lambda g: g.generate("the", count=2, sample=False), "count is 2, but greedy search gives only one"),
        (lambda g: g.generate("the", temperature=0.0), "temperature is 0.0; it must be above 0"),
        (lambda g: g.generate("the", warmth=1.0), "warmth: no such setting"),
        (lambda g: list(g.stream("the", beam=3)), "beam search cannot stream"),
        (lambda g: g.look(""), "the text is empty"),
    ],
)
def test_what_cannot_be_done_is_said(generator, call, error):
    with pytest.raises(ValueError, match=error):
        call(generator)


def test_unknown_words_of_a_prompt_are_told(generator, of_subwords):
    assert generator.unknown("the zebra sat") == ["zebra"]
    assert of_subwords.unknown("the zebra sat") == []
