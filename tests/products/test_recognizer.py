"""A recognizer of a language of tones, from training to subtitles."""

import json
import shutil
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from heed.audio.files import Sound, write_wav
from heed.audio.resampling import resample
from heed.cli.main import main
from heed.evaluation.speech import score
from heed.loading import load
from heed.models.folder import read_config
from heed.products.recognizer import Transcription, Word
from heed.products.speech_language import language_scores
from heed.products.speech_windows import cut, group_words
from heed.products.subtitles import lines, stamp, web_vtt
from heed.vocabularies.characters import Characters
from heed.vocabularies.sentencepiece import SubwordsConfig
from heed.vocabularies.words import learn

WORDS = {"la": 400, "mi": 900, "so": 1800}  # Hz
RATE = 8000
TONE, REST = 0.2, 0.12  # seconds


def say(words):
    parts = [np.zeros(int(RATE * REST))]
    for word in words:
        tone = 0.5 * np.sin(2 * np.pi * WORDS[word] * np.arange(int(RATE * TONE)) / RATE)
        parts += [tone * np.hanning(len(tone)), np.zeros(int(RATE * REST))]
    noise = 0.001 * np.random.default_rng(len(words)).standard_normal(sum(map(len, parts)))
    return (np.concatenate(parts) + noise).astype(np.float32)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run that has learned three words, in a few seconds."""
    folder = tmp_path_factory.mktemp("tones")
    random = np.random.default_rng(0)
    rows = []
    for i in range(130):
        words = [list(WORDS)[k] for k in random.integers(0, 3, 1 + i % 4)]
        write_wav(folder / f"{i}.wav", say(words), RATE)
        rows.append(f"{i}.wav\t{' '.join(words)}")
    (folder / "train.tsv").write_text("\n".join(rows[:120]) + "\n", "utf-8")
    (folder / "valid.tsv").write_text("\n".join(rows[120:]) + "\n", "utf-8")
    settings = {
        "data.audio": folder / "train.tsv", "data.valid_audio": folder / "valid.tsv", "data.rate": RATE, "data.mels": 12, "data.shift": 20.0, "data.frame": 40.0,
        "task.name": "speech-recognition", "task.ctc": 0.7, "task.mask_bands": 0, "task.mask_stretches": 0,
        "task.label_smoothing": 0.0, "subwords.kind": "words", "subwords.least": 1, "model.name": "speech-transformer",
        "model.dim": 48, "model.heads": 2, "model.hidden": 64, "model.encoder_layers": 1, "model.decoder_layers": 1,
        "model.channels": 12, "model.subsampling": 2, "model.dropout": 0.0, "model.hidden_dropout": 0.0, "training.batch_tokens": 800, "training.rate": 0.003, "training.cooldown": 0.3,
        "training.warmup": 20, "training.steps": 250, "training.valid_every": 250, "training.threads": 1,
        "training.device": "cpu", "decoding.beam": 3, "data.language": "tones",
    }  # fmt: skip
    chosen = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    assert main(["train", *chosen, "--out", str(folder / "run"), "--quiet"]) == 0
    return folder


@pytest.fixture(scope="module")
def recognizer(trained):
    return load(trained / "run", "cpu")


def heard(recognizer, recordings, **changes):
    """What is recognized of recordings, and the word error rate."""
    found = recognizer.transcribe([Sound(say(words), RATE) for words in recordings], **changes)
    return found, score([own.text for own in found], [" ".join(words) for words in recordings]).wer.rate


def new_recordings(count, size):
    random = np.random.default_rng(7)
    return [[list(WORDS)[k] for k in random.integers(0, 3, size)] for _ in range(count)]


def test_new_recordings_are_written_down_with_the_times_of_words(recognizer):
    recordings = new_recordings(20, 3)
    found, rate = heard(recognizer, recordings)
    assert rate < 15  # a third of the words would be right by chance
    for own, words in zip(found, recordings, strict=True):
        assert [word.text for word in own.words] == own.text.split()
        assert own.seconds == pytest.approx(len(say(words)) / RATE)
        for i, word in enumerate(own.words if own.text.split() == words else ()):
            middle = REST + i * (TONE + REST) + TONE / 2
            assert abs((word.start + word.end) / 2 - middle) < 0.1 and 0 < word.probability <= 1


def test_a_batch_has_the_texts_of_its_recordings(recognizer):
    sounds = [Sound(say(words), RATE) for words in (["la"], ["mi", "so", "mi", "la"], ["so", "so"])]
    together = recognizer.transcribe(sounds)
    assert [own.text for own in together] == [recognizer.transcribe([sound])[0].text for sound in sounds]


@pytest.mark.parametrize("change", [{"beam": 1}, {"ctc_weight": 0.0}, {"ctc_weight": 1.0}, {"beam": 5, "nbest": 3}])
def test_each_way_to_search_hears_words(recognizer, change):
    found, rate = heard(recognizer, new_recordings(12, 2), **change)
    assert rate < 25 and all(len(own.others) == change.get("nbest", 1) - 1 for own in found)


def test_a_long_recording_is_read_in_windows(recognizer):
    said = [list(WORDS)[i % 3] for i in range(24)]
    (found,), rate = heard(recognizer, [said])
    assert found.seconds > 3 * recognizer.facts["longest_seconds"] and rate < 20
    starts = [word.start for word in found.words]
    assert starts == sorted(starts) and found.words[-1].end <= found.seconds
    assert found.text == " ".join(word.text for word in found.words)


def test_other_rates_and_silence(recognizer):
    (usual,) = recognizer.transcribe([Sound(say(["la", "so"]), RATE)])
    high = resample(say(["la", "so"]), RATE, 96_000)
    assert recognizer.transcribe([Sound(high, 96_000)])[0].text == usual.text
    silent, short = recognizer.transcribe(
        [Sound(np.zeros(RATE, np.float32), RATE), Sound(say(["la"])[1000:1080], RATE)]
    )
    assert (silent.text, silent.words, silent.seconds) == ("", [], 1.0)
    assert short.seconds == 0.01


def test_the_command_writes_text_json_and_subtitles(trained, capsys):
    run, one, other = str(trained / "run"), str(trained / "3.wav"), str(trained / "121.wav")
    recognized = load(run, "cpu").transcribe([one, other])
    texts = {name: own.text for name, own in zip(("3.wav", "121.wav"), recognized, strict=True)}
    assert main(["transcribe", run, one, "--device", "cpu"]) == 0
    assert capsys.readouterr().out == texts["3.wav"] + "\n"
    assert main(["transcribe", run, one, other, "--device", "cpu"]) == 0
    assert capsys.readouterr().out == f"3.wav\t{texts['3.wav']}\n121.wav\t{texts['121.wav']}\n"
    assert main(["transcribe", run, one, "--format", "json", "--device", "cpu"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["text"] == texts["3.wav"] and [word["text"] for word in found["words"]] == found["text"].split()
    assert main(["transcribe", run, one, "--format", "srt", "--device", "cpu"]) == 0
    number, times, text, *_ = capsys.readouterr().out.split("\n")
    assert number == "1" and text == texts["3.wav"] and times.count(" --> ") == 1
    assert main(["transcribe", run, one, "--format", "vtt", "--device", "cpu"]) == 0
    assert capsys.readouterr().out.startswith("WEBVTT\n\n00:00:00.")


def test_subtitles_end_at_a_pause_and_after_some_words():
    times = [0.0, 0.5, 2.5, 3.0, 3.5]
    found = Transcription("a b c d e", 5.0, [Word(w, t, t + 0.4, 1.0) for w, t in zip("abcde", times, strict=True)])
    assert lines(found) == [(0.0, 0.9, "a b"), (2.5, 3.9, "c d e")]
    many = Transcription("x", 5.0, [Word("x", 0.1 * i, 0.1 * i + 0.1, 1.0) for i in range(30)])
    assert [len(text.split()) for _, _, text in lines(many)] == [12, 12, 6]
    assert lines(Transcription("Hello.", 2.0)) == [(0.0, 2.0, "Hello.")] and lines(Transcription("", 2.0)) == []
    assert web_vtt(found).startswith("WEBVTT\n\n00:00:00.000 --> 00:00:00.900\na b\n\n")
    assert stamp(3725.5) == "01:02:05,500"


def test_one_file_that_is_no_sound_does_not_stop_the_others(trained, capsys):
    (trained / "text.wav").write_text("I am a text.\n", "utf-8")
    names = [str(trained / name) for name in ("text.wav", "3.wav", "none.wav")]
    assert main(["transcribe", str(trained / "run"), *names, "--device", "cpu"]) == 1
    found = capsys.readouterr()
    assert found.out.startswith("3.wav\t") and "text.wav" in found.err and "none.wav: no such file" in found.err


def test_evaluation_has_rates_and_a_table_of_errors(trained, tmp_path, capsys):
    run, table = str(trained / "run"), str(trained / "valid.tsv")
    arguments = [
        "evaluate",
        run,
        "--audio",
        table,
        "--json",
        str(tmp_path / "s.json"),
        "--sentences",
        str(tmp_path / "e.tsv"),
    ]
    assert main([*arguments, "--device", "cpu"]) == 0
    found = capsys.readouterr()
    scores = json.loads((tmp_path / "s.json").read_text("utf-8"))["scores"]
    assert scores["wer"]["rate"] < 15 and "WER" in found.out and "real-time factor" in found.err
    assert len((tmp_path / "e.tsv").read_text("utf-8").splitlines()) == 11
    assert main(["evaluate", run, "--device", "cpu"]) == 1
    assert "is a speech recognizer: give recordings with their texts, --audio FILE" in capsys.readouterr().err
    assert main(["evaluate", run, "--audio", table, "--against", run]) == 1
    assert "--against does not support speech models: evaluate each with its own command" in capsys.readouterr().err
    assert main(["translate", run, table, "--device", "cpu"]) == 1
    assert "transcribes in the spoken language: use heed transcribe" in capsys.readouterr().err
    assert main(["transcribe", run, "a.wav", "b.wav", "--format", "srt"]) == 1
    assert "--format srt is for a single recording" in capsys.readouterr().err


def test_a_damaged_description_of_features_is_refused(trained, tmp_path, capsys):
    shutil.copytree(trained / "run" / "model", tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text("utf-8"))
    config.pop("sha256", None)
    config["processors"]["sound"]["features"]["mels"] = 30
    (tmp_path / "model" / "config.json").write_text(json.dumps(config), "utf-8")
    assert main(["transcribe", str(tmp_path / "model"), str(trained / "3.wav")]) == 1
    assert "its features do not match the model" in capsys.readouterr().err


def test_info_tells_of_the_features(trained, capsys):
    assert main(["info", str(trained / "run"), "--all"]) == 0
    found = capsys.readouterr().out
    assert "fbank" in found and "ctc_weight" in found and "tones" in found


def test_windows_cover_a_recording_without_gaps():
    loudness = np.random.default_rng(0).random(1000)
    loudness[300:330] = -5
    windows = cut(loudness, 400, 20)
    assert windows[0].first == 0 and windows[-1].last == 1000
    assert all(one.last == other.first for one, other in pairwise(windows))
    assert all(own.end - own.start <= 400 for own in windows) and 300 <= windows[0].last < 330
    assert cut(loudness[:400], 400, 20) == [(0, 400, 0, 400)]


def test_pieces_are_grouped_into_words():
    assert group_words(["a", "b", "▁", "c", "▁", "▁"]) == [[0, 1], [3]]
    assert group_words(["▁a", "b", "▁c"]) == [[0, 1], [2]]


def test_each_word_says_where_the_model_looked(recognizer):
    sound = Sound(say(["so", "la", "mi"]), RATE)
    (plain,), (found,) = recognizer.transcribe([sound]), recognizer.transcribe([sound], attention=True)
    assert [replace(word, attention=[]) for word in found.words] == plain.words
    memory, _ = recognizer.encode([recognizer.sound(sound)])
    for word in found.words:
        assert len(word.attention) == memory.shape[1] and sum(word.attention) == pytest.approx(1, abs=0.02)


def test_features_are_exact_where_the_model_computes_in_half_precision(recognizer):
    sound = Sound(say(["la", "mi"]), RATE)
    expected = recognizer.sound(sound)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        np.testing.assert_array_equal(recognizer.sound(sound), expected)
        assert recognizer.transcribe([sound])[0].text


def test_a_language_model_of_the_same_tokens_scores_the_text_too(recognizer):
    """One that has learned only "la" makes everything that is not certain "la"; one of other tokens is refused."""

    class OnlyLa:
        def __init__(self, vocabulary):
            self.vocabulary, self.special, self.device, self.model = (
                vocabulary,
                vocabulary.special,
                torch.device("cpu"),
                self,
            )
            self.before, self.la = self.special.last, vocabulary.encode(["la"])[0][0]

        def start(self, rows):
            return self

        def reorder(self, rows):
            pass

        def step(self, tokens, state):
            logits = torch.zeros(len(tokens), len(self.vocabulary))
            logits[:, self.la] = 8.0
            logits[tokens == self.la, self.special.last] = 9.0
            return logits

    theirs = learn(["so x la mi la"], SubwordsConfig(kind="words", least=1))
    language = language_scores(OnlyLa(theirs), recognizer.vocabulary)
    sound = Sound(say(["so", "mi"]), RATE)
    assert (
        recognizer.transcribe([sound], language=language, lm_weight=0.0)[0].text
        == recognizer.transcribe([sound])[0].text
    )
    assert "la" in recognizer.transcribe([sound], language=language, lm_weight=10.0, ctc_weight=0.0)[0].text
    with pytest.raises(ValueError, match="knows 0 of the recognizer's 3 tokens: train it with the same vocabulary"):
        language_scores(OnlyLa(Characters(list("la"))), recognizer.vocabulary)


def test_a_model_trained_without_ctc_is_not_scored_by_it(trained, tmp_path):
    settings = {
        "data.audio": trained / "train.tsv", "data.valid_audio": trained / "valid.tsv", "task.name": "speech-recognition", "task.ctc": 0.0,
        "training.steps": 1, "training.warmup": 1, "training.batch_tokens": 800, "training.device": "cpu", "training.threads": 1,
    }  # fmt: skip
    chosen = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    base = str(trained / "run")
    assert main(["train", "--from", base, *chosen, "--out", str(tmp_path / "run"), "--quiet", "--no-report"]) == 0
    weights = [
        read_config(folder / "model")["decoding"]["ctc_weight"] for folder in (trained / "run", tmp_path / "run")
    ]
    assert weights[0] > 0 and weights[1] == 0
