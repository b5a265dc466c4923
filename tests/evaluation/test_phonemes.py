"""Phoneme error rate and word accuracy."""

import json

import pytest

from heed.cli.main import main
from heed.evaluation import phonemes

FOUND = ["B L AO1", "Z IH1 M", "K AH0"]
FIRST = ["B L ER1", "Z IH1 M", "K AH0 F F"]
SECOND = ["B L AO1", "Z IH1 M", "K AH0 F"]


def test_the_nearest_reference_counts():
    one, both = phonemes.score(FOUND, [FIRST]), phonemes.score(FOUND, [FIRST, SECOND])
    assert (one.per.substitutions, one.per.deletions, one.per.insertions, one.per.units) == (1, 2, 0, 10)
    assert one.per.rate == 30 and one.accuracy == pytest.approx(100 / 3)
    assert (both.per.rate, both.per.units) == (pytest.approx(100 / 9), 9) and both.accuracy == pytest.approx(200 / 3)
    assert phonemes.score(FOUND, [FOUND, FIRST]).per.rate == 0
    with pytest.raises(ValueError, match="must be as many"):
        phonemes.score(FOUND, [FIRST[:1]])


def test_the_command_scores_files(tmp_path, capsys):
    for name, lines in (("found", FOUND), ("one", FIRST), ("two", SECOND)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    found, one, two, out = (str(tmp_path / name) for name in ("found", "one", "two", "scores.json"))
    assert main(["evaluate", found, "--reference", one, two, "--phonemes", "--json", out]) == 0
    assert "phoneme error rate 11.11 %" in capsys.readouterr().out
    scores = json.loads((tmp_path / "scores.json").read_text("utf-8"))["phonemes"]
    assert scores["words"] == 3 and scores["per"]["deletions"] == 1
