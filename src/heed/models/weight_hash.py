"""Fingerprints of weights."""

import hashlib

import numpy as np
import torch
from torch import nn

COLUMNS = 251  # words that are summed apart


def hash_weights(model: nn.Module) -> str:
    """A hash of all weights."""
    digest = hashlib.sha256()
    for name, weight in model.state_dict().items():
        digest.update(name.encode())
        digest.update(_bytes(weight))
    return digest.hexdigest()


def known_hash(model: nn.Module) -> str:
    """The hash of the file that the weights were read from; of the weights themselves, which takes longer, if no
    file is known or they have changed since.
    """
    digest, sums = getattr(model, "weights_file", (None, None))
    return digest if digest is not None and sums == _sums(model) else hash_weights(model)


def note_file(model: nn.Module, digest: str) -> None:
    """Record the hash of the file that all weights of a model were just read from."""
    model.weights_file = (digest, _sums(model))


def _sums(model: nn.Module) -> str:
    """Sums that change with the weights, whatever changes them: torch does not count changes of `weight.data`. They
    are computed many times faster than a hash. The lines that are summed also have weights: rows that change places
    change the sums. Odd weights, as every changed word then changes them.
    """
    digest = hashlib.sha256()
    for name, weight in model.state_dict().items():
        own = _bytes(weight)
        whole = len(own) - len(own) % (8 * COLUMNS)
        digest.update(f"{name} {weight.dtype} {[*weight.shape]} ".encode())
        words = own[:whole].view(np.uint64).reshape(-1, COLUMNS)
        digest.update(words.sum(axis=0))
        digest.update(np.einsum("ij,i->j", words, np.arange(1, 2 * len(words), 2, dtype=np.uint64)))
        digest.update(own[whole:])
    return digest.hexdigest()


def _bytes(weight: torch.Tensor) -> np.ndarray:
    return weight.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
