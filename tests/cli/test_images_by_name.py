"""Image models by their name on the hub, from the cache: the same results as from a folder."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from huggingface_hub import constants
from PIL import Image
from transformers import ViTForImageClassification, ViTImageProcessorPil, ViTModel

from heed.cli.main import main

COMMIT = "a1b2c3d4" * 5
SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24, "patch_size": 4}
NAMES = {"id2label": {0: "cat", 1: "dog"}, "label2id": {"cat": 0, "dog": 1}}
PROCESSING = {"size": {"height": 8, "width": 8}, "image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.25, 0.3]}


@pytest.fixture
def cached(tmp_path, monkeypatch):
    """A function that puts a ViT into the cache and gives its folder. The hub is not asked: listing the files of a commit
    is tried for a minute.
    """
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "heed"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)

    def put(kind, name):
        torch.manual_seed(0)
        own = tmp_path / "cache" / f"models--me--{name}"
        folder = own / "snapshots" / COMMIT
        kind(transformers.ViTConfig(**SIZES, **NAMES, image_size=8)).save_pretrained(folder)
        ViTImageProcessorPil(**PROCESSING).save_pretrained(folder)
        (own / "refs").mkdir()
        (own / "refs" / "main").write_text(COMMIT)
        return str(folder)

    return put


@pytest.fixture
def images(tmp_path):
    random = np.random.default_rng(0)
    for name in ("cat/0", "cat/1", "dog/0", "dog/1"):
        path = tmp_path / "images" / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 256, (9, 12, 3), dtype=np.uint8)).save(path)
    return str(tmp_path / "images")


@pytest.mark.parametrize("name", ["me/vit", f"me/vit@{COMMIT}"])
def test_a_name_does_what_its_folder_does(cached, images, name, tmp_path, capsys):
    folder, found = cached(ViTForImageClassification, "vit"), []
    for system in (name, folder):
        own = tmp_path / str(len(found))
        assert main(["classify", system, images]) == 0
        classes = capsys.readouterr().out
        assert main(["embed", system, images, "--out", f"{own}.npy"]) == 0
        assert main(["evaluate", system, "--images", images, "--json", f"{own}.json"]) == 0
        scores = json.loads((tmp_path / f"{own}.json").read_text("utf-8")) | {"system": None}
        capsys.readouterr()
        found.append((classes, np.load(f"{own}.npy").tobytes(), scores))
    assert found[0] == found[1]
    assert "dog\t0." in found[0][0]


def test_a_body_embeds_by_its_name(cached, images, tmp_path):
    cached(ViTModel, "body")
    assert main(["embed", "me/body", images, "--out", str(tmp_path / "v.npy")]) == 0
    assert np.load(tmp_path / "v.npy").shape == (4, 16)


def test_text_options_of_a_named_image_model_are_refused(cached, tmp_path, capsys):
    cached(ViTForImageClassification, "vit")
    (tmp_path / "a.txt").write_text("a\n", "utf-8")
    assert main(["evaluate", "me/vit", "--text", str(tmp_path / "a.txt")]) == 1
    assert "me/vit is an image classifier: give images with --images" in " ".join(capsys.readouterr().err.split())


def test_a_file_that_looks_like_a_name_is_a_file(cached, tmp_path):
    from heed.cli.common import product_of_model

    (tmp_path / "me").mkdir()
    (tmp_path / "me" / "translations.txt").write_text("a\n", "utf-8")
    assert product_of_model("me/translations.txt") is None
    assert product_of_model("runs/none") is None


def test_a_folder_that_does_not_say_how_images_are_read_is_refused(cached, tmp_path, capsys):
    folder = cached(ViTForImageClassification, "vit")
    (Path(folder) / "preprocessor_config.json").unlink()
    assert main(["info", folder]) == 1
    error = " ".join(capsys.readouterr().err.split())
    assert "has no preprocessor_config.json, which states how images are read: copy it from the original" in error
