"""Weight initialization.

The code of Vaswani et al. (2017) draws matrices by Glorot's uniform rule, which keeps the variance of
activations; embeddings from N(0, 1/dim), so that times √dim they have the size of the sinusoids added
to them; biases are zero, norms one.

Marian, BART and Pegasus draw everything from N(0, 0.02), as in Hugging Face.
"""

import math

import torch
from torch import nn

from heed.nn.attention import Attention
from heed.nn.positions import Learned, sinusoids

SELF_SCORE = (
    2.5  # a token with itself, at the start: with 128 tokens, its neighbours then have several times the average weight
)


@torch.no_grad()
def vaswani(model: nn.Module, dim: int, generator: torch.Generator | None = None) -> None:
    """Initialize all weights of `model` as in the original Transformer."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            bound = math.sqrt(6.0 / (module.in_features + module.out_features))
            module.weight.uniform_(-bound, bound, generator=generator)
            if module.bias is not None:
                module.bias.zero_()
        elif isinstance(module, nn.Embedding):
            module.weight.normal_(0.0, dim**-0.5, generator=generator)
        elif isinstance(module, nn.LayerNorm):
            module.weight.fill_(1.0)
            module.bias.zero_()


@torch.no_grad()
def normal(model: nn.Module, std: float, generator: torch.Generator | None = None) -> None:
    """Initialize all weights of `model` from N(0, std²), including the padding row (Hugging Face zeroes it)."""
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            module.weight.normal_(0.0, std, generator=generator)
        elif isinstance(module, nn.LayerNorm):
            module.weight.fill_(1.0)
        if isinstance(module, nn.Linear | nn.LayerNorm) and module.bias is not None:
            module.bias.zero_()


@torch.no_grad()
def sinusoidal(positions: Learned, std: float) -> None:
    """Start learned positions as sinusoids of this size, so that near positions are alike and a matrix can shift them."""
    rows = positions.places.weight[positions.offset :]
    rows.copy_(sinusoids(*rows.shape) * (std * math.sqrt(2)))


@torch.no_grad()
def keys_as_queries(model: nn.Module) -> None:
    """Start each key matrix equal to the query matrix, so that similar and near tokens attend to each other (as in Trockman and Kolter, 2023)."""
    for module in model.modules():
        if isinstance(module, Attention):
            module.q.weight.normal_(0.0, math.sqrt(SELF_SCORE / (module.q.in_features * math.sqrt(module.width))))
            module.k.weight.copy_(module.q.weight)
