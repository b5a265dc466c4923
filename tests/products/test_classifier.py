"""Labels of texts: what a model was not made for, it is not asked."""

import pytest
import torch

from heed.loading import load, write_package
from heed.products.choice_model import ChoiceModel
from heed.products.classifier import Classifier, Regressor
from tests.convert.small import SIZES, classifier, package, pairs

TEXTS = [source for source, _ in pairs()[:6]]
LONG = " ".join(source for source, _ in pairs()[:60])
ROOM = SIZES["max_length"] - 2


@pytest.fixture
def folder(tmp_path):
    own = classifier()
    write_package(own._replace(facts={**own.facts, "max_source": 9, "trained": {}}), tmp_path / "model")
    return tmp_path / "model"


def test_a_folder_of_an_earlier_version_that_recorded_its_longest_training_text_reads_as_much_as_the_model(folder):
    own, loaded = classifier(), load(folder, "cpu")
    whole = Classifier(own.model, own.processors["text"], own.processors["labels"].names)
    assert max(map(len, own.processors["text"].encode(TEXTS))) > 7
    assert loaded.classify(TEXTS) == whole.classify(TEXTS)
    with pytest.raises(ValueError) as error:
        loaded.classify([*TEXTS, LONG])
    size = len(own.processors["text"].encode([LONG])[0])
    assert str(error.value) == (
        f"text 7 has {size} subwords, and the model reads at most {ROOM}: shorten it, or allow truncation (too_long='cut', --too-long cut)"
    )


def test_texts_may_come_from_anywhere(folder):
    loaded = load(folder, "cpu")
    assert loaded.classify(text[:5] for text in TEXTS) == loaded.classify([text[:5] for text in TEXTS])


def test_a_text_that_is_cut_is_read_to_the_limit(folder):
    own, loaded = classifier(), load(folder, "cpu")
    vocabulary = own.processors["text"]
    texts = [*TEXTS, LONG]
    read = [ids[:ROOM] for ids in vocabulary.encode(texts)]
    special = vocabulary.special
    assert [loaded.read(own, too_long="cut").cut for own in (texts, TEXTS)] == [1, 0]
    for ids, found in zip(read, loaded.classify(texts, too_long="cut"), strict=True):
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


@pytest.mark.parametrize(
    ("made", "labels", "said"),
    [
        (lambda own: Classifier(own.model, own.processors["text"], ["a", "b"]), ["b", "c"],
         "'c' is not a label of this model; its labels are a, b"),
        (lambda own: Regressor(own.model, own.processors["text"]), ["-1.5", "nan"], "'nan' is not a number"),
        (lambda own: ChoiceModel(own.model, own.processors["text"]), ["1", "B"],
         "'B' is not the number of a choice, counted from 0"),
        (lambda own: ChoiceModel(own.model, own.processors["text"], ["1", "2"]), ["2", "0"],
         "'0' is not a label of this model; its labels are 1, 2"),
    ],
)  # fmt: skip
def test_a_reference_that_is_no_label_is_told_with_its_place(made, labels, said):
    product = made(classifier())
    assert product.expected(labels[:1]).tolist() == [{"b": 1, "-1.5": -1.5, "1": 1, "2": 1}[labels[0]]]
    with pytest.raises(ValueError) as error:
        product.expected(labels, lambda index: f"file, line {index + 1}: ")
    assert str(error.value) == f"file, line 2: {said}"


def test_the_labels_of_a_chunk_are_those_of_its_lines_to_the_bit(folder):
    own = load(folder, "cpu")
    torch.manual_seed(3)
    outputs = 30 * torch.randn(70, len(own.labels), dtype=torch.float64)
    for row, found in zip(outputs, own.labelling([str(number) for number in range(70)], outputs), strict=True):
        assert found.probabilities == dict(zip(own.labels, row.softmax(dim=0).tolist(), strict=True))
        assert found.label == own.labels[int(row.argmax())] and own.labelling([found.text], row[None]) == [found]
    assert own.labelling([], outputs[:0]) == []
