"""Language detection by script and by words, with a calibrated confidence."""

import pytest
from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES

from heed.service.http.detect import detect
from heed.text import language_id
from heed.text.language_codes import public_codes

ALL = ["en", "de", "fr", "ko", "ja"]
SAID = {
    "ko": ["나는 학생이에요.", "iPhone을 샀어요", "내일 Berlin에 가요."],
    "ja": ["東京に行きました。", "コーヒーを飲みます", "これは本です。"],
    "en": ["A man is sleeping.", "Two dogs are playing in the snow.", "Where do you live?", "What does 사랑 mean?"],
    "de": ["Ein Mann schläft.", "Zwei Hunde spielen im Schnee.", "Wo wohnst du?", "Die Straßenbahn kommt nicht."],
    "fr": ["Un homme dort.", "Deux chiens jouent dans la neige.", "Où habites-tu ?", "Je ne sais pas."],
}


@pytest.mark.parametrize(("language", "text"), [(language, text) for language, own in SAID.items() for text in own])
def test_the_language_of_a_sentence_is_detected(language, text):
    best = detect(text, ALL)[0]
    assert best.language == language and best.confidence > 0.5


def test_confidences_are_shares(texts):
    for text in [*texts, "ok", "Berlin", "information", "", "123", "Это книга."]:
        found = detect(text, ALL)
        assert sorted(one.language for one in found) == sorted(ALL)
        assert sum(one.confidence for one in found) <= 1 + 1e-9
        assert all(one.confidence >= 0 for one in found)


def test_ambiguous_texts_have_low_confidence():
    assert detect("123 !?", ALL)[0].confidence == pytest.approx(0.2)
    assert detect("information", ALL)[0].confidence < 0.6
    assert detect("Ein Mann schläft auf der Straße.", ["en", "ko"])[0].confidence < 0.1  # neither of them
    assert detect("东京", ["ko"])[0].confidence < 0.2


def test_addresses_and_placeholders_do_not_count():
    assert (
        detect("https://www.the-and-of-is.example/that/this 쉬웠어요 {the} the@of.example", ["en", "ko"])[0].language
        == "ko"
    )


def test_codes_with_regions_are_those_of_their_language():
    assert detect("Onde está o livro?", ["pt-BR", "es"])[0].language == "pt-BR"


def test_languages_without_common_words_are_detected_by_the_library():
    for text in ("Muž spí na ulici.", "Dva psi si hrají ve sněhu.", "Kde bydlíš?"):
        best = detect(text, [*ALL, "cs"])[0]
        assert best.language == "cs" and best.confidence > 0.5


def test_single_words_are_detected_by_the_common_words():
    assert [detect(word, ["en", "de", "fr"])[0].language for word in ("the", "und", "avec")] == ["en", "de", "fr"]


def test_without_the_library_the_words_alone_decide(monkeypatch):
    monkeypatch.setattr(language_id, "available", lambda: False)
    for language, own in SAID.items():
        for text in own:
            found = detect(text, ALL)
            assert found[0].language == language
            assert sorted(one.language for one in found) == sorted(ALL)
            assert sum(one.confidence for one in found) <= 1 + 1e-9


def test_a_language_that_the_library_does_not_know_is_no_error():
    found = detect("Two dogs are playing in the snow.", ["tlh", "en"])
    assert [one.language for one in found] == ["en", "tlh"]


def test_codes_of_multilingual_models_are_those_of_their_language():
    served = list(public_codes(tuple(FAIRSEQ_LANGUAGE_CODES)))
    said = {
        "ko": "나는 학생이에요.", "en": "The weather is nice today.", "zh": "今天天气很好。", "hi": "आज मौसम अच्छा है।",
        "mr": "आज हवामान छान आहे.", "kk": "Бүгін ауа райы жақсы.", "ki": "Ũmũthĩ rĩera nĩ rĩega mũno.",
    }  # fmt: skip
    assert {text: detect(text, served)[0].language for text in said.values()} == {
        own: code for code, own in said.items()
    }
    assert detect("今天天气很好。", ["zho_Hant", "en"])[0].language == "zho_Hant"
    assert detect("나는 학생이에요.", ["kor_Hang", "jpn_Jpan"])[0].language == "kor_Hang"


@pytest.mark.parametrize("library", [True, False])
def test_words_in_latin_letters_are_of_a_language_that_has_them(library, monkeypatch):
    if not library:
        monkeypatch.setattr(language_id, "available", lambda: False)
    for text in ("Wxyz qrst vbnm kjhg", "Pneumonoultramicroscopic", "Zsfgk"):
        assert detect(text, ["ko", "ja", "en"])[0].language == "en"
