"""Folders of a GPT-2 that transformers wrote, and what is refused in them."""

import json

import pytest
import torch
from torch import nn
from transformers import GPT2Config as TheirConfig
from transformers import GPT2LMHeadModel

import heed
from heed.convert import huggingface
from heed.loading import open_package
from heed.models.gpt2 import GPT2, GPT2Config
from heed.models.package import Package
from heed.vocabularies import gpt2 as vocabularies
from tests.data.mixed import training


@pytest.fixture(scope="module")
def vocabulary():
    return vocabularies.learn(training(), 500)[0]


@pytest.fixture
def package(vocabulary):
    torch.manual_seed(1)
    model = GPT2(GPT2Config(vocab_size=len(vocabulary), dim=24, heads=3, hidden=40, layers=2, max_length=30)).eval()
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.2)
    return Package(model, "language", {"text": vocabulary}, {})


def test_a_folder_of_theirs_opens_as_a_generator(package, vocabulary, tmp_path):
    torch.manual_seed(2)
    sizes = {"n_embd": 24, "n_head": 3, "n_layer": 2, "n_positions": 30, "vocab_size": len(vocabulary)}
    GPT2LMHeadModel(TheirConfig(**sizes, bos_token_id=0, eos_token_id=0)).save_pretrained(tmp_path / "theirs")
    vocabularies.write(tmp_path / "theirs", (vocabulary, vocabulary))
    generator = heed.load(tmp_path / "theirs", "cpu")
    assert generator.model.config.hidden == 96  # n_inner is null: four times n_embd
    assert generator.generate("I", length=5, seed=3) == generator.generate("I", length=5, seed=3)
    assert len(generator.generate("I", length=40)[0].tokens) == 40  # beyond its 30 positions
    with pytest.raises(ValueError, match="a line and its end have 53 tokens, but the model has only 30 positions"):
        generator.score(["I " * 26])


def test_another_activation_is_refused(package, tmp_path):
    huggingface.write(package, tmp_path / "out")
    path = tmp_path / "out" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "activation_function": "relu"}))
    with pytest.raises(ValueError, match="activation_function is 'relu'; heed's GPT2 supports only 'gelu_new'"):
        open_package(tmp_path / "out")


def test_a_language_model_samples_in_transformers_as_heed_generate_does(package, tmp_path):
    facts = {"trained": {"weights": "step 1"}, "decoding": {"beam": 5, "length_penalty": 0.6, "penalty": "wu"}}
    huggingface.write(package._replace(facts=facts), tmp_path / "out")
    said = json.loads((tmp_path / "out" / "generation_config.json").read_text("utf-8"))
    assert said["do_sample"] is True and said["num_beams"] == 1
    assert (said["temperature"], said["top_k"], said["top_p"]) == (1.0, 0, 1.0)
    assert "transformers has no such penalty" not in (tmp_path / "out" / "README.md").read_text("utf-8")
    theirs = {"decoding": {"beam": 3, "penalty": "length"}}  # of a folder that says how it is searched
    huggingface.write(package._replace(facts=theirs), tmp_path / "kept")
    assert json.loads((tmp_path / "kept" / "generation_config.json").read_text("utf-8"))["num_beams"] == 3


def test_the_card_of_two_heads_scores_choices(vocabulary, tmp_path, capsys, monkeypatch):
    config = GPT2Config(vocab_size=len(vocabulary), dim=24, heads=3, hidden=40, layers=1, max_length=30, choices=True)
    torch.manual_seed(1)
    huggingface.write(Package(GPT2(config), "language", {"text": vocabulary}, {}), tmp_path / "two")
    card = (tmp_path / "two" / "README.md").read_text("utf-8")
    assert ".generate(" not in card
    monkeypatch.chdir(tmp_path / "two")
    exec(card.split("```python\n")[1].split("```")[0], {})
    scores = json.loads(capsys.readouterr().out)
    assert len(scores) == 2 and scores[0] != scores[1]
