"""Corruptions for pre-training, change by change: BART's noise, Pegasus' gap sentences, BERT's masking. They are
those of `noise`, `gaps` and `masking`. Most are run on token positions instead of ids, so that the result shows where
each token came from.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from heed.data import noise
from heed.data.gaps import Gaps
from heed.data.masking import Masking
from heed.vocabularies.vocabulary import SpecialTokens

MASK, BERT_MASK, GAP = "<mask>", "[MASK]", "[MASK1]"  # as BART, BERT and Pegasus write them


@dataclass(frozen=True)
class Change:
    """A token of the corrupted text, and what happened to it: kept, moved, deleted, masked, inserted, replaced or
    chosen (80/10/10: unchanged, but to be predicted).
    """

    kind: str
    was: tuple[str, ...]
    now: str = ""


@dataclass(frozen=True)
class Text:
    """A tokenized text with ids, and all ids that may replace one, with their tokens."""

    tokens: list[str]
    ids: list[int]
    words: dict[int, str]

    @classmethod
    def of_words(cls, text: str) -> "Text":
        """A text in words; only its own words may replace others."""
        words = text.split()
        known = {word: number for number, word in enumerate(dict.fromkeys(words))}
        return cls(words, [known[word] for word in words], {number: word for word, number in known.items()})


def mask(text: Text, generator: Generator, rate: float) -> list[Change]:
    """Token masking: each token becomes the mask with this probability."""
    end = len(text.tokens)
    places = noise.mask_tokens(range(end), generator, end, rate)
    pairs = zip(places.tolist(), text.tokens, strict=True)
    return [Change("masked", (token,), MASK) if place == end else _kept(token) for place, token in pairs]


def delete(text: Text, generator: Generator, rate: float) -> list[Change]:
    """Token deletion: each token is deleted with this probability."""
    left = set(noise.delete_tokens(range(len(text.tokens)), generator, rate).tolist())
    return [_kept(token) if place in left else Change("deleted", (token,)) for place, token in enumerate(text.tokens)]


def infill(text: Text, generator: Generator, rate: float) -> list[Change]:
    """Text infilling: spans of about three tokens become one mask each; an empty span inserts a mask."""
    end = len(text.tokens)
    places = [*noise.infill(range(end), generator, end, rate).tolist(), end]
    changes, after = [], 0
    for place, following in zip(places, [*places[1:], end], strict=True):
        if place < end:
            changes.append(_kept(text.tokens[place]))
            after = place + 1
        elif len(changes) < len(places) - 1:  # the last is no mask but the end of the text
            covered = tuple(text.tokens[after:following])
            changes.append(Change("masked" if covered else "inserted", covered, MASK))
    return changes


def permute(text: Text, generator: Generator, rate: float) -> list[Change]:
    """Sentence permutation: the sentences in random order."""
    ends, places = noise.sentence_ends(text.tokens), range(len(text.tokens))
    starts = [part[0] for part in noise.sentences(places, ends)]
    changes, before = [], -1
    for place in noise.permute_sentences(places, generator, ends).tolist():
        if place in starts:
            before += 1
        changes.append(_kept(text.tokens[place], starts[before] != max(start for start in starts if start <= place)))
    return changes


def rotate(text: Text, generator: Generator, rate: float) -> list[Change]:
    """Document rotation: the text starts at a random token, and what came before it moves to the end."""
    places = noise.rotate(range(len(text.tokens)), generator).tolist()
    return [_kept(text.tokens[place], place < places[0]) for place in places]


def gaps(text: Text, generator: Generator, rate: float) -> list[Change]:
    """Gap sentences: the sentences most similar to the rest are removed, and the model has to generate them."""
    size = max([*text.words, *text.ids]) + 1
    ends = noise.sentence_ends([text.words.get(number, "") for number in range(size)])
    special = SpecialTokens(pad=size, unknown=size, first=size, last=size, mask=size, gap=size)
    source = Gaps(special, np.append(ends, False), gap_share=rate, word_share=0.0)(text.ids, generator).source
    changes, start, place = [], 0, 0
    for part in noise.sentences(text.ids, ends):
        own = text.tokens[start : start + len(part)]
        gone = source[place] == size
        changes += [Change("masked", tuple(own), GAP)] if gone else [_kept(token) for token in own]
        start, place = start + len(part), place + (1 if gone else len(part))
    return changes


def bert(text: Text, generator: Generator, rate: float) -> list[Change]:
    """80/10/10: of the chosen tokens 80 % become the mask, 10 % another token, and 10 % stay; all are predicted."""
    size = max([*text.words, *text.ids]) + 1
    ordinary = np.isin(np.arange(size + 1), list(text.words))
    tokens = np.array(text.ids, dtype=np.int64)
    source, chosen = Masking(size, ordinary, share=rate)(tokens, np.zeros(len(tokens), dtype=bool), generator)
    changes = [_kept(token) for token in text.tokens]
    for place in chosen.tolist():
        token, now = text.tokens[place], int(source[place])
        kind = "masked" if now == size else "chosen" if now == text.ids[place] else "replaced"
        changes[place] = Change(kind, (token,), BERT_MASK if now == size else text.words[now])
    return changes


def _kept(token: str, moved: bool = False) -> Change:
    return Change("moved" if moved else "kept", (token,), token)


@dataclass(frozen=True)
class Corruption:
    """A kind of corruption; `rate` is its default, None if it has no rate."""

    title: str
    run: Callable[[Text, Generator, float], list[Change]]
    rate: float | None = None


CORRUPTIONS = {
    "mask": Corruption("Token masking (BART)", mask, 0.3),
    "delete": Corruption("Token deletion (BART)", delete, 0.3),
    "infill": Corruption("Text infilling (BART)", infill, 0.3),
    "permute": Corruption("Sentence permutation (BART)", permute),
    "rotate": Corruption("Document rotation (BART)", rotate),
    "gaps": Corruption("Gap sentences (Pegasus)", gaps, 0.3),
    "bert": Corruption("80/10/10 masking (BERT)", bert, 0.15),
}


def corrupt(kind: str, text: Text, seed: int = 0, rate: float | None = None) -> list[Change]:
    """Corrupt a text; the same seed gives the same changes, whatever other kinds are requested."""
    if not text.tokens:
        raise ValueError("the text is empty")
    if rate is not None and not 0 <= rate <= 1:
        raise ValueError(f"the rate is {rate}; it must be from 0 to 1")
    corruption = CORRUPTIONS[kind]
    share = rate if rate is not None and corruption.rate is not None else corruption.rate or 0.0
    return corruption.run(text, np.random.default_rng((seed, list(CORRUPTIONS).index(kind))), share)


def source_of(changes: Sequence[Change]) -> list[str]:
    """The corrupted text: the model input."""
    return [change.now for change in changes if change.now]
