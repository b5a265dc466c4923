"""Text in, a label out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from heed.data.batching import pad
from heed.models.package import Package
from heed.products.product import Product, in_batches, single
from heed.vocabularies.vocabulary import Vocabulary


@dataclass(frozen=True)
class Label:
    """The likeliest label of a text, and how likely each is."""

    text: str
    label: str
    probabilities: dict[str, float]


class Classifier(Product):
    """A model that predicts labels of texts of up to `max_source` subwords, special tokens included."""

    noun, verbs = "a classifier", ("classify",)

    def __init__(self, model: nn.Module, vocabulary: Vocabulary, labels: Sequence[str], max_source: int | None = None):
        self.model, self.vocabulary, self.labels = model, vocabulary, list(labels)
        self.most = min(max_source or model.config.max_length, model.config.max_length)

    @classmethod
    def open(cls, packages: Sequence[Package], names: Sequence[str], **options: Any) -> Any:
        own = single(packages, names, cls.noun)
        return cls(own.model, own.processors["text"], own.processors["labels"].names, own.facts.get("max_source"))

    def classify(self, texts: Sequence[str], *, batch_tokens: int = 4096, too_long: str = "refuse") -> list[Label]:
        """A label for each text. One longer than the model allows is refused, or with too_long="cut", cut."""
        room = self.most - len(self.vocabulary.special.before) - 1
        ids = self.vocabulary.encode(texts)
        for number, own in enumerate(ids, 1):
            if len(own) > room and too_long != "cut":
                raise ValueError(
                    f"text {number} has {len(own)} subwords, and the model was made for {room}: shorten it, or let its end be "
                    "cut off (too_long='cut', --too-long cut)"
                )
        ids = [own[:room] for own in ids]
        each = in_batches(self._probabilities, ids, [len(own) + 1 for own in ids], batch_tokens)
        return [Label(text, max(own, key=own.__getitem__), own) for text, own in zip(texts, each, strict=True)]

    @torch.inference_mode()
    def _probabilities(self, ids: list[list[int]]) -> list[dict[str, float]]:
        device = next(self.model.parameters()).device
        tokens, valid = (torch.from_numpy(part).to(device) for part in pad(ids, self.vocabulary.special))
        rows = self.model.classify_text(tokens, valid).double().softmax(dim=-1).tolist()
        return [dict(zip(self.labels, row, strict=True)) for row in rows]
