"""Reranking and guards on the command line."""

import json
import shutil

import pytest

import heed as library
from heed.decoding.config import UNGUARDED

TEXTS = ["나는 학생이에요.", "우유를 마셔요."]


def test_reranking_gives_what_python_gives(heed, trained):
    code, out, _ = heed("translate", trained, "--rerank", "mbr", "--candidates", 3, "--utility", "bleu", *TEXTS)
    found = library.load(trained, "cpu").translate(TEXTS, rerank="mbr", candidates=3, utility="bleu")
    assert code == 0 and out.splitlines() == [one.text for one in found]


def test_evaluate_scores_what_translate_says(heed, trained, tmp_path):
    files = [tmp_path / "source", tmp_path / "reference"]
    for file in files:
        file.write_text("".join(f"{text}\n" for text in TEXTS), "utf-8")
    options = ("--rerank", "mbr", "--candidates", 3, "--candidates-from", "both", "--engine", "auto", "--allow-copies")
    given = ("--source", files[0], "--reference", files[1], "--out", tmp_path / "out")
    assert heed("evaluate", trained, *given, *options)[0] == 0
    assert (tmp_path / "out").read_text("utf-8") == heed("translate", trained, *TEXTS, *options)[1]


def test_guards_can_be_switched_off(heed, trained):
    flags = ("--allow-loops", "--allow-overlong", "--allow-copies")
    off = {"avoid_loops": False, "avoid_overlong": False, "avoid_copies": False}
    found = library.load(trained, "cpu").translate(TEXTS, **off)
    assert heed("translate", trained, *flags, *TEXTS)[1].splitlines() == [one.text for one in found]


@pytest.fixture(scope="module")
def imported(trained, tmp_path_factory):
    """The same model with the search settings of one of transformers."""
    folder = tmp_path_factory.mktemp("imported") / "model"
    shutil.copytree(trained / "model", folder)
    facts = json.loads((folder / "config.json").read_text("utf-8"))
    facts["decoding"] |= UNGUARDED
    del facts["sha256"]
    (folder / "config.json").write_text(json.dumps(facts), "utf-8")
    return folder


def test_guards_can_be_switched_on(heed, trained, imported, tmp_path):
    names = ("loops", "overlong", "copies")
    on, off = ([f"--{what}-{name}" for name in names] for what in ("avoid", "allow"))
    code, guarded, _ = heed("translate", imported, *on, *TEXTS)
    model = library.load(imported, "cpu")
    wanted = model.translate(TEXTS, avoid_loops=True, avoid_overlong=True, avoid_copies=True)
    assert code == 0 and guarded.splitlines() == [one.text for one in wanted]
    assert guarded != heed("translate", imported, *TEXTS)[1] == heed("translate", imported, *on, *off, *TEXTS)[1]
    mono = tmp_path / "mono.ko"
    mono.write_text("".join(f"{text}\n" for text in TEXTS), "utf-8")
    assert heed("backtranslate", imported, mono, "--out", tmp_path / "pairs.tsv", *on)[0] == 0
    rows = (tmp_path / "pairs.tsv").read_text("utf-8").splitlines()
    assert [row.split("\t")[0] for row in rows] == guarded.splitlines()
    summaries = heed("summarize", imported, mono, "--lines", "--avoid-loops")[1].splitlines()
    assert summaries == [one.text for one in model.translate(TEXTS, avoid_loops=True)]
    code, _, said = heed("translate", imported, "--avoid-overlong", "--beam", 1, *TEXTS)
    assert code != 0 and "avoid_overlong is true, but greedy search (beam 1) has no alternatives" in said


def test_what_does_not_go_together_is_refused(heed, trained, tmp_path):
    code, _, said = heed("translate", trained, "--rerank", "mbr", "--candidates", 1, *TEXTS)
    assert code != 0 and "candidates is 1; it must be at least 2" in said
    code, _, said = heed("evaluate", trained, "--text", tmp_path / "text", "--allow-loops")
    assert code != 0 and "--allow-loops is for translations: it cannot be combined with --text" in said
    code, _, said = heed("evaluate", trained, "--text", tmp_path / "text", "--avoid-loops")
    assert code != 0 and "--avoid-loops is for translations: it cannot be combined with --text" in said
