"""Tagging: texts in; labelled words and entities out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.data.batching import pad
from heed.data.entities import OUTSIDE, UNCHANGED, entities, scheme_of_model
from heed.data.tagged import Words, align_words, each_piece, find_words, join_words
from heed.data.text_windows import best_windows, split_windows
from heed.models.outputs import check_outputs
from heed.models.package import Package
from heed.products.product import Product, aligned_vocabulary, as_texts, in_batches, single
from heed.vocabularies.vocabulary import Vocabulary, trim_span

STRIDE = 64  # subwords that two windows of a long sentence share


@dataclass(frozen=True)
class TaggedWord:
    """A word with its character offsets, and its most likely label with its probability. A word without subwords has
    none: 0.
    """

    text: str
    start: int
    end: int
    label: str
    probability: float


@dataclass(frozen=True)
class TaggedEntity:
    """An entity: its type, its character offsets, its words from `first` to before `last`, and the mean probability
    of their labels.
    """

    type: str
    text: str
    start: int
    end: int
    first: int
    last: int
    probability: float


@dataclass(frozen=True)
class TaggedText:
    """A text with its words and entities; `windows` is the number of windows it was read in."""

    text: str
    words: list[TaggedWord]
    entities: list[TaggedEntity]
    windows: int

    @property
    def labels(self) -> list[str]:
        return [word.label for word in self.words]

    @property
    def unread(self) -> int:
        """How many words have no subwords in the vocabulary."""
        return sum(not word.probability for word in self.words)


class ReadTexts(NamedTuple):
    """Texts as the model reads them: their subwords, and which of those their words have."""

    texts: Sequence[str]
    ids: list[list[int]]
    words: list[Words]


class Tagger(Product):
    """A model that labels words. A text longer than `max_length` subwords, including special tokens, is read in
    windows.
    """

    noun, verbs, reads = "a tagger", ("tag", "evaluate"), ("text", "labels")

    def __init__(
        self,
        model: nn.Module,
        vocabulary: Vocabulary,
        labels: Sequence[str],
        max_length: int | None = None,
        stride: int = STRIDE,
        facts: Mapping[str, Any] | None = None,
    ):
        self.model, self.labels, self.facts = model, list(labels), facts or {}
        self.vocabulary, self.stride = aligned_vocabulary(vocabulary), stride
        self.most = min(max_length or model.config.max_length, model.config.max_length)
        self.scheme = UNCHANGED if self.facts.get("scheme") == UNCHANGED else scheme_of_model(self.labels)

    @classmethod
    def open(cls, packages: Sequence[Package], names: Sequence[str], **options: Any) -> "Tagger":
        own = single(packages, names, cls.noun)
        facts, labels = own.facts, own.processors["labels"].names
        return cls(
            own.model, own.processors["text"], labels, facts.get("max_length"), facts.get("stride", STRIDE), facts
        )

    def tag(self, texts: Iterable[str], *, pieces: bool = False, batch_tokens: int = 4096) -> list[TaggedText]:
        """The words of texts as they are, each with its label. With `pieces`, every subword is a word."""
        read = self.read(texts, pieces=pieces)
        return self.finish(read, self.logits(read.ids, batch_tokens))

    def tag_words(self, sentences: Sequence[Sequence[str]], *, batch_tokens: int = 4096) -> list[TaggedText]:
        """Sentences that are split into words."""
        read = self.read_words(sentences)
        return self.finish(read, self.logits(read.ids, batch_tokens))

    def read(self, texts: Iterable[str], *, pieces: bool = False) -> ReadTexts:
        """The first of three stages, of which the second is `logits`: subwords, and the words that they belong to."""
        texts = as_texts(texts)
        found = self.vocabulary.encode_aligned(texts)
        words = [each_piece(own) if pieces else find_words(text, own) for text, own in zip(texts, found, strict=True)]
        return ReadTexts(texts, [own.ids for own in found], words)

    def read_words(self, sentences: Sequence[Sequence[str]]) -> ReadTexts:
        """The same for sentences that are split into words."""
        texts, spans = zip(*map(join_words, sentences), strict=True) if sentences else ((), ())
        found = self.vocabulary.encode_aligned(texts)
        words = [align_words(own, places) for own, places in zip(found, spans, strict=True)]
        return ReadTexts(texts, [own.ids for own in found], words)

    def finish(self, read: ReadTexts, found: tuple[list[Float[Tensor, "_ k"]], list[int]]) -> list[TaggedText]:
        """The third stage: labels of words, and entities."""
        return [self._text(*own) for own in zip(read.texts, read.words, *found, strict=True)]

    def _text(self, text: str, words: Words, logits: Float[Tensor, "_ k"], windows: int) -> TaggedText:
        probabilities = logits.softmax(dim=1)
        best = [
            (float(value), self.labels[i])
            for value, i in zip(*map(Tensor.tolist, probabilities.max(dim=1)), strict=True)
        ]
        tagged = []
        for (start, end), first in zip(words.spans, words.first, strict=True):
            probability, label = (0.0, OUTSIDE) if first is None else best[first]
            tagged.append(TaggedWord(text[start:end], start, end, label, probability))
        found = []
        for one in entities(word.label for word in tagged):
            own = tagged[one.start : one.end]
            start, end = trim_span(text, own[0].start, own[-1].end)
            mean = own[0].probability if len(own) == 1 else float(np.mean([word.probability for word in own]))
            found.append(TaggedEntity(one.type, text[start:end], start, end, one.start, one.end, mean))
        return TaggedText(text, tagged, found, windows)

    def logits(
        self, texts: Sequence[Sequence[int]], batch_tokens: int = 4096
    ) -> tuple[list[Float[Tensor, "_ k"]], list[int]]:
        """The logits of each token of each text, from the window with most context around it; and the number of
        windows per text.
        """
        special = self.vocabulary.special
        room = self.most - len(special.before) - 1
        windows = [split_windows(len(ids), room, self.stride) for ids in texts]
        inputs = [ids[start:end] for ids, own in zip(texts, windows, strict=True) for start, end in own]
        rows = iter(in_batches(self._logits, inputs, [len(ids) + 2 for ids in inputs], batch_tokens))
        found = []
        for ids, own in zip(texts, windows, strict=True):
            each = [next(rows) for _ in own]
            if len(own) == 1:
                found.append(each[0])
                continue
            chosen = best_windows(own, len(ids)).tolist()
            found.append(torch.stack([each[number][place - own[number][0]] for place, number in enumerate(chosen)]))
        return found, list(map(len, windows))

    @torch.inference_mode()
    def _logits(self, inputs: list[Sequence[int]]) -> list[Float[Tensor, "_ k"]]:
        device, special = next(self.model.parameters()).device, self.vocabulary.special
        tokens, valid = (torch.from_numpy(part).to(device) for part in pad(inputs, special))
        logits, first = self.token_logits(tokens, valid).double().cpu(), len(special.before)
        check_outputs(logits)
        return [row[first : first + len(ids)] for row, ids in zip(logits, inputs, strict=True)]

    def token_logits(self, tokens: Int[Tensor, "b t"], valid: Bool[Tensor, "b t"]) -> Float[Tensor, "b t k"]:
        """The logits of the labels of each token."""
        return self.model.classify_tokens(tokens, valid)


def mark(text: str, spans: Sequence[tuple[int, int, str]]) -> str:
    """The text with its entities in brackets, each preceded by its type."""
    parts, last = [], 0
    for start, end, kind in spans:
        parts += [text[last:start], f"[{kind} {text[start:end]}]"]
        last = end
    return "".join([*parts, text[last:]])
