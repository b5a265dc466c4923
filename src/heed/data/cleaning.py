"""Which pairs of a corpus are excluded from training, and why: rules that need more than one pair, and the held-out
pairs. Uses 27 bytes of memory per pair, and four times as much while sorting. Models of the corpus (letters, lexicon)
are learned from a sample of bounded size.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice

import numpy as np

from heed.data import filters as rules
from heed.data import misaligned
from heed.data.contamination import occurs_in, pairs_occur_in, text_hash, text_hashes
from heed.data.corpus import CHUNK, SIDES
from heed.data.duplicates import SKIP_REASONS, Origin, choose_skipped, find_repeated, pair_hash
from heed.data.filters import FilterReport, FiltersConfig
from heed.data.readers import Line
from heed.data.swapped import SideModel
from heed.text import language_id
from heed.vocabularies.sentencepiece import clean
from heed.vocabularies.vocabulary import Pair

SAMPLE = 50_000  # pairs that the models of the corpus are learned from
MAX_SHARE = 0.1  # of the corpus is held out at most
SCANNED = [
    ("pair", np.uint64), ("source", np.uint64), ("target", np.uint64),
    ("reason", np.uint8), ("group", np.uint8), ("direction", np.uint8),
]  # fmt: skip

Lines = Callable[..., Iterable[Line]]  # of all corpora, or of those with the given numbers
Tell = Callable[[str, int], None]


@dataclasses.dataclass(frozen=True)
class Cleaning:
    """The filtering settings. With `sides` 1, the target is a label or the source again.

    `valid` are the validation pairs; without any, `holdout` pairs are held out.
    """

    filters: FiltersConfig
    holdout: int = 0
    valid: Sequence[Line] = ()
    languages: Sequence[tuple[str | None, str | None]] = ((None, None),)  # of each corpus
    sides: int = 2
    origins: Sequence[Origin] = (Origin(),)  # of each corpus

    def __post_init__(self):
        if self.filters.language:
            for spoken in self.languages:
                language_id.check(spoken[: self.sides], "filters.language")

    def key(self) -> list:
        """The cache key of settings that change which pairs are used."""
        hashes = [own.tolist() for own in self._valid_hashes()] if self.filters.overlap else []
        spoken = [own[: self.sides] for own in self.languages] if self.filters.language else []
        numbers = ["numbers in words"] if self.filters.numbers else []  # version 0.2.0 compared digits alone
        both = ["both directions"] if self._lacking() else []
        return [dataclasses.asdict(self.filters), self.holdout, hashes, spoken, self.sides, *numbers, *both]

    def one_way_key(self) -> list | None:
        """The key of the version that did not compare directions with each other; None if that is not done here."""
        return self.key()[:-1] if self._lacking() else None

    def same_one_way(self, report: FilterReport) -> bool:
        """Whether that version excluded the same pairs."""
        return not any(report.taken.get(rule) for rule in self._lacking())

    def earlier_key(self) -> dict | None:
        """The key of an earlier version with fewer filters; None if others are on."""
        own = dataclasses.asdict(self.filters)
        later = any(value for name, value in own.items() if name not in rules.FIRST)
        return None if later else {name: own[name] for name in rules.FIRST}

    def reasons(self, lines: Lines, pair: Pair, tell: Tell) -> np.ndarray:
        """For each pair an index into SKIP_REASONS."""
        rows = (self._scan(line) for line in counted(lines(), "reading", tell))
        scanned = np.fromiter(rows, dtype=SCANNED)
        found, repeated = scanned["reason"], find_repeated(scanned["pair"])
        first = (found == 0) & ~repeated  # a rule that learns from the corpus learns from these
        self._mark_by_models(found, first, scanned["direction"], lines, pair, tell)
        if self.filters.max_repeats:
            for side in SIDES:
                _mark(found, first & _beyond(scanned[side], first, self.filters.max_repeats), "repeats")
        skip = choose_skipped(
            scanned["pair"],
            repeated,
            np.where(found == 0, scanned["group"], 0),
            self.filters.duplicates,
            self.holdout,
            MAX_SHARE,
        )
        found[found == 0] = skip[found == 0]
        if self.filters.overlap:
            self._mark_overlap(found, scanned)
        return found

    @property
    def _several(self) -> bool:
        """Whether the corpora have several directions."""
        return any(origin.direction for origin in self.origins)

    def _lacking(self) -> list[str]:
        """The rules applied here that the version that did not compare directions with each other lacked."""
        lacking = ["reversed"] if self.filters.overlap and self.sides == 2 else []
        return lacking + [rule for rule in ("swapped", "misaligned") if self._several and getattr(self.filters, rule)]

    def _scan(self, line: Line) -> tuple[int, int, int, int, int, int]:
        """The hashes of a pair and of its sides, the rule that filters it by its text alone, its group and its
        direction.
        """
        source, target = clean(line.source), clean(line.target)
        config = self.filters
        rule = rules.rule_for_text(config, source, target) or rules.rule_for_agreement(config, source, target)
        if rule is None and config.language:
            spoken = zip((source, target), self.languages[line.corpus][: self.sides], strict=False)
            rule = "language" if any(language_id.in_another_language(text, code) for text, code in spoken) else None
        second = text_hash(target) if self.sides == 2 else 0
        origin = self.origins[line.corpus]
        group = (1 + origin.direction) * origin.genuine
        reason = SKIP_REASONS.index(rule)
        return pair_hash(source, target, origin), text_hash(source), second, reason, group, origin.direction

    def _mark_by_models(
        self, found: np.ndarray, first: np.ndarray, directions: np.ndarray, lines: Lines, pair: Pair, tell: Tell
    ) -> None:
        """Mark swapped or misaligned pairs, direction by direction."""
        if not self._several:
            self._mark_direction(found, first, lines, pair, tell)
            return
        done = 0
        for direction in np.unique(directions).tolist():
            rows = np.flatnonzero(directions == direction)
            corpora = [number for number, origin in enumerate(self.origins) if origin.direction == direction]
            own, before = found[rows], done
            self._mark_direction(
                own, first[rows], partial(lines, corpora), pair, lambda what, at, before=before: tell(what, before + at)
            )
            found[rows], done = own, done + len(rows)

    def _mark_direction(self, found: np.ndarray, first: np.ndarray, lines: Lines, pair: Pair, tell: Tell) -> None:
        """The same for the pairs of one direction, using models learned from the `first` pairs of their kind."""
        config = self.filters
        if not (config.swapped or config.misaligned) or not first.any():
            return
        sample = _sample(lines, first)
        sides = SideModel(sample) if config.swapped else None
        lexicon = None
        if config.misaligned:
            ids = _encode(pair, sample)
            lexicon = misaligned.learn(*ids, (len(pair[0]), len(pair[1])))
        done = 0
        for before, chunk, after in _with_neighbours(lines(), CHUNK):
            part = found[done : done + len(chunk)]
            if sides is not None:
                _mark(part, sides.swapped(chunk), "swapped")
            if lexicon is not None:
                ids = map(misaligned.cut, _encode(pair, [*before, *chunk, *after]))
                shifted = misaligned.find(lexicon, *ids)[len(before) :]
                _mark(part, shifted[: len(chunk)], "misaligned")
            done += len(chunk)
            tell("comparing", done)

    def _mark_overlap(self, found: np.ndarray, scanned: np.ndarray) -> None:
        """Mark training pairs with a side in the validation set. In the other direction both sides must be, unless
        the directions are stated.
        """
        held = scanned[found == SKIP_REASONS.index("held out")]
        sides = [scanned[side] for side in SIDES[: self.sides]]
        valid = [np.concatenate([own, held[side]]) for side, own in zip(SIDES, self._valid_hashes(), strict=False)]
        for own, others in zip(sides, valid, strict=True):
            _mark(found, occurs_in(own, others), "overlap")
        if self.sides == 2 and self._several:
            for own, others in zip(sides, valid[::-1], strict=True):
                _mark(found, occurs_in(own, others), "reversed")
        elif self.sides == 2:
            _mark(found, pairs_occur_in(sides, valid[::-1]), "reversed")

    def _valid_hashes(self) -> list[np.ndarray]:
        return [text_hashes(line[side] for line in self.valid) for side in range(self.sides)]


def counted(lines: Iterable[Line], what: str, tell: Tell) -> Iterator[Line]:
    for number, line in enumerate(lines):
        if number % 50_000 == 0:
            tell(what, number)
        yield line


def _mark(found: np.ndarray, where: np.ndarray, rule: str) -> None:
    """A pair keeps the first rule that filters it."""
    found[where & (found == 0)] = SKIP_REASONS.index(rule)


def _beyond(hashes: np.ndarray, counted: np.ndarray, limit: int) -> np.ndarray:
    """Whether `limit` earlier pairs, of those `counted`, have the same text."""
    order = np.flatnonzero(counted)
    order = order[np.argsort(hashes[order], kind="stable")]
    ordered = hashes[order]
    rank = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    beyond = np.zeros(len(hashes), dtype=bool)
    beyond[order] = rank >= limit
    return beyond


def _sample(lines: Lines, wanted: np.ndarray) -> list[Line]:
    """Lines spread over the corpus, of those `wanted`."""
    step = -(-len(wanted) // SAMPLE)
    numbered = islice(enumerate(lines()), 0, None, step)
    return [line for number, line in numbered if wanted[number]]


def _encode(pair: Pair, lines: Sequence[Line]) -> list[list[list[int]]]:
    return [words.encode([words.clean(line[side]) for line in lines]) for side, words in enumerate(pair)]


def _with_neighbours(lines: Iterable[Line], size: int) -> Iterator[tuple[list[Line], list[Line], list[Line]]]:
    """Chunks of lines, each with its previous and next line, if any."""
    rest = iter(lines)
    before, chunk = [], list(islice(rest, size))
    while chunk:
        following = list(islice(rest, size))
        yield before, chunk, following[:1]
        before, chunk = chunk[-1:], following
