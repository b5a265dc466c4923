"""Looks as data: what is written is read back, and what does not fit is refused with a sentence."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from heed.lab.attention import PARTS, Candidate, from_json, to_json
from heed.lab.words import aligned_words, label, width, words, wrap


def test_json_gives_back_what_was_written(look):
    again = from_json(to_json(look))
    for name in vars(look):
        if name not in PARTS:
            assert getattr(again, name) == getattr(look, name), name
    for part in PARTS:
        assert np.abs(getattr(again, part) - getattr(look, part)).max() <= 0.5e-4 + 1e-7
        assert getattr(again, part).dtype == np.float32
    assert to_json(again) == to_json(look)


def test_json_keys_are_stable(look):
    data = json.loads(to_json(look))
    assert list(data) == [
        *("format", "source_text", "target_text", "source", "target", "inputs", "encoder", "decoder", "cross"),
        *("scores", "predictions", "search", "alignment", "model", "roles"),
    ]
    assert data["predictions"][0][0][0] == "▁To"
    assert data["search"][0][0] == {"token": "▁To", "score": -0.3, "parent": -1, "state": "kept"}
    assert data["alignment"][0] == [0, 0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "not a file written by heed look"),
        ("{}", '"format": 1'),
        ('{"format": 1}', "lacks source_text, target_text"),
    ],
)
def test_other_json_is_refused(text, words):
    with pytest.raises(ValueError, match=words):
        from_json(text)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda look: {"cross": look.cross[:, :, :, :-1]},
            r"shape \(3, 4, 11, 9\); it should be \(layers, heads, 11, 10\) ",
        ),
        (lambda look: {"encoder": look.encoder[0]}, r"encoder attention has shape \(4, 10, 10\)"),
        (lambda look: {"decoder": look.decoder.transpose(0, 1, 3, 2)}, "row of the decoder attention|later positions"),
        (lambda look: {"decoder": np.full_like(look.decoder, 1 / 11)}, "looks at later positions"),
        (lambda look: {"cross": look.cross * 2}, "every row should sum to 1"),
        (lambda look: {"cross": look.cross * np.nan}, "negative or non-finite"),
        (lambda look: {"cross": look.cross[:0]}, r"shape \(0, 4, 11, 10\)"),
        (lambda look: {"scores": look.scores[1:]}, "11 target tokens but 10 scores"),
        (lambda look: {"scores": [float("-inf"), *look.scores[1:]]}, "score of target token 0, '▁To', is -inf"),
        (lambda look: {"predictions": []}, "11 target tokens but 0 predictions"),
        (lambda look: {"inputs": look.target}, "the start token and then the target tokens but the last"),
        (lambda look: {"source": []}, "At least one source token"),
        (lambda look: {"alignment": [(5, 0)]}, r"pair \(5, 0\) is outside the 5 source and 6 target words"),
        (lambda look: {"search": [[Candidate("a", -1.0, 0, "kept")]]}, "should be -1 at the first step"),
        (lambda look: {"search": [[Candidate("a", -1.0, -1, "gone")]]}, "state 'gone'; it should be one of kept"),
        (lambda look: {"search": [[Candidate("a", float("-inf"), -1, "kept")]]}, "leave out what the search never"),
        (
            lambda look: {"search": [[Candidate("a", -1.0, -1, "kept")], [Candidate("b", -2.0, 1, "kept")]]},
            "one of the 1 kept before",
        ),
    ],
)
def test_what_does_not_fit_is_said(look, change, words):
    with pytest.raises(ValueError, match=words):
        replace(look, **change(look))


def test_pieces_become_words():
    tokens = ["<s>", "▁투", "빅", "아", "▁", "나", "</s>"]
    assert words(tokens) == [[0], [1, 2, 3], [4, 5], [6]]
    assert words(["a", "b"]) == [[0, 1]]
    assert [label(token) for token in tokens] == ["<s>", "투", "빅", "아", "␣", "나", "</s>"]


def test_alignment_counts_words_and_not_pieces(look):
    assert aligned_words(look) == look.alignment
    assert aligned_words(replace(look, source_text="one word more 나는 너를 많이 사랑해.")) == []


def test_lines_are_wrapped_at_words_and_long_words_inside():
    lines = wrap("aaa bbb ccccccccccccccc 나는나는", 5)
    assert "".join(lines).replace(" ", "") == "aaabbbccccccccccccccc나는나는"
    assert all(width(line) <= 5 for line in lines) and lines[0] == "aaa bbb"[: len(lines[0])]


def test_the_data_needs_numpy_only():
    code = (
        "import sys, heed.lab.attention; print([m for m in ('torch', 'matplotlib', 'fontTools') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
