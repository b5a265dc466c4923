"""Word links: every pair that the model can read is aligned, and no other."""

import pytest

from heed.products.translator.word_links import word_links, word_spans

TEXT = "나는 책을 좋아해요."


def of_size(vocabulary, size):
    """A text of exactly so many subwords."""
    text = ""
    while len(vocabulary.encode([text])[0]) < size:
        text += "a"
    assert len(vocabulary.encode([text])[0]) == size
    return text


@pytest.fixture
def translator(make):
    return make(16, max_length=12)


def test_a_pair_of_the_greatest_length_is_aligned_and_a_longer_one_has_no_links(translator, vocabulary):
    longest, longer = of_size(vocabulary, 11), of_size(vocabulary, 12)  # 12 positions, one for the end token
    links = word_links(translator, [longest, longer, longest, "", longest], [longest, longest, longer, longest, ""])
    assert links == [translator.align_pairs([longest], [longest])[0], [], [], [], []] and links[0]
    with pytest.raises(ValueError, match="source 1 has 12 subwords; the model allows 11"):
        translator.align_pairs([longer], [longest])


def test_special_tokens_before_a_text_leave_it_less_room(translator, vocabulary, monkeypatch):
    source, target = translator.special
    longer = source, target._replace(before=(5, 6, 7))
    monkeypatch.setattr(translator, "special", longer)
    monkeypatch.setattr(translator.bundle, "special", longer)
    longer = of_size(vocabulary, 9)  # it fits without the three tokens, not with them
    assert word_links(translator, [longer], [longer]) == [[]]
    with pytest.raises(ValueError, match="target 1 has 9 subwords; the model allows 8"):
        translator.align_pairs([longer], [longer])


def test_pairs_are_aligned_by_whoever_is_asked_to(translator, vocabulary):
    asked = []

    def align(*given):
        asked.append(given)
        return [[(0, 0)]]

    assert word_links(translator, ["", "a"], ["a", "a"], align) == [[], [(0, 0)]]
    assert asked == [(["a"], ["a"], [2 * len(vocabulary.encode(["a"])[0])])]


def test_words_stand_where_they_are_in_the_whole_text():
    text = f"1. {TEXT}\n"
    spans = word_spans(text, 3, len(text), 3)
    assert [text[start:end] for start, end in spans] == TEXT.split()
    assert word_spans(text, 3, len(text), 2) == []
