"""What goes wrong in translations, counted."""

from collections import Counter

import pytest

from heed.evaluation import analysis
from heed.evaluation.analysis import analyze, copied, count_words, loops, numbers_in, words
from heed.evaluation.translation import score

SOURCES = ["Zwei Hunde", "Er hat 3 Katzen und 1.200 Bücher .", "Ein Mann , der schläft , liegt auf dem Sofa .", "Nein"]
REFERENCES = ["Two dogs", "He has 3 cats and 1,200 books .", "A man who is asleep lies on the sofa .", "No"]
OUTPUTS = ["Two dogs", "He has 3 cats and books .", "A man a man a man a man on sofa .", "Nein"]
TRAIN = ["two dogs", "the man is on the sofa", "Two men", "He has a book .", "He is asleep"]


@pytest.fixture(scope="module")
def found():
    wanted = {word for line in REFERENCES for word in words(line)}
    return analyze(SOURCES, REFERENCES, OUTPUTS, count_words(TRAIN, wanted))


@pytest.mark.parametrize("most", [2, 1000])
def test_words_are_counted_as_one_by_one(monkeypatch, most):
    monkeypatch.setattr(analysis, "MAX_PIECES", most)
    texts = [
        *TRAIN,
        "(Two) dogs, don't!",
        "我有 两本书。\u3000我",
        "a\x1cb\u00a0a\n two",
        "",
        "...",
        "나는 책을, 책을 읽어요.",
    ]
    every = Counter(word for text in texts for word in words(text))
    wanted = {*every, "never"} - {"two"}
    assert count_words(iter(texts), wanted) == {word: every[word] for word in wanted}
    assert every["我"] == 2 and every["책을"] == 2 and every["a"] > 2


def test_the_groups_of_lengths_hold_each_sentence_once_and_score_as_the_whole_does(found):
    assert [(group.first, group.last, group.sentences) for group in found.lengths] == [(1, 5, 2), (6, 10, 2)]
    alone = score(OUTPUTS[:1] + OUTPUTS[3:], [REFERENCES[:1] + REFERENCES[3:]])
    assert (found.lengths[0].bleu, found.lengths[0].chrf) == (alone.bleu.value, alone.chrf.value)
    one = analyze(SOURCES[:1], REFERENCES[:1], OUTPUTS[:1])
    assert one.lengths[0].chrf == score(OUTPUTS[:1], [REFERENCES[:1]]).chrf.value == 100


def test_recall_by_frequency_counts_each_reference_word_once(found):
    every = Counter(word for line in REFERENCES for word in words(line))
    assert sum(group.words for group in found.words) == every.total()
    never = found.words[0]
    assert (never.first, never.last) == (0, 0)
    # Never in TRAIN: 3, cats, and, 1,200, books, A, who, lies, No. The output has 3, cats, and, books, A.
    assert (never.words, never.found, round(never.recall, 3)) == (9, 5, 0.556)
    assert analyze(SOURCES, REFERENCES, REFERENCES, {}).words[0].recall == 1


def test_without_the_training_text_nothing_is_said_of_rare_words():
    assert analyze(SOURCES, REFERENCES, OUTPUTS).words == ()


def test_a_number_is_kept_in_the_way_of_either_language(found):
    assert numbers_in("1.200 Bücher um 12:30, ３ Katzen, 3.5%") == ["1200", "1230", "3", "35"]
    assert (found.numbers, found.numbers_kept, found.numbers_in_references) == (2, 1, 2)


@pytest.mark.parametrize(
    ("text", "yes"),
    [
        ("a man a man a man", True),
        ("no no no", True),
        ("no, no, no!", True),
        ("no no", False),
        ("a man and a man and a dog", False),
        ("one two three four one two three four one two three four", True),
        ("a a b b a a b b", False),
        ("", False),
        ("Ein Kaaaaaaaaaaaa.", True),
        ("Teieieieieieieiei", True),
        ("Aaaah, 10000000 ------- times", False),
    ],
)
def test_a_loop_is_the_same_words_or_letters_again_and_again(text, yes):
    assert loops(text) is yes


def test_loops_copies_and_empty_outputs_are_counted_unless_the_reference_is_so_too(found):
    assert (found.loops, found.copies, found.empty) == (1, 1, 0)
    same = analyze(["no no no", "Berlin", ""], ["no no no", "Berlin", "x"], ["no no no", "Berlin", ""])
    assert (same.loops, same.copies, same.empty) == (0, 0, 0)
    assert analyze(["a"], ["b"], [" "]).empty == 1
    assert copied("ein Hund läuft dort hin", "a dog runs there", "ein Hund läuft dort hin")


def test_the_length_ratio_is_that_of_bleu():
    assert analyze(["a b"], ["a b c d"], ["a b"]).length_ratio == 0.5


def test_texts_of_different_counts_are_refused():
    with pytest.raises(ValueError, match="2 sentences and references 1 has 1"):
        analyze(["a"], ["b", "c"], ["b", "c"])
