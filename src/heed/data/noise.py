"""The five corruptions of BART (Lewis et al., 2019): pure functions of tokens and a generator, and their composition.

Tokens are the ids of a text without the marks at its begin and end. What is given is never changed; what comes back is
a new array. Ids in `keep` are never taken away, and none takes another's place: the rest is corrupted around them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Int

from heed.vocabularies.vocabulary import SpecialTokens

Ids = Sequence[int] | np.ndarray
Tokens = Int[np.ndarray, " t"]
STOPS = (".", "!", "?", "…", "。", "！", "？")
CLOSERS = "\"'”’»)]」』"


def sentence_ends(pieces: Sequence[str]) -> Bool[np.ndarray, " vocab"]:
    """Which pieces of a vocabulary end a sentence: those with a full stop, ! or ? before nothing but closing quotes."""
    return np.array([piece.rstrip(CLOSERS).endswith(STOPS) for piece in pieces], dtype=bool)


def sentences(tokens: Ids, ends: Bool[np.ndarray, " vocab"]) -> list[np.ndarray]:
    """The sentences of a text, in order: each runs up to its last end in a row ("?!"), the last one to the end of the text."""
    text = fresh(tokens)
    final = ends[text]
    cuts = np.flatnonzero(final[:-1] & ~final[1:]) + 1
    return np.split(text, cuts) if len(text) else []


def mask_tokens(tokens: Ids, generator: np.random.Generator, mask: int, share: float, keep: Ids = ()) -> Tokens:
    """Token masking: each token becomes the mask with the probability `share`."""
    text = fresh(tokens)
    text[_drawn(text, generator, share, [mask, *keep])] = mask
    return text


def delete_tokens(tokens: Ids, generator: np.random.Generator, share: float, keep: Ids = ()) -> Tokens:
    """Token deletion: each token is left out with the probability `share`."""
    text = fresh(tokens)
    return text[~_drawn(text, generator, share, keep)]


def infill(
    tokens: Ids, generator: np.random.Generator, mask: int, share: float, keep: Ids = (), mean: float = 3.0
) -> Tokens:
    """Text infilling: spans that cover `share` of the tokens become one mask each; a span of no tokens inserts one.

    Lengths are drawn from Poisson(mean) and the last is cut to what is due. Between two masks, old or new, a token is
    left; spans that find no room for that run together. No text grows: inserts that would make it longer are left out.
    """
    assert 0 <= share <= 1 and mean >= 1
    text = fresh(tokens)
    walls = np.flatnonzero(_among(text, [mask, *keep])).tolist()
    masked = {place for place in walls if text[place] == mask}
    parts = []
    for left, right in pairwise([-1, *walls, len(text)]):
        beside = (left in masked, right in masked)
        parts += [_infill_run(text[left + 1 : right], generator, mask, (share, mean), beside), text[right : right + 1]]
    return np.concatenate(parts)


def permute_sentences(
    tokens: Ids, generator: np.random.Generator, ends: Bool[np.ndarray, " vocab"], keep: Ids = ()
) -> Tokens:
    """Sentence permutation: the sentences in an order drawn at random."""
    text = fresh(tokens)
    free = ~_among(text, keep)
    parts = sentences(text[free], ends)
    if parts:
        text[free] = np.concatenate([parts[i] for i in generator.permutation(len(parts))])
    return text


def rotate(tokens: Ids, generator: np.random.Generator, keep: Ids = ()) -> Tokens:
    """Document rotation: the text from a token drawn at random on, and what was before it at the end."""
    text = fresh(tokens)
    free = ~_among(text, keep)
    if free.any():
        text[free] = np.roll(text[free], -int(generator.integers(free.sum())))
    return text


@dataclass(frozen=True, eq=False)
class Denoise:
    """A text to be read corrupted and to be said as it was.

    Of the tokens of a text the share `delete` is left out, `infill` covered by spans and `mask` masked, no token twice;
    `permute` and `rotate` are the probabilities that a text's sentences are shuffled and that it is rotated, before that.
    BART's own choice is the default.
    """

    marks: SpecialTokens
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
        check_sum({name: getattr(self, name) for name in ("infill", "mask", "delete")})
        if self.marks.mask is None and (self.infill or self.mask):
            raise ValueError(
                f"task.infill is {self.infill} and task.mask is {self.mask}, but the vocabulary has no mask; "
                "both must be 0, or the vocabulary one with a mask, such as BART's"
            )

    def __call__(
        self, tokens: Ids, generator: np.random.Generator
    ) -> tuple[Int[np.ndarray, " s"], Int[np.ndarray, " t"]]:
        """The source and the target."""
        source, keep = fresh(tokens), special(self.marks, self.keep)
        if generator.random() < self.permute:
            source = permute_sentences(source, generator, self.ends, keep)
        if generator.random() < self.rotate:
            source = rotate(source, generator, keep)
        if self.delete:
            source = delete_tokens(source, generator, self.delete, keep)
        if self.infill:
            source = infill(source, generator, self.marks.mask, _of_rest(self.infill, self.delete), keep)
        if self.mask:
            source = mask_tokens(
                source, generator, self.marks.mask, _of_rest(self.mask, self.delete + self.infill), keep
            )
        return source, fresh(tokens)


def fresh(tokens: Ids) -> Tokens:
    """A copy of the tokens as an array of its own."""
    return np.array(tokens, dtype=np.int64)


def special(marks: SpecialTokens, keep: Ids = ()) -> list[int]:
    """The ids that no corruption may touch: those with a meaning of their own, and `keep`."""
    own = {marks.pad, marks.first, marks.last, marks.mask, marks.gap, *marks.before, *keep}
    return sorted(own - {None})


def check_share(name: str, value: float) -> None:
    """Refuse a share or a probability that is none."""
    if not 0 <= value <= 1:
        raise ValueError(f"task.{name} is {value}; it must be from 0 to 1")


def check_sum(shares: dict[str, float]) -> None:
    """Refuse shares of one whole that are more than it."""
    if sum(shares.values()) > 1 + 1e-9:
        said = ", ".join(f"task.{name} is {value}" for name, value in shares.items())
        raise ValueError(f"{said}; together they must be at most 1")


def _of_rest(share: float, gone: float) -> float:
    """A share of the whole as a share of what is left of it."""
    return min(1.0, share / (1 - gone)) if gone < 1 else 0.0


def _among(text: np.ndarray, ids: Ids) -> np.ndarray:
    return (text[:, None] == np.array(ids, dtype=np.int64)).any(1)  # for so few quicker than np.isin


def _drawn(text: np.ndarray, generator: np.random.Generator, share: float, keep: Ids) -> np.ndarray:
    """Each token with the probability `share`, but none of `keep`."""
    return (generator.random(len(text)) < share) & ~_among(text, keep)


def _infill_run(
    run: np.ndarray, generator: np.random.Generator, mask: int, rates: tuple[float, float], beside: tuple[bool, bool]
) -> np.ndarray:
    """Infilling of tokens in a row that may all be covered; `beside` tells whether a mask stands before, and after, them."""
    due = min(len(run), int(rates[0] * len(run) + generator.random()))  # on average the share, and not a token more
    lengths = _lengths(due, generator, rates[1])
    room = np.arange(beside[0], len(run) - due + 1 - beside[1])  # spans go between the tokens that are left
    if not lengths or not len(room):
        return run
    if len(lengths) > len(room):
        lengths = [*lengths[: len(room) - 1], sum(lengths[len(room) - 1 :])]
    places = np.sort(generator.choice(room, len(lengths), replace=False))
    parts, at, covered = [], 0, 0
    for place, i in zip(places.tolist(), generator.permutation(len(lengths)).tolist(), strict=True):
        parts += [run[at : place + covered], [mask]]
        at, covered = place + covered + lengths[i], covered + lengths[i]
    return np.concatenate([*parts, run[at:]]).astype(np.int64)


def _lengths(due: int, generator: np.random.Generator, mean: float) -> list[int]:
    """Lengths of spans that cover `due` tokens; no more of 0 than the others make the text shorter."""
    drawn = []
    while (left := due - sum(drawn)) > 0:
        drawn.append(min(left, int(generator.poisson(mean))))
    spans = sum(length > 0 for length in drawn)
    inserts = min(len(drawn) - spans, due - spans)
    return [length for length in drawn if length] + [0] * inserts
