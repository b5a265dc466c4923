"""Which target subwords a source can become: a table that a fast search may keep to, learned from the corpus.

How likely a subword is to be translated as another is told by IBM model 1 (Brown et al., 1993). Each source subword has its
likeliest translations and itself; the most frequent target subwords are always there. Which length does is seen by what a
model says with it (`runs/shortlist.py`).
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from heed.data.corpus import Corpus
from heed.data.ragged import places
from heed.vocabularies.vocabulary import Pair

FILE = "shortlist.txt"
# How many target subwords are always there, and how many more each source subword has. Sentences that are translated
# together share one list, so that what each source subword brings along weighs more than what is always there.
SIZES = ((900, 15), (1200, 15), (1200, 30), (1200, 90), (2400, 240))
LARGEST = 1 / 3  # of the vocabulary: a longer list is not worth having
LEAST = 1e-4  # expected to be there less often than this is not to be there
MOST = 1_000_000  # pairs that are looked at
CELLS = 6_000_000  # pairs of a source and a target subword of one sentence, that are looked at together
BLOCKS = 6  # so many times, at most
SEEN = 20  # of a large corpus those sentences are taken in which something was not seen so often
ROUNDS = 3


class Shortlist(NamedTuple):
    """`always` are target ids; `by_source[i]` those of source id i."""

    always: np.ndarray
    by_source: dict[int, np.ndarray]

    def of(self, source: Iterable[int]) -> set[int]:
        """What a translation of these may be made of, but for the marks."""
        return set(self.always.tolist()).union(*(self.by_source.get(i, np.zeros(0, int)).tolist() for i in source))


class TranslationTable(NamedTuple):
    """How often each `source` subword has become each `target`, in the order of sources; so many first are `shared` by both."""

    source: np.ndarray
    target: np.ndarray
    counts: np.ndarray
    shared: int

    def shortlist(self, frequent: int, best: int) -> Shortlist:
        said = np.bincount(self.target, self.counts)
        always = np.argsort(-said, kind="stable")[: min(frequent, np.count_nonzero(said))]
        others = ~np.isin(self.target, always)
        source, target = self.source[others], self.target[others]
        chosen = _best(source, self.counts[others], best)
        source, target = source[chosen], target[chosen]
        each, first = np.unique(source, return_index=True)
        by_source = dict(zip(each.tolist(), np.split(target, first[1:]), strict=bool(len(each))))
        for i in range(self.shared):  # a name stays what it is
            by_source[i] = np.append(by_source.get(i, always[:0]), i)
        return Shortlist(np.sort(always), {i: np.unique(own) for i, own in by_source.items()})


def learn(corpus: Corpus, subwords: Pair) -> TranslationTable:
    """What becomes what, of as much of a corpus as is needed to have seen every subword."""
    sizes = len(subwords[0]), len(subwords[1])
    codes, counts = np.zeros(0, np.int64), np.zeros(0)
    for rows in _blocks(corpus, sizes):
        more = _expected(corpus, rows, sizes)
        codes, place = np.unique(np.concatenate([codes, more[0]]), return_inverse=True)
        counts = np.bincount(place, np.concatenate([counts, more[1]]))
    source, target = codes // sizes[1], codes % sizes[1]
    real = source < sizes[0]
    same = subwords[0].key() == subwords[1].key()
    return TranslationTable(source[real], target[real], counts[real], sizes[0] if same else 0)


def short(table: TranslationTable, sources: Sequence[list[int]], vocabulary: int) -> Iterator[Shortlist]:
    """Lists from the shortest on, as long as they are worth having for sources like these."""
    for frequent, best in SIZES:
        own = table.shortlist(frequent, best)
        if sum(len(own.of(source)) for source in sources) > LARGEST * vocabulary * len(sources):
            return
        yield own


def written(shortlist: Shortlist, names: tuple[Sequence[str], Sequence[str]]) -> str:
    """A line for each source subword: its name, a tab, names of target subwords. First those of no subword: always."""
    rows = [("", shortlist.always), *((names[0][i], own) for i, own in sorted(shortlist.by_source.items()))]
    return "".join(f"{name}\t{' '.join(names[1][i] for i in own.tolist())}\n" for name, own in rows)


def read(folder: Path, names: Collection[str]) -> str | None:
    """What `written` has given, of a model folder that has it and whose target subwords are `names`."""
    path = folder / FILE
    if not path.is_file():
        return None
    text = path.read_text("utf-8")
    lines = text.removesuffix("\n").split("\n")
    known = set(names)
    for number, line in enumerate(lines, 1):
        source, tab, own = line.partition("\t")
        if not tab or "\t" in own or (number == 1 and source):
            raise ValueError(
                f"{path} is damaged: each line is a subword, a tab and subwords; put it back, or remove it (see line {number})"
            )
        if not known.issuperset(each := own.split(" ")):
            place, unknown = path if number == 1 else f"{path}, line {number}", min(set(each) - known)
            raise ValueError(f"{place} has {unknown!r}, which is no subword of this model: it is of another; remove it")
    return text


def _blocks(corpus: Corpus, sizes: tuple[int, int]) -> Iterator[np.ndarray]:
    """Rows of the corpus in any order, in blocks of so many cells: all, or those with something that was hardly seen."""
    cells = (corpus.source.lengths.astype(np.int64) + 1) * corpus.target.lengths
    order = np.random.default_rng(1).permutation(len(corpus))[:MOST]
    seen, block, held, done = [np.zeros(size, np.int64) for size in sizes], [], 0, 0
    all_fit = cells[order].sum() <= BLOCKS * CELLS
    for rows in np.array_split(order, -(-len(order) // 2000)):
        if not all_fit:
            rows = rows[_rare(corpus, rows, seen)]
        block.append(rows)
        held += int(cells[rows].sum())
        if held >= CELLS:
            yield np.concatenate(block)
            block, held, done = [], 0, done + 1
        if done == BLOCKS:
            return
    if held:
        yield np.concatenate(block)


def _rare(corpus: Corpus, rows: np.ndarray, seen: list[np.ndarray]) -> np.ndarray:
    """Whether each of these has a subword that was not seen often; what they have is seen now."""
    fresh = np.zeros(len(rows), bool)
    for side, known in zip((corpus.source, corpus.target), seen, strict=True):
        own = side.take(rows)
        owner = np.repeat(np.arange(len(rows)), own.lengths)
        np.logical_or.at(fresh, owner, known[own.ids] < SEEN)
    for side, known in zip((corpus.source, corpus.target), seen, strict=True):
        known += np.bincount(side.take(rows[fresh]).ids, minlength=len(known))
    return fresh


def _expected(corpus: Corpus, rows: np.ndarray, sizes: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of subwords, as source * targets + target, and how often one became the other by model 1."""
    sources, targets = corpus.source.take(rows), corpus.target.take(rows)
    ends = np.cumsum(sources.lengths)
    ids = np.insert(sources.ids.astype(np.int64), ends, sizes[0])  # what has no source is of one that is in all
    starts, lengths = ends - sources.lengths + np.arange(len(rows)), sources.lengths + 1
    each = np.repeat(lengths, targets.lengths)  # cells of each target subword
    cells = ids[places(np.repeat(starts, targets.lengths), each)] * sizes[1]
    cells += np.repeat(targets.ids.astype(np.int64), each)
    codes, place = np.unique(cells, return_inverse=True)
    place, first = place.astype(np.int32), np.cumsum(each) - each
    likely, source = np.ones(len(codes), np.float32), codes // sizes[1]
    for _ in range(ROUNDS):
        share = likely[place]
        share /= np.repeat(np.add.reduceat(share, first), each)
        counts = np.bincount(place, share)
        likely = (counts / np.bincount(source, counts)[source]).astype(np.float32)
    keep = counts > LEAST
    return codes[keep], counts[keep]


def _best(source: np.ndarray, counts: np.ndarray, best: int) -> np.ndarray:
    """The places of the likeliest few of each source, where codes are in order of sources."""
    order = np.lexsort((-counts, source))
    rank = np.arange(len(order)) - np.searchsorted(source[order], source[order])
    return np.sort(order[rank < best])
