"""Pairs of the phrasebook, drawn, split into train, valid and test, and written to files."""

from collections.abc import Iterator
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import NamedTuple
from zlib import crc32

from heed.data.synthetic.phrasebook import english, korean, lexicon
from heed.data.synthetic.phrasebook.clauses import HEAD, SO_MUCH, VOCATIVE, Clause, Sentence
from heed.data.synthetic.phrasebook.drawing import draw
from heed.data.synthetic.phrasebook.lexicon import ME, YOU
from heed.files import atomic_file

SPLITS = ("train", "valid", "test")
EDITION = 1  # a change of what is drawn or split changes it, so that no file of another edition is used
SALT = "heed 4 "  # chosen so that the lecture's sentence falls into test
LONGEST = 18  # English words
PATIENCE = 100_000  # draws in a row without a new sentence, after which a split counts as spent


class Pair(NamedTuple):
    """A Korean sentence, its English, and the sorted links (source word, target word)."""

    source: str
    target: str
    alignment: tuple[tuple[int, int], ...]


def split_of(said: list[tuple[str, int]]) -> str:
    """The split of a sentence, by its English words in whatever order."""
    bag = " ".join(sorted([text for text, _ in said])).replace(",", "")
    bucket = crc32((SALT + bag).encode()) % 100
    return "train" if bucket < 90 else "valid" if bucket < 95 else "test"


def pair(sentence: Sentence, said: list[tuple[str, int]]) -> Pair:
    """A sentence as a pair, given its English words."""
    if sentence.vocative:
        said = [(sentence.vocative.english[0] + ",", HEAD << VOCATIVE), *said]
    source = korean.say(sentence)
    roles = [(j, role) for j, (_, role) in enumerate(said)]
    links = tuple([(i, j) for i, (_, mine) in enumerate(source) for j, yours in roles if mine & yours])
    text = " ".join([text for text, _ in said]) + ("?" if sentence.form == "question" else ".")
    return Pair(" ".join([text for text, _ in source]), text[0].upper() + text[1:], links)


LOVE = next(verb for verb in lexicon.ACTIONS if verb.english == "love")
LECTURE_SENTENCE = Sentence(Clause(ME, LOVE, YOU, manner=SO_MUCH), vocative=lexicon.FRIENDS[0])
LECTURE = pair(LECTURE_SENTENCE, english.say(LECTURE_SENTENCE))


def pairs(split: str, count: int, seed: int = 0) -> Iterator[Pair]:
    """`count` different pairs of a split ('train', 'valid', 'test'), drawn by `seed`; the lecture's comes first in test."""
    if split not in SPLITS:
        raise ValueError(f"The phrasebook has no split {split!r}; it has train, valid and test.")
    return stream(split, count, seed)


def stream(split: str, count: int, seed: int) -> Iterator[Pair]:
    """The pairs that `pairs` promises."""
    rng, seen, misses = Random(seed), set(), 0
    if split == "test" and count > 0:
        seen.add(fingerprint(LECTURE.source))
        yield LECTURE
    while len(seen) < count:
        sentence = draw(rng)
        said = english.say(sentence)
        misses += 1
        if len(said) <= LONGEST and split_of(said) == split:
            made = pair(sentence, said)
            mark = fingerprint(made.source)
            if mark not in seen:
                seen.add(mark)
                misses = 0
                yield made
        if misses > PATIENCE:
            raise ValueError(f"The phrasebook ran out of {split} sentences after {len(seen):,}; ask for fewer.")


def fingerprint(text: str) -> bytes:
    """Eight bytes that stand for a text."""
    return blake2b(text.encode(), digest_size=8).digest()


def write(folder: Path, *, train: int, valid: int = 500, test: int = 500, seed: int = 0) -> dict[str, Path]:
    """Write train.ko, train.en, valid.ko, ..., test.align into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    paths: dict[str, Path] = {}
    for split, count in (("train", train), ("valid", valid), ("test", test)):
        endings = ("ko", "en") if split == "train" else ("ko", "en", "align")
        here = {f"{split}.{ending}": folder / f"{split}.{ending}" for ending in endings}
        with ExitStack() as stack:
            parts = [stack.enter_context(atomic_file(path)) for path in here.values()]
            files = [stack.enter_context(part.open("w", encoding="utf-8")) for part in parts]
            for made in pairs(split, count, seed):
                alignment = " ".join(f"{i}-{j}" for i, j in made.alignment)
                for file, line in zip(files, (made.source, made.target, alignment), strict=False):
                    file.write(line + "\n")
        paths |= here
    return paths
