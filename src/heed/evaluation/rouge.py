"""ROUGE (Lin, 2004): how much of a summary's words, pairs of words and order is in the reference, and the other way round."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heed.data.overlap import Overlap, bag_counts, overlap, overlap_of_counts
from heed.evaluation.translation import check

SIGNATURE = "case:lc|words:letters,digits|stem:no|refs:1|mean:documents"


@dataclass(frozen=True)
class Rouge:
    """ROUGE-1, ROUGE-2 and ROUGE-L, as parts of 1: means over documents."""

    one: Overlap
    two: Overlap
    longest: Overlap
    documents: int
    signature: str = SIGNATURE


def score(hypotheses: Sequence[str], references: Sequence[str]) -> Rouge:
    """Score summaries against one reference each; on English, what Google's rouge_score says without its stemmer."""
    check(hypotheses, [references])
    each = [document(*pair) for pair in zip(hypotheses, references, strict=True)]
    means = [Overlap(*(float(part) for part in np.mean(rows, axis=0))) for rows in zip(*each, strict=True)]
    return Rouge(*means, documents=len(each))


def document(hypothesis: str, reference: str) -> tuple[Overlap, Overlap, Overlap]:
    """ROUGE-1, ROUGE-2 and ROUGE-L of one summary."""
    said, wanted = words(hypothesis), words(reference)
    one, two = (overlap_of_counts(*bag_counts([_runs(said, n), _runs(wanted, n)])) for n in (1, 2))
    return one, two, overlap(common(said, wanted), len(said), len(wanted))


def words(text: str) -> list[str]:
    """The words of a text in small letters: letters, digits and the signs on them, in any script."""
    text = unicodedata.normalize("NFC", text.lower())
    return "".join(sign if unicodedata.category(sign)[0] in "LNM" else " " for sign in text).split()


def common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words the longest sequence has that is in both, with whatever between them (a row of bits: Hyyrö, 2004)."""
    places: dict[str, int] = {}
    for i, word in enumerate(one):
        places[word] = places.get(word, 0) | 1 << i
    row = every = (1 << len(one)) - 1
    for word in other:
        hits = row & places.get(word, 0)
        row = (row + hits | row - hits) & every
    return len(one) - row.bit_count()


def _runs(said: Sequence[str], n: int) -> list[tuple[str, ...]]:
    return list(zip(*(said[i:] for i in range(n)), strict=False))
