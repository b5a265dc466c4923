import pytest

from heed.config import read
from heed.decoding.config import DecodingConfig, max_output_length


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"beam": 0}, "beam is 0 and nbest is 1; both must be at least 1"),
        ({"nbest": 0}, "beam is 5 and nbest is 0; both must be at least 1"),
        ({"beam": 2, "nbest": 3}, "nbest is 3, but beam is 2: a beam cannot return more than its size"),
        ({"temperature": 0.0}, r"temperature is 0\.0; it must be above 0 \(near 0 is greedy\)"),
        ({"top_p": 0.0}, r"top_p is 0\.0; it must be above 0 and at most 1"),
        ({"top_p": 1.1}, r"top_p is 1\.1; it must be above 0 and at most 1"),
        ({"min_length": -1}, "min_length is -1; it must not be negative"),
        ({"no_repeat": -2}, "no_repeat is -2; it must not be negative"),
        ({"top_k": -3}, "top_k is -3; it must not be negative"),
        ({"length_penalty": -0.5}, r"length_penalty is -0\.5; it must not be negative"),
        ({"max_growth": -1.0}, r"max_growth is -1\.0; it must not be negative"),
        ({"max_length": 0}, "max_length is 0; it must be at least 1 and not below min_length"),
        ({"max_length": 4, "min_length": 5}, "max_length is 4; it must be at least 1 and not below min_length"),
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(settings, words):
    with pytest.raises(ValueError, match=words):
        DecodingConfig(**settings)


def test_one_may_draw_more_than_a_beam_is_wide():
    assert DecodingConfig(beam=1, nbest=10, sample=True).nbest == 10


@pytest.mark.parametrize(
    ("settings", "source", "most", "expected"),
    [
        ({}, 10, 1000, 40),
        ({"max_growth": 1.5}, 11, 1000, 36),
        ({"max_length": 7}, 10, 1000, 7),
        ({"max_length": 7}, 10, 5, 5),
        ({"max_length": 1}, 10, 1000, 1),
        ({}, 10, 30, 30),
    ],
)
def test_the_length_of_a_translation_is_bounded(settings, source, most, expected):
    assert max_output_length(DecodingConfig(**settings), source, most) == expected


def test_how_to_rank_and_to_stop_are_words_of_a_list():
    with pytest.raises(ValueError, match=r"decoding\.penalty: 'size' is none of 'wu', 'length'"):
        read(DecodingConfig, {"penalty": "size"}, "decoding.")
    with pytest.raises(ValueError, match=r"decoding\.stopping: 'never' is none of 'exact', 'heuristic', 'first'"):
        read(DecodingConfig, {"stopping": "never"}, "decoding.")
