"""Matching pairs of texts, with or without negatives: tables and batches for contrastive training."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from heed.data.batching import pad
from heed.data.packing import pack_texts, to_device
from heed.data.readers import Line
from heed.data.tables import Columns, rows
from heed.nn.packing import SequenceOffsets
from heed.vocabularies.ragged import Ids
from heed.vocabularies.text_parts import SEPARATOR, split_parts
from heed.vocabularies.vocabulary import SpecialPair


class PairBatch(NamedTuple):
    """Concatenated columns of texts: the first texts of all pairs, then the second ones, then the negatives. `kinds`
    number the texts: equal texts have the same number. `valid` are the offsets of texts packed in one row, or the mask.
    """

    tokens: Tensor
    valid: Tensor | SequenceOffsets
    kinds: Tensor
    columns: int

    to = to_device


def pair_table(path: Path, columns: Columns) -> Iterator[Line]:
    """The first column is the source, the second its match, and further ones are negatives."""
    for number, cells in rows(path, columns):
        for cell in cells:
            if not isinstance(cell, str):
                raise ValueError(f"{path}, line {number} has a list, {cell!r}, which only multiple choice supports")
        yield Line(cells[0], SEPARATOR.join(cells[1:]), f"{path.name}:{number}")


@dataclass(frozen=True)
class CollatePairs:
    """A padded or `packed` batch. With `columns` above 2, a target holds the match of its source and then the negatives."""

    columns: int = 2
    packed: bool = False

    def __call__(self, source: Sequence[Ids], target: Sequence[Ids], special: SpecialPair) -> PairBatch:
        sources = [np.asarray(ids).tolist() for ids in source]
        targets = [[np.asarray(ids).tolist()] for ids in target]
        if self.columns > 2:
            targets = [split_parts(own, special[1].delimiter) for (own,) in targets]
        texts = sources + [row[column] for column in range(self.columns - 1) for row in targets]
        numbers: dict[tuple[int, ...], int] = {}
        kinds = [numbers.setdefault(tuple(text), len(numbers)) for text in texts]
        tokens, valid = map(torch.from_numpy, pad(texts, special[0]))
        if self.packed:
            tokens, valid = pack_texts(tokens, valid)
        return PairBatch(tokens, valid, torch.tensor(kinds, dtype=torch.int64), self.columns)
