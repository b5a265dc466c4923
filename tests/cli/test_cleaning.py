"""What was filtered, what is validated on and trained on, as the user is told."""

import json
import shutil

import pytest

from heed.data import contamination
from heed.files import cache_folder
from heed.text import language_id
from tests.cli.conftest import TINY, sets

PAIRS = [(f"word {a} and {b}", f"Wort {a} und {b}") for a in "abcdefgh" for b in "stuvwxyz"]
PLANTED = [
    ("Word a, and S", "etwas ganz anderes"),
    ("something else", "wort b und t"),
    ("", "leer"),
    ("in 1984", "in 1985"),
]
VALID = [("word a and s.", "wort A und s"), ("other words b t", "Wort B und T!")]


def write(folder, name, pairs):
    for end, texts in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
        (folder / f"{name}.{end}").write_text("".join(f"{text}\n" for text in texts), "utf-8")


@pytest.fixture
def command(tmp_path):
    """A training on planted faults, with validation files."""
    write(tmp_path, "train", [*PAIRS, *PLANTED])
    write(tmp_path, "valid", VALID)
    files = [f"--{part}{side}={tmp_path / name}.{end}" for part, name in (("", "train"), ("valid-", "valid"))
             for side, end in (("source", "en"), ("target", "de"))]  # fmt: skip
    settings = [one for one in TINY if not one.startswith(("data", "subwords"))] + ["subwords.size=300"]
    return ["train", *files, "--out", tmp_path / "run", *sets(settings)]


def test_overlaps_are_counted_said_and_shown(heed, command, tmp_path):
    code, _, err = heed(*command, "--rejected", tmp_path / "rejected.tsv", "--set", "filters.numbers=true")
    assert code == 0
    assert (
        "62 pairs to train on, of 68; filtered out: 1 for an empty side, 4 for a side also in the validation set" in err
    )
    assert "4 pairs are excluded from training because one side is also in the validation set" in err
    rows = [line.split("\t") for line in (tmp_path / "rejected.tsv").read_text("utf-8").splitlines()[1:]]
    assert sorted((rule, place) for rule, place, *_ in rows) == [
        ("empty", "train.en:67"), ("numbers", "train.en:68"), ("overlap", "train.en:1"), ("overlap", "train.en:10"),
        ("overlap", "train.en:65"), ("overlap", "train.en:66"),
    ]  # fmt: skip
    trained = contamination.read(tmp_path / "run" / contamination.FILE)
    assert not trained.seen("source", [source for source, _ in VALID]).any()
    assert not trained.seen("target", [target for _, target in VALID]).any()
    assert trained.seen("source", [source for source, _ in PAIRS]).sum() == 62


def test_overlaps_may_stay(heed, command, tmp_path):
    code, _, err = heed(*command, "--set", "filters.overlap=false")
    assert code == 0
    assert "67 pairs to train on, of 68; filtered out: 1 for an empty side ·" in err
    assert "are excluded from training" not in err


def test_a_filter_without_its_library_is_one_sentence(heed, command, monkeypatch):
    monkeypatch.setattr(language_id, "available", lambda: False)
    code, _, err = heed(*command, "--set", "filters.language=true")
    says = "heed: filters.language needs py3langid, which is not installed: pip install py3langid, or set it to false"
    assert code == 1 and err.endswith(says)
    assert heed(*command)[0] == 0


def test_evaluate_tells_what_was_trained_on(heed, trained, tmp_path):
    corpus = next((trained.parent.parent).glob("cache*/phrasebook-*"), None) or cache_folder()
    sides = [(corpus / f"train.{end}").read_text("utf-8").splitlines() for end in ("ko", "en")]
    pairs = [pair for pair in zip(*sides, strict=True) if all(4 < len(side.split()) < 8 for side in pair)]
    (tmp_path / "test.ko").write_text(f"{pairs[0][0].upper()} !\n새 문장입니다\n또 하나입니다\n", "utf-8")
    (tmp_path / "test.en").write_text(f"New.\n{pairs[2][1].lower()}\nNewer.\n", "utf-8")
    files = ["--source", tmp_path / "test.ko", "--reference", tmp_path / "test.en", "--json", tmp_path / "s.json"]
    says = "was trained on texts of 2 of 3 test pairs (1 source, 1 reference): scores on them say little about unseen text."
    for folder in (trained, trained / "model"):
        assert f"Warning: {folder} {says}" in heed("evaluate", folder, *files)[2]
    facts = json.loads((tmp_path / "s.json").read_text())["trained_on"]
    assert facts == {
        str(trained / "model"): {"sources": 1, "references": 1, "either": 2, "total": 3, "share": 1.0, "before": 0}
    }
    (tmp_path / "test.en").write_text("New.\nNewer.\nNewest.\n", "utf-8")
    (tmp_path / "test.ko").write_text("전혀 새로운 글\n" * 3, "utf-8")
    assert heed("evaluate", trained, *files)[2] == ""
    shutil.copytree(trained / "model", tmp_path / "copy")
    code, _, err = heed("evaluate", tmp_path / "copy", *files)
    assert code == 0
    assert "Not known: whether" in err and "was trained on these texts (it has no trained-texts.safetensors)." in err
    assert json.loads((tmp_path / "s.json").read_text())["trained_on"] == {str(tmp_path / "copy"): None}


NEW = [(f"thing {a} of {b}", f"Ding {a} von {b}") for a in "abcdefgh" for b in "stuvwxyz"]


