"""GPT-2 (Radford et al., 2019): a Transformer decoder that predicts each next token of a text."""

import math
from dataclasses import dataclass

import torch
from torch import nn

from heed.config import from_data
from heed.models.decoder import Decoder, layer, prompt_vectors, text_head
from heed.models.encoder_decoder import check
from heed.models.system import System
from heed.nn import init
from heed.nn.dropout import VariationalDropout, WordEmbedding, embedding_dropout
from heed.nn.positions import Learned
from heed.nn.transformer import PreNorm, Stack, gelu_tanh

PRESETS = {
    "tiny": {"dim": 128, "heads": 4, "hidden": 512, "layers": 4, "max_length": 256},
    "small": {"dim": 384, "heads": 6, "hidden": 1536, "layers": 6, "max_length": 512},
    "base": {"dim": 768, "heads": 12, "hidden": 3072, "layers": 12},  # the published sizes begin here
    "medium": {"dim": 1024, "heads": 16, "hidden": 4096, "layers": 24},
    "large": {"dim": 1280, "heads": 20, "hidden": 5120, "layers": 36},
    "xl": {"dim": 1600, "heads": 25, "hidden": 6400, "layers": 48},
}


@dataclass(frozen=True)
class GPT2Config:
    """The smallest published GPT-2. With `choices` or `labels` it has a second head, and with `prompt_length` that
    many vectors before each text.
    """

    vocab_size: int = from_data()
    dim: int = 768  # width of embeddings and layers
    heads: int = 12  # attention heads per layer
    hidden: int = 3072  # width of the feed-forward network
    layers: int = 12
    max_length: int = 1024  # maximum text length in tokens
    dropout: float = 0.1  # dropout of embeddings and sublayer outputs
    attention_dropout: float = 0.1  # dropout of attention weights
    word_dropout: float = 0.0  # dropout of whole words, for small corpora
    input_dropout: float | None = None  # dropout of embeddings, one mask for all positions (default: as dropout)
    output_dropout: float = 0.0  # dropout of the last hidden states, in the same way, for small corpora
    norm_eps: float = 1e-5  # epsilon of layer norm
    init_std: float = 0.02  # standard deviation of the initial weights
    choices: bool = from_data(False)
    labels: int = from_data()
    choice_dropout: float = 0.1  # dropout in the head that scores choices or labels
    prompt_length: int = from_data()

    def __post_init__(self):
        check(self)


class GPT2(Decoder):
    """Norms before each sublayer and after the last, learned positions, one matrix for input and output."""

    capabilities = ("packed", "fused", "cuda_search", "ctranslate2", "int8")

    def __init__(self, config: GPT2Config):
        super().__init__(config)
        c = config
        self.tokens = WordEmbedding(c.vocab_size, c.dim, c.word_dropout)
        self.positions = Learned(c.max_length, c.dim)
        self.dropout = embedding_dropout(c.input_dropout, c.dropout)
        self.after = VariationalDropout(c.output_dropout)
        layers = [layer(c, PreNorm, gelu_tanh, c.attention_dropout, c.norm_eps) for _ in range(c.layers)]
        self.stack = Stack(layers, norm=nn.LayerNorm(c.dim, eps=c.norm_eps))
        self.head, self.prompt = text_head(c), prompt_vectors(c)
        init.normal(self, c.init_std)
        with torch.no_grad():  # what each layer adds to the residual stream is scaled by its depth
            for own in self.stack.layers:
                for out in (own.attention.body.out, own.mlp.body.down):
                    out.weight /= math.sqrt(2 * c.layers)


SYSTEM = System(
    GPT2,
    GPT2Config,
    PRESETS,
    "GPT-2",
    vocabulary="gpt2",
    task="language",
    growth=((5_000_000, "tiny"), (100_000_000, "small")),
)
