"""Model folders: who may read them, and those of earlier versions."""

import json
import os
from contextlib import suppress
from pathlib import Path

import pytest
import torch

import heed
from heed.files import write_json, write_text
from heed.loading import open_package, write_package
from heed.models import folder as model_folder
from heed.models import signature
from heed.models.bart import Bart, BartConfig
from heed.models.folder import CONFIG, WEIGHTS, read_weights, write_weights
from heed.models.folder_config import upgraded
from heed.models.package import Package
from heed.models.rnn_lm import RNNLanguageModel, RNNLanguageModelConfig
from heed.models.transformer import Transformer, TransformerConfig
from heed.version import __version__
from heed.vocabularies import folder as vocabularies
from heed.vocabularies.labels import Labels
from heed.vocabularies.sentencepiece import SubwordsConfig, learn
from tests import fixed_pairs
from tests.helpers import translation_package


def test_weights_may_be_read_by_whom_the_other_files_may_be(tmp_path):
    for _ in range(2):  # anew, and written over
        write_weights(tmp_path / "model.safetensors", {"a": torch.arange(3.0)})
    write_text(tmp_path / "README.md", "plain")
    assert (tmp_path / "model.safetensors").stat().st_mode == (tmp_path / "README.md").stat().st_mode
    assert read_weights(tmp_path / "model.safetensors")["a"].tolist() == [0, 1, 2]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "model.safetensors"]


# weights that are not what was written


def tiny(seed):
    torch.manual_seed(seed)
    return RNNLanguageModel(RNNLanguageModelConfig(20, dim=4, hidden=4, layers=1)).eval()


