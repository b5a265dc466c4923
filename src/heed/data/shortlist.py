"""A lexical shortlist: the target subwords that a source may produce, so that fast decoding need not score all.
Learned from the corpus by IBM model 1 (Brown et al., 1993). Each source subword has its most likely translations and
itself; the most frequent target subwords are always included. With several target languages, those of a language
belong to the tag that its sources begin with. `tasks/shortlist.py` chooses the size by translation quality.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from heed.data.corpus import Corpus
from heed.vocabularies.ragged import RaggedRows, slice_indices
from heed.vocabularies.vocabulary import Pair

FILE = "shortlist.txt"
# How many target subwords are always there, and how many more each source subword has. Sentences translated together
# share one list, so what each source subword adds weighs more than what is always there.
SIZES = ((900, 15), (1200, 15), (1200, 30), (1200, 90), (2400, 240))
MAX_VOCAB_SHARE = 1 / 3  # a longer list is not worth having
MIN_COUNT = 1e-4  # pairs with a lower expected count are dropped
MAX_PAIRS = 1_000_000  # sentence pairs to look at
BLOCK_CELLS = 6_000_000  # cells (a source and a target subword of one pair) that are counted together
MAX_BLOCKS = 6
RARE = 20  # from a large corpus, only sentences with a subword seen less often than this are used
EM_ROUNDS = 3


class Shortlist(NamedTuple):
    """`always` are target ids; `by_source[i]` those of source id i."""

    always: np.ndarray
    by_source: dict[int, np.ndarray]

    def candidates(self, source: Iterable[int]) -> set[int]:
        """The target ids that a translation of these source ids may use, without special tokens."""
        return set(self.always.tolist()).union(*(self.by_source.get(i, np.zeros(0, int)).tolist() for i in source))


class TranslationTable(NamedTuple):
    """Expected counts of subword pairs, ordered by source; the first `shared` ids mean the same on both sides."""

    source: np.ndarray
    target: np.ndarray
    counts: np.ndarray
    shared: int

    def shortlist(self, frequent: int, best: int) -> Shortlist:
        """The shortlist with the `frequent` most frequent targets, and the `best` most likely others of each source."""
        frequency = np.bincount(self.target, self.counts)
        always = np.argsort(-frequency, kind="stable")[: min(frequent, np.count_nonzero(frequency))]
        others = ~np.isin(self.target, always)
        source, target = self.source[others], self.target[others]
        chosen = _top_per_source(source, self.counts[others], best)
        source, target = source[chosen], target[chosen]
        each, first = np.unique(source, return_index=True)
        by_source = dict(zip(each.tolist(), np.split(target, first[1:]), strict=bool(len(each))))
        for i in range(self.shared):  # names and numbers are copied
            by_source[i] = np.append(by_source.get(i, always[:0]), i)
        return Shortlist(np.sort(always), {i: np.unique(targets) for i, targets in by_source.items()})


class TaggedTables(NamedTuple):
    """The table of each target language, by the id of its tag, with which the sources of this language begin."""

    by_tag: dict[int, TranslationTable]

    def shortlist(self, frequent: int, best: int) -> Shortlist:
        """The shortlists of all languages in one; their most frequent targets are those of the tags."""
        lists = {tag: table.shortlist(frequent, best) for tag, table in self.by_tag.items()}
        found: dict[int, np.ndarray] = {}
        for tag, own in lists.items():
            for source, targets in (*own.by_source.items(), (tag, own.always)):
                found[source] = np.union1d(found.get(source, targets), targets)
        first, *others = (own.always for own in lists.values())
        common = first[np.logical_and.reduce([np.isin(first, other) for other in others])] if others else first
        return Shortlist(common if len(common) else first[:1], found)  # CTranslate2 expects some


def learn(corpus: Corpus, vocabularies: Pair, tags: Collection[int] = ()) -> TranslationTable | TaggedTables:
    """Translation counts from as much of a corpus as is needed to see every subword; of each target language, if
    `tags` are the ids of several.
    """
    if len(tags) < 2:
        return _learn(corpus, vocabularies, np.arange(len(corpus)))
    ends = np.cumsum(corpus.counts)
    parts = list(zip(corpus.prefixes, ends - corpus.counts, ends, strict=True))
    rows = {tag: [np.arange(start, end) for prefix, start, end in parts if tag in prefix] for tag in sorted(tags)}
    known = {tag: np.concatenate(own) for tag, own in rows.items() if own}
    return TaggedTables({tag: _learn(corpus, vocabularies, own) for tag, own in known.items() if len(own)})


def _learn(corpus: Corpus, vocabularies: Pair, those: np.ndarray) -> TranslationTable:
    sizes = len(vocabularies[0]), len(vocabularies[1])
    codes, counts = np.zeros(0, np.int64), np.zeros(0)
    for rows in _blocks(corpus, sizes, those):
        more = expected_counts(corpus.source.take(rows), corpus.target.take(rows), sizes)
        codes, inverse = np.unique(np.concatenate([codes, more[0]]), return_inverse=True)
        counts = np.bincount(inverse, np.concatenate([counts, more[1]]))
    source, target = codes // sizes[1], codes % sizes[1]
    known = source < sizes[0]  # without the empty source
    same = vocabularies[0].key() == vocabularies[1].key()
    return TranslationTable(source[known], target[known], counts[known], sizes[0] if same else 0)


def by_size(
    table: TranslationTable | TaggedTables, sources: Sequence[list[int]], vocab_size: int
) -> Iterator[Shortlist]:
    """Shortlists of increasing size, as long as they are short enough for sources like these."""
    for frequent, best in SIZES:
        shortlist = table.shortlist(frequent, best)
        candidates = sum(len(shortlist.candidates(source)) for source in sources)
        if candidates > MAX_VOCAB_SHARE * vocab_size * len(sources):
            return
        yield shortlist


def to_text(shortlist: Shortlist, names: tuple[Sequence[str], Sequence[str]]) -> str:
    """One line per source subword: the subword, a tab, its target subwords. The first line, without a source, is
    `always`.
    """
    rows = [("", shortlist.always), *((names[0][i], ids) for i, ids in sorted(shortlist.by_source.items()))]
    return "".join(f"{name}\t{' '.join(names[1][i] for i in ids.tolist())}\n" for name, ids in rows)


def read(folder: Path, names: Collection[str]) -> str | None:
    """The text of a model folder's shortlist, if any, checked against its target subwords `names`."""
    path = folder / FILE
    if not path.is_file():
        return None
    text = path.read_text("utf-8")
    lines = text.removesuffix("\n").split("\n")
    known = set(names)
    for number, line in enumerate(lines, 1):
        source, tab, targets = line.partition("\t")
        if not tab or "\t" in targets or (number == 1 and source):
            raise ValueError(
                f"{path} is damaged: each line must be a subword, a tab and subwords; restore it, or remove it (see "
                f"line {number})"
            )
        if not known.issuperset(listed := targets.split(" ")):
            where, unknown = path if number == 1 else f"{path}, line {number}", min(set(listed) - known)
            raise ValueError(
                f"{where} has {unknown!r}, which is not a subword of this model: it belongs to another model; remove it"
            )
    return text


