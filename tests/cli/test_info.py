"""heed info: what is in a folder, whoever has made it."""

import json
import shutil
import subprocess
import sys

import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import load_file

from heed.cli import model_facts
from heed.convert import huggingface
from heed.convert.architecture import UNTRAINED
from heed.loading import write_package
from heed.tasks import TASKS
from heed.tasks.described import DESCRIBED
from heed.version import __version__
from tests.convert import encoders
from tests.convert.small import SIZES, classifier, package, vocabularies
from tests.helpers import language_package
from tests.products.test_token_products import tagging_package

COMMIT = "a1b2c3d4" * 5
SEARCH = {
    "beam": 4,
    "length_penalty": 2.0,
    "penalty": "length",
    "stopping": "first",
    "max_length": 12,
    "force_end": True,
}
ARCHITECTURES = {
    "marian": "MarianMTModel", "bart": "BartForConditionalGeneration", "pegasus": "PegasusForConditionalGeneration",
}  # fmt: skip


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Folders of transformers, by kind."""
    folder = tmp_path_factory.mktemp("saved")
    facts = {"languages": {"source": "ko", "target": "en"}, "decoding": SEARCH}
    for kind in ARCHITECTURES:
        huggingface.write(package(kind)._replace(facts=facts), folder / kind)
    huggingface.write(classifier(), folder / "classifier")
    return folder


@pytest.fixture
def info(heed):
    def run(folder):
        code, out, err = heed("info", folder, "--json")
        assert code == 0, err
        return json.loads(out)

    return run


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_a_folder_of_transformers(info, saved, kind):
    found = info(saved / kind)
    assert list(found) == ["model", "text", "search", "origin"]
    assert found["model"].items() >= {"folder": str(saved / kind), "name": kind, **SIZES}.items()
    own = package(kind).model.state_dict().values()
    assert found["model"]["weights"] == f"{sum(weight.numel() for weight in own):,}"
    assert found["text"]["vocabulary"] == kind
    size = len(vocabularies(kind)[0])
    assert found["text"]["pieces"] == {"source": size, "target": size}
    assert found["text"]["longest"] == SIZES["max_length"]
    assert found["search"].items() >= SEARCH.items()
    assert found["origin"]["architecture"] == ARCHITECTURES[kind]
    if kind == "marian":
        assert found["text"]["languages"] == {"source": "ko", "target": "en"}


def test_old_pickles_are_told_like_safetensors(info, saved, tmp_path):
    folder = shutil.copytree(saved / "bart", tmp_path / "bart")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    expected, found = info(saved / "bart"), info(folder)
    assert found["model"].pop("folder") == str(folder)
    expected["model"].pop("folder")
    assert found == expected


def test_a_name_on_the_hub_with_its_commit(info, saved, tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
    own = tmp_path / "models--owner--opus-mt-ko-en"
    shutil.copytree(saved / "marian", own / "snapshots" / COMMIT)
    (own / "refs").mkdir()
    (own / "refs" / "main").write_text(COMMIT)
    found = info("owner/opus-mt-ko-en")
    assert found["model"]["folder"] == "owner/opus-mt-ko-en"
    assert found["model"]["dim"] == SIZES["dim"]
    assert found["origin"].items() >= {"name": "owner/opus-mt-ko-en", "revision": COMMIT}.items()


def test_a_classifier_has_labels_and_no_search(info, heed, saved, tmp_path):
    write_package(classifier(), tmp_path / "ours")
    for folder in (saved / "classifier", tmp_path / "ours"):
        found = info(folder)
        assert found["model"]["name"] == "bart"
        assert found["text"]["labels"] == ["no", "perhaps", "yes"]
        assert "search" not in found
        assert "no, perhaps, yes" in heed("info", folder)[1]


def made_run(folder, valid, own):
    folder.mkdir()
    (folder / "recipe.toml").write_text("")
    lines = [{"kind": "start"}, {"kind": "step", "step": 9, "loss": 1.0}, {"kind": "valid", "step": 9, **valid}]
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    trained = {"task": "classification", "weights": "step 9"}
    write_package(own._replace(facts={**own.facts, "trained": trained}), folder / "model")
    return folder


@pytest.mark.parametrize(
    "scores",
    [
        {"loss": 0.5, "accuracy": 87.5},
        {"loss": 0.5, "bleu": 1.0, "chrf": 2.0, "rouge": 3.0},
        {"loss": 0.5},
    ],
    ids=["classifier", "translator", "pre-training"],
)
def test_of_a_run_the_scores_that_there_are(info, tmp_path, scores):
    own = classifier() if "accuracy" in scores else package("bart")
    found = info(made_run(tmp_path / "run", scores, own))
    assert found["run"]["last validation"] == {"step": 9, **scores}
    assert found["model"]["folder"] == str(tmp_path / "run" / "model")
    assert found["trained"]["weights"] == "step 9"
    assert found["model"]["heed"] == __version__


def test_a_run_without_a_model_yet(info, tmp_path):
    shutil.rmtree(made_run(tmp_path / "run", {"loss": 0.5}, package("one")) / "model")
    assert list(info(tmp_path / "run")) == ["run"]


def rows_of(out):
    return dict(line.strip().split(maxsplit=1) for line in out.splitlines() if len(line.split()) > 1)


def test_our_own_in_a_table(heed, tmp_path):
    write_package(
        package("two")._replace(facts={"decoding": {"beam": 3}, "languages": {"source": "ko"}}), tmp_path / "a"
    )
    rows = rows_of(heed("info", tmp_path / "a", "--all")[1])
    sizes = [len(side) for side in vocabularies("two")]
    assert rows["vocabulary"] == "heed"
    assert rows["pieces"] == f"source {sizes[0]}, target {sizes[1]}"
    assert rows["languages"] == "source ko"
    assert rows["longest"] == "not stated"
    assert rows["output_bias"] == "no"
    assert rows["beam"] == "3"


def test_most_people_need_a_few_lines(heed, tmp_path):
    facts = {"decoding": {"beam": 3, "length_penalty": 0.6}, "languages": {"source": "ko", "target": "en"}}
    own = package("two")._replace(facts=facts)
    run = made_run(tmp_path / "run", {"loss": 0.5}, own)
    out = heed("info", run)[1]
    rows, sizes = rows_of(out), [len(side) for side in vocabularies("two")]
    assert len(out.splitlines()) <= 15
    assert rows["what"] == "a translator (ko → en)" and rows["search"] == "beam 3, length penalty 0.6"
    assert rows["vocabulary"] == f"source {sizes[0]:,} tokens · target {sizes[1]:,} tokens"
    assert rows["weights"].startswith(f"{sum(own.numel() for own in own.model.state_dict().values()):,}, ")
    assert rows["run"] == "step 9, not finished, 0 checkpoints" and rows["more"] == f"heed info {run} --all"
    shutil.rmtree(run / "model")
    rows = rows_of(heed("info", run)[1])
    assert rows["model"].startswith("none yet") and rows["validation"] == "step 9, loss 0.5"


def test_many_labels_are_cut(heed, tmp_path):
    write_package(classifier([f"label{i}" for i in range(12)]), tmp_path / "a")
    found = rows_of(heed("info", tmp_path / "a")[1])["labels"]
    assert found.startswith("label0, label1, ") and found.endswith("label7, … (12 in all)")
    assert "label11" in heed("info", tmp_path / "a", "--all")[1]


def test_labels_may_look_like_markup(heed, tmp_path):
    write_package(classifier(("[red]", "[/]", "c")), tmp_path / "a")
    for more in ((), ("--all",)):
        assert "[red], [/], c" in heed("info", tmp_path / "a", *more)[1]


def test_what_is_no_model_is_said(heed, tmp_path):
    (tmp_path / "empty").mkdir()
    assert heed("info", tmp_path / "empty")[::2] == (
        1, f"heed: {tmp_path}/empty is not a model folder: it has no config.json",
    )  # fmt: skip
    assert heed("info", tmp_path / "nowhere")[::2] == (1, f"heed: {tmp_path}/nowhere: no such folder")


WITHOUT_TORCH = """
import sys
from heed.cli.main import main
light = (["--version"], ["recipes"], ["completion", "bash"], ["vectors", "train", "--help"])
for words in (*light, *(["info", own] for own in sys.argv[1:])):
    try:
        assert main(words) == 0, words
    except SystemExit as done:
        assert not done.code
    assert "torch" not in sys.modules, words
