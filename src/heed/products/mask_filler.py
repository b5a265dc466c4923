"""Mask filling: texts with masks in, likely words out."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor, nn

from heed import config as settings
from heed.data.batching import pad
from heed.data.pretraining import MaskedBatch, PairSettings, masked_batches
from heed.data.readers import Line
from heed.data.segments import read_text
from heed.data.streams import IGNORED
from heed.evaluation.classification import Difference, Interval, Measure, differences, intervals
from heed.evaluation.masked_words import (
    CHUNK,
    by_row,
    has_generator,
    measure_detection,
    measure_masked,
    measure_replaced,
    measure_words,
    predict_hidden,
)
from heed.models.encoder_heads import HEADS
from heed.models.outputs import check_outputs
from heed.models.package import Package
from heed.products.product import Product, as_texts, in_batches, single
from heed.vocabularies.text_parts import plain
from heed.vocabularies.vocabulary import Vocabulary

MASKS = ("[MASK]", "<mask>")  # as people write it, whatever the vocabulary calls it


@dataclass(frozen=True)
class Guess:
    """A word for a mask, as displayed, and its probability; `piece` is the vocabulary's, with "▁" at the start of a
    word.
    """

    word: str
    probability: float
    piece: str


@dataclass(frozen=True)
class Filled:
    """A text, the guesses for each of its masks, most likely first, and the text filled with the best guesses."""

    text: str
    filled: str
    masks: list[list[Guess]]


@dataclass(frozen=True)
class MaskedEvaluation:
    """The scores of a model on a text: by name with 95 % intervals, resampling its rows; how it was corrupted; and how
    many tokens were hidden. `digest` identifies the corrupted text. `measure` computes scores from `by_row`.
    """

    scores: dict[str, Interval]
    signature: str
    rows: int
    hidden: int
    digest: str
    by_row: np.ndarray
    measure: Measure

    def against(self, other: "MaskedEvaluation", samples: int = 1000) -> dict[str, Difference] | None:
        """The scores of another model minus these, by a paired bootstrap; None unless both read the same corrupted
        text.
        """
        if self.digest != other.digest or self.scores.keys() != other.scores.keys():
            return None
        return differences(self.measure, self.by_row, other.by_row, self.by_row, samples)


class MaskFiller(Product):
    """Predicts masked words independently; for ELECTRA, with the generator."""

    noun, verbs, reads = "a masked language model", ("fill", "evaluate"), ("text",)

    def __init__(self, model: nn.Module, vocabulary: Vocabulary, facts: dict[str, Any] | None = None):
        self.model, self.vocabulary, self.facts = model.eval(), plain(vocabulary), facts or {}
        self.special = self.vocabulary.special

    @classmethod
    def open(cls, packages: Sequence[Package], names: Sequence[str], **options: Any) -> Any:
        own = single(packages, names, cls.noun)
        if "words" not in HEADS[own.model.config.head] and not has_generator(own.model):
            raise ValueError(
                f"{names[0]} has no language-modelling head (its head is {own.model.config.head!r}): it cannot fill "
                "masks; heed train --from "
                f"{names[0]} fine-tunes it"
            )
        return cls(own.model, own.processors["text"], own.facts)

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def fill(self, texts: Iterable[str], *, top: int = 5, batch_tokens: int = 4096) -> list[Filled]:
        """The `top` words for each mask of each text. Several masks of a text are filled independently of each other."""
        texts = as_texts(texts)
        rows = self.read(texts)
        return self.finish(texts, rows, self.guess(rows, top, batch_tokens))

    def read(self, texts: Sequence[str], before: int = 0) -> list[list[int]]:
        """The first of three stages: subwords. `before` is the number of texts before these, for errors."""
        return [self._ids(text, number) for number, text in enumerate(texts, before + 1)]

    def guess(self, rows: Sequence[list[int]], top: int, batch_tokens: int = 4096) -> list[tuple[Tensor, Tensor]]:
        """The second: the probabilities and the ids of the `top` words for the masks of each row."""
        if not 1 <= top <= len(self.vocabulary):
            raise ValueError(
                f"top is {top}; it must be at least 1, and at most the vocabulary, {len(self.vocabulary):,}"
            )
        sizes = [len(ids) + len(self.special.before) + 1 for ids in rows]
        return in_batches(lambda own: self._guess(own, top), rows, sizes, batch_tokens)

    def finish(self, texts: Sequence[str], rows: Sequence[list[int]], found: Sequence[Any]) -> list[Filled]:
        """The third: words."""
        return [self._filled(*each) for each in zip(texts, rows, found, strict=True)]

    def _ids(self, text: str, number: int) -> list[int]:
        [mask] = self.vocabulary.pieces([self.special.mask])
        for spelling in MASKS:
            text = text.replace(spelling, mask)
        [ids] = self.vocabulary.encode([self.vocabulary.clean(text)])
        if self.special.mask not in ids:
            raise ValueError(f"text {number} has no {mask}: put it where a word should be filled in")
        room = self.model.config.max_length - len(self.special.before) - 1
        if len(ids) > room:
            raise ValueError(
                f"text {number} has {len(ids):,} subwords, and the model has only {room:,} positions: shorten it"
            )
        return ids

    @torch.inference_mode()
    def _guess(self, rows: list[list[int]], top: int) -> list[tuple[Tensor, Tensor]]:
        """The probabilities and ids of the words for the masks of each row."""
        tokens, valid = map(torch.from_numpy, pad(rows, self.special))
        positions = (tokens.flatten() == self.special.mask).nonzero()[:, 0]
        expected = torch.full_like(positions, IGNORED)
        batch = MaskedBatch(tokens, valid, None, positions, expected, None, 0, len(rows), 0).to(self.device)
        states, weights, _ = predict_hidden(self.model, batch)
        logits = F.linear(states, *weights)[:, : len(self.vocabulary)]  # a matrix may have rows to spare
        best = logits.double().softmax(dim=-1).topk(top)
        check_outputs(best.values)
        counts = (tokens == self.special.mask).sum(dim=1).tolist()
        return list(zip(best.values.cpu().split(counts), best.indices.cpu().split(counts), strict=True))

    def _filled(self, text: str, ids: list[int], found: tuple[Tensor, Tensor]) -> Filled:
        probabilities, words = found[0].tolist(), found[1].tolist()
        masks = [
            [Guess(self._word(piece), p, piece) for p, piece in zip(row, self.vocabulary.pieces(own), strict=True)]
            for row, own in zip(probabilities, words, strict=True)
        ]
        best = iter(own[0] for own in words)
        filled = self.vocabulary.decode([next(best) if i == self.special.mask else i for i in ids])
        return Filled(text, filled.strip(), masks)

    @staticmethod
    def _word(piece: str) -> str:
        return piece.replace("▁", " ").strip() or piece

    @torch.inference_mode()
    def best_words(self, batch: MaskedBatch) -> Int[Tensor, " n"]:
        """The most likely word at each hidden position."""
        states, weights, _ = predict_hidden(self.model, batch)
        return torch.cat([F.linear(part, *weights).argmax(dim=-1) for part in states.split(CHUNK)])

    @property
    def settings(self) -> PairSettings:
        """The corruption settings used in training; BERT's if the folder does not say."""
        known = {field.name for field in fields(PairSettings)}
        stated = {name: value for name, value in self.facts.get("pretraining", {}).items() if name in known}
        length = min(PairSettings.length, self.model.config.max_length)
        return settings.read(PairSettings, {"length": length} | stated, "config.json: pretraining.")

    def evaluate(
        self, lines: Sequence[str], *, seed: int = 0, batch_tokens: int = 8192, samples: int = 1000
    ) -> MaskedEvaluation:
        """Hide words of a text, as in training, and measure how well they are predicted."""
        s = self.settings
        text = read_text(
            [Line(line, line, f"text:{n}") for n, line in enumerate(lines, 1)], self.vocabulary, s.document
        )
        made = masked_batches(text, self.vocabulary, s, batch_tokens=max(batch_tokens, s.length), seed=seed)
        batches = list(made.one_epoch())
        if has_generator(self.model):
            weight = settings.typed_value(
                float, self.facts.get("pretraining", {}).get("weight", 50.0), "config.json: pretraining.weight"
            )
            found, measure = measure_replaced(self.model, batches, self.special.pad), measure_detection(weight)
        else:
            found, measure = measure_masked(self.model, batches), measure_words
        rows = by_row(found)
        check_outputs(rows, infinite=True)
        if not sum(batch.count for batch in batches):
            raise ValueError("the text is too short: no token of it was hidden")
        unit = "spans" if s.spans else "whole words" if s.whole_words else "tokens"
        kept = 1 - s.masked - s.random
        signature = (
            f"{s.share:.0%} hidden, {unit}: {s.masked:.0%} masked, {s.random:.0%} replaced, {kept:.0%} kept; rows of "
            f"{s.length}; seed {seed}"
        )
        scores, hidden = intervals(measure, rows, rows, samples), sum(b.count for b in batches)
        return MaskedEvaluation(
            scores, signature, sum(b.rows for b in batches), hidden, _digest(batches), rows, measure
        )


def _digest(batches: Sequence[MaskedBatch]) -> str:
    """A hash of corrupted rows and of what is expected of them."""
    found = hashlib.sha256()
    for batch in batches:
        for part in batch.tensors():
            found.update(part.numpy().tobytes())
    return found.hexdigest()
