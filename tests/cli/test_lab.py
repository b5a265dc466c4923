"""heed lab: tables and a sentence on the screen, a picture and numbers in a folder."""

import importlib
import inspect
import json
import re
import shutil
from base64 import b64encode
from dataclasses import asdict
from html import escape

import pytest
import torch
from safetensors.torch import load_file, save_file

from heed.cli import lab
from heed.lab.charts import Table
from heed.lab.experiment_page import Shown, build_page
from heed.lab.experiments import complexity, gradients, norms, positions, scaling
from heed.lab.language import speaking

SMALL = {
    "gradients": (gradients, ["--dim", 8, "--length", 6, "--draws", 1], {"dim": 8, "length": 6, "draws": 1}),
    "positions": (positions, ["--dim", 10, "--length", 9], {"dim": 10, "length": 9}),
    "scaling": (scaling, ["--keys", 8], {"keys": 8}),
    "norms": (norms, ["--dim", 8, "--layers", 3, "--draws", 1], {"dim": 8, "layers": 3, "draws": 1}),
}


@pytest.mark.parametrize("name", SMALL)
def test_what_is_measured_is_printed_drawn_and_written(heed, tmp_path, name):
    module, settings, sizes = SMALL[name]
    code, out, err = heed("lab", name, "--out", tmp_path / "a" / "b", *settings)
    assert code == 0
    result = module.measure(**sizes)
    flat = " ".join(out.split())
    for table in module.tables(result):
        assert table.title in flat
        assert all(row[-1].split()[0] in flat for row in table.rows)
    assert module.summary(result) in flat
    folder = tmp_path / "a" / "b"
    assert sorted(path.name for path in folder.iterdir()) == [f"{name}.html", f"{name}.json", f"{name}.png"]
    assert f"{folder}/{name}.png, {folder}/{name}.json, {folder}/{name}.html" in err
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    said = json.loads((folder / f"{name}.json").read_text("utf-8"))
    assert said == {"lab": name, "says": module.summary(result), **asdict(result)}


def test_the_same_numbers_give_the_same_picture(heed, tmp_path):
    for folder in ("a", "b"):
        assert heed("lab", "positions", "--out", tmp_path / folder)[0] == 0
    assert (tmp_path / "a" / "positions.png").read_bytes() == (tmp_path / "b" / "positions.png").read_bytes()
    assert len((tmp_path / "a" / "positions.png").read_bytes()) < 150_000


def test_costs_are_measured_on_the_device_that_was_named(heed, tmp_path, monkeypatch):
    monkeypatch.setattr(complexity, "WIDTHS", (8, 16))
    code, out, _ = heed(
        "lab", "complexity", "--out", tmp_path, "--dim", 16, "--length", 8, "--tokens", 32, "--device", "cpu"
    )
    assert code == 0
    assert "Milliseconds on cpu for 32 tokens" in " ".join(out.split())
    said = json.loads((tmp_path / "complexity.json").read_text("utf-8"))
    assert [device["name"] for device in said["devices"]] == ["cpu"]
    assert set(said) == {"lab", "says", *complexity.Complexity.__dataclass_fields__}


