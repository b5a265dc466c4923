"""Every system, by the name that recipes and model folders call it."""

from typing import Any

from torch import nn

from heed.config import data_fields
from heed.models import (
    albert,
    bart,
    bert,
    bigbird,
    ctrl,
    electra,
    gpt,
    gpt2,
    m2m100,
    marian,
    mbart,
    pegasus,
    rnn_lm,
    roberta,
    seq2seq,
    transformer,
    transformer_xl,
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
}


def name_of(model: nn.Module) -> str:
    """The name of a model's system. A subclass is another system."""
    return next(name for name, system in MODELS.items() if type(model) is system.model)


def adapt(model: nn.Module, config: Any) -> nn.Module:
    """The same model for other data: the body keeps its weights, the head only if the data have the same sizes.

    Any other weight that does not fit is an error: only a head is ever initialized anew.
    """
    if isinstance(model, Encoder):
        return model.adapted(config)
    new, weights = type(model)(config), model.state_dict()
    names = data_fields(config)
    if all(getattr(config, name) == getattr(model.config, name) for name in names):
        new.load_state_dict(weights)
        return new
    head = getattr(type(model), "HEAD", ("head.",))
    own = {name: weight for name, weight in new.state_dict().items() if name.startswith(head)}
    new.load_state_dict({**own, **{name: weight for name, weight in weights.items() if not name.startswith(head)}})
    return new
