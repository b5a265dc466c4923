"""What a model's own class declares that it can do."""

from torch import nn


def declares(model: nn.Module, capability: str) -> bool:
    """Whether the model's own class declares a capability. Declarations are not inherited: a subclass may compute something else."""
    return capability in vars(type(model)).get("capabilities", ())
