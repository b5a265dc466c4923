"""The comparison of speech recognizers runs, and both systems do the same work. How fast, no test asks."""

import json

import pytest
import torch
from bench import speech, speech_systems
from bench.speech_systems import EOS, SPECIAL


@pytest.fixture(autouse=True)
def threads_as_before():
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("beams", [1, 2])
def test_each_text_has_the_tokens_that_it_should_have(beams):
    own, device = speech_systems.recordings(3, speech.QUICK, 1.5, 2.0), torch.device("cpu")
    ours = speech_systems.our_decoding(speech_systems.our_model(speech.QUICK).eval(), own, device, beams, 0.0)()
    model = speech_systems.their_model(speech.QUICK).eval()
    theirs = speech_systems.their_decoding(model, own, device, beams, True)()
    for text, other, count in zip(ours, theirs, own.outputs, strict=True):
        assert len(text) == len(other) == count and text.index(EOS) == other.index(EOS) == count - 1
        assert not {*text, *other} & set(SPECIAL.never)


def test_rows_are_measured_and_one_who_fails_is_named(tmp_path, capsys, monkeypatch):
    def broken(*given):
        raise RuntimeError("no room\nfor it")

    monkeypatch.setattr(speech, "their_training", broken)
    words = ["--quick", "--rows", "train", "greedy", "--rounds", "1", "--median", "1", "--recordings", "2"]
    found = tmp_path / "found.json"
    assert speech.main([*words, "--threads", str(torch.get_num_threads()), "--json", str(found)]) == 0
    facts = json.loads(found.read_text("utf-8"))
    assert facts["train"]["transformers"] == {"error": "RuntimeError: no room"} and "no room" in capsys.readouterr().out
    assert {name: len(own["rates"]) for name, own in facts["greedy"].items()} == {
        "heed": 1, "heed, with CTC": 1, "transformers": 1, "transformers, sorted": 1,
    }  # fmt: skip
    assert facts["train"]["heed"]["rate"] > 0 and facts["frames"] == 600


def test_both_train_on_the_same_frames():
    own = speech_systems.recordings(6, speech.QUICK, 1.5, 3.0)
    made = speech_systems.batches(own, 600, torch.device("cpu"))
    ours = speech_systems.our_training(speech.QUICK, made, torch.device("cpu"), 0.3, False)
    theirs = speech_systems.their_training(speech.QUICK, made, torch.device("cpu"), False)
    assert ours(len(made)) == theirs(len(made)) == sum(map(len, own.frames))
