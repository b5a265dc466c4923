"""Initial weights, written out.

The paper (Vaswani et al., 2017) leaves them to its code: matrices by Glorot's uniform rule, so that
a layer keeps the size of what passes through it; embeddings from N(0, 1/dim), so that times √dim
they are of size one, the size of the sinusoids that are added to them; biases zero, norms one.

Marian, BART and Pegasus, as Hugging Face has them, draw everything from one narrow N(0, 0.02).
"""

import math

import torch
from torch import nn


@torch.no_grad()
def vaswani(model: nn.Module, dim: int, generator: torch.Generator | None = None) -> None:
    """Draw all weights of `model` anew."""
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
    """Draw all weights of `model` anew. The row of the padding is drawn like any other (Hugging Face zeroes it)."""
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            module.weight.normal_(0.0, std, generator=generator)
        elif isinstance(module, nn.LayerNorm):
            module.weight.fill_(1.0)
        if isinstance(module, nn.Linear | nn.LayerNorm) and module.bias is not None:
            module.bias.zero_()
