"""A model of several directions, by tags or by languages of its own, is served in all of them, which share one worker."""

import json
import re
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import heed
from heed.loading import write_package
from heed.service.http.catalogue import Catalogue
from heed.service.http.limits import Refusal
from heed.service.http.models import ServedModel
from heed.service.http.opening import open_models
from heed.service.http.service import Service
from heed.vocabularies.sentencepiece import SubwordsConfig, learn
from tests.convert.multilingual import saved
from tests.helpers import translation_package
from tests.products.conftest import drawn
from tests.service.http.conftest import RunningService

CODES = ["ace", "de", "en", "fr", "ko", "zh", "zho_Hant"]
DIRECTIONS = [["ko", "en"], ["ko", "de"], ["en", "ko"]]


@pytest.fixture(scope="module")
def multilingual(tmp_path_factory):
    path = tmp_path_factory.mktemp("nllb")
    saved("nllb", path, 1.7)
    return path


@pytest.fixture(scope="module")
def tagged(pairs, tmp_path_factory):
    words = learn([pair.source for pair in pairs], SubwordsConfig(), 600, [">>en<<", ">>de<<", ">>ko<<"])
    facts = {"directions": DIRECTIONS, "decoding": {"beam": 2, "max_length": 8}}
    path = tmp_path_factory.mktemp("served") / "many"
    write_package(translation_package(drawn(words, 16).float(), (words, words), facts), path)
    return path


@pytest.fixture(scope="module")
def client(multilingual):
    running = RunningService(Service(open_models([str(multilingual)], "cpu", "torch")))
    with running.client() as client:
        yield client
    running.stop()


@pytest.fixture(scope="module")
def tagged_client(tagged):
    running = RunningService(Service(open_models([str(tagged)], "cpu", "torch")))
    with running.client() as client:
        yield client
    running.stop()


def expanded(groups):
    """Each direction, and the language in its middle."""
    return {
        (source, target): group["through"]
        for group in groups
        for source in group["sources"]
        for target in group["targets"]
        if source != target
    }


def test_all_directions_of_a_multilingual_model_are_listed(client):
    found = client.get("/languages").json()
    assert [one["code"] for one in found] == CODES
    assert {one["code"]: one["targets"] for one in found}["ko"] == [code for code in CODES if code != "ko"]
    assert [one["name"] for one in found][-2:] == ["Chinese", "Chinese (traditional)"]
    said = client.get("/v1/models").json()
    (model,) = said["models"]
    assert (model["languages"], model["directions"]) == (CODES, 7 * 6)
    (group,) = said["directions"]
    assert group["sources"] == CODES and sorted(group["targets"]) == sorted(CODES) and group["through"] is None
    assert said["languages"][0] == {"code": "ace", "name": "Acehnese"}


def test_all_directions_of_a_model_with_tags_are_listed(tagged_client):
    assert tagged_client.get("/languages").json() == [
        {"code": "ko", "name": "Korean", "targets": ["en", "de"]},
        {"code": "en", "name": "English", "targets": ["ko", "de"]},
        {"code": "de", "name": "German", "targets": []},
    ]
    said = tagged_client.get("/v1/models").json()
    assert [(one["name"], one["languages"], one["directions"]) for one in said["models"]] == [
        ("many", ["ko", "en", "de"], 3)
    ]
    assert expanded(said["directions"]) == {
        ("ko", "en"): None,
        ("ko", "de"): None,
        ("en", "ko"): None,
        ("en", "de"): "ko",
    }


def test_each_direction_says_what_the_translator_says(client, multilingual):
    ours = heed.load(multilingual, device="cpu", engine="torch")
    texts = ["나는 책을 읽어요.", "the dog sees a red house ."]
    for source, target in (("ko", "en"), ("ko", "de"), ("en", "zho_Hant")):
        answer = client.post("/translate", json={"q": texts, "source": source, "target": target}).json()
        expected = [one.text for one in ours.translate(texts, source=source, target=target)]
        assert answer["translatedText"] == expected
        whole = client.post(
            "/v1/translate", json={"text": texts, "source": source, "target": target, "alignment": True}
        )
        assert [one["text"] for one in whole.json()["translations"]] == expected


