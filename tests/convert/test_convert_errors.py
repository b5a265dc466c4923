"""heed convert: from folder to folder and back; bad input gets one sentence, and nothing half-written."""

import json
import os
import shutil

import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import load_file, save_file

from heed.cli.main import main
from heed.convert import huggingface
from heed.loading import load, open_package, write_package
from tests.convert.small import ENDS, OTHERS, classifier, package, pairs, speaking

SEARCH = {
    "beam": 2,
    "length_penalty": 1.0,
    "penalty": "length",
    "stopping": "heuristic",
    "max_length": 12,
    "force_end": True,
}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def convert(capsys, tmp_path):
    """Run the verb; (exit code, standard error as one line)."""

    def run(*words, out=None):
        capsys.readouterr()
        code = main(["convert", *map(str, words), "--out", str(out or tmp_path / "out")])
        said = capsys.readouterr()
        assert said.out == ""
        return code, " ".join(said.err.split())

    return run


@pytest.fixture
def refused(convert, tmp_path):
    """What is said of a model that cannot be converted; nothing is left of the attempt."""

    def run(*words):
        before = sorted(tmp_path.iterdir())
        code, err = convert(*words)
        assert code == 1
        assert err.startswith("heed: ")
        assert sorted(tmp_path.iterdir()) == before
        return err.removeprefix("heed: ")

    return run


