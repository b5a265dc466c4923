"""A step of AdamW by gradients that lie end to end, rounded: what torch's fused one does, without them in float32 first.

The moments and the number of steps stay the optimizer's own, so checkpoints are the same.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.optim import AdamW, Optimizer

from heed.kernels import multi_tensor


def supports(optimizer: Optimizer, weights: Sequence[Tensor]) -> bool:
    """Whether it is an AdamW of these weights and no more, of one group, that has made its first step."""
    if type(optimizer) is not AdamW or len(optimizer.param_groups) != 1:
        return False
    (group,) = optimizer.param_groups
    plain = not (group["amsgrad"] or group["maximize"] or isinstance(group["lr"], Tensor))
    learned = {id(weight) for weight in group["params"] if weight.requires_grad}
    return (
        plain
        and learned == {id(weight) for weight in weights}
        and all("exp_avg" in optimizer.state.get(own, ()) for own in weights)
    )


class Step:
    """The first `number` weights have their gradients in the first of `found`, the others in the second."""

    def __init__(self, optimizer: AdamW, weights: Sequence[Tensor], found: tuple[Tensor, Tensor], number: int):
        self.optimizer, self.weights = optimizer, list(weights)
        self.states = [optimizer.state[own] for own in weights]
        self.moments = [[state[name] for state in self.states] for name in ("exp_avg", "exp_avg_sq")]
        self.slices = slice(number), slice(number, None)
        self.parts = [
            multi_tensor.Adam(
                [own.detach() for own in weights[part]], *(moment[part] for moment in self.moments), slopes
            )
            for part, slopes in zip(self.slices, found, strict=True)
        ]
        (group,) = optimizer.param_groups
        self.broadcast = tuple(group["betas"])
        self.betas = torch.tensor(self.broadcast, dtype=torch.float64, device=found[0].device)

    def current(self, optimizer: Optimizer) -> bool:
        """Whether the moments are still those that it knows: a checkpoint brings others."""
        if self.optimizer is not optimizer or tuple(optimizer.param_groups[0]["betas"]) != self.broadcast:
            return False
        return all(
            optimizer.state[own] is state and state["exp_avg"] is first and state["exp_avg_sq"] is second
            for own, state, first, second in zip(self.weights, self.states, *self.moments, strict=True)
        )

    def __call__(self, squares: Tensor, count: int | Tensor, clip: float) -> Tensor:
        """By gradients that are sums over `count`, of which no more than `clip` (0: as they are); how large their mean was."""
        (group,) = self.optimizer.param_groups
        size = squares.sqrt() / count
        factor = (clip / (size + 1e-6)).clamp(max=1) / count if clip else torch.ones_like(size) / count
        steps = [state["step"] for state in self.states]
        torch._foreach_add_(steps, 1)
        there = (1 - self.betas ** torch.stack(steps).to(self.betas)[:, None]).float()  # of each weight's moments
        rest = {"decay": float(group["weight_decay"]), "betas": group["betas"], "eps": group["eps"]}
        for part, own in zip(self.parts, self.slices, strict=True):
            part(factor.float(), there[own], rate=float(group["lr"]), **rest)
        return size
