"""Weights of Hugging Face folders: every kind of file gives the same, and nothing in them is run."""

import json
import os
import pickle

import pytest
import torch
from safetensors.torch import save_file

from heed.convert import weights

HELD = {f"layer.{i}.weight": torch.arange(12.0).reshape(3, 4) + i for i in range(5)}


def shards(folder, name, save):
    """The weights in two shards with their index."""
    stem, ending = name.split(".")
    names = [f"{stem}-0000{i}-of-00002.{ending}" for i in (1, 2)]
    places = {weight: names[i % 2] for i, weight in enumerate(HELD)}
    for shard in names:
        save({weight: HELD[weight] for weight, place in places.items() if place == shard}, folder / shard)
    (folder / f"{name}.index.json").write_text(json.dumps({"metadata": {"total_size": 240}, "weight_map": places}))
    return places


def old_file(held, path):
    torch.save(held, path, _use_new_zipfile_serialization=False)


WRITERS = {
    "safetensors": lambda folder: save_file(HELD, folder / "model.safetensors"),
    "safetensors in shards": lambda folder: shards(folder, "model.safetensors", save_file),
    "a pickle": lambda folder: torch.save(HELD, folder / "pytorch_model.bin"),
    "a pickle of the years before zip": lambda folder: old_file(HELD, folder / "pytorch_model.bin"),
    "pickles in shards": lambda folder: shards(folder, "pytorch_model.bin", torch.save),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_every_kind_of_file_gives_the_same_weights(tmp_path, kind):
    WRITERS[kind](tmp_path)
    found = weights.read(tmp_path)
    assert found.keys() == HELD.keys()
    assert all(torch.equal(found[name], HELD[name]) for name in HELD)


def test_safetensors_are_taken_where_there_is_a_pickle_too(tmp_path):
    WRITERS["safetensors in shards"](tmp_path)
    torch.save({"another": torch.ones(1)}, tmp_path / "pytorch_model.bin")
    assert weights.read(tmp_path).keys() == HELD.keys()


def test_a_weight_that_the_index_does_not_name_is_not_dropped(tmp_path):
    places = shards(tmp_path, "model.safetensors", save_file)
    shard = places.pop("layer.3.weight")
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    assert shard in places.values()
    assert weights.read(tmp_path).keys() == HELD.keys()


def test_of_a_weight_in_two_shards_the_one_that_the_index_names_is_taken(tmp_path):
    places = shards(tmp_path, "model.safetensors", save_file)
    first, last = sorted(set(places.values()))
    name = next(name for name, place in places.items() if place == first)
    own = {weight: HELD[weight] for weight, place in places.items() if place == last}
    save_file({**own, name: torch.zeros(1)}, tmp_path / last)
    assert torch.equal(weights.read(tmp_path)[name], HELD[name])


class Evil:
    """Leaves a file where it is opened."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_pickle_that_would_run_code_is_refused_and_nothing_runs(tmp_path, zipped):
    ran, path = tmp_path / "ran", tmp_path / "pytorch_model.bin"
    torch.save({**HELD, "more": Evil(ran)}, path, _use_new_zipfile_serialization=zipped)
    with pytest.raises(ValueError) as error:
        weights.read(tmp_path)
    assert str(error.value) == (
        f"{path} is a pickle that contains more than weights (it asks for {os.mkdir.__module__}.mkdir). Loading it "
        "could run arbitrary code, so heed refuses: get the model as model.safetensors"
    )
    assert not ran.exists()
    torch.load(path, weights_only=False)
    assert ran.exists(), "it would have run"


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_plain_pickle_that_would_run_code_is_refused_too(tmp_path, protocol):
    ran = tmp_path / "ran"
    (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps(Evil(ran), protocol))
    with pytest.raises(ValueError, match=r"contains more than weights .* so heed refuses"):
        weights.read(tmp_path)
    assert not ran.exists()


def test_a_pickle_in_a_shard_is_refused_too(tmp_path):
    places = shards(tmp_path, "pytorch_model.bin", torch.save)
    torch.save({"more": Evil(tmp_path / "ran")}, tmp_path / sorted(set(places.values()))[1])
    with pytest.raises(ValueError, match=r"00002-of-00002\.bin is a pickle that contains more than weights"):
        weights.read(tmp_path)
    assert not (tmp_path / "ran").exists()


def test_an_index_that_names_a_missing_shard(tmp_path):
    places = shards(tmp_path, "model.safetensors", save_file)
    gone = sorted(set(places.values()))[1]
    (tmp_path / gone).unlink()
    with pytest.raises(ValueError) as error:
        weights.read(tmp_path)
    assert str(error.value) == (
        f"{tmp_path}/model.safetensors.index.json names {gone}, which is not in the folder (1 of 2 shards are): "
        "copy it again"
    )


def test_an_index_that_promises_a_weight_that_its_shard_lacks(tmp_path):
    places = shards(tmp_path, "model.safetensors", save_file)
    first = sorted(set(places.values()))[0]
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {**places, "layer.9.weight": first}}))
    with pytest.raises(ValueError, match=f"says that {first} holds layer.9.weight, but it does not"):
        weights.read(tmp_path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is not a shard index: it has no weight_map"),
        ("[]", "is not a shard index: it has no weight_map"),
        ('{"metadata": {}}', "is not a shard index: it has no weight_map"),
        ('{"weight_map": {}}', "is not a shard index: its weight_map is empty"),
        (
            '{"weight_map": {"a": "../other/x.safetensors"}}',
            "names '../other/x.safetensors'; a shard must be a file in the",
        ),
        ('{"weight_map": {"a": 3}}', "names 3; a shard must be a file in the same folder"),
    ],
)
def test_an_index_that_is_none(tmp_path, text, says):
    (tmp_path / "model.safetensors.index.json").write_text(text)
    with pytest.raises(ValueError) as error:
        weights.read(tmp_path)
    assert says in str(error.value)


def test_no_weights(tmp_path):
    with pytest.raises(
        ValueError, match=r"has no weights: neither model.safetensors nor pytorch_model.bin, nor an index"
    ):
        weights.read(tmp_path)


def test_weights_of_another_library_are_named(tmp_path):
    (tmp_path / "tf_model.h5").write_bytes(b"")
    with pytest.raises(ValueError, match=r"has no weights: .*; heed does not read tf_model.h5"):
        weights.read(tmp_path)


@pytest.mark.parametrize("kind", ["safetensors", "a pickle"])
def test_a_file_cut_short(tmp_path, kind):
    WRITERS[kind](tmp_path)
    [path] = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:150])
    with pytest.raises(ValueError, match=r"is damaged or truncated \(.*\): copy it again"):
        weights.read(tmp_path)


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
def test_a_note_of_git_lfs_instead_of_the_file(tmp_path, name):
    (tmp_path / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 4\n")
    with pytest.raises(ValueError, match=f"{name} is a Git LFS pointer, .* run git lfs pull"):
        weights.read(tmp_path)


@pytest.mark.parametrize("held", [[torch.ones(2)], {"state": HELD}, torch.ones(3)])
def test_a_pickle_without_names(tmp_path, held):
    torch.save(held, tmp_path / "pytorch_model.bin")
    with pytest.raises(ValueError, match="is not a state dict"):
        weights.read(tmp_path)
