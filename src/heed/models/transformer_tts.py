"""Transformer TTS (Li et al., 2019): an encoder reads a text, a decoder generates its spectrogram frame by frame. It
uses layer norm instead of the paper's batch norm, so that padding and the rest of the batch do not matter.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.config import from_data
from heed.models.encoder_decoder import check, layer
from heed.models.system import System
from heed.nn import init, masks
from heed.nn.attention import record
from heed.nn.cache import DecoderState, StackCache
from heed.nn.positions import Sinusoidal
from heed.nn.transformer import PreNorm, Stack

KERNEL = 5  # positions that a convolution of a pre-net or the post-net sees
GUIDED = 2  # layers, the last, and heads of each whose attention is guided


@dataclass(frozen=True)
class TransformerTTSConfig:
    vocab_size: int = from_data()
    outputs: int = from_data()
    speakers: int = from_data(1)
    dim: int = 256  # width of layers
    heads: int = 4  # attention heads per layer
    hidden: int = 1024  # width of the feed-forward network
    encoder_layers: int = 4
    decoder_layers: int = 4
    reduction: int = 2  # frames generated per step; the paper uses 1
    prenet: int = 256  # width of the decoder's pre-net
    prenet_dropout: float = 0.5  # pre-net dropout, so that the decoder relies on the text more than on past frames
    postnet: int = 256  # channels of the post-net
    postnet_layers: int = 5
    max_length: int = 4096  # maximum number of text tokens and of decoder steps
    dropout: float = 0.1  # dropout of embeddings and sublayer outputs
    attention_dropout: float = 0.0  # dropout of attention weights
    hidden_dropout: float = 0.1  # dropout inside the feed-forward network
    norm_eps: float = 1e-5  # epsilon of layer norm

    def __post_init__(self):
        check(self)
        for name in ("reduction", "prenet", "postnet", "postnet_layers"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")


PRESETS = {
    "tiny": {"dim": 128, "heads": 4, "hidden": 512, "encoder_layers": 3, "decoder_layers": 3, "prenet": 128, "postnet": 128},
    "small": {"dim": 256, "heads": 4, "hidden": 1024, "encoder_layers": 4, "decoder_layers": 4},
    "base": {"dim": 512, "heads": 8, "hidden": 2048, "encoder_layers": 6, "decoder_layers": 6},
}  # fmt: skip


class Spoken(NamedTuple):
    """Frames before and after the post-net (b, t, outputs), the stop logit at each step, and the guided attentions,
    one (b, heads, steps, tokens) per layer.
    """

    coarse: Tensor
    fine: Tensor
    ends: Tensor
    attentions: list[Tensor]


class Convolutions(nn.Module):
    """Convolutions along time, with norms, `activation` and dropout after each; with `linear_last` not after the last."""

    def __init__(self, sizes: list[int], activation, dropout: float, linear_last: bool):
        super().__init__()
        pairs = list(pairwise(sizes))
        self.layers = nn.ModuleList(nn.Conv1d(one, other, KERNEL, padding=KERNEL // 2) for one, other in pairs)
        self.norms = nn.ModuleList(nn.LayerNorm(size) for size in sizes[1 : -1 if linear_last else None])
        self.activation, self.dropout = activation, nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "b t c"], valid: Bool[Tensor, "b t"]) -> Float[Tensor, "b t d"]:
        keep = valid[..., None]
        for i, conv in enumerate(self.layers):
            x = conv((x * keep).mT).mT
            if i < len(self.norms):
                x = self.dropout(self.activation(self.norms[i](x)))
        return x


class TransformerTTS(nn.Module):
    """Tokens and a speaker in; spectrogram frames and the stop logits out."""

    def __init__(self, config: TransformerTTSConfig):
        super().__init__()
        self.config = c = config
        self.tokens = nn.Embedding(c.vocab_size, c.dim)
        self.speakers = nn.Embedding(c.speakers, c.dim) if c.speakers > 1 else None
        self.encoder_prenet = Convolutions([c.dim] * 4, F.relu, c.dropout, linear_last=False)
        self.encoder_in = nn.Linear(c.dim, c.dim)
        self.decoder_prenet = nn.ModuleList([nn.Linear(c.outputs, c.prenet), nn.Linear(c.prenet, c.prenet)])
        self.decoder_in = nn.Linear(c.prenet, c.dim)
        self.positions = Sinusoidal(c.max_length, c.dim)
        self.scales = nn.Parameter(torch.ones(2))  # of the positions of the encoder and the decoder
        self.dropout, self.prenet_dropout = nn.Dropout(c.dropout), nn.Dropout(c.prenet_dropout)

        def stack(layers: int, cross: bool) -> Stack:
            made = [layer(c, PreNorm, F.relu, cross=cross, norm_eps=c.norm_eps) for _ in range(layers)]
            return Stack(made, nn.LayerNorm(c.dim, eps=c.norm_eps))

        self.encoder, self.decoder = stack(c.encoder_layers, False), stack(c.decoder_layers, True)
        self.frames_out = nn.Linear(c.dim, c.reduction * c.outputs)
        self.ends_out = nn.Linear(c.dim, 1)
        sizes = [c.outputs, *[c.postnet] * (c.postnet_layers - 1), c.outputs]
        self.postnet = Convolutions(sizes, torch.tanh, c.dropout, linear_last=True)
        self._masks: Tensor | None = None
        init.vaswani(self, c.dim)

    def read_text(
        self, tokens: Int[Tensor, "b s"], valid: Bool[Tensor, "b s"], speakers: Int[Tensor, " b"]
    ) -> Float[Tensor, "b s dim"]:
        """The memory that the decoder attends to."""
        x = self.encoder_in(self.encoder_prenet(self.tokens(tokens) * self.config.dim**0.5, valid))
        x = self.dropout(x + self.scales[0] * self._places(0, tokens.shape[1]))
        x = self.encoder(x, mask=masks.key_padding(valid))
        return x if self.speakers is None else x + self.speakers(speakers)[:, None]

    def spoken(
        self,
        frames: Float[Tensor, "b t outputs"],
        lengths: Int[Tensor, " b"],
        memory: Float[Tensor, "b s dim"],
        valid: Bool[Tensor, "b s"],
    ) -> Spoken:
        """Teacher forcing: the predictions given these frames, a multiple of `reduction`; for training."""
        every, r = frames.shape[1], self.config.reduction
        before = torch.cat([torch.zeros_like(frames[:, :1]), frames[:, r - 1 : every - 1 : r]], dim=1)
        guided = nn.ModuleList(one.cross.body for one in self.decoder.layers[-GUIDED:])
        with record(guided) as maps:
            x = self._decoded(before, memory, valid)
        coarse, ends = self._outputs(x)
        real = masks.from_lengths(lengths, every)
        return Spoken(coarse, coarse + self.postnet(coarse, real), ends, [own[:, :GUIDED] for own in maps])

    def start_speaking(self, memory: Float[Tensor, "b s dim"], valid: Bool[Tensor, "b s"]) -> DecoderState:
        return DecoderState(memory, valid, StackCache(self.config.decoder_layers))

    def next_frames(
        self, last: Float[Tensor, "b outputs"], state: DecoderState
    ) -> tuple[Float[Tensor, "b r outputs"], Float[Tensor, " b"]]:
        """The next frames after the last one (zeros at first), before the post-net, and the stop logit."""
        coarse, ends = self._outputs(self._decoded(last[:, None], state.memory, state.valid, state.cache))
        return coarse, ends[:, 0]

    def refined(self, coarse: Float[Tensor, "b t outputs"], lengths: Int[Tensor, " b"]) -> Float[Tensor, "b t outputs"]:
        """All frames after the post-net."""
        return coarse + self.postnet(coarse, masks.from_lengths(lengths, coarse.shape[1]))

    def _decoded(
        self, before: Tensor, memory: Tensor, valid: Tensor, cache: StackCache | None = None
    ) -> Float[Tensor, "b n dim"]:
        x, start = before, cache.length if cache else 0
        for i, part in enumerate(self.decoder_prenet):
            x = F.relu(part(x))
            x = self.prenet_dropout(x) if self.training else x * self._kept(i, start, before.shape[1], x)
        x = self.decoder_in(x) + self.scales[1] * self._places(start, before.shape[1])
        return self.decoder(self.dropout(x), memory, causal=True, memory_mask=masks.key_padding(valid), cache=cache)

    def _kept(self, layer: int, start: int, length: int, like: Tensor) -> Float[Tensor, "t prenet"]:
        """What the pre-net's dropout keeps when the model speaks: drawn once for each step, so that a text always sounds the same.

        It stays on, as in the paper: a decoder that suddenly sees all of its last frame repeats it.
        """
        rate = self.config.prenet_dropout
        if self._masks is None or self._masks.device != like.device or self._masks.dtype != like.dtype:
            shape = (len(self.decoder_prenet), self.config.max_length, self.config.prenet)
            with torch.inference_mode(False):  # they may be needed with gradients later
                drawn = torch.rand(shape, generator=torch.Generator().manual_seed(0)) >= rate
                self._masks = drawn.to(like.device, like.dtype) / max(1 - rate, 1e-9)
        return self._masks[layer, start : start + length]

    def _places(self, start: int, length: int) -> Float[Tensor, "t dim"]:
        if start + length > self.config.max_length:
            raise ValueError(f"there are {start + length:,} positions, but the model has {self.config.max_length:,}")
        return self.positions(start, length)

    def _outputs(self, x: Float[Tensor, "b n dim"]) -> tuple[Float[Tensor, "b t outputs"], Float[Tensor, "b n"]]:
        return self.frames_out(x).unflatten(2, (self.config.reduction, -1)).flatten(1, 2), self.ends_out(x)[..., 0]


SYSTEM = System(
    TransformerTTS,
    TransformerTTSConfig,
    PRESETS,
    "Transformer TTS",
    task="speech-synthesis",
    growth=((2_000, "tiny"), (100_000, "small")),
)
