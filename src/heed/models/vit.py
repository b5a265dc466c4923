"""ViT (Dosovitskiy et al., 2020): an image as a sequence of patches, read by a Transformer encoder."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from heed.config import from_data
from heed.models.encoder_decoder import check
from heed.models.system import System
from heed.nn.attention import Attention, record
from heed.nn.positions import sinusoids
from heed.nn.transformer import MLP, Layer, PreNorm, ScaledPreNorm, Stack, gelu_tanh

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"gelu": F.gelu, "gelu_tanh": gelu_tanh, "relu": F.relu}
PRESETS = {
    "tiny": {"dim": 192, "heads": 3, "hidden": 768, "layers": 12},
    "small": {"dim": 384, "heads": 6, "hidden": 1536, "layers": 12},
    "base": {"dim": 768, "heads": 12, "hidden": 3072, "layers": 12},
}


@dataclass(frozen=True)
class ViTConfig:
    labels: int = from_data()
    size: int = from_data(224)  # pixels each way of an image
    channels: int = from_data(3)
    patch: int = 16  # patch size in pixels
    dim: int = 192  # width of patches and layers
    heads: int = 3  # attention heads per layer
    hidden: int = 768  # width of the feed-forward networks
    layers: int = 12
    pooling: Literal["cls", "mean"] = "cls"  # input of the classifier: a class token, or the mean of all patches
    dropout: float = 0.0  # dropout of embeddings and sublayer outputs
    attention_dropout: float = 0.0  # dropout of attention weights
    path_dropout: float = 0.0  # stochastic depth: drop rate of the last layer, decreasing linearly to 0 at the first
    layer_scale: float = 0.0  # LayerScale: initial scale of each sublayer's output, learned per dimension; 0 is off
    activation: Literal["gelu", "gelu_tanh", "relu"] = "gelu"  # activation of the feed-forward networks
    qkv_bias: bool = True  # biases for queries, keys and values
    norm_eps: float = 1e-6  # epsilon of layer norm
    init_std: float = 0.02  # standard deviation of the initial weights
    init_positions: Literal["normal", "2d"] = "normal"  # 2d: learned positions start as sinusoids of row and column

    def __post_init__(self):
        if self.patch < 1:
            raise ValueError(f"patch is {self.patch}; it must be at least 1")
        check(self)
        if self.init_std <= 0:
            raise ValueError(f"init_std is {self.init_std:g}; it must be above 0")
        if self.size % self.patch:
            raise ValueError(
                f"images are {self.size} pixels wide, which is not a multiple of the patch size, {self.patch}: set "
                "model.patch or data.size"
            )
        if not 0 <= self.layer_scale < math.inf:
            raise ValueError(f"layer_scale is {self.layer_scale}; it must be 0 (off) or a number above 0")
        if self.channels not in (1, 3):
            raise ValueError(f"channels is {self.channels}; it must be 1 (grey) or 3")

    @property
    def max_length(self) -> int:
        """The number of positions: the patches of an image, and the class token."""
        return (self.size // self.patch) ** 2 + (self.pooling == "cls")


class ImageTrace(NamedTuple):
    """`states`: the input of the first layer and the output of each; `maps`: attentions (b, heads, q, k), one per layer.

    Without a head, `logits` are the image vectors.
    """

    states: list[Tensor]
    maps: list[Tensor]
    logits: Tensor


class ViT(nn.Module):
    """Patches by one convolution, learned positions, pre-norm layers, and a linear layer on the class token or the mean."""

    capabilities: ClassVar[tuple[str, ...]] = ("fused", "int8", "fp8")
    HEAD: ClassVar[tuple[str, ...]] = ("head.",)

    def __init__(self, config: ViTConfig):
        super().__init__()
        self.config = c = config
        self.patches = nn.Conv2d(c.channels, c.dim, c.patch, c.patch)
        self.first = nn.Parameter(torch.zeros(c.dim)) if c.pooling == "cls" else None
        self.positions = nn.Parameter(torch.zeros(c.max_length, c.dim))
        self.dropout = nn.Dropout(c.dropout)
        rates = [c.path_dropout * i / max(1, c.layers - 1) for i in range(c.layers)]
        self.stack = Stack([_layer(c, rate) for rate in rates], nn.LayerNorm(c.dim, eps=c.norm_eps))
        self.head = nn.Linear(c.dim, c.labels) if c.labels else None  # none: a body that is to be trained further
        self._initialize(c.init_std)
        if c.init_positions == "2d":
            self._place_patches()

    def classify_images(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b labels"]:
        return self.head(self.image_vectors(images))

    def image_vectors(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b dim"]:
        """The vector that is classified, one per image."""
        if self.first is None:
            return self.pool(self.image_states(images))
        return self._class_token(self.embed(images))

    def _class_token(self, x: Float[Tensor, "b t dim"]) -> Float[Tensor, "b dim"]:
        """The state of the class token only; the last layer skips the others."""
        *before, last = self.stack.layers
        for layer in before:
            x = layer(x)
        part = last.attention
        normed = part.norm(x)
        x = part.add(x[:, :1], part.body(normed[:, :1], normed))
        return self.stack.norm(last.mlp(x))[:, 0]

    def image_states(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b t dim"]:
        """The state of each patch, after that of the class token if there is one. Images may have another size than
        in training.
        """
        return self.stack(self.embed(images))

    def pool(self, states: Float[Tensor, "b t dim"]) -> Float[Tensor, "b dim"]:
        """One vector per image."""
        return states[:, 0] if self.first is not None else states.mean(dim=1)

    def embed(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b t dim"]:
        """The input of the first layer. The convolution does not overlap, so it is one matrix product."""
        rows, columns = (self._patches(side) for side in images.shape[2:])
        p = self.config.patch
        parts = (
            images.unflatten(2, (rows, p)).unflatten(4, (columns, p)).permute(0, 2, 4, 1, 3, 5)
        )  # b rows columns c p p
        x = F.linear(parts.flatten(3).flatten(1, 2), self.patches.weight.flatten(1), self.patches.bias)
        if self.first is not None:
            x = torch.cat([self.first.to(x.dtype).expand(len(x), 1, -1), x], dim=1)
        return self.dropout(x + self.positions_for(rows, columns))

    def positions_for(self, rows: int, columns: int) -> Float[Tensor, "t dim"]:
        """The learned positions, interpolated for images with another number of patches than in training."""
        own = self.config.size // self.config.patch
        if (rows, columns) == (own, own):
            return self.positions
        return interpolate(self.positions, own, rows, columns)

    def trace(self, images: Float[Tensor, "b c h w"]) -> ImageTrace:
        """All states and attentions of a pass."""
        states: list[Tensor] = []
        handles = [layer.register_forward_hook(lambda _, __, y: states.append(y)) for layer in self.stack.layers]
        try:
            with record(self) as maps:
                first = self.embed(images)
                pooled = self.pool(self.stack(first))
        finally:
            for handle in handles:
                handle.remove()
        return ImageTrace([first, *states], maps, pooled if self.head is None else self.head(pooled))

    def adapted(self, config: ViTConfig, renewed: Sequence[str] = ()) -> "ViT":
        """The same body for images of another size, with interpolated positions, and with a new head for other
        labels: another number of them, or with the head among `renewed`.
        """
        new, weights, c = type(self)(config).to(self.positions.dtype), self.state_dict(), self.config
        if config.channels != c.channels:
            raise ValueError(
                f"images have {config.channels} channels, but the model reads {c.channels}: set data.colours"
            )
        fresh = (*renewed, *(self.HEAD if config.labels != c.labels else ()))
        if fresh:
            weights = {name: own for name, own in weights.items() if not name.startswith(fresh)}
            weights |= {name: own for name, own in new.state_dict().items() if name.startswith(fresh)}
        if config.size != c.size:
            side = config.size // config.patch
            weights["positions"] = interpolate(weights["positions"], c.size // c.patch, side, side)
        new.load_state_dict(weights)
        return new

    def _patches(self, side: int) -> int:
        if side % self.config.patch or not side:
            raise ValueError(
                f"an image side has {side} pixels, which is not a multiple of the patch size, {self.config.patch}"
            )
        return side // self.config.patch

    @torch.no_grad()
    def _initialize(self, std: float) -> None:
        """Truncated normal within two deviations, zero biases; patch embeddings have norm one, however few pixels
        they have.
        """
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Conv2d):
                own = std if isinstance(module, nn.Linear) else module.weight[0].numel() ** -0.5
                nn.init.trunc_normal_(module.weight, 0.0, own, -2 * own, 2 * own)
                if module.bias is not None:
                    module.bias.zero_()
        for weight in (self.positions, self.first):
            if weight is not None:
                nn.init.trunc_normal_(weight, 0.0, std, -2 * std, 2 * std)

    @torch.no_grad()
    def _place_patches(self) -> None:
        """Half of each position tells the row, half the column: neighbours are alike from the first step."""
        side = self.config.size // self.config.patch
        axis = sinusoids(side, self.config.dim // 2).to(self.positions)
        rows, columns = axis[:, None].expand(-1, side, -1), axis[None].expand(side, -1, -1)
        grid = torch.cat([rows, columns], dim=-1).flatten(0, 1)
        self.positions[len(self.positions) - len(grid) :, : grid.shape[1]] = grid


def interpolate(positions: Float[Tensor, "t dim"], side: int, rows: int, columns: int) -> Float[Tensor, "n dim"]:
    """Learned positions of side × side patches resized to rows × columns, bicubic; that of the class token is
    unchanged.
    """
    first, grid = positions[: len(positions) - side * side], positions[len(positions) - side * side :]
    grid = grid.unflatten(0, (side, side)).permute(2, 0, 1)[None]
    grid = F.interpolate(grid, size=(rows, columns), mode="bicubic", align_corners=False)
    return torch.cat([first, grid[0].permute(1, 2, 0).flatten(0, 1)])


def _layer(c: Any, path_dropout: float) -> Layer:
    def within(body: nn.Module) -> nn.Module:
        norm = nn.LayerNorm(c.dim, eps=c.norm_eps)
        if c.layer_scale or c.path_dropout:
            return ScaledPreNorm(body, norm, c.dropout, path_dropout, c.layer_scale)
        return PreNorm(body, norm, c.dropout)

    attention = Attention(c.dim, c.heads, dropout=c.attention_dropout)
    if not c.qkv_bias:
        for part in (attention.q, attention.k, attention.v):
            part.bias = None
    return Layer(within(attention), within(MLP(c.dim, c.hidden, ACTIVATIONS[c.activation], c.dropout)))


SYSTEM = System(
    ViT,
    ViTConfig,
    PRESETS,
    "ViT",
    task="image-classification",
    growth=((1_000_000, "tiny"), (10_000_000, "small")),
)
