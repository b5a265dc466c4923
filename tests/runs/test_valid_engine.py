"""Which search validates: chosen from facts when a run begins, and kept from then on."""

import dataclasses
import json
import tomllib
from types import SimpleNamespace

import pytest
import torch

from heed.models.transformer import TransformerConfig
from heed.products.translator.engines import compiled, cuda
from heed.runs import valid_engine
from heed.runs.earlier import upgraded
from heed.runs.recipe import parse
from heed.runs.train import run as train
from heed.runs.valid_engine import Choice, Facts, as_before, choose, chosen, expected_validations, with_engine
from tests import fixed_pairs
from tests.runs.test_stopping import Silent

GPU, FLOAT = torch.device("cuda", 0), torch.bfloat16


@pytest.mark.parametrize(
    ("facts", "engine", "says"),
    [
        (Facts(True, True, 1), "cuda", "whose kernels have been compiled here before"),
        (Facts(True, False, 20), "cuda", "20 validations at most are worth compiling its kernels"),
        (Facts(True, False, 2000), "cuda", "2,000 validations at most are worth"),
        (
            Facts(True, False, 19),
            "torch",
            "for 19 validations at most, compiling the kernels of the GPU's takes longer",
        ),
        (Facts(True, False, 1), "torch", "for 1 validation at most"),
        (Facts(False, True, 2000), "torch", None),
    ],
    ids=str,
)
def test_the_fast_search_is_chosen_where_it_saves_time(facts, engine, says):
    found, why = choose(facts)
    assert found == engine
    assert (says is None and why == "") or says in why


@pytest.mark.parametrize(
    ("training", "count"),
    [
        ({"steps": 10_000, "valid_every": 500}, 20),
        ({"steps": 9_999, "valid_every": 500}, 19),
        ({"steps": 100, "valid_every": 500}, 0),
        ({"steps": 1_000_000, "valid_every": 500, "time": "10m"}, 3),
        ({"steps": 1_000_000, "valid_every": 500, "time": "2h"}, 36),
        ({"steps": 1_000, "valid_every": 500, "time": "+2h"}, 2),
    ],
    ids=str,
)
def test_validations_are_expected_by_steps_and_by_time(training, count):
    assert expected_validations(recipe(training=training).training) == count


def recipe(**sections):
    return parse({"data": {"source": ["a.en"], "target": ["a.de"]}, **sections})


@pytest.fixture
def gpu(monkeypatch, tmp_path):
    """As if there were a GPU, with a cache of Triton's."""
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    (tmp_path / "triton").mkdir()
    monkeypatch.setattr(cuda, "supports_device", lambda device: device.type == "cuda")
    monkeypatch.setattr(valid_engine.weights, "supports", lambda model: True)
    monkeypatch.setattr(compiled, "gpu_name", lambda device: "NVIDIA H200" if device.type == "cuda" else None)
    monkeypatch.setattr(compiled, "_versions", lambda: ("1", "2", "3"))


@pytest.fixture
def model():
    return SimpleNamespace(config=TransformerConfig(vocab_size=100))


def test_it_depends_on_device_task_model_and_what_was_compiled(gpu, model, monkeypatch):
    few = {"steps": 900, "valid_every": 300}
    assert chosen(recipe(training=few), model, GPU, FLOAT).engine == "torch"
    compiled.remember(model.config, FLOAT, 1, GPU)
    assert chosen(recipe(training=few), model, GPU, FLOAT).engine == "cuda"
    assert chosen(recipe(training=few), model, GPU, torch.float32).engine == "torch"
    assert chosen(recipe(training={**few, "valid_beam": 4}), model, GPU, FLOAT).engine == "torch"
    many = recipe(training={"steps": 9000, "valid_every": 300, "valid_beam": 4})
    assert chosen(many, model, GPU, FLOAT).engine == "cuda"
    nothing = Choice("torch", "")
    assert chosen(many, model, torch.device("cpu"), FLOAT) == nothing
    labels = parse({"data": {"tsv": ["a.tsv"]}, "task": {"name": "classification"}, "model": {"name": "bart"}})
    assert chosen(labels, model, GPU, FLOAT) == nothing
    monkeypatch.setattr(valid_engine.weights, "supports", lambda model: False)
    assert chosen(many, model, GPU, FLOAT) == nothing


