"""Recordings over HTTP: what is answered is what the recognizer says."""

import io

import numpy as np
import pytest
import torch

from heed.audio.files import decode, wav_bytes
from heed.models.speech_transformer import SpeechTransformer, SpeechTransformerConfig
from heed.products.recognizer import Recognizer
from heed.products.subtitles import subrip, web_vtt
from heed.service.http import recognizers
from heed.service.http.limits import Limits
from heed.service.http.recognizers import ServedRecognizer
from heed.service.http.service import Service, Settings
from heed.vocabularies.characters import Characters
from heed.vocabularies.sound import FeatureSettings, SoundFeatures
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


@pytest.fixture(scope="module")
def client(served):
    running = RunningService(Service([served], Settings(limits=Limits(bytes=200_000))))
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

    assert "speech.wav is not a sound that can be read" in message(ask(client, 400, b"I am a text.", "speech.wav"))
    assert "response_format is 'xml'" in message(ask(client, 400, response_format="xml"))
    assert "model is 'other', which is no speech recognizer here; it is one of ears" in message(
        ask(client, 404, model="other")
    )
    assert "'colour' is no field here" in message(ask(client, 400, colour="red"))
    assert "file is missing" in message(client.post(PATH, data={"model": "ears"}))
    assert "the body has more than 200,000 bytes" in message(ask(client, 413, bytes(300_000)))
    monkeypatch.setattr(recognizers, "MAX_SECONDS", 0.5)
    assert "a.wav has 0.8 seconds; 0.5 are taken at once: send parts of it" in message(ask(client, 400))


def test_silence_has_no_text(client):
    assert ask(client, data=wav_bytes(np.zeros(8000), 16_000)).json() == {"text": ""}


def test_the_model_is_listed(client):
    (found,) = client.get("/v1/models").json()["recognizers"]
    assert (found["name"], found["verb"], found["language"], found["rate"]) == ("ears", "transcribe", "en", 16_000)


def test_without_a_recognizer_there_is_a_sentence(start):
    with start(both=False).client() as client:
        assert "no speech recognizer is served here" in ask(client, 404).json()["error"]["message"]
