"""Text classification: texts in; labels, numbers or choices out."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from heed.data import tables
from heed.data.batching import text_inputs
from heed.data.labelled import Arrange, as_given, both_orders, longest_input, shorten
from heed.data.prepare import TableReader
from heed.evaluation import classification as scores
from heed.models.outputs import check_outputs
from heed.models.package import Package
from heed.products.ctranslate2_encoder import BATCH_TOKENS, Encode, EncoderEngine, encoder_engine
from heed.products.product import Product, each_batch, single
from heed.products.text_batches import in_chunks, model_inputs, usual_batch
from heed.vocabularies.labels import Labels, parse_number
from heed.vocabularies.text_parts import SEPARATOR, TextParts, join_parts, plain
from heed.vocabularies.vocabulary import SpecialTokens, Vocabulary

Text = str | Sequence[str]  # one text; or its parts, such as two sentences, or a context and its choices


@dataclass(frozen=True)
class Label:
    """The prediction for a text: its most likely label with the probability of each, or a number. Parts of a text are
    separated by tabs.
    """

    text: str
    label: str
    probabilities: dict[str, float] = field(default_factory=dict)
    number: float | None = None


class ReadTexts(NamedTuple):
    """The subwords of texts, of each input of each. `before` is the number of texts that came before, `cut` the number
    of texts that were truncated.
    """

    inputs: list[list[list[int]]]
    special: SpecialTokens
    before: int
    cut: int = 0


class Classifier(Product):
    """A text classifier. Texts have as many subwords as the model has positions, including special tokens."""

    noun, verbs, reads = "a classifier", ("classify", "evaluate"), ("text",)
    labelled: ClassVar[bool] = True  # whether the output is one of a few labels, with probabilities

    def __init__(
        self,
        model: nn.Module,
        vocabulary: Vocabulary,
        labels: Sequence[str] = (),
        facts: Mapping[str, Any] | None = None,
    ):
        self.model, self.labels, self.facts = model, list(labels), facts or {}
        self.vocabulary = vocabulary if isinstance(vocabulary, TextParts) else TextParts(vocabulary)
        self.engine: EncoderEngine | None = None

    @classmethod
    def open(cls, packages: Sequence[Package], names: Sequence[str], **options: Any) -> Any:
        own = single(packages, names, cls.noun)
        labels = getattr(own.processors.get("labels"), "names", ())
        found = cls(own.model, own.processors["text"], labels, own.facts)
        found.use(options.get("engine", "auto"))
        return found

    def use(self, engine: str) -> None:
        """Choose the engine: "torch", "ctranslate2" or "ctranslate2-int8" (an encoder on the CPU), or "auto":
        CTranslate2 in float32 if it supports the model and there is enough text, else torch.
        """
        self.engine = encoder_engine(self.model, plain(self.vocabulary), engine)

    @property
    def arrange(self) -> Arrange:
        return both_orders if self.facts.get("both_orders") else as_given

    @property
    def in_any_chunks(self) -> bool:
        """Whether predictions are independent of the other texts."""
        return self.texts is not None

    @property
    def room(self) -> int:
        """How many subwords of a text the model reads, besides special tokens at its ends."""
        return self.model.config.max_length - len(self.vocabulary.special.before) - 1

    @property
    def texts(self) -> int | None:
        """How many parts a text has; None if the folder does not say."""
        return self.facts.get("texts")

    def table(self) -> TableReader:
        """The reader of tables of texts and labels for this model."""
        return tables.table

    def parts(self, cells: Sequence[tables.Cell], where: str) -> list[str]:
        """The parts of a text from the cells of a table."""
        return [str(cell) for cell in cells]

    def joined(self, line: str) -> str:
        """A text from a line, with tabs between its parts if there are several or the folder does not say."""
        return line if self.texts == 1 else line.replace("\t", SEPARATOR)

    def measure(self, found: np.ndarray, expected: np.ndarray) -> dict[str, float]:
        """The scores of predictions, by name."""
        return scores.label_scores(len(self.labels))(found, expected)

    def predictions(self, outputs: Float[Tensor, "n k"]) -> np.ndarray:
        """What `measure` compares: the index of the best output."""
        return outputs.argmax(dim=1).numpy()

    def expected(self, labels: Sequence[str], where: Callable[[int], str] = lambda index: "") -> np.ndarray:
        """The reference labels, as `measure` compares them. `where` begins the error about the label with this index."""
        known, found = self.answers(), []
        for index, label in enumerate(labels):
            try:
                found.append(known(label))
            except ValueError as error:
                raise ValueError(f"{where(index)}{error}") from None
        return np.array(found)

    def answers(self) -> Callable[[str], float]:
        """What turns a reference label into what `measure` compares."""
        return Labels(self.labels).index

    def classify(
        self, texts: Iterable[Text], *, batch_tokens: int | None = None, too_long: str = "refuse", before: int = 0
    ) -> list[Label]:
        """Classify texts. A text longer than the model allows is refused or, with too_long="cut", truncated. `before`
        is the number of previous texts, for the choice of the engine and for errors.
        """
        texts = list(texts)
        return self.labelling(texts, self.outputs(texts, batch_tokens=batch_tokens, too_long=too_long, before=before))

    def labelling(self, texts: Sequence[Text], outputs: Float[Tensor, "n k"]) -> list[Label]:
        """The predictions for the outputs of texts."""
        names, found = self.names(outputs.shape[1]), []
        for text, row in zip(texts, outputs.softmax(dim=-1).tolist(), strict=True):
            own = dict(zip(names, row, strict=True))
            found.append(Label(_shown(text), max(own, key=own.__getitem__), own))
        return found

    def names(self, count: int) -> list[str]:
        """The labels of `count` logits."""
        return self.labels

    def outputs(
        self, texts: Sequence[Text], *, batch_tokens: int | None = None, too_long: str = "refuse", before: int = 0
    ) -> Float[Tensor, "n k"]:
        """The logits of each text, or the number, or the score of each choice."""
        split, special = self._split(texts, before), self._special(texts)

        def batches(start: int, end: int) -> Iterator[tuple[list[int], Tensor]]:
            inputs, cut = self._inputs(split[start:end], before + start, too_long)
            return self._batches(ReadTexts(inputs, special, before + start, cut), batch_tokens)

        return self._rows(in_chunks(batches, len(texts)))

    def read(self, texts: Sequence[Text], *, too_long: str = "refuse", before: int = 0) -> ReadTexts:
        """The subwords of texts; the options are those of `classify`."""
        inputs, cut = self._inputs(self._split(texts, before), before, too_long)
        return ReadTexts(inputs, self._special(texts), before, cut)

    def outputs_of(self, read: ReadTexts, batch_tokens: int | None = None) -> Float[Tensor, "n k"]:
        """The same as `outputs` for texts that are read already: a file reads some while the model works on others."""

        def batches(start: int, end: int) -> Iterator[tuple[list[int], Tensor]]:
            own = read._replace(inputs=read.inputs[start:end], before=read.before + start)
            return self._batches(own, batch_tokens)

        return self._rows(in_chunks(batches, len(read.inputs)))

    def _batches(self, read: ReadTexts, batch_tokens: int | None) -> Iterator[tuple[list[int], Float[Tensor, "n k"]]]:
        sizes = [len(own) * (1 + max(map(len, own))) for own in read.inputs]
        budget = usual_batch(self.model) if batch_tokens is None else batch_tokens
        run, workers = partial(self._outputs, special=read.special), 1
        least = read.before + sum(sizes)  # each text before has a subword at least, so all chunks have one engine
        if self.engine is not None and self.engine.takes(least):
            encode, workers = self.engine.start(len(read.inputs))
            run, budget = partial(run, encode=encode), min(budget, BATCH_TOKENS)
        return each_batch(run, read.inputs, sizes, budget, workers)

    def _rows(self, found: Tensor | None) -> Float[Tensor, "n k"]:
        if found is None:
            return torch.zeros(0, max(1, len(self.labels)), dtype=torch.float64)
        check_outputs(found)
        return found

    def _split(self, texts: Sequence[Text], before: int = 0) -> list[list[str]]:
        """The parts of each text."""
        found = [text.split(SEPARATOR) if isinstance(text, str) else list(text) for text in texts]
        for number, own in enumerate(found, before + 1):
            self._check_parts(own, number)
        return found

    def _inputs(self, split: Sequence[Sequence[str]], start: int, too_long: str) -> tuple[list[list[list[int]]], int]:
        """The ids of each input of each text, and how many texts are cut; `start` texts came before."""
        special, room, found, cut = self.vocabulary.special, self.room, [], 0
        encoded = iter(plain(self.vocabulary).encode([part for own in split for part in own]))
        for number, own in enumerate(split, start + 1):
            inputs = self.arrange([next(encoded) for _ in own])
            long = longest_input(inputs, len(special.delimiter))
            cut += long > room
            if long > room and too_long != "cut":
                raise ValueError(
                    f"text {number} has {long} subwords, and the model reads at most {room}: shorten it, or allow "
                    "truncation (too_long='cut', --too-long cut)"
                )
            kept = (shorten(parts, room, len(special.delimiter)) for parts in inputs)
            found.append([join_parts(parts, special.delimiter) for parts in kept])
        return found, cut

    def _check_parts(self, parts: Sequence[str], number: int) -> None:
        if self.texts is not None and len(parts) != self.texts:
            raise ValueError(
                f"text {number} has {count_parts(len(parts))}, but the model expects {count_parts(self.texts)}: separate parts "
                "with tabs"
            )

    def _special(self, texts: Sequence[Text]) -> SpecialTokens:
        """The special tokens; texts of one part have no delimiter."""
        pairs = any(SEPARATOR in text if isinstance(text, str) else len(text) > 1 for text in texts)
        return (self.vocabulary if pairs else self.vocabulary.of_one_part()).special

    @torch.inference_mode()
    def _outputs(
        self, inputs: list[list[list[int]]], special: SpecialTokens, encode: Encode | None = None
    ) -> Float[Tensor, "n k"]:
        """The outputs of one batch, on the model's device: `in_chunks` waits for it."""
        rows = [ids for own in inputs for ids in own]
        if encode is None:
            found = self.model.classify_text(*model_inputs(self.model, rows, special))
        else:
            found = self.model.classify_first(encode(*text_inputs(rows, special)))
        return self.combine(found.double().reshape(len(inputs), len(inputs[0]), -1))

    @staticmethod
    def combine(logits: Float[Tensor, "n inputs k"]) -> Float[Tensor, "n k"]:
        """Combine the outputs of an example's inputs: both orders are added."""
        return logits.sum(dim=1)


class Regressor(Classifier):
    """A regression model: predicts one number per text."""

    noun, labelled = "a regression model", False

    def measure(self, found: np.ndarray, expected: np.ndarray) -> dict[str, float]:
        return scores.number_scores(found, expected)

    def predictions(self, outputs: Float[Tensor, "n k"]) -> np.ndarray:
        return outputs[:, 0].numpy()

    def answers(self) -> Callable[[str], float]:
        return parse_number

    def labelling(self, texts: Sequence[Text], outputs: Float[Tensor, "n k"]) -> list[Label]:
        numbers = outputs.squeeze(dim=1).tolist()
        return [Label(_shown(text), f"{own:.4f}", number=own) for text, own in zip(texts, numbers, strict=True)]


def _shown(text: Text) -> str:
    return text.replace(SEPARATOR, "\t") if isinstance(text, str) else "\t".join(text)


def count_parts(count: int) -> str:
    return f"{count} part" if count == 1 else f"{count} parts"
