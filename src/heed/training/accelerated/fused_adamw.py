"""Like torch's fused AdamW, but with concatenated, rounded gradients, without a float32 copy of them.

The moments and step counts stay in the optimizer, so checkpoints are the same.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.optim import AdamW, Optimizer

from heed.kernels import multi_tensor


def supports(optimizer: Optimizer, weights: Sequence[Tensor]) -> bool:
    """Whether it is an AdamW of exactly these weights, in one group, that has made its first step."""
    if not isinstance(optimizer, AdamW) or len(optimizer.param_groups) != 1:
        return False
    (group,) = optimizer.param_groups
    plain = not (group["amsgrad"] or group["maximize"] or isinstance(group["lr"], Tensor))
    trained = {id(weight) for weight in group["params"] if weight.requires_grad}
    return (
        plain
        and trained == {id(weight) for weight in weights}
        and all("exp_avg" in optimizer.state.get(weight, ()) for weight in weights)
    )


class FusedAdamW:
    """A step of AdamW. The gradients of the first `number` weights are the first tensor, the others the second."""

    def __init__(self, optimizer: AdamW, weights: Sequence[Tensor], gradients: tuple[Tensor, Tensor], number: int):
        self.optimizer, self.weights = optimizer, list(weights)
        self.states = [optimizer.state[weight] for weight in weights]
        self.moments = [[state[name] for state in self.states] for name in ("exp_avg", "exp_avg_sq")]
        self.slices = slice(number), slice(number, None)
        self.parts = [
            multi_tensor.Adam(
                [weight.detach() for weight in weights[part]], *(moment[part] for moment in self.moments), flat
            )
            for part, flat in zip(self.slices, gradients, strict=True)
        ]
        (group,) = optimizer.param_groups
        self.betas = tuple(group["betas"])
        self.beta_tensor = torch.tensor(self.betas, dtype=torch.float64, device=gradients[0].device)

    def current(self, optimizer: Optimizer) -> bool:
        """Whether the optimizer still has the same state tensors: loading a checkpoint replaces them."""
        if self.optimizer is not optimizer or tuple(optimizer.param_groups[0]["betas"]) != self.betas:
            return False
        return all(
            optimizer.state[weight] is state and state["exp_avg"] is first and state["exp_avg_sq"] is second
            for weight, state, first, second in zip(self.weights, self.states, *self.moments, strict=True)
        )

    def __call__(self, squares: Tensor, count: int | Tensor, clip: float) -> Tensor:
        """Step with gradients that are sums over `count`, clipped to a norm of `clip` (0: off); returns the norm of
        the mean.
        """
        (group,) = self.optimizer.param_groups
        norm = squares.sqrt() / count
        factor = (clip / (norm + 1e-6)).clamp(max=1) / count if clip else torch.ones_like(norm) / count
        steps = [state["step"] for state in self.states]
        torch._foreach_add_(steps, 1)
        corrections = (1 - self.beta_tensor ** torch.stack(steps).to(self.beta_tensor)[:, None]).float()
        options = {"decay": float(group["weight_decay"]), "betas": group["betas"], "eps": group["eps"]}
        for part, rows in zip(self.parts, self.slices, strict=True):
            part(factor.float(), corrections[rows], rate=float(group["lr"]), **options)
        return norm
