"""The changes of a corruption tell what it was, and are those of the corruption itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.data import noise
from heed.data.corruption import BERT_MASK, CORRUPTIONS, GAP, MASK, Change, Text, corrupt, source_of
from heed.data.masking import Masking

words = st.lists(st.sampled_from(["a", "b", "c.", "d", "e?", "a."]), min_size=1, max_size=25)
seeds, rates = st.integers(0, 50), st.sampled_from([0.0, 0.3, 0.7, 1.0])


def chance(kind: str, seed: int) -> np.random.Generator:
    return np.random.default_rng((seed, list(CORRUPTIONS).index(kind)))


@settings(max_examples=20)
@given(words, seeds, rates)
def test_what_was_there_can_be_read_off_the_changes(tokens, seed, rate):
    text = Text.of_words(" ".join(tokens))
    for kind in CORRUPTIONS:
        changes = corrupt(kind, text, seed, rate)
        was = [token for change in changes for token in change.was]
        in_order = kind not in ("permute", "rotate")
        assert (was == tokens) if in_order else (sorted(was) == sorted(tokens))
        for change in changes:
            assert (change.now in change.was) == (change.kind in ("kept", "moved", "chosen"))
            assert change.kind != "replaced" or change.now != change.was[0]


@settings(max_examples=20)
@given(words, seeds, rates)
def test_the_source_is_that_of_the_corruption(tokens, seed, rate):
    text, ends = Text.of_words(" ".join(tokens)), noise.sentence_ends(tokens)
    places = range(len(tokens))
    direct = {
        "mask": lambda g: noise.mask_tokens(places, g, len(tokens), rate),
        "delete": lambda g: noise.delete_tokens(places, g, rate),
        "infill": lambda g: noise.infill(places, g, len(tokens), rate),
        "permute": lambda g: noise.permute_sentences(places, g, ends),
        "rotate": lambda g: noise.rotate(places, g),
    }
    for kind, run in direct.items():
        expected = [[*tokens, MASK][place] for place in run(chance(kind, seed))]
        assert source_of(corrupt(kind, text, seed, rate)) == expected, kind
    size, ids = len(text.words), np.array(text.ids)
    masking = Masking(size, np.arange(size + 1) < size, share=rate)
    source, chosen = masking(ids, np.zeros(len(ids), bool), chance("bert", seed))
    changes = corrupt("bert", text, seed, rate)
    assert source_of(changes) == [[*text.words.values(), BERT_MASK][own] for own in source]
    assert [i for i, change in enumerate(changes) if change.kind != "kept"] == chosen.tolist()


def test_each_change_has_its_name():
    text = Text.of_words("a b. c d e. f g.")
    assert corrupt("delete", text, rate=1.0) == [Change("deleted", (token,)) for token in text.tokens]
    filled = {change.kind for seed in range(20) for change in corrupt("infill", Text.of_words("w " * 60), seed)}
    assert filled == {"kept", "masked", "inserted"}
    moved = [[change.now for change in corrupt("rotate", text, seed) if change.kind == "moved"] for seed in range(9)]
    assert all(own == text.tokens[: len(own)] for own in moved) and any(moved)
    kinds = [change.kind for seed in range(40) for change in corrupt("bert", text, seed, 1.0)]
    shares = [kinds.count(kind) / len(kinds) for kind in ("masked", "replaced", "chosen")]
    assert shares == pytest.approx([0.8, 0.1, 0.1], abs=0.06)


def test_a_sentence_that_stays_in_its_place_is_not_moved():
    text = Text.of_words("a b. c d e. f.")
    for seed in range(12):
        changes = corrupt("permute", text, seed)
        order = [tokens[0] for tokens in " ".join(source_of(changes)).replace(". ", ".|").split("|")]
        still = {first for first, before in zip(order, "acf", strict=True) if first == before}
        assert {change.now[0] for change in changes if change.kind == "kept"} & set("acf") == still


def test_the_gap_is_the_sentence_most_like_the_rest():
    changes = corrupt("gaps", Text.of_words("x y. the cat sat. the cat slept. the dog sat. z."), rate=0.2)
    assert [change.was for change in changes if change.now == GAP] == [("the", "cat", "sat.")]


def test_what_cannot_be_corrupted_is_said():
    with pytest.raises(ValueError, match="the text is empty"):
        corrupt("mask", Text.of_words(" "))
    with pytest.raises(ValueError, match=r"the rate is 1\.5; it must be from 0 to 1"):
        corrupt("mask", Text.of_words("a"), rate=1.5)
