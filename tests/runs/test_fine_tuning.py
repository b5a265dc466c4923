"""Runs that start from a language model: GPT's fine-tuning, prompt tuning, continued pre-training."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import heed
from heed.cli.main import main
from heed.loading import open_package, write_package
from heed.models import MODELS
from heed.models.package import Package
from heed.runs.recipe import parse
from heed.vocabularies import folder as vocabularies
from heed.vocabularies.text_parts import TextParts
from tests.contract.contract import TRAINING, check_same, resume, train

TEXTS = [
    "the cat sees a dog",
    "a dog likes the sea",
    "the house is old",
    "an old dog sleeps",
    "the sea is cold",
    "a cat runs",
]
SIZES = {"dim": 16, "heads": 2, "hidden": 64, "layers": 1, "max_length": 40}


@pytest.fixture(scope="module", params=["gpt", "gpt2", "ctrl"])
def base(request, tmp_path_factory):
    """A small language model, with two rows more than its vocabulary has tokens."""
    folder, system = tmp_path_factory.mktemp(request.param), MODELS[request.param]
    vocabulary = vocabularies.learn(request.param, TEXTS * 3, 320)[0]
    torch.manual_seed(1)
    model = system.model(system.config(vocab_size=len(vocabulary) + 2, **SIZES)).eval()
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.2)
    write_package(Package(model, "language", {"text": vocabulary}, {"window": 20}), folder / "base")
    return folder / "base"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    pairs = [
        f"{one}\t{two}\t{len(one) / 10}\t{i % 2}" for i, (one, two) in enumerate(zip(TEXTS, TEXTS[::-1], strict=True))
    ]
    (folder / "pairs.tsv").write_text("\n".join(["a\tb\tscore\tanswer", *pairs]) + "\n")
    (folder / "text.txt").write_text("\n".join(TEXTS) + "\n")
    return folder


def recipe(base, files, task, columns=None, model=None, **settings):
    tables = {"tsv": [str(files / "pairs.tsv")], "valid_tsv": [str(files / "pairs.tsv")], "columns": columns}
    text = {"source": [str(files / "text.txt")], "valid_source": [str(files / "text.txt")]}
    return parse({
        "data": tables if columns else text, "task": {"name": task, **settings}, "training": TRAINING,
        "model": {"folder": str(base), **(model or {})}, **({"filters": {"overlap": False, "max_length": 40}} if columns else {}),
    })  # fmt: skip


def weights(folder):
    return load_file(folder / "model" / "model.safetensors")


def test_regression_on_pairs_resumes_to_the_bit_and_its_folder_comes_back(base, files, tmp_path, capsys):
    own = recipe(base, files, "regression", ["a", "b", "score"], both_orders=True, lm_weight=0.5)
    assert train(own, tmp_path / "whole").how == "finished"
    shutil.copytree(tmp_path / "whole", tmp_path / "killed")
    resume(own, tmp_path / "whole", tmp_path / "again")
    check_same(tmp_path / "whole", tmp_path / "again")
    shutil.rmtree(tmp_path / "killed" / "checkpoints" / "step-000002")  # a run with a model goes on from its own copy
    assert train(own, tmp_path / "killed", resume=True).how == "finished"
    check_same(tmp_path / "whole", tmp_path / "killed")
    package, before = open_package(tmp_path / "whole"), open_package(base)
    text, size = package.processors["text"], before.model.config.vocab_size
    assert isinstance(text, TextParts) and list(text.tokens) == [size, size + 1, size + 2]
    assert text.vocabulary.key() == before.processors["text"].key() and package.model.config.vocab_size == size + 3
    write_package(package, tmp_path / "copy")
    first, second = (heed.load(folder, "cpu") for folder in (tmp_path / "whole", tmp_path / "copy"))
    pairs = [("a dog", "the old sea"), ("a cat", "a cat runs")]
    found = [one.number for one in first.classify(pairs)]
    assert found == [one.number for one in second.classify(pairs)]
    assert found == pytest.approx([one.number for one in first.classify([pair[::-1] for pair in pairs])], abs=1e-5)
    with pytest.raises(ValueError, match="text 1 has 1 part, but the model expects 2 parts: separate parts with tabs"):
        first.classify(["a dog"])
    scores = tmp_path / "scores.json"
    words = [
        "--tsv",
        str(files / "pairs.tsv"),
        "--against",
        str(tmp_path / "copy"),
        "--samples",
        "10",
        "--json",
        str(scores),
    ]
    assert main(["evaluate", str(tmp_path / "whole"), *words]) == 0
    assert json.loads(scores.read_text())["differences"]["pearson"] == {"value": 0.0, "p_value": 1.0}
    assert main(["classify", str(tmp_path / "whole"), "--tsv", str(files / "pairs.tsv"), "--scores"]) == 1
    assert "is a regression model: it predicts no probabilities; leave --scores out" in capsys.readouterr().err


def test_the_same_network_with_new_weights_is_another_model_with_the_same_tokens(base, files, tmp_path):
    own = recipe(base, files, "classification", ["a", "answer"], {"fresh": True}, lm_weight=0.5)
    assert train(own, tmp_path / "run").how == "finished"
    found, before = open_package(tmp_path / "run"), open_package(base)
    assert found.model.config.vocab_size == before.model.config.vocab_size + 3
    assert found.model.tokens.weight.abs().max() < before.model.tokens.weight.abs().max()


def test_prompt_tuning_learns_the_prompt_alone_and_the_folder_generates(base, files, tmp_path):
    own = recipe(base, files, "language", model={"prompt": 3}, window=20, reading="documents", document="line")
    assert train(own, tmp_path / "whole").how == "finished"
    resume(own, tmp_path / "whole", tmp_path / "again")
    check_same(tmp_path / "whole", tmp_path / "again")
    after, before = weights(tmp_path / "whole"), load_file(base / "model.safetensors")
    assert after.keys() - before.keys() == {"prompt"} and after["prompt"].shape == (3, SIZES["dim"])
    assert all(torch.equal(after[name], weight) for name, weight in before.items())
    generator = heed.load(tmp_path / "whole", "cpu")
    assert generator.generate("a", length=4, seed=1) == generator.generate("a", length=4, seed=1)
    plain = heed.load(base, "cpu")
    assert generator.score(["a dog"])[0].logp != plain.score(["a dog"])[0].logp


def test_prompt_tuning_of_a_classifier_learns_the_prompt_and_the_head(base, files, tmp_path):
    own = recipe(base, files, "classification", ["a", "b", "answer"], {"prompt": 2})
    assert train(own, tmp_path / "run").how == "finished"
    after, before = weights(tmp_path / "run"), load_file(base / "model.safetensors")
    assert after.keys() - before.keys() == {"prompt", "head.out.weight"}
    assert all(torch.equal(after[name], weight) for name, weight in before.items())
    assert heed.load(tmp_path / "run", "cpu").classify([("a dog", "the sea")])[0].label in ("0", "1")


def test_pretraining_goes_on_from_a_model_with_its_vocabulary(base, files, tmp_path):
    own = recipe(base, files, "language", window=20)
    assert train(own, tmp_path / "whole").how == "finished"
    resume(own, tmp_path / "whole", tmp_path / "again")
    check_same(tmp_path / "whole", tmp_path / "again")
    after, before = open_package(tmp_path / "whole"), open_package(base)
    assert (
        after.processors["text"].key() == before.processors["text"].key() and after.model.config == before.model.config
    )
    moved = (weights(tmp_path / "whole")["tokens.weight"] - before.model.tokens.weight).abs().max()
    assert 0 < moved < 0.01  # it goes on from these weights: a step moves a weight by no more than the rate


@pytest.mark.parametrize(
    ("model", "task", "says"),
    [
        ({"prompt": 3, "fresh": True}, {}, "model.prompt is 3; it needs model.folder"),
        ({"prompt": -1}, {}, "model.prompt is -1; it needs model.folder"),
        ({}, {"both_orders": True}, "task.both_orders is true, but there is only one text: set two text columns"),
        ({}, {"lm_weight": -1.0}, "task.lm_weight is -1.0; it must be 0"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(files, model, task, says):
    with pytest.raises(ValueError, match=says):
        recipe("somewhere", files, "classification", ["a", "answer"], model, **task)


def test_a_number_that_is_none_and_columns_that_a_task_lacks_are_said(files, tmp_path):
    values = {
        "data": {"tsv": [str(files / "pairs.tsv")], "columns": ["a", "b"]},
        "task": {"name": "regression"},
        "model": {"name": "gpt"},
    }
    with pytest.raises(ValueError, match=r"pairs\.tsv:2: 'a cat runs' is not a number, and regression needs numbers"):
        train(parse({**values, "training": TRAINING}), tmp_path / "run")
    with pytest.raises(
        ValueError, match=r"data\.columns is \[1, 2, 3\]; translation has two columns, source and target"
    ):
        parse({"data": {"tsv": ["a.tsv"], "columns": [1, 2, 3]}})
    with pytest.raises(ValueError, match=r"task\.lm_weight is 0\.5, but a BART is not a language model: set it to 0"):
        parse({**values, "task": {"name": "regression", "lm_weight": 0.5}, "model": {"name": "bart"}})


def test_double_heads_are_trained_and_score_as_in_transformers(base, files, tmp_path, capsys):
    own = recipe(base, files, "multiple-choice", ["a", "a", "b", "answer"], lm_weight=0.5)
    assert train(own, tmp_path / "run").how == "finished"
    package = open_package(tmp_path / "run")
    assert package.model.config.choices and package.model.head.out.weight.shape == (1, SIZES["dim"])
    model = heed.load(tmp_path / "run", "cpu")
    [found] = model.classify([("a dog", "the sea", "a cat")])
    [other] = model.classify([("a dog", "a cat", "the sea")])
    assert found.probabilities["0"] == pytest.approx(other.probabilities["1"], abs=1e-6)
    with pytest.raises(ValueError, match="text 1 has 3 choices, but the model was trained with 2: give the context"):
        model.classify([("a", "b", "c", "d")])
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text("utf-8").splitlines()]
    assert all("loss_language" in line for line in log if line["kind"] == "step")
    exported = main(["convert", str(tmp_path / "run"), "--to", "huggingface", "--out", str(tmp_path / "hf")]) == 0
    if isinstance(package.model, MODELS["ctrl"].model):
        assert not exported and "no equivalent of a CTRL with such a head or a prompt" in capsys.readouterr().err
        return
    assert exported
    _exported_scores_are(found.probabilities, tmp_path / "hf")


def _exported_scores_are(probabilities, folder):
    """In transformers, with the texts as the card writes them; and the folder opens in heed again."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    theirs = getattr(transformers, json.loads((folder / "config.json").read_text("utf-8"))["architectures"][0])
    assert theirs.__name__.endswith("DoubleHeadsModel") and "<start>A text.<delimiter>" in (
        folder / "README.md"
    ).read_text("utf-8")
    choices = [tokenizer(f"<start>a dog<delimiter>{own}<extract>")["input_ids"] for own in ("the sea", "a cat")]
    with torch.inference_mode():
        model = theirs.from_pretrained(folder).eval()
        scores = [
            model(torch.tensor([[ids]]), mc_token_ids=torch.tensor([[len(ids) - 1]])).mc_logits for ids in choices
        ]
    expected = torch.cat(scores, dim=1).softmax(dim=1)[0]
    assert expected.tolist() == pytest.approx(list(probabilities.values()), abs=1e-6)
    assert open_package(folder).model.config.choices
