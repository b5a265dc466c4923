"""Work on a GPU, captured once as a CUDA graph and then launched by one call."""

from collections.abc import Callable
from contextlib import suppress

import torch


def capture(work: Callable[[], None], stream: torch.cuda.Stream, pool: tuple[int, int]) -> torch.cuda.CUDAGraph:
    """Capture `work`, after one run that compiles its kernels: new buffers contain nothing it could overwrite."""
    graph = torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream(stream.device))
    with torch.cuda.stream(stream):
        work()
        try:  # a signal may interrupt a validation anywhere, and the run then still writes a checkpoint
            graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            work()
            graph.capture_end()
        except BaseException:
            with suppress(RuntimeError):
                graph.capture_end()
            raise
    torch.cuda.current_stream(stream.device).wait_stream(stream)
    return graph
