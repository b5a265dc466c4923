"""What perplexity is computed from, line by line: a bootstrap resamples the lines of a text."""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

COUNTS = ("nll", "tokens", "words", "characters", "bytes")


def exp_loss(loss: float) -> float:
    return math.exp(loss) if loss < 700 else math.inf


def measure_lines(by_line: Float[np.ndarray, "lines 5"], _: np.ndarray | None = None) -> dict[str, float]:
    """The scores of these lines, by name, for the bootstrap, which resamples them."""
    nll, tokens, words, characters, size = by_line.sum(axis=0).tolist()
    bits = nll / math.log(2)
    return {
        "per_token": exp_loss(nll / tokens), "per_word": exp_loss(nll / words), "bits_per_character": bits / characters,
        "bits_per_byte": bits / size,
    }  # fmt: skip


def count_lines(
    lines: Sequence[str], encoded: Sequence[Sequence[int]], nll: Float[np.ndarray, " tokens"]
) -> Float[np.ndarray, "lines 5"]:
    """The numbers of `COUNTS` for each line, with its end."""
    counts = [
        (len(ids) + 1, len(line.split()) + 1, len(line) + 1, len(line.encode()) + 1)
        for line, ids in zip(lines, encoded, strict=True)
    ]
    table = np.array(counts, dtype=np.float64)
    starts = table[:, 0].cumsum().astype(np.int64) - table[:, 0].astype(np.int64)
    return np.column_stack([np.add.reduceat(nll, starts), table])