def _blocks(corpus: Corpus, sizes: tuple[int, int], those: np.ndarray) -> Iterator[np.ndarray]:
    """Blocks of some rows of the corpus in random order: all of them or, if they are many, those with a rare subword."""
    cells = (corpus.source.lengths.astype(np.int64) + 1) * corpus.target.lengths
    order = those[np.random.default_rng(1).permutation(len(those))[:MAX_PAIRS]]
    seen, block, held, done = [np.zeros(size, np.int64) for size in sizes], [], 0, 0
    all_fit = cells[order].sum() <= MAX_BLOCKS * BLOCK_CELLS
    for rows in np.array_split(order, -(-len(order) // 2000)):
        if not all_fit:
            rows = rows[_with_rare_subwords(corpus, rows, seen)]
        block.append(rows)
        held += int(cells[rows].sum())
        if held >= BLOCK_CELLS:
            yield np.concatenate(block)
            block, held, done = [], 0, done + 1
        if done == MAX_BLOCKS:
            return
    if held:
        yield np.concatenate(block)


def _with_rare_subwords(corpus: Corpus, rows: np.ndarray, seen: list[np.ndarray]) -> np.ndarray:
    """Whether each row has a rarely seen subword; the subwords of those rows are added to `seen`."""
    rare = np.zeros(len(rows), bool)
    for side, counts in zip((corpus.source, corpus.target), seen, strict=True):
        ragged = side.take(rows)
        row_of_token = np.repeat(np.arange(len(rows)), ragged.lengths)
        np.logical_or.at(rare, row_of_token, counts[ragged.ids] < RARE)
    for side, counts in zip((corpus.source, corpus.target), seen, strict=True):
        counts += np.bincount(side.take(rows[rare]).ids, minlength=len(counts))
    return rare


def expected_counts(sources: RaggedRows, targets: RaggedRows, sizes: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of subwords, coded as source * target_size + target, and their expected counts after EM for IBM model 1."""
    ends = np.cumsum(sources.lengths)
    ids = np.insert(sources.ids.astype(np.int64), ends, sizes[0])  # the empty source, for targets without one
    starts, lengths = ends - sources.lengths + np.arange(len(sources)), sources.lengths + 1
    cell_counts = np.repeat(lengths, targets.lengths)  # of each target subword
    cells = ids[slice_indices(np.repeat(starts, targets.lengths), cell_counts)] * sizes[1]
    cells += np.repeat(targets.ids.astype(np.int64), cell_counts)
    codes, inverse = np.unique(cells, return_inverse=True)
    inverse, first = inverse.astype(np.int32), np.cumsum(cell_counts) - cell_counts
    probability, source = np.ones(len(codes), np.float32), codes // sizes[1]
    for _ in range(EM_ROUNDS):
        posterior = probability[inverse]
        posterior /= np.repeat(np.add.reduceat(posterior, first), cell_counts)
        counts = np.bincount(inverse, posterior)
        probability = (counts / np.bincount(source, counts)[source]).astype(np.float32)
    keep = counts > MIN_COUNT
    return codes[keep], counts[keep]


def _top_per_source(source: np.ndarray, counts: np.ndarray, best: int) -> np.ndarray:
    """The indices of the `best` most likely entries of each source, in a table ordered by source."""
    order = np.lexsort((-counts, source))
    rank = np.arange(len(order)) - np.searchsorted(source[order], source[order])
    return np.sort(order[rank < best])
