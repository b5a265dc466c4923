"""Schemathesis reads the OpenAPI document and sends what it can think of: nothing breaks."""

import base64
import itertools
import warnings
from contextlib import suppress

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis.generation import GenerationMode

from heed.service.http.image_models import ServedImageGenerator, ServedImageModel
from heed.service.http.language_models import ServedLanguageModel
from heed.service.http.limits import Limits
from heed.service.http.openapi import _inlined
from heed.service.http.recognizers import ServedRecognizer
from heed.service.http.recommenders import ServedRecommender
from heed.service.http.service import Service, Settings
from heed.service.http.voices import ServedVoice
from tests.service import encoders, image_models, language_models, recommenders
from tests.service.http.conftest import RunningService
from tests.service.http.test_audio import SOUND, recognizer, voice

EACH = {GenerationMode.POSITIVE: 5, GenerationMode.NEGATIVE: 2}  # of each operation, as the document says and not so
MADE = {  # models by kind of service, and the paths that ask them
    "writing": (lambda: [ServedLanguageModel("gpt2", language_models.gpt2())], ("/v1/completions", "/v1/look/text", "/v1/models/{name}")),
    "encoders": (lambda: [own for own in encoders.served() if own.name not in ("pairs", "choices", "electra")],
                 ("/v1/embeddings", "/v1/fill", "/v1/tag", "/v1/answer", "/v1/classify")),
    "images": (lambda: [ServedImageModel("vit", image_models.image_classifier()),
                        ServedImageGenerator("draw", image_models.image_generator())], ("/v1/images/",)),
    "speech": (lambda: [ServedRecognizer("ears", recognizer()), ServedVoice("mouth", voice())], ("/v1/audio/",)),
    "items": (lambda: [ServedRecommender("shop", recommenders.recommender())], ("/v1/recommend", "/v1/items")),
}  # fmt: skip
PLACES = ["/translate", "/detect", "/languages", "/translate_file", "/download_file", "/frontend/settings", "/health", "/v1/translate",
          "/v1/alternatives", "/v1/look", "/v1/models", "/v1/runs", *(path for _, paths in MADE.values() for path in paths)]  # fmt: skip


VALID = {  # what cannot be drawn at random; the rest of a request still is
    "writing": {},
    "encoders": {"text": "the [MASK] sat on it"},
    "images": {"image": base64.b64encode(image_models.png()).decode(), "label": "cat", "complete": None, "enlarge": None},
    "speech": {"input": "hello", "voice": "bob", "speed": 1, "file": ("a.wav", SOUND)},
    "items": {"items": ["tea", "Milk"], "user": None, "k": 3},
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisDeprecationWarning")  # others draw too, in the service
def test_nothing_that_can_be_asked_breaks_it(start, tmp_path):
    running = start(runs=tmp_path)
    seen = send_everything(running, lambda path: True)
    assert {200, 400, 404} <= {status for _, status in seen}
    assert ("/translate", 200) in seen and ("/v1/translate", 200) in seen


@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisDeprecationWarning")
@pytest.mark.parametrize("kind", MADE)
def test_nothing_that_can_be_asked_breaks_another_model(kind):
    models, paths = MADE[kind]
    running = RunningService(Service(models(), Settings(limits=Limits(seconds=20.0))))
    seen = send_everything(running, lambda path: path.startswith(paths), VALID[kind])
    running.stop()
    assert {200, 400} <= {status for _, status in seen}
    answered = {path for path, status in seen if status == 200}
    assert {path for path, _ in seen} - answered <= {"/v1/models/{name}"}  # of a name that cannot be drawn


def send_everything(running, chosen, valid=None):
    """The paths and statuses of what was sent to the chosen paths. What is drawn as the document says is also sent with
    `valid` fields, and to the only model.
    """
    schema = schemathesis.openapi.from_url(f"{running.url}/openapi.json")
    operations = [own for found in schema.get_all_operations() if chosen((own := found.ok()).path)]
    found = (send_drawn(running, *each, valid) for each in itertools.product(operations, EACH))
    return set().union(*found)


def send_drawn(running, operation, mode, valid):
    seen, again = set(), valid is not None and mode == GenerationMode.POSITIVE

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=EACH[mode],
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    def sent(case):
        answers = [case.call(timeout=30)]
        if again and isinstance(case.body, dict):
            answers.append(httpx.post(running.url + case.operation.path, **repaired(case.body, valid), timeout=30))
        for said in answers:
            seen.add((case.operation.path, said.status_code))
            assert said.status_code < 500, (case.as_curl_command(), said.text)
            if said.status_code >= 400:
                assert {"error"} <= said.json().keys() <= {"error", "detected", "sources"}

    with suppress(Unsatisfiable):  # of what takes nothing, nothing can be wrong
        sent()
    return seen


def repaired(body, valid):
    """The arguments of a request with these fields instead of the drawn ones; None leaves one out."""
    replaced = {name: own for name, own in valid.items() if name in body or name == "items"}  # which is optional
    fields = {name: own for name, own in (body | replaced).items() if name not in ("model", "api_key")}
    fields = {name: own for name, own in fields.items() if own is not None}
    if "file" in body:
        return {"files": {"file": fields.pop("file")}, "data": {name: str(own) for name, own in fields.items()}}
    return {"json": fields}


def test_the_document_has_every_place(client):
    paths = client.get("/openapi.json").json()["paths"]
    assert all(any(path.startswith(place) for path in paths) for place in PLACES)
    assert "$ref" not in str([one for path, one in paths.items() if "post" in one])
    fields = paths["/translate"]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert fields["source"]["enum"] == ["auto", "ko", "en"] and fields["target"]["enum"] == ["en", "de"]
    for place, run in (("/v1/runs", lambda answer: answer["runs"][0]), ("/v1/runs/{name}", dict)):
        answer = paths[place]["get"]["responses"]["200"]["content"]["application/json"]["schema"]["example"]
        assert run(answer)["metrics"][0].keys() == {"name", "label", "better", "decimals"}


def test_a_reference_is_replaced_by_what_it_stands_for():
    schema = {
        "title": "A", "properties": {"title": {"title": "B", "type": "string"}, "own": {"$ref": "#/$defs/Own"}},
        "$defs": {"Own": {"title": "Own", "items": [{"$ref": "#/$defs/Last"}]}, "Last": {"type": "integer"}},
    }  # fmt: skip
    assert _inlined(schema) == {"properties": {"title": {"type": "string"}, "own": {"items": [{"type": "integer"}]}}}
