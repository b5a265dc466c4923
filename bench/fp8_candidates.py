"""The parts of one encoder layer of bench/fp8_images.py: in bfloat16 as now, and in e4m3 in every way that could be faster."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bench import fp8_kernels
from bench.fp8_layers import How, Product, Rows, quantize
from heed.kernels import fused_model, linear, residual_norm

SAMPLE = 128  # rows at the beginning, and as many at the end, that are compared with float32


@dataclass
class Candidate:
    """`how` is None for what is there already. `keep` is told the fastest way so far."""

    part: str
    name: str
    run: Callable[[], Any]
    wanted: Tensor
    how: Any = None
    prepare: Callable[[], None] = lambda: None
    keep: Callable[[Any], None] | None = None

    def error(self) -> float:
        """The length of the difference from float32, relative to the length of the result."""
        found = self.run()
        found = found if isinstance(found, Rows | Tensor) else found[-1]
        if isinstance(found, Rows):
            found = Rows(sample(found.values), sample(found.scale))
            exact = found.values.float() * found.scale
        else:
            exact = sample(found).float()
        return float((exact - self.wanted).norm() / self.wanted.norm())


def sample(x: Tensor) -> Tensor:
    return torch.cat([x[:SAMPLE], x[-SAMPLE:]])


def gelu(x: Tensor) -> Tensor:
    return F.gelu(x, approximate="tanh")


def title(how: How) -> str:
    if how.tile is None:
        return "cuBLAS" if how.fast else "cuBLAS, exact sums"
    m, n, k, stages, warps, each, approximate = how.tile
    more = ", tanh of 11 bits" if approximate else ""
    return f"Triton {m} × {n} × {k}, {stages} stages, {warps} warps, {each or 'all'} programs{more}"


class LayerData:
    """A layer with random weights, and what its parts read."""

    def __init__(self, shape: Any, images: int, device: torch.device):
        dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        layer = fused_model.half_precision_copy(shape.model().to(device), dtype).stack.layers[0]
        self.attention, self.mlp, self.norm = layer.attention.body, layer.mlp.body, layer.mlp.norm
        rows = images * ((shape.size // shape.patch) ** 2 + 1)
        draw = lambda *size: torch.randn(*size, device=device, dtype=dtype)  # noqa: E731
        self.x, self.y, self.pre = draw(rows, shape.dim), draw(rows, shape.dim), draw(rows, shape.hidden)
        self.hidden = gelu(self.pre)

    def launches(self) -> Iterator[Candidate]:
        """The kernels that write e4m3, and the sum and norm in bfloat16."""
        x, y, norm, bias = self.x, self.y, self.norm, self.mlp.down.bias
        total = (sample(x).float() + sample(y).float() + bias.float()).to(x.dtype).float()
        normed = F.layer_norm(total, norm.normalized_shape, norm.weight.float(), norm.bias.float(), norm.eps)
        yield Candidate("sum and norm", "bfloat16", lambda: residual_norm.add_norm(x, y, bias, norm, share=True), normed)  # fmt: skip

        def normalize(bound: tuple[float, float] | None = None) -> Rows:
            return Rows(*fp8_kernels.norm_to_fp8(x, norm, (y, bias), bound)[1:])

        yield from launches("sum and norm", "norm", fp8_kernels.NORMS, normalize, normed)
        yield Candidate("sum and norm", "e4m3, with a bound", lambda: normalize((1.0, 1.0)), normed)
        yield from launches("rows to e4m3", "quantize", fp8_kernels.QUANTIZERS, lambda: quantize(x), sample(x).float())
        active = gelu(sample(self.pre).float())
        run = lambda: quantize(self.pre, gelu=True)  # noqa: E731
        yield from launches("GELU to e4m3", "activate", fp8_kernels.ACTIVATORS, run, active)

    def products(self, hows: Sequence[How]) -> list[Iterator[Candidate]]:
        """Each in bfloat16, in all these ways, and without scales, which would be left to what reads the product."""
        body, up, down = self.attention, self.mlp.up, self.mlp.down
        triple, cublas = [body.q, body.k, body.v], [own for own in hows if own.tile is None]
        tiles = [own for own in hows if own.tile is not None and not own.tile.approximate]
        out = partial(linear.linear_without_bias, self.x, body.out)
        plain = lambda: torch.addmm(up.bias, self.x, up.weight.T)  # noqa: E731
        return [
            self._product("qkv", triple, self.x, lambda: linear.linear(self.x, *triple)[0], [*cublas, *tiles]),
            self._product("out", [body.out], self.x, out, cublas, False),
            self._product("up", [up], self.x, plain, cublas),
            self._with_gelu([own for own in hows if own.tile is not None]),
            self._product("down", [down], self.hidden, partial(linear.linear_without_bias, self.hidden, down), [*cublas, *tiles], False),
        ]  # fmt: skip

    def _product(
        self, part: str, layers: list[Any], x: Tensor, now: Callable[[], Any], hows: Sequence[How], bias: bool = True
    ) -> Iterator[Candidate]:
        weight, rows = torch.cat([own.weight for own in layers]).float(), quantize(x)
        wanted = sample(x).float() @ weight.T
        if bias:
            wanted = wanted + torch.cat([own.bias for own in layers]).float()
        yield Candidate(part, "bfloat16", now, wanted)
        for how in hows:
            run = partial(Product(layers, how), rows, bias)
            yield Candidate(part, title(how), run, wanted, how)
        if x.is_cuda and How() in hows:
            one, made = torch.ones((), device=x.device), Product(layers, How())
            raw = (sample(rows.values).float() @ made.values.float().T).to(x.dtype).float()
            run = lambda: torch._scaled_mm(rows.values, made.values.T, one, one, out_dtype=x.dtype, use_fast_accum=True)  # noqa: E731
            yield Candidate(part, "cuBLAS, without scales", run, raw)

    def _with_gelu(self, hows: Sequence[How]) -> Iterator[Candidate]:
        up, part = self.mlp.up, "up with GELU"
        wanted = gelu(sample(self.x).float() @ up.weight.float().T + up.bias.float())
        yield Candidate(part, "bfloat16", lambda: linear.linear_activation(self.x, up, linear.GELU_TANH)[0], wanted)
        rows = quantize(self.x)
        for how in hows:
            made = Product([up], how)
            a, b = made.limits()
            bound = (a * self.x.float().norm(dim=1, keepdim=True) + b) / fp8_kernels.LARGEST
            yield Candidate(part, title(how), partial(made.with_gelu, rows), wanted, how)
            run = partial(made.with_gelu, rows._replace(bound=bound))
            yield Candidate(f"{part}, to e4m3", title(how), run, wanted, how)


def launches(part: str, name: str, every: Sequence[Any], run: Callable[[], Any], wanted: Tensor) -> Iterator[Candidate]:
    def use(launch: Any) -> None:
        if launch is not None:
            fp8_kernels.LAUNCH[name] = launch

    for launch in every:
        said = f"e4m3, {launch.rows} rows, {launch.warps} warps{', tanh of 11 bits' if launch.approximate else ''}"
        yield Candidate(part, said, run, wanted, launch, partial(use, launch), use)
