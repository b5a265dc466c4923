"""Error analysis of translations: by length, by word frequency, numbers, output length, loops and copies."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from heed.evaluation.translation import check, metrics
from heed.evaluation.word_diff import split

LENGTHS = (1, 6, 11, 16, 21, 31, 51)  # the fewest source words of each group
FREQUENCIES = (0, 1, 6, 21, 101)  # the fewest occurrences in training of each group
REPEATS, LONGEST_LOOP = (
    3,
    4,
)  # a loop is an n-gram of up to four words, three times in a row; or letters of a word, seven times
COPIED = 0.8  # share of the output's words that are words of the source, from which it counts as a copy
MAX_PIECES = 100_000  # that are kept at once while counting words
_STUTTER = re.compile(r"([^\W\d]{1,4}?)\1{6}")
_NUMBER = re.compile(r"\d+(?:[.,:'\u2019\u00a0]\d+)*")


@dataclass(frozen=True)
class LengthGroup:
    """The sentences whose sources have `first` to `last` words (None: no limit)."""

    first: int
    last: int | None
    sentences: int
    bleu: float
    chrf: float


@dataclass(frozen=True)
class WordGroup:
    """The reference words that occur `first` to `last` times in training, and how many of them are in the output."""

    first: int
    last: int | None
    words: int
    found: int

    @property
    def recall(self) -> float:
        return self.found / self.words if self.words else 0.0


@dataclass(frozen=True)
class Analysis:
    """`numbers` is the count in the sources, `numbers_kept` and `numbers_in_references` how many of them the outputs
    and references have. `length_ratio` is BLEU tokens of outputs to references. `words` is empty if the training text
    is unknown.
    """

    sentences: int
    lengths: Sequence[LengthGroup]
    words: Sequence[WordGroup]
    numbers: int
    numbers_kept: int
    numbers_in_references: int
    length_ratio: float
    loops: int
    copies: int
    empty: int


def analyze(
    sources: Sequence[str],
    references: Sequence[str],
    hypotheses: Sequence[str],
    frequencies: Mapping[str, int] | None = None,
    *,
    lowercase: bool = False,
    tokenize: str = "13a",
) -> Analysis:
    """Analyse translations. `frequencies`: how often reference words occur in the training text."""
    check(hypotheses, [references])
    check(hypotheses, [sources])
    rows = list(zip(sources, references, hypotheses, strict=True))
    scorers = metrics(lowercase, tokenize)[:2]
    bleu = scorers[0].corpus_score(hypotheses, [references])
    kept, present, numbers = _numbers(rows)
    return Analysis(
        len(rows),
        _by_length(rows, scorers),
        _by_frequency(rows, frequencies) if frequencies is not None else (),
        numbers,
        kept,
        present,
        bleu.sys_len / max(1, bleu.ref_len),
        sum(loops(hypothesis) and not loops(reference) for _, reference, hypothesis in rows),
        sum(copied(*row) for row in rows),
        sum(not hypothesis.strip() and bool(source.strip()) for source, _, hypothesis in rows),
    )


def words(text: str) -> list[str]:
    """The words of a text, without spaces and punctuation; for a script without spaces, its characters."""
    return [piece for piece in split(text) if not piece.isspace() and unicodedata.category(piece[0])[0] != "P"]


def count_words(texts: Iterable[str], wanted: Iterable[str]) -> dict[str, int]:
    """How often each of these words occurs in texts. Most texts share their words: each is split once for many of them."""
    counts, pieces = dict.fromkeys(wanted, 0), Counter()

    def add() -> None:
        for piece, times in pieces.items():
            for word in words(piece):
                if word in counts:
                    counts[word] += times
        pieces.clear()

    for text in texts:
        pieces.update(text.split())
        if len(pieces) > MAX_PIECES:
            add()
    add()
    return counts


def numbers_in(text: str) -> list[str]:
    """The numbers of a text as digits only, since languages separate thousands and decimals differently."""
    return [re.sub(r"\D", "", found) for found in _NUMBER.findall(unicodedata.normalize("NFKC", text))]


def loops(text: str) -> bool:
    """Whether a text repeats the same one to four words three times in a row, or one to four letters seven times."""
    own = words(text)
    if _STUTTER.search(text):
        return True
    for size in range(1, LONGEST_LOOP + 1):
        run = 0
        for at in range(size, len(own)):
            run = run + 1 if own[at] == own[at - size] else 0
            if run == size * (REPEATS - 1):
                return True
    return False


def copied(source: str, reference: str, hypothesis: str) -> bool:
    """Whether an output consists mostly of source words that are not in the reference."""
    own = words(hypothesis)
    shares = [_shared(own, words(text)) for text in (source, reference)]
    return bool(own) and shares[0] >= COPIED * len(own) and shares[0] > shares[1]


def _shared(own: Sequence[str], other: Sequence[str]) -> int:
    return (Counter(own) & Counter(other)).total()


def _numbers(rows: Sequence[tuple[str, str, str]]) -> tuple[int, int, int]:
    """How many numbers of the sources are in the outputs and in the references, and how many there are."""
    kept = present = total = 0
    for source, reference, hypothesis in rows:
        own, gold, found = (Counter(numbers_in(text)) for text in (source, reference, hypothesis))
        total, kept, present = total + own.total(), kept + (own & found).total(), present + (own & gold).total()
    return kept, present, total


def _by_length(rows: Sequence[tuple[str, str, str]], scorers: tuple) -> list[LengthGroup]:
    sizes, groups = [len(words(source)) for source, _, _ in rows], []
    for first, last in _ranges(LENGTHS):
        own = [row for row, size in zip(rows, sizes, strict=True) if _within(max(1, size), first, last)]
        if own:
            _, references, hypotheses = map(list, zip(*own, strict=True))
            bleu, chrf = (scorer.corpus_score(hypotheses, [references]).score for scorer in scorers)
            groups.append(LengthGroup(first, last, len(own), float(bleu), float(chrf)))
    return groups


def _by_frequency(rows: Sequence[tuple[str, str, str]], frequencies: Mapping[str, int]) -> list[WordGroup]:
    total, found = Counter(), Counter()
    for _, reference, hypothesis in rows:
        own = Counter(words(reference))
        total.update(own)
        found.update(own & Counter(words(hypothesis)))
    groups = []
    for first, last in _ranges(FREQUENCIES):
        own = [word for word in total if _within(frequencies.get(word, 0), first, last)]
        groups.append(WordGroup(first, last, sum(total[word] for word in own), sum(found[word] for word in own)))
    return groups


def _ranges(starts: Sequence[int]) -> list[tuple[int, int | None]]:
    return list(zip(starts, [*(start - 1 for start in starts[1:]), None], strict=True))


def _within(value: int, first: int, last: int | None) -> bool:
    return first <= value and (last is None or value <= last)
