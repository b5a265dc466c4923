"""The whole way in bench/endtoend.py: processes are measured, take turns, and do the same work. How fast, no test asks."""

import json
import random
import sys
import tomllib
from pathlib import Path

import pytest
import torch
from bench import endtoend, endtoend_systems, endtoend_training
from bench.endtoend import Run
from bench.rows import Shape
from transformers import MarianMTModel

import heed
from heed.cli import main as cli
from heed.decoding.config import UNGUARDED

JOB = endtoend.Training(Path(), Shape(1000, 32, 2, 64, 1, 0.1), 4, 512, 1)


def test_a_process_is_measured(tmp_path):
    found = endtoend.measure(
        [sys.executable, "-c", "print('hello'); print('{\"seconds\": 1.5}')"], 1, tmp_path, tmp_path
    )
    assert found.bulk == 1.5
    assert found.busy > 0 and found.wall > 0 and 1 < found.memory < 10_000
    assert endtoend.measure([sys.executable, "-c", "pass"], 1, tmp_path, tmp_path).bulk is None
    with pytest.raises(RuntimeError, match="ended with 3: no such thing"):
        endtoend.measure(
            [sys.executable, "-c", "import sys; sys.stderr.write('no such thing'); sys.exit(3)"], 1, tmp_path, tmp_path
        )


def test_each_has_its_turn_and_the_first_does_not_count():
    told = []
    systems = {name: lambda name=name: told.append(name) or Run(len(told), 0.0, 0.0, None) for name in "abc"}
    found = endtoend.in_turns(systems, 2)
    assert "".join(told) == "abc" + "abc" + "bca"
    assert [run.wall for run in found["a"]] == [4, 9]


def test_a_system_can_be_asked_again(monkeypatch, tmp_path):
    asked, told = endtoend.Asked(tmp_path, endtoend.write_texts(tmp_path, 2)["bulk"], 5, 25, 1), []
    monkeypatch.setattr(endtoend, "measure", lambda command, *of: told.append(command))
    for run in (endtoend.library("ctranslate2", asked), endtoend.command_line(asked, True)):
        told.clear()
        run(), run()
        assert told[0] == told[1] and "25" in told[0]


def test_the_median_of_each_number_counts():
    runs = [Run(1.0, 9.0, 5.0, None), Run(3.0, 7.0, 6.0, 2.0), Run(2.0, 8.0, 4.0, 4.0)]
    assert endtoend.medians(runs) == Run(2.0, 8.0, 5.0, 3.0)


def test_files_of_one_line_of_all_and_of_four_times_as_many(tmp_path):
    files = endtoend.write_texts(tmp_path, 5)
    lines = {name: path.read_text("utf-8").splitlines() for name, path in files.items()}
    assert {name: len(own) for name, own in lines.items()} == {"one": 1, "bulk": 5, "memory": 20}
    assert lines["memory"][:5] == lines["bulk"] and lines["bulk"][:1] == lines["one"]


@pytest.mark.parametrize(
    "name",
    ["heed, Python", "heed, Python, without overlap", "heed, the search alone", "ctranslate2", "transformers"],
)
@pytest.mark.filterwarnings("default")
def test_every_system_writes_a_translation_of_each_line(models, tmp_path, capsys, name):
    source = endtoend.write_texts(tmp_path, 3)["bulk"]
    endtoend_systems.main(name, str(models), str(source), str(tmp_path / "out"), "2", "6", "1")
    assert json.loads(capsys.readouterr().out)["seconds"] > 0
    lines = (tmp_path / "out").read_text("utf-8").splitlines()
    assert len(lines) == 3 and all(lines)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    from bench import shared

    folder = tmp_path_factory.mktemp("endtoend")
    shared.write(folder, endtoend.SHAPES["toy"], ["transformers", "ctranslate2"])
    return folder


def test_names_are_those_of_the_systems(tmp_path, capsys):
    asked = endtoend.Asked(tmp_path, endtoend.write_texts(tmp_path, 2)["bulk"], 5, 25, 1, "cuda")
    every = {*endtoend.one_sentence(asked, tmp_path), *endtoend.bulk(asked, tmp_path)}
    every |= {*endtoend.training(JOB._replace(folder=tmp_path), tmp_path)}
    assert every == {*endtoend.NAMES}
    with pytest.raises(SystemExit):
        endtoend.main(["--systems", "nobody"])
    assert "no system is called nobody: choose from import torch, heed translate," in capsys.readouterr().err


