"""A model of several directions is served as one for each."""

import pytest

from heed.loading import write_package
from heed.service.http.limits import Limits
from heed.service.http.models import Catalogue, open_models
from heed.service.http.service import Service, Settings
from heed.vocabularies.sentencepiece import SubwordsConfig, learn
from tests.helpers import translation_package
from tests.products.conftest import drawn
from tests.service.http.conftest import RunningService

DIRECTIONS = [["ko", "en"], ["ko", "de"], ["en", "ko"]]


@pytest.fixture(scope="module")
def folder(pairs, tmp_path_factory):
    words = learn([pair.source for pair in pairs], SubwordsConfig(), 600, [">>en<<", ">>de<<", ">>ko<<"])
    facts = {"directions": DIRECTIONS, "decoding": {"beam": 2, "max_length": 8}}
    path = tmp_path_factory.mktemp("served") / "many"
    write_package(translation_package(drawn(words, 16).float(), (words, words), facts), path)
    return path


def test_each_direction_is_served_and_says_what_the_model_says(folder):
    models = open_models([str(folder)], "cpu", "torch")
    assert [(own.name, own.source, own.target) for own in models] == [
        ("many:ko-en", "ko", "en"), ("many:ko-de", "ko", "de"), ("many:en-ko", "en", "ko")]  # fmt: skip
    running = RunningService(Service(models, Settings(limits=Limits())))
    try:
        with running.client() as client:
            assert client.get("/languages").json() == [
                {"code": "ko", "name": "Korean", "targets": ["en", "de"]},
                {"code": "en", "name": "English", "targets": ["ko", "de"]},
                {"code": "de", "name": "German", "targets": []},
            ]
            text = "나는 학생이에요."
            for target, own in zip(("en", "de"), models, strict=False):
                answer = client.post("/translate", json={"q": text, "source": "ko", "target": target}).json()
                assert answer["translatedText"] == own.translator.translate(text).text
            refused = client.post("/translate", json={"q": text, "source": "de", "target": "ko"})
            assert refused.status_code == 400 and "de to ko is not served; there is ko to en" in refused.text
    finally:
        running.stop()


def test_one_direction_of_several_can_be_served(folder):
    (own,) = open_models([f"ko-de={folder}"], "cpu", "torch")
    assert Catalogue([own]).pairs.keys() == {("ko", "de")}
    with pytest.raises(
        ValueError, match="does not translate from ko to fr; it translates ko to en, ko to de, en to ko"
    ):
        open_models([f"ko-fr={folder}"], "cpu", "torch")
