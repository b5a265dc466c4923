"""The start of a GPU in another thread, while the corpus is prepared on the CPU."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec

import torch


@contextmanager
def starting(device: torch.device) -> Iterator[None]:
    """Meanwhile a thread starts a GPU; it has ended when the block has. Draws no random numbers."""
    thread = threading.Thread(target=_start, args=(device,), name="heed-gpu-start")
    if device.type == "cuda":
        thread.start()
    try:
        yield
    finally:
        if device.type == "cuda":
            thread.join()


def _start(device: torch.device) -> None:
    """Create the CUDA context, load cuBLAS, import the kernels and Triton with its compiler. Whatever fails here fails
    again in training, which reports it.
    """
    with suppress(Exception), torch.cuda.device(device):
        x = torch.ones(256, 256, dtype=torch.bfloat16, device=device)
        x @ x
        if find_spec("triton"):
            from heed.kernels import multi_tensor
            from heed.training.accelerated import captured_passes, cuda_graph_step  # noqa: F401

            multi_tensor.cast_copy(x.flatten(), torch.empty(x.numel(), device=device))
