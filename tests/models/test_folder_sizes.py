"""A model folder is looked at before anything of the sizes that it states is allocated."""

import json
from dataclasses import fields

import pytest
import torch

from heed.files import write_json
from heed.models import MODELS, folder
from heed.models.folder import CONFIG, WEIGHTS, outline, shapes, weight_shapes
from heed.models.transformer import Transformer, TransformerConfig
from heed.vocabularies import folder as vocabularies
from tests.contract.contract import SMALL

SIZES = {"inputs": 9, "outputs": 8, "vocab_size": 50, "items": 50, "max_length": 64, **SMALL}


def small_config(system):
    known = {one.name for one in fields(system.config)}
    return system.config(**{name: value for name, value in SIZES.items() if name in known})


@pytest.fixture
def saved(tmp_path):
    """A folder of a small model, and a function that changes a setting of its model."""
    folder.save(tmp_path, Transformer(small_config(MODELS["transformer"])), {})

    def change(**settings):
        facts = json.loads((tmp_path / CONFIG).read_text("utf-8"))
        write_json(tmp_path / CONFIG, {**facts, "model": {**facts["model"], **settings}})
        return tmp_path

    return change


@pytest.fixture
def devices(monkeypatch):
    """Where models are built."""
    found, build = [], Transformer.__init__

    def noted(self, config):
        found.append(torch.get_default_device().type)
        build(self, config)

    monkeypatch.setattr(Transformer, "__init__", noted)
    return found


@pytest.mark.parametrize("name", MODELS)
def test_the_outline_of_a_model_has_the_shapes_of_the_model(name):
    config = small_config(MODELS[name])
    assert outline(MODELS[name].model, config) == shapes(MODELS[name].model(config).state_dict())


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"dim": 60_000}, r"has shape \(16,\), but according to config\.json it should be \(60000,\)"),
        ({"vocab_size": 9_000_000}, r"it should be \(9000000, 16\)"),
        ({"encoder_layers": 40}, r"model.safetensors lacks encoder.+ and \d+ more: it belongs to another model, or is incomplete"),
        ({"max_length": 1 << 20, "dim": 4096}, "model.max_length is 1048576: the position table would have 4,294,967,296 numbers"),
    ],
)  # fmt: skip
def test_a_config_that_does_not_fit_its_weights_is_refused_before_it_is_built(saved, devices, settings, sentence):
    path = saved(**settings)
    with pytest.raises(ValueError, match=sentence):
        folder.load(path)
    assert devices == ["meta"]


@pytest.mark.parametrize(
    ("name", "value"), [("dim", 1_000_000), ("max_length", 1 << 40), ("encoder_layers", 10**9), ("hidden", 10**12)]
)
def test_sizes_that_no_model_has_are_refused_before_anything_is_built(saved, devices, name, value):
    path = saved(**{name: value})
    with pytest.raises(ValueError, match=rf"config.json: model.{name} is {value}; it must be at most "):
        folder.load(path)
    assert devices == []


def test_a_folder_that_fits_is_built_once(saved, devices):
    path = saved()
    model = folder.load(path)
    assert devices == ["meta", "cpu"]
    assert weight_shapes(path / WEIGHTS) == shapes(model.state_dict())
    assert all(weight.device.type == "cpu" for weight in [*model.parameters(), *model.buffers()])


@pytest.mark.parametrize("name", ["../other/subwords.spm", "/etc/passwd", "a/b.spm", "..", "", "a\\b"])
def test_the_subwords_of_a_folder_are_in_it(tmp_path, name):
    with pytest.raises(ValueError, match=r"config.json: the subwords of the source are .+ a file in the same folder"):
        vocabularies.read(tmp_path, {"source": name, "target": "subwords.spm"})


def test_the_largest_sizes_are_those_of_no_model_that_is_known():
    """NLLB-200 of 54 billion weights has a vocabulary of 256,206, 2,048 units, 8,192 hidden ones and 24 + 24 layers."""
    sizes = {"vocab_size": 256_206, "dim": 2_048, "hidden": 8_192, "heads": 16, "encoder_layers": 24}
    assert TransformerConfig(**sizes, decoder_layers=24).dim == 2_048
