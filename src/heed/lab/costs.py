"""What a layer costs: operations by formula and by counting, steps that must wait for each other, time and memory."""

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
class Kind:
    """A kind of layer over n places of width d: what it costs by formula, and how it is built.

    `table` and `exact` are the operations as the lecture notes' table has them and as multiplications of this very layer;
    `path` is the number of layers, of a recurrent one of steps, until the last place has heard of the first.
    """

    table: str
    exact: str
    operations: Callable[[int, int], int]
    steps: Callable[[int], int]
    path: Callable[[int], int]
    build: Callable[[int], nn.Module]


def _restricted(n: int, d: int) -> int:
    """Of a text not much longer than the window, all scores are computed and most are masked."""
    return 4 * n * d * d + 2 * n * d * (WINDOW if n > 4 * WINDOW else n)


KINDS = {
    "self-attention": Kind(
        "n² d",
        "4 n d² + 2 n² d",
        lambda n, d: 4 * n * d * d + 2 * n * n * d,
        lambda n: 1,
        lambda n: 1,
        lambda d: Attention(d, HEADS),
    ),
    "restricted": Kind(
        "r n d",
        f"4 n d² + 2 r n d, r = {WINDOW}",
        _restricted,
        lambda n: 1,
        lambda n: math.ceil((n - 1) / (WINDOW // 2)),
        lambda d: WindowedAttention(d, HEADS, WINDOW),
    ),
    "convolution": Kind(
        "k n d²",
        f"2 k n d², k = {KERNEL}",
        lambda n, d: 2 * KERNEL * n * d * d,
        lambda n: 1,
        lambda n: math.ceil((n - 1) / (KERNEL // 2)),
        lambda d: Convolution(d, KERNEL),
    ),
    "RNN": Kind(
        "n d²",
        "2 n d²",
        lambda n, d: 2 * n * d * d,
        lambda n: n,
        lambda n: n - 1,
        lambda d: RNN(d, d),
    ),
    "GRU": Kind(
        "n d²",
        "6 n d²",
        lambda n, d: 6 * n * d * d,
        lambda n: n,
        lambda n: n - 1,
        lambda d: GRU(d, d),
    ),
}


def say(layer: nn.Module, x: Tensor) -> Tensor:
    """What a layer makes of x."""
    return layer(x)[0] if isinstance(layer, Recurrent) else layer(x)


def count(layer: nn.Module, n: int, d: int) -> int:
    """The multiplications of one pass over n places, as torch counts them in matrix products."""
    with torch.no_grad(), FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        say(layer, torch.randn(1, n, d))  # by torch's plain attention: it does not know the operations of the fused one
    return counter.get_total_flops() // 2


def layers_between(build: Callable[[], nn.Module], n: int, d: int, most: int = 100) -> int:
    """How many such layers stand one upon another until the last place has heard of the first, by its gradient."""
    first = torch.randn(1, n, d, dtype=torch.float64, requires_grad=True)
    x = first
    for height in range(1, most + 1):
        x = say(build().double(), x)
        if torch.autograd.grad(x[0, -1].sum(), first, retain_graph=True)[0][0, 0].abs().max() > 0:
            return height
    raise ValueError(f"after {most} layers the last of {n} places has not heard of the first")


def kept(layer: nn.Module, x: Tensor, held: bool = False) -> int:
    """The bytes that a pass keeps for the way back, its weights aside; `held`: with the weights of all keys held."""
    own = {weight.data_ptr() for weight in layer.parameters()}
    found: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        if tensor.data_ptr() not in own:
            storage = tensor.untyped_storage()
            found[storage.data_ptr()] = storage.nbytes()
        return tensor

    backends = (
        [SDPBackend.MATH] if held else [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
    )
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor), sdpa_kernel(backends):
        result = say(layer, x)
    total = sum(found.values())
    del result  # while it lives, no address is given away twice
    return total


def seconds(layers: dict[str, nn.Module], x: Tensor, rounds: int) -> dict[str, float]:
    """How long a pass there and back takes: the median of rounds in which the layers take turns."""
    found: dict[str, list[float]] = {name: [] for name in layers}
    for number in range(rounds + 1):
        for name, layer in layers.items():
            took = _once(layer, x)
            if number:  # the first round warms up
                found[name].append(took)
    return {name: median(own) for name, own in found.items()}


def _once(layer: nn.Module, x: Tensor) -> float:
    x = x.detach().requires_grad_()
    _wait(x)
    before = perf_counter()
    say(layer, x).sum().backward()
    _wait(x)
    return perf_counter() - before


def _wait(x: Tensor) -> None:
    if x.is_cuda:
        torch.cuda.synchronize(x.device)
