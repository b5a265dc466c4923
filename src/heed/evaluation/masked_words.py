"""Scores of masked language models: masked words, sentence pairs and replaced tokens."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.data.pretraining import MaskedBatch
from heed.evaluation.classification import Measure

CHUNK = 2048  # positions whose logits are in memory at one time


class Tally:
    """-log p, correct predictions and counts, for each row of the batches."""

    def __init__(self):
        self.batches: list[Float[np.ndarray, "rows 3"]] = []

    def start(self, rows: int) -> None:
        """A batch with this many rows follows."""
        self.batches.append(np.zeros((rows, 3)))

    def add(self, rows: Int[Tensor, " n"], nll: Float[Tensor, " n"], right: Bool[Tensor, " n"]) -> None:
        """Predictions in these rows of the batch."""
        own, which = self.batches[-1], rows.cpu().numpy()
        for column, values in enumerate((nll, right, torch.ones_like(nll))):
            own[:, column] += np.bincount(which, values.double().cpu().numpy(), minlength=len(own))

    @property
    def rows(self) -> Float[np.ndarray, "rows 3"]:
        return np.concatenate([np.zeros((0, 3)), *self.batches])

    @property
    def nll(self) -> float:
        return float(self.rows[:, 0].sum())

    @property
    def count(self) -> int:
        return int(self.rows[:, 2].sum())

    @property
    def loss(self) -> float:
        return self.nll / max(1, self.count)

    @property
    def accuracy(self) -> float:
        """In per cent."""
        return 100 * float(self.rows[:, 1].sum()) / max(1, self.count)


def sample_words(logits: Float[Tensor, "n vocab"], generator: torch.Generator | None = None) -> Int[Tensor, " n"]:
    """One word per row, sampled from the logits."""
    exact = logits.float() if logits.dtype.itemsize < 4 else logits
    noise = torch.empty_like(exact).exponential_(generator=generator)
    return (exact.softmax(dim=-1) / noise).argmax(dim=-1)


def has_generator(model: nn.Module) -> bool:
    """Whether a separate generator predicts the words."""
    return getattr(model, "generator", None) is not None


def predict_hidden(
    model: nn.Module, batch: MaskedBatch
) -> tuple[Float[Tensor, "n width"], tuple[Tensor, Tensor], Float[Tensor, "b t dim"] | None]:
    """The input of the output matrix at the hidden positions, this matrix with its bias, and the states of all
    tokens.
    """
    inputs = batch.tokens, batch.valid, batch.segments
    if has_generator(model):
        return model.generator_states(*inputs).flatten(0, 1)[batch.positions], model.generator_weights(), None
    states = model.encode_text(*inputs)
    return model.word_states(states.flatten(0, 1)[batch.positions]), model.output_weights(), states


@torch.inference_mode()
def measure_masked(model: nn.Module, batches: Iterable[MaskedBatch]) -> tuple[Tally, Tally]:
    """The masked words of these batches, and their pairs."""
    model.eval()
    device, words, pairs = next(model.parameters()).device, Tally(), Tally()
    for batch in (each.to(device) for each in batches):
        for tally in (words, pairs):
            tally.start(len(batch.tokens))
        hidden, weights, states = predict_hidden(model, batch)
        _add_words(words, hidden, weights, batch)
        if batch.labels is not None:
            rows = torch.arange(len(batch.labels), device=device)
            _add_labels(pairs, rows, model.classify_pair(states), batch.labels)
    return words, pairs


@torch.inference_mode()
def measure_replaced(model: nn.Module, batches: Iterable[MaskedBatch], pad: int) -> tuple[Tally, Tally, Tally]:
    """The masked words of the generator, and the discriminator's accuracy on replaced and original tokens. The
    generator's samples are reproducible on the same device.
    """
    model.eval()
    device, words, replaced, original = next(model.parameters()).device, Tally(), Tally(), Tally()
    drawn = torch.Generator(device).manual_seed(0)
    for batch in (each.to(device) for each in batches):
        for tally in (words, replaced, original):
            tally.start(len(batch.tokens))
        states, weights, _ = predict_hidden(model, batch)
        _add_words(words, states, weights, batch)
        samples = torch.cat([sample_words(F.linear(part, *weights), drawn) for part in states.split(CHUNK)])
        before, after = batch.filled(batch.expected), batch.filled(samples)
        logits = model.detect_replaced(after, batch.valid, batch.segments)
        present = before != pad
        changed = (before != after) & present
        for tally, where in ((replaced, changed), (original, ~changed & present)):
            own, labels = logits[where].double(), changed[where].double()
            nll = F.binary_cross_entropy_with_logits(own, labels, reduction="none")
            tally.add(where.nonzero()[:, 0], nll, (own > 0) == changed[where])
    return words, replaced, original


def by_row(tallies: Sequence[Tally]) -> Float[np.ndarray, "rows counts"]:
    """The numbers of each row of text side by side, which a bootstrap resamples; rows of padding are left out."""
    found = np.concatenate([tally.rows for tally in tallies], axis=1)
    return found[found[:, 2::3].any(axis=1)]


def measure_words(rows: Float[np.ndarray, "rows 6"], _: np.ndarray | None = None) -> dict[str, float]:
    """The scores of masked words and, if any, of pairs, by name, from `by_row`."""
    nll, right, count, _, right_pairs, pairs = rows.sum(axis=0).tolist()
    found = {"loss": nll / max(1, count), "accuracy": 100 * right / max(1, count)}
    return found | ({"pairs": 100 * right_pairs / pairs} if pairs else {})


def measure_detection(weight: float) -> Measure:
    """The same for a generator and a discriminator, whose loss has this weight."""

    def measure(rows: Float[np.ndarray, "rows 9"], _: np.ndarray | None = None) -> dict[str, float]:
        words, replaced, original = rows.sum(axis=0).reshape(3, 3).tolist()
        generator = words[0] / max(1, words[2])
        discriminator = (replaced[0] + original[0]) / max(1, replaced[2] + original[2])
        return {
            "loss": generator + weight * discriminator, "generator": generator, "discriminator": discriminator,
            "replaced": 100 * replaced[1] / max(1, replaced[2]), "original": 100 * original[1] / max(1, original[2]),
        }  # fmt: skip

    return measure


def masked_scores(model: nn.Module, batches: Sequence[MaskedBatch]) -> dict[str, float]:
    """The scores of masked words and, if any, of pairs, by name."""
    return measure_words(by_row(measure_masked(model, batches)))


def replaced_scores(model: nn.Module, batches: Sequence[MaskedBatch], pad: int, weight: float) -> dict[str, float]:
    """The scores of a generator and a discriminator, whose loss has this weight, by name."""
    return measure_detection(weight)(by_row(measure_replaced(model, batches, pad)))


def _add_words(
    tally: Tally, states: Float[Tensor, "n width"], weights: tuple[Tensor, Tensor], batch: MaskedBatch
) -> None:
    rows = batch.positions // batch.tokens.shape[1]
    for part, *own in zip(states.split(CHUNK), rows.split(CHUNK), batch.expected.split(CHUNK), strict=True):
        _add_labels(tally, own[0], F.linear(part, *weights), own[1])


def _add_labels(tally: Tally, rows: Int[Tensor, " n"], logits: Float[Tensor, "n k"], labels: Int[Tensor, " n"]) -> None:
    known = labels >= 0
    logits, labels = logits[known].double(), labels[known]
    tally.add(rows[known], F.cross_entropy(logits, labels, reduction="none"), logits.argmax(dim=-1) == labels)