def tuning(folder, base, out):
    files = ("--source", folder / "new.en", "--target", folder / "new.de")
    few = [one for one in TINY if one.startswith(("training", "filters"))]
    return ("train", "--from", base, *files, "--out", out, "--quiet", "--no-report", *sets(few))


def test_a_tuned_model_knows_what_its_base_was_trained_on(heed, command, tmp_path):
    """Also when the base is gone, and in a resumed run."""
    assert heed(*command, "--quiet", "--no-report")[0] == 0
    write(tmp_path, "new", NEW)
    base, out = tmp_path / "run", tmp_path / "tuned"
    assert heed(*tuning(tmp_path, base, out))[0] == 0
    shutil.rmtree(base)
    kept = (out / contamination.FILE).read_bytes()
    trained = contamination.read(out / contamination.FILE)
    own = [pair for pair in NEW if trained.seen("source", [pair[0]])[0]]
    write(tmp_path, "test", [PAIRS[5], PAIRS[6][::-1], own[0], ("quite", "anders")])
    words = ("evaluate", out, "--source", tmp_path / "test.en", "--reference", tmp_path / "test.de")
    says = (
        "was trained on texts of 3 of 4 test pairs (3 sources, 3 references), 2 of them only before fine-tuning: scores"
    )
    assert f"Warning: {out} {says}" in heed(*words)[2]
    assert heed("train", "--out", out, "--resume", "--quiet", "--no-report", "--set", "training.steps=6")[0] == 0
    assert (out / contamination.FILE).read_bytes() == kept
    (out / contamination.FILE).write_bytes(kept[:-1])
    code, _, err = heed("train", "--out", out, "--resume", "--quiet", "--no-report", "--set", "training.steps=8")
    assert code == 1 and f"{contamination.FILE} is damaged or belongs to another model" in err


def test_what_a_base_without_hashes_was_trained_on_is_not_known(heed, trained, tmp_path):
    write(tmp_path, "new", NEW)
    base, out = shutil.copytree(trained / "model", tmp_path / "plain"), tmp_path / "tuned"
    assert heed(*tuning(tmp_path, base, out))[0] == 0
    write(tmp_path, "test", [("quite", "anders")])
    files = ("--source", tmp_path / "test.en", "--reference", tmp_path / "test.de", "--json", tmp_path / "s.json")
    says = f"Not known: whether the model that {out} started from was trained on these texts."
    assert says in heed("evaluate", out, *files)[2]
    assert json.loads((tmp_path / "s.json").read_text("utf-8"))["trained_on"][str(out)]["before"] is None
    write(tmp_path, "test", NEW[:1])
    report = ("report", out, "--out", tmp_path / "page.html", *files[:4])
    assert heed(*report)[0] == 0
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "Not known: whether the model that training started from was trained on these pairs." in page
    fresh = (*tuning(tmp_path, base, tmp_path / "fresh"), "--set", "model.fresh=true")
    assert heed(*fresh)[0] == 0
    assert contamination.read(tmp_path / "fresh" / contamination.FILE).known, "its weights are new"


def test_both_directions_in_one_model(heed, tmp_path):
    """A validation pair that the other direction would train on is left out and counted; a test pair is found."""
    parts = {
        "train": PAIRS,
        "valid": [VALID[0], ("new", "neu")],
        "half": PAIRS[:32],
        "other": [PAIRS[9], ("old", "alt")],
    }
    for name, pairs in parts.items():
        write(tmp_path, name, pairs)
    text = ""
    for train, valid, sides in (("train", "valid", ("en", "de")), ("half", "other", ("de", "en"))):
        names = {"source": (train, 0), "target": (train, 1), "valid_source": (valid, 0), "valid_target": (valid, 1)}
        rows = (f'{key} = "{tmp_path / name}.{sides[side]}"\n' for key, (name, side) in names.items())
        text += "[[data.corpora]]\n" + "".join(rows)
    (tmp_path / "both.toml").write_text(text, "utf-8")
    settings = [one for one in TINY if not one.startswith(("data", "subwords"))] + ["subwords.size=300"]
    code, _, err = heed("train", tmp_path / "both.toml", "--out", tmp_path / "run", *sets(settings))
    assert code == 0
    both = "1 for a side also in the validation set (filters.overlap), 1 for being in the validation set in the other"
    assert f"train.en + train.de: 62 of 64 pairs, weight 1; filtered out: {both}" in err
    assert f"half.de + half.en: 30 of 32 pairs, weight 1; filtered out: {both}" in err
    assert "2 pairs are excluded from training because they are in the validation set in the other direction" in err
    assert "also in the training data" not in err
    write(tmp_path, "test", [PAIRS[40], (PAIRS[41][0], "etwas anderes"), ("quite", "anders"), VALID[0]])
    files = ("--source", tmp_path / "test.de", "--reference", tmp_path / "test.en")
    code, _, err = heed("evaluate", tmp_path / "run", "--from", "de", *files)
    assert code == 0 and "was trained on texts of 2 of 4 test pairs (1 source, 2 references): scores" in err
    report = heed("report", tmp_path / "run", "--from", "de", *files, "--out", tmp_path / "page.html", "--alone")
    assert report[0] == 0
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "On the test set, the model was trained on texts of 2 of 4 test pairs (1 source, 2 references)" in page
    assert "<b>2</b><small>pairs with a side in the training text" in page
