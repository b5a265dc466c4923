"""ROUGE (Lin, 2004): overlap of a summary with its reference in words, word pairs and longest common subsequence."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heed.data.overlap import Overlap, bag_counts, overlap, overlap_of_counts
from heed.evaluation.translation import check

SIGNATURE = "case:lc|words:letters,digits|stem:no|refs:1|mean:documents"


@dataclass(frozen=True)
class Rouge:
    """ROUGE-1, ROUGE-2 and ROUGE-L, from 0 to 1: means over documents."""

    one: Overlap
    two: Overlap
    longest: Overlap
    documents: int
    signature: str = SIGNATURE


def score(hypotheses: Sequence[str], references: Sequence[str]) -> Rouge:
    """Score summaries against one reference each; on English as Google's rouge_score does without its stemmer."""
    check(hypotheses, [references])
    each = [score_document(*pair) for pair in zip(hypotheses, references, strict=True)]
    means = [Overlap(*(float(part) for part in np.mean(rows, axis=0))) for rows in zip(*each, strict=True)]
    return Rouge(*means, documents=len(each))


def score_document(hypothesis: str, reference: str) -> tuple[Overlap, Overlap, Overlap]:
    """ROUGE-1, ROUGE-2 and ROUGE-L of one summary."""
    ours, gold = words(hypothesis), words(reference)
    one, two = (overlap_of_counts(*bag_counts([_ngrams(ours, n), _ngrams(gold, n)])) for n in (1, 2))
    return one, two, overlap(lcs_length(ours, gold), len(ours), len(gold))


def words(text: str) -> list[str]:
    """The lowercased words of a text: letters, digits and combining marks, in any script."""
    text = unicodedata.normalize("NFC", text.lower())
    return "".join(char if unicodedata.category(char)[0] in "LNM" else " " for char in text).split()


def lcs_length(one: Sequence[str], other: Sequence[str]) -> int:
    """The length of the longest common subsequence, bit-parallel (Hyyrö, 2004)."""
    positions: dict[str, int] = {}
    for i, word in enumerate(one):
        positions[word] = positions.get(word, 0) | 1 << i
    row = mask = (1 << len(one)) - 1
    for word in other:
        hits = row & positions.get(word, 0)
        row = (row + hits | row - hits) & mask
    return len(one) - row.bit_count()


def _ngrams(tokens: Sequence[str], n: int) -> list[tuple[str, ...]]:
    return list(zip(*(tokens[i:] for i in range(n)), strict=False))
