"""Image Transformer (Parmar et al., 2018): generates an image value by value, with local attention to those before."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from heed.config import from_data
from heed.models.encoder_decoder import check
from heed.models.system import System
from heed.nn import init
from heed.nn.attention import Attention
from heed.nn.cache import StackCache
from heed.nn.local_pixels import PixelCache, PixelOrder, in_lines, in_squares
from heed.nn.pixel_context import Context
from heed.nn.pixel_outputs import LEVELS, Categorical, LogisticMixture
from heed.nn.transformer import MLP, Layer, PreNorm, Stack

PRESETS = {
    "tiny": {"dim": 128, "heads": 4, "hidden": 512, "layers": 4},
    "small": {"dim": 256, "heads": 4, "hidden": 1024, "layers": 8},
    "base": {"dim": 512, "heads": 8, "hidden": 2048, "layers": 12},
}
MOST_CONTEXT = 15  # rows and columns


@dataclass(frozen=True)
class ImageTransformerConfig:
    size: int = from_data(32)  # pixels each way of an image
    channels: int = from_data(3)
    labels: int = from_data()  # classes that it is told; 0: none
    small: int = from_data()  # pixels each way of a small image that it enlarges; 0: none
    output: Literal["logistic", "categorical"] = (
        "logistic"  # of a pixel a mixture of logistics, or of a channel 256 values
    )
    components: int = 10  # number of mixture components
    attention: Literal["1d", "2d"] = "1d"  # local attention over blocks of consecutive pixels, or over rectangles
    query_block: int = 256  # "1d": positions per query block
    memory_block: int = 512  # "1d": preceding positions a block attends to
    query_rows: int = 8  # "2d": rows per query block
    query_columns: int = 8
    memory_rows: int = 8  # "2d": rows above the block it attends to
    memory_columns: int = 8  # "2d": columns on either side
    context: int = 3  # a step also reads previous pixels up to this many rows and columns away; 0: the paper's model
    dim: int = 256  # width of layers
    heads: int = 4  # attention heads per layer
    hidden: int = 1024  # width of the feed-forward networks
    layers: int = 8
    small_layers: int = 4  # encoder layers for the small image, if task.enlarge is set
    dropout: float = 0.1  # dropout of embeddings and sublayer outputs
    norm_eps: float = 1e-6  # epsilon of layer norm
    init_std: float = 0.02  # standard deviation of the initial weights

    def __post_init__(self):
        check(self)
        if self.channels not in (1, 3):
            raise ValueError(f"channels is {self.channels}; it must be 1 (grey) or 3")
        if not 1 <= self.components <= 100:
            raise ValueError(f"components is {self.components}; it must be from 1 to 100")
        if self.context > MOST_CONTEXT:
            raise ValueError(f"context is {self.context}; it must be from 0 to {MOST_CONTEXT}")
        if self.small and (self.small >= self.size or self.size % self.small):
            raise ValueError(
                f"small is {self.small}; it must be smaller than the {self.size} pixels of a side and divide them, or be 0"
            )
        if self.attention == "1d" and (
            self.query_block < 1 or self.max_length % min(self.query_block, self.max_length)
        ):
            raise ValueError(
                f"query_block is {self.query_block}, which does not divide the {self.max_length} positions of an image"
            )
        for name in ("query_rows", "query_columns") if self.attention == "2d" else ():
            if getattr(self, name) < 1 or self.size % getattr(self, name):
                raise ValueError(
                    f"{name} is {getattr(self, name)}, which does not divide the {self.size} pixels of a side"
                )

    @property
    def values(self) -> int:
        """Positions per pixel."""
        return self.channels if self.output == "categorical" else 1

    @property
    def max_length(self) -> int:
        return self.size * self.size * self.values


class PixelState(NamedTuple):
    """The state of images being generated: the caches of all layers, the conditioning of each position, the values so
    far in generation order, and the small images that are enlarged.
    """

    caches: StackCache
    told: Tensor
    memory: Tensor | None
    values: Tensor
    small: Tensor | None


class ImageTransformer(nn.Module):
    """A decoder over pixels in generation order and, for super-resolution, an encoder over the pixels of a small
    image.
    """

    capabilities: ClassVar[tuple[str, ...]] = ("fused",)  # where each position sees all before it

    def __init__(self, config: ImageTransformerConfig):
        super().__init__()
        self.config = c = config
        self.turns = _order(c)
        logistic = c.output == "logistic"
        self.output = LogisticMixture(c.dim, c.channels, c.components) if logistic else Categorical(c.dim)
        self.pixels = nn.Embedding(LEVELS * c.channels, c.dim)
        self.rows, self.columns = nn.Embedding(c.size, c.dim), nn.Embedding(c.size, c.dim)
        self.channel = nn.Embedding(c.values, c.dim) if c.values > 1 else None
        self.first = nn.Parameter(torch.zeros(c.dim))  # in place of the pixel before the first
        self.context = Context(self.turns.order, c) if c.context and c.max_length > 1 else None
        self.classes = nn.Embedding(c.labels, c.dim) if c.labels else None
        self.dropout = nn.Dropout(c.dropout)
        self.stack = _stack(c, c.layers, cross=c.small > 0)
        self.small_rows, self.small_columns = (nn.Embedding(c.small, c.dim) if c.small else None for _ in range(2))
        self.encoder = _stack(c, c.small_layers, cross=False) if c.small else None
        init.normal(self, c.init_std)
        self.output.spread()
        if self.context is not None:
            self.context.initialize()

    def pixel_nll(
        self,
        images: UInt8[Tensor, "b h w c"],
        labels: Int[Tensor, " b"] | None = None,
        small: UInt8[Tensor, "b s s c"] | None = None,
    ) -> Float[Tensor, " b"]:
        """-log p of each image, in nats."""
        values = self.in_turn(images)
        states = self.pixel_states(images, labels, small)
        expected = None if self.context is None else self.context.expected(values.flatten(1), small)
        return self.output.nll(states, values, expected)

    def pixel_states(
        self, images: Tensor, labels: Tensor | None = None, small: Tensor | None = None
    ) -> Float[Tensor, "b t dim"]:
        """The state at each step, which predicts its values from those of the previous steps."""
        values = self.in_turn(images)
        before = self._embed(values[:, :-1])
        x = torch.cat([self.first.to(before.dtype).expand(len(images), 1, -1), before], dim=1)
        memory = self._memory(small)
        x = x + self._told(len(images), labels, memory)
        if self.context is not None:
            x = x + self.context.embed(values.flatten(1), small)
        return self._decode(self.dropout(x), memory)

    def _decode(self, x: Float[Tensor, "b t dim"], memory: Float[Tensor, "b n dim"] | None) -> Float[Tensor, "b t dim"]:
        mask = self.turns.mask
        return self.stack(x, memory, mask=mask, causal=mask is None)

    @property
    def draws(self) -> int:
        """How many random numbers each step needs."""
        return self.output.draws

    def in_turn(self, images: UInt8[Tensor, "b h w c"]) -> Int[Tensor, "b t k"]:
        """The values of images in generation order."""
        flat = images.long().flatten(1).view(len(images), self.config.max_length, -1)
        return flat.index_select(1, self.turns.order)

    def in_place(self, values: Int[Tensor, "b t k"]) -> UInt8[Tensor, "b h w c"]:
        """Values in generation order as images."""
        c = self.config
        return values.index_select(1, self.turns.turns).reshape(len(values), c.size, c.size, c.channels).to(torch.uint8)

    def start_images(self, rows: int, labels: Tensor | None = None, small: Tensor | None = None) -> PixelState:
        """The state before the first pixel, for a batch of images."""
        visible = self.turns.visible()
        caches = StackCache(len(self.stack.layers))
        for layer in caches:
            layer.attention = PixelCache(visible)
        memory = self._memory(small)
        values = torch.zeros(
            rows, self.config.size**2 * self.config.channels, dtype=torch.long, device=self.first.device
        )
        return PixelState(caches, self._told(rows, labels, memory), memory, values, small)

    def step_pixel(self, before: Int[Tensor, "b k"] | None, turn: int, state: PixelState) -> Float[Tensor, "b dim"]:
        """The state of a step, from the values of the previous step."""
        if before is None:
            x = self.first.expand(len(state.told), 1, -1)
        else:
            x, k = self._embed(before[:, None], turn - 1), before.shape[1]
            state.values[:, (turn - 1) * k : turn * k] = before
        x = x + state.told[:, turn : turn + 1]
        if self.context is not None:
            x = x + self.context.embed(state.values, state.small, slice(turn, turn + 1))
        return self.stack(x, state.memory, cache=state.caches)[:, 0]

    def sample_values(
        self,
        states: Float[Tensor, "b dim"],
        turn: int,
        state: PixelState,
        temperature: float,
        uniform: Float[Tensor, "b d"],
    ) -> Int[Tensor, "b k"]:
        """The values of a step at `uniform` numbers from 0 to 1; `step_pixel` returned its `states`."""
        turns, expected = slice(turn, turn + 1), None
        if self.context is not None:
            expected = self.context.expected(state.values, state.small, turns)
        return self.output.sample(states, temperature, uniform, None if expected is None else expected[:, 0])

    def _embed(self, values: Int[Tensor, "b t k"], first: int = 0) -> Float[Tensor, "b t dim"]:
        """The sum of the embeddings of the values of each step; every channel has its own."""
        k = values.shape[2]
        if k > 1 or self.config.channels == 1:
            return self.pixels(values + LEVELS * torch.arange(k, device=values.device)).sum(dim=2)
        channels = self.turns.order[first : first + values.shape[1]] % self.config.channels
        return self.pixels(values[..., 0] + LEVELS * channels)

    def _told(self, rows: int, labels: Tensor | None, memory: Tensor | None) -> Float[Tensor, "b t dim"]:
        """The conditioning of each position besides the values: its coordinates, the class of its image, and the small
        pixel that it belongs to.
        """
        c, order = self.config, self.turns.order
        pixel = order // c.values
        x = self.rows(pixel // c.size) + self.columns(pixel % c.size)
        x = x if self.channel is None else x + self.channel(order % c.values)
        if (self.classes is None) != (labels is None):
            raise ValueError("the model needs a class" if labels is None else "the model has no classes")
        x = x.expand(rows, -1, -1) if labels is None else x + self.classes(labels)[:, None]
        if memory is None:
            return x
        times = c.size // c.small
        small = memory.view(rows, c.small, 1, c.small, 1, 1, -1)
        each = small.expand(-1, -1, times, -1, times, c.values, -1).reshape(rows, c.max_length, -1)
        return x + each.index_select(1, order)

    def _memory(self, small: UInt8[Tensor, "b s s c"] | None) -> Float[Tensor, "b n dim"] | None:
        """The encoder output for small images."""
        if (self.encoder is None) != (small is None):
            raise ValueError(
                "the model needs small images to enlarge" if small is None else "the model does not enlarge images"
            )
        if small is None:
            return None
        values = small.long().flatten(1, 2)
        x = self.pixels(values + LEVELS * torch.arange(values.shape[2], device=values.device)).sum(dim=2)
        places = (self.small_rows.weight[:, None] + self.small_columns.weight[None]).flatten(0, 1)
        return self.encoder(self.dropout(x + places))


def _order(c: ImageTransformerConfig) -> PixelOrder:
    if c.attention == "1d":
        return in_lines(c.max_length, c.query_block, c.memory_block)
    return in_squares(c.size, c.values, (c.query_rows, c.query_columns), (c.memory_rows, c.memory_columns))


def _stack(c: Any, layers: int, cross: bool) -> Stack:
    def within(body: nn.Module) -> PreNorm:
        return PreNorm(body, nn.LayerNorm(c.dim, eps=c.norm_eps), c.dropout)

    def layer() -> Layer:
        other = within(Attention(c.dim, c.heads)) if cross else None
        return Layer(within(Attention(c.dim, c.heads)), within(MLP(c.dim, c.hidden, F.gelu)), other)

    return Stack([layer() for _ in range(layers)], nn.LayerNorm(c.dim, eps=c.norm_eps))


SYSTEM = System(
    ImageTransformer,
    ImageTransformerConfig,
    PRESETS,
    "Image Transformer",
    task="image-generation",
    growth=((20_000, "tiny"), (1_000_000, "small")),
)
