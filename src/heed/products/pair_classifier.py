"""Sentence pairs: whether the second text follows the first, or whether the two are in order."""

from collections.abc import Sequence
from typing import Any

from heed.models.albert import Albert
from heed.models.encoder_heads import HEADS
from heed.models.package import Package
from heed.products.classifier import Classifier
from heed.products.product import single

LABELS = {"next": ("next", "not next"), "order": ("in order", "swapped")}  # by `task.pair`


class PairClassifier(Classifier):
    """The head that an encoder was pre-trained with: next-sentence or, for ALBERT, sentence-order prediction."""

    noun = "a sentence-pair model"

    @classmethod
    def open(cls, packages: Sequence[Package], names: Sequence[str], **options: Any) -> Any:
        own = single(packages, names, cls.noun)
        if "pair" not in HEADS[own.model.config.head]:
            raise ValueError(
                f"{names[0]} is a masked language model: it cannot classify, since it was pre-trained without sentence "
                f"pairs; heed train --from {names[0]} fine-tunes it"
            )
        usual = "order" if isinstance(own.model, Albert) else "next"
        labels = LABELS.get(str(own.facts.get("pretraining", {}).get("pair")), LABELS[usual])
        found = cls(own.model, own.processors["text"], labels, facts={**own.facts, "texts": 2})
        found.use(options.get("engine", "auto"))
        return found
