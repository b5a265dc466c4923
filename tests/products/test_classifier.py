"""Labels of texts: what a model was not made for, it is not asked."""

import pytest
import torch

from heed.loading import load, write_package
from heed.products.classifier import Classifier
from tests.convert.small import SIZES, classifier, package, pairs

TEXTS = [source for source, _ in pairs()[:6]]


@pytest.fixture
def folder(tmp_path):
    own = classifier()
    write_package(own._replace(facts={**own.facts, "max_source": 9}), tmp_path / "model")
    return tmp_path / "model"


def lengths():
    return [len(ids) for ids in classifier().processors["text"].encode(TEXTS)]


def test_it_reads_no_more_than_what_it_was_trained_on(folder):
    loaded = load(folder, "cpu")
    first = next(number for number, length in enumerate(lengths(), 1) if length > 7)
    with pytest.raises(ValueError) as error:
        loaded.classify(TEXTS)
    assert str(error.value) == (
        f"text {first} has {lengths()[first - 1]} subwords, and the model reads at most 7: shorten it, or allow truncation (too_long='cut', --too-long cut)"
    )


def test_texts_may_come_from_anywhere(folder):
    loaded = load(folder, "cpu")
    assert loaded.classify(text[:5] for text in TEXTS) == loaded.classify([text[:5] for text in TEXTS])


def test_a_text_that_is_cut_is_read_to_the_limit(folder):
    own, loaded = classifier(), load(folder, "cpu")
    vocabulary = own.processors["text"]
    read = [ids[:7] for ids in vocabulary.encode(TEXTS)]
    special = vocabulary.special
    for ids, found in zip(read, loaded.classify(TEXTS, too_long="cut"), strict=True):
        logits = own.model.classify_text(torch.tensor([[*special.before, *ids, special.last]]))[0]
        torch.testing.assert_close(torch.tensor(list(found.probabilities.values())), logits.softmax(dim=0))
        assert found.label == own.processors["labels"].names[int(logits.argmax())]


@pytest.mark.parametrize("said", [None, SIZES["max_length"], 10_000])
def test_a_folder_that_names_no_limit_has_the_places_of_the_model(tmp_path, said):
    own = classifier()
    write_package(own._replace(facts={**own.facts, **({"max_source": said} if said else {})}), tmp_path / "model")
    found = load(tmp_path / "model", "cpu").classify(TEXTS)
    whole = Classifier(own.model, own.processors["text"], own.processors["labels"].names).classify(TEXTS)
    assert [one.label for one in found] == [one.label for one in whole]
    with pytest.raises(ValueError, match=f"and the model reads at most {SIZES['max_length'] - 2}: "):
        load(tmp_path / "model", "cpu").classify(["책 " * 100])


def test_what_is_read_together_does_not_matter(folder):
    own = classifier()
    loaded = Classifier(own.model, own.processors["text"], own.processors["labels"].names)
    together, alone = loaded.classify(TEXTS), loaded.classify(TEXTS, batch_tokens=1)
    for one, other in zip(together, alone, strict=True):
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-6)


def test_what_tells_no_labels_is_no_classifier(tmp_path):
    write_package(package("bart"), tmp_path / "model")
    with pytest.raises(
        ValueError, match="is a translator: it cannot classify; use heed translate, evaluate, score or look"
    ):
        load(tmp_path / "model", "cpu", verb="classify")
