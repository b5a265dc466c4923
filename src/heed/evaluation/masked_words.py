"""Scores of masked language models: masked words, sentence pairs and replaced tokens."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from heed.data.pretraining import MaskedBatch

CHUNK = 2048  # positions whose logits are in memory at one time


@dataclass
class Tally:
    """Sums over batches: -log p, correct predictions, and counts."""

    nll: float = 0.0
    right: int = 0
    count: int = 0

    def add(self, nll: Any, right: Any, count: int) -> None:
        self.nll, self.right, self.count = self.nll + float(nll), self.right + int(right), self.count + int(count)

    @property
    def loss(self) -> float:
        return self.nll / max(1, self.count)

    @property
    def accuracy(self) -> float:
        """In per cent."""
        return 100 * self.right / max(1, self.count)


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
        hidden, weights, states = predict_hidden(model, batch)
        _add_words(words, hidden, weights, batch)
        if batch.labels is not None:
            _add_labels(pairs, model.classify_pair(states), batch.labels)
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
        states, weights, _ = predict_hidden(model, batch)
        _add_words(words, states, weights, batch)
        samples = torch.cat([sample_words(F.linear(part, *weights), drawn) for part in states.split(CHUNK)])
        before, after = batch.filled(batch.expected), batch.filled(samples)
        logits = model.detect_replaced(after, batch.valid, batch.segments)
        present = before != pad
        changed = (before != after) & present
        for tally, where in ((replaced, changed), (original, ~changed & present)):
            own, labels = logits[where].double(), changed[where].double()
            nll = F.binary_cross_entropy_with_logits(own, labels, reduction="sum")
            tally.add(nll, ((own > 0) == changed[where]).sum(), len(own))
    return words, replaced, original


def masked_scores(model: nn.Module, batches: Sequence[MaskedBatch]) -> dict[str, float]:
    """The scores of masked words and, if any, of pairs, by name."""
    words, pairs = measure_masked(model, batches)
    found = {"loss": words.loss, "accuracy": words.accuracy}
    return found | ({"pairs": pairs.accuracy} if pairs.count else {})


def replaced_scores(model: nn.Module, batches: Sequence[MaskedBatch], pad: int, weight: float) -> dict[str, float]:
    """The scores of a generator and a discriminator, whose loss has this weight, by name."""
    words, replaced, original = measure_replaced(model, batches, pad)
    discriminator = (replaced.nll + original.nll) / max(1, replaced.count + original.count)
    return {
        "loss": words.loss + weight * discriminator, "generator": words.loss, "discriminator": discriminator,
        "replaced": replaced.accuracy, "original": original.accuracy,
    }  # fmt: skip


def _add_words(
    tally: Tally, states: Float[Tensor, "n width"], weights: tuple[Tensor, Tensor], batch: MaskedBatch
) -> None:
    for part, expected in zip(states.split(CHUNK), batch.expected.split(CHUNK), strict=True):
        _add_labels(tally, F.linear(part, *weights), expected)


def _add_labels(tally: Tally, logits: Float[Tensor, "n k"], labels: Int[Tensor, " n"]) -> None:
    logits, labels = logits[labels >= 0].double(), labels[labels >= 0]
    nll = F.cross_entropy(logits, labels, reduction="sum") if len(labels) else 0.0
    tally.add(nll, (logits.argmax(dim=-1) == labels).sum(), len(labels))
