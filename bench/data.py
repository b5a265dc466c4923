"""The same invented sentences for all: ids drawn evenly from the vocabulary."""

import numpy as np

from bench.rows import FIRST, LAST, PAD, TrainRow, TranslateRow

SETS = 8  # batches that a training goes round; each shape is the same, what is in it is not
Pair = tuple[np.ndarray, np.ndarray]


def sets(row: TrainRow) -> list[list[Pair]]:
    """Batches of sentences without special tokens; the first of each batch has full length, so that all batches have one shape."""
    return [_batch(row, np.random.default_rng([row.length, row.slots, number])) for number in range(SETS)]


def _batch(row: TrainRow, chance: np.random.Generator) -> list[Pair]:
    lengths = chance.integers(row.shortest, row.length, (row.sentences, 2), endpoint=True)
    lengths[0] = row.length
    return [tuple(chance.integers(LAST + 1, row.shape.vocab, n - 1) for n in own) for own in lengths]


def full(row: TrainRow) -> list[list[Pair]]:
    """Batches of such sentences for those who need no padding: as many as the slots hold."""
    return [_filled(row, np.random.default_rng([row.length, row.slots, number, 1])) for number in range(SETS)]


def _filled(row: TrainRow, chance: np.random.Generator) -> list[Pair]:
    batch, held = [], np.zeros(2, dtype=int)
    while True:
        own = chance.integers(row.shortest, row.length, 2, endpoint=True) if batch else np.array([row.length] * 2)
        held += own
        if held.max() > row.slots:
            return batch
        batch.append(tuple(chance.integers(LAST + 1, row.shape.vocab, n - 1) for n in own))


def lengths(batch: list[Pair]) -> list[tuple[int, int]]:
    """Of each sentence the tokens of the source and of the target, ends counted."""
    return [(len(source) + 1, len(target) + 1) for source, target in batch]


def target_tokens(batch: list[Pair]) -> int:
    """What is counted: target tokens that are no padding."""
    return sum(target for _, target in lengths(batch))


def padded(row: TrainRow, batch: list[Pair], ignored: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sources, decoder inputs and labels as arrays; `ignored` is the label of padding."""
    size = (len(batch), row.length)
    sources, inputs, labels = np.full(size, PAD), np.full(size, PAD), np.full(size, ignored)
    for i, (source, target) in enumerate(batch):
        sources[i, : len(source) + 1] = [*source, LAST]
        inputs[i, : len(target) + 1] = [FIRST, *target]
        labels[i, : len(target) + 1] = [*target, LAST]
    return sources, inputs, labels


def sources(row: TranslateRow) -> list[list[int]]:
    """Texts to translate, without their end."""
    chance = np.random.default_rng([row.batch, row.source])
    return chance.integers(LAST + 1, row.shape.vocab, (row.batch, row.source - 1)).tolist()