def test_all_of_them(heed, tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr(lab, "MEASURES", {name: (lambda args, name=name: f"{name} measured") for name in lab.MEASURES})

    def show(name, *words):
        shown.append((name, *words))
        return Shown(name, f"Title of {name}", "What it says.", [], b"picture", words[-1])

    monkeypatch.setattr(lab, "_show", show)
    assert heed("lab", "all", "--out", tmp_path, "--seed", 3, "--lang", "ko")[0] == 0
    names = [name for name in lab.LABS if name != "bottleneck"]
    assert [words[:3] for words in shown] == [(name, f"{name} measured", tmp_path) for name in names]
    commands = {name: command for name, _, _, command in shown}
    assert commands["gradients"] == f"heed lab gradients --seed 3 --out {tmp_path} --lang ko"
    index = (tmp_path / "index.html").read_text("utf-8")
    assert re.findall(r'<a href="(\w+)\.html">Title of (\w+)</a>', index) == [(name, name) for name in names]
    assert '<html lang="ko">' in index and f"<code>heed lab all --seed 3 --out {tmp_path} --lang ko</code>" in index


def test_the_page_of_a_lab_has_all_of_it_and_loads_nothing(heed, tmp_path):
    assert heed("lab", "scaling", "--out", tmp_path, "--keys", 8, "--lang", "ko")[0] == 0
    page = (tmp_path / "scaling.html").read_text("utf-8")
    picture = b64encode((tmp_path / "scaling.png").read_bytes()).decode()
    with speaking("ko"):
        result = scaling.measure(keys=8)
        texts = [
            scaling.summary(result),
            *(cell for table in scaling.tables(result) for cell in (table.title, *table.columns)),
        ]
    assert [text for text in texts if escape(text) not in page] == []
    assert f'<img src="data:image/png;base64,{picture}" alt="스코어를 √dₖ로 나누는 이유">' in page
    assert '<html lang="ko">' in page and f"<code>heed lab scaling --keys 8 --out {tmp_path} --lang ko</code>" in page
    assert not re.search(r"https?:|//\w|<script|@import", re.sub('base64,[^)"]*', "", page))


def test_columns_of_text_wrap_and_start_at_the_left():
    tables = [
        Table("Why", ("name", "value", "reason"), [("a", "1.5e-22", "a reason of several words")]),
        Table("None", ("name",), []),
    ]
    page = build_page(Shown("why", "Why", "", tables, b"", ""))
    assert '<th scope="col">value</th><th scope="col" class="prose">reason</th>' in page
    assert '<td>1.5e-22</td><td class="prose">a reason of several words</td>' in page


def test_every_lab_has_a_line_settings_and_a_measurement():
    assert set(lab.LABS) == set(lab.MEASURES) == set(lab.SETTINGS) - {"all"}


@pytest.mark.parametrize("name", sorted(set(lab.LABS) - {"positions", "complexity", "bottleneck"}))
def test_every_setting_is_one_of_the_measurement(name):
    measure = importlib.import_module(f"heed.lab.experiments.{name}").measure
    assert {option.removeprefix("--") for option in lab.SETTINGS[name]} <= set(inspect.signature(measure).parameters)


@pytest.fixture
def learned(trained, tmp_path):
    """The model of the tests, as if it had learned its positions."""
    folder = shutil.copytree(trained / "model", tmp_path / "model")
    facts = json.loads((folder / "config.json").read_text())
    facts["model"]["positions"] = "learned"
    del facts["sha256"]  # of other weights
    (folder / "config.json").write_text(json.dumps(facts))
    weights = load_file(folder / "model.safetensors")
    places = torch.randn(facts["model"]["max_length"], facts["model"]["dim"])
    save_file({**weights, "positions.places.weight": places}, folder / "model.safetensors")
    return folder, places


def test_learned_positions_of_a_model(heed, learned, tmp_path):
    folder, places = learned
    code, out, _ = heed("lab", "positions", "--out", tmp_path / "lab", "--model", folder, "--length", 10)
    assert code == 0
    assert "learned: minimum" in " ".join(out.split())
    said = json.loads((tmp_path / "lab" / "positions.json").read_text("utf-8"))
    assert torch.allclose(torch.tensor(said["learned"]["values"]), places[:10])
    assert said["model"] == str(folder)


def test_a_model_without_learned_positions(heed, trained, tmp_path):
    code, _, err = heed("lab", "positions", "--out", tmp_path / "lab", "--model", trained)
    assert code == 1
    assert err == (
        f'heed: {trained} has no learned positions: --model needs a model trained with positions = "learned", or a BART'
    )
    assert not (tmp_path / "lab").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["norms", "--threads", "0"], "--threads is 0; it must be at least 1"),
        (["positions", "--dim", "7"], "dim is 7; it must be even: one sine and one cosine per frequency"),
        (["scaling", "--keys", "1"], "keys is 1; it must be at least 2"),
        (["complexity", "--device", "tpu"], "device is 'tpu'; it must be auto, cpu or cuda"),
        (["positions", "--model", "no/such/folder"], "no/such/folder: no such folder"),
    ],
)
def test_what_cannot_be_measured_is_a_sentence(heed, tmp_path, words, says):
    code, _, err = heed("lab", *words, "--out", tmp_path / "lab")
    assert code == 1
    assert says in err
    assert not (tmp_path / "lab").exists()


def test_two_systems_of_one_name(heed, tmp_path):
    for folder in "ab":
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "said").write_text("yes\n")
    text = tmp_path / "a" / "said"
    given = ("--source", text, "--reference", text, "--out", tmp_path / "lab")
    code, _, err = heed("lab", "bottleneck", text, tmp_path / "b" / "said", *given)
    assert code == 1
    assert f"two systems are called said: give one of them another name, as in NAME={tmp_path}/b/said" in err


def test_a_file_in_the_place_of_the_folder(heed, tmp_path):
    (tmp_path / "file").write_text("mine")
    code, _, err = heed("lab", "scaling", "--out", tmp_path / "file")
    assert (code, err) == (1, f"heed: --out {tmp_path}/file is a file; give a folder")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["gradient", "--out", "x"], "'all' (did you mean 'gradients'?); heed lab --help lists the options"),
        ([], "the following arguments are required: NAME"),
        (["scaling"], "the following arguments are required: --out"),
        (["scaling", "--out", "x", "--model", "y"], "unknown: --model y"),
    ],
)
def test_a_word_that_argparse_does_not_know(heed, capsys, words, says):
    with pytest.raises(SystemExit) as error:
        heed("lab", *words)
    assert error.value.code == 2
    assert says in capsys.readouterr().err