def test_the_device_is_told_unless_it_is_the_cpu(monkeypatch, tmp_path):
    """An older checkout, which is measured beside, does not know it."""
    asked, told = endtoend.Asked(tmp_path, endtoend.write_texts(tmp_path, 2)["bulk"], 5, 25, 1), []
    monkeypatch.setattr(endtoend, "measure", lambda command, *of: told.append(command))
    for own in (asked, asked._replace(device="cuda")):
        endtoend.library("heed, Python", own)(), endtoend.command_line(own, False)()
    assert [command[-1] for command in told[::2]] == ["1", "cuda"]
    assert [command[command.index("--device") + 1] for command in told[1::2]] == ["cpu", "cuda"]
    told.clear()
    for run in endtoend.one_sentence(asked._replace(device="cuda"), None).values():
        run()
    devices = [[command[at + 1] for at, word in enumerate(command) if word == "--device"] for command in told]
    assert devices[1] == ["auto"] and ["auto", "cuda"] in devices  # as people type it, and on the GPU


@pytest.mark.filterwarnings("default")
def test_both_train_a_model_of_one_size_from_the_same_texts(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))
    job, threads = JOB._replace(folder=tmp_path), torch.get_num_threads()
    endtoend.write_pairs(tmp_path, 600)
    _, *words = endtoend._heed(job, tmp_path / "own")
    assert cli.main(words) == 0
    recipe = tomllib.loads((tmp_path / "own" / "recipe.toml").read_text("utf-8"))
    assert (recipe["training"]["steps"], recipe["training"]["batch_tokens"], recipe["subwords"]["size"]) == (
        4,
        512,
        1000,
    )
    _, stated = endtoend._marian(job, tmp_path / "peer")
    endtoend_training.main(stated)
    facts = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert facts["seconds"] > 0 and 4 < facts["loss"] < 8 and 0 <= facts["bleu"] < 10
    models = heed.load(tmp_path / "own").model, MarianMTModel.from_pretrained(tmp_path / "peer")
    own, peer = (sum(part.numel() for part in model.parameters()) for model in models)
    tables = sum(part.numel() for part in models[1].parameters() if part.ndim == 2 and part.shape == (256, 32))
    assert own - (peer - tables) == 2 * 2 * 32, (
        "Heed norms the output of both sides, and Marian's parameters hold sinusoids"
    )
    torch.set_num_threads(threads)


def test_batches_of_the_peer_keep_to_the_budget_and_miss_no_pair():
    chance = random.Random(1)
    sides = [[[chance.randrange(4, 50) for _ in range(chance.randrange(1, 30))] + [3] for _ in range(99)] for _ in "ab"]
    made, found = endtoend_training.batches(*sides, budget=256, seed=1), []
    while len(found) < 99:
        sources, inputs, labels = next(made)
        assert max(sources.size, labels.size) <= 256 and inputs.shape == labels.shape
        assert (inputs[:, 0] == 2).all() and (
            inputs[:, 1:][labels[:, 1:] >= 0] == labels[:, :-1][labels[:, 1:] >= 0]
        ).all()
        rows = zip(sources.tolist(), labels.tolist(), strict=True)
        found += [([i for i in own if i], [i for i in other if i >= 0]) for own, other in rows]
    assert sorted(found) == sorted(zip(*sides, strict=True))


def test_the_guards_are_off_in_both_ways():
    assert len(endtoend.GUARDS) == len(UNGUARDED)


@pytest.mark.long
def test_the_whole_bench_runs(tmp_path, capsys):
    words = [
        "--shape",
        "toy",
        "--lines",
        "6",
        "--rounds",
        "1",
        "--threads",
        "1",
        "--length",
        "6",
        "--json",
        str(tmp_path / "j"),
    ]
    assert endtoend.main(words) == 0
    told = json.loads((tmp_path / "j").read_text("utf-8"))
    assert set(told["6 lines"]) >= {"heed translate", "heed, Python", "heed, the search alone"}
    assert "import torch" in told["one sentence"] and "24 lines" in told
