"""Recordings over HTTP: what is answered is what the recognizer says."""

import io
import threading

import httpx
import numpy as np
import pytest
import torch

from heed.audio.files import decode, wav_bytes
from heed.data.audio.voices import spelled
from heed.models.speech_transformer import SpeechTransformer, SpeechTransformerConfig
from heed.models.transformer_tts import TransformerTTS, TransformerTTSConfig
from heed.products.recognizer import Recognizer
from heed.products.subtitles import subrip, web_vtt
from heed.products.voice import Voice
from heed.service.http import asked_model, recognizers
from heed.service.http.limits import Limits
from heed.service.http.queue import Cancelled, Ticket
from heed.service.http.recognizers import ServedRecognizer
from heed.service.http.service import Service, Settings
from heed.service.http.voices import ServedVoice
from heed.vocabularies.characters import Characters
from heed.vocabularies.labels import Labels
from heed.vocabularies.sound import FeatureSettings, SoundFeatures
from tests.audio.test_files import flac
from tests.service.http.conftest import RunningService

PATH = "/v1/audio/transcriptions"
SOUND = wav_bytes(0.3 * np.sin(np.arange(12_000) ** 1.4 * 0.01), 16_000)


def recognizer(seed: int = 0) -> Recognizer:
    """A small one that knows nothing, but says something."""
    torch.manual_seed(seed)
    words, sound = Characters(list("ab c")), SoundFeatures(FeatureSettings(mels=10))
    config = SpeechTransformerConfig(
        vocab_size=len(words), inputs=10, dim=8, heads=2, hidden=8, encoder_layers=1, decoder_layers=1, channels=2
    )
    model = SpeechTransformer(config).eval()
    for weight in model.parameters():
        weight.data.normal_(0, 0.5)
    return Recognizer(model, sound, words, {"language": "en", "longest_seconds": 5.0})


@pytest.fixture(scope="module")
def served():
    return ServedRecognizer("ears", recognizer())


def voice() -> Voice:
    """A small one that has learned nothing, but makes some sound."""
    torch.manual_seed(0)
    words = Characters(sorted(set(spelled("hello .안녕"))))
    config = TransformerTTSConfig(
        vocab_size=len(words),
        outputs=20,
        speakers=2,
        dim=8,
        heads=2,
        hidden=8,
        encoder_layers=1,
        decoder_layers=1,
        postnet=4,
    )
    settings = FeatureSettings("mel", rate=8000, mels=20, frame=32.0, shift=16.0, normalize="corpus")
    sound = SoundFeatures(settings, [-3.0] * 20, [1.0] * 20)
    return Voice(TransformerTTS(config), sound, words, Labels(["ann", "bob"]), {"frames_per_token": 3.0})


@pytest.fixture(scope="module")
def speaking():
    return ServedVoice("mouth", voice())


@pytest.fixture(scope="module")
def client(served, speaking):
    running = RunningService(Service([served, speaking], Settings(limits=Limits(bytes=200_000))))
    with running.client() as client:
        yield client
    running.stop()


def ask(client, status=200, data=SOUND, name="a.wav", **fields):
    answer = client.post(PATH, files={"file": (name, data)}, data=fields)
    assert answer.status_code == status, answer.text
    return answer


def test_every_form_of_answer_is_what_the_product_says(client, served):
    (expected,) = served.product.transcribe([decode(io.BytesIO(SOUND), "a.wav")])
    assert expected.text
    assert ask(client, model="ears").json() == {"text": expected.text}
    assert ask(client, response_format="text").text == expected.text + "\n"
    assert ask(client, response_format="srt").text == subrip(expected)
    assert ask(client, response_format="vtt").text == web_vtt(expected)
    fields = {
        "response_format": "verbose_json",
        "timestamp_granularities[]": "word",
        "temperature": "0",
        "language": "en",
    }
    found = ask(client, **fields).json()
    assert found["text"] == expected.text and found["duration"] == pytest.approx(0.75)
    assert (found["task"], found["language"], found["model"]) == ("transcribe", "en", "ears")
    assert [(w["word"], w["start"]) for w in found["words"]] == [(w.text, w.start) for w in expected.words]
    (greedy,) = served.product.transcribe([decode(io.BytesIO(SOUND), "a.wav")], beam=1)
    assert ask(client, beam="1").json() == {"text": greedy.text}


def test_what_is_wrong_is_said_as_openai_says_it(client, monkeypatch):
    def message(answer):
        return answer.json()["error"]["message"]

    assert "speech.wav is not a readable audio file" in message(ask(client, 400, b"I am a text.", "speech.wav"))
    assert "response_format is 'xml'" in message(ask(client, 400, response_format="xml"))
    assert "model is 'other', which is not a speech recognizer served here; choose one of ears" in message(
        ask(client, 404, model="other")
    )
    assert "'colour' is not a known field" in message(ask(client, 400, colour="red"))
    assert "file is missing" in message(client.post(PATH, data={"model": "ears"}))
    assert "the request body exceeds the limit of 200,000 bytes" in message(ask(client, 413, bytes(300_000)))
    monkeypatch.setattr(recognizers, "BOUNDS", recognizers.BOUNDS._replace(seconds=0.5))
    assert "a.wav is 0.8 seconds long; the maximum is 0.5: split it" in message(ask(client, 400))


