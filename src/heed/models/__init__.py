"""All architectures, by their name in recipes and model folders."""

from collections.abc import Sequence
from typing import Any

from heed.config import data_fields
from heed.lazy import LazyMapping
from heed.models.system import System

MODELS: LazyMapping[System] = LazyMapping(
    {
        "transformer": "heed.models.transformer:SYSTEM",
        "marian": "heed.models.marian:SYSTEM",
        "bart": "heed.models.bart:SYSTEM",
        "pegasus": "heed.models.pegasus:SYSTEM",
        "mbart": "heed.models.mbart:SYSTEM",
        "m2m100": "heed.models.m2m100:SYSTEM",
        "seq2seq": "heed.models.seq2seq:SYSTEM",
        "rnn-lm": "heed.models.rnn_lm:SYSTEM",
        "gpt": "heed.models.gpt:SYSTEM",
        "gpt2": "heed.models.gpt2:SYSTEM",
        "ctrl": "heed.models.ctrl:SYSTEM",
        "transformer-xl": "heed.models.transformer_xl:SYSTEM",
        "bert": "heed.models.bert:SYSTEM",
        "albert": "heed.models.albert:SYSTEM",
        "roberta": "heed.models.roberta:SYSTEM",
        "electra": "heed.models.electra:SYSTEM",
        "bigbird": "heed.models.bigbird:SYSTEM",
        "sasrec": "heed.models.sasrec:SYSTEM",
        "bert4rec": "heed.models.bert4rec:SYSTEM",
        "vit": "heed.models.vit:SYSTEM",
        "speech-transformer": "heed.models.speech_transformer:SYSTEM",
        "image-transformer": "heed.models.image_transformer:SYSTEM",
        "transformer-tts": "heed.models.transformer_tts:SYSTEM",
    }
)


def name_of(model: Any) -> str:
    """The name of a model's system. A subclass is another system."""
    return next(name for name, system in MODELS.items() if type(model) is system.model)


def adapt(model: Any, config: Any, renewed: Sequence[str] = ()) -> Any:
    """The same model for other data: the body keeps its weights, the head only if the data have the same sizes.

    Only a head, a prompt, the rows of added tokens and the parts whose names begin with one of `renewed` are new; any
    other weight that does not fit is an error.
    """
    import torch

    from heed.models.encoder import Encoder
    from heed.models.vit import ViT

    if isinstance(model, Encoder):
        return model.adapted(config)
    if isinstance(model, ViT):
        return model.adapted(config, renewed)
    new, weights = type(model)(config), model.state_dict()
    changed = {name for name in data_fields(config) if getattr(config, name) != getattr(model.config, name)}
    if not changed and not renewed:
        new.load_state_dict(weights)
        return new
    added, own = (*renewed, *("prompt",) * ("prompt_length" in changed)), new.state_dict()
    if changed - {"vocab_size", "prompt_length"}:
        added += getattr(type(model), "HEAD", ("head.",))
    if "vocab_size" in changed:
        for name in set(getattr(type(model), "TOKEN_ROWS", ())) & weights.keys():
            weights[name] = torch.cat([weights[name], own[name][len(weights[name]) :]])
    kept = {name: weight for name, weight in weights.items() if not added or not name.startswith(added)}
    new.load_state_dict({**{name: own[name] for name in own if added and name.startswith(added)}, **kept})
    return new
