"""Articles with summaries: drawn at random, split into train, valid and test, and written to files."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from heed.data.synthetic.articles.realization import Facts, draw_facts, realize
from heed.data.synthetic.splits import MAX_MISSES, SPLITS, split_of_key, write_split

EDITION = 1  # incremented when what is drawn or the split changes, so that no file of another edition is used


class Article(NamedTuple):
    """An article, its summary, and the facts behind both."""

    text: str
    summary: str
    facts: Facts


def split_of(facts: Facts) -> str:
    """The split of an article, by who did what and where."""
    return split_of_key(f"{facts.kind} {facts.first} {facts.last} {facts.thing} {facts.where}")


def articles(split: str, count: int, seed: int = 0) -> Iterator[Article]:
    """`count` articles of a split ('train', 'valid', 'test'), drawn by `seed`, no two with the same facts."""
    if split not in SPLITS:
        raise ValueError(f"The articles have no split {split!r}; they have train, valid and test.")
    return _stream(split, count, seed)


def _stream(split: str, count: int, seed: int) -> Iterator[Article]:
    """The generator behind `articles`, which checks its arguments immediately."""
    rng, seen, misses = Random(seed), set(), 0
    while len(seen) < count:
        facts = draw_facts(rng)
        misses += 1
        if split_of(facts) == split and facts not in seen:
            seen.add(facts)
            misses = 0
            yield Article(*realize(rng, facts), facts)
        if misses > MAX_MISSES:
            raise ValueError(f"The articles ran out of {split} facts after {len(seen):,}; request fewer.")


def write(folder: Path, *, train: int, valid: int = 500, test: int = 500, seed: int = 0) -> dict[str, Path]:
    """Write train.article, train.summary, valid.article, ..., test.summary into `folder`, one article per line."""
    paths: dict[str, Path] = {}
    for split, count in zip(SPLITS, (train, valid, test), strict=True):
        rows = (article[:2] for article in articles(split, count, seed))
        paths |= write_split(folder, split, ("article", "summary"), rows)
    return paths
