"""The language that file names state."""

import pytest

from heed.data.config import DataConfig
from heed.text.languages import language_of_files

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
