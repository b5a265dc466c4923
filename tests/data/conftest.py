"""A small corpus with a real alphabet, and subwords learned from it."""

from itertools import product
from pathlib import Path

import pytest

from heed.data import corpus, duplicates
from heed.data.filters import FiltersConfig
from heed.data.readers import Line
from heed.vocabularies import sentencepiece

WHO = [("the dog", "der Hund"), ("a child", "ein Kind"), ("my sister", "meine Schwester"), ("the old man", "der alte Mann"),
       ("she", "sie"), ("the neighbour from Köln", "der Nachbar aus Köln")]  # fmt: skip
DOES = [
    ("sees", "sieht"),
    ("likes", "mag"),
    ("is looking for", "sucht"),
    ("paints", "malt"),
    ("never finds", "findet nie"),
]
WHAT = [("the sea", "das Meer"), ("a red house", "ein rotes Haus"), ("the street", "die Straße"), ("bread", "Brot"),
        ("the café by the river", "das Café am Fluss"), ("한국어", "Koreanisch")]  # fmt: skip


@pytest.fixture(scope="session")
def pairs() -> list[tuple[str, str]]:
    """180 pairs, all different."""
    return [tuple(" ".join(words) + "." for words in zip(*parts, strict=True)) for parts in product(WHO, DOES, WHAT)]


@pytest.fixture(scope="session")
def lines(pairs) -> list[Line]:
    return [Line(source, target, f"train.en:{i}") for i, (source, target) in enumerate(pairs, 1)]


@pytest.fixture(scope="session")
def learned(pairs) -> sentencepiece.Subwords:
    return sentencepiece.learn([text for pair in pairs for text in pair], sentencepiece.SubwordsConfig(), 400)


@pytest.fixture(scope="session")
def made(tmp_path_factory, lines, build) -> corpus.Corpus:
    """The corpus of these pairs, with its text."""
    return build(tmp_path_factory.mktemp("made") / "corpus", lines, with_text=True)


@pytest.fixture(scope="session")
def build(learned):
    """Builds a corpus from lines, as a run does."""

    def build(
        folder: Path, lines: list[Line], *, holdout: int = 0, with_text: bool = False, **settings
    ) -> corpus.Corpus:
        config = FiltersConfig(**settings)
        skip = duplicates.find_skipped(lines, config, holdout)
        return corpus.build(folder, lambda: lines, (learned, learned), config, skip=skip, with_text=with_text)

    return build
