"""Weight averaging: the mean of several models, or an exponential moving average during training."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from heed.models.folder import read_weights
from heed.training.shards import local

Weights = dict[str, Tensor]


def mean(paths: Sequence[Path], read: Callable[[Path], Weights] = read_weights) -> Weights:
    """The mean of the weights that `read` finds at these paths, with one of them in memory at a time."""
    total: Weights = {}
    dtypes = {}
    for path in paths:
        weights = read(path)
        if total and weights.keys() != total.keys():
            extra = sorted(weights.keys() ^ total.keys())[0]
            raise ValueError(f"{path} and {paths[0]} belong to different models: only one of them has {extra}")
        for name, weight in weights.items():
            if name in total and total[name].shape != weight.shape:
                raise ValueError(
                    f"{path}: {name} has shape {tuple(weight.shape)}, in {paths[0]} {tuple(total[name].shape)}"
                )
            dtypes[name] = weight.dtype
            total[name] = total[name] + weight.double() if name in total else weight.double()
    return {name: (weight / len(paths)).to(dtypes[name]) for name, weight in total.items()}


class EMA:
    """An exponential moving average of the weights; the decay is smaller in the first steps, so that it warms up."""

    def __init__(self, model: nn.Module, decay: float):
        self.decay = decay
        self.weights: Weights = {name: weight.detach().clone() for name, weight in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        decay = min(self.decay, (1 + step) / (10 + step))
        state = model.state_dict()
        averages, current = [local(w) for w in self.weights.values()], [local(state[name]) for name in self.weights]
        torch._foreach_lerp_(averages, current, 1 - decay)


@contextmanager
def temporary_weights(model: nn.Module, weights: Weights) -> Iterator[None]:
    """Run the block with other weights in the model, then restore its own."""
    original = {name: weight.clone() for name, weight in model.state_dict().items()}
    model.load_state_dict(weights)
    try:
        yield
    finally:
        model.load_state_dict(original)
