"""Models initialized with word vectors, and a model's learned vectors."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float32, Int64
from torch import nn

from heed.data.streams import Stream
from heed.data.vectors import Vectors, VectorsConfig, read
from heed.data.vectors.layout import detect_layout
from heed.models.package import Package
from heed.runs.recipe import Recipe
from heed.runs.resume import check_state
from heed.tasks.base import Prepared
from heed.training import checkpoints
from heed.training.distributed import SingleProcess
from heed.vocabularies.vocabulary import Vocabulary
from heed.vocabularies.words import Words

CHUNK = 1 << 22  # ids that are counted at once


class Coverage(NamedTuple):
    """How many words of one side have vectors, and how many running words these are."""

    side: str
    file: str
    words: int
    of: int
    running: int
    of_running: int
    notes: tuple[str, ...] = ()

    def summary(self) -> str:
        share = 100 * self.running / max(1, self.of_running)
        how = f"{self.words:,} of {self.of:,} words ({share:.1f} % of the running words) have vectors"
        drawn = "; the others are initialized around the mean of these" if self.words < self.of else ""
        return f"vectors.{self.side}: {how} in {self.file}{drawn}."


class KnownRows(NamedTuple):
    """The rows of an embedding table with vectors, and the vectors."""

    ids: Int64[np.ndarray, " known"]
    matrix: Float32[np.ndarray, "known dim"]


class AnyCase:
    """Words, and all that differ from one of them only in case."""

    def __init__(self, words: Sequence[str]):
        self.words, self.small = set(words), {word.lower() for word in words}

    def __contains__(self, word: str) -> bool:
        return word in self.words or word.lower() in self.small


def begin(model: nn.Module, recipe: Recipe, prepared: Prepared, folder: Path, workers: SingleProcess) -> list[Coverage]:
    """Initialize a new model with the vectors of a recipe, and freeze them if the recipe says so. A resumed run has
    them in its checkpoint: nothing is read.
    """
    if recipe.vectors is None or not recipe.vectors.files:
        return []
    tables = {side: _table(model, side, recipe.vectors.frozen) for side in recipe.vectors.files}
    found: dict[str, tuple[KnownRows, Coverage]] = {}
    kept = folder / "checkpoints"
    if workers.broadcast(lambda: checkpoints.read_newest(kept, lambda sentence: None, check_state) is None):
        found = workers.broadcast(lambda: _find(recipe.vectors, tables, prepared))
    for table in set(tables.values()):
        sides = [rows for side, (rows, _) in found.items() if tables[side] is table]
        if sides:
            fill(table, sides, recipe.vectors.scale)
        table.weight.requires_grad_(not recipe.vectors.frozen)
    return [coverage for _, coverage in found.values()]


def summaries(found: Sequence[Coverage]) -> list[str]:
    """The messages for the user."""
    return [sentence for one in found for sentence in (*one.notes, one.summary())]


def _table(model: nn.Module, side: str, frozen: bool) -> nn.Embedding:
    """The embeddings of one side."""
    own = getattr(model, "source_tokens", None) if side == "source" else None
    table = model.tokens if own is None else own
    if not isinstance(table, nn.Embedding):
        raise ValueError(f"vectors.{side} is set, but the model has no single embedding matrix: leave it out")
    if frozen and model.output_weights()[0] is table.weight:
        raise ValueError(
            f"vectors.frozen is true, but the matrix of vectors.{side} is also the output layer, which must be "
            "trained: set "
            f"model.tied to 'none', or vectors.frozen to false"
        )
    return table


def _find(
    config: VectorsConfig, tables: dict[str, nn.Embedding], prepared: Prepared
) -> dict[str, tuple[KnownRows, Coverage]]:
    found = {}
    for side, name in config.files.items():
        dim, own = detect_layout(Path(name)).dim, tables[side].embedding_dim
        if dim != own:
            raise ValueError(
                f"vectors.{side}: {name} has {dim} numbers per word, but the model's embeddings have {own}: set "
                f"model.dim to {dim}, or use another file"
            )
        vocabulary = list(prepared.processors.values())[side == "target"]
        found[side] = look_up(side, name, vocabulary, _counts(prepared, side, len(vocabulary)), config.lowercase)
    return found


def look_up(
    side: str, name: str, vocabulary: Vocabulary, counts: Int64[np.ndarray, " vocab"], lowercase: bool
) -> tuple[KnownRows, Coverage]:
    """The vectors in a file for the words of a vocabulary. `counts` is how often each word occurs."""
    if not isinstance(vocabulary, Words):
        raise ValueError(
            f"vectors.{side} is {name}, but the vocabulary has subwords, which have no word vectors: set "
            'subwords.kind to "words"'
        )
    special = vocabulary.special
    used = [i for i in range(special.last + 1, len(vocabulary)) if counts[i]]
    words = [vocabulary.words[i] for i in used]
    vectors = read(Path(name), AnyCase(words) if lowercase else set(words))
    exact = {word: row for row, word in enumerate(vectors.words)}
    small = {word.lower(): row for row, word in reversed(list(enumerate(vectors.words)))} if lowercase else {}
    small |= {word: row for word, row in exact.items() if word == word.lower()} if lowercase else {}
    rows = {i: exact.get(word, small.get(word.lower())) for i, word in zip(used, words, strict=True)}
    ids = [i for i, row in rows.items() if row is not None]
    if not ids:
        how = "" if lowercase else ", or try vectors.lowercase = true"
        raise ValueError(
            f"vectors.{side}: none of the {len(used):,} words of the vocabulary ({', '.join(words[:3])}, …) is in "
            f"{name}: is it for another language, or tokenized differently? Use another file{how}"
        )
    running, of_running = int(counts[ids].sum()), int(counts[used].sum() + counts[special.unknown])
    coverage = Coverage(side, name, len(ids), len(used), running, of_running, vectors.notes)
    return KnownRows(np.array(ids), vectors.matrix[[rows[i] for i in ids]]), coverage


def _counts(prepared: Prepared, side: str, size: int) -> Int64[np.ndarray, " vocab"]:
    """How often each token occurs in the training data."""
    corpus = prepared.train
    part = corpus if isinstance(corpus, Stream) else corpus.target if side == "target" else corpus.source
    counts = np.zeros(size, np.int64)
    for start in range(0, len(part.ids), CHUNK):
        counts += np.bincount(part.ids[start : start + CHUNK], minlength=size)
    return counts


@torch.no_grad()
def fill(table: nn.Embedding, sides: Sequence[KnownRows], scale: float | None) -> None:
    """Write vectors into a table; words of both sides get that of the first side. Without a `scale` they are scaled
    to the standard deviation of the model's initial weights: models rely on it, especially those that multiply
    embeddings by √dim. Rows without a vector are sampled around the mean of the others, with their deviation.
    """
    weight, drawn = table.weight, float(table.weight.std())
    known = torch.zeros(len(weight), dtype=torch.bool)
    for rows in sides:
        ids, matrix = torch.from_numpy(rows.ids), torch.from_numpy(rows.matrix).to(weight.dtype)
        spread = float(matrix.std(correction=0))
        times, new = scale or (drawn / spread if spread else 1.0), ~known[ids]
        weight[ids[new]] = times * matrix[new]
        known[ids] = True
    mean = weight[known].mean(dim=0)
    spread = float((weight[known] - mean).std(correction=0)) or drawn
    weight[~known] = mean + weight[~known] * (spread / drawn)


def embeddings(package: Package, side: str | None) -> Vectors:
    """The vectors of a model's words, or of its pieces, which begin with "▁" at the start of a word."""
    if side is None and getattr(package.model, "source_tokens", None) is not None:
        raise ValueError("this model has separate source and target embeddings: choose with --side")
    source = side != "target" or "labels" in package.processors
    vocabulary: Any = package.vocabularies[0 if source else 1]
    own = getattr(package.model, "source_tokens", None) if source else None
    table = package.model.tokens if own is None else own
    special = vocabulary.special
    silent = {special.pad, special.unknown, special.first, special.last, *special.before, special.mask, special.gap}
    ids = [i for i in range(len(vocabulary)) if i not in silent]
    words = [vocabulary.words[i] for i in ids] if isinstance(vocabulary, Words) else vocabulary.pieces(ids)
    with torch.inference_mode():
        rows = table(torch.tensor(ids, device=next(table.parameters()).device))
    return Vectors(words, rows.cpu().float().numpy())
