"""Long recordings are cut where they are quiet, and a language model has tokens of its own."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from heed.products.speech_language import language_scores
from heed.products.speech_windows import SMOOTH, cut
from heed.vocabularies.vocabulary import SpecialTokens


@pytest.mark.parametrize("size", range(1, 12))
def test_windows_are_cut_at_the_quietest_point_of_their_last_third(size):
    loudness = np.random.default_rng(size).random(40)
    smooth = np.convolve(loudness, np.ones(SMOOTH) / SMOOTH, mode="same")
    ends = [own.last for own in cut(loudness, size, 0)]
    for start, end in pairwise([0, *ends[:-1]]):
        last_third = range(start + max(1, 2 * size // 3), start + size) or [start + size]
        assert end == min(last_third, key=lambda frame: smooth[frame])
    assert ends[-1] == 40


class Pieces(list):
    """A vocabulary of these pieces; the first is the end, the second is never said."""

    special = SpecialTokens(pad=1, unknown=1, first=0, last=0, never=(1,))

    def pieces(self, ids):
        return [self[i] for i in ids]


def test_a_language_model_has_most_of_the_tokens_under_other_ids_or_is_refused():
    own = Pieces(["</s>", "<pad>", *"abcdefghij"])

    def generator(pieces):
        return SimpleNamespace(vocabulary=pieces, special=pieces.special, model=None, device="cpu", before=0)

    found = language_scores(generator(Pieces(["</s>", "?", *"jihgfedcb"])), own)
    assert found.ids.tolist() == [0, 1, 1, *range(10, 1, -1)]  # it does not know "a"
    with pytest.raises(ValueError, match="it knows 8 of the recognizer's 10 tokens: train it with the same vocabulary"):
        language_scores(generator(Pieces(["</s>", "?", *"jihgfedc"])), own, "it")
