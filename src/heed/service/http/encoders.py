"""Served encoders: they fill masks, tag, answer, classify, embed."""

from collections.abc import Sequence
from typing import Any

from heed.models.abilities import EncodesText
from heed.products.choice_model import ChoiceModel
from heed.products.text_trace import TextTrace, trace_encoder
from heed.service.http.asked_model import AskedModel
from heed.service.http.queue import BatchWorker, Ticket, wait_for_results
from heed.vocabularies.text_parts import plain

VERBS = ("tag", "fill", "answer", "classify", "embed")  # what such a model may be asked, the usual one of several first
Input = str | Sequence[str]  # a text, or its parts


class ServedEncoder(AskedModel):
    """One encoder, and the task it is served for. Texts of all requests share batches."""

    def __init__(self, name: str, product: Any, verb: str, worker: BatchWorker | None = None):
        super().__init__(name, product, worker)
        self.verb = verb

    def warm_up(self) -> None:
        """Build now what the first call would build."""
        texts = getattr(self.product, "texts", None) or 1
        parts = 1 + (len(self.product.labels) or 2) if self._chooses else texts
        inputs = {"fill": "[MASK]", "answer": (".", "."), "classify": ["."] * parts}
        getattr(self.product, self.verb)([inputs.get(self.verb, ".")])

    def run(self, key: tuple, items: list[Any]) -> list[tuple[Any, Exception | None]]:
        """A batch, in the worker's thread. If one of several texts is refused, all are: then the worker tries smaller
        batches.
        """
        if key[0] != self.verb:
            return super().run(key, items)
        try:
            found = getattr(self.product, self.verb)(items, **dict(key[1]))
        except ValueError as error:
            if len(items) > 1:
                raise
            return [(None, error)]
        return [(one, None) for one in found]

    def read(self, ticket: Ticket, inputs: Sequence[Input], **options: Any) -> list[Any]:
        """The model's output for each input. Only inputs with equally many parts and the same options share a batch."""
        parts = [[own] if isinstance(own, str) else list(own) for own in inputs]
        vocabulary, futures = plain(self.product.vocabulary), []
        for own, each in zip(inputs, parts, strict=True):
            size = sum(map(len, vocabulary.encode(each)))
            key = (self.verb, tuple(sorted(options.items())), len(each))
            futures += self.worker.submit(ticket, key, [own], [size])
        found = []
        for number, (result, error) in enumerate(wait_for_results(futures, ticket), 1):
            if error is not None:  # it counts the texts of a list of one
                raise ValueError(str(error).replace("text 1 ", f"text {number} ", 1))
            found.append(result)
        return found

    @property
    def attends(self) -> bool:
        """Whether it is an encoder whose attention can be shown."""
        return isinstance(self.model, EncodesText)

    def look(self, ticket: Ticket, text: str, code: str | None) -> TextTrace:
        if code is not None:
            raise ValueError(f"{self.name} has no control codes: leave code out")
        vocabulary = plain(self.product.vocabulary)
        special, [ids] = vocabulary.special, vocabulary.encode([text])
        ids = [*special.before, *ids, special.last]
        self.check_inspectable(len(ids))
        trace = lambda: trace_encoder(self.model, vocabulary, text, ids, self.caption())  # noqa: E731
        return self.ask(ticket, "call", trace, 4 * len(ids))

    @property
    def _chooses(self) -> bool:
        return isinstance(self.product, ChoiceModel)

    def facts(self) -> dict[str, Any]:
        """Its entry in /v1/models: `texts` are the parts of an input, if the folder says; `choices`, whether these
        follow a context.
        """
        product = self.product
        own = {
            "verb": self.verb,
            "labels": getattr(product, "labels", []),
            "choices": self._chooses,
            "attention": self.attends,
        }
        return {**super().facts(), **own, "texts": getattr(product, "texts", None)}
