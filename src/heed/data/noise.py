"""The five corruptions of BART (Lewis et al., 2019): pure functions of tokens and a random generator, and their
composition. Tokens are the ids of a text without special tokens. Inputs are never modified; the result is a new
array. Ids in `keep` are neither removed nor moved; the rest is corrupted around them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Int
from numpy.random import Generator

from heed.vocabularies.vocabulary import SpecialTokens

Ids = Sequence[int] | np.ndarray
Tokens = Int[np.ndarray, " t"]
STOPS = (".", "!", "?", "…", "。", "！", "？")
CLOSERS = "\"'”’»)]」』"


def sentence_ends(pieces: Sequence[str]) -> Bool[np.ndarray, " vocab"]:
    """Which pieces of a vocabulary end a sentence: a full stop, ! or ?, followed only by closing quotes and
    brackets.
    """
    return np.array([piece.rstrip(CLOSERS).endswith(STOPS) for piece in pieces], dtype=bool)


def sentences(tokens: Ids, ends: Bool[np.ndarray, " vocab"]) -> list[np.ndarray]:
    """The sentences of a text, in order; consecutive end marks ("?!") stay together, and the last sentence may have
    none.
    """
    text = copy_ids(tokens)
    final = ends[text]
    cuts = np.flatnonzero(final[:-1] & ~final[1:]) + 1
    return np.split(text, cuts) if len(text) else []


def mask_tokens(tokens: Ids, generator: Generator, mask: int, share: float, keep: Ids = ()) -> Tokens:
    """Token masking: each token becomes the mask with probability `share`."""
    text = copy_ids(tokens)
    text[_random_tokens(text, generator, share, [mask, *keep])] = mask
    return text


def delete_tokens(tokens: Ids, generator: Generator, share: float, keep: Ids = ()) -> Tokens:
    """Token deletion: each token is deleted with probability `share`."""
    text = copy_ids(tokens)
    return text[~_random_tokens(text, generator, share, keep)]


def infill(tokens: Ids, generator: Generator, mask: int, share: float, keep: Ids = (), mean: float = 3.0) -> Tokens:
    """Text infilling: spans covering `share` of the tokens become one mask each; a span of length 0 inserts a mask.

    Lengths are drawn from Poisson(mean); the last is shortened to fit. At least one token remains between two masks,
    old or new; spans without room for it are merged. Insertions that would make the text longer are dropped.
    """
    assert 0 <= share <= 1 and mean >= 1
    text = copy_ids(tokens)
    kept = np.flatnonzero(_is_in(text, [mask, *keep])).tolist()
    masked = {position for position in kept if text[position] == mask}
    parts = []
    for left, right in pairwise([-1, *kept, len(text)]):
        beside = (left in masked, right in masked)
        parts += [_infill_run(text[left + 1 : right], generator, mask, (share, mean), beside), text[right : right + 1]]
    return np.concatenate(parts)


def permute_sentences(tokens: Ids, generator: Generator, ends: Bool[np.ndarray, " vocab"], keep: Ids = ()) -> Tokens:
    """Sentence permutation: the sentences in random order."""
    text = copy_ids(tokens)
    free = ~_is_in(text, keep)
    parts = sentences(text[free], ends)
    if parts:
        text[free] = np.concatenate([parts[i] for i in generator.permutation(len(parts))])
    return text


def rotate(tokens: Ids, generator: Generator, keep: Ids = ()) -> Tokens:
    """Document rotation: the text starts at a random token, and what came before it moves to the end."""
    text = copy_ids(tokens)
    free = ~_is_in(text, keep)
    if free.any():
        text[free] = np.roll(text[free], -int(generator.integers(free.sum())))
    return text


@dataclass(frozen=True, eq=False)
class Denoise:
    """The source is a corrupted text, the target the original. The share `delete` of the tokens is deleted, `infill`
    covered by spans and `mask` masked, no token twice. Before that, sentences are shuffled with probability
    `permute`, and the text is rotated with probability `rotate`. `ends` says which ids end a sentence. The defaults
    are BART's.
    """

    special: SpecialTokens
    ends: np.ndarray
    keep: tuple[int, ...] = ()
    infill: float = 0.3
    mask: float = 0.0
    delete: float = 0.0
    permute: float = 1.0
    rotate: float = 0.0

    def __post_init__(self):
        for name in ("infill", "mask", "delete", "permute", "rotate"):
            check_share(name, getattr(self, name))
        check_total({name: getattr(self, name) for name in ("infill", "mask", "delete")})
        if self.special.mask is None and (self.infill or self.mask):
            raise ValueError(
                f"task.infill is {self.infill} and task.mask is {self.mask}, but the vocabulary has no mask; "
                "set both to 0, or use a vocabulary with a mask, such as BART's"
            )

    def __call__(self, tokens: Ids, generator: Generator) -> tuple[Int[np.ndarray, " s"], Int[np.ndarray, " t"]]:
        """The source and the target."""
        source, keep = copy_ids(tokens), protected_ids(self.special, self.keep)
        if generator.random() < self.permute:
            source = permute_sentences(source, generator, self.ends, keep)
        if generator.random() < self.rotate:
            source = rotate(source, generator, keep)
        if self.delete:
            source = delete_tokens(source, generator, self.delete, keep)
        if self.infill:
            source = infill(source, generator, self.special.mask, _share_of_rest(self.infill, self.delete), keep)
        if self.mask:
            share = _share_of_rest(self.mask, self.delete + self.infill)
            source = mask_tokens(source, generator, self.special.mask, share, keep)
        return source, copy_ids(tokens)


def copy_ids(tokens: Ids) -> Tokens:
    """The tokens as a new array."""
    return np.array(tokens, dtype=np.int64)


def protected_ids(special: SpecialTokens, keep: Ids = ()) -> list[int]:
    """Ids that no corruption may change: special tokens, and `keep`."""
    ids = {special.pad, special.first, special.last, special.mask, special.gap, *special.before, *keep}
    return sorted(ids - {None})


def check_share(name: str, value: float) -> None:
    """Raise unless the value of a setting is a share or a probability."""
    if not 0 <= value <= 1:
        raise ValueError(f"task.{name} is {value}; it must be from 0 to 1")


def check_total(shares: dict[str, float]) -> None:
    """Raise if shares of the same whole sum to more than 1."""
    if sum(shares.values()) > 1 + 1e-9:
        listed = ", ".join(f"task.{name} is {value}" for name, value in shares.items())
        raise ValueError(f"{listed}; together they must be at most 1")


def _share_of_rest(share: float, used: float) -> float:
    """A share of the whole as a share of what remains after `used`."""
    return min(1.0, share / (1 - used)) if used < 1 else 0.0


def _is_in(text: np.ndarray, ids: Ids) -> np.ndarray:
    return (text[:, None] == np.array(ids, dtype=np.int64)).any(1)  # faster than np.isin for few ids


def _random_tokens(text: np.ndarray, generator: Generator, share: float, keep: Ids) -> np.ndarray:
    """A mask that selects each token with probability `share`, but none of `keep`."""
    return (generator.random(len(text)) < share) & ~_is_in(text, keep)


def _infill_run(
    run: np.ndarray, generator: Generator, mask: int, rates: tuple[float, float], beside: tuple[bool, bool]
) -> np.ndarray:
    """Infill consecutive tokens that may all be covered; `beside` says whether there is a mask before and after
    them.
    """
    to_cover = min(len(run), int(rates[0] * len(run) + generator.random()))  # random rounding: the mean is the share
    lengths = _span_lengths(to_cover, generator, rates[1])
    gaps = np.arange(beside[0], len(run) - to_cover + 1 - beside[1])  # between the tokens that are left
    if not lengths or not len(gaps):
        return run
    if len(lengths) > len(gaps):
        lengths = [*lengths[: len(gaps) - 1], sum(lengths[len(gaps) - 1 :])]
    chosen = np.sort(generator.choice(gaps, len(lengths), replace=False))
    parts, end, covered = [], 0, 0
    for gap, i in zip(chosen.tolist(), generator.permutation(len(lengths)).tolist(), strict=True):
        parts += [run[end : gap + covered], [mask]]
        end, covered = gap + covered + lengths[i], covered + lengths[i]
    return np.concatenate([*parts, run[end:]]).astype(np.int64)


def _span_lengths(to_cover: int, generator: Generator, mean: float) -> list[int]:
    """Lengths of spans that cover `to_cover` tokens; never so many of length 0 that the text grows."""
    drawn = []
    while (left := to_cover - sum(drawn)) > 0:
        drawn.append(min(left, int(generator.poisson(mean))))
    spans = sum(length > 0 for length in drawn)
    inserts = min(len(drawn) - spans, to_cover - spans)
    return [length for length in drawn if length] + [0] * inserts
