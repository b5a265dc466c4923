"""BART's vocabulary: the ids of transformers' BartTokenizer, folders there and back, and the words of errors."""

import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from tokenizers import pre_tokenizers

from heed.vocabularies import byte_bpe
from heed.vocabularies.byte_bpe import BYTES
from heed.vocabularies.vocabulary import SpecialTokens, Vocabulary
from tests.data import mixed
from tests.data.mixed import lines, training

SIZE = 1000
STRIP = {"content": "<mask>", "lstrip": True, "rstrip": False, "single_word": False, "normalized": False}


def theirs(folder):
    from transformers import BartTokenizer

    return BartTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def learned():
    return byte_bpe.learn(training(), SIZE)[0]


@pytest.fixture(scope="module", params=["learned", "bare", "whole", "old", "settings", "both"])
def folder(request, tmp_path_factory, learned):
    """The shapes in which a BART's vocabulary comes."""
    folder = tmp_path_factory.mktemp("bart") / request.param
    folder.mkdir()
    if request.param in ("learned", "bare", "old", "both", "settings"):
        byte_bpe.write(folder, (learned, learned))
    if request.param != "learned":
        (folder / "tokenizer_config.json").unlink(missing_ok=True)
    if request.param in ("whole", "both"):
        found = json.loads(learned.tokenizer.to_str())
        merges = found["model"]["merges"]
        found["model"]["merges"] = [" ".join(merge) for merge in merges] if request.param == "both" else merges
        (folder / "tokenizer.json").write_text(json.dumps(found))
    if request.param == "old":
        (folder / "special_tokens_map.json").write_text(json.dumps({"bos_token": "<s>", "mask_token": STRIP}))
    if request.param == "settings":
        added = {
            "0": {**STRIP, "content": "<s>", "rstrip": True},
            str(SIZE): {**STRIP, "content": "<n>", "special": False},
        }
        said = {"add_prefix_space": True, "added_tokens_decoder": added, "additional_special_tokens": ["[MASK]"]}
        (folder / "tokenizer_config.json").write_text(json.dumps(said))
    return folder


def test_ids_and_texts_are_those_of_transformers(folder):
    ours, tokenizer, texts = byte_bpe.read(folder)[0], theirs(folder), lines()
    assert len(texts) == 2000
    ids = ours.encode(texts)
    special = ours.special
    assert [[*special.before, *own, special.last] for own in ids] == tokenizer(texts)["input_ids"]
    said = ids + mixed.ids(len(ours))
    assert [ours.decode(own) for own in said] == tokenizer.batch_decode(said, skip_special_tokens=True)
    assert len(ours) == len(tokenizer)
    assert (special.pad, special.unknown, special.mask) == (
        tokenizer.pad_token_id,
        tokenizer.unk_token_id,
        tokenizer.mask_token_id,
    )


def test_a_mask_takes_the_space_before_it_along_where_the_folder_says_so(folder):
    ours = byte_bpe.read(folder)[0]
    together, apart = ours.encode(["a<mask>", "a <mask>"])
    assert (together == apart) == (folder.name in ("learned", "whole", "both", "old"))


def test_special_tokens_are_where_the_originals_have_them(learned):
    assert isinstance(learned, Vocabulary)
    assert learned.special == SpecialTokens(
        pad=1, unknown=3, first=2, last=2, before=(0,), mask=SIZE - 1, delimiter=(2, 2)
    )
    assert learned.pieces([0, 1, 2, 3, SIZE - 1]) == ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    assert learned.decode([2, 0, *learned.encode(["the dog"])[0], 2, 1]) == "the dog"


def test_any_text_comes_back(learned):
    texts = [text for text in lines() if "<" not in text]
    assert len(texts) > 800
    assert [learned.decode(ids) for ids in learned.encode(texts)] == texts


def test_pieces_show_words_and_what_is_no_character_in_bytes(learned):
    (ids,) = learned.encode(["the dog"])
    assert "".join(learned.pieces(ids)) == "the▁dog"
    assert (
        "".join(learned.pieces(learned.encode(["어제 학교에 \t\x85 a  b"])[0])) == "어제▁학교에▁<0x09><0xC2><0x85>▁a▁▁b"
    )
    assert "".join(learned.pieces(learned.encode(["쀍"])[0])) == "<0xEC><0x80><0x8D>"
    assert learned.pieces([10**6]) == ["<unk>"]


def test_bytes_are_written_as_tokenizers_writes_them():
    assert set(BYTES) == set(pre_tokenizers.ByteLevel.alphabet())
    for text in ["a b", "é\n", "한 🙂", "\x00\x7f\xad"]:
        (written,) = (
            word for word, _ in pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text)
        )
        assert bytes(BYTES[char] for char in written) == text.encode()


