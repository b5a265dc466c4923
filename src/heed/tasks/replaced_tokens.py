"""Replaced-token detection (ELECTRA: Clark et al., 2020): a generator fills gaps in a text, and a discriminator
detects its words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import nn

from heed.config import check_not_negative
from heed.data.pretraining import MaskedBatch, RowSettings, RowShape
from heed.evaluation.masked_words import CHUNK, replaced_scores, sample_words
from heed.models.abilities import DetectsReplacedWords
from heed.products.mask_filler import MaskFiller
from heed.products.replaced_detector import ReplacedDetector
from heed.tasks.base import Metric, Objective, Prepared
from heed.tasks.pretraining import Measure, Pretraining
from heed.tasks.text_losses import PacksRows
from heed.training.loss import Loss, Part, chunked_cross_entropy


@dataclass(frozen=True)
class ReplacedTokensSettings(RowSettings):
    masked: float = (
        0.85  # of the hidden tokens, how many become the mask for the generator: as in the code of the paper
    )
    random: float = 0.0  # share of these replaced by a random token; the rest is unchanged
    weight: float = 50.0  # weight of the discriminator's loss

    def __post_init__(self):
        super().__post_init__()
        check_not_negative("task.weight", self.weight)


@dataclass(frozen=True)
class ReplacedTokensLoss(PacksRows):
    """Cross entropy of the generator's hidden words, plus `weight` times that of the discriminator on each token.
    Words are sampled from the generator's distribution, without a gradient; a correct one counts as original. `pad`
    is ignored.
    """

    weight: float
    pad: int
    length: int = 0
    parts: ClassVar = ("generator", "discriminator")

    def part_counts(self, batch: MaskedBatch) -> dict[str, int]:
        return {"generator": batch.count, "discriminator": batch.size}

    def __call__(self, model: DetectsReplacedWords, batch: MaskedBatch) -> Loss:
        states = model.generator_states(batch.tokens, batch.valid, batch.segments)
        states, weights = states.flatten(0, 1).index_select(0, batch.positions), model.generator_weights()
        total, nll = chunked_cross_entropy(states, *weights, batch.expected, 0.0)
        fixed = [
            weight.detach() for weight in weights
        ]  # autocast would keep a copy of the weights that has no gradient
        with torch.no_grad():
            words = torch.cat([sample_words(F.linear(part, *fixed)) for part in states.split(CHUNK)])
        before, after = batch.filled(batch.expected), batch.filled(words)
        logits = model.detect_replaced(after, batch.valid, batch.segments)
        logits = logits.float() if logits.dtype.itemsize < 4 else logits
        each = F.binary_cross_entropy_with_logits(logits, (before != after).to(logits.dtype), reduction="none")
        found = torch.where(before != self.pad, each, 0.0).sum()
        counts = self.part_counts(batch)
        parts = {
            "generator": Part(nll, counts["generator"]),
            "discriminator": Part(found.detach(), counts["discriminator"]),
        }
        both = (nll + self.weight * found).detach()  # as the validation has it
        return Loss(total + self.weight * found, both, batch.count, parts)


class ReplacedTokens(Pretraining):
    name, title, Settings = "replaced-tokens", "Pre-trained with replaced-token detection", ReplacedTokensSettings
    needs, best, head = DetectsReplacedWords, "loss", "joint"
    products = (MaskFiller, ReplacedDetector)
    metrics = (
        Metric("loss", "loss", False, lambda: "of the generator, plus that of the discriminator times its weight", 3),
        Metric("generator", "generator's loss", False, lambda: "-log p per hidden token", 3),
        Metric("discriminator", "discriminator's loss", False, lambda: "-log p per token", 4),
        Metric("replaced", "replaced tokens found", True, lambda: "per cent of the tokens that were replaced"),
        Metric("original", "original tokens found", True, lambda: "per cent of the tokens that were not"),
    )

    def objective(self, prepared: Prepared, teachers: Sequence[nn.Module] = ()) -> Objective:
        s, special = self.settings, prepared.processors["text"].special
        # what is divided by the number of hidden tokens becomes a mean over all tokens of full rows
        weight = s.weight * s.share * RowShape(special, s.length).room / s.length
        return ReplacedTokensLoss(weight, special.pad, s.length)

    def measure(self, prepared: Prepared) -> Measure:
        pad, weight = prepared.processors["text"].special.pad, self.settings.weight
        return lambda model, batches: replaced_scores(model, batches, pad, weight)
