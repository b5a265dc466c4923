"""The device that a model runs on."""

import os
from functools import partial

import torch

if hasattr(os, "register_at_fork"):  # the threads of OpenMP are not in a child, which would wait for them for ever
    os.register_at_fork(after_in_child=partial(torch.set_num_threads, 1))


def choose_device(name: str) -> torch.device:
    """A device by name; "auto" is a GPU if available."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"device is {name!r}; it must be auto, cpu or cuda (cuda:1 for the second GPU)") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device is {name!r}, but torch finds no GPU; use --device cpu")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"device is {name!r}, but torch finds {torch.cuda.device_count()}, counted from cuda:0")
    # cuDNN's attention plans each new shape, and text has many: 142 ms a step instead of 32
    torch.backends.cuda.enable_cudnn_sdp(False)
    return device
