"""Capabilities that a model class declares, so that faster code paths and products need not know the models."""

from torch import nn


def declares(model: nn.Module, capability: str) -> bool:
    """Whether the model's own class declares a capability. Declarations are not inherited, since a subclass may
    compute something else.
    """
    return capability in vars(type(model)).get("capabilities", ())
