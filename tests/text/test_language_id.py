"""The language of a text by py3langid: codes, doubts, and texts that are in no language."""

import pytest

from heed.text import language_id
from heed.text.language_id import in_another_language, known, probabilities

TEXTS = {"en": "The old man reads a book by the sea.", "de": "Der alte Mann liest am Meer ein Buch.", "nb": "Den gamle mannen leser en bok ved sjøen.",
         "pt-BR": "O velho homem lê um livro junto ao mar.", "ko": "노인이 바닷가에서 책을 읽어요."}  # fmt: skip


@pytest.mark.parametrize("code", TEXTS)
def test_a_text_is_in_its_language_and_in_no_other(code):
    assert not in_another_language(TEXTS[code], code)
    assert all(in_another_language(TEXTS[code], other) for other in TEXTS if other != code)


def test_codes_are_those_of_the_library():
    assert [known(code) for code in ("pt-BR", "nb", "zh_TW", "kor_Hang", "zho_Hant", "ki", "tlh")] == [
        "pt", "no", "zh", "ko", "zh", "kik", None]  # fmt: skip


def test_probabilities_sum_to_one_also_with_a_rare_language():
    shares = probabilities(TEXTS["de"], ["lb", "tlh"])
    assert sum(shares.values()) == pytest.approx(1, abs=1e-4)
    assert "lb" in shares and "tlh" not in shares and "lb" not in probabilities(TEXTS["de"])
    assert max(shares, key=shares.get) == "de"


@pytest.mark.parametrize("text", ["", "42", "x = 17;", "?!", "OK"])
def test_of_texts_without_words_nothing_is_said(text):
    assert not any(in_another_language(text, code) for code in TEXTS)


def test_four_letters_are_enough():
    assert in_another_language("나는 간다", "en") and not in_another_language("나는 가", "en")


def test_the_check_names_what_is_missing(monkeypatch):
    language_id.check(["en", "pt-BR"], "filters.language")
    with pytest.raises(ValueError, match=r"needs to know the language of the source: set data\.source_language"):
        language_id.check([None, "en"], "filters.language")
