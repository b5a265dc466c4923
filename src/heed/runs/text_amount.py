"""How much text a corpus has, for the rules of defaults.py: its characters, and roughly its tokens, before there is a
vocabulary.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from heed.data.readers import Line
from heed.text.languages import RANGES

# Characters per token with a joint vocabulary of 8,000 subwords, and how the number of tokens falls with its size
# (docs/guides/defaults.md#tokens)
LETTERS, SYLLABLES, SIGNS = 4.2, 2.0, 1.5  # of alphabets, of Hangul, and of kana and Chinese characters
VOCABULARY, EXPONENT = 8000, 0.15


class Amount(NamedTuple):
    """Both sides of all corpora. Every pair counts once in `pairs` and `characters`. In `read` and `tokens`, the
    characters of an epoch and its tokens with 8,000 subwords, the pairs of a corpus count as often as its weight says.
    """

    pairs: int
    characters: int
    read: float
    tokens: float

    def tokens_with(self, vocabulary: int) -> float:
        """The estimated tokens of an epoch with a vocabulary of this size."""
        return self.tokens * (VOCABULARY / vocabulary) ** EXPONENT


def measure(lines: Iterable[Line], weights: Sequence[float] = ()) -> Amount:
    """The amount of text in corpora with these weights; without weights there is one corpus."""
    each = weights or (1.0,)
    pairs, characters, tokens = [0] * len(each), [0] * len(each), [0.0] * len(each)
    for source, target, _, corpus in lines:
        pairs[corpus] += 1
        characters[corpus] += len(source) + len(target)
        tokens[corpus] += estimated_tokens(source) + estimated_tokens(target)
    return Amount(sum(pairs), sum(characters), _weighted(characters, each), _weighted(tokens, each))


def estimated_tokens(text: str) -> float:
    """The number of tokens of a text, with its end token. A token has several letters of an alphabet, but only one or
    two syllables of Hangul or Chinese characters.
    """
    if text.isascii():
        return 1 + len(text) / LETTERS
    syllables, signs = (sum(map(len, script.findall(text))) for script in (_HANGUL, _KANA_HAN))
    return 1 + (len(text) - syllables - signs) / LETTERS + syllables / SYLLABLES + signs / SIGNS


def _letters(*scripts: str) -> re.Pattern[str]:
    ranges = (f"{chr(first)}-{chr(last)}" for script in scripts for first, last in RANGES[script])
    return re.compile(f"[{''.join(ranges)}]+")


_HANGUL, _KANA_HAN = _letters("hangul"), _letters("kana", "han")


def _weighted(counts: Sequence[float], weights: Sequence[float]) -> float:
    return sum(count * weight for count, weight in zip(counts, weights, strict=True))
