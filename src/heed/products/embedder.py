"""Text embeddings: texts in, vectors out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from heed.data.batching import text_inputs
from heed.evaluation.retrieval import nearest_rows, row_cosines
from heed.models.abilities import EncodesText
from heed.models.outputs import check_outputs
from heed.models.package import Package, longest_text
from heed.nn.pooling import POOLINGS
from heed.products.ctranslate2_encoder import BATCH_TOKENS, Encode, EncoderEngine, encoder_engine
from heed.products.product import Product, as_texts, each_batch, single
from heed.products.text_batches import in_chunks, model_inputs, usual_batch
from heed.vocabularies.text_parts import TextParts, plain
from heed.vocabularies.vocabulary import Vocabulary

POOLING = "mean"  # where a folder says nothing


@dataclass(frozen=True)
class Match:
    """A text similar to a query, its index in the list, from 0, and the cosine."""

    row: int
    cosine: float
    text: str


class ReadTexts(NamedTuple):
    """The subwords of texts, and how many of these were truncated."""

    ids: list[list[int]]
    cut: int = 0


class Embedder(Product):
    """An encoder that embeds texts. `pooling` is "mean", "cls" (the first state) or "max"."""

    noun, verbs, reads = "an embedding model", ("embed", "evaluate"), ("text",)
    needs: ClassVar[type] = EncodesText  # any model with this can be opened as an embedder, whatever its task

    def __init__(
        self,
        model: Any,
        vocabulary: Vocabulary,
        pooling: str = POOLING,
        normalize: bool = False,
        max_length: int | None = None,
    ):
        if pooling not in POOLINGS:
            raise ValueError(f"pooling is {pooling!r}; it must be {', '.join(POOLINGS)}")
        self.model, self.pooling, self.normalize = model, pooling, normalize
        self.vocabulary = TextParts(plain(vocabulary), getattr(vocabulary, "tokens", None)).of_one_part()
        self.most = min(max_length or model.config.max_length, model.config.max_length)
        self.engine: EncoderEngine | None = None

    @classmethod
    def open(cls, packages: Sequence[Package], names: Sequence[str], **options: Any) -> "Embedder":
        own = single(packages, names, cls.noun)
        facts: Mapping[str, Any] = own.facts
        settings = {name: facts[name] for name in ("pooling", "normalize") if name in facts}
        found = cls(own.model, own.processors["text"], max_length=longest_text(own), **settings)
        found.use(options.get("engine", "auto"))
        return found

    def use(self, engine: str) -> None:
        """Choose the engine, as `Classifier.use` does."""
        self.engine = encoder_engine(self.model, plain(self.vocabulary), engine)

    @property
    def room(self) -> int:
        """How many subwords of a text the model reads, besides special tokens at its ends."""
        return self.most - len(self.vocabulary.special.before) - 1

    @property
    def dim(self) -> int:
        return self.model.config.dim

    def embed(
        self, texts: Iterable[str], *, batch_tokens: int | None = None, too_long: str = "refuse", before: int = 0
    ) -> Float[np.ndarray, "n dim"]:
        """Embed texts, in single precision. A text longer than the model allows is refused or, with too_long="cut",
        truncated. `before` is the number of previous texts, for errors.
        """
        texts = as_texts(texts)

        def batches(start: int, end: int) -> Iterator[tuple[list[int], Tensor]]:
            read = self.read(texts[start:end], too_long=too_long, before=before + start)
            return self._batches(read.ids, batch_tokens, before + start)

        return self._rows(in_chunks(batches, len(texts)))

    def embed_ids(
        self, ids: Sequence[list[int]], batch_tokens: int | None = None, before: int = 0
    ) -> Float[np.ndarray, "n dim"]:
        """The same for texts that are read already: a file reads some (`read`) while the model works on others."""

        def batches(start: int, end: int) -> Iterator[tuple[list[int], Tensor]]:
            return self._batches(ids[start:end], batch_tokens, before + start)

        return self._rows(in_chunks(batches, len(ids)))

    def similarity(self, one: Sequence[str], other: Sequence[str], **options: Any) -> Float[np.ndarray, " n"]:
        """The cosine of each text with its counterpart in the other list."""
        return row_cosines(*(self.embed(texts, **options) for texts in (one, other)))

    def search(
        self,
        queries: Sequence[str],
        texts: Sequence[str],
        vectors: Float[np.ndarray, "n dim"],
        count: int,
        **options: Any,
    ) -> list[list[Match]]:
        """The `count` texts most similar to each query, best first; `vectors` are those of the texts."""
        rows, cosines = nearest_rows(self.embed(queries, **options), vectors, count)
        return [
            [Match(int(row), float(cosine), texts[row]) for row, cosine in zip(*own, strict=True)]
            for own in zip(rows, cosines, strict=True)
        ]

    def read(self, texts: Sequence[str], *, too_long: str = "refuse", before: int = 0) -> ReadTexts:
        """The subwords of texts; the options are those of `embed`."""
        room, found = self.room, plain(self.vocabulary).encode(texts)
        for number, own in enumerate(found, before + 1):
            if len(own) > room and too_long != "cut":
                raise ValueError(
                    f"text {number} has {len(own)} subwords, and the model reads at most {room}: shorten it, or allow "
                    "truncation (too_long='cut', --too-long cut)"
                )
        return ReadTexts([own[:room] for own in found], sum(len(own) > room for own in found))

    def _batches(
        self, ids: Sequence[list[int]], batch_tokens: int | None, before: int
    ) -> Iterator[tuple[list[int], Float[Tensor, "n dim"]]]:
        sizes = [len(own) + len(self.vocabulary.special.before) + 1 for own in ids]
        budget = usual_batch(self.model) if batch_tokens is None else batch_tokens
        run, workers = self._vectors, 1
        if self.engine is not None and self.engine.takes(before + sum(sizes)):  # so all chunks have one engine
            encode, workers = self.engine.start(len(ids))
            run, budget = partial(run, encode=encode), min(budget, BATCH_TOKENS)
        return each_batch(run, ids, sizes, budget, workers)

    def _rows(self, found: Tensor | None) -> Float[np.ndarray, "n dim"]:
        if found is None:
            return np.empty((0, self.dim), dtype=np.float32)
        check_outputs(found)
        return found.numpy()

    @torch.inference_mode()
    def _vectors(self, rows: list[list[int]], encode: Encode | None = None) -> Float[Tensor, "n dim"]:
        if encode is None:
            encode, inputs = self.model.encode_text, model_inputs(self.model, rows, self.vocabulary.special)
        else:
            inputs = text_inputs(rows, self.vocabulary.special)
        vectors = POOLINGS[self.pooling](encode(*inputs), inputs[1]).float()
        return F.normalize(vectors, dim=1) if self.normalize else vectors