"""


def test_what_needs_no_torch_does_not_import_it(tmp_path):
    run = made_run(tmp_path / "run", {"loss": 0.5}, package("two"))
    write_package(classifier(), tmp_path / "classifier")
    folders = [str(run), str(run / "model"), str(tmp_path / "classifier")]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *folders], capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"folder      {run}/model" in done.stdout and "no, perhaps, yes" in done.stdout


@pytest.mark.parametrize("kind", ["two", "bart", "classifier", "tagger", "gpt2"])
def test_the_files_say_what_the_opened_model_says(heed, tmp_path, monkeypatch, kind):
    made = {"classifier": classifier, "tagger": lambda: tagging_package("bert"), "gpt2": lambda: language_package(kind)}
    own = made[kind]() if kind in made else package(kind)
    trained = {"weights": "step 9", "valid_loss": 1.5, "valid_accuracy": 50.0, "valid_bleu": 2.0}
    facts = {**own.facts, "decoding": SEARCH, "trained": trained, "languages": {"source": "ko", "target": "en"}}
    write_package(own._replace(facts=facts), tmp_path / "a")
    assert model_facts.read(str(tmp_path / "a")) is not None
    quick = heed("info", tmp_path / "a")
    monkeypatch.setattr(model_facts, "read", lambda name: None)
    assert heed("info", tmp_path / "a") == quick


def test_a_folder_that_has_changed_is_opened(tmp_path):
    write_package(package("two"), tmp_path / "a")
    weights, config = tmp_path / "a" / "model.safetensors", tmp_path / "a" / "config.json"
    whole, facts = weights.read_bytes(), json.loads(config.read_text("utf-8"))
    weights.write_bytes(whole[:-1] + b"!")
    assert model_facts.read(str(tmp_path / "a")) is None
    weights.write_bytes(whole)
    assert model_facts.read(str(tmp_path / "a")) is not None
    for other in (
        {**facts, "languages": {"source": "de"}},
        {**facts, "sha256": {}},
        {**facts, "task": {"name": "new"}},
    ):
        config.write_text(json.dumps(other), "utf-8")
        assert model_facts.read(str(tmp_path / "a")) is None


def test_tasks_are_described_as_they_are():
    for name, task in TASKS.items():
        metrics = {metric.name: metric.label for metric in task.metrics}
        assert DESCRIBED[name] == (task.products[0].noun, task.example, metrics)
        assert list(DESCRIBED[name].metrics) == list(metrics)
    assert set(UNTRAINED) == DESCRIBED.keys() - TASKS.keys()


@pytest.mark.parametrize(("head", "task"), [("pair", "sentence-pairs"), ("causal", "causal-encoder")])
def test_an_encoder_with_a_head_that_heed_does_not_train_alone_is_described(heed, tmp_path, head, task):
    own = encoders.package("bert", head)._replace(task=task)
    write_package(own, tmp_path / "a")
    assert DESCRIBED[task].noun in heed("info", tmp_path / "a")[1].splitlines()[0]
    assert model_facts.of_package(str(tmp_path / "a"), own).task == DESCRIBED[task]
