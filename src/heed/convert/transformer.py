"""Our own Transformer as a Hugging Face Marian, where its shape allows.

The two differ in nothing but the order of the sinusoids: ours alternate, theirs lie in two halves. So what passes along
the residuals has its places shuffled: what writes to them is shuffled, and what reads them too.
"""

from typing import Any

import torch
from torch import Tensor

from heed.convert import generation, marian
from heed.convert.table import Weights
from heed.models.marian import MarianConfig
from heed.models.transformer import Transformer, TransformerConfig
from heed.vocabularies.sentencepiece import MARKS

READS = ("q.weight", "k.weight", "v.weight", "up.weight", "tokens.weight", "output.weight")
WRITES = ("out.weight", "out.bias", "down.weight", "down.bias", "norm.weight", "norm.bias")


def to_marian(model: Transformer) -> tuple[Weights, dict[str, Any]]:
    """The weights under the names of MarianMTModel, and the settings of its config.json."""
    config = marian_config(model.config)
    order = torch.cat([torch.arange(start, config.dim, 2) for start in (0, 1)])
    weights = {name: _shuffled(name, weight, order) for name, weight in model.state_dict().items()}
    weights.setdefault("bias", weights["tokens.weight"].new_zeros(config.vocab_size))
    settings = {"architectures": ["MarianMTModel"], **marian.FIELDS.to_theirs(config), **generation.ids(MARKS)}
    return marian.table(config).to_theirs(weights), {**settings, "forced_eos_token_id": None}


def marian_config(c: TransformerConfig) -> MarianConfig:
    """The Marian that computes the same; or the part that stands in the way."""
    if c.encoder != "attention":
        raise ValueError(
            f"encoder is {c.encoder!r}; a Hugging Face Marian attends to the whole source: the model stays with heed"
        )
    if c.norm != "post":
        raise ValueError(
            f"norm is {c.norm!r}; a Hugging Face Marian has its norms after each sublayer: train with norm = 'post', or go to CTranslate2, which takes both"
        )
    if c.positions != "sinusoidal":
        raise ValueError(
            f"positions are {c.positions!r}; a Hugging Face Marian has sinusoids: train with positions = 'sinusoidal'"
        )
    if c.norm_eps != 1e-5:
        raise ValueError(f"norm_eps is {c.norm_eps}; a Hugging Face Marian has 1e-05, and no setting for another")
    return MarianConfig(
        vocab_size=c.vocab_size,
        source_vocab_size=c.source_vocab_size,
        dim=c.dim,
        heads=c.heads,
        hidden=c.hidden,
        encoder_layers=c.encoder_layers,
        decoder_layers=c.decoder_layers,
        max_length=c.max_length,
        activation="relu",
        scaled=True,
        tied=c.tied,
        dropout=c.dropout,
        attention_dropout=c.attention_dropout,
        hidden_dropout=c.hidden_dropout,
    )


def _shuffled(name: str, weight: Tensor, order: Tensor) -> Tensor:
    order = order.to(weight.device)
    if name.endswith(READS):
        return weight[:, order]
    return weight[order] if name.endswith(WRITES) else weight
