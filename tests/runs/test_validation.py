"""Validation beside its definitions: losses sentence by sentence, scores of the texts that are found, texts that are too long."""

import pytest
import sacrebleu
import torch
import torch.nn.functional as F

from heed.data.readers import Line
from heed.decoding.config import DecodingConfig
from heed.models.transformer import Transformer, TransformerConfig
from heed.products.classifier import Classifier
from heed.products.translator.translator import Translator
from heed.tasks.text_losses import LabelLoss
from heed.tasks.text_understanding import UnderstandingValidation
from heed.tasks.translation import TranslationValidation
from heed.tasks.validation import sample_rows, short_enough
from heed.vocabularies.sentencepiece import SubwordsConfig, learn
from tests import fixed_pairs
from tests.convert.small import classifier, pairs

SEARCH = DecodingConfig(beam=1, max_length=6)


@pytest.fixture(scope="module")
def lines():
    pairs = list(fixed_pairs.pairs("train", 30))
    long = [Line(" ".join(p.source for p in pairs[:3]), " ".join(p.target for p in pairs[:3]), "long")]
    return [*long, *(Line(pair.source, pair.target, str(i)) for i, pair in enumerate(pairs))]


@pytest.fixture(scope="module")
def own(lines):
    return learn([text for line in lines for text in line[:2]], SubwordsConfig(), 500)


@pytest.fixture(scope="module")
def model(own):
    torch.manual_seed(1)
    made = Transformer(TransformerConfig(len(own), dim=8, heads=2, hidden=8, max_length=20, dropout=0.3))
    for weight in made.parameters():
        torch.nn.init.normal_(weight, std=0.2)
    return made.eval()


def validation(lines, own, budget=100):
    return TranslationValidation(lines, (own, own), search=SEARCH, max_source=None, budget=budget, samples=3)


def test_texts_that_are_too_long_do_not_count(lines, own, model):
    all_of_them, short = (validation(some, own) for some in (lines, lines[1:]))
    assert all_of_them.too_long(20) == 1 + short.too_long(20)
    assert all_of_them.loss(model) == short.loss(model)
    assert all_of_them.alignment_rows(model) == short.alignment_rows(model)


@pytest.mark.parametrize("budget", [1, 100, 10_000])
def test_the_loss_is_that_of_a_token_sentence_by_sentence(lines, own, model, budget):
    total, tokens = 0.0, 0
    for source, target, *_ in lines:
        source, target = own.encode([source, target])
        if max(len(source), len(target)) + 1 <= model.config.max_length:  # with the end token
            expected = torch.tensor([*target, own.special.last])
            with torch.no_grad():
                logits = model(
                    torch.tensor([[*source, own.special.last]]), torch.tensor([[own.special.first, *target]])
                )
            total, tokens = total + F.cross_entropy(logits[0], expected, reduction="sum").item(), tokens + len(expected)
    assert validation(lines, own, budget).loss(model) == pytest.approx(total / tokens, rel=1e-5)


def test_the_scores_are_those_of_what_a_translator_says(lines, own, model):
    lines = lines[:7]
    found = validation(lines, own).run(model)
    translator = Translator([model], (own, own), decoding=SEARCH)
    said = [translator.translate([line.source])[0].text for line in lines]
    references = [line.target for line in lines]
    assert [output for _, _, output in found.outputs] == said
    assert found.outputs == list(zip((line.source for line in lines), references, said, strict=True))
    assert found.samples == [found.outputs[row] for row in (0, 3, 6)]
    assert found.scores["bleu"] == sacrebleu.corpus_bleu(said, [references], force=True).score
    assert found.scores["chrf"] == pytest.approx(sacrebleu.corpus_chrf(said, [references]).score)
    assert found.scores.keys() == {"loss", "bleu", "chrf", "rouge"}


def test_a_long_text_of_a_classifier_is_cut_and_counts():
    package = classifier()
    text, labels = package.processors["text"], package.processors["labels"]
    texts = [*(source for source, _ in pairs()[:5]), " ".join(source for source, _ in pairs()[:60])]
    names = [labels.names[i % 3] for i in range(len(texts))]
    made = UnderstandingValidation(
        [Line(one, name, str(i)) for i, (one, name) in enumerate(zip(texts, names, strict=True))],
        labels,
        lambda model: Classifier(model, text, labels.names),
        LabelLoss(),
        text,
        budget=300,
        samples=2,
    )
    found = made.run(package.model)
    assert made.too_long(package.model.config.max_length) == 1
    room, right, losses = package.model.config.max_length - len(text.special.before) - 1, 0, []
    assert len(text.encode(texts)[-1]) > room, "the last one is too long"
    for ids, name in zip(text.encode(texts), names, strict=True):
        logits = package.model.classify_text(torch.tensor([[*text.special.before, *ids[:room], text.special.last]]))[0]
        losses.append(-logits.log_softmax(0)[labels.names.index(name)].item())
        right += labels.names[int(logits.argmax())] == name
    assert found.scores["loss"] == pytest.approx(sum(losses) / len(texts), rel=1e-5)
    assert found.scores["accuracy"] == pytest.approx(100 * right / len(texts))
    assert [(shown[0], shown[1]) for shown in found.samples] == [(texts[0], names[0]), (texts[-1], names[-1])]


def test_which_texts_fit_and_which_are_shown():
    texts = [([1] * 3, [1] * 2), ([1] * 2, [1] * 4), ([1], [1])]
    assert short_enough(texts, 4) == [texts[0], texts[2]]
    assert short_enough([], 4) == []
    with pytest.raises(
        ValueError, match="all 2 validation texts are longer than the model's 3 positions: use shorter ones"
    ):
        short_enough(texts[:2], 3)
    assert [sample_rows(*sizes) for sizes in ((10, 4), (2, 4), (5, 1), (5, 0))] == [[0, 3, 6, 9], [0, 1], [0], []]
