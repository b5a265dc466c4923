"""Every system, by the name that recipes and model folders call it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from heed.config import data_fields
from heed.models import bart, marian, pegasus, rnn_lm, seq2seq, transformer


@dataclass(frozen=True)
class System:
    """A model class, which takes its config and nothing else; its config; sizes by name.

    `vocabulary`: the kind that is learned with it (None: heed's own). `task`: what it learns by default. `defaults`:
    where a recipe differs from the config's. `growth`: up to how many examples each preset is chosen by itself.
    """

    model: type[nn.Module]
    config: type
    presets: Mapping[str, Mapping[str, Any]]
    vocabulary: str | None = None
    task: str = "translation"
    defaults: Mapping[str, Any] = field(default_factory=dict)
    growth: tuple[tuple[int, str], ...] = ((100_000, "tiny"), (1_000_000, "small"))

    def preset_for(self, examples: int) -> str:
        """The size that this much data can train."""
        return next((name for limit, name in self.growth if examples < limit), "base")


MODELS: dict[str, System] = {
    # norms before the sublayers: then it learns whatever the schedule
    "transformer": System(
        transformer.Transformer, transformer.TransformerConfig, transformer.PRESETS, defaults={"norm": "pre"}
    ),
    "marian": System(marian.Marian, marian.MarianConfig, transformer.PRESETS, "marian"),
    "bart": System(bart.Bart, bart.BartConfig, transformer.PRESETS, "bart"),
    "pegasus": System(pegasus.Pegasus, pegasus.PegasusConfig, transformer.PRESETS, "pegasus"),
    "seq2seq": System(seq2seq.Seq2Seq, seq2seq.Seq2SeqConfig, seq2seq.PRESETS),
    "rnn-lm": System(
        rnn_lm.RNNLanguageModel, rnn_lm.RNNLanguageModelConfig, rnn_lm.PRESETS, task="language", growth=rnn_lm.GROWTH
    ),
}


def name_of(model: nn.Module) -> str:
    """The name of a model's system. A subclass is another system."""
    return next(name for name, system in MODELS.items() if type(model) is system.model)


def adapt(model: nn.Module, config: Any) -> nn.Module:
    """The same model for other data: the body keeps its weights, the head only if the data have the same sizes.

    Any other weight that does not fit is an error: only a head is ever initialized anew.
    """
    new, weights = type(model)(config), model.state_dict()
    names = data_fields(config)
    if all(getattr(config, name) == getattr(model.config, name) for name in names):
        new.load_state_dict(weights)
        return new
    head = getattr(type(model), "HEAD", ("head.",))
    own = {name: weight for name, weight in new.state_dict().items() if name.startswith(head)}
    new.load_state_dict({**own, **{name: weight for name, weight in weights.items() if not name.startswith(head)}})
    return new
