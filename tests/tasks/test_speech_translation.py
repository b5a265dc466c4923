"""A recognizer becomes a translator of speech: what it keeps, and what CTC learns."""

import shutil

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from heed.audio.files import write_wav
from heed.cli.main import main
from heed.loading import load, open_package
from heed.runs import models
from heed.runs.recipe import read
from heed.tasks.speech_loss import SpeechLoss

RATE = 8000
SAID = ["라 미", "미 소", "소 라", "라 라", "미 미", "소 소"]
WRITTEN = ["one two", "two three", "three one", "one one", "two two", "three three"]
SMALL = {
    "data.rate": RATE, "data.mels": 12, "data.shift": 20.0, "data.frame": 40.0, "subwords.kind": "characters",
    "model.name": "speech-transformer", "model.dim": 16, "model.heads": 2, "model.hidden": 16, "model.encoder_layers": 1,
    "model.decoder_layers": 1, "model.channels": 4, "model.subsampling": 2,
}  # fmt: skip
RUN = {
    "data.language": "ko", "training.steps": 1, "training.valid_every": 1, "training.threads": 1, "training.device": "cpu",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Six recordings with transcripts and translations, and a recognizer of one step."""
    made = tmp_path_factory.mktemp("translation")
    for i in range(6):
        write_wav(made / f"{i}.wav", 0.4 * np.sin(np.arange(6000) * 0.1 * (1 + i)).astype(np.float32), RATE)
    rows = list(enumerate(zip(SAID, WRITTEN, strict=True)))
    tables = {
        "said": [f"{i}.wav\t{said}" for i, (said, _) in rows],
        "both": [f"{i}.wav\t{written}\t\t{said}" for i, (said, written) in rows],
        "part": [f"{i}.wav\t{written}" + (f"\t\t{said}" if i != 3 else "") for i, (said, written) in rows],
    }
    for name, lines in tables.items():
        (made / f"{name}.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    assert train(made, made / "recognizer", "said", SMALL) == 0
    return made


def settings(folder, table, more):
    audio = {"data.audio": [str(folder / f"{table}.tsv")], "data.valid_audio": [str(folder / f"{table}.tsv")]}
    return {"task.name": "speech-recognition", **audio, **RUN, **more}


def train(folder, out, table, more, *words):
    chosen = [word for name, value in settings(folder, table, more).items() for word in ("--set", f"{name}={value}")]
    return main(["train", *chosen, "--out", str(out), "--quiet", *words])


def translation(folder, **more):
    return {
        "model.folder": str(folder / "recognizer"), "task.ctc_target": "transcript", "data.target_language": "en",
        "subwords.kind": "characters", **{name.replace("__", "."): value for name, value in more.items()},
    }  # fmt: skip


def prepared(folder, table="both", **more):
    recipe = read(None, list(settings(folder, table, translation(folder, **more)).items()))
    base = open_package(folder / "recognizer")
    return recipe, base, recipe.task.prepare(recipe, base, lambda what, done: None)


def test_the_weights_of_a_recognizer_are_taken_over_by_name(folder):
    recipe, base, data = prepared(folder)
    torch.manual_seed(7)
    old, new = base.model.state_dict(), models.build(recipe, base, data).state_dict()
    assert old.keys() == new.keys()
    other = {name for name in old if old[name].shape != new[name].shape or not torch.equal(old[name], new[name])}
    assert other == {"tokens.weight"}
    assert len(new["tokens.weight"]) == len(data.processors["target"]) != len(old["tokens.weight"])


def test_with_ctc_on_the_text_its_output_is_new_too(folder):
    recipe, base, data = prepared(folder, task__ctc_target="text")
    old, new = base.model.state_dict(), models.build(recipe, base, data).state_dict()
    other = {name for name in old if old[name].shape != new[name].shape or not torch.equal(old[name], new[name])}
    assert other == {"tokens.weight", "ctc.weight", "ctc.bias"} and "transcript" not in data.processors


def test_ctc_of_transcripts_is_the_plain_ctc_loss(folder):
    recipe, base, data = prepared(folder)
    model = models.build(recipe, base, data).eval()
    _, batch = next(recipe.task.batches(recipe, data, None, (0, 1), (0, 0)))
    found = SpeechLoss(0.3, 0.0)(model, batch)
    memory, counts = model.encode_speech(batch.features, batch.lengths)
    own = data.processors["transcript"]
    logp = model.ctc(memory).log_softmax(dim=-1).transpose(0, 1)
    texts, total = dict(zip(WRITTEN, SAID, strict=True)), 0.0
    for row in range(len(counts)):
        written = data.processors["target"].decode([int(i) for i in batch.target[row] if i > 3])
        labels = torch.tensor(own.encode([texts[written]]))
        total += F.ctc_loss(
            logp[:, row : row + 1], labels, counts[row : row + 1], torch.tensor([labels.shape[1]]), len(own), "sum"
        )
    torch.testing.assert_close(found.parts["ctc"].total, total)
    assert own.decode(own.encode(["미 소"])[0]) == "미 소"
    plain = SpeechLoss(0.0, 0.0)(model, batch)
    torch.testing.assert_close(found.total, 0.7 * plain.total + 0.3 * total)


def test_a_translator_is_trained_loaded_and_trained_on_without_its_recognizer(folder, tmp_path, capsys):
    shutil.copytree(folder / "recognizer", tmp_path / "recognizer")
    more = translation(folder, model__folder=str(tmp_path / "recognizer"))
    assert train(folder, tmp_path / "run", "both", more) == 0
    shutil.rmtree(tmp_path / "recognizer")
    assert main(["train", "--out", str(tmp_path / "run"), "--resume", "--set", "training.steps=2", "--quiet"]) == 0
    model = load(tmp_path / "run", "cpu")
    assert model.decoding.ctc_weight == 0 and not model.timed
    assert len(model.transcribe([folder / "0.wav"])) == 1
    assert main(["transcribe", str(tmp_path / "run"), str(folder / "0.wav"), "--ctc-weight", "0.4"]) == 1
    assert "was trained on transcripts, not translations: set ctc_weight to 0" in capsys.readouterr().err
    assert main(["info", str(tmp_path / "run")]) == 0
    assert "transcript" in capsys.readouterr().out


def test_the_recipe_of_a_run_may_be_repeated_and_its_own_resumed(folder, tmp_path, capsys):
    """It states the features of the recognizer, which it may not change."""
    shutil.copytree(folder / "recognizer", tmp_path / "recognizer")
    more = translation(folder, model__folder=str(tmp_path / "recognizer"))
    assert train(folder, tmp_path / "run", "both", more) == 0
    recipe = tmp_path / "run" / "recipe.toml"
    assert main(["train", str(recipe), "--out", str(tmp_path / "again"), "--quiet"]) == 0
    one, other = ((tmp_path / name / "model" / "model.safetensors").read_bytes() for name in ("run", "again"))
    assert one == other
    assert train(folder, tmp_path / "run", "both", {**more, "training.steps": 2}, "--resume") == 0
    command = ["train", str(recipe), "--out", str(tmp_path / "more"), "--quiet", "--set", "data.mels=23"]
    assert main(command) == 1 and "data.mels comes from" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("table", "more", "words"),
    [
        ("part", {}, "part.tsv:4 has no transcript, the fourth column of the table, which task.ctc_target needs: add it"),
        ("both", {"model__dim": 32}, "has 16: the architecture of a trained model cannot change"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said(folder, tmp_path, capsys, table, more, words):
    assert train(folder, tmp_path / "run", table, translation(folder, **more)) == 1
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(("samples", "aside"), [((6000, 6000), ""), ((6000, 800), "; 1 too short, skipped")])
def test_recordings_that_are_too_short_for_one_state_are_skipped_and_counted(tmp_path, monkeypatch, samples, aside):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))
    for i, count in enumerate(samples):
        write_wav(tmp_path / f"{i}.wav", 0.4 * np.sin(np.arange(count) * 0.1).astype(np.float32), RATE)
    (tmp_path / "said.tsv").write_text("0.wav\tyes\n1.wav\tno\n", "utf-8")
    recipe = read(None, list(settings(tmp_path, "said", SMALL).items()))
    made = recipe.task.prepare(recipe, None, lambda what, done: None)
    assert recipe.task.data_summary(made) == f"2 training recordings, {sum(samples) / RATE / 60:.1f} minutes{aside}."


def test_a_recognizer_without_ctc_cannot_learn_transcripts(folder):
    recipe, base, _ = prepared(folder)
    base.model.config = type(base.model.config)(**{**base.model.config.__dict__, "ctc": False})
    with pytest.raises(ValueError, match=r"has no CTC output to learn transcripts with: set task.ctc to 0"):
        recipe.task.check_base(recipe, base)
