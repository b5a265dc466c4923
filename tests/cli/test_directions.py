"""From several corpora to a model of several directions, and on to one that is fine-tuned on a mix."""

import json

import pytest

from heed.models.folder import WEIGHTS
from heed.runs import final_validation
from heed.runs.report.collect import Options, collect
from tests import fixed_pairs

SETTINGS = """
[subwords]
size = 700
[filters]
max_length = 40
[model]
dim = 16
heads = 2
hidden = 32
encoder_layers = 1
decoder_layers = 1
[training]
threads = 1
steps = 6
valid_every = 3
batch_tokens = 200
final = "last"
[decoding]
max_length = 12
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Korean and English, and the same English backwards as a third language."""
    folder = tmp_path_factory.mktemp("files")
    for part, count in (("train", 150), ("valid", 4)):
        pairs = list(fixed_pairs.pairs(part, count))
        texts = {
            "ko": [p.source for p in pairs],
            "en": [p.target for p in pairs],
            "de": [p.target[::-1] for p in pairs],
        }
        for code, lines in texts.items():
            (folder / f"{part}.{code}").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return folder


def recipe(files, path, corpora, settings=SETTINGS):
    """A recipe of corpora (source, target, weight); all but the first of a direction have a tag and no validation files."""
    text, seen = "", set()
    for source, target, weight in corpora:
        text += f'[[data.corpora]]\nsource = "{files}/train.{source}"\ntarget = "{files}/train.{target}"\nweight = {weight}\n'
        if (source, target) in seen:
            text += 'tag = "<bt>"\n'
        else:
            text += f'valid_source = "{files}/valid.{source}"\nvalid_target = "{files}/valid.{target}"\n'
        seen.add((source, target))
    path.write_text(text + settings, "utf-8")
    return path


@pytest.fixture(scope="module")
def made(files, tmp_path_factory):
    from heed.cli.main import main

    folder = tmp_path_factory.mktemp("runs")
    path = recipe(files, folder / "recipe.toml", [("ko", "en", 1.5), ("ko", "de", 0.5), ("en", "ko", 1.0)])
    assert main(["train", str(path), "--out", str(folder / "many"), "--quiet"]) == 0
    return folder / "many"


def log(run, kind):
    lines = map(json.loads, (run / "log.jsonl").read_text("utf-8").splitlines())
    return [line for line in lines if line.get("event", line.get("kind")) == kind or kind in line.values()]


def test_a_run_stopped_within_an_epoch_goes_on_to_the_same_bits(heed, files, made, tmp_path):
    path, out = made.parent / "recipe.toml", tmp_path / "again"
    assert heed("train", path, "--out", out, "--quiet", "--set", "training.steps=3")[0] == 0
    assert heed("train", "--out", out, "--resume", "--quiet", "--set", "training.steps=6")[0] == 0
    assert (out / "model" / WEIGHTS).read_bytes() == (made / "model" / WEIGHTS).read_bytes()


def test_every_direction_is_validated_and_the_mean_decides(made):
    for line in log(made, "valid"):
        for metric in ("bleu", "chrf", "loss"):
            each = [line[f"{metric}_{direction}"] for direction in ("ko-en", "ko-de", "en-ko")]
            assert line[metric] == pytest.approx(sum(each) / 3)
    config = json.loads((made / "model" / "config.json").read_text("utf-8"))
    assert config["directions"] == [["ko", "en"], ["ko", "de"], ["en", "ko"]]
    card = (made / "model" / "README.md").read_text("utf-8")
    assert "# Translator, ko to en, ko to de, en to ko" in card and "| chrF ko-de |" in card
    assert "`heed translate FOLDER --to en < text`" in card


def test_the_verbs_take_the_language(heed, files, made, tmp_path):
    one = heed("translate", made, "--to", "en", "--input", files / "valid.ko", "--out", tmp_path / "hyp.en")
    assert one[0] == 0
    code, out, _ = heed(
        "evaluate", made, "--to", "en", "--source", files / "valid.ko", "--reference", files / "valid.en"
    )
    assert code == 0 and "chrF2" in out
    assert (
        heed("evaluate", made, "--from", "en", "--source", files / "valid.en", "--reference", files / "valid.ko")[0]
        == 0
    )
    assert heed("score", made, "--to", "de", "--source", files / "valid.ko", "--target", files / "valid.de")[0] == 0
    assert heed("backtranslate", made, files / "valid.en", "--to", "ko", "--out", tmp_path / "out.tsv")[0] == 0
    assert "ko-en, ko-de, en-ko" in heed("info", made)[1]
    for words in (["translate", made, "안녕."], ["look", made, "안녕.", "--out", tmp_path / "look.html"]):
        code, _, err = heed(*words)
        assert code == 1 and err.startswith("heed: the model translates ko to en, ko to de, en to ko: choose one")
    code, _, err = heed("translate", made, "--to", "fr", "안녕.")
    assert code == 1 and err == "heed: the model does not translate to fr; it translates ko to en, ko to de, en to ko"


