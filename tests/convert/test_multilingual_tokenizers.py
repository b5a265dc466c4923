"""The vocabularies of mBART-50, M2M-100 and NLLB give the ids of transformers, and go out and in again."""

import json
import pickle

import pytest

from heed.convert import tokenizers
from heed.vocabularies import folder as vocabulary_folder
from heed.vocabularies import nllb
from heed.vocabularies.multilingual import in_languages
from tests.convert.multilingual import CODES, NLLB_CODES, nllb_files, vocabularies
from tests.data import mixed
from tests.data.mixed import lines

KINDS = {"mbart50": "mbart", "m2m100": "m2m_100", "nllb": "m2m_100"}
SPECIAL = ["__en__ and __ko__", "en_XX", "a ko_KR b", "eng_Latn", "x kor_Hang", "<mask>", "a <mask> b"]


def theirs(folder, kind):
    from transformers import AutoTokenizer

    (folder / "config.json").write_text(json.dumps({"model_type": KINDS[kind]}))
    return AutoTokenizer.from_pretrained(folder)


def chosen(kind):
    return in_languages(vocabularies(kind), *CODES[kind])


def read_again(folder, kind):
    return vocabulary_folder.read(folder, {"kind": vocabularies(kind)[0].kind})


def alike(pair, tokenizer, texts):
    """Ids of both sides with their languages, and texts of any ids."""
    tokenizer.src_lang, tokenizer.tgt_lang = pair[0].language, pair[1].language
    for side, written in zip(pair, (tokenizer(texts), tokenizer(text_target=texts)), strict=True):
        ids = side.encode(texts)
        assert [[*side.special.before, *one, side.special.last] for one in ids] == written["input_ids"]
    said = ids + mixed.ids(len(pair[1]))
    assert [pair[1].decode(one) for one in said] == tokenizer.batch_decode(said, skip_special_tokens=True)
    assert len(pair[1]) == len(tokenizer)


@pytest.mark.parametrize("kind", KINDS)
def test_ids_and_texts_are_theirs_and_files_come_back(tmp_path, kind):
    pair = chosen(kind)
    tokenizers.write(pair, tmp_path, 77)
    tokenizer = theirs(tmp_path, kind)
    assert (tokenizer.src_lang, tokenizer.tgt_lang, tokenizer.model_max_length) == (*CODES[kind], 77)
    alike(pair, tokenizer, [*SPECIAL, *lines()])
    again = read_again(tmp_path, kind)
    assert [side.key() for side in again] == [side.key() for side in vocabularies(kind)]
    assert again[0].language is None and again[0].special.before == ()


@pytest.mark.parametrize("kind", KINDS)
def test_what_transformers_writes_is_read_alike(tmp_path, kind):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    tokenizers.write(chosen(kind), tmp_path / "one", 77)
    theirs(tmp_path / "one", kind).save_pretrained(tmp_path / "two")
    alike(
        in_languages(read_again(tmp_path / "two", kind), *CODES[kind]),
        theirs(tmp_path / "two", kind),
        [*SPECIAL, *lines(1)],
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_direction_is_kept_when_pickled_and_leaves_the_vocabulary_as_it_was(kind):
    source, target = chosen(kind)
    assert vocabularies(kind)[0].language is None
    for side in (source, target):
        again = pickle.loads(pickle.dumps(side))
        assert (again.language, again.special) == (side.language, side.special)
    assert source.special.before == (source.languages[CODES[kind][0]],)


def test_a_sentencepiece_model_alone_is_an_mbart_50(tmp_path):
    pair = chosen("mbart50")
    (tmp_path / "sentencepiece.bpe.model").write_bytes(pair[0].files["sentencepiece.bpe.model"].content)
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "MBart50Tokenizer"}')
    alike(in_languages(read_again(tmp_path, "mbart50"), *CODES["mbart50"]), theirs(tmp_path, "mbart50"), lines(2))


def test_the_legacy_order_of_nllb_ends_with_the_language(tmp_path):
    one = nllb.NllbVocabulary(nllb_files(legacy_behaviour=True))
    pair = in_languages((one, one), *CODES["nllb"])
    tokenizers.write(pair, tmp_path, 77)
    tokenizer = theirs(tmp_path, "nllb")
    tokenizer.src_lang = "kor_Hang"
    ids = pair[0].encode(lines())
    special = pair[0].special
    assert [[*special.before, *one, special.last] for one in ids] == tokenizer(lines())["input_ids"]
    assert pair[1].special.before == (
        one.languages["eng_Latn"],
    )  # what it writes begins with the language all the same


def test_the_key_tells_vocabularies_apart():
    """A corpus is prepared once for each key: what gives other ids must have another one."""
    legacy = nllb.NllbVocabulary(nllb_files(legacy_behaviour=True)).in_language("kor_Hang", source=True)
    keys = [*(vocabularies(kind)[0].key() for kind in KINDS), legacy.key()]
    assert all(isinstance(key, str) and key for key in keys) and len(set(keys)) == len(keys)
    assert nllb.NllbVocabulary(nllb_files()).key() == vocabularies("nllb")[0].key()


def test_languages_are_those_that_a_folder_adds():
    assert tuple(vocabularies("nllb")[0].languages) == NLLB_CODES
    with pytest.raises(ValueError, match="adds no languages such as eng_Latn: it is not an NLLB tokenizer"):
        nllb.NllbVocabulary(nllb_files(codes=()))


def test_the_first_mbart_is_refused(tmp_path):
    tokenizers.write(chosen("mbart50"), tmp_path, 77)
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "MBartTokenizer"}')
    with pytest.raises(
        ValueError, match="the original mBART, where texts end with their language code; heed supports mBART-50"
    ):
        read_again(tmp_path, "mbart50")


@pytest.mark.parametrize("kind", ["mbart50", "m2m100"])
def test_a_size_below_the_languages_is_refused(kind):
    words = "could not be learned: special tokens and languages alone are"
    with pytest.raises(ValueError, match=words) as said:
        vocabularies(kind, 50)
    with pytest.raises(ValueError, match=words):  # with these alone there is no piece to learn
        vocabularies(kind, int(str(said.value).split()[-1]))


def test_a_set_of_languages_that_heed_does_not_know_is_refused(tmp_path):
    tokenizers.write(chosen("m2m100"), tmp_path, 77)
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "language_codes": "klingon"}), "utf-8")
    with pytest.raises(ValueError, match=r"tokenizer_config.json: language_codes is 'klingon'; heed supports m2m100"):
        read_again(tmp_path, "m2m100")
