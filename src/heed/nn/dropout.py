"""Dropout for networks that read one place after another (Gal and Ghahramani, 2016; Merity et al., 2018)."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from heed.nn.recurrent import Recurrent


class Locked(nn.Module):
    """The same part of every place of a sequence is left out."""

    def __init__(self, rate: float):
        super().__init__()
        self.rate = rate

    def forward(self, x: Float[Tensor, "b *places dim"]) -> Float[Tensor, "b *places dim"]:
        if not self.training or not self.rate:
            return x
        shape = (len(x), *[1] * (x.ndim - 2), x.shape[-1])
        return x * F.dropout(x.new_ones(shape), self.rate)


def whole_words(tokens: Int[Tensor, "b t"], size: int, rate: float) -> Float[Tensor, "b t 1"]:
    """What to multiply embeddings by, so that some words of the vocabulary are left out wherever they stand."""
    kept = F.dropout(torch.ones(size, device=tokens.device), rate)
    return kept[tokens][:, :, None]


@contextmanager
def forgetful(net: Recurrent, rate: float) -> Iterator[None]:
    """Inside this block a part of the weights that remember is left out: DropConnect, which cuDNN does not notice."""
    if not net.training or not rate:
        yield
        return
    for layer in net.layers:
        layer._update_flat_weights()  # where weights have been replaced since the last pass
    kept = [layer._flat_weights for layer in net.layers]
    for layer in net.layers:
        pairs = zip(layer._flat_weights_names, layer._flat_weights, strict=True)
        layer._flat_weights = [F.dropout(w, rate) if name.startswith("weight_hh") else w for name, w in pairs]
    try:
        with warnings.catch_warnings():  # the weights of this pass are new: they cannot lie end to end
            warnings.filterwarnings("ignore", message="RNN module weights are not part of single contiguous chunk")
            yield
    finally:
        for layer, weights in zip(net.layers, kept, strict=True):
            layer._flat_weights = weights
