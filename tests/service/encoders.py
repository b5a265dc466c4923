"""Small models that read texts; they know nothing, but say different things of different texts."""

from heed.products.answerer import Answerer
from heed.products.choice_model import ChoiceModel
from heed.products.classifier import Classifier, Regressor
from heed.products.embedder import Embedder
from heed.products.mask_filler import MaskFiller
from heed.products.replaced_detector import ReplacedDetector
from heed.products.tagger import Tagger
from heed.service.http.encoders import ServedEncoder
from tests.convert.encoders import package
from tests.products.test_replaced_detector import discriminator
from tests.products.test_token_products import NAMES, answering_package, tagging_package

LABELS = ["bad", "good", "so-so"]


def filler() -> MaskFiller:
    own = package("bert", "masked")
    return MaskFiller(own.model, own.processors["text"])


def tagger() -> Tagger:
    own = tagging_package("bert")
    return Tagger(own.model, own.processors["text"], NAMES)


def detector() -> ReplacedDetector:
    return ReplacedDetector.open([discriminator("joint")], ["electra"])


def answerer(threshold: float | None = None) -> Answerer:
    own = answering_package("bert")
    return Answerer(own.model, own.processors["text"], max_answer=4, threshold=threshold)


def classifier(kind: str = "labels", **facts) -> Classifier:
    head = {"labels": "classification", "number": "classification", "choice": "choice"}[kind]
    own = package("roberta", head, **({"labels": 1} if kind == "number" else {}))
    made = {"labels": Classifier, "number": Regressor, "choice": ChoiceModel}[kind]
    return made(own.model, own.processors["text"], LABELS if kind == "labels" else (), facts=facts)


def embedder() -> Embedder:
    own = package("albert", "none")
    return Embedder(own.model, own.processors["text"])


def served() -> list[ServedEncoder]:
    """One of each kind, and a second classifier, for pairs."""
    return [
        ServedEncoder("filler", filler(), "fill"),
        ServedEncoder("tagger", tagger(), "tag"),
        ServedEncoder("electra", detector(), "tag"),
        ServedEncoder("answerer", answerer(threshold=0.0), "answer"),
        ServedEncoder("classifier", classifier(texts=1), "classify"),
        ServedEncoder("pairs", classifier("number", texts=2), "classify"),
        ServedEncoder("choices", classifier("choice"), "classify"),
        ServedEncoder("embedder", embedder(), "embed"),
    ]
