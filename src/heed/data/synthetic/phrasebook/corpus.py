"""Pairs of the phrasebook: drawn at random, split into train, valid and test, and written to files."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b, sha256
from itertools import cycle, islice
from pathlib import Path
from random import Random
from typing import NamedTuple

from heed.data.synthetic import splits
from heed.data.synthetic.phrasebook import english, lexicon, talk
from heed.data.synthetic.phrasebook.clauses import SO_MUCH, Clause, Sentence
from heed.data.synthetic.phrasebook.lexicon import ME, YOU
from heed.data.synthetic.phrasebook.talk import Line
from heed.data.synthetic.splits import MAX_MISSES, SPLITS, split_of_key, write_split

EDITION = 4  # incremented when what is drawn or the split changes, so that no file of another edition is used
SALT = "heed 4 "  # chosen so that the sentence of the lecture is in test
MAX_WORDS = 18  # of the English


def hash_of_sources(package: Path) -> str:
    """A hash of the generator's source code: while it is being developed, no corpus of an earlier state is reused."""
    sources = [*sorted(package.glob("*.py")), Path(splits.__file__)]
    return sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]


SOURCES = hash_of_sources(Path(__file__).parent)  # when imported: later edits do not change what this process draws


class Pair(NamedTuple):
    """A Korean sentence, its English, and the sorted alignment (source word, target word)."""

    source: str
    target: str
    alignment: tuple[tuple[int, int], ...]


def bag_of(english_words: Iterable[str]) -> str:
    """English words in any order, without commas."""
    return " ".join(sorted(english_words)).replace(",", "")


EXPRESSED = frozenset(bag_of(talk.said_first(one.english.rstrip(".?")).split()) for one in talk.EXPRESSIONS)
EXPRESSED |= {bag_of(target.split()) for _, target in talk.WORDS}
EXPRESSIONS = {one.korean + "?" * one.asks: one.english for one in talk.EXPRESSIONS}
EXPRESSIONS |= {korean: EXPRESSIONS[korean + "?"] for korean in talk.CLEAR}
EXPRESSIONS = {korean.replace(" ", ""): english for korean, english in EXPRESSIONS.items()} | EXPRESSIONS
EXPRESSIONS |= {korean: target[0].upper() + target[1:] + "." for korean, target in talk.WORDS}


def split_of(english_words: Iterable[tuple[str, int]]) -> str:
    """The split of a sentence, by its English words in any order; what is a set expression is in train."""
    bag = bag_of([text for text, _ in english_words])
    return "train" if bag in EXPRESSED else split_of_key(SALT + bag)


def split_of_line(line: Line) -> str:
    """The split of a drawn line; a set expression alone is in train."""
    return split_of([(word, 0) for word in line.key]) if line.key else "train"


def misread(drawn: Pair) -> bool:
    """Whether a composed sentence is a set expression of another meaning: 밥 먹었어? asks whether one has eaten, not about rice."""
    return EXPRESSIONS.get(drawn.source.rstrip(talk.ENDINGS), drawn.target) != drawn.target


def pair_of(line: Line) -> Pair:
    """A drawn line as a pair with its links."""
    roles = [(j, role) for j, (_, role) in enumerate(line.english)]
    links = tuple([(i, j) for i, (_, role) in enumerate(line.korean) for j, other in roles if role & other])
    text = " ".join([text for text, _ in line.english])
    text += "" if text.endswith(line.mark) else line.mark  # after p.m.
    return Pair(" ".join([text for text, _ in line.korean]), text[0].upper() + text[1:], links)


def pair(sentence: Sentence, english_words: Iterable[tuple[str, int]]) -> Pair:
    """A sentence of the grammar as a pair, given its English words."""
    return pair_of(talk.sentence_line(sentence, tuple(english_words)))


EXAMPLES = tuple(one.korean + "?" * one.asks for one in talk.EXAMPLES)
LOVE = next(verb for verb in lexicon.VERBS if verb.english == "love")
LECTURE_SENTENCE = Sentence(Clause(ME, LOVE, YOU, manner=SO_MUCH), vocative=lexicon.FRIENDS[0])
LECTURE = pair(LECTURE_SENTENCE, english.realize(LECTURE_SENTENCE))


def pairs(split: str, count: int, seed: int = 0, complete: bool = False) -> Iterator[Pair]:
    """`count` different pairs of a split ('train', 'valid', 'test'), drawn by `seed`; test begins with the sentence of the lecture.

    `complete`: only complete sentences from the grammar, a smaller domain that is learned faster.
    """
    if split not in SPLITS:
        raise ValueError(f"The phrasebook has no split {split!r}; it has train, valid and test.")
    return _stream(split, count, seed, talk.draw_complete if complete else talk.draw)


def _stream(split: str, count: int, seed: int, draw: Callable[[Random], Line]) -> Iterator[Pair]:
    """The generator behind `pairs`, which checks its arguments immediately."""
    rng, seen, misses = Random(seed), set(), 0
    if split == "test" and count > 0:
        seen.add(fingerprint(LECTURE.source))
        yield LECTURE
    while len(seen) < count:
        line = draw(rng)
        misses += 1
        if len(line.key) <= MAX_WORDS and split_of_line(line) == split:
            drawn = pair_of(line)
            if misread(drawn):
                continue
            key = fingerprint(drawn.source)
            if key not in seen:
                seen.add(key)
                misses = 0
                yield drawn
        if misses > MAX_MISSES:
            raise ValueError(f"The phrasebook ran out of {split} sentences after {len(seen):,}; request fewer.")


def fingerprint(text: str) -> bytes:
    """An eight-byte hash, to remember millions of texts in little memory."""
    return blake2b(text.encode(), digest_size=8).digest()


def join_pairs(drawn: Iterable[Pair], most: int) -> Iterator[Pair]:
    """Lines of 1, 2, ... `most` sentences, then of 1 again: long texts whose words and alignments are the phrasebook's."""
    sentences = iter(drawn)
    for size in cycle(range(1, most + 1)):
        parts = list(islice(sentences, size))
        if not parts:
            return
        yield _join(parts)


def _join(parts: Sequence[Pair]) -> Pair:
    links: list[tuple[int, int]] = []
    i = j = 0  # how many words of each side come before
    for part in parts:
        links += [(i + own, j + other) for own, other in part.alignment]
        i, j = i + len(part.source.split()), j + len(part.target.split())
    return Pair(" ".join(part.source for part in parts), " ".join(part.target for part in parts), tuple(links))


def write(
    folder: Path, *, train: int, valid: int = 500, test: int = 500, seed: int = 0, join: int = 1, complete: bool = False
) -> dict[str, Path]:
    """Write train.ko, train.en, valid.ko, ..., test.align into `folder`; with `join`, lines of up to that many
    sentences.
    """
    if join < 1:
        raise ValueError(f"join is {join}; a line has at least 1 sentence")
    paths: dict[str, Path] = {}
    for split, count in zip(SPLITS, (train, valid, test), strict=True):
        rounds, rest = divmod(count, join)
        sentences = rounds * join * (join + 1) // 2 + rest * (rest + 1) // 2
        drawn = join_pairs(pairs(split, sentences, seed, complete), join)
        rows = ((one.source, one.target, " ".join(f"{i}-{j}" for i, j in one.alignment)) for one in drawn)
        paths |= write_split(folder, split, ("ko", "en") if split == "train" else ("ko", "en", "align"), rows)
    return paths
