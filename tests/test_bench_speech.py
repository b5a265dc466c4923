"""The comparison of speech recognizers runs, and both systems do the same work. How fast, no test asks."""

import dataclasses
import json

import pytest
import torch
import torch.nn.functional as F
from bench import speech, speech_systems
from bench.speech_systems import EOS, SPECIAL

from heed.tasks.speech_loss import SpeechLoss


@pytest.fixture(autouse=True)
def threads_as_before():
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("beams", [1, 2])
def test_each_text_has_the_tokens_that_it_should_have(beams):
    own, device = speech_systems.recordings(3, speech.QUICK, 1.5, 2.0), torch.device("cpu")
    ours = speech_systems.our_decoding(speech_systems.our_model(speech.QUICK).eval(), own, device, beams, 0.3)()
    model = speech_systems.their_model(speech.QUICK).eval()
    theirs = speech_systems.their_decoding(model, own, device, beams, True)()
    for text, other, count in zip(ours, theirs, own.outputs, strict=True):
        assert len(text) == len(other) == count and text.index(EOS) == other.index(EOS) == count - 1
        assert not {*text, *other} & set(SPECIAL.never)


def test_both_say_the_same_with_the_same_weights():
    shape = dataclasses.replace(speech.QUICK, dropout=0.0)
    own, device = speech_systems.recordings(3, shape, 1.5, 2.0), torch.device("cpu")
    theirs, ours = speech_systems.their_model(shape).double().eval(), speech_systems.same_model(shape).double().eval()
    made = speech_systems.Recordings([one[:: len(one) // 97][:97] for one in own.frames], own.texts)  # no padding
    found = speech_systems.our_decoding(ours, made, device, 1, 0.0)()
    assert found == speech_systems.their_decoding(theirs, made, device, 1, False)()
    (batch,) = speech_systems.batches(made, 600, device)
    batch = batch._replace(features=batch.features.double())
    mask, labels = speech_systems._masked(batch)
    logits = theirs(batch.features, attention_mask=mask, decoder_input_ids=batch.target).logits
    loss = SpeechLoss(0.0, 0.0)(ours, batch)
    given = F.cross_entropy(logits.flatten(0, 1), labels, ignore_index=speech_systems.IGNORED, reduction="sum")
    torch.testing.assert_close(loss.total, given, rtol=0, atol=1e-8)


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
    ours = speech_systems.our_training(speech_systems.our_model(speech.QUICK), made, torch.device("cpu"), 0.3, False)
    theirs = speech_systems.their_training(speech.QUICK, made, torch.device("cpu"), False)
    assert ours(len(made)) == theirs(len(made)) == sum(map(len, own.frames))
