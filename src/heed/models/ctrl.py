"""CTRL (Keskar et al., 2019): a language model whose texts begin with a control code for the kind of text."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from heed.config import from_data
from heed.models.decoder import Decoder, layer, prompt_vectors, text_head
from heed.models.encoder_decoder import check
from heed.models.system import System
from heed.nn import init
from heed.nn.positions import SinusoidalSingle
from heed.nn.transformer import PreNorm, Stack

PRESETS = {
    "tiny": {"dim": 128, "heads": 4, "hidden": 512, "layers": 4},
    "small": {"dim": 384, "heads": 6, "hidden": 1536, "layers": 6},
    "base": {"dim": 768, "heads": 12, "hidden": 3072, "layers": 12},
    "large": {"dim": 1280, "heads": 16, "hidden": 8192, "layers": 48},  # the published size
}
LAYER_NORM_EPS = 1e-6  # in the layers; the setting is for the norm after the last


@dataclass(frozen=True)
class CTRLConfig:
    """The published CTRL. With `choices` or `labels` it has a second head, and with `prompt_length` that many vectors
    before each text.
    """

    vocab_size: int = from_data()
    dim: int = 1280  # width of embeddings and layers
    heads: int = 16  # attention heads per layer
    hidden: int = 8192  # width of the feed-forward network
    layers: int = 48
    max_length: int = 256  # maximum text length in tokens, including the control code
    dropout: float = 0.1  # dropout of embeddings and sublayer outputs
    norm_eps: float = 1e-6  # epsilon of the layer norm after the last layer
    init_std: float = 0.02  # standard deviation of the initial weights
    choices: bool = from_data(False)
    labels: int = from_data()
    choice_dropout: float = 0.1  # dropout in the head that scores choices or labels
    prompt_length: int = from_data()

    def __post_init__(self):
        check(self)


class CTRL(Decoder):
    """Norms before each sublayer and after the last, sinusoids, one matrix for input and output, and an output bias."""

    capabilities = ("packed", "fused", "cuda_search", "int8")

    def __init__(self, config: CTRLConfig):
        super().__init__(config)
        c = config
        self.tokens = nn.Embedding(c.vocab_size, c.dim)
        self.scale = math.sqrt(c.dim)
        self.positions = SinusoidalSingle(c.max_length, c.dim)
        self.dropout = nn.Dropout(c.dropout)
        layers = [layer(c, PreNorm, F.relu, 0.0, LAYER_NORM_EPS) for _ in range(c.layers)]
        self.stack = Stack(layers, norm=nn.LayerNorm(c.dim, eps=c.norm_eps))
        self.head, self.prompt = text_head(c), prompt_vectors(c)
        self.bias = nn.Parameter(torch.zeros(c.vocab_size))
        init.normal(self, c.init_std)


SYSTEM = System(
    CTRL,
    CTRLConfig,
    PRESETS,
    "CTRL",
    vocabulary="ctrl",
    task="language",
    growth=((5_000_000, "tiny"), (100_000_000, "small")),
)
