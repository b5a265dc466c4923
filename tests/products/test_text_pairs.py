"""Pairs of texts: a model is told which token is of which text, as transformers tells it."""

import json
from functools import cache

import numpy as np
import pytest
import torch
import transformers

from heed.cli.main import main
from heed.convert import huggingface
from heed.data.batching import pad, segment_ids
from heed.data.labelled import CollateTexts, both_orders, each_choice
from heed.loading import load
from heed.models import MODELS
from heed.products.classifier import Classifier
from heed.tasks.text_losses import LabelLoss, TextLoss
from heed.vocabularies import files
from heed.vocabularies.labels import Labels
from heed.vocabularies.vocabulary import SpecialTokens
from tests.convert.encoders import OWN, package, vocabulary
from tests.convert.small import classifier

PAIRS = [["나는 책을 읽어요.", "책이 있어요."], ["one", "the cat reads a book, and sleeps"], ["고양이", "책"]]
BERT = SpecialTokens(0, 1, 2, 3, before=(2,), delimiter=(3,), segments=True)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    @cache
    def make(system):
        own, folder = package(system, "classification"), tmp_path_factory.mktemp(system) / "model"
        huggingface.write(own, folder)
        return folder

    return make


def theirs(folder, texts):
    """The logits of transformers, with what its tokenizer gives."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float64).eval()
    parts = zip(*texts, strict=True) if isinstance(texts[0], list) else [texts]
    inputs = tokenizer(*map(list, parts), padding=True, return_tensors="pt")
    with torch.inference_mode():
        return model(**inputs).logits


def ours(folder):
    found = load(folder, "cpu")
    found.model.double()
    return found


@pytest.mark.parametrize("system", OWN)
def test_pairs_have_the_logits_of_transformers(folders, system):
    folder = folders(system)
    expected, own = theirs(folder, PAIRS), ours(folder)
    torch.testing.assert_close(own.outputs(PAIRS), expected, rtol=0, atol=1e-10)
    torch.testing.assert_close(own.outputs(PAIRS, batch_tokens=1), expected, rtol=0, atol=1e-10)
    lines = [own.joined("\t".join(pair)) for pair in PAIRS]
    torch.testing.assert_close(own.outputs(lines), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("system", OWN)
def test_texts_that_spell_a_delimiter_are_one_text_there_and_here(folders, system):
    folder = folders(system)
    texts = [f"책 {'</s></s>' if system == 'roberta' else '[SEP]'} 고양이", "a cat"]
    torch.testing.assert_close(ours(folder).outputs(texts), theirs(folder, texts), rtol=0, atol=1e-10)


def test_heed_classify_reads_pairs_from_lines(folders, tmp_path, monkeypatch, capsys):
    folder, lines = folders("bert"), tmp_path / "lines"
    lines.write_text("\n".join(map("\t".join, PAIRS)), encoding="utf-8", newline="\n")
    with lines.open(encoding="utf-8") as file:
        monkeypatch.setattr("sys.stdin", file)
        assert main(["classify", str(folder), "--scores", "--device", "cpu"]) == 0
    best = theirs(folder, PAIRS).softmax(dim=1).max(dim=1)
    expected = [f"{p:.4f}\tlabel {i}" for p, i in zip(*map(torch.Tensor.tolist, best), strict=True)]
    assert capsys.readouterr().out.splitlines() == expected


@pytest.mark.parametrize("system", OWN)
def test_the_ids_and_segments_of_pairs_are_those_of_transformers(folders, system):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders(system))
    expected = tokenizer(*map(list, zip(*PAIRS, strict=True)), padding=True, return_tensors="np")
    own = Classifier(package(system, "classification").model, vocabulary(MODELS[system].vocabulary), ["a", "b", "c"])
    special = own.vocabulary.special
    tokens, valid = pad(own.vocabulary.encode(["\x1f".join(pair) for pair in PAIRS]), special)
    np.testing.assert_array_equal(tokens, expected["input_ids"])
    found = segment_ids(tokens, valid, special)
    if system == "roberta":
        assert found is None and not expected.get("token_type_ids", np.zeros(1)).any()
    else:
        np.testing.assert_array_equal(found, expected["token_type_ids"])


def test_segments_by_hand():
    tokens, valid = pad([[5, 3, 6, 7], [5], [3, 8], [5, 3, 6, 3, 7]], BERT)
    assert segment_ids(tokens, valid, BERT).tolist() == [
        [0, 0, 0, 1, 1, 1, 0],
        [0, 0, 0, 0, 0, 0, 0],
        [0, 0, 1, 1, 0, 0, 0],
        [0, 0, 0, 1, 1, 1, 1],
    ]
    two = BERT._replace(delimiter=(3, 3))
    assert segment_ids(*pad([[5, 3, 6, 3, 3, 7]], two), two).tolist() == [[0, 0, 0, 0, 0, 0, 1, 1]]
    assert segment_ids(tokens, valid, BERT._replace(segments=False)) is None


@pytest.mark.parametrize("arrange", [both_orders, each_choice])
def test_batches_of_several_inputs_have_segments(arrange):
    rows = [[5, 3, 6, 7], [8, 9, 3, 5]] if arrange is both_orders else [[5, 3, 6, 3, 7], [8, 9, 3, 5, 3, 6]]
    batch = CollateTexts(arrange)(rows, [[0], [1]], (BERT, Labels.special))
    for ids, valid, own in zip(*map(torch.Tensor.tolist, batch.inputs), strict=True):
        second = ids.index(3) + 1
        assert own == [int(place >= second and there) for place, there in enumerate(valid)]


def test_a_loss_is_that_of_a_model_that_is_told_of_segments():
    own = package("bert", "classification", dropout=0.0).model.double()
    batch = CollateTexts()([[25, 3, 26], [27]], [[0], [1]], (BERT, Labels.special))
    loss = TextLoss(LabelLoss(), Classifier.combine)(own, batch)
    told = torch.nn.functional.cross_entropy(own.classify_text(*batch.inputs), batch.labels, reduction="sum")
    assert len(batch.inputs) == 3 and loss.total.item() == pytest.approx(told.item(), abs=1e-12)
    untold = LabelLoss()(own.classify_text(batch.source, batch.valid), batch.labels)
    assert abs(untold.total.item() - told.item()) > 1e-3


def test_a_model_with_one_kind_of_segment_tells_no_texts_apart():
    own = package("bert", "classification", segments=1).model
    tokens, segments = torch.tensor([[2, 20, 3, 21, 3]]), torch.tensor([[0, 0, 0, 1, 1]])
    assert torch.equal(own.classify_text(tokens, None, segments), own.classify_text(tokens))


def test_models_without_segments_are_not_told_of_them():
    own = classifier()  # a BART
    assert not own.processors["text"].special.segments
    found = Classifier(own.model, own.processors["text"], own.processors["labels"].names)
    assert found.outputs([["책", "고양이"]]).shape == (1, len(found.labels))


@pytest.mark.parametrize(("kind", "default"), [("wordpiece", True), ("albert", True), ("bigbird", False)])
def test_a_folder_says_whether_its_tokenizer_gives_segments(kind, default):
    own = vocabulary(kind)
    assert own.special.segments
    settings = files.parse_json(own.files[files.CONFIG])
    settings.pop("model_input_names", None)
    for inputs, expected in ((None, default), (["input_ids"], False), (["input_ids", "token_type_ids"], True)):
        text = json.dumps(settings | ({"model_input_names": inputs} if inputs else {}))
        changed = {**own.files, files.CONFIG: files.File(files.CONFIG, text.encode())}
        assert type(own)(changed).special.segments is expected
