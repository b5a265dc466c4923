"""How good is it by now: loss, BLEU and chrF on the validation set, and a few sentences to look at."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from heed.data.batches import collate, plan
from heed.data.readers import Line
from heed.data.subwords import Subwords, clean
from heed.decoding.config import DecodingConfig
from heed.evaluation.translation import metrics
from heed.serving.inside import Rows, choose_rows
from heed.serving.translator import Translator
from heed.tasks.translation import Translation


@dataclass(frozen=True)
class Validity:
    """`samples` are (source, reference, translation)."""

    loss: float
    bleu: float
    chrf: float
    samples: list[tuple[str, str, str]]


class Validation:
    """A validation set, ready to be asked again and again."""

    def __init__(self, lines: Sequence[Line], subwords: tuple[Subwords, Subwords], *, budget: int, samples: int):
        self.sources = [clean(line.source) for line in lines]
        self.references = [clean(line.target) for line in lines]
        self.subwords, self.budget = subwords, budget
        self.ids = [part.encode(texts) for part, texts in zip(subwords, (self.sources, self.references), strict=True)]
        self.shown = np.linspace(0, len(lines) - 1, min(samples, len(lines)), dtype=int).tolist()

    def run(self, model: nn.Module, decoding: DecodingConfig, max_source: int) -> Validity:
        model.eval()
        translator = Translator([model], self.subwords, decoding=decoding, max_source=max_source)
        found = [t.text for t in translator.translate(self.sources, batch_tokens=self.budget)]
        samples = [(self.sources[i], self.references[i], found[i]) for i in self.shown]
        logging.getLogger("sacrebleu").setLevel(logging.ERROR)  # a model that has learned little looks tokenized to it
        bleu, chrf = (m.corpus_score(found, [self.references]).score for m in metrics(False, "13a")[:2])  # TER is slow
        return Validity(self.loss(model), bleu, chrf, samples)

    def alignment_rows(self, model: nn.Module) -> Rows:
        """Where this model's word alignments are to be read."""
        few = [i for i in range(len(self.sources)) if 0 < len(self.ids[0][i]) < 60 and 0 < len(self.ids[1][i]) < 60][
            :200
        ]
        if not few:
            return Rows(model.config.decoder_layers - 1, after=False)
        pairs = [(self.ids[0][i], self.ids[1][i]) for i in few]
        pieces = [(self.subwords[0].pieces(source), self.subwords[1].pieces(target)) for source, target in pairs]
        return choose_rows(model.eval(), pairs, pieces)

    @torch.inference_mode()
    def loss(self, model: nn.Module) -> float:
        """-log p of a reference token, on average. What is longer than the model allows does not count."""
        most, device = model.config.max_length, next(model.parameters()).device
        rows = [i for i in range(len(self.sources)) if max(len(self.ids[0][i]), len(self.ids[1][i])) < most]
        lengths = [np.array([len(side[i]) + 1 for i in rows]) for side in self.ids]
        total, count = 0.0, 0
        for batch in plan(*lengths, budget=self.budget, seed=0, epoch=0):
            pairs = [[side[rows[i]] for i in batch] for side in self.ids]
            loss = Translation(smoothing=0.0)(model, collate(*pairs).to(device))
            total, count = total + loss.surprise.item(), count + loss.count
        return total / max(count, 1)