def test_kernels_are_known_for_what_they_are_compiled_for(gpu, model, monkeypatch, tmp_path):
    config = model.config
    assert not compiled.known(config, FLOAT, 1, GPU)
    compiled.remember(config, FLOAT, 1, GPU)
    same = dataclasses.replace(config, dropout=0.3, attention_dropout=0.1, encoder_layers=9, max_length=77)
    assert compiled.known(config, FLOAT, 1, GPU) and compiled.known(same, FLOAT, 1, GPU)
    assert not compiled.known(dataclasses.replace(config, dim=2 * config.dim), FLOAT, 1, GPU)
    assert not compiled.known(config, torch.float32, 1, GPU)
    assert not compiled.known(config, FLOAT, 5, GPU)
    assert not compiled.known(config, FLOAT, 1, torch.device("cpu"))
    for name, value in (
        ("_versions", lambda: ("1", "2", "4")),
        ("gpu_name", lambda device: "NVIDIA A100"),
        ("_versions", lambda: None),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(compiled, name, value)
            assert not compiled.known(config, FLOAT, 1, GPU)
            compiled.remember(config, FLOAT, 1, torch.device("cpu"))  # nothing to remember
    with monkeypatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path / "elsewhere"))
        assert not compiled.known(config, FLOAT, 1, GPU)
    (tmp_path / "triton").rmdir()
    assert not compiled.known(config, FLOAT, 1, GPU), "Triton's own cache was cleared"


def test_a_cache_that_cannot_be_written_stops_nothing(gpu, model, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("", "utf-8")
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "file"))
    compiled.remember(model.config, FLOAT, 1, GPU)
    assert not compiled.known(model.config, FLOAT, 1, GPU)


def test_a_resumed_run_keeps_its_engine(tmp_path):
    own = recipe()
    assert own.training.valid_engine == "auto"
    assert as_before(own, tmp_path, resume=True) is own, "no recipe to read"
    (tmp_path / "recipe.toml").write_text(with_engine(own, "cuda").to_toml(), "utf-8")
    assert as_before(own, tmp_path, resume=True).training.valid_engine == "cuda"
    assert as_before(own, tmp_path, resume=False) is own
    given = recipe(training={"valid_engine": "torch"})
    assert as_before(given, tmp_path, resume=True) is given


def test_a_run_of_an_earlier_version_goes_on_with_the_plain_search():
    assert upgraded({"training": {"steps": 9}})["training"] == {"steps": 9, "valid_engine": "torch"}
    assert upgraded({"training": {"valid_engine": "cuda"}})["training"] == {"valid_engine": "cuda"}


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A recipe whose training takes a second."""
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))
    pairs = list(fixed_pairs.pairs("train", 60))
    for name in ("source", "target"):
        (tmp_path / name).write_text("".join(f"{getattr(pair, name)}\n" for pair in pairs), "utf-8")
    layers = {"encoder_layers": 1, "decoder_layers": 1, "dim": 8, "hidden": 8, "heads": 2}

    def small(**training):
        given = {"steps": 2, "valid_every": 2, "batch_tokens": 300, "device": "cpu", **training}
        data = {"source": [str(tmp_path / "source")], "target": [str(tmp_path / "target")], "holdout": 8}
        return parse(
            {
                "data": data, "subwords": {"kind": "words"}, "model": {"name": "transformer", **layers}, "training": given,
                "decoding": {"max_length": 5},
            }
        )  # fmt: skip

    return small


def trained(recipe, folder, **how):
    report = Silent()
    train(recipe, folder, report=lambda *of: report, **how)
    return tomllib.loads((folder / "recipe.toml").read_text("utf-8"))["training"]["valid_engine"], report.said


def test_the_choice_is_told_once_recorded_and_not_made_again(small, tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(valid_engine, "chosen", lambda *of: (made.append(of), Choice("cuda", "Because."))[1])
    engine, said = trained(small(), tmp_path / "run")
    assert (engine, "Because." in said, len(made)) == ("cuda", True, 1)
    engine, said = trained(small(steps=4), tmp_path / "run", resume=True)
    assert (engine, "Because." in said, len(made)) == ("cuda", False, 1)
    assert not any("valid_engine" in sentence for sentence in said)
    starts = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text("utf-8").splitlines()]
    assert [one["valid_engine"] for one in starts if one["kind"] == "start"] == ["cuda", "cuda"]


def test_on_a_cpu_nothing_changes_and_nothing_is_said(small, tmp_path):
    engine, said = trained(small(), tmp_path / "run")
    assert engine == "torch"
    assert not any("alidations use" in sentence for sentence in said)
