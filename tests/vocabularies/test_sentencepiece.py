"""Text to subwords and back."""

import io
import pickle
import subprocess
import sys

import pytest
import sentencepiece as spm
from hypothesis import example, given
from hypothesis import strategies as st

from heed.vocabularies import sentencepiece
from heed.vocabularies.sentencepiece import (
    FIRST,
    LAST,
    PAD,
    UNKNOWN,
    Subwords,
    SubwordsConfig,
    choose_size,
    clean,
    clean_all,
    learn,
)
from heed.vocabularies.unicode import MORE_SPACES, SPACES

STRANGE = [
    "", " ", "🙂 👩‍👩‍👧", "\u1112\u1161\u11ab\u1100\u1173\u11af", "ㅎㅏㄴ", "\x00\x01\x7f\x85", "\ufffd\ufeff\u200b\u2028",
    "<s> </s> <pad> <unk> <0x41>", "a\u0300\u0301", "\U0010ffff", "ﬁ Å ① ﷺ", "\u2585",
]  # fmt: skip


@pytest.fixture(scope="session")
def texts(pairs):
    return [text for pair in pairs for text in pair]


@pytest.fixture(scope="session", params=["bpe", "unigram"])
def model(request, texts) -> Subwords:
    return learn(texts, SubwordsConfig(kind=request.param), 350)


def test_clean_is_nfc_with_single_spaces():
    assert clean(" \tone\u2028two\u3000 three\n") == "one two three"
    assert clean("e\u0301 \u1100\u1161") == "é 가"
    assert clean("ﬁ① ｶ") == "ﬁ① ｶ"  # NFKC would change more than how a character is written


@given(
    st.lists(
        st.text(st.sampled_from("ab ▁\t\r\x0b\x1c\x85\xa0\u2028\u3000\u0301\u1100\u1161"), max_size=12), max_size=5
    )
)
@example(["a\nb", " c"])
@example(STRANGE)
@example([" a", "\u0301b", " \u0301", "a", "\u0301"])
def test_many_texts_are_cleaned_as_one_by_one(texts):
    assert clean_all(texts) == [clean(text) for text in texts]


def test_every_space_is_known():
    every = {char for char in map(chr, range(sys.maxunicode + 1)) if char.isspace()}
    assert every == {*SPACES, *MORE_SPACES, " ", "\n"}
    assert {char for char in every if char.isascii()} == {*SPACES, " ", "\n"}


@given(text=st.text(st.characters(exclude_characters="▁", codec="utf-8")))
@example(text="".join(STRANGE))
@example(text=" ".join(STRANGE))
def test_any_text_comes_back_and_nothing_is_unknown(model, text):
    (ids,) = model.encode([text])
    assert model.decode(ids) == clean(text)
    assert min(ids, default=LAST + 1) > LAST


def test_many_texts_are_decoded_as_one_by_one(model, texts):
    rows = [[FIRST, *ids, LAST] for ids in model.encode([*texts[:20], *STRANGE])]
    assert model.decode_all(rows) == [model.decode(ids) for ids in rows]
    assert model.decode_all([]) == []
    rows = [[*ids, LAST] for ids in model.encode([*texts[:20], *STRANGE])]
    for more in ([[]], [[LAST]], [[LAST, LAST]], [[5, UNKNOWN, 6, LAST]], [[5, LAST, 6], [PAD]]):
        assert model.decode_all(rows + more) == [model.decode(ids) for ids in rows + more]


@pytest.mark.parametrize(("text", "back"), [("a▁b", "a b"), ("▁", ""), ("▁a▁", "a")])
def test_the_one_exception_is_the_sign_sentencepiece_writes_for_a_space(model, text, back):
    (ids,) = model.encode([text])
    assert model.decode(ids).strip() == back


def test_many_texts_at_once_are_what_each_is_by_itself(model, texts):
    many = [*STRANGE, *texts[: 3 * sentencepiece.THREADED_FROM]]
    assert model.encode(many) == [ids for text in many for ids in model.encode([text])]


def test_the_special_tokens_have_the_same_ids_in_every_vocabulary(model):
    assert (PAD, UNKNOWN, FIRST, LAST) == (0, 1, 2, 3)
    assert model.pieces([PAD, UNKNOWN, FIRST, LAST]) == ["<pad>", "<unk>", "<s>", "</s>"]


def test_special_tokens_are_not_text(model):
    (ids,) = model.encode(["the sea"])
    assert model.decode([FIRST, *ids, UNKNOWN, LAST, PAD]) == "the sea"


def test_pieces_spell_the_text(model):
    (ids,) = model.encode(["the red house"])
    assert "".join(model.pieces(ids)) == "▁the▁red▁house"
    assert len(ids) < len("the red house")


def test_a_vocabulary_has_the_size_that_was_asked(model):
    assert len(model) == 350


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_what_is_too_large_becomes_as_many_as_there_are(texts, kind):
    large = learn(texts, SubwordsConfig(kind=kind), 20_000)
    assert 350 < len(large) < 2000
    assert len(learn(texts, SubwordsConfig(kind=kind), 10_000)) == len(large)


