"""Durations as people write them."""

import pytest

from heed.training.config import TrainingConfig
from heed.training.duration import as_setting, in_words, seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"), [("45s", 45), ("10m", 600), ("2h", 7200), ("1h30m", 5400), ("1d", 86_400), ("0.5h", 1800)]
)
def test_a_duration_in_seconds(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "10", "m", "10 minutes", "-5m", "0s", "5m2h"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ValueError, match="is not a duration; write it as 45s, 10m, 2h or 1h30m"):
        seconds_of(text)
    with pytest.raises(ValueError, match=r"training\.time: "):
        TrainingConfig(time=text)


def test_durations_in_words():
    assert [in_words(seconds) for seconds in (20.0, 600.0, 3600.0, 5400.0)] == ["20 s", "10 min", "1 h", "1 h 30 min"]


@pytest.mark.parametrize("text", ["45s", "10m", "2h", "1h30m", "26h"])
def test_a_duration_is_written_as_it_is_read(text):
    assert as_setting(seconds_of(text)) == text
    assert as_setting(0.0) == "1s" and as_setting(3590.0) == "1h"
