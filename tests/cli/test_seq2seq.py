"""A recurrent translator does with each verb what any other does, and says what it cannot."""

import itertools
import json

import pytest

from heed.cli.main import main
from tests.cli.conftest import sets

TINY = ["subwords.size=320", "model.name=seq2seq", "model.dim=12", "model.hidden=16", "training.threads=1",
        "training.steps=4", "training.valid_every=2", "training.batch_tokens=200", "decoding.max_length=8", "decoding.beam=2",
        "training.final=last", "model.dropout=0.3"]  # fmt: skip
LOOKS = ["model.cell=gru", "model.attention=additive", "model.decoder_layers=2"]
BLIND = ["model.cell=lstm", "model.attention=off", "model.bidirectional=false", "model.reverse_source=true"]
TEXT = "two red dogs"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A language in which everything is said twice: 64 pairs, and 4 to validate on."""
    folder = tmp_path_factory.mktemp("files")
    some = itertools.product(
        ("one", "two", "three", "no"), ("red", "old", "big", "wet"), ("dogs", "cats", "cars", "hats")
    )
    sources = [" ".join(words) for words in some]
    for name, own in (("train", sources), ("valid", sources[::16])):
        (folder / f"{name}.a").write_text("".join(f"{text}\n" for text in own))
        (folder / f"{name}.b").write_text("".join(f"{text.replace(' ', ' very ')}\n" for text in own))
    (folder / "gold").write_text("0-0 1-2 2-4\n" * 4)
    return folder


def settings_of(files, more):
    names = ("source", "train.a"), ("target", "train.b"), ("valid_source", "valid.a"), ("valid_target", "valid.b")
    return sets([*(f'data.{name}=["{files / file}"]' for name, file in names), *TINY, *more])


@pytest.fixture(scope="module")
def runs(tmp_path_factory, files):
    """A run that attends, and one that has a vector alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEED_CACHE", str(files / "cache"))
        folder = tmp_path_factory.mktemp("runs")
        for name, settings in (("looks", LOOKS), ("blind", BLIND)):
            assert main(["train", "--out", str(folder / name), "--quiet", *settings_of(files, settings)]) == 0
    return folder


@pytest.fixture
def heed(heed, files, monkeypatch):
    """The command, with what was prepared before."""
    monkeypatch.setenv("HEED_CACHE", str(files / "cache"))
    return heed


def test_every_verb(heed, runs, files, tmp_path):
    run, pair = runs / "looks", ("--source", files / "valid.a", "--reference", files / "valid.b")
    code, out, _ = heed("translate", run, "--nbest", 2, "--scores", "--token-scores", "--align", TEXT)
    assert code == 0 and [len(line.split("\t")) for line in out.splitlines()] == [4, 4]
    code, out, _ = heed("evaluate", run, *pair, "--gold", files / "gold")
    assert code == 0 and "alignment error rate" in out
    assert heed("score", run, "--source", files / "valid.a", "--target", files / "valid.b")[0] == 0
    assert heed("average", run, "--last", 2, "--out", tmp_path / "mean")[0] == 0
    assert json.loads(heed("info", tmp_path / "mean", "--json")[1])["model"]["attention"] == "additive"
    assert heed("translate", f"{run},{tmp_path / 'mean'}", TEXT)[0] == 0
    assert "Recurrent translator, 1+2 layers, width 12, gru, attention additive" in (
        run / "model" / "README.md"
    ).read_text("utf-8")


def test_a_look_shows_the_attention_and_the_states(heed, runs, tmp_path):
    for kind in ("html", "png", "json"):
        code, out, _ = heed("look", runs / "looks", TEXT, "--out", tmp_path / f"a.{kind}")
        assert code == 0
    look = json.loads((tmp_path / "a.json").read_text("utf-8"))
    assert look["target_text"] == out.rstrip("\n") and look["model"].startswith(f"{runs / 'looks'} · 1+2 layers · gru")
    assert (look["encoder"], look["decoder"], len(look["cross"]), len(look["cross"][0])) == ([], [], 1, 1)
    assert len(look["states"]["encoder"]) == len(look["source"]) and len(look["states"]["decoder"]) == len(
        look["target"]
    )


