"""Images and recordings that are both trained and validated on are mentioned before training."""

import shutil

import numpy as np
import pytest
from PIL import Image

from heed.audio.files import write_wav
from heed.data import repeated
from heed.runs.recipe import parse

MODELS = {
    "image-classification": {"name": "vit", "patch": 4, "dim": 8, "heads": 2, "hidden": 8, "layers": 1},
    "image-generation": {"name": "image-transformer", "dim": 8, "heads": 2, "hidden": 8, "layers": 1},
    "speech-recognition": {"name": "speech-transformer", "dim": 8, "heads": 2, "hidden": 8},
    "speech-synthesis": {"name": "transformer-tts", "dim": 8, "heads": 2, "hidden": 8},
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))


def notes(task, data):
    recipe = parse({"data": data, "task": {"name": task}, "model": MODELS[task]})
    prepared = recipe.task.prepare(recipe, None, lambda what, done: None)
    return recipe.task.notes(recipe, prepared, recipe.task.validation(recipe, prepared), 100)


def images(folder, numbers):
    """Black images with one white pixel in a corner: none can be told by its middle."""
    for number in numbers:
        pixels = np.zeros((40, 40, 3), np.uint8)
        pixels[0, number] = 255
        path = folder / f"class{number % 2}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    return {"images": [str(folder)]}


@pytest.mark.parametrize("task", ["image-classification", "image-generation"])
def test_images_that_are_trained_on_are_counted(tmp_path, task):
    data = images(tmp_path / "train", range(8)) | {"valid_images": [str(tmp_path / "valid")]}
    images(tmp_path / "valid", range(8, 12))
    assert not any("also in the training data" in one for one in notes(task, data))
    shutil.copy(tmp_path / "train" / "class0" / "4.png", tmp_path / "valid" / "class0" / "another name.png")
    [told] = [one for one in notes(task, data) if "also in the training data" in one]
    assert told == (
        "1 of 5 validation images are also in the training data: scores on them say little about unseen images "
        "(remove them from one of the two)."
    )


@pytest.mark.parametrize("task", ["speech-recognition", "speech-synthesis"])
def test_recordings_that_are_trained_on_are_counted(tmp_path, task, monkeypatch):
    random, rows = np.random.default_rng(0), []
    for number in range(6):
        write_wav(tmp_path / f"{number}.wav", random.standard_normal(8000).astype(np.float32) * 0.1, 8000)
        rows.append(f"{number}.wav\thello {'ab' if number % 2 else 'ba'}\n")
    for name, own in (("train", rows[:4]), ("valid", rows[4:]), ("both", rows[3:])):
        (tmp_path / f"{name}.tsv").write_text("".join(own), "utf-8")
    data = {"audio": [str(tmp_path / "train.tsv")], "rate": 8000, "mels": 8, "speeds": [0.9, 1.0]}
    told = notes(task, data | {"valid_audio": [str(tmp_path / "valid.tsv")]})
    assert not any("also in the training data" in one for one in told)
    data |= {"valid_audio": [str(tmp_path / "both.tsv")]}
    assert notes(task, data)[0].startswith("1 of 3 validation recordings are also in the training data: scores")
    monkeypatch.setattr(repeated, "MOST", 8)
    assert notes(task, data)[0].startswith("1 of 3 validation")
    monkeypatch.setattr(repeated, "MOST", 2)
    assert notes(task, data)[0].startswith("1 at least of 3 validation")  # the last row is looked at
