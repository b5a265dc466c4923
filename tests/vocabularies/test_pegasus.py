"""Pegasus's vocabulary: the ids of transformers' PegasusTokenizer, folders there and back, and the words of errors."""

import io
import json
import pickle

import pytest
import sentencepiece
from tokenizers import normalizers

from heed.vocabularies import files, pegasus
from heed.vocabularies.files import File
from heed.vocabularies.pegasus import PegasusVocabulary
from heed.vocabularies.vocabulary import SpecialTokens, Vocabulary
from tests.data import mixed
from tests.data.mixed import lines, training

SIZE = 1000


def spm(**settings) -> bytes:
    model = io.BytesIO()
    chosen = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1, "vocab_size": 700, **settings}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(training()), model_writer=model, hard_vocab_limit=False, minloglevel=2, **chosen
    )
    return model.getvalue()


def theirs(model: bytes):
    """Transformers' tokenizer, with the layout of its own converter; reading the model itself would need protobuf."""
    from transformers import PegasusTokenizer
    from transformers.convert_slow_tokenizer import PegasusConverter

    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(processor.vocab_size())]
    return PegasusTokenizer(
        **PegasusConverter.convert_from_spm(vocab=pieces), _spm_precompiled_charsmap=files.charsmap(model) or None
    )


@pytest.fixture(scope="module")
def learned():
    return pegasus.learn(training(), SIZE)[0]


@pytest.fixture(scope="module", params=["learned", "newlines", "as it is"])
def model(request, learned) -> bytes:
    """As the originals; with <n>, as they have it, for a new line; and one that takes characters as they are."""
    if request.param == "learned":
        return learned.files["spiece.model"].content
    if request.param == "newlines":
        return spm(user_defined_symbols=["<n>"])
    return spm(normalization_rule_name="identity")


def alike(ours: PegasusVocabulary, tokenizer) -> None:
    texts = lines()
    assert len(texts) == 2000
    ids = ours.encode(texts)
    assert [[*own, ours.special.last] for own in ids] == tokenizer(texts)["input_ids"]
    said = ids + mixed.ids(len(ours))
    assert [ours.decode(own) for own in said] == tokenizer.batch_decode(said, skip_special_tokens=True)
    assert [ours.pieces(own) for own in ids] == [tokenizer.convert_ids_to_tokens(own) for own in ids]
    assert any(ours.special.unknown in own for own in ids)
    assert len(ours) == len(tokenizer)
    assert (ours.special.pad, ours.special.unknown) == (tokenizer.pad_token_id, tokenizer.unk_token_id)


def test_ids_and_texts_are_those_of_transformers(tmp_path, model):
    (tmp_path / "spiece.model").write_bytes(model)
    alike(pegasus.read(tmp_path)[0], theirs(model))


def test_ids_and_texts_are_those_of_transformers_that_reads_the_model_itself(tmp_path, model):
    pytest.importorskip("google.protobuf")
    from transformers import PegasusTokenizer

    (tmp_path / "spiece.model").write_bytes(model)
    alike(pegasus.read(tmp_path)[0], PegasusTokenizer.from_pretrained(tmp_path))


def test_ids_and_texts_are_those_of_transformers_where_it_has_written_the_folder(tmp_path, model):
    from transformers import PegasusTokenizer

    theirs(model).save_pretrained(tmp_path)
    alike(pegasus.read(tmp_path)[0], PegasusTokenizer.from_pretrained(tmp_path))


@pytest.mark.parametrize("size", [300, 1000])
def test_special_tokens_come_before_the_pieces_whatever_the_size(size):
    ours = pegasus.learn(training(), size)[0]
    assert isinstance(ours, Vocabulary) and len(ours) == size
    assert ours.special == SpecialTokens(pad=0, unknown=105, first=0, last=1, mask=3, gap=2)
    assert ours.pieces([0, 1, 2, 3, 4, 104, 105]) == [
        "<pad>",
        "</s>",
        "<mask_1>",
        "<mask_2>",
        "<unk_2>",
        "<unk_102>",
        "<unk>",
    ]


def test_other_names_in_a_folder_do_not_shift_the_pieces(tmp_path, learned):
    """In transformers 5.22 they do: its ids are then one less than those that the weights were trained with."""
    pegasus.write(tmp_path, (learned, learned))
    (tmp_path / "special_tokens_map.json").write_text(json.dumps({"mask_token": "<mask_2>"}))
    assert pegasus.read(tmp_path)[0].encode(lines()) == learned.encode(lines())


def test_special_tokens_written_in_a_text_are_encoded_and_not_decoded(learned):
    ids = learned.encode(["the dog<mask_1><mask_2>"])[0]
    assert ids[-2:] == [learned.special.gap, learned.special.mask]
    assert learned.decode([*ids, learned.special.last, learned.special.pad]) == "the dog"


