"""A model folder, written as training writes it, read back, and broken in every way."""

import dataclasses
import json

import pytest
import torch
from safetensors.torch import load_file, save_file

import heed
from heed.decoding.config import DecodingConfig
from heed.device import choose_device
from heed.files import write_json
from heed.loading import load
from heed.models import folder as model_folder
from heed.vocabularies.sentencepiece import SubwordsConfig, learn


def write(folder, translator, **facts):
    folder.mkdir(parents=True)
    translator.source.save(folder / "subwords.spm")
    model_folder.write_weights(folder / model_folder.WEIGHTS, translator.model.state_dict())
    told = {
        "heed": heed.__version__,
        "model": {"name": "transformer", **dataclasses.asdict(translator.model.config)},
        "subwords": {"source": "subwords.spm", "target": "subwords.spm"},
        "max_source": 48,
        "decoding": dataclasses.asdict(translator.decoding),
    }
    write_json(folder / model_folder.CONFIG, told | facts)
    return folder


@pytest.fixture(scope="session")
def single(make):
    """In float32, as models are written."""
    made = make(16, max_source=48)
    made.model.float()
    return made


@pytest.fixture
def folder(tmp_path, single):
    return write(tmp_path / "model", single)


def said(translations):
    return [(t.text, t.score, t.tokens, t.token_scores, t.alignment) for t in translations]


def change(folder, **facts):
    path = folder / model_folder.CONFIG
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | facts), "utf-8")


def test_a_translator_read_back_says_the_same(folder, single, texts):
    again = load(folder, "cpu", "torch")
    assert said(again.translate(texts)) == said(single.translate(texts))
    assert (again.decoding, again.max_source) == (single.decoding, 48)
    assert not again.model.training
    assert said(heed.load(str(folder), "cpu", "torch").translate(texts[:1])) == said(again.translate(texts[:1]))


def test_a_model_saved_and_loaded_has_the_same_weights(tmp_path, single):
    model_folder.save(tmp_path / "new", single.model, {"made_by": "a test"})
    again = model_folder.load(tmp_path / "new")
    assert again.config == single.model.config
    assert model_folder.read_config(tmp_path / "new")["made_by"] == "a test"
    for name, weight in single.model.state_dict().items():
        assert torch.equal(again.state_dict()[name], weight)
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["config.json", "model.safetensors"]


def test_of_a_run_its_model_is_loaded(tmp_path, single, texts):
    write(tmp_path / "run" / "model", single)
    (tmp_path / "run" / "recipe.toml").touch()
    assert said(load(tmp_path / "run", "cpu", "torch").translate(texts[:1])) == said(single.translate(texts[:1]))


def test_two_folders_are_an_ensemble(tmp_path, folder, make, texts):
    other = make(131)
    other.model.float()
    write(tmp_path / "other", other)
    alone, both, twice = (
        load(paths, "cpu", "torch") for paths in (folder, [folder, tmp_path / "other"], [folder, folder])
    )
    assert [len(t.models) for t in (alone, both, twice)] == [1, 2, 2]
    one, two, same = ([t.text for t in made.translate(texts[:3], beam=1)] for made in (alone, both, twice))
    assert one == same != two


def test_an_ensemble_of_different_subwords_is_refused(tmp_path, folder, single, pairs):
    write(tmp_path / "other", single)
    learn([pair.source for pair in pairs], SubwordsConfig(), 600).save(tmp_path / "other" / "subwords.spm")
    with pytest.raises(
        ValueError, match=r"model and .*other have different subwords: the models of an ensemble must have the same"
    ):
        load([folder, tmp_path / "other"], "cpu")


def test_the_settings_of_its_training_are_those_of_its_search(folder):
    change(folder, decoding={"beam": 2, "length_penalty": 1})
    assert load(folder, "cpu").decoding == DecodingConfig(beam=2, length_penalty=1.0)


def test_where_alignments_are_read_is_written_in_the_folder(folder):
    assert load(folder, "cpu").alignment_rows == (1, False)
    change(folder, alignment={"layer": 0, "after": True})
    assert load(folder, "cpu").alignment_rows == (0, True)


def assert_refused(folder, words):
    with pytest.raises(ValueError, match=words):
        load(folder, "cpu")


def test_a_folder_that_is_not_there_is_said_so(tmp_path):
    assert_refused(tmp_path / "nowhere", "nowhere: no such folder")


