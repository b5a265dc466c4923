"""A fingerprint of weights."""

import hashlib

import torch
from torch import nn


def hash_weights(model: nn.Module) -> str:
    """A hash of all weights."""
    digest = hashlib.sha256()
    for name, weight in model.state_dict().items():
        digest.update(name.encode())
        digest.update(weight.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()
