"""Gap sentences (Pegasus: Zhang et al., 2020): generate the sentences removed from a text, and predict its masked
words.

Gap sentences are predicted by the decoder, masked words by the encoder through the same output layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from torch import nn

from heed.config import check_fraction
from heed.data.batching import Batch
from heed.data.gaps import Gaps
from heed.data.noise import sentences
from heed.models.abilities import EncodesAndDecodes
from heed.models.package import Package
from heed.products.summarizer import Summarizer
from heed.products.translator.translator import Translator
from heed.tasks.base import Objective, Prepared, Validation
from heed.tasks.denoising import Restoration, sentence_tokens
from heed.training.loss import Loss, Part, smoothed_cross_entropy


@dataclass(frozen=True)
class GapSentencesSettings:
    choice: Literal["principal", "sequential", "random", "lead"] = (
        "principal"  # how gap sentences are chosen; "principal": by ROUGE-1
    )
    gap_share: float = 0.3  # share of sentences that are removed
    word_share: float = 0.15  # share of words hidden from the encoder
    masked: float = 0.8  # share of these replaced by the mask
    swapped: float = 0.1  # share of these replaced by a random word
    label_smoothing: float = 0.1  # label smoothing: probability mass spread over the vocabulary

    def __post_init__(self):
        check_fraction("task.label_smoothing", self.label_smoothing)


@dataclass(frozen=True)
class GapSentencesLoss:
    """The decoder's cross entropy, plus the encoder's on the hidden words."""

    smoothing: float = 0.1
    parts: ClassVar = ("gap_sentences", "masked_words")

    def __call__(self, model: EncodesAndDecodes, batch: Batch) -> Loss:
        memory = model.encode(batch.source, batch.valid)
        states = model.decode(batch.target, memory, batch.valid)
        logits = model.project(states.flatten(0, 1).index_select(0, batch.positions))
        loss, _ = smoothed_cross_entropy(logits, batch.expected, self.smoothing)
        parts = {"gap_sentences": Part(loss.total.detach(), loss.count)}
        if batch.masked_positions is None or not len(batch.masked_positions):
            return loss._replace(parts=parts)
        guesses = model.project(memory.flatten(0, 1).index_select(0, batch.masked_positions))
        words, _ = smoothed_cross_entropy(guesses, batch.masked_tokens, self.smoothing)
        parts["masked_words"] = Part(words.total.detach(), words.count)
        return loss._replace(total=loss.total + words.total, parts=parts)


class GapSentences(Restoration):
    name, title, Settings = "gap-sentences", "Pre-trained with gap sentences", GapSentencesSettings
    special_tokens, products = ("mask", "gap"), (Summarizer, Translator)

    def check_base(self, recipe: Any, base: Package) -> None:
        super().check_base(recipe, base)
        if base.vocabularies[0].special.gap is None:
            raise ValueError(
                f"{recipe.model.folder} has no token for a removed sentence, which {self.name} needs: start from a Pegasus"
            )

    def objective(self, prepared: Prepared, teachers: Sequence[nn.Module] = ()) -> Objective:
        return GapSentencesLoss(self.settings.label_smoothing)

    def noise(self, prepared: Prepared) -> Gaps:
        vocabulary, s = next(iter(prepared.processors.values())), self.settings
        ends, keep = sentence_tokens(vocabulary)
        shares = {"gap_share": s.gap_share, "word_share": s.word_share, "masked": s.masked, "swapped": s.swapped}
        return Gaps(vocabulary.special, ends, keep, choice=s.choice, **shares)

    def notes(self, recipe: Any, prepared: Prepared, validation: Validation, max_length: int) -> list[str]:
        notes, corpus, ends = (
            super().notes(recipe, prepared, validation, max_length),
            prepared.train,
            self.noise(prepared).ends,
        )
        some = range(0, len(corpus), max(1, len(corpus) // 1000))
        single = sum(len(sentences(corpus.source[i], ends)) < 2 for i in some)
        if single == len(some):
            raise ValueError(
                "task.name is 'gap-sentences', but no text has two sentences: put each article on one line"
            )
        if single:
            notes.append(
                f"About {100 * single / len(some):.0f} % of the texts are a single sentence: the target is then the "
                "whole text."
            )
        return notes
