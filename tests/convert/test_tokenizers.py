"""What transformers reads in a folder that heed has written gives heed's ids, and text again."""

import io
import json
import unicodedata

import pytest
import sentencepiece as spm

from heed.convert import tokenizers
from heed.vocabularies import byte_bpe, marian, pegasus, sentencepiece
from heed.vocabularies.sentencepiece import LAST, Subwords, SubwordsConfig
from tests.data import mixed
from tests.data.mixed import lines, training

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
FAMILIES = {"marian": marian, "bart": byte_bpe, "pegasus": pegasus}
SIZE = 1000


def theirs(folder, kind: str):
    """What AutoTokenizer finds beside a config.json."""
    from transformers import AutoTokenizer

    (folder / "config.json").write_text(json.dumps({"model_type": kind}))
    return AutoTokenizer.from_pretrained(folder)


def own(kind: str = "bpe", seed: int = 0, size: int = SIZE) -> Subwords:
    return sentencepiece.learn(training(seed), SubwordsConfig(kind=kind), size)


def without_tags(texts: list[str]) -> list[str]:
    """Marian reads what stands between >> and << in front as a language; heed's own vocabularies have none."""
    return [text for text in texts if not (text.startswith(">>") and "<<" in text)]


def alike(pair, tokenizer, texts: list[str]) -> None:
    for side, written in zip(pair, (tokenizer(texts), tokenizer(text_target=texts)), strict=True):
        ids = side.encode(texts)
        assert [[*side.special.before, *one, side.special.last] for one in ids] == written["input_ids"]
    said = ids + mixed.ids(len(pair[1]))
    texts = tokenizer.batch_decode(said, skip_special_tokens=True)
    assert [pair[1].decode(one) for one in said] == texts
    assert len(pair[0]) == len(tokenizer)
    assert tokenizer.model_max_length == 77


def agree(pair, tokenizer, texts: list[str]) -> None:
    """As `alike`, but that a text comes back from transformers without spaces around it."""
    assert len(texts) > 1500
    for side, written in zip(pair, (tokenizer(texts), tokenizer(text_target=texts)), strict=True):
        ids = side.encode(texts)
        assert [[*one, LAST] for one in ids] == written["input_ids"]
    said = ids + mixed.ids(len(pair[1]))
    texts = tokenizer.batch_decode([[2, *one] for one in said], skip_special_tokens=True)
    assert [pair[1].decode(one).replace("▁", " ").strip() for one in said] == texts


def plain(text: str) -> bool:
    """Whether each character takes no more marks than one written character has: rules cannot reorder any number of them."""
    parts = "".join(unicodedata.normalize("NFD", char) for char in unicodedata.normalize("NFC", text))
    return parts == text and not any(unicodedata.combining(char) for char in unicodedata.normalize("NFC", text))


@pytest.mark.parametrize("kind", FAMILIES)
def test_a_family_goes_out_and_in_again(tmp_path, kind):
    pair = FAMILIES[kind].learn(training(), SIZE)
    tokenizers.write(pair, tmp_path, 77)
    alike(pair, theirs(tmp_path, kind), lines())
    again = FAMILIES[kind].read(tmp_path)
    assert [side.key() for side in again] == [side.key() for side in pair]


@pytest.mark.parametrize("kind", FAMILIES)
def test_what_transformers_writes_from_it_is_read_alike(tmp_path, kind):
    pair = FAMILIES[kind].learn(training(), SIZE)
    (tmp_path / "one").mkdir()
    tokenizers.write(pair, tmp_path / "one", 77)
    theirs(tmp_path / "one", kind).save_pretrained(tmp_path / "two")
    again = FAMILIES[kind].read(tmp_path / "two")
    assert [side.encode(lines()) for side in again] == [side.encode(lines()) for side in pair]
    alike(again, theirs(tmp_path / "two", kind), lines(1))


def test_settings_that_a_folder_came_with_are_kept(tmp_path):
    marian.write(tmp_path, marian.learn(training(), SIZE))
    (tmp_path / "tokenizer_config.json").write_text(
        '{"source_lang": "kor", "target_lang": "eng", "model_max_length": 512}'
    )
    tokenizers.write(marian.read(tmp_path), tmp_path, 77)
    said = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert said["source_lang"] == "kor" and said["model_max_length"] == 77 and said["separate_vocabs"] is False


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_heeds_own_vocabulary_goes_out_as_a_marians(tmp_path, kind):
    one = own(kind)
    tokenizers.write((one, one), tmp_path, 77)
    tokenizer = theirs(tmp_path, "marian")
    assert type(tokenizer).__name__ == "MarianTokenizer"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "config.json", "source.spm", "target.spm", "tokenizer_config.json", "vocab.json",
    ]  # fmt: skip
    ids = [tokenizer.pad_token_id, tokenizer.unk_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id]
    assert ids == [0, 1, 2, 3]
    composed = [unicodedata.normalize("NFC", text) for text in lines()]
    agree((one, one), tokenizer, without_tags(composed))
    whole = [unicodedata.normalize("NFD", text) for text in composed]
    agree((one, one), tokenizer, without_tags([text for text in whole if plain(text)]))


def test_two_vocabularies_go_out_as_two_tables(tmp_path):
    pair = own(seed=0), own("unigram", seed=1, size=700)
    tokenizers.write(pair, tmp_path, 77)
    assert (tmp_path / "target_vocab.json").exists()
    texts = without_tags([unicodedata.normalize("NFC", text) for text in lines()])
    agree(pair, theirs(tmp_path, "marian"), texts)
    again = marian.read(tmp_path)
    assert [side.encode(texts) for side in again] == [side.encode(texts) for side in pair]
    assert [side.special[:4] for side in again] == [side.special[:4] for side in pair]


def test_one_vocabulary_loaded_twice_is_one(tmp_path):
    one = own()
    tokenizers.write((one, Subwords(one.model)), tmp_path, 77)
    assert not (tmp_path / "target_vocab.json").exists()


def test_heeds_own_vocabulary_comes_back_as_a_marians_that_begins_as_heeds_does(tmp_path):
    one = own()
    tokenizers.write((one, one), tmp_path, 77)
    source, target = marian.read(tmp_path)
    texts = without_tags([unicodedata.normalize("NFC", text) for text in lines()])
    assert source.encode(texts) == target.encode(texts) == one.encode(texts)
    assert source.special[:4] == one.special[:4]


def test_a_model_that_changes_characters_in_its_own_way_is_left_to_it(tmp_path):
    model = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(training()), model_writer=model, vocab_size=700, byte_fallback=True,
        pad_id=0, unk_id=1, bos_id=2, eos_id=3, minloglevel=2,
    )  # fmt: skip
    one = Subwords(model.getvalue())
    tokenizers.write((one, one), tmp_path, 77)
    assert (tmp_path / "source.spm").read_bytes() == one.model
    assert theirs(tmp_path, "marian")("ﬁne ①")["input_ids"] == [*one.encode(["ﬁne ①"])[0], LAST]


def test_vocabularies_that_are_no_pair_are_refused(tmp_path):
    one, other = byte_bpe.learn(training(), SIZE)[0], byte_bpe.learn(training(1), SIZE)[0]
    with pytest.raises(ValueError, match="the vocabularies are ByteBPE and Subwords; transformers has no tokenizer"):
        tokenizers.write((one, own()), tmp_path, 77)
    with pytest.raises(ValueError, match="the two sides have different vocabularies; a ByteBPE has a single one"):
        tokenizers.write((one, other), tmp_path, 77)
    assert not list(tmp_path.iterdir())
