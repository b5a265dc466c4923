"""Views of a history for contrastive learning (CL4SRec; Xie et al., 2022): crop, mask and reorder. All work on many
histories at once.
"""

from collections.abc import Callable, Sequence

import numpy as np

from heed.vocabularies.ragged import RaggedRows, slice_indices

Augmentation = Callable[[RaggedRows, np.random.Generator], RaggedRows]


def take(rows: RaggedRows, order: np.ndarray) -> RaggedRows:
    """Rows in another order."""
    lengths = rows.lengths[order]
    return RaggedRows(rows.ids[slice_indices(rows.ends[order] - lengths, lengths)], lengths)


def crop(share: float) -> Augmentation:
    """Crop: consecutive items, `share` of the history and at least one."""

    def cropped(rows: RaggedRows, random: np.random.Generator) -> RaggedRows:
        first, lengths = _window(rows, share, random, least=1)
        return RaggedRows(rows.ids[slice_indices(first, lengths)], lengths)

    return cropped


def mask(share: float, masked: int) -> Augmentation:
    """Mask: `share` of the items, chosen at random, become the mask item."""

    def with_masks(rows: RaggedRows, random: np.random.Generator) -> RaggedRows:
        chosen = draw(rows, np.floor(share * rows.lengths).astype(np.int64), random)
        return RaggedRows(np.where(chosen, masked, rows.ids), rows.lengths)

    return with_masks


def reorder(share: float) -> Augmentation:
    """Reorder: consecutive items, `share` of the history, in random order."""

    def shuffled(rows: RaggedRows, random: np.random.Generator) -> RaggedRows:
        first, lengths = _window(rows, share, random, least=0)
        keys = np.arange(len(rows.ids), dtype=np.float64)
        inside = slice_indices(first, lengths)
        keys[inside] = np.repeat(first, lengths) + 0.5 * random.random(
            len(inside)
        )  # before what follows, after what precedes
        return RaggedRows(rows.ids[np.argsort(keys, kind="stable")], rows.lengths)

    return shuffled


def two_views(
    rows: RaggedRows, augmentations: Sequence[Augmentation], random: np.random.Generator
) -> tuple[RaggedRows, RaggedRows]:
    """Two views of each history, each by a random augmentation."""
    return _one_view(rows, augmentations, random), _one_view(rows, augmentations, random)


def _one_view(rows: RaggedRows, augmentations: Sequence[Augmentation], random: np.random.Generator) -> RaggedRows:
    choice = random.integers(0, len(augmentations), len(rows))
    groups = [np.flatnonzero(choice == i) for i in range(len(augmentations))]
    parts = [change(take(rows, own), random) for change, own in zip(augmentations, groups, strict=True)]
    joined = RaggedRows(np.concatenate([one.ids for one in parts]), np.concatenate([one.lengths for one in parts]))
    return take(joined, np.argsort(np.concatenate(groups), kind="stable"))


def draw(rows: RaggedRows, counts: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Random items: `counts` per row, without repetition."""
    numbers = np.repeat(np.arange(len(rows)), rows.lengths)
    order = np.lexsort((random.random(len(numbers)), numbers))
    place = np.arange(len(numbers)) - np.repeat(rows.ends - rows.lengths, rows.lengths)
    chosen = np.zeros(len(numbers), dtype=bool)
    chosen[order] = place < np.repeat(counts, rows.lengths)
    return chosen


def _window(rows: RaggedRows, share: float, random: np.random.Generator, least: int) -> tuple[np.ndarray, np.ndarray]:
    """The start and length of a random part of each row."""
    lengths = np.maximum(np.floor(share * rows.lengths).astype(np.int64), np.minimum(least, rows.lengths))
    start = np.floor(random.random(len(rows)) * (rows.lengths - lengths + 1)).astype(np.int64)
    return rows.ends - rows.lengths + start, lengths
