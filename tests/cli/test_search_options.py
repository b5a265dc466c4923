"""Reranking and guards on the command line."""

import heed as library

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


def test_what_does_not_go_together_is_refused(heed, trained, tmp_path):
    code, _, said = heed("translate", trained, "--rerank", "mbr", "--candidates", 1, *TEXTS)
    assert code != 0 and "candidates is 1; it must be at least 2" in said
    code, _, said = heed("evaluate", trained, "--text", tmp_path / "text", "--allow-loops")
    assert code != 0 and "--allow-loops is for translations: it cannot be combined with --text" in said
