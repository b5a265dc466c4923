"""What a layer costs: operations by formula and by counting, sequential steps, time and memory."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from heed.nn.attention import Attention
from heed.nn.local import Convolution, WindowedAttention
from heed.nn.recurrent import GRU, RNN, Recurrent

HEADS, WINDOW, KERNEL = 4, 15, 3


@dataclass(frozen=True)
class LayerKind:
    """A kind of layer over n positions of size d: its costs by formula, and how to build it.

    `table` and `exact` are the operations as in the table of the lecture notes, and as the multiplications of our layer;
    `path` is the number of layers (of a recurrent layer: steps) until information from the first position reaches the last.
    """

    table: str
    exact: str
    operations: Callable[[int, int], int]
    build: Callable[[int], nn.Module]
    path: Callable[[int], int]
    steps: Callable[[int], int] = lambda n: 1


def _restricted(n: int, d: int) -> int:
    """For texts not much longer than the window, the layer computes all scores and masks most of them."""
    return 4 * n * d * d + 2 * n * d * (WINDOW if n > 4 * WINDOW else n)


LAYERS = {
    "self-attention": LayerKind(
        "n² d", "4 n d² + 2 n² d", lambda n, d: 4 * n * d * d + 2 * n * n * d,
        lambda d: Attention(d, HEADS), lambda n: 1,
    ),
    "restricted": LayerKind(
        "r n d", f"4 n d² + 2 r n d, r = {WINDOW}", _restricted,
        lambda d: WindowedAttention(d, HEADS, WINDOW), lambda n: math.ceil((n - 1) / (WINDOW // 2)),
    ),
    "convolution": LayerKind(
        "k n d²", f"2 k n d², k = {KERNEL}", lambda n, d: 2 * KERNEL * n * d * d,
        lambda d: Convolution(d, KERNEL), lambda n: math.ceil((n - 1) / (KERNEL // 2)),
    ),
    "RNN": LayerKind("n d²", "2 n d²", lambda n, d: 2 * n * d * d, lambda d: RNN(d, d), lambda n: n - 1, lambda n: n),
    "GRU": LayerKind("n d²", "6 n d²", lambda n, d: 6 * n * d * d, lambda d: GRU(d, d), lambda n: n - 1, lambda n: n),
}  # fmt: skip


def forward(layer: nn.Module, x: Tensor) -> Tensor:
    """The output of a layer, without the state of a recurrent one."""
    return layer(x)[0] if isinstance(layer, Recurrent) else layer(x)


def multiplications(layer: nn.Module, n: int, d: int) -> int:
    """The multiplications of one forward pass over n positions, as torch counts them in matrix products."""
    with torch.no_grad(), FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        forward(layer, torch.randn(1, n, d))  # with plain attention: torch cannot count fused kernels
    return counter.get_total_flops() // 2


def layers_until_connected(build: Callable[[], nn.Module], n: int, d: int, most: int = 100) -> int:
    """How many such layers must be stacked until the last position has a gradient at the first."""
    first = torch.randn(1, n, d, dtype=torch.float64, requires_grad=True)
    x = first
    for depth in range(1, most + 1):
        x = forward(build().double(), x)
        if torch.autograd.grad(x[0, -1].sum(), first, retain_graph=True)[0][0, 0].abs().max() > 0:
            return depth
    raise ValueError(f"after {most} layers the last of {n} positions does not depend on the first")


def saved_bytes(layer: nn.Module, x: Tensor, full_weights: bool = False) -> int:
    """The bytes saved for the backward pass, without parameters; `full_weights`: with those of all pairs, unfused."""
    parameters = {weight.data_ptr() for weight in layer.parameters()}
    sizes: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        if tensor.data_ptr() not in parameters:
            storage = tensor.untyped_storage()
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    fused = [] if full_weights else [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor), sdpa_kernel([*fused, SDPBackend.MATH]):
        result = forward(layer, x)
    total = sum(sizes.values())
    del result  # until here it kept the tensors alive, so no address was used twice
    return total


def time_layers(layers: dict[str, nn.Module], x: Tensor, rounds: int) -> dict[str, float]:
    """Seconds of a forward and backward pass: the median over rounds in which the layers take turns."""
    times: dict[str, list[float]] = {name: [] for name in layers}
    for number in range(rounds + 1):
        for name, layer in layers.items():
            took = _time_once(layer, x)
            if number:  # the first round warms up
                times[name].append(took)
    return {name: median(values) for name, values in times.items()}


def _time_once(layer: nn.Module, x: Tensor) -> float:
    x = x.detach().requires_grad_()
    _wait(x)
    before = perf_counter()
    forward(layer, x).sum().backward()
    _wait(x)
    return perf_counter() - before


def _wait(x: Tensor) -> None:
    if x.is_cuda:
        torch.cuda.synchronize(x.device)
