"""GPT-2 between heed and transformers: the same logits, weights to the bit, the same ids."""

import json

import pytest
import torch
from torch import nn
from transformers import AutoTokenizer, GPT2LMHeadModel
from transformers import GPT2Config as TheirConfig

import heed
from heed.convert import huggingface
from heed.loading import open_package
from heed.models.gpt2 import GPT2, GPT2Config
from heed.models.package import Package
from heed.vocabularies import gpt2 as vocabularies
from tests.data.mixed import lines, training


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


def test_logits_are_theirs(package, tmp_path):
    huggingface.write(package, tmp_path / "out")
    theirs = GPT2LMHeadModel.from_pretrained(tmp_path / "out", dtype=torch.float64).eval()
    ours, tokens = package.model.double(), torch.randint(0, 500, (3, 30))
    found = ours.project(ours.hidden_states(tokens))
    torch.testing.assert_close(found, theirs(tokens).logits, rtol=0, atol=1e-10)


def test_it_comes_back_as_it_went(package, tmp_path):
    huggingface.write(package, tmp_path / "out")
    back = open_package(tmp_path / "out")
    assert (back.task, back.model.config, type(back.model)) == ("language", package.model.config, GPT2)
    weights = package.model.state_dict()
    assert all(torch.equal(weight, weights[name]) for name, weight in back.model.state_dict().items())
    assert back.processors["text"].encode(lines()) == package.processors["text"].encode(lines())


@pytest.mark.parametrize("form", ["slow", "fast"])
def test_ids_are_those_of_their_tokenizer(package, form, tmp_path):
    huggingface.write(package, tmp_path / "out")
    theirs = AutoTokenizer.from_pretrained(tmp_path / "out")
    if form == "fast":
        theirs.save_pretrained(tmp_path / "saved")
        assert (tmp_path / "saved" / "tokenizer.json").is_file()
    own = vocabularies.read(tmp_path / ("saved" if form == "fast" else "out"))[0]
    clean = [own.clean(line) for line in lines()]
    assert own.encode(clean) == theirs(clean)["input_ids"]
    assert [own.decode(ids) for ids in own.encode(clean)] == clean
    assert own.special.last == theirs.eos_token_id and len(own) == len(theirs)


def test_a_folder_of_theirs_opens_as_a_generator(package, vocabulary, tmp_path):
    torch.manual_seed(2)
    sizes = {"n_embd": 24, "n_head": 3, "n_layer": 2, "n_positions": 30, "vocab_size": len(vocabulary)}
    GPT2LMHeadModel(TheirConfig(**sizes, bos_token_id=0, eos_token_id=0)).save_pretrained(tmp_path / "theirs")
    vocabularies.write(tmp_path / "theirs", (vocabulary, vocabulary))
    generator = heed.load(tmp_path / "theirs", "cpu")
    assert generator.model.config.hidden == 96  # n_inner is null: four times n_embd
    assert generator.generate("I", length=5, seed=3) == generator.generate("I", length=5, seed=3)
    with pytest.raises(
        ValueError, match="the prompt and 40 more tokens are 42 tokens, but the model has positions for 30"
    ):
        generator.generate("I", length=40)


def test_another_activation_is_refused(package, tmp_path):
    huggingface.write(package, tmp_path / "out")
    path = tmp_path / "out" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "activation_function": "relu"}))
    with pytest.raises(ValueError, match="activation_function is 'relu'; heed's GPT2 is made for 'gelu_new' alone"):
        open_package(tmp_path / "out")