def test_each_tag_says_what_the_translator_says_also_through_a_third_language(tagged_client, tagged):
    ours, text = heed.load(tagged, device="cpu", engine="torch"), "나는 학생이에요."

    def ask(text, source, target):
        body = {"q": text, "source": source, "target": target}
        return tagged_client.post("/translate", json=body).json()["translatedText"]

    for target in ("en", "de"):
        assert ask(text, "ko", target) == ours.translate(text, source="ko", target=target).text
    assert ask("a house", "en", "de") == ask(ask("a house", "en", "ko"), "ko", "de")
    refused = tagged_client.post("/translate", json={"q": text, "source": "de", "target": "ko"})
    assert (
        refused.status_code == 400
        and "Korean (ko) is not available as a target language from German (de)" in refused.text
    )


def test_one_sentence_is_inspected_in_its_direction(client, tagged_client):
    body = {"text": "나는 책을 읽어요.", "source": "ko", "target": "fr"}
    assert client.post("/v1/look", json=body).json()["source"][0] == "kor_Hang"
    assert tagged_client.post("/v1/look", json={**body, "target": "de"}).json()["source"][0] == ">>de<<"


def test_the_language_of_a_text_is_detected_among_those_of_the_model(client, multilingual):
    body = {"q": "나는 책을 읽어요.", "source": "auto", "target": "zho_Hant"}
    answer = client.post("/translate", json=body).json()
    ours = heed.load(multilingual, device="cpu", engine="torch")
    assert answer["detectedLanguage"]["language"] == "ko"
    assert answer["translatedText"] == ours.translate(body["q"], source="ko", target="zho_Hant").text


def test_an_unknown_language_is_refused(client):
    answer = client.post("/translate", json={"q": "a", "source": "en", "target": "xx"})
    assert answer.status_code == 400 and answer.json()["error"] == "xx is not supported"


def test_a_model_of_one_direction_has_precedence(multilingual):
    many, one = open_models([str(multilingual), f"ko-en={multilingual}"], "cpu", "torch")
    assert (one.source, one.target, one.directions) == ("ko", "en", [])
    catalogue = Catalogue([many, one])
    assert catalogue.route("ko", "en") == [one] and catalogue.pairs["en", "ko"] == [many]
    with pytest.raises(ValueError, match="both translate ace to de: serve one of them"):
        Catalogue([many, ServedModel("other", many.source, many.target, many.translator, directions=many.directions)])


def test_one_direction_of_several_can_be_served(tagged):
    (own,) = open_models([f"ko-de={tagged}"], "cpu", "torch")
    assert Catalogue([own]).pairs.keys() == {("ko", "de")}
    with pytest.raises(
        ValueError, match="does not translate from ko to fr; it translates ko to en, ko to de, en to ko"
    ):
        open_models([f"ko-fr={tagged}"], "cpu", "torch")


@given(
    st.sets(
        st.tuples(st.sampled_from("abcde"), st.sampled_from("abcde")).filter(lambda pair: pair[0] != pair[1]),
        min_size=1,
    )
)
def test_the_groups_of_directions_are_the_directions(translator, pairs):
    pairs = sorted(pairs)
    catalogue = Catalogue([ServedModel("many", *pairs[0], translator, directions=pairs)])
    assert expanded(catalogue.groups) == {pair: catalogue.through.get(pair) for pair in catalogue.pairs}
    assert {pair for pair in catalogue.pairs if pair not in catalogue.through} == {*pairs}


def test_two_hundred_languages_are_listed_in_little_space(translator):
    codes = [f"l{number:02}_Latn" for number in range(202)]
    catalogue = Catalogue([ServedModel("many", *codes[:2], translator, directions=list(permutations(codes, 2)))])
    assert len(catalogue.pairs) == 202 * 201 and not catalogue.through
    assert len(json.dumps(catalogue.groups)) < 6_000 and len(catalogue.languages_json) < 500_000
    assert catalogue.languages_json is catalogue.languages_json
    assert catalogue.listing == "40,602 directions between 202 languages"
    for ask, says in (
        (lambda: catalogue.route(codes[0], "l07"), "target is 'l07', which is not served; it may mean l07_Latn"),
        (
            lambda: catalogue.route(codes[0], "?"),
            "target is '?', which is not served; see /languages",
        ),
        (lambda: catalogue.only_target("auto"), "target is missing; see /languages; choose one of 202"),
    ):
        with pytest.raises(Refusal, match=re.escape(says)):
            ask()
