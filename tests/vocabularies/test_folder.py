"""Vocabularies of every kind, written into a folder and read again."""

import hashlib

import pytest

from heed.vocabularies import characters, folder, words
from heed.vocabularies.sentencepiece import SubwordsConfig
from tests.data.mixed import training


@pytest.mark.parametrize("kind", [kind for kind, module in folder.KINDS.items() if hasattr(module, "learn")])
def test_a_kind_writes_its_name_and_is_found_by_it(tmp_path, kind):
    pair = learn(kind)
    assert folder.write(tmp_path, pair) == {"kind": kind}
    assert [vocabulary.key() for vocabulary in folder.read(tmp_path, {"kind": kind})] == [pair[0].key(), pair[1].key()]
    half = ["fine", "a\ud800b"]
    if kind in ("words", "characters"):
        assert pair[0].special.unknown in pair[0].encode(half)[1]
    else:
        with pytest.raises(ValueError, match=r"surrogate"):
            pair[0].encode(half)


def learn(kind):
    if kind == "words":
        return (words.learn(training(), SubwordsConfig(kind="words")),) * 2
    if kind in ("characters", "bytes"):
        return (characters.learn(kind, training(), SubwordsConfig(kind=kind)),) * 2
    return folder.learn(kind, training(), 1000)


def test_an_unknown_kind_is_refused_with_those_that_are_known(tmp_path):
    with pytest.raises(ValueError, match=r"subwords\.kind is 'other'; heed supports marian, bart, pegasus, words"):
        folder.read(tmp_path, {"kind": "other"})


@pytest.mark.parametrize("kind", ["bart", "pegasus"])
def test_the_key_depends_on_the_kind_and_the_tokenizer_alone(kind):
    """Prepared corpora are found by it, so it must not change with the name of a class."""
    vocabulary = folder.learn(kind, training(), 1000)[0]
    assert vocabulary.key() == hashlib.sha256(kind.encode() + vocabulary.tokenizer.to_str().encode()).hexdigest()