def test_characters_are_written_alike_as_sentencepiece_does_it(model):
    """But for some that are one sign together: `tokenizers` looks at the whole sign, so half-width ｶﾞ stays in two parts."""
    charsmap = files.charsmap(model)
    own = sentencepiece.SentencePieceNormalizer(model_proto=model)
    texts = ["ﬁ①", "ｶ", "a\tb", "Ⅷ", "e\u0301"]
    if charsmap:
        ours = normalizers.Precompiled(charsmap).normalize_str
        assert [ours(text) for text in texts] == own.Normalize(texts)
        assert ours("ｶﾞ") != own.Normalize("ｶﾞ")
    else:
        assert own.Normalize(texts) == texts


def test_a_folder_is_written_as_it_was_to_the_byte(tmp_path, learned):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    pegasus.write(tmp_path / "one", (learned, learned))
    (tmp_path / "one" / "tokenizer.json").write_text(learned.tokenizer.to_str())
    (tmp_path / "one" / "tokenizer_config.json").write_text('{"offset":  103}')
    pair = pegasus.read(tmp_path / "one")
    assert pair[0] is pair[1] and pair[0].key() == learned.key()
    pegasus.write(tmp_path / "two", pair)
    assert {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()} == {
        path.name: path.read_bytes() for path in (tmp_path / "two").iterdir()
    }


def test_a_vocabulary_survives_pickling(learned):
    again = pickle.loads(pickle.dumps(learned))
    assert (again.key(), again.special, len(again)) == (learned.key(), learned.special, len(learned))
    assert again.encode(lines(count=200)) == learned.encode(lines(count=200))


def test_what_is_learned_is_learned_again_alike(learned):
    assert pegasus.learn(training(), SIZE)[0].key() == learned.key() != pegasus.learn(training(1), SIZE)[0].key()
    assert 105 < len(pegasus.learn(["ab ab b"] * 3, SIZE)[0]) < 120


@pytest.mark.parametrize(
    ("text", "line"),
    [("a\nb", "a b"), ("a\r\nb", "a b"), (" a\tb  c ", " a\tb  c "), ("a\u2029b", "a b"), ("", "")],
)
def test_a_clean_text_is_one_line_and_otherwise_as_it_was(learned, text, line):
    assert learned.clean(text) == line
    assert learned.encode([line]) == learned.encode([text])


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ValueError, match=f"{tmp_path} has no spiece.model: it cannot read text; a Pegasus comes with"):
        pegasus.read(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("spiece.model", b"no model", "spiece.model is damaged: it is not a SentencePiece model"),
        ("tokenizer.json", b"{", "tokenizer.json is damaged: it is not JSON"),
        ("tokenizer.json", b'{"model": {"vocab": {}}}', "tokenizer.json is not a unigram model"),
        ("tokenizer.json", b'{"model": {"vocab": [["a", 0.0]], "unk_id": 0}}', "tokenizer.json has no <"),
        ("tokenizer.json", b'{"added_tokens": [{"id": 0}], "model": {"vocab": [], "unk_id": 0}}', "tokenizer.json has no <"),
        ("tokenizer.json", b'{"model": {"vocab": [["a"]], "unk_id": 0}}', "tokenizer.json is damaged: not enough values"),
        ("tokenizer_config.json", b'{"added_tokens_decoder": {"0": "<a>"}}', "is damaged: its added token '0' is '<a>'"),
        ("tokenizer_config.json", b'{"offset": 0}', "offset is 0; heed reads vocabularies with 103"),
        ("tokenizer_config.json", b'{"mask_token": "[MASK]"}', "mask_token is '\\[MASK]'; heed reads '<mask_2>'"),
        ("added_tokens.json", b'{"<a>": 1000}', "added_tokens.json adds <a> to the vocabulary"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_named(tmp_path, learned, name, content, words):
    pegasus.write(tmp_path, (learned, learned))
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=words):
        pegasus.read(tmp_path)


def test_a_model_with_its_special_tokens_elsewhere_is_not_a_pegasuss():
    with pytest.raises(ValueError, match=r"folder/spiece\.model has <unk> at 0; the model of a Pegasus has it at 2"):
        PegasusVocabulary({"spiece.model": File("folder/spiece.model", spm(unk_id=0, pad_id=-1, bos_id=1, eos_id=2))})


@pytest.mark.parametrize(
    ("size", "words"), [(110, "the texts have so many distinct characters"), (106, "the special tokens alone are 106")]
)
def test_a_size_that_cannot_be_is_refused(size, words):
    with pytest.raises(ValueError, match=f"a Pegasus vocabulary of {size} could not be learned: {words}"):
        pegasus.learn(training(), size)