def flip(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 64  # in the exponent of a weight
    path.write_bytes(content)


def test_a_model_comes_back_and_one_with_a_flipped_bit_is_refused(tmp_path):
    model_folder.save(tmp_path, tiny(1), {})
    assert same_model(model_folder.load(tmp_path), tiny(1))
    flip(tmp_path / WEIGHTS)
    with pytest.raises(
        ValueError,
        match=r"model\.safetensors is damaged or belongs to another model: its hash does not match config",
    ):
        model_folder.load(tmp_path)


def test_weights_of_another_model_of_the_same_shape_are_refused(tmp_path):
    for seed in (1, 2):
        model_folder.save(tmp_path / str(seed), tiny(seed), {})
    (tmp_path / "1" / WEIGHTS).write_bytes((tmp_path / "2" / WEIGHTS).read_bytes())
    with pytest.raises(ValueError, match="is damaged or belongs to another model"):
        model_folder.load(tmp_path / "1")


def test_without_a_hash_weights_are_read_if_they_are_finite(tmp_path):
    facts = model_folder.save(tmp_path, tiny(1), {})
    del facts["sha256"]
    write_json(tmp_path / CONFIG, facts)
    weights = tiny(2).state_dict()
    write_weights(tmp_path / WEIGHTS, weights)
    assert same_model(model_folder.load(tmp_path), tiny(2))
    for value in (torch.nan, torch.inf):
        name = next(reversed(weights))
        write_weights(tmp_path / WEIGHTS, {**weights, name: weights[name].index_fill(0, torch.tensor(0), value)})
        with pytest.raises(ValueError, match=f"{name} has weights that are not finite: it is damaged"):
            model_folder.load(tmp_path)


def test_large_weights_are_finite_though_their_sum_is_not():
    large = {"a": torch.full((3,), 3e38), "b": torch.tensor([2**62])}
    model_folder.check_finite(large, Path("weights"))
    with pytest.raises(ValueError, match="weights: c has weights that are not finite"):
        model_folder.check_finite({**large, "c": torch.tensor([3e38, -torch.inf])}, Path("weights"))


@pytest.mark.parametrize("fails", range(3))
def test_a_model_that_is_replaced_is_whole_at_any_moment(tmp_path, monkeypatch, fails):
    model_folder.save(tmp_path, tiny(1), {})
    writes, names, replace = 0, [], os.replace

    def replaced(part, path):
        nonlocal writes
        if writes == fails:
            raise KeyboardInterrupt
        writes += 1
        names.append(path.name)
        replace(part, path)

    monkeypatch.setattr(os, "replace", replaced)
    with pytest.raises(KeyboardInterrupt):
        model_folder.save(tmp_path, tiny(2), {})
    assert names == [CONFIG, WEIGHTS][:fails]
    assert same_model(model_folder.load(tmp_path), tiny(2 if WEIGHTS in names else 1))


@pytest.mark.parametrize("fails", range(5))
@pytest.mark.parametrize("there", [True, False])
def test_a_text_beside_a_model_is_its_own_at_any_moment(tmp_path, monkeypatch, fails, there):
    """The old text, none, or the new one: never one that config.json does not know, and never a refusal."""
    model_folder.save(tmp_path, tiny(1), {}, {"list.txt": "old"} if there else {})
    writes, replace = 0, os.replace

    def replaced(part, path):
        nonlocal writes
        if writes == fails:
            raise KeyboardInterrupt
        writes += 1
        replace(part, path)

    monkeypatch.setattr(os, "replace", replaced)
    with suppress(KeyboardInterrupt):
        model_folder.save(tmp_path, tiny(2), {}, {"list.txt": "new"})
    model_folder.load(tmp_path)
    facts = model_folder.read_config(tmp_path)
    own = (tmp_path / "list.txt").read_text() if signature.check_beside(tmp_path / "list.txt", facts) else None
    assert own in ({"old", "new"} if there else {None, "new"})
    assert fails < 4 or own == "new"


def test_a_text_that_is_not_the_models_is_refused_or_not_taken(tmp_path):
    path = tmp_path / "list.txt"
    facts = model_folder.save(tmp_path, tiny(1), {}, {"list.txt": "words"})
    assert signature.check_beside(path, facts)
    path.write_text("worms")
    with pytest.raises(
        ValueError, match=r"list.txt is damaged or belongs to another model: config.json records its hash"
    ):
        signature.check_beside(path, facts)
    path.unlink()
    with pytest.raises(ValueError, match=r"list\.txt is missing: config\.json records its hash"):
        signature.check_beside(path, facts)
    path.write_text("words")
    assert not signature.check_beside(path, model_folder.save(tmp_path, tiny(1), {}))
    assert signature.check_beside(path, {}), "an earlier version stated nothing"


def test_a_model_that_another_process_replaces_just_now_is_read_again(tmp_path, monkeypatch):
    model_folder.save(tmp_path, tiny(1), {})
    read_config, calls = model_folder.read_config, []

    def replaced_meanwhile(folder):
        calls.append(folder)
        if len(calls) == 2:  # the weights have been read, the hash has not
            model_folder.save(tmp_path, tiny(2), {})
        return read_config(folder)

    monkeypatch.setattr(model_folder, "read_config", replaced_meanwhile)
    assert same_model(model_folder.load(tmp_path), tiny(2))


# folders that earlier versions wrote


TEXTS = [text for pair in fixed_pairs.pairs("train", 60) for text in (pair.source, pair.target)]
SMALL = {"dim": 16, "heads": 2, "hidden": 24, "encoder_layers": 1, "decoder_layers": 1, "max_length": 20}


def earlier(folder, package, subwords, **facts):
    """A folder of the package as an earlier version wrote it."""
    write_package(package, folder)
    values = json.loads((folder / CONFIG).read_text("utf-8"))
    for name in ("task", "processors", "sha256"):
        del values[name]
    write_json(folder / CONFIG, {**values, "subwords": subwords, **facts})
    return folder


def same_model(one, other):
    assert type(one) is type(other) and one.config == other.config
    return all(torch.equal(weight, other.state_dict()[name]) for name, weight in one.state_dict().items())


@pytest.mark.parametrize("joint", [True, False])
def test_a_translator_of_an_earlier_version_is_read(tmp_path, joint):
    own = learn(TEXTS, SubwordsConfig(), 600)
    target = own if joint else learn(TEXTS[1::2], SubwordsConfig(), 350)
    sizes = {} if joint else {"source_vocab_size": len(own), "tied": "target"}
    package = translation_package(
        Transformer(TransformerConfig(len(target), **SMALL, **sizes)), (own, target), {"max_source": 9}
    )
    files = (
        {"source": "subwords.spm", "target": "subwords.spm"}
        if joint
        else {"source": "source.spm", "target": "target.spm"}
    )
    found = open_package(
        earlier(tmp_path / "old", package, files, trained={"task": "translation", "weights": "step 3"})
    )
    assert same_model(found.model, package.model)
    assert (found.task, list(found.processors)) == ("translation", ["source", "target"])
    assert [part.key() for part in found.vocabularies] == [own.key(), target.key()]
    assert found.facts == {
        "max_source": 9,
        "heed": __version__,
        "trained": {"task": "translation", "weights": "step 3"},
    }
    write_package(found, tmp_path / "new")  # and written as this version does
    facts = json.loads((tmp_path / "new" / CONFIG).read_text("utf-8"))
    assert facts["task"] == {"name": "translation"} and "subwords" not in facts
    assert {side: own["file"] for side, own in facts["processors"].items()} == files


def test_a_classifier_of_an_earlier_version_is_read(tmp_path):
    text, labels = vocabularies.learn("bart", TEXTS, 500)[0], ["good", "bad"]
    ends = {"labels": 2, "first": text.special.first, "last": text.special.last}
    model = Bart(BartConfig(len(text), **SMALL, **ends)).eval()
    package = Package(model, "classification", {"text": text, "labels": Labels(labels)}, {})
    folder = earlier(tmp_path, package, {"kind": "bart"}, labels=labels)
    facts = json.loads((folder / CONFIG).read_text("utf-8"))
    facts["model"]["name"] = "bart-classifier"
    write_json(folder / CONFIG, facts)
    found = open_package(folder)
    assert same_model(found.model, model)
    assert (found.task, list(found.processors)) == ("classification", ["text", "labels"])
    assert found.processors["labels"].names == labels and found.processors["text"].key() == text.key()
    (answer,) = heed.load(folder, "cpu").classify(["one text"])
    assert answer.label in labels


def test_a_language_model_of_an_earlier_version_is_read(tmp_path):
    own = learn(TEXTS, SubwordsConfig(), 600)
    model = RNNLanguageModel(RNNLanguageModelConfig(len(own), dim=8, hidden=8, layers=1)).eval()
    package = Package(model, "language", {"text": own}, {})
    found = open_package(earlier(tmp_path, package, {"source": "subwords.spm", "target": "subwords.spm"}))
    assert same_model(found.model, model)
    assert (found.task, list(found.processors)) == ("language", ["text"])
    assert found.processors["text"].key() == own.key()
    assert heed.load(tmp_path, "cpu").verbs[0] == "generate"


def test_only_what_an_earlier_version_wrote_is_upgraded():
    new = {"model": {"name": "bart"}, "task": {"name": "translation"}, "processors": {"source": {"kind": "bart"}}}
    assert upgraded(new, "") == new
    with pytest.raises(ValueError, match=r"^here: subwords\.target is 7; it must be text in quotes$"):
        upgraded({"model": {"name": "bart"}, "subwords": {"source": "a.spm", "target": 7}}, "here: ")