def test_a_folder_is_written_as_it_was_to_the_byte(folder, tmp_path):
    pair = byte_bpe.read(folder)
    assert pair[0] is pair[1]
    byte_bpe.write(tmp_path, pair)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        path.name: path.read_bytes() for path in tmp_path.iterdir()
    }
    assert byte_bpe.read(tmp_path)[0].key() == pair[0].key()


def test_a_vocabulary_survives_pickling(folder):
    ours = byte_bpe.read(folder)[0]
    again = pickle.loads(pickle.dumps(ours))
    assert (again.key(), again.special, len(again)) == (ours.key(), ours.special, len(ours))
    assert again.encode(lines(count=200)) == ours.encode(lines(count=200))


def test_what_is_learned_is_the_same_in_another_process(learned):
    code = (
        "from heed.vocabularies import byte_bpe; from tests.data.mixed import training;"
        f"print(byte_bpe.learn(training(), {SIZE})[0].key())"
    )
    root = Path(__file__).parents[2]
    found = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert found.stdout.split() == [learned.key()]
    assert len(learned) == SIZE and byte_bpe.learn(training(1), SIZE)[0].key() != learned.key()


def test_a_text_of_few_pieces_gives_as_many_as_there_are():
    assert len(byte_bpe.learn(["ab ab b"] * 3, SIZE)[0]) == 4 + 256 + 3 + 1  # ab, Ġab and Ġb


@pytest.mark.parametrize(
    ("text", "line"),
    [("a\nb", "a b"), ("a\r\nb\n", "a b"), (" a\tb  c ", " a\tb  c "), ("a\u2029b", "a b"), ("", "")],
)
def test_a_clean_text_is_one_line_and_otherwise_as_it_was(learned, text, line):
    assert learned.clean(text) == line


@pytest.mark.parametrize(
    ("names", "words"),
    [(["vocab.json"], "no vocab.json"), (["merges.txt"], "no merges.txt"), (["vocab.json", "merges.txt"], "no vocab.json and no merges.txt")],
)  # fmt: skip
def test_a_missing_file_is_named(tmp_path, learned, names, words):
    byte_bpe.write(tmp_path, (learned, learned))
    for name in names:
        (tmp_path / name).unlink()
    with pytest.raises(
        ValueError, match=f"{tmp_path} has {words}: it cannot read text; a BART or a RoBERTa comes with vocab.json"
    ):
        byte_bpe.read(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("vocab.json", b"{", "vocab.json is damaged: it is not JSON"),
        ("vocab.json", b"[]", "vocab.json is not a table: it contains a list"),
        ("vocab.json", b'{"a": null}', "vocab.json: the id of 'a' is None; an id must be a number from 0"),
        ("merges.txt", b"the dog\n", r"merges.txt is damaged: .*out of vocabulary"),
        ("merges.txt", b"#version: 0.2\na b\nab\n", "merges.txt, line 3, is 'ab'; a merge must be two pieces"),
        ("merges.txt", b"\xff\xff", "merges.txt is damaged: it is not text"),
        ("tokenizer.json", b"{", "tokenizer.json is damaged: it is not JSON"),
        ("tokenizer.json", b'{"model": {"vocab": {}}}', "tokenizer.json is not byte-level BPE"),
        ("tokenizer_config.json", b'{"cls_token": "[CLS]"}', "cls_token is '\\[CLS]'; heed reads '<s>'"),
        ("added_tokens.json", b'{"<a>": 1000}', "added_tokens.json adds <a> to the vocabulary"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_named(tmp_path, learned, name, content, words):
    byte_bpe.write(tmp_path, (learned, learned))
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=words):
        byte_bpe.read(tmp_path)


@pytest.mark.parametrize("name", ["<pad>", "</s>"])
def test_a_table_without_the_special_tokens_is_not_a_barts(tmp_path, learned, name):
    byte_bpe.write(tmp_path, (learned, learned))
    ids = json.loads((tmp_path / "vocab.json").read_text())
    (tmp_path / "vocab.json").write_text(json.dumps({piece: i for piece, i in ids.items() if piece != name}))
    with pytest.raises(ValueError, match=f"vocab.json has no {name}: it is not a BART or RoBERTa vocabulary"):
        byte_bpe.read(tmp_path)


def test_a_size_that_cannot_be_is_refused():
    with pytest.raises(
        ValueError,
        match="a byte-level BPE vocabulary of 260 could not be learned: the bytes and special tokens alone are 261",
    ):
        byte_bpe.learn(training(), 260)
