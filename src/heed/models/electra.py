"""ELECTRA (Clark et al., 2020): a discriminator learns which words of a text a small generator has replaced."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from heed.config import from_data
from heed.models.encoder import ACTIVATIONS, Encoder, Tokens, Valid, layer, usual_parts
from heed.models.encoder_heads import FirstToken, Words, settle
from heed.models.system import System
from heed.nn import masks
from heed.nn.packing import SequenceOffsets
from heed.nn.positions import Learned
from heed.nn.transformer import Stack

PRESETS = {
    "tiny": {"dim": 128, "heads": 2, "hidden": 512, "layers": 2, "generator_fraction": 0.5},
    "small": {"dim": 256, "heads": 4, "hidden": 1024, "layers": 12},  # the published sizes begin here
    "base": {"dim": 768, "heads": 12, "hidden": 3072, "layers": 12, "embedding": 768, "generator_fraction": 1 / 3},
    "large": {"dim": 1024, "heads": 16, "hidden": 4096, "layers": 24, "embedding": 1024},
    "small-generator": {"dim": 64, "heads": 1, "hidden": 256, "layers": 12},
    "base-generator": {"dim": 256, "heads": 4, "hidden": 1024, "layers": 12, "embedding": 768},
    "large-generator": {"dim": 256, "heads": 4, "hidden": 1024, "layers": 24, "embedding": 1024},
}


@dataclass(frozen=True)
class ElectraConfig:
    """ELECTRA-small. `head` is what it predicts: "replaced" is a discriminator, "masked" a generator, "joint" both,
    for joint training. With `labels` it is a classifier, of tokens if `head` says so, else of texts.
    """

    vocab_size: int = from_data()
    embedding: int = 128  # width of embeddings
    dim: int = 256  # width of layers
    heads: int = 4  # attention heads per layer
    hidden: int = 1024  # width of the feed-forward network
    layers: int = 12
    max_length: int = 512  # maximum length of a text or pair in tokens, including special tokens
    segments: int = 2  # number of segment types
    activation: Literal["gelu", "gelu_tanh", "relu"] = "gelu"  # activation of the feed-forward network
    dropout: float = 0.1  # dropout of embeddings and sublayer outputs
    attention_dropout: float = 0.1  # dropout of attention weights
    classifier_dropout: float | None = None  # dropout in the classification head (default: dropout)
    choice_dropout: float = 0.1  # dropout in the head that scores choices
    norm_eps: float = 1e-12  # epsilon of layer norm
    init_std: float = 0.02  # standard deviation of the initial weights
    init_positions: Literal["normal", "sinusoids"] = "normal"  # what learned positions start as
    init_keys: Literal["normal", "queries"] = (
        "normal"  # queries: keys start equal to queries, so similar and near tokens attend to each other
    )
    generator_fraction: float = 0.25  # width and heads of the generator, relative to the discriminator
    head: str = from_data("masked")
    labels: int = from_data()

    def __post_init__(self):
        settle(self)
        if not 0 < self.generator_fraction <= 1:
            raise ValueError(f"generator_fraction is {self.generator_fraction}; it must be above 0 and at most 1")


class Generator(nn.Module):
    """A narrower stack over the embeddings of the discriminator, which predicts masked words."""

    def __init__(self, c: ElectraConfig):
        super().__init__()
        self.widen = nn.Linear(c.embedding, c.dim) if c.embedding != c.dim else None
        self.stack = Stack([layer(c) for _ in range(c.layers)])
        self.words = Words(c.dim, c.embedding, c.vocab_size, F.gelu, c.norm_eps)

    def forward(self, x: Float[Tensor, "b t width"], valid: Valid = None) -> Float[Tensor, "b t width"]:
        x = x if self.widen is None else self.widen(x)
        return self.words(self.stack(x, mask=masks.key_padding(valid)))


class Electra(Encoder):
    """Like BERT without a pooler, with embeddings of another width. In joint training it also holds a generator,
    which shares all embeddings.
    """

    capabilities = ("packed", "fused", "ctranslate2")
    HEAD = ("head.", "generator.")

    def __init__(self, config: ElectraConfig):
        super().__init__(config)
        c, activation = config, ACTIVATIONS[config.activation]
        self.tokens = nn.Embedding(c.vocab_size, c.embedding)
        self.positions = Learned(c.max_length, c.embedding)
        self.segments = nn.Embedding(c.segments, c.embedding)
        self.norm = nn.LayerNorm(c.embedding, eps=c.norm_eps)
        self.dropout = nn.Dropout(c.dropout)
        self.widen = nn.Linear(c.embedding, c.dim) if c.embedding != c.dim else None
        self.stack = Stack([layer(c) for _ in range(c.layers)])
        rate = c.dropout if c.classifier_dropout is None else c.classifier_dropout
        self.add_head(
            {
                **usual_parts(c, activation, c.embedding),
                "words": lambda: Words(c.dim, c.embedding, c.vocab_size, F.gelu, c.norm_eps),
                "pair": lambda: FirstToken(c.dim, 2, F.gelu, rate, first_dropout=rate),
                "text": lambda: FirstToken(c.dim, c.labels, F.gelu, rate, first_dropout=rate),
                "choice": lambda: FirstToken(c.dim, 1, F.gelu, c.choice_dropout),
            }
        )
        self.generator = Generator(generator_config(c)) if c.head == "joint" else None
        self.initialize()

    def generator_states(
        self,
        tokens: Tokens,
        valid: Valid = None,
        segments: Tokens | None = None,
    ) -> Float[Tensor, "b t width"]:
        """The input of `generator_weights` for the logits of the generator's words."""
        if self.generator is None:
            raise ValueError(f"the model has no generator: its head is {self.config.head!r}, not 'joint'")
        offsets = valid if isinstance(valid, SequenceOffsets) else None
        return self.generator(self.embed(tokens, segments, offsets), valid)

    def generator_weights(self) -> tuple[Tensor, Tensor]:
        return self.tokens.weight, self.generator.words.bias

    def split(self) -> tuple["Electra", "Electra"]:
        """The generator and the discriminator of joint training as two models, with copies of the weights."""
        c, weights = self.config, self.state_dict()
        shared = {name: weight for name, weight in weights.items() if name.startswith(SHARED)}
        own = {
            name.removeprefix("generator."): weight for name, weight in weights.items() if name.startswith("generator.")
        }
        own = {f"head.{name}" if name.startswith("words.") else name: weight for name, weight in own.items()}
        rest = {name: weight for name, weight in weights.items() if not name.startswith("generator.")}
        configs = generator_config(c), replace(c, head="replaced")
        generator, discriminator = (Electra(config).to(self.tokens.weight) for config in configs)
        generator.load_state_dict({**shared, **own})
        discriminator.load_state_dict(rest)
        return generator, discriminator


SHARED = ("tokens.", "positions.", "segments.", "norm.")  # by the two, as in the code of the paper


def generator_config(c: ElectraConfig) -> ElectraConfig:
    """The config of the generator of joint training."""
    sizes: dict[str, Any] = {
        name: max(1, round(getattr(c, name) * c.generator_fraction)) for name in ("dim", "heads", "hidden")
    }
    return replace(c, head="masked", labels=0, **sizes)


SYSTEM = System(
    Electra,
    ElectraConfig,
    PRESETS,
    "ELECTRA",
    vocabulary="wordpiece",
    task="classification",
    growth=((100_000, "tiny"), (10_000_000, "small")),
)
