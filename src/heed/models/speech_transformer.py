"""Speech-Transformer (Dong et al., 2018): an encoder reads the features of a recording, a decoder writes its text.

A second output on the encoder predicts a token or the blank at each state (CTC, Graves et al., 2006). In a speech
translation model it may predict the transcript, which has its own vocabulary (`ctc_size`).
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.config import from_data
from heed.models.encoder_decoder import check, layer
from heed.models.system import System
from heed.nn import init, masks
from heed.nn.cache import StackCache
from heed.nn.positions import Sinusoidal, SinusoidalFairseq
from heed.nn.speech import GatedSubsampling, Subsampling, convolved
from heed.nn.transformer import PostNorm, PreNorm, Stack

STRIDES = {2: (2, 1), 4: (2, 2)}


@dataclass(frozen=True)
class SpeechTransformerConfig:
    vocab_size: int = from_data()
    inputs: int = from_data()
    dim: int = 256  # width of layers
    heads: int = 4  # attention heads per layer
    hidden: int = 1024  # width of the feed-forward network
    encoder_layers: int = 12
    decoder_layers: int = 6
    front: Literal["conv2d", "conv1d-glu"] = (
        "conv2d"  # 2D convolutions over time and frequency, or gated 1D convolutions over time
    )
    channels: int = 64  # channels of the convolutions before the encoder
    subsampling: int = 4  # subsampling factor: frames per state, 2 or 4
    attention_2d: int = 0  # 2D attention modules (time and frequency) before the encoder; the paper has 2
    heads_2d: int = 8  # channels of each 2D attention module
    positions: Literal["sinusoidal", "fairseq"] = (
        "sinusoidal"  # positions count from 0, as in the paper, or from 2, as in fairseq
    )
    ctc: bool = True  # add a CTC output to the encoder
    max_length: int = 4096  # maximum number of encoder states and of text tokens
    dropout: float = 0.1  # dropout of embeddings and sublayer outputs
    attention_dropout: float = 0.0  # dropout of attention weights
    hidden_dropout: float = 0.1  # dropout inside the feed-forward network
    norm: Literal["post", "pre"] = "pre"  # layer norm after each sublayer (the paper), or before it
    norm_eps: float = 1e-5  # epsilon of layer norm
    ctc_size: int = from_data()

    def __post_init__(self):
        check(self)
        if self.subsampling not in STRIDES:
            raise ValueError(f"subsampling is {self.subsampling}; it must be 2 or 4")
        if min(self.channels, self.heads_2d) < 1:
            raise ValueError("channels and heads_2d must be at least 1")
        if self.front == "conv1d-glu" and (self.channels % 2 or self.attention_2d):
            raise ValueError("front is conv1d-glu: channels must be even, and attention_2d 0")
        if self.front == "conv2d" and self.inputs and convolved(convolved(self.inputs, 2), 2) < 1:
            raise ValueError(f"a frame has {self.inputs} numbers; two convolutions need at least 7")


PRESETS = {
    "tiny": {"dim": 128, "heads": 4, "hidden": 512, "encoder_layers": 6, "decoder_layers": 3, "channels": 32},
    "small": {"dim": 256, "heads": 4, "hidden": 1024, "encoder_layers": 8, "decoder_layers": 4},
    "base": {"dim": 256, "heads": 4, "hidden": 1024, "encoder_layers": 12, "decoder_layers": 6},
    "big": {"dim": 512, "heads": 8, "hidden": 2048, "encoder_layers": 12, "decoder_layers": 6, "channels": 128},
}


class SpeechTransformer(nn.Module):
    """Features in; the logits of each next token, and of the token at each encoder state, out."""

    def __init__(self, config: SpeechTransformerConfig):
        super().__init__()
        self.config = c = config
        sizes = (c.inputs, c.dim, c.channels, STRIDES[c.subsampling])
        gated = c.front == "conv1d-glu"
        self.front = GatedSubsampling(*sizes) if gated else Subsampling(*sizes, c.attention_2d, c.heads_2d)
        self.tokens = nn.Embedding(c.vocab_size, c.dim)
        self.positions = (SinusoidalFairseq if c.positions == "fairseq" else Sinusoidal)(c.max_length, c.dim)
        self.scale = math.sqrt(c.dim)
        self.dropout = nn.Dropout(c.dropout)
        around = PostNorm if c.norm == "post" else PreNorm

        def stack(layers: int, cross: bool) -> Stack:
            made = [layer(c, around, F.relu, cross=cross, norm_eps=c.norm_eps) for _ in range(layers)]
            return Stack(made, None if c.norm == "post" else nn.LayerNorm(c.dim, eps=c.norm_eps))

        self.encoder, self.decoder = stack(c.encoder_layers, False), stack(c.decoder_layers, True)
        self.ctc = nn.Linear(c.dim, (c.ctc_size or c.vocab_size) + 1) if c.ctc else None
        init.vaswani(self, c.dim)

    def encode_speech(
        self, features: Float[Tensor, "b t size"], lengths: Int[Tensor, " b"]
    ) -> tuple[Float[Tensor, "b s dim"], Int[Tensor, " b"]]:
        """The memory that the decoder attends to, and the number of valid states of each recording."""
        x, counts = self.front(features, lengths)
        if x.shape[1] > self.config.max_length:
            raise ValueError(
                f"a recording has {x.shape[1]:,} states, but the model has {self.config.max_length:,} positions: cut it into parts"
            )
        x = self.dropout(x * self.scale + self.positions(0, x.shape[1]))
        valid = masks.from_lengths(counts, x.shape[1])
        return self.encoder(x, mask=masks.key_padding(valid)), counts

    def state_count(self, frames: int) -> int:
        return self.front.count(frames)

    @property
    def least_frames(self) -> int:
        """The minimum number of frames of a recording."""
        return self.front.least

    def ctc_logits(self, memory: Float[Tensor, "b s dim"]) -> Float[Tensor, "b s classes"]:
        """The log probabilities of each token and, last, of the blank at each state."""
        if self.ctc is None:
            raise ValueError(
                "the model has no CTC output (model.ctc): set task.ctc to 0 to train it, and ctc_weight to 0 (--ctc-weight 0)"
            )
        return self.ctc(memory)

    def decode(
        self,
        target: Int[Tensor, "b t"],
        memory: Float[Tensor, "sources s dim"],
        valid: Bool[Tensor, "sources s"] | None = None,
        cache: StackCache | None = None,
    ) -> Float[Tensor, "b t dim"]:
        """The output of the decoder at each token, which predicts the next one."""
        x = self.tokens(target) * self.scale + self.positions(cache.length if cache else 0, target.shape[1])
        own = masks.key_padding(valid)
        return self.decoder(self.dropout(x), memory, causal=True, memory_mask=own, cache=cache)

    def project(self, x: Float[Tensor, "*rows dim"]) -> Float[Tensor, "*rows vocab"]:
        return F.linear(x, *self.output_weights())

    def output_weights(self) -> tuple[Tensor, Tensor | None]:
        return self.tokens.weight, None


SYSTEM = System(
    SpeechTransformer,
    SpeechTransformerConfig,
    PRESETS,
    "Speech-Transformer",
    task="speech-recognition",
    growth=((2_000, "tiny"), (20_000, "small")),
)
