"""The language that file names state."""

import string
import unicodedata
from itertools import pairwise

import pytest

from heed.data.config import CorpusConfig, DataConfig
from heed.text.languages import RANGES, language_of_files, script

NAMED = {
    "train.en": "en", "data/val.en.gz": "en", "en.txt": "en", "train-en.txt": "en", "news.pt-BR": "pt-BR", "x.zh_CN.xz": "zh_CN",
    "corpus.en-de.en": "en", "train.de.tok.gz": "de", r"C:\texts\train.ko": "ko", "ko": "ko",
}  # fmt: skip
UNNAMED = ["train.txt", "corpus.en-de", "en-de.txt", "source.gz", "a.ko/train", "src", "train.en.bz2", "corpus-v7", ""]


@pytest.mark.parametrize("path", NAMED)
def test_a_file_that_names_its_language(path):
    assert language_of_files([path]) == NAMED[path]


@pytest.mark.parametrize("path", UNNAMED)
def test_a_file_that_does_not(path):
    assert language_of_files([path]) is None


def test_files_must_agree():
    assert language_of_files(["a.en", "b.en.gz"]) == "en"
    assert [language_of_files(paths) for paths in (["a.en", "b.de"], ["a.en", "b.txt"], [])] == [None] * 3


def test_what_is_set_goes_before_names_and_names_before_the_model_it_began_with():
    def languages(source, target, **given):
        data = DataConfig(source=[source], target=[target], **given)
        return tuple(data.languages({"source": "xx", "target": "yy"}).values())

    assert languages("a.ko", "a.en") == ("ko", "en")
    assert languages("a.ko", "a.en", source_language="kor", target_language="eng") == ("kor", "eng")
    assert languages("a.txt", "a.en") == ("xx", "en")
    assert languages("a.en", "b.en") == ("xx", "yy"), "two files of one language are not told apart by it"


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("han", "CJK UNIFIED IDEOGRAPH-"), ("hangul", "HANGUL SYLLABLE "), ("kana", "HIRAGANA LETTER "),
        ("kana", "KATAKANA LETTER "), ("thai", "THAI CHARACTER "), ("tamil", "TAMIL LETTER "),
        ("telugu", "TELUGU LETTER "), ("bengali", "BENGALI LETTER "), ("georgian", "GEORGIAN CAPITAL LETTER "),
        ("hebrew", "HEBREW LETTER "), ("hebrew", "HEBREW LIGATURE "),
    ],
)  # fmt: skip
def test_letters_have_the_script_that_unicode_names(name, title):
    every = [char for char in map(chr, range(0x10000)) if unicodedata.name(char, "").startswith(title)]
    assert every and {script(char) for char in every} == {name}


def test_every_letter_of_english_is_latin():
    assert {script(char) for char in string.ascii_letters} == {"latin"}


def test_no_letter_has_two_scripts_and_signs_have_none():
    spans = sorted(span for own in RANGES.values() for span in own)
    assert all(one[0] <= one[1] < other[0] for one, other in pairwise(spans))
    assert {script(char) for char in " 01[`@{、。"} == {None}


def test_validation_files_the_wrong_way_round_are_noticed_by_their_names():
    files = {"source": ["a.ko"], "target": ["a.en"]}
    swapped, right = (
        {"valid_source": ["v.en"], "valid_target": ["v.ko"]},
        {"valid_source": ["v.ko"], "valid_target": ["v.en"]},
    )
    says = (
        "Warning: the validation files are en to ko by their names, but the training files are ko to en: valid_source and "
        "valid_target may be swapped."
    )
    assert DataConfig(**files, **swapped).swapped_validation() == [says]
    assert DataConfig(corpora=[CorpusConfig(None, **files, **swapped)]).swapped_validation() == [says]
    for other in (
        right,
        {},
        {"valid_source": ["v.a"], "valid_target": ["v.b"]},
        {"valid_source": ["v.en"], "valid_target": ["w.en"]},
    ):
        assert DataConfig(**files, **other).swapped_validation() == []
    assert DataConfig(phrasebook=5, **swapped).swapped_validation() == []
