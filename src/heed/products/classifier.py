"""Text in, a label out."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from heed.data.batching import by_length, pad
from heed.device import choose_device
from heed.loading import open_package
from heed.vocabularies.vocabulary import Vocabulary


@dataclass(frozen=True)
class Label:
    """The likeliest label of a text, and how likely each is."""

    text: str
    label: str
    probabilities: dict[str, float]


class Classifier:
    """A model that tells labels, ready to be given text of no more than `max_source` subwords, its marks among them."""

    def __init__(self, model: nn.Module, subwords: Vocabulary, labels: Sequence[str], max_source: int | None = None):
        self.model, self.subwords, self.labels = model, subwords, list(labels)
        self.most = min(max_source or model.config.max_length, model.config.max_length)

    def classify(self, texts: Sequence[str], *, batch_tokens: int = 4096, too_long: str = "refuse") -> list[Label]:
        """A label for each text. One longer than the model allows is refused, or with too_long="cut", cut."""
        marks, device = self.subwords.marks, next(self.model.parameters()).device
        room = self.most - len(marks.before) - 1
        ids = self.subwords.encode(texts)
        for number, own in enumerate(ids, 1):
            if len(own) > room and too_long != "cut":
                raise ValueError(
                    f"text {number} has {len(own)} subwords, and the model was made for {room}: shorten it, or let its end be "
                    "cut off (too_long='cut', --too-long cut)"
                )
        ids = [own[:room] for own in ids]
        results: list[Label | None] = [None] * len(ids)
        for rows in by_length([len(own) + 1 for own in ids], batch_tokens):
            tokens, valid = (torch.from_numpy(part).to(device) for part in pad([ids[i] for i in rows], marks))
            with torch.inference_mode():
                each = self.model(tokens, valid).double().softmax(dim=-1).tolist()
            for row, own in zip(rows, each, strict=True):
                best = max(range(len(own)), key=own.__getitem__)
                results[row] = Label(texts[row], self.labels[best], dict(zip(self.labels, own, strict=True)))
        return results


def load_classifier(name: str | Path, device: str = "auto") -> Classifier:
    """The classifier of a run, a folder or a name on the hub."""
    place = choose_device(device)
    package = open_package(name)
    if "labels" not in package.facts:
        raise ValueError(f"{name} is no classifier: it has no labels; heed translate or heed summarize may be meant")
    facts = package.facts
    return Classifier(package.model.to(place), package.subwords[0], facts["labels"], facts.get("max_source"))