def test_a_folder_of_other_things_is_said_so(tmp_path):
    assert_refused(tmp_path, r"is not a model folder: it has no config\.json")


def test_a_run_without_a_model_is_said_so(tmp_path):
    (tmp_path / "recipe.toml").touch()
    assert_refused(tmp_path, "has no model yet: its training has not reached its first validation")


def test_broken_json_is_said_so(folder):
    (folder / "config.json").write_text('{"model": {"name": ')
    assert_refused(folder, r"config\.json is not valid JSON: ")
    (folder / "config.json").write_text('{"model": ' * 100_000)
    assert_refused(folder, r"config\.json is not valid JSON: it is nested too deeply")


def test_weights_that_are_missing_are_said_so(folder):
    (folder / "model.safetensors").unlink()
    assert_refused(folder, r"model has no weights: model\.safetensors is missing")


@pytest.mark.parametrize("left", [0, 5, 100, -1000, -1])
def test_weights_cut_short_are_said_so(folder, left):
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:left])
    assert_refused(folder, r"model\.safetensors is damaged or truncated \(.*\): copy it again")


def with_weights(folder, edit):
    weights = load_file(folder / "model.safetensors")
    edit(weights)
    save_file(weights, folder / "model.safetensors")


def test_a_weight_of_another_shape_is_said_so(folder):
    with_weights(folder, lambda weights: weights.update(bias=torch.zeros(7)))
    assert_refused(folder, r"bias has shape \(7,\), but according to config\.json it should be \(600,\)")


def test_a_weight_too_many_is_said_so(folder):
    with_weights(folder, lambda weights: weights.update({"decoder.more": torch.zeros(1)}))
    assert_refused(folder, r"holds decoder\.more, which this model does not have: do they belong to another model\?")


def test_weights_too_few_are_said_so(folder):
    with_weights(folder, lambda weights: [weights.pop(name) for name in list(weights) if "cross" in name])
    assert_refused(
        folder, r"lacks decoder\.layers\.0\.cross.* and \d+ more: it belongs to another model, or is incomplete"
    )


def test_a_model_of_another_name_is_said_so(folder):
    change(folder, model={"name": "gpt9", "vocab_size": 600})
    assert_refused(folder, r"config\.json: model\.name is 'gpt9'; heed has transformer")


def test_a_model_without_a_name_is_said_so(folder):
    change(folder, model={})
    assert_refused(folder, r"config\.json: model\.name is None; heed has transformer")


def test_settings_that_are_not_known_are_said_so(folder):
    config = json.loads((folder / "config.json").read_text("utf-8"))
    change(folder, model=config["model"] | {"head": 4})
    assert_refused(folder, r"config\.json: model\.head: no such setting; did you mean heads\?")
    change(folder, model=config["model"], decoding={"beams": 4})
    assert_refused(folder, r"config\.json: decoding\.beams: no such setting; did you mean beam\?")


def test_subwords_that_are_none_are_said_so(folder):
    (folder / "subwords.spm").write_bytes(b"not a model" * 9)
    assert_refused(folder, r"subwords\.spm is not a SentencePiece model")
    (folder / "subwords.spm").unlink()
    assert_refused(folder, r"subwords\.spm: no such file")
    change(folder, subwords=None)
    assert_refused(folder, r"config\.json lists no subwords: it cannot read text")
    change(folder, subwords={"source": "subwords.spm"})
    assert_refused(folder, r"config\.json: subwords lists no target")


def test_subwords_of_another_model_are_said_so(folder, pairs):
    learn([pair.target for pair in pairs], SubwordsConfig(), 400).save(folder / "subwords.spm")
    assert_refused(folder, r"subwords\.spm has 400 subwords, but the model expects 600: it belongs to another model")


def test_a_device_that_is_not_there_is_said_so(folder, monkeypatch):
    with pytest.raises(ValueError, match="device is 'nonsense'; it must be auto, cpu or cuda"):
        load(folder, "nonsense")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="device is 'cuda', but torch finds no GPU; use --device cpu"):
        load(folder, "cuda")
    assert choose_device("auto") == torch.device("cpu")


def test_a_gpu_that_is_not_there_is_said_so(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ValueError, match="device is 'cuda:2', but torch finds 2"):
        choose_device("cuda:2")
    assert choose_device("cuda:1") == torch.device("cuda:1")
    assert choose_device("auto") == torch.device("cuda")
