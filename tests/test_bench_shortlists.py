"""Shortlists of several target languages are compared without a model."""

import json

import pytest
from bench import shortlists

from heed.data import shortlist
from tests import fixed_pairs


@pytest.fixture
def files(tmp_path):
    pairs = fixed_pairs.pairs("train", 300)
    sides = {"source": [pair.source for pair in pairs], "en": [pair.target for pair in pairs]}
    sides["up"] = [text.upper() for text in sides["en"]]  # a language of its own
    for name, texts in sides.items():
        (tmp_path / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8", newline="\n")
    targets = [f"{code}={tmp_path / code}" for code in ("en", "up")]
    source = str(tmp_path / "source")
    return ["--source", source, "--targets", *targets, "--valid-source", source, "--valid-targets", *targets]


def test_a_list_by_tags_is_nearly_as_good_as_one_of_each_language(files, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(shortlist, "SIZES", ((60, 3),))
    assert shortlists.main([*files, "--size", "900", "--json", str(tmp_path / "found.json")]) == 0
    found = json.loads((tmp_path / "found.json").read_text("utf-8"))
    assert "60+3 up by tags: a sentence" in capsys.readouterr().out
    for code in ("en", "up"):
        one, tagged, alone = (row for row in found["rows"] if row["language"] == code)
        assert [row["list"] for row in (one, tagged, alone)] == ["one list", "by tags", "alone"]
        assert tagged["subwords"] >= alone["subwords"] > one["subwords"]
        assert tagged["a sentence"] >= alone["a sentence"] and tagged["16 sentences"] > tagged["a sentence"]
