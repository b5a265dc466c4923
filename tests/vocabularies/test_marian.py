"""Marian's vocabularies: the ids of transformers' MarianTokenizer, folders there and back, and the words of errors."""

import io
import json
import pickle
from functools import cache

import pytest
import sentencepiece

from heed.vocabularies import marian
from heed.vocabularies.marian import MarianVocabulary
from heed.vocabularies.vocabulary import Vocabulary
from tests.data import mixed
from tests.data.mixed import lines, training

SIZE = 1000


def test_lines_become_one_with_a_space_for_each_break():
    assert MarianVocabulary.clean("one\ntwo\r\n three\u2028four ") == "one two  three four "


@cache
def spm(side: int, size: int, kind: str) -> bytes:
    """A SentencePiece model as OPUS-MT has them: no bytes, so that something is unknown."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(training()[side::2]),
        model_writer=model,
        vocab_size=size,
        model_type=kind,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return model.getvalue()


def opus(folder, separate: bool) -> None:
    """A folder like those of OPUS-MT: each side has its own pieces; one table, with tags, for both, or a table each."""
    models = [spm(0, 500, "unigram"), spm(1, 600, "bpe")]
    tables = []
    for side, model in zip(("source", "target"), models, strict=True):
        (folder / f"{side}.spm").write_bytes(model)
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        tables.append([processor.id_to_piece(i) for i in range(3, processor.vocab_size())])
    tags = [">>fra<<", ">>kor_Hang<<"]
    if separate:  # <pad> is where it is on the other side: transformers has one id for it
        write_table(folder / "vocab.json", ["</s>", "<unk>", "<pad>", *tags, *tables[0]])
        write_table(folder / "target_vocab.json", ["</s>", "<unk>", "<pad>", *tables[1]])
        (folder / "tokenizer_config.json").write_text(json.dumps({"separate_vocabs": True}))
    else:
        both = dict.fromkeys([*tags, "☃☃", *tables[0], *tables[1][20:]])  # some of the target's have no id
        write_table(folder / "vocab.json", ["</s>", "<unk>", *both, "<pad>"])


def write_table(path, pieces) -> None:
    path.write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}, indent=1))


def theirs(folder):
    from transformers import MarianTokenizer

    return MarianTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module", params=["one table", "two tables", "learned", "settings"])
def folder(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("marian")
    if request.param == "learned":
        marian.write(folder, marian.learn(training(), SIZE))
    else:
        opus(folder, separate=request.param == "two tables")
    if request.param == "settings":
        ids = json.loads((folder / "vocab.json").read_text())
        token = {"lstrip": False, "rstrip": False, "single_word": False, "normalized": False}
        added = {
            str(ids["</s>"]): {"content": "</s>", "special": True, **token},
            str(ids[">>fra<<"]): {"content": ">>fra<<", "special": True, **token},
            str(len(ids)): {"content": "<n>", "special": False, **token},
        }
        (folder / "tokenizer_config.json").write_text(
            json.dumps({"sep_token": ">>kor_Hang<<", "added_tokens_decoder": added})
        )
    return folder


@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
def test_ids_and_texts_are_those_of_transformers(folder):
    source, target = marian.read(folder)
    tokenizer, texts = theirs(folder), lines()
    assert len(texts) == 2000
    ids = source.encode(texts), target.encode(texts)
    assert [[*own, source.special.last] for own in ids[0]] == tokenizer(texts)["input_ids"]
    assert [[*own, target.special.last] for own in ids[1]] == tokenizer(text_target=texts)["input_ids"]
    assert any(source.special.unknown in own for own in ids[0])
    said = ids[1] + mixed.ids(len(target))
    assert [target.decode(own) for own in said] == tokenizer.batch_decode(said, skip_special_tokens=True)
    pieces = [piece for own in ids[1] for piece in target.pieces(own)]
    assert pieces == [token for own in ids[1] for token in tokenizer.convert_ids_to_tokens(own)]
    assert (source.special.pad, source.special.unknown) == (tokenizer.pad_token_id, tokenizer.unk_token_id)
    assert len(source) == len(tokenizer)


def test_a_tag_in_front_is_one_id_and_an_unknown_one_is_unknown(tmp_path):
    opus(tmp_path, separate=False)
    source, target = marian.read(tmp_path)
    (text,) = source.encode([" the dog"])
    tag = json.loads((tmp_path / "vocab.json").read_text())[">>fra<<"]
    assert source.encode([">>fra<< the dog", ">>xyz<< the dog"]) == [[tag, *text], [source.special.unknown, *text]]
    assert tag not in source.encode(["the dog >>fra<<"])[0]
    assert target.decode([tag, *target.encode(["the dog"])[0]]) == ">>fra<< the dog"


def test_a_decoder_begins_with_pad_and_never_says_it(folder):
    for side in marian.read(folder):
        assert isinstance(side, Vocabulary)
        assert side.pieces([side.special.pad, side.special.unknown, side.special.last]) == ["<pad>", "<unk>", "</s>"]
        assert side.special.first == side.special.pad and side.special.never == (side.special.pad,)
        assert side.special.last == 0 and side.special.before == () and side.special.mask is None


def test_a_folder_is_written_as_it_was_to_the_byte(folder, tmp_path):
    pair = marian.read(folder)
    marian.write(tmp_path, pair)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        path.name: path.read_bytes() for path in tmp_path.iterdir()
    }
    again = marian.read(tmp_path)
    assert [side.key() for side in again] == [side.key() for side in pair]
    assert [side.encode(lines()) for side in again] == [side.encode(lines()) for side in pair]


def test_a_vocabulary_survives_pickling(folder):
    source, _ = marian.read(folder)
    again = pickle.loads(pickle.dumps(source))
    assert (again.key(), again.special, len(again)) == (source.key(), source.special, len(source))
    assert again.encode(lines(count=200)) == source.encode(lines(count=200))


def test_the_key_tells_vocabularies_apart(tmp_path):
    keys = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        opus(tmp_path / name, separate=name == "two")
        keys += [side.key() for side in marian.read(tmp_path / name)]
    assert len(set(keys)) == 4


def test_what_is_learned_has_the_size_asked_for_and_knows_every_text():
    source, target = marian.learn(training(), SIZE)
    assert source is target and len(source) == SIZE
    assert source.key() == marian.learn(training(), SIZE)[0].key()
    assert source.special.pad == SIZE - 1 and source.special.unknown == 1
    texts = ["나는 어제 학교에 갔다.", "어떤 낯선 글자 쀍 🙂"]
    assert [source.decode(ids) for ids in source.encode(texts)] == texts
    assert source.special.unknown not in source.encode(texts)[1]


def test_a_text_of_few_pieces_gives_as_many_as_there_are():
    assert 260 < len(marian.learn(["ab ab b"] * 3, SIZE)[0]) < 280


@pytest.mark.parametrize(
    ("text", "line"),
    [("a\nb", "a b"), ("a\r\nb\n", "a b"), (" a\tb  c ", " a\tb  c "), ("\u2028", ""), ("a\u2029b", "a b"), ("", "")],
)
def test_a_clean_text_is_one_line_and_otherwise_as_it_was(folder, text, line):
    source, _ = marian.read(folder)
    assert source.clean(text) == line
    assert source.encode([line]) == source.encode([text])


def test_ids_that_no_piece_has_are_shown_as_unknown_and_left_out_of_text(folder):
    source, _ = marian.read(folder)
    ids = source.encode(["the dog"])[0]
    assert source.pieces([10**6]) == ["<unk>"]
    assert source.decode([*ids, 10**6, source.special.last]) == source.decode(ids) != ""
    assert source.decode([]) == ""


@pytest.mark.parametrize("name", ["source.spm", "target.spm", "vocab.json", "target_vocab.json"])
def test_a_missing_file_is_named(tmp_path, name):
    opus(tmp_path, separate=True)
    (tmp_path / name).unlink()
    with pytest.raises(
        ValueError, match=f"{tmp_path} has no {name}: it cannot read text; a Marian model comes with source.spm"
    ):
        marian.read(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("source.spm", b"no model", "source.spm is damaged: it is not a SentencePiece model"),
        ("target.spm", b"", "target.spm is damaged: it is not a SentencePiece model"),
        ("vocab.json", b"{", "vocab.json is damaged: it is not JSON"),
        ("vocab.json", b"\xff\xff\xff\xff\xff", "vocab.json is damaged: it is not JSON"),
        ("vocab.json", b'["</s>"]', "vocab.json is not a table: it contains a list"),
        ("vocab.json", b'{"a": "0"}', "vocab.json: the id of 'a' is '0'; an id must be a number from 0"),
        ("vocab.json", b'{"a": 0, "b": 0}', "vocab.json: two pieces have the same id"),
        ("vocab.json", b'{"</s>": 0, "<unk>": 1}', "vocab.json has no <pad>: it is not the table of a Marian model"),
        ("tokenizer_config.json", b'{"eos_token": "[END]"}', "eos_token is '\\[END]'; heed reads '</s>'"),
        ("tokenizer_config.json", b'{"added_tokens_decoder": {"x": {}}}', "is damaged: its added token 'x' is {}"),
        ("tokenizer_config.json", b'{"added_tokens_decoder": {"7": {"content": "<a>", "lstrip": true}}}', "<a> absorbs the text"),
        ("tokenizer_config.json", b'{"additional_special_tokens": ["<x>"]}', "vocab.json has no <x>, which tokenizer_config.json"),
        ("added_tokens.json", b'{"<a>": 700, "</s>": 0}', "added_tokens.json adds <a> to the vocabulary"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_named(tmp_path, name, content, words):
    opus(tmp_path, separate=False)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=words):
        marian.read(tmp_path)


def test_a_size_that_cannot_be_is_refused():
    with pytest.raises(
        ValueError, match=r"a Marian vocabulary of 20 could not be learned: the texts have so many distinct characters"
    ):
        marian.learn(training(), 20)


def test_a_decoder_begins_with_the_bos_token_that_the_settings_name(tmp_path):
    opus(tmp_path, separate=False)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"bos_token": ">>fra<<", "split_special_tokens": True}))
    source, _ = marian.read(tmp_path)
    assert isinstance(source, MarianVocabulary)
    assert source.pieces([source.special.first]) == [">>fra<<"]
    assert sorted(source.pieces(source.special.never)) == ["<pad>", ">>fra<<"]
    assert source.encode([]) == [] and source.encode([""]) == [[]]
    assert source.special.last not in source.encode(["a </s> b"])[0]