def made(kind):
    own = speaking(package(kind, **({} if kind in OTHERS else {"output_bias": True})), ENDS[kind])
    facts = {"languages": {"source": "ko", "target": "en"}, "decoding": SEARCH, "max_source": 64}
    return own._replace(facts=facts)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Folders of transformers, by kind; to be copied before they are changed."""
    folder = tmp_path_factory.mktemp("saved")
    for kind in OTHERS:
        huggingface.write(made(kind), folder / kind)
    huggingface.write(classifier(), folder / "classifier")
    return folder


@pytest.fixture
def marian(saved, tmp_path):
    return shutil.copytree(saved / "marian", tmp_path / "marian")


def edited(folder, name, **changes):
    said = json.loads((folder / name).read_text("utf-8")) | changes
    (folder / name).write_text(json.dumps(said), "utf-8")


def translations(folder):
    return [found.text for found in load(folder, "cpu", "torch").translate([source for source, _ in pairs()[:5]])]


@pytest.mark.parametrize("kind", OTHERS)
def test_in_and_out_again(convert, saved, tmp_path, kind):
    heeds, theirs = tmp_path / "heeds", tmp_path / "theirs"
    code, err = convert(saved / kind, out=heeds)
    verb = "translate" if kind == "marian" else "summarize"
    what = {"marian": "Marian, ko to en", "bart": "BART", "pegasus": "Pegasus"}[kind]
    assert (code, err) == (0, f"{heeds} is a model folder of heed ({what}): heed {verb} {heeds} < text")
    code, err = convert(heeds, out=theirs)
    architecture = json.loads((theirs / "config.json").read_text("utf-8"))["architectures"][0]
    assert code == 0
    assert err == (
        f'{theirs} is a {architecture} of transformers ({what}): AutoModelForSeq2SeqLM.from_pretrained("{theirs}")'
    )
    for file in ("model.safetensors", "config.json", "generation_config.json"):
        assert (theirs / file).read_bytes() == (saved / kind / file).read_bytes(), file
    said = translations(heeds)
    assert said == translations(saved / kind) == translations(theirs)
    assert any(said)


def test_our_own_goes_out_and_says_the_same(convert, tmp_path):
    write_package(made("one"), tmp_path / "model")
    code, err = convert(tmp_path / "model")
    assert (code, err.split(" is ")[1]) == (
        0, f'a MarianMTModel of transformers (Transformer, ko to en): AutoModelForSeq2SeqLM.from_pretrained("{tmp_path}/out")'
    )  # fmt: skip
    assert translations(tmp_path / "out") == translations(tmp_path / "model")


def test_a_classifier(convert, saved, tmp_path):
    code, err = convert(saved / "classifier")
    assert code == 0
    assert err.endswith(f"is a model folder of heed (BART as a classifier): heed classify {tmp_path}/out < text")
    assert open_package(tmp_path / "out").processors["labels"].names == ["no", "perhaps", "yes"]
    code, err = convert(tmp_path / "out", out=tmp_path / "again")
    assert err.endswith(f'AutoModelForSequenceClassification.from_pretrained("{tmp_path}/again")')


def test_old_pickles_become_safetensors(convert, marian, tmp_path):
    weights = load_file(marian / "model.safetensors")
    (marian / "model.safetensors").unlink()
    torch.save(weights, marian / "pytorch_model.bin")
    assert convert(marian, "--to", "huggingface")[0] == 0
    found = load_file(tmp_path / "out" / "model.safetensors")
    assert found.keys() == weights.keys()
    assert all(torch.equal(found[name], weights[name]) for name in weights)


def test_out_to_ctranslate2(convert, saved, tmp_path):
    code, err = convert(saved / "marian", "--to", "ctranslate2", "--quantize", "int8")
    assert code == 0
    assert err == (
        f"{tmp_path}/out is for CTranslate2, with weights in int8 (Marian, ko to en): its README.md shows how to run it"
    )
    assert {"model.bin", "source.spm", "README.md"} < {path.name for path in (tmp_path / "out").iterdir()}


def test_the_commit_is_pinned_on_the_card(convert, saved, tmp_path):
    commit = "a1b2c3d4" * 5
    folder = tmp_path / "models--owner--model" / "snapshots" / commit
    shutil.copytree(saved / "marian", folder)
    assert convert(folder)[0] == 0
    assert f"Converted from owner/model at revision {commit}." in (tmp_path / "out" / "README.md").read_text("utf-8")
    assert open_package(tmp_path / "out").facts["origin"]["revision"] == commit


def test_what_is_left_aside_is_said(convert, marian, tmp_path):
    edited(marian, "generation_config.json", num_return_sequences=2, use_cache=True)
    code, err = convert(marian)
    assert code == 0
    assert err.endswith(". These generation settings are not supported and were dropped: num_return_sequences")
    text = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert "Heed ignores these generation settings: num_return_sequences." in text


@pytest.mark.parametrize("kind", OTHERS)
def test_what_transformers_itself_saves_has_nothing_to_be_left_aside(convert, saved, tmp_path, kind):
    from transformers import GenerationConfig

    folder = shutil.copytree(saved / kind, tmp_path / kind)
    own = GenerationConfig.from_pretrained(folder)
    (folder / "generation_config.json").write_text(json.dumps(own.to_dict()), "utf-8")
    edited(folder, "generation_config.json", output_attentions=False, output_hidden_states=False, use_cache=True)
    said = json.loads((folder / "generation_config.json").read_text("utf-8"))
    (folder / "generation_config.json").write_text(json.dumps({**said, "bad_words_ids": None}))
    code, err = convert(folder)
    assert (code, "were dropped" in err) == (0, False)


def test_a_classifier_of_another_kind(refused, saved, tmp_path):
    folder = shutil.copytree(saved / "classifier", tmp_path / "classifier")
    edited(folder, "config.json", problem_type="multi_label_classification")
    says = "problem_type is 'multi_label_classification'; heed supports 'single_label_classification' and 'regression'"
    assert refused(folder) == f"{folder}/config.json: {says}"


def test_a_regression_of_several_numbers(refused, saved, tmp_path):
    folder = shutil.copytree(saved / "classifier", tmp_path / "classifier")
    edited(folder, "config.json", problem_type="regression", id2label=None, num_labels=3)
    says = "num_labels is 3 and problem_type is 'regression'; heed's regression predicts one number"
    assert refused(folder) == f"{folder}/config.json: {says}"


@pytest.mark.parametrize("kind", ["single_label_classification", None])
def test_a_classifier_that_says_its_kind(convert, saved, tmp_path, kind):
    folder = shutil.copytree(saved / "classifier", tmp_path / "classifier")
    edited(folder, "config.json", problem_type=kind)
    assert convert(folder)[0] == 0


def test_a_classifier_of_one_label(refused, saved, tmp_path):
    folder = shutil.copytree(saved / "classifier", tmp_path / "classifier")
    edited(folder, "config.json", id2label={"0": "a"}, label2id={"a": 0}, problem_type="single_label_classification")
    says = "a classifier needs at least two labels"
    assert refused(folder) == f"{folder}/config.json: id2label is {{'0': 'a'}}; {says}"
    edited(folder, "config.json", id2label=None, num_labels=1)
    assert refused(folder) == f"{folder}/config.json: num_labels is 1; {says}"


def test_another_architecture(refused, marian):
    edited(marian, "config.json", architectures=["T5ForConditionalGeneration"], model_type="t5")
    assert refused(marian) == (
        f"{marian} holds a T5ForConditionalGeneration; heed reads MarianMTModel, BartForConditionalGeneration, "
        "BartForSequenceClassification, PegasusForConditionalGeneration, MBartForConditionalGeneration, "
        "M2M100ForConditionalGeneration, OpenAIGPTLMHeadModel, OpenAIGPTDoubleHeadsModel, GPT2LMHeadModel, "
        "GPT2DoubleHeadsModel, CTRLLMHeadModel, BertForMaskedLM and 8 more heads of it, AlbertForMaskedLM and 6 more heads of it, "
        "RobertaForMaskedLM and 6 more heads of it, ElectraForMaskedLM and 7 more heads of it, "
        "BigBirdForMaskedLM and 7 more heads of it, ViTForImageClassification, ViTModel, "
        "Speech2TextForConditionalGeneration"
    )


@pytest.mark.parametrize("names", [5, {"a": 1}, "MarianMTModel", [["x"]], [{}]])
def test_architectures_of_a_wrong_kind(refused, marian, names):
    edited(marian, "config.json", architectures=names)
    says = "it must be a list with one class name"
    assert refused(marian) == f"{marian}/config.json: architectures is {names!r}; {says}"


def test_another_architecture_that_names_its_family_alone(refused, marian):
    edited(marian, "config.json", architectures=None, model_type="t5")
    assert refused(marian).startswith(f"{marian} holds a t5; heed reads MarianMTModel,")


@pytest.mark.parametrize(
    ("kind", "names"), [("marian", ["source.spm"]), ("marian", ["vocab.json"]), ("bart", ["merges.txt"]), ("pegasus", ["spiece.model", "tokenizer.json"])]
)  # fmt: skip
def test_a_missing_vocabulary(refused, saved, tmp_path, kind, names):
    folder = shutil.copytree(saved / kind, tmp_path / kind)
    for name in names:
        (folder / name).unlink()
    assert refused(folder).startswith(f"{folder} has no {names[0]}: it cannot read text; a ")


def test_the_vocabulary_of_another_model(refused, marian):
    held = json.loads((marian / "vocab.json").read_text("utf-8"))
    (marian / "vocab.json").write_text(json.dumps(held | {"more": len(held), "still more": len(held) + 1}))
    says = f"{marian}: the vocabulary of the source has {len(held) + 2} pieces, but the model expects {len(held)}"
    assert refused(marian).startswith(says)


def test_no_config(refused, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "has no config.json" in refused(tmp_path / "empty")


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_search_that_is_no_json(refused, marian, text):
    (marian / "generation_config.json").write_text(text)
    assert refused(marian).startswith(f"{marian}/generation_config.json ")


def test_an_index_that_names_a_missing_shard(refused, marian):
    weights = load_file(marian / "model.safetensors")
    (marian / "model.safetensors").unlink()
    names = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    places = {name: names[i % 2] for i, name in enumerate(weights)}
    save_file({name: weights[name] for name, place in places.items() if place == names[0]}, marian / names[0])
    (marian / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    assert refused(marian) == (
        f"{marian}/model.safetensors.index.json names {names[1]}, which is not in the folder (1 of 2 shards are): copy it again"
    )


class Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_pickle_that_would_run_code(refused, marian, tmp_path):
    (marian / "model.safetensors").unlink()
    torch.save({"final_logits_bias": Evil(tmp_path / "ran")}, marian / "pytorch_model.bin")
    assert refused(marian) == (
        f"{marian}/pytorch_model.bin is a pickle that contains more than weights (it asks for "
        f"{os.mkdir.__module__}.mkdir). "
        "Loading it could run arbitrary code, so heed refuses: get the model as model.safetensors"
    )
    assert not (tmp_path / "ran").exists()


def test_no_network_for_a_name(refused, tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert refused("Helsinki-NLP/opus-mt-ko-en") == (
        f"no network: the hub could not be reached for Helsinki-NLP/opus-mt-ko-en, and the cache ({tmp_path}/cache) does not contain all of it. Go online once, or give an existing folder"
    )


def test_a_folder_that_is_not_there_may_look_like_a_name(refused, tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    assert refused("mine/typo").startswith("mine/typo: no such folder, and on the hub: no network")
    assert refused("runs/typo") == "runs/typo: no such folder"


def test_a_weight_too_many_and_one_too_few(refused, marian):
    weights = load_file(marian / "model.safetensors")
    save_file({**weights, "model.extra.weight": torch.ones(2)}, marian / "model.safetensors")
    assert refused(marian).startswith(f"{marian}: the weights hold model.extra.weight, which this model does not have")
    weights.pop("model.encoder.layers.0.fc1.weight")
    save_file(weights, marian / "model.safetensors")
    assert refused(marian).startswith(f"{marian}: the weights lack model.encoder.layers.0.fc1.weight")


def test_a_weight_of_another_shape(refused, marian):
    weights = load_file(marian / "model.safetensors")
    weights["model.encoder.layers.0.fc1.weight"] = torch.ones(3, 3)
    save_file(weights, marian / "model.safetensors")
    assert "mlp.body.up.weight has shape (3, 3), but according to config.json it should be (48, 32)" in refused(marian)


def test_a_setting_that_our_model_has_not(refused, marian):
    edited(marian, "config.json", normalize_before=True)
    says = f"{marian}/config.json: normalize_before is True; heed's Marian supports only False"
    assert refused(marian) == says


def test_a_search_that_we_have_not(refused, marian):
    edited(marian, "generation_config.json", num_beam_groups=3)
    says = f"{marian}/generation_config.json: num_beam_groups is 3, which heed's search does not support: take it out, or set it to 1"
    assert refused(marian) == says


def test_our_own_in_a_shape_that_marian_has_not(refused, tmp_path):
    write_package(package("one", norm="pre"), tmp_path / "model")
    assert "norm is 'pre'" in refused(tmp_path / "model")


def test_a_folder_that_exists(convert, saved, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("mine")
    code, err = convert(saved / "marian")
    assert (code, err) == (1, f"heed: {tmp_path}/out already exists: choose another folder")
    assert (tmp_path / "out" / "mine").read_text() == "mine"


def test_a_folder_of_ctranslate2_is_said_to_be_one(convert, saved, tmp_path, refused):
    assert convert(saved / "marian", "--to", "ctranslate2", out=tmp_path / "ct2")[0] == 0
    assert "is a CTranslate2 folder, which heed can export but not read" in refused(tmp_path / "ct2")


def test_quantize_goes_with_ctranslate2(refused, saved):
    assert refused(saved / "marian", "--quantize", "int8") == "--quantize goes with --to ctranslate2"
    assert refused(saved / "marian", "--to", "ctranslate2", "--quantize", "int3").startswith("quantization is 'int3'; ")


def test_a_revision_goes_with_a_name(refused, saved):
    assert "is a local folder: a revision is for names on the hub" in refused(saved / "marian", "--revision", "main")


def test_a_failure_while_writing_leaves_nothing(saved, tmp_path, monkeypatch):
    monkeypatch.setattr("heed.convert.model_card.heed", lambda package: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["convert", str(saved / "marian"), "--out", str(tmp_path / "out")])
    assert not any(tmp_path.iterdir())
