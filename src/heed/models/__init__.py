"""Every system, by the name that recipes and model folders call it."""

from typing import Any

import torch
from torch import nn

from heed.config import data_fields
from heed.models import (
    albert,
    bart,
    bert,
    bert4rec,
    bigbird,
    ctrl,
    electra,
    gpt,
    gpt2,
    image_transformer,
    m2m100,
    marian,
    mbart,
    pegasus,
    rnn_lm,
    roberta,
    sasrec,
    seq2seq,
    speech_transformer,
    transformer,
    transformer_tts,
    transformer_xl,
    vit,
)
from heed.models.encoder import Encoder
from heed.models.system import System

MODELS: dict[str, System] = {
    "transformer": transformer.SYSTEM,
    "marian": marian.SYSTEM,
    "bart": bart.SYSTEM,
    "pegasus": pegasus.SYSTEM,
    "mbart": mbart.SYSTEM,
    "m2m100": m2m100.SYSTEM,
    "seq2seq": seq2seq.SYSTEM,
    "rnn-lm": rnn_lm.SYSTEM,
    "gpt": gpt.SYSTEM,
    "gpt2": gpt2.SYSTEM,
    "ctrl": ctrl.SYSTEM,
    "transformer-xl": transformer_xl.SYSTEM,
    "bert": bert.SYSTEM,
    "albert": albert.SYSTEM,
    "roberta": roberta.SYSTEM,
    "electra": electra.SYSTEM,
    "bigbird": bigbird.SYSTEM,
    "sasrec": sasrec.SYSTEM,
    "bert4rec": bert4rec.SYSTEM,
    "vit": vit.SYSTEM,
    "speech-transformer": speech_transformer.SYSTEM,
    "image-transformer": image_transformer.SYSTEM,
    "transformer-tts": transformer_tts.SYSTEM,
}


def name_of(model: nn.Module) -> str:
    """The name of a model's system. A subclass is another system."""
    return next(name for name, system in MODELS.items() if type(model) is system.model)


def adapt(model: nn.Module, config: Any) -> nn.Module:
    """The same model for other data: the body keeps its weights, the head only if the data have the same sizes.

    New are only a head, a prompt, and the rows of added tokens; any other weight that does not fit is an error.
    """
    if isinstance(model, Encoder | vit.ViT):
        return model.adapted(config)
    new, weights = type(model)(config), model.state_dict()
    changed = {name for name in data_fields(config) if getattr(config, name) != getattr(model.config, name)}
    if not changed:
        new.load_state_dict(weights)
        return new
    added, own = ("prompt",) * ("prompt_length" in changed), new.state_dict()
    if changed - {"vocab_size", "prompt_length"}:
        added += getattr(type(model), "HEAD", ("head.",))
    if "vocab_size" in changed:
        for name in set(getattr(type(model), "TOKEN_ROWS", ())) & weights.keys():
            weights[name] = torch.cat([weights[name], own[name][len(weights[name]) :]])
    kept = {name: weight for name, weight in weights.items() if not added or not name.startswith(added)}
    new.load_state_dict({**{name: own[name] for name in own if added and name.startswith(added)}, **kept})
    return new
