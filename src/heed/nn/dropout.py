"""Dropout for recurrent networks (Gal and Ghahramani, 2016; Merity et al., 2018)."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from heed.nn.recurrent import Recurrent


class VariationalDropout(nn.Module):
    """One dropout mask for all positions of a sequence."""

    def __init__(self, rate: float):
        super().__init__()
        self.rate = rate

    def forward(self, x: Float[Tensor, "b *positions dim"]) -> Float[Tensor, "b *positions dim"]:
        if not self.training or not self.rate:
            return x
        shape = (len(x), *[1] * (x.ndim - 2), x.shape[-1])
        return x * F.dropout(x.new_ones(shape), self.rate)


def embedding_dropout(rate: float | None, otherwise: float) -> nn.Module:
    """Variational dropout if its rate is set, else plain dropout with the rate `otherwise`."""
    return VariationalDropout(rate) if rate else nn.Dropout(otherwise if rate is None else 0.0)


def drops_whole_units(model: nn.Module) -> bool:
    """Whether a model has variational dropout, which drops a unit at all positions of a row."""
    return any(isinstance(part, VariationalDropout) and part.rate > 0 for part in model.modules())


def word_dropout(tokens: Int[Tensor, "b t"], vocab_size: int, rate: float) -> Float[Tensor, "b t 1"]:
    """Factors for embeddings that drop some words of the vocabulary at all their positions."""
    scale = F.dropout(torch.ones(vocab_size, device=tokens.device), rate)
    return scale[tokens][:, :, None]


class WordEmbedding(nn.Embedding):
    """A table of embeddings; in training some words are dropped at all their positions."""

    def __init__(self, vocab_size: int, dim: int, word_dropout: float = 0.0):
        super().__init__(vocab_size, dim)
        self.word_dropout = word_dropout

    def forward(self, tokens: Int[Tensor, "b t"]) -> Float[Tensor, "b t dim"]:
        x = super().forward(tokens)
        if not self.training or not self.word_dropout:
            return x
        return x * word_dropout(tokens, self.num_embeddings, self.word_dropout)


@contextmanager
def weight_dropout(net: Recurrent, rate: float) -> Iterator[None]:
    """Within this block recurrent weights are dropped: DropConnect that works with cuDNN."""
    if not net.training or not rate:
        yield
        return
    for layer in net.layers:
        layer._update_flat_weights()  # weights may have been replaced since the last pass
    originals = [layer._flat_weights for layer in net.layers]
    for layer in net.layers:
        pairs = zip(layer._flat_weights_names, layer._flat_weights, strict=True)
        layer._flat_weights = [F.dropout(w, rate) if name.startswith("weight_hh") else w for name, w in pairs]
    try:
        with warnings.catch_warnings():  # the dropped weights are new tensors, so they cannot be one chunk
            warnings.filterwarnings("ignore", message="RNN module weights are not part of single contiguous chunk")
            yield
    finally:
        for layer, weights in zip(net.layers, originals, strict=True):
            layer._flat_weights = weights
