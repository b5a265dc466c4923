"""A model without positions is trained, saved, loaded and translates; what cannot take it says so."""

import json

from tests.cli.conftest import TINY, sets


def test_a_model_without_positions(heed, tmp_path):
    run = tmp_path / "run"
    settings = [*TINY, "model.positions=none", "model.norm=post"]
    code, _, err = heed("train", "recipes/phrasebook.toml", "--out", run, "--quiet", "--no-report", *sets(settings))
    assert code == 0, err
    assert json.loads((run / "model" / "config.json").read_text("utf-8"))["model"]["positions"] == "none"
    assert heed("translate", run, "나는 책을 읽어요.")[0] == 0
    assert "positions" in heed("info", run, "--all")[1]
    code, _, err = heed("convert", run, "--to", "huggingface", "--out", tmp_path / "hf")
    assert code == 1
    assert "positions are 'none'; a Hugging Face Marian has sinusoids: train with positions = 'sinusoidal'" in err
    assert heed("convert", run, "--to", "ctranslate2", "--out", tmp_path / "ct2")[0] == 0


def test_positions_that_there_are_not(heed, tmp_path):
    code, _, err = heed(
        "train", "recipes/phrasebook.toml", "--out", tmp_path / "run", *sets(["model.positions=rotary"])
    )
    assert code == 1
    assert "positions" in err and "'none'" in err and not (tmp_path / "run").exists()
