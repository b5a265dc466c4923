"""Which translations are copies, and of which texts a copy is no translation."""

import pytest

from heed.text.copies import is_copy, may_be_copy, should_differ


def test_case_and_punctuation_do_not_matter():
    assert is_copy("A man is sleeping.", "a man  is sleeping")
    assert not is_copy("A man is sleeping.", "A man was sleeping.")


def test_what_begins_otherwise_is_no_copy():
    texts = ["A man.", "«a man»", "Straße", "STRASSE", "a-b", "ab", "", "...", "İ", "i", "①", "1", "ﬁ", "fi"]
    for one in texts:
        for other in texts:
            assert may_be_copy(one, other) or not is_copy(one, other)
    assert not may_be_copy("A man.", "Ein Mann.") and may_be_copy("A man.", "...a woman")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a man is sleeping on a bench", True),
        ("Berlin", False),  # names
        ("Angela Merkel, Emmanuel Macron", False),
        ("normal", False),  # one word may be the same
        ("12 345 678,00", False),
        ("see https://example.org/a/long/path", False),
        ("src/main.py config.toml foo_bar", False),
        ("", False),
        ("Ein Mann schläft auf einer Bank.", False),  # it is in the target language
    ],
)
def test_what_should_be_translated(text, expected):
    assert should_differ(text, "en", "de") is expected


def test_a_script_without_capitals_counts_letters():
    assert should_differ("나는 오늘 도서관에서 책을 읽어요", "ko", "en")
    assert not should_differ("서울", "ko", "en")


def test_nothing_is_said_of_unknown_languages_and_within_one():
    text = "a man is sleeping on a bench"
    assert not should_differ(text, None, "de") and not should_differ(text, "en", None)
    assert not should_differ(text, "en", "en-GB")
