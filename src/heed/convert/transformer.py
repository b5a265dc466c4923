"""Export Heed's Transformer as a MarianMTModel of transformers, if its config allows. The two differ only in the
order of the sinusoids: Heed alternates sine and cosine, Marian has all sines first. So the hidden dimensions are
permuted in every weight that writes to or reads from the residual stream.
"""

from dataclasses import fields

import torch
from torch import Tensor

from heed.convert import marian
from heed.convert.architecture import Architecture
from heed.convert.weight_table import Weights
from heed.models.marian import MarianConfig
from heed.models.transformer import Transformer, TransformerConfig

READS = ("q.weight", "k.weight", "v.weight", "up.weight", "tokens.weight", "output.weight")
WRITES = ("out.weight", "out.bias", "down.weight", "down.bias", "norm.weight", "norm.bias")
NEEDED = (
    # setting, the value that a Marian has, and the refusal of any other
    ("encoder", "attention", "encoder is {!r}; {} attends to the whole source: the model cannot be exported"),
    ("norm", "post", "norm is {!r}; {} has its norms after each sublayer: train with norm = 'post', or export to CTranslate2, which supports both"),
    ("positions", "sinusoidal", "positions are {!r}; {} has sinusoids: train with positions = 'sinusoidal'"),
    ("norm_eps", 1e-5, "norm_eps is {}; {} has 1e-05, which cannot be changed"),
)  # fmt: skip


def as_marian(config: TransformerConfig, weights: Weights) -> tuple[MarianConfig, Weights]:
    """Config and weights of the equivalent Marian model."""
    config = marian_config(config)
    order = torch.cat([torch.arange(start, config.dim, 2) for start in (0, 1)])
    weights = {name: _permuted(name, weight, order) for name, weight in weights.items()}
    weights.setdefault("bias", weights["tokens.weight"].new_zeros(config.vocab_size))
    return config, weights


def marian_config(c: TransformerConfig) -> MarianConfig:
    """Config of the equivalent Marian model. Unsupported settings are refused by name."""
    for name, value, refusal in NEEDED:
        if getattr(c, name) != value:
            raise ValueError(refusal.format(getattr(c, name), "a Hugging Face Marian"))
    same = {field.name: getattr(c, field.name) for field in fields(MarianConfig) if hasattr(c, field.name)}
    return MarianConfig(**same, activation="relu", scaled=True)


def _permuted(name: str, weight: Tensor, order: Tensor) -> Tensor:
    order = order.to(weight.device)
    if name.endswith(READS):
        return weight[:, order]
    return weight[order] if name.endswith(WRITES) else weight


ARCHITECTURES = (
    Architecture(
        "MarianMTModel", Transformer, marian.CONFIG_TABLE, marian.weight_table, vocabulary="marian", task="translation",
        pipeline_tag="translation", readable=False, rearrange=as_marian,
        settings=lambda package: {"forced_eos_token_id": None},  # the default is 0, which is our padding
    ),
)  # fmt: skip
