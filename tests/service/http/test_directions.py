"""A model of many languages is served in all its directions, which share one worker."""

import pytest

import heed
from heed.service.http.models import Catalogue, ServedModel, open_models
from heed.service.http.service import Service
from tests.convert.multilingual import NLLB_CODES, saved
from tests.service.http.conftest import RunningService

CODES = ["ace_Latn", "de", "en", "fr", "ko", "zh", "zho_Hant"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("nllb")
    saved("nllb", path, 1.7)
    return path


@pytest.fixture(scope="module")
def client(folder):
    running = RunningService(Service(open_models([str(folder)], "cpu", "torch")))
    with running.client() as client:
        yield client
    running.stop()


def test_all_directions_are_listed(client):
    found = client.get("/languages").json()
    assert [one["code"] for one in found] == CODES and len(CODES) == len(NLLB_CODES)
    assert {one["code"]: one["targets"] for one in found}["ko"] == [code for code in CODES if code != "ko"]
    assert [one["name"] for one in found][-2:] == ["Chinese", "Chinese (Hant)"]
    models = client.get("/v1/models").json()
    assert len(models["models"]) == 1 and len(models["pairs"]) == 7 * 6


def test_each_direction_says_what_the_translator_says(client, folder):
    ours = heed.load(folder, device="cpu", engine="torch")
    texts = ["나는 책을 읽어요.", "the dog sees a red house ."]
    for source, target in (("ko", "en"), ("ko", "de"), ("en", "zho_Hant")):
        answer = client.post("/translate", json={"q": texts, "source": source, "target": target}).json()
        expected = [one.text for one in ours.translate(texts, source=source, target=target)]
        assert answer["translatedText"] == expected
        whole = client.post("/v1/translate", json={"text": texts, "source": source, "target": target, "alignment": True})
        assert [one["text"] for one in whole.json()["translations"]] == expected


def test_one_sentence_is_inspected_in_its_direction(client):
    body = {"text": "나는 책을 읽어요.", "source": "ko", "target": "fr"}
    assert client.post("/v1/look", json=body).json()["source"][0] == "kor_Hang"


def test_an_unknown_language_is_refused(client):
    answer = client.post("/translate", json={"q": "a", "source": "en", "target": "xx"})
    assert answer.status_code == 400 and "target is 'xx', which is not served; it is one of" in answer.json()["error"]


def test_a_model_of_one_direction_has_precedence(folder):
    many, one = open_models([str(folder), f"ko-en={folder}"], "cpu", "torch")
    assert (one.source, one.target, one.directions) == ("ko", "en", [])
    catalogue = Catalogue([many, one])
    assert catalogue.route("ko", "en") == [one] and catalogue.route("en", "ko")[0].name == many.name
    with pytest.raises(ValueError, match="both translate ace_Latn to de: serve one of them"):
        Catalogue([many, ServedModel("other", many.source, many.target, many.translator, directions=many.directions)])
