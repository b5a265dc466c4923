"""Articles with summaries: drawn at random, split into train, valid and test, and written to files."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import NamedTuple
from zlib import crc32

from heed.data.synthetic.articles.realization import Facts, draw_facts, realize
from heed.files import atomic_file

SPLITS = ("train", "valid", "test")
EDITION = 1  # incremented when what is drawn or the split changes, so that no file of another edition is used
MAX_MISSES = 100_000  # draws in a row without new facts, after which a split is exhausted


class Article(NamedTuple):
    """An article, its summary, and the facts behind both."""

    text: str
    summary: str
    facts: Facts


def split_of(facts: Facts) -> str:
    """The split of an article, by who did what and where."""
    core = f"{facts.kind} {facts.first} {facts.last} {facts.thing} {facts.where}"
    bucket = crc32(core.encode()) % 100
    return "train" if bucket < 90 else "valid" if bucket < 95 else "test"


def articles(split: str, count: int, seed: int = 0) -> Iterator[Article]:
    """`count` articles of a split ('train', 'valid', 'test'), drawn by `seed`, no two with the same facts."""
    if split not in SPLITS:
        raise ValueError(f"The articles have no split {split!r}; they have train, valid and test.")
    return _stream(split, count, seed)


def _stream(split: str, count: int, seed: int) -> Iterator[Article]:
    """The generator behind `articles`, which checks its arguments at once."""
    rng, seen, misses = Random(seed), set(), 0
    while len(seen) < count:
        facts = draw_facts(rng)
        misses += 1
        if split_of(facts) == split and facts not in seen:
            seen.add(facts)
            misses = 0
            yield Article(*realize(rng, facts), facts)
        if misses > MAX_MISSES:
            raise ValueError(f"The articles ran out of {split} facts after {len(seen):,}; ask for fewer.")


def write(folder: Path, *, train: int, valid: int = 500, test: int = 500, seed: int = 0) -> dict[str, Path]:
    """Write train.article, train.summary, valid.article, ..., test.summary into `folder`, one article per line."""
    folder.mkdir(parents=True, exist_ok=True)
    paths: dict[str, Path] = {}
    for split, count in (("train", train), ("valid", valid), ("test", test)):
        split_paths = {f"{split}.{ending}": folder / f"{split}.{ending}" for ending in ("article", "summary")}
        with ExitStack() as stack:
            parts = [stack.enter_context(atomic_file(path)) for path in split_paths.values()]
            files = [stack.enter_context(part.open("w", encoding="utf-8")) for part in parts]
            for article in articles(split, count, seed):
                for file, line in zip(files, article[:2], strict=True):
                    file.write(line + "\n")
        paths |= split_paths
    return paths
