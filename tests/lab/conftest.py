"""Looks that no model made."""

import numpy as np
import pytest

from heed.lab.attention import Candidate, Look

SOURCE = ["▁투", "빅", "아", ",", "▁나는", "▁너를", "▁많이", "▁사랑해", ".", "</s>"]
TARGET = ["▁To", "big", "s", ",", "▁I", "▁love", "▁you", "▁so", "▁much", ".", "</s>"]
SOURCE_TEXT = "투빅아, 나는 너를 많이 사랑해."
TARGET_TEXT = "Tobigs, I love you so much."
WORDS = {0: 0, 1: 1, 2: 2, 3: 2, 4: 5, 5: 7, 6: 5, 7: 6, 8: 6, 9: 8, 10: 9}


def softmax(scores):
    """Return the softmax of the last axis."""
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    return (scores / scores.sum(-1, keepdims=True)).astype(np.float32)


def beam(target, rng, width=3):
    """Return a search of three hypotheses in which the first always wins."""
    others = ["▁We", "▁He", "▁my", "▁dear", "▁loves", "▁it", "!", "▁very"]
    search = []
    for step, token in enumerate(target):
        best = -0.3 * (step + 1)
        last = step == len(target) - 1
        found = [Candidate(token, best, 0 if step else -1, "ended" if last else "kept")]
        for rank in range(1, 2 * width):
            parent = int(rng.integers(width)) if step else -1
            ended = last or (rank == 1 and 0 < step == len(target) - 2)
            state = "ended" if ended and rank < width else "kept" if rank < width else "dropped"
            word = "</s>" if ended else others[int(rng.integers(len(others)))]
            found.append(Candidate(word, best - 0.4 * rank, parent, state))
        if 0 < step == len(target) - 2:
            found.append(Candidate("▁now", best - 1.1, 1, "kept"))
        search.append(found)
    return search


def make_look(source=SOURCE, target=TARGET, layers=3, heads=4, texts=(SOURCE_TEXT, TARGET_TEXT), lean=None, seed=0):
    """Return a look with random attention that leans to `lean`, a source position for each target position."""
    rng = np.random.default_rng(seed)
    s, t = len(source), len(target)
    sharp = rng.uniform(0.5, 2.5, (layers, heads, 1, 1))
    cross = rng.normal(size=(layers, heads, t, s)) * sharp
    for row, column in (lean or {}).items():
        cross[:, :, row, column] += rng.uniform(0, 5, (layers, heads))
    near = -np.abs(np.subtract.outer(np.arange(s), np.arange(s)) - rng.integers(-1, 2, (layers, heads, 1, 1)))
    future = np.where(np.tri(t, dtype=bool), 0, -np.inf)
    scores = [float(x) for x in -rng.uniform(0.05, 1.5, t)]
    rest = [("▁my", 0.5), ("▁you", 0.3), ("er", 0.12), ("!", 0.05)]
    return Look(
        source_text=texts[0],
        target_text=texts[1],
        source=list(source),
        target=list(target),
        inputs=["<s>", *target[:-1]],
        encoder=softmax(near * sharp + rng.normal(size=(layers, heads, s, s))),
        decoder=softmax(rng.normal(size=(layers, heads, t, t)) * sharp + future),
        cross=softmax(cross),
        scores=scores,
        predictions=[
            [(token, np.exp(score).item()), *((other, p * (1 - np.exp(score)).item()) for other, p in rest)]
            for token, score in zip(target, scores, strict=True)
        ],
        search=beam(target, rng),
        alignment=[(0, 0), (1, 1), (2, 3), (3, 4), (4, 2)] if texts == (SOURCE_TEXT, TARGET_TEXT) else [],
        model="runs/ko-en · 4+4 layers · 4 heads · 3.1M weights",
    )


@pytest.fixture
def look():
    """Return a Korean sentence and its translation."""
    return make_look(lean=WORDS)


@pytest.fixture
def make():
    """Return the maker of looks."""
    return make_look
