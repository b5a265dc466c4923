"""The vocabularies of BERT, RoBERTa, ALBERT and BigBird: ids are those of transformers, and what cannot be read is named."""

import json

import pytest
from transformers import AutoTokenizer

from heed.convert import tokenizers
from heed.vocabularies import albert, bigbird, byte_bpe, files, roberta, wordpiece
from heed.vocabularies.files import CONFIG, TOKENIZER, File
from heed.vocabularies.folder import KINDS, special_tokens
from tests.data.mixed import lines, training

MODULES = {"wordpiece": wordpiece, "roberta": roberta, "albert": albert, "bigbird": bigbird}
MARKS = [
    "[CLS] a [SEP] b",
    "[UNK] x [PAD]y",
    "a [MASK] b",
    "``quoted'' text",
    "中文 字 한국어",
    "naïve Ünïcode ÀÉ",
    "x" * 101,
]
# settings of tokenizer_config.json that change how text is cleaned
WAYS = {
    "wordpiece": [
        {}, {"do_lower_case": True}, {"do_lower_case": True, "strip_accents": False}, {"do_lower_case": False, "strip_accents": True},
        {"tokenize_chinese_chars": False},
    ],
    "roberta": [{}, {"add_prefix_space": True}],
    "albert": [{}, {"do_lower_case": True}, {"keep_accents": False}, {"do_lower_case": True, "keep_accents": False}],
    "bigbird": [{}],
}  # fmt: skip


@pytest.fixture(scope="module")
def learned():
    return {kind: module.learn(training(), 600)[0] for kind, module in MODULES.items()}


def test_the_same_text_gives_the_same_vocabulary(learned):
    assert wordpiece.learn(training(), 600)[0].key() == learned["wordpiece"].key()


def whole(vocabulary, texts):
    """Ids with the special tokens around each text."""
    special = vocabulary.special
    return [[*special.before, *ids, special.last] for ids in vocabulary.encode(texts)]


def changed(vocabulary, settings):
    """The vocabulary with other settings in its tokenizer_config.json."""
    config = {**files.parse_json(vocabulary.files[CONFIG]), **settings}
    return type(vocabulary)({**vocabulary.files, CONFIG: File(CONFIG, json.dumps(config).encode())})


@pytest.mark.parametrize(("kind", "way"), [(kind, way) for kind, ways in WAYS.items() for way in ways], ids=str)
def test_ids_and_texts_are_those_of_transformers(learned, kind, way, tmp_path):
    own, texts = changed(learned[kind], way), [*lines(), *MARKS]
    assert len(texts) > 2000
    (tmp_path / "ours").mkdir()
    tokenizers.write((own, own), tmp_path / "ours", 100_000)
    theirs = AutoTokenizer.from_pretrained(tmp_path / "ours")
    assert type(theirs).__name__ == own.tokenizer_class
    expected = theirs(texts)["input_ids"]
    assert whole(own, texts) == expected
    theirs.save_pretrained(tmp_path / "theirs")
    for folder in ("ours", "theirs"):
        back = MODULES[kind].read(tmp_path / folder)[0]
        assert whole(back, texts) == expected and back.special == own.special and len(back) == len(theirs)
    shown = theirs.batch_decode([ids[1:-1] for ids in expected[::5]], skip_special_tokens=True)
    assert [own.decode(ids) for ids in own.encode(texts[::5])] == shown


@pytest.mark.parametrize("kind", MODULES)
def test_it_is_read_as_it_was_written(learned, kind, tmp_path):
    own = learned[kind]
    KINDS[kind].write(tmp_path, (own, own))
    back = KINDS[kind].read(tmp_path)[0]
    assert back.encode(lines()) == own.encode(lines())
    assert back.key() == own.key() and len(back) == len(own) <= 600 and back.special == own.special
    assert special_tokens(kind) == {"mask"} and own.special.mask is not None


@pytest.mark.parametrize("kind", MODULES)
def test_pieces_show_where_a_word_begins(learned, kind):
    own, text = learned[kind], "the dog sees a red house"
    pieces = own.pieces(own.encode([text])[0])
    assert "".join(pieces).replace("▁", " ").strip() == text
    shown = own.pieces([*own.special.before, own.special.last, own.special.mask])
    assert shown == (["<s>", "</s>", "<mask>"] if kind == "roberta" else ["[CLS]", "[SEP]", "[MASK]"])
    assert own.pieces([100_000]) == ["[UNK]" if kind == "wordpiece" else "<unk>"]


def test_lower_case_is_learned_where_it_is_asked_for(tmp_path):
    own = wordpiece.learn(training(), 600, lower=True)[0]
    one, other = own.encode(["The CAFÉ", "the cafe"])
    assert one == other and own.decode(one) == "the cafe"
    cased = wordpiece.learn(training(), 600)[0]
    assert cased.encode(["The"]) != cased.encode(["the"])


def test_a_roberta_is_a_byte_level_bpe_with_another_name(learned):
    bart = byte_bpe.ByteBPE(learned["roberta"].files)
    assert bart.encode(lines()) == learned["roberta"].encode(lines()) and bart.key() != learned["roberta"].key()


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (
            "wordpiece",
            r"has no vocab.txt and no tokenizer.json: it cannot read text; a BERT comes with one or the other",
        ),
        ("roberta", r"has no vocab.json and no merges.txt: it cannot read text"),
        (
            "albert",
            r"has no spiece.model: it cannot read text; an ALBERT comes with spiece.model or with tokenizer.json",
        ),
        (
            "bigbird",
            r"has no spiece.model: it cannot read text; a BigBird comes with spiece.model or with tokenizer.json",
        ),
    ],
)
def test_a_folder_without_a_vocabulary_is_named(kind, says, tmp_path):
    with pytest.raises(ValueError, match=says):
        MODULES[kind].read(tmp_path)


def test_what_is_damaged_or_of_another_family_is_named(learned, tmp_path):
    (tmp_path / "vocab.txt").write_bytes(b"[PAD]\n\xff\n")
    with pytest.raises(ValueError, match=r"vocab.txt is damaged: it is not text"):
        wordpiece.read(tmp_path)
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n")
    with pytest.raises(ValueError, match=r"vocab.txt has no \[MASK]: it is not the WordPiece vocabulary of a BERT"):
        wordpiece.read(tmp_path)
    (tmp_path / TOKENIZER).write_text(json.dumps({"model": {"type": "BPE", "vocab": {}, "merges": []}}))
    with pytest.raises(ValueError, match=r"tokenizer.json is not WordPiece with ##, as BERT uses"):
        wordpiece.read(tmp_path)
    (tmp_path / TOKENIZER).unlink()
    (tmp_path / "spiece.model").write_bytes(learned["bigbird"].files["spiece.model"].content)
    with pytest.raises(ValueError, match=r"spiece.model does not have <unk> at 1, after <pad>"):
        albert.read(tmp_path)
    (tmp_path / "spiece.model").write_bytes(learned["albert"].files["spiece.model"].content)
    with pytest.raises(ValueError, match=r"spiece.model has no </s>: it is not the vocabulary of a BigBird"):
        bigbird.read(tmp_path)
    (tmp_path / CONFIG).write_text(json.dumps({"mask_token": "<mask>"}))
    with pytest.raises(ValueError, match=r"mask_token is '<mask>'; heed reads '\[MASK]'"):
        albert.read(tmp_path)
    with pytest.raises(
        ValueError, match=r"a WordPiece vocabulary of 50 could not be learned: the special tokens and the"
    ):
        wordpiece.learn(training(), 50)
