from hypothesis import given, settings
from hypothesis import strategies as st

from heed.evaluation.word_diff import diff, split

FEW = settings(deadline=None, max_examples=50)
TEXT = st.text(st.sampled_from("ab c.,'猫犬 か\n¿éनी"), max_size=30)


def words(runs, kind):
    return [text for found, text in runs if found == kind]


@FEW
@given(st.one_of(TEXT, st.text(max_size=30)))
def test_the_pieces_of_a_text_are_the_text(text):
    assert "".join(split(text)) == text


@FEW
@given(TEXT, TEXT, TEXT)
def test_the_runs_of_a_text_are_the_text(reference, first, second):
    runs = diff(reference, first, second)
    assert ["".join(text for _, text in side) for side in runs] == [reference, first, second]


@FEW
@given(TEXT)
def test_equal_texts_have_no_differences(text):
    assert all(kind == 0 for side in diff(text, text, text) for kind, _ in side)


@FEW
@given(TEXT, TEXT)
def test_the_unmarked_words_of_both_sides_are_the_same(reference, hypothesis):
    sides = diff(reference, hypothesis)
    kept = ["".join("".join(words(side, 0)).split()) for side in sides]
    assert kept[0] == kept[1]


def test_missed_and_added_words_are_marked():
    reference, hypothesis = diff("The old man walks home.", "The man walks home slowly.")
    assert reference == [(0, "The "), (1, "old"), (0, " man walks home.")]
    assert hypothesis == [(0, "The man walks home "), (4, "slowly"), (0, ".")]


def test_words_missed_by_one_system_are_told_from_those_missed_by_both():
    reference, first, second = diff("one two three four", "one two", "one three")
    assert reference == [(0, "one "), (2, "two"), (0, " "), (1, "three"), (0, " "), (3, "four")]
    assert first == [(0, "one two")]
    assert second == [(0, "one three")]


def test_neighbouring_marked_words_are_one_run_with_their_space():
    assert words(diff("a red small cat", "a cat")[0], 1) == ["red small"]


def test_scripts_without_spaces_are_compared_by_character():
    reference, hypothesis = diff("猫が好きです", "犬が好きです")
    assert (words(reference, 1), words(hypothesis, 4)) == (["猫"], ["犬"])


def test_marks_inside_a_word_do_not_cut_it():
    assert split("“don't!” हिन्दी") == ["“", "don't", "!", "”", " ", "हिन्दी"]
