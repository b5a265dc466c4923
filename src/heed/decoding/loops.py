"""Loops: the same few tokens over and over, more often than anything in the source is repeated. There are two kinds.
A sequence of up to `MAX_PERIOD` tokens may occur `allowed_repeats` times in a row; once more is a loop. And a piece
of two letters or more may occur that often in one word (Co-Fl-Co-Co).
"""

from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

MAX_PERIOD = 16  # tokens
MAX_LETTERS = 64  # of a period in a source
WITH_LETTERS, WITHOUT_LETTERS = 2, 12  # tokens of one sequence without letters: digits, dashes and dots are repeated
PADDING = -1

# How often the most repeated sequence is said in a row: one without letters, one with letters.
Repeats = tuple[int, int]


class TokenKinds(NamedTuple):
    """For each token: whether it has letters, whether it begins a word, and whether repeating it within a word is
    suspicious. The last are pieces of two letters or more in scripts with capitals, which also have spaces between
    words.
    """

    letters: Bool[np.ndarray, " vocab"]
    starts: Bool[np.ndarray, " vocab"]
    syllables: Bool[np.ndarray, " vocab"]


def token_kinds(pieces: Sequence[str], vocab_size: int) -> TokenKinds:
    """The kinds of a vocabulary's pieces; bytes have no letters."""
    pieces = [*pieces, *[""] * (vocab_size - len(pieces))]
    bare = ["" if piece.startswith("<0x") else piece.lstrip("▁") for piece in pieces]
    cased = [sum(char.lower() != char.upper() for char in piece) for piece in bare]
    letters = [any(map(str.isalpha, piece)) for piece in bare]
    starts = [piece.startswith("▁") or not all(map(_in_word, own)) for piece, own in zip(pieces, bare, strict=True)]
    return TokenKinds(np.array(letters), np.array(starts), np.array(cased) > 1)


def _in_word(char: str) -> bool:
    """Whether a word continues with this character; paths, addresses and code (os.path, A_B) are several words."""
    return char.isalpha() or char in "-'’"


def allowed_repeats(period: int, has_letters: bool, source: Repeats = (1, 1)) -> int:
    """How often a sequence of tokens may occur in a row; `source` are the repeats in the source. What the source
    repeats three times or more may occur once more than there: languages count differently.
    """
    own = source[has_letters]
    return max(WITH_LETTERS if has_letters else max(4, WITHOUT_LETTERS // period), own + 1 if own > 2 else own)


def source_repeats(text: str) -> Repeats:
    """How often the most repeated sequence of a text occurs in a row, without letters and with letters."""
    words = "".join(char if char.isalnum() else " " for char in text.casefold())
    spaced = " ".join(words.split()) + " "  # "Ha! Ha, ha" is "ha " three times
    return _repeats("".join(text.split()), False), _repeats(spaced, True)


def _repeats(text: str, has_letters: bool) -> int:
    """The same for sequences that all have letters, or all have none; an incomplete last repeat counts."""
    most = 1
    for period in range(1, min(MAX_LETTERS, len(text) - 1) + 1):
        run = 0
        for at in range(period, len(text)):
            run = run + 1 if text[at] == text[at - period] else 0
            repeats = 1 + -(-run // period) if run >= period else 1
            if repeats > most and any(map(str.isalpha, text[at - period + 1 : at + 1])) == has_letters:
                most = repeats
    return most


def find_loops(
    sequences: Sequence[Sequence[int]], kinds: TokenKinds, sources: Sequence[Repeats] | None = None
) -> Bool[np.ndarray, " n"]:
    """Which sequences have a loop; without `sources`, nothing may repeat."""
    found = np.zeros(len(sequences), dtype=bool)
    # a loop says a token more often than is allowed: most sequences have none that often
    rows = _with_frequent(sequences)
    if not rows:
        return found
    lengths = np.array([len(sequences[row]) for row in rows])
    tokens = np.full((len(rows), lengths.max()), PADDING)
    tokens[np.arange(tokens.shape[1]) < lengths[:, None]] = np.concatenate([sequences[row] for row in rows])
    own = [(1, 1)] * len(rows) if sources is None else [sources[row] for row in rows]
    loops = _within_words(tokens, kinds, allowed_rows(1, own)[:, 1])
    said = tokens != PADDING
    has_letters = kinds.letters[tokens] & said
    for period in range(1, min(MAX_PERIOD, (tokens.shape[1] - 1) // 2) + 1):
        same = (tokens[:, period:] == tokens[:, :-period]) & said[:, period:]
        likely = np.flatnonzero(np.count_nonzero(same, axis=1) >= WITH_LETTERS * period)  # few rows
        if len(likely):
            run, lettered = _run_lengths(same[likely]), _any_of_last(has_letters[likely], period)[:, period:]
            allowed = allowed_rows(period, [own[row] for row in likely])
            loops[likely] |= (run >= period * np.where(lettered, allowed[:, 1:], allowed[:, :1])).any(axis=1)
    found[np.array(rows)[loops]] = True
    return found


def _with_frequent(sequences: Sequence[Sequence[int]]) -> list[int]:
    """The sequences with a token that occurs more often than WITH_LETTERS."""
    lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
    tokens = np.fromiter(chain.from_iterable(sequences), np.int64, lengths.sum())
    size = 1 + tokens.max(initial=0)
    tokens = np.sort(np.repeat(np.arange(len(sequences)), lengths) * size + tokens)
    again = tokens[WITH_LETTERS:] == tokens[:-WITH_LETTERS]
    return np.unique(tokens[WITH_LETTERS:][again] // size).tolist()


def _within_words(
    tokens: Int[np.ndarray, "n t"], kinds: TokenKinds, allowed: Int[np.ndarray, " n"]
) -> Bool[np.ndarray, " n"]:
    """Which rows have a word with a piece too often."""
    word = (kinds.starts[tokens] & (tokens != PADDING)).cumsum(axis=1)
    counted = kinds.syllables[tokens] & (tokens != PADDING)
    keys = np.sort(np.where(counted, word * len(kinds.letters) + tokens, -1 - np.arange(tokens.shape[1])), axis=1)
    run = _run_lengths(keys[:, 1:] == keys[:, :-1]) if tokens.shape[1] > 1 else np.zeros_like(tokens)
    return (run >= allowed[:, None]).any(axis=1)


def allowed_rows(period: int, sources: Sequence[Repeats]) -> Int[np.ndarray, "n 2"]:
    return np.array([_allowed_row(period, own) for own in sources]).reshape(-1, 2)


@cache
def _allowed_row(period: int, source: Repeats) -> Repeats:
    return allowed_repeats(period, False, source), allowed_repeats(period, True, source)


def _run_lengths(same: Bool[np.ndarray, "n t"]) -> Int[np.ndarray, "n t"]:
    """For each position, how many consecutive flags up to there are true."""
    position = np.arange(1, same.shape[1] + 1)
    return position - np.maximum.accumulate(np.where(same, 0, position), axis=1)


def _any_of_last(flags: Bool[np.ndarray, "n t"], count: int) -> Bool[np.ndarray, "n t"]:
    """For each position, whether any of the last `count` flags is true."""
    total = flags.cumsum(axis=1)
    total[:, count:] -= total[:, :-count].copy()
    return total > 0
