"""One model out of several: the mean of their weights, or a mean that runs along with training."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from heed.models.folder import read_weights
from heed.training.shards import local

Weights = dict[str, Tensor]


def mean(paths: Sequence[Path]) -> Weights:
    """The mean of the weights in these files, one file in memory at a time."""
    total: Weights = {}
    kinds = {}
    for path in paths:
        weights = read_weights(path)
        if total and weights.keys() != total.keys():
            odd = sorted(weights.keys() ^ total.keys())[0]
            raise ValueError(f"{path} and {paths[0]} are of different models: only one of them has {odd}")
        for name, weight in weights.items():
            if name in total and total[name].shape != weight.shape:
                raise ValueError(
                    f"{path}: {name} has shape {tuple(weight.shape)}, in {paths[0]} {tuple(total[name].shape)}"
                )
            kinds[name] = weight.dtype
            total[name] = total[name] + weight.double() if name in total else weight.double()
    return {name: (weight / len(paths)).to(kinds[name]) for name, weight in total.items()}


class EMA:
    """An exponential moving average of the weights, quick at first."""

    def __init__(self, model: nn.Module, decay: float):
        self.decay = decay
        self.weights: Weights = {name: weight.detach().clone() for name, weight in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        decay = min(self.decay, (1 + step) / (10 + step))
        current = model.state_dict()
        own, new = [local(w) for w in self.weights.values()], [local(current[name]) for name in self.weights]
        torch._foreach_lerp_(own, new, 1 - decay)


@contextmanager
def swapped(model: nn.Module, weights: Weights) -> Iterator[None]:
    """Inside this block a model has other weights."""
    own = {name: weight.clone() for name, weight in model.state_dict().items()}
    model.load_state_dict(weights)
    try:
        yield
    finally:
        model.load_state_dict(own)