def test_a_recording_that_would_fill_the_memory_is_refused(client):
    declared = flac(np.zeros((4096, 8)), 192_000, 1800 * 192_000)
    assert "samples in 8 channels; at most 172,800,000 are read" in ask(client, 400, declared).text
    assert "it must be from 1 to 192,000" in ask(client, 400, flac(np.zeros((4096, 8)), 655_350)).text


LONG = wav_bytes(0.3 * np.sin(np.arange(80_000) ** 1.4 * 0.01), 4_000)  # 20 seconds, four windows


@pytest.fixture
def counted(monkeypatch):
    """Counts the calls of a method of a model or product, and calls `after` after each."""

    def count(owner, name, after=lambda: None):
        calls, called = [], getattr(owner, name)

        def run(*args, **options):
            calls.append(name)
            found = called(*args, **options)
            after()
            return found

        monkeypatch.setattr(owner, name, run)
        return calls

    monkeypatch.setattr(asked_model, "SLICE_SECONDS", 0.0)
    return count


@pytest.fixture
def endless(speaking, monkeypatch):
    """The voice, which then speaks to the limit of each text."""
    next_frames = speaking.product.model.next_frames
    monkeypatch.setattr(
        speaking.product.model,
        "next_frames",
        lambda *given: (lambda made, end: (made, -end.abs()))(*next_frames(*given)),
    )
    return speaking


def test_a_long_recording_and_a_text_are_read_in_slices(client, served, endless, counted):
    (expected,), ([said]) = (
        served.product.transcribe([decode(io.BytesIO(LONG), "a")]),
        endless.product.speak(["Hello."]),
    )
    heard, slices = counted(served.product, "search_batch"), counted(served, "ask")
    assert ask(client, data=LONG).json() == {"text": expected.text}
    assert len(heard) >= 4 and len(slices) == len(heard) + 1  # in the last one the windows are joined
    steps, slices = counted(endless.product.model, "next_frames"), counted(endless, "ask")
    answer = client.post("/v1/audio/speech", json={"input": "Hello."})
    np.testing.assert_allclose(decode(io.BytesIO(answer.content), "a").samples, said.sound.samples, atol=2**-14)
    assert len(steps) > 4 and len(slices) == len(steps) + 1


def test_nothing_goes_on_for_a_request_that_was_cancelled(client, served, endless, counted):
    for model, owner, name, call in (
        (served, served.product, "search_batch", lambda ticket: served.transcribe(ticket, "a.wav", LONG)),
        (endless, endless.product.model, "next_frames", lambda ticket: endless.speak(ticket, "hello " * 50, None)),
    ):
        ticket = Ticket()
        done = counted(owner, name, after=ticket.cancel)
        with ticket.slots, pytest.raises(Cancelled):
            call(ticket)
        model.ask(Ticket(), "call", lambda: None, 1)  # the worker is free, and the slice is over
        assert done == [name]


def test_others_are_heard_between_the_windows_of_a_recording(client, served, counted):
    order, begun, queued = [], threading.Event(), threading.Event()

    def wait():
        begun.set()
        assert queued.wait(20)

    counted(served.product, "search_batch", after=wait)
    first = threading.Thread(target=lambda: (ask(client, data=LONG), order.append("long")))
    first.start()
    assert begun.wait(20)
    counted(served.worker, "submit", after=queued.set)
    with httpx.Client(base_url=client.base_url, timeout=20) as other:
        ask(other)
    order.append("short")
    first.join(20)
    assert order == ["short", "long"]


def test_silence_has_no_text(client):
    assert ask(client, data=wav_bytes(np.zeros(8000), 16_000)).json() == {"text": ""}


def test_the_model_is_listed(client):
    (found,) = client.get("/v1/models").json()["recognizers"]
    assert (found["name"], found["verb"], found["language"], found["rate"]) == ("ears", "transcribe", "en", 16_000)


def test_without_a_recognizer_there_is_a_sentence(start):
    with start(both=False).client() as client:
        assert "no speech recognizer is served here" in ask(client, 404).json()["error"]["message"]


def test_a_text_is_spoken_as_by_the_product(client, speaking):
    for speaker in (None, "bob"):
        (expected,) = speaking.product.speak(["Hello."], speaker)
        answer = client.post("/v1/audio/speech", json={"input": "Hello.", **({"voice": speaker} if speaker else {})})
        assert answer.status_code == 200 and answer.headers["content-type"] == "audio/wav"
        found = decode(io.BytesIO(answer.content), "answer")
        assert found.rate == 8000
        np.testing.assert_allclose(found.samples, expected.sound.samples, atol=2**-14)
    for form, begins in (("pcm", b""), ("flac", b"fLaC")):
        answer = client.post("/v1/audio/speech", json={"input": "Hello.", "response_format": form})
        assert answer.status_code == 200 and answer.content.startswith(begins)
    assert len(client.post("/v1/audio/speech", json={"input": "Hello.", "response_format": "pcm"}).content) % 2 == 0


@pytest.mark.parametrize(
    ("more", "status", "words"),
    [
        ({"voice": "alloy"}, 400, "'alloy' is not one of the speakers 'ann', 'bob'"),
        ({"speed": 2.0}, 400, "speed is 2; the speed is fixed by the model"),
        ({"input": "!!"}, 400, "text 1 has nothing the model can speak"),
        ({"model": "other"}, 404, "which is not a voice served here; choose one of mouth"),
    ],
)
def test_what_cannot_be_spoken_is_refused(client, more, status, words):
    answer = client.post("/v1/audio/speech", json={"input": "Hello.", **more})
    assert answer.status_code == status and words in answer.json()["error"]["message"]
