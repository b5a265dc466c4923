"""What an attention head does in one sentence, measured: the share of its attention on the previous token, the
aligned word, …
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

NAMED_FROM = 0.5  # a head has a role if at least this share of its attention goes there, on average over its rows
MIN_ROWS = 3  # that count; a sentence of less says nothing
MIN_SEEN = 3  # a row that sees fewer tokens has hardly a choice, and does not count
SPECIAL = re.compile(r"<(?!0x).+>|\[(PAD|UNK|CLS|SEP|MASK)\]")


def self_roles(attention: np.ndarray, tokens: Sequence[str], causal: bool) -> list[list[dict[str, Any]]]:
    """The role (or None) of each layer and head of (layers, heads, t, t), and the share of its attention that goes
    there.
    """
    size = len(tokens)
    targets = {"previous": np.eye(size, k=-1), "same": np.eye(size), "start": _column(size, 0)}
    if not causal:
        targets["next"] = np.eye(size, k=1)
        if is_special(tokens[-1]):
            targets["end"] = _column(size, size - 1)
    seen = np.arange(1, size + 1) if causal else np.full(size, size)
    return _named({role: _shares(attention, cells, seen) for role, cells in targets.items()}, attention.shape[:2])


def cross_roles(
    attention: np.ndarray, source: Sequence[str], target: Sequence[str], words: Sequence[tuple[int, int]]
) -> list[list[dict[str, Any]]]:
    """The same for (layers, heads, t, s); `words` are the aligned pairs of (source word, target word), whose share is
    "aligned".
    """
    seen, targets = np.full(len(target), len(source)), {}
    own, other = words_of(source), words_of(target)
    aligned = np.zeros((len(target), len(source)))
    for left, right in words:
        aligned[np.ix_(other == right, own == left)] = 1
    if is_special(source[-1]):
        targets["end"] = _column(len(target), len(source) - 1, len(source))
    shares = {role: _shares(attention, cells, seen) for role, cells in {"aligned": aligned, **targets}.items()}
    named = _named(shares, attention.shape[:2])
    for layer, heads in enumerate(named):
        for head, found in enumerate(heads):
            found["aligned"] = round(float(shares["aligned"][layer, head]), 4)
    return named


def is_special(token: str) -> bool:
    return SPECIAL.fullmatch(token) is not None


def words_of(tokens: Sequence[str]) -> np.ndarray:
    """The index of the word that each token belongs to; -1 for special tokens."""
    found, word, before = [], -1, True
    for token in tokens:
        special = is_special(token)
        word += not special and (before or token.startswith("▁"))
        found.append(-1 if special else word)
        before = special
    return np.array(found)


def _column(rows: int, column: int, columns: int | None = None) -> np.ndarray:
    cells = np.zeros((rows, columns or rows))
    cells[:, column] = 1
    return cells


def _shares(attention: np.ndarray, cells: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """(layers, heads): the attention on `cells`, averaged over rows that have any and a choice; 0 if there are too
    few.
    """
    counted = cells.any(axis=1) & (seen >= MIN_SEEN)
    if counted.sum() < MIN_ROWS:
        return np.zeros(attention.shape[:2])
    return (attention[:, :, counted] * cells[counted]).sum(axis=-1, dtype=np.float64).mean(axis=-1)


def _named(shares: Mapping[str, np.ndarray], shape: tuple[int, ...]) -> list[list[dict[str, Any]]]:
    """The largest share of each head, with its role if it is large enough."""
    names, found = list(shares), np.stack(list(shares.values()))
    best = found.argmax(axis=0)

    def one(layer: int, head: int) -> dict[str, Any]:
        share = float(found[best[layer, head], layer, head])
        return {"role": names[best[layer, head]] if share >= NAMED_FROM else None, "share": round(share, 4)}

    return [[one(layer, head) for head in range(shape[1])] for layer in range(shape[0])]
