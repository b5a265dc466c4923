"""Masked language modelling (BERT: Devlin et al., 2019): predict hidden words of a text from the rest.

With pairs, also whether the second text follows the first (BERT), or whether the two are in order (ALBERT: Lan et al., 2020).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch.nn.functional as F
from torch import nn

from heed.data.pretraining import MaskedBatch, PairSettings, RowShape
from heed.data.streams import IGNORED
from heed.evaluation.masked_words import masked_scores
from heed.models.abilities import PredictsMaskedWords
from heed.nn.pooling import first_token
from heed.products.mask_filler import MaskFiller
from heed.products.pair_classifier import PairClassifier
from heed.tasks.base import Metric, Objective, Prepared
from heed.tasks.pretraining import Measure, Pretraining
from heed.tasks.text_losses import PacksRows
from heed.training.loss import Loss, Part, chunked_cross_entropy


@dataclass(frozen=True)
class MaskedLoss(PacksRows):
    """Cross entropy of the hidden words, and of pairs times `pair_weight`. The mean over words plus the mean over
    pairs is minimized: the weight is the number of hidden words in a full row, so that sums over batches and
    processes add up.
    """

    pair_weight: float = 0.0
    length: int = 0

    @property
    def parts(self) -> tuple[str, ...]:
        return ("masked_words", "pairs") if self.pair_weight else ()

    def part_counts(self, batch: MaskedBatch) -> dict[str, int]:
        return {"masked_words": batch.count, "pairs": batch.rows}

    def __call__(self, model: PredictsMaskedWords, batch: MaskedBatch) -> Loss:
        states = model.encode_text(batch.tokens, batch.valid, batch.segments)
        hidden = model.word_states(states.flatten(0, 1).index_select(0, batch.positions))
        total, nll = chunked_cross_entropy(hidden, *model.output_weights(), batch.expected, 0.0)
        if not self.pair_weight:
            return Loss(total, nll, batch.count)
        logits = model.classify_pair(first_token(states, batch.valid)[:, None])
        logits = logits.float() if logits.dtype.itemsize < 4 else logits
        pairs = F.cross_entropy(logits, batch.labels, ignore_index=IGNORED, reduction="sum")
        counts = self.part_counts(batch)
        parts = {"masked_words": Part(nll, counts["masked_words"]), "pairs": Part(pairs.detach(), counts["pairs"])}
        return Loss(total + self.pair_weight * pairs, nll, batch.count, parts)


class MaskedLanguage(Pretraining):
    name, title, Settings = "masked", "Masked language model", PairSettings
    perplexity, products = True, (MaskFiller, PairClassifier)
    needs, best = PredictsMaskedWords, "loss"
    metrics = (
        Metric("loss", "loss", False, lambda: "-log p per hidden token", 3),
        Metric("accuracy", "accuracy", True, lambda: "per cent of the hidden tokens"),
        Metric("pairs", "accuracy of pairs", True, lambda: "per cent", optional=True),
    )

    @property
    def head(self) -> str:
        return "masked" if self.settings.pair == "none" else "pretraining"

    def check(self, recipe: Any) -> None:
        super().check(recipe)
        if recipe.training.metric == "pairs" and self.settings.pair == "none":
            raise ValueError("training.metric is 'pairs', but task.pair is 'none': set one of the two")

    def objective(self, prepared: Prepared, teachers: Sequence[nn.Module] = ()) -> Objective:
        s = self.settings
        if s.pair == "none":
            return MaskedLoss(length=s.length)
        room = RowShape(prepared.processors["text"].special, s.length, paired=True).room
        return MaskedLoss(s.share * room, s.length)

    def measure(self, prepared: Prepared) -> Measure:
        return masked_scores