def test_what_is_too_small_is_refused(texts):
    with pytest.raises(
        ValueError,
        match=r"subwords\.size: a vocabulary of 100 could not be learned: the texts have so many [^[]*at least \d+ pieces are needed$",
    ):
        learn(texts, SubwordsConfig(), 100)


def test_of_empty_texts_nothing_is_learned_and_no_source_is_shown():
    with pytest.raises(
        ValueError, match=r"a vocabulary of 300 could not be learned: the texts have nothing to learn from$"
    ):
        learn(["", " "], SubwordsConfig(), 300)


def test_the_same_texts_give_the_same_model(texts):
    assert learn(texts, SubwordsConfig(), 350).model == learn(texts, SubwordsConfig(), 350).model


def test_sampled_subwords_are_drawn_by_the_seed_and_spell_the_same_text(model, texts):
    some = [*texts[:40], *STRANGE]
    drawn = model.sample(some, 0.3, seed=7)
    assert drawn == model.sample(some, 0.3, seed=7)
    assert drawn != model.sample(some, 0.3, seed=8)
    assert drawn != model.encode(some)
    assert [model.decode(ids) for ids in drawn] == [clean(text) for text in some]
    assert all(i > LAST for ids in drawn for i in ids)


SAMPLE = """
import sys
from heed.vocabularies import sentencepiece
print(sentencepiece.load(sentencepiece.Path(sys.argv[1])).sample(["the red house", "das Meer"] * 5, 0.3, seed=7))
"""


def test_sampled_subwords_are_the_same_in_another_process(learned, tmp_path):
    learned.save(tmp_path / "a.spm")
    command = [sys.executable, "-c", SAMPLE, str(tmp_path / "a.spm")]
    said = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert said.strip() == str(learned.sample(["the red house", "das Meer"] * 5, 0.3, seed=7))


@given(text=st.text(st.characters(codec="utf-8")))
@example(text=" ".join(STRANGE))
def test_sampling_without_chance_is_plain_encoding(learned, text, texts):
    for drawn in (text, texts[len(text) % len(texts)], f"{text} {texts[0]}"):
        if "▁" not in drawn:
            assert learned.sample([drawn], 0.0, seed=1) == learned.encode([drawn])


def test_of_merges_alike_the_first_comes_first():
    model = learn(["aa ab aaa ba"] * 50, SubwordsConfig(), 280)
    words = ["a" * count for count in range(1, 9)]
    assert model.sample(words, 0.0, seed=1) == model.encode(words)


def test_where_every_merge_is_dropped_letters_are_left(learned):
    (ids,) = learned.sample(["the red house"], 1.0, seed=1)
    assert learned.pieces(ids) == list("▁the▁red▁house")


def test_all_weight_on_the_likeliest_unigrams_is_plain_encoding(texts):
    unigrams = learn(texts, SubwordsConfig(kind="unigram"), 350)
    assert unigrams.sample([*texts, *STRANGE], 500.0, seed=1) == unigrams.encode([*texts, *STRANGE])


def test_sampling_leaves_plain_encoding_alone(model, texts):
    before = model.encode(texts[:40])
    model.sample(texts[:40], 0.5, seed=2**40)
    assert model.encode(texts[:40]) == before


def test_what_was_saved_or_sent_to_another_process_is_the_same(model, texts, tmp_path):
    model.save(tmp_path / "a.spm")
    for other in (sentencepiece.load(tmp_path / "a.spm"), pickle.loads(pickle.dumps(model))):
        assert other.encode(texts[:20]) == model.encode(texts[:20])
        assert len(other) == len(model)


def test_a_file_that_is_no_model_is_named(tmp_path):
    (tmp_path / "a.spm").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match=r"a\.spm is not a SentencePiece model"):
        sentencepiece.load(tmp_path / "a.spm")
    with pytest.raises(ValueError, match=r"b\.spm: no such file"):
        sentencepiece.load(tmp_path / "b.spm")


def test_a_model_with_other_special_ids_is_refused(texts):
    other = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=other, vocab_size=80, hard_vocab_limit=False, minloglevel=2
    )
    with pytest.raises(ValueError, match=r"has pad, unk, bos and eos at \[-1, 0, 1, 2\]; heed needs \[0, 1, 2, 3\]"):
        Subwords(other.getvalue())


def test_the_size_grows_with_the_corpus_in_steps_of_64():
    sizes = [choose_size(pairs, 100) for pairs in (1, 1000, 29_000, 10**6, 10**9)]
    assert sizes == sorted(sizes)
    assert all(size % 64 == 0 for size in sizes)
    assert choose_size(1, 100) >= 4 + 256 + 100
    assert choose_size(29_000, 100) == 4672
    assert sizes[-1] == 32_768


def test_many_are_decoded_as_one_by_one(model):
    rows = [*model.encode(["We read books.", "", "나는 책을 읽어요."]), [2, 3], [*model.encode(["a"])[0], 3]]
    assert model.decode_all(rows) == [model.decode(row) for row in rows]
    assert model.decode_all([]) == []
