import logging
import os
import random
import re
import subprocess
import sys

import pytest

from heed.evaluation.comparison import compare
from heed.evaluation.translation import score

TEXT = "the a cat dog man woman child walks runs sits on over under green blue old house street tree near"
WORDS = TEXT.split()


def text(seed, lines=60):
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(4, 12))) + "." for _ in range(lines)]


def spoiled(lines, share, seed):
    draw = random.Random(seed)
    return [" ".join(draw.choice(WORDS) if draw.random() < share else word for word in line.split()) for line in lines]


REFERENCES = text(1)
WORSE, BETTER = spoiled(REFERENCES, 0.5, 2), spoiled(REFERENCES, 0.2, 3)


def test_values_are_those_of_scoring_each_system_alone():
    found, first, second = (
        compare(WORSE, BETTER, [REFERENCES], samples=20),
        *(score(lines, [REFERENCES]) for lines in (WORSE, BETTER)),
    )
    for name in ("bleu", "chrf", "ter"):
        one = getattr(found, name)
        assert (one.first, one.second) == (getattr(first, name).value, getattr(second, name).value)
        assert one.difference == one.second - one.first
        assert one.name == getattr(first, name).name
    assert found.lines == 60


def test_p_values_and_widths_are_those_of_the_sacrebleu_command(tmp_path):
    paths = [tmp_path / name for name in ("references", "first", "second")]
    for path, lines in zip(paths, (REFERENCES, WORSE, BETTER), strict=True):
        path.write_text("\n".join(lines) + "\n")
    # Its JSON fails on chrF's numpy numbers (sacreBLEU 2.6.0), so its table is read.
    options = ["-m", "bleu", "chrf", "ter", "--paired-bs", "--paired-bs-n", "100", "-w", "5", "-f", "latex", "-q"]
    done = subprocess.run(
        [sys.executable, "-m", "sacrebleu", str(paths[0]), "-i", str(paths[1]), str(paths[2]), *options],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "SACREBLEU_SEED": "77", "NO_COLOR": "1"},
    )
    first, second = [line.split("&")[1:] for line in done.stdout.splitlines() if "±" in line][1:]
    found = compare(WORSE, BETTER, [REFERENCES], samples=100, seed=77)
    for one, left, right in zip((found.bleu, found.chrf, found.ter), first, second, strict=True):
        value, _, width = numbers(left)
        assert (value, width) == pytest.approx((one.first, one.first_width), abs=1e-5)
        value, _, width, p_value = numbers(right)
        assert (value, width, p_value) == pytest.approx((one.second, one.second_width, one.p_value), abs=6e-5)
        assert f"{one.name:<10} {one.signature}" in done.stdout


def numbers(cell):
    return [float(number) for number in re.findall(r"[0-9.]+", cell)]


def test_a_better_system_is_a_gain_in_every_metric_and_hardly_chance():
    found = compare(WORSE, BETTER, [REFERENCES], samples=200)
    for one in (found.bleu, found.chrf, found.ter):
        assert one.gain > 0
        assert one.p_value < 0.05
        assert one.first_width > 0 and one.second_width > 0
    assert found.ter.difference < 0


def test_a_system_against_itself_is_no_difference():
    found = compare(WORSE, WORSE, [REFERENCES], samples=20)
    assert [(one.difference, one.p_value) for one in (found.bleu, found.chrf, found.ter)] == [(0, 1)] * 3


def test_the_same_seed_gives_the_same_p_values_and_another_seed_others():
    near = spoiled(REFERENCES, 0.48, 4)
    one, again, other = (compare(WORSE, near, [REFERENCES], samples=50, seed=seed) for seed in (7, 7, 8))
    assert one == again
    assert one.bleu.p_value != other.bleu.p_value


def test_nothing_is_logged_printed_or_left_in_the_environment(caplog, capfd, monkeypatch):
    monkeypatch.setenv("SACREBLEU_SEED", "3")
    with caplog.at_level(logging.INFO):
        compare(WORSE, BETTER, [REFERENCES], samples=5)
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")
    assert os.environ["SACREBLEU_SEED"] == "3"
    monkeypatch.delenv("SACREBLEU_SEED")
    compare(WORSE, BETTER, [REFERENCES], samples=5)
    assert "SACREBLEU_SEED" not in os.environ


def test_what_cannot_be_compared_is_refused_with_a_sentence():
    with pytest.raises(ValueError, match="second has 59 sentences and references 1 has 60"):
        compare(WORSE, BETTER[1:], [REFERENCES])
    with pytest.raises(ValueError, match="samples is 0; it must be at least 1"):
        compare(WORSE, BETTER, [REFERENCES], samples=0)
    with pytest.raises(ValueError, match="seed is 0; it must be at least 1"):
        compare(WORSE, BETTER, [REFERENCES], seed=0)