def test_a_mix_of_general_and_special_text_fine_tunes_a_model_and_keeps_its_directions(heed, files, made, tmp_path):
    few = "[training]\nthreads = 1\nsteps = 2\nvalid_every = 2\nbatch_tokens = 200\n[filters]\nmax_length = 40\n"
    path = recipe(files, tmp_path / "tune.toml", [("ko", "de", 3.0)], few)
    code, _, err = heed("train", path, "--from", made, "--out", tmp_path / "tuned")
    assert code == 0, err
    assert f"Try it: heed translate {tmp_path / 'tuned'} --to de < text" in err, "the direction of the data"
    assert "train.ko + train.de: 130 of 150 pairs, weight 3; filtered out: 20 for" in err
    config = json.loads((tmp_path / "tuned" / "model" / "config.json").read_text("utf-8"))
    assert config["directions"] == [["ko", "en"], ["ko", "de"], ["en", "ko"]]
    assert heed("translate", tmp_path / "tuned", "--to", "en", "안녕.")[0] == 0
    assert heed("train", "--out", tmp_path / "tuned", "--resume", "--set", "training.steps=3")[0] == 0
    tagged = recipe(files, tmp_path / "tags.toml", [("ko", "de", 3.0), ("ko", "de", 1.0)], few)
    code, _, err = heed("train", tagged, "--from", made, "--out", tmp_path / "other")
    assert code == 1 and "'<bt>' is not a tag of the vocabulary; it has >>en<<, >>de<<, >>ko<<: leave it out" in err
    unsaid = tmp_path / "pairs.tsv"
    unsaid.write_text("a\tb\n" * 20, "utf-8")
    code, _, err = heed("train", "--from", made, "--tsv", unsaid, "--out", tmp_path / "third")
    assert code == 1 and "pairs.tsv has no target language, and the model has several: set" in err


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text.replace("train.de", "train.xx"), "has no languages"),
        (lambda text: text + '[data]\nvalid_tsv = "a.tsv"\n', "is unknown"),
        (
            lambda text: text.replace("valid_", "# valid_", 2),
            "there is nothing to validate from ko to en on, since other corpora have validation sets",
        ),
    ],
)
def test_directions_that_are_not_clear_are_refused(heed, files, tmp_path, change, says):
    path = recipe(files, tmp_path / "recipe.toml", [("ko", "en", 1.0), ("ko", "de", 1.0), ("en", "ko", 1.0)], "")
    path.write_text(change(path.read_text("utf-8")), "utf-8")
    code, _, err = heed("train", path, "--out", tmp_path / "run")
    assert code == 1 and says in err


def test_a_report_has_the_scores_of_each_direction(heed, files, made, tmp_path):
    """The same as those of the log and of heed evaluate."""
    kept = final_validation.read(made)
    assert kept.directions == {"ko-en": 4, "ko-de": 4, "en-ko": 4}
    assert [rows[0][0] for rows in kept.by_direction().values()] == [kept.outputs[at][0] for at in (0, 4, 8)]
    found = collect(made, Options())
    assert [one.name.removeprefix("validation set, ") for one in found.sets] == [
        "ko-en",
        "ko-de",
        "en-ko",
        "all directions combined",
    ]
    for one, name in zip(found.sets, kept.directions, strict=False):
        assert one.scores.chrf.value == pytest.approx(kept.scores[f"chrf_{name}"]) and one.scores.lines == 4
    assert len(found.sentences) == found.sets[-1].scores.lines == 12
    page = (made / "report.html").read_text("utf-8")
    assert "Scores on the validation set, ko-de" in page
    again = collect(made, Options(against=str(made / "model")))
    assert again.against.comparison.chrf.difference == 0, "each direction is translated as such"
    test = [
        "--source",
        files / "valid.ko",
        "--reference",
        files / "valid.de",
        "--out",
        tmp_path / "test.html",
        "--alone",
    ]
    assert heed("report", made, "--to", "de", *test)[0] == 0
    assert "Scores on the test set" in (tmp_path / "test.html").read_text("utf-8")
    assert "ko to en, ko to de, en to ko: choose one" in heed("report", made, *test)[2]
    assert "add --source and --reference" in heed("report", made, "--to", "de")[2]