def test_without_attention_it_translates_and_says_that_it_cannot_align(heed, runs, files, tmp_path):
    run = runs / "blind"
    assert heed("translate", run, TEXT)[0] == 0
    says = "the model has no attention to its source (model.attention is 'off'), so it cannot align words"
    assert heed("translate", run, "--align", TEXT)[0::2] == (1, f"heed: {says}")
    pair = ("--source", files / "valid.a", "--reference", files / "valid.b")
    assert heed("evaluate", run, *pair, "--gold", files / "gold")[0::2] == (1, f"heed: {says}")
    for kind in ("html", "png"):
        assert heed("look", run, TEXT, "--out", tmp_path / f"b.{kind}")[0] == 0


def test_it_stays_with_heed(heed, runs, tmp_path):
    for to in ("huggingface", "ctranslate2"):
        code, _, err = heed("convert", runs / "blind", "--to", to, "--out", tmp_path / "out")
        assert (code, "it cannot be exported" in err, (tmp_path / "out").exists()) == (1, True, False)


@pytest.mark.parametrize(("name", "settings"), [("looks", LOOKS), ("blind", BLIND)])
def test_a_resumed_run_has_the_weights_of_one_that_never_stopped(heed, runs, files, tmp_path, name, settings):
    start = ["train", "--out", tmp_path / "part", "--quiet"]
    assert heed(*start, *settings_of(files, [*settings, "training.steps=2"]))[0] == 0
    assert heed(*start, "--resume", *sets(["training.steps=4"]))[0] == 0
    one, other = (folder / "model" / "model.safetensors" for folder in (tmp_path / "part", runs / name))
    assert one.read_bytes() == other.read_bytes()


def test_the_bottleneck_of_both(heed, runs, files, tmp_path):
    (tmp_path / "given").write_text((files / "valid.b").read_text())
    pair = ("--source", files / "valid.a", "--reference", files / "valid.b")
    systems = [runs / "blind", f"additive={runs / 'looks'}", f"given={tmp_path / 'given'}"]
    code, out, _ = heed("lab", "bottleneck", *systems, *pair, "--out", tmp_path / "lab")
    assert code == 0 and "BLEU by source length" in out
    said = json.loads((tmp_path / "lab" / "bottleneck.json").read_text("utf-8"))
    assert list(said["bleu"]) == ["blind", "additive", "given"] and said["whole"]["given"] == pytest.approx(100)
    assert (tmp_path / "lab" / "bottleneck.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("model.preset=tiny-6-2", "model.preset: 'tiny-6-2' is none of 'auto', 'tiny', 'small', 'base', 'big'"),
        ("model.heads=2", "model.heads: seq2seq has no such setting; there are"),
        ("model.hidden=15", "hidden is 15; it must be even"),
        ("model.attention=some", "model.attention: 'some' is none of 'off', 'content', 'additive'"),
    ],
)
def test_what_it_cannot_be_is_said(heed, runs, files, tmp_path, setting, says):
    code, _, err = heed("train", "--out", tmp_path / "run", *settings_of(files, [setting]))
    assert (code, says in err) == (1, True), err


@pytest.mark.parametrize("encoder", ["restricted", "convolution"])
def test_a_transformer_whose_encoder_sees_neighbours_alone(heed, runs, files, tmp_path, encoder):
    sizes = [
        "model.name=transformer",
        "model.heads=2",
        "model.encoder_layers=1",
        "model.decoder_layers=1",
        "training.steps=2",
    ]
    run = tmp_path / "run"
    assert heed("train", "--out", run, "--quiet", *settings_of(files, [*sizes, f"model.encoder={encoder}"]))[0] == 0
    assert heed("translate", run, "--align", TEXT)[0] == 0
    for kind in ("html", "png"):
        assert heed("look", run, TEXT, "--out", tmp_path / f"a.{kind}")[0] == 0
    for to in ("huggingface", "ctranslate2"):
        code, _, err = heed("convert", run, "--to", to, "--out", tmp_path / "out")
        assert (code, "cannot be exported" in err) == (1, True), err
