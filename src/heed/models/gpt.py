"""GPT (Radford et al., 2018): a Transformer decoder, pre-trained as a language model and then fine-tuned."""

from dataclasses import dataclass

from torch import nn

from heed.config import from_data
from heed.models.decoder import Decoder, layer, prompt_vectors, text_head
from heed.models.encoder_decoder import check
from heed.models.system import System
from heed.nn import init
from heed.nn.positions import Learned
from heed.nn.transformer import PostNorm, Stack, gelu_tanh

PRESETS = {
    "tiny": {"dim": 128, "heads": 4, "hidden": 512, "layers": 4, "max_length": 256},
    "small": {"dim": 384, "heads": 6, "hidden": 1536, "layers": 6, "max_length": 256},
    "base": {"dim": 768, "heads": 12, "hidden": 3072, "layers": 12},  # the published size
}


@dataclass(frozen=True)
class GPTConfig:
    """The published GPT. With `choices` or `labels` it has a second head, and with `prompt_length` that many vectors
    before each text.
    """

    vocab_size: int = from_data()
    dim: int = 768  # width of embeddings and layers
    heads: int = 12  # attention heads per layer
    hidden: int = 3072  # width of the feed-forward network
    layers: int = 12
    max_length: int = 512  # maximum text length in tokens
    dropout: float = 0.1  # dropout of embeddings and sublayer outputs
    attention_dropout: float = 0.1  # dropout of attention weights
    norm_eps: float = 1e-5  # epsilon of layer norm
    init_std: float = 0.02  # standard deviation of the initial weights
    choices: bool = from_data(False)
    labels: int = from_data()
    choice_dropout: float = 0.1  # dropout in the head that scores choices or labels
    prompt_length: int = from_data()

    def __post_init__(self):
        check(self)


class GPT(Decoder):
    """Norms after each sublayer, learned positions, one matrix for input and output."""

    capabilities = ("packed", "fused", "cuda_search", "int8")

    def __init__(self, config: GPTConfig):
        super().__init__(config)
        c = config
        self.tokens = nn.Embedding(c.vocab_size, c.dim)
        self.positions = Learned(c.max_length, c.dim)
        self.dropout = nn.Dropout(c.dropout)
        self.stack = Stack([layer(c, PostNorm, gelu_tanh, c.attention_dropout, c.norm_eps) for _ in range(c.layers)])
        self.head, self.prompt = text_head(c), prompt_vectors(c)
        init.normal(self, c.init_std)


SYSTEM = System(
    GPT,
    GPTConfig,
    PRESETS,
    "GPT",
    vocabulary="gpt",
    task="language",
    growth=((5_000_000, "tiny"), (100_000_000, "small")),
)
