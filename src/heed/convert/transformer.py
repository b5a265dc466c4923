"""Our own Transformer as a MarianMTModel of Hugging Face's transformers, if its config allows.

The two differ only in the order of the sinusoids: ours alternate sine and cosine, theirs have all sines first. So the
hidden dimensions are permuted: in every weight that writes to the residual stream, and in every one that reads from it.
"""

import torch
from torch import Tensor

from heed.convert import marian
from heed.convert.architecture import Architecture
from heed.convert.weight_table import Weights
from heed.models.marian import MarianConfig
from heed.models.transformer import Transformer, TransformerConfig

READS = ("q.weight", "k.weight", "v.weight", "up.weight", "tokens.weight", "output.weight")
WRITES = ("out.weight", "out.bias", "down.weight", "down.bias", "norm.weight", "norm.bias")


def as_marian(config: TransformerConfig, weights: Weights) -> tuple[MarianConfig, Weights]:
    """The config and the weights of the Marian that computes the same."""
    config = marian_config(config)
    order = torch.cat([torch.arange(start, config.dim, 2) for start in (0, 1)])
    weights = {name: _permuted(name, weight, order) for name, weight in weights.items()}
    weights.setdefault("bias", weights["tokens.weight"].new_zeros(config.vocab_size))
    return config, weights


def marian_config(c: TransformerConfig) -> MarianConfig:
    """The config of the Marian that computes the same. What a Marian does not have is refused by name."""
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


def _permuted(name: str, weight: Tensor, order: Tensor) -> Tensor:
    order = order.to(weight.device)
    if name.endswith(READS):
        return weight[:, order]
    return weight[order] if name.endswith(WRITES) else weight


ARCHITECTURES = (
    Architecture(
        "MarianMTModel",
        Transformer,
        marian.CONFIG_TABLE,
        marian.weight_table,
        vocabulary="marian",
        task="translation",
        pipeline_tag="translation",
        readable=False,
        settings=lambda package: {"forced_eos_token_id": None},  # the default is 0, which is our padding
        rearrange=as_marian,
    ),
)
