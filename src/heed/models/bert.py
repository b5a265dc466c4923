"""BERT (Devlin et al., 2019): a Transformer encoder, pre-trained on masked words and next-sentence prediction."""

from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float, Int
from torch import Tensor, nn

from heed.config import from_data
from heed.models.decoder import TextState, position_vectors
from heed.models.encoder import ACTIVATIONS, Encoder, Tokens, layer, usual_parts
from heed.models.encoder_heads import settle
from heed.models.system import System
from heed.nn.cache import StackCache
from heed.nn.packing import SequenceOffsets
from heed.nn.positions import Learned
from heed.nn.transformer import Stack

PRESETS = {
    "tiny": {"dim": 128, "heads": 2, "hidden": 512, "layers": 2},
    "small": {"dim": 256, "heads": 4, "hidden": 1024, "layers": 6},
    "base": {"dim": 768, "heads": 12, "hidden": 3072, "layers": 12},  # the published sizes begin here
    "large": {"dim": 1024, "heads": 16, "hidden": 4096, "layers": 24},
}


@dataclass(frozen=True)
class BertConfig:
    """BERT-base. `head` is what it predicts; with `labels` it is a classifier, of tokens if `head` says so, else of texts."""

    vocab_size: int = from_data()
    dim: int = 768  # width of embeddings and layers
    heads: int = 12  # attention heads per layer
    hidden: int = 3072  # width of the feed-forward network
    layers: int = 12
    max_length: int = 512  # maximum length of a text or pair in tokens, including special tokens
    segments: int = 2  # number of segment types
    activation: Literal["gelu", "gelu_tanh", "relu"] = "gelu"  # activation of the feed-forward network
    dropout: float = 0.1  # dropout of embeddings and sublayer outputs
    attention_dropout: float = 0.1  # dropout of attention weights
    classifier_dropout: float | None = None  # dropout in the classification head (default: dropout)
    norm_eps: float = 1e-12  # epsilon of layer norm
    init_std: float = 0.02  # standard deviation of the initial weights
    init_positions: Literal["normal", "sinusoids"] = "normal"  # what learned positions start as
    init_keys: Literal["normal", "queries"] = (
        "normal"  # queries: keys start equal to queries, so similar and near tokens attend to each other
    )
    head: str = from_data("masked")
    labels: int = from_data()

    def __post_init__(self):
        settle(self)


class Bert(Encoder):
    """Norms after each sublayer and on the embeddings, learned positions, segment embeddings, a pooler."""

    capabilities = ("packed", "fused", "ctranslate2")
    POOLED = frozenset({"none", "pretraining", "pair", "classification", "choice"})

    def __init__(self, config: BertConfig):
        super().__init__(config)
        c = config
        self.tokens = nn.Embedding(c.vocab_size, c.dim)
        self.positions = Learned(c.max_length, c.dim)
        self.segments = nn.Embedding(c.segments, c.dim)
        self.norm = nn.LayerNorm(c.dim, eps=c.norm_eps)
        self.dropout = nn.Dropout(c.dropout)
        self.stack = Stack([layer(c) for _ in range(c.layers)])
        self.add_head(usual_parts(c, ACTIVATIONS[c.activation]))
        self.initialize()

    # a language model: with the head "causal" no token sees those after it

    def hidden_states(self, tokens: Tokens, state: TextState | None = None) -> Float[Tensor, "b t dim"]:
        """The input of `output_weights` for predicting the token after each; `state` then covers these tokens too."""
        if self.config.head != "causal":
            raise ValueError(f"the model cannot generate text: its head is {self.config.head!r}")
        cache, length = None if state is None or self.training else state.cache, tokens.shape[1]
        before = cache.length if cache else 0
        if before + length > self.config.max_length:
            raise ValueError(
                f"a text has {before + length} tokens, but the model has {self.config.max_length} positions"
            )
        positions, mask = position_vectors(
            self.positions, length, before, before, None if cache is None else state.padding
        )
        x = self.normalize(self.tokens(tokens) + self.segments.weight[0] + positions)
        return self.word_states(self.stack(x, mask=mask, causal=True, cache=cache))

    def packed_hidden_states(self, tokens: Int[Tensor, "1 t"], offsets: SequenceOffsets) -> Float[Tensor, "1 t dim"]:
        """The same for texts packed in one row."""
        return self.word_states(self.encode_text(tokens, offsets))

    def start(self, rows: int) -> TextState:
        return TextState(StackCache(self.config.layers))

    def step(self, tokens: Int[Tensor, " b"], state: TextState) -> Float[Tensor, "b vocab"]:
        return self.project(self.hidden_states(tokens[:, None], state)[:, 0])


SYSTEM = System(
    Bert,
    BertConfig,
    PRESETS,
    "BERT",
    vocabulary="wordpiece",
    task="classification",
    growth=((100_000, "tiny"), (10_000_000, "small")),
)
