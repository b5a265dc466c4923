"""The mapping between an architecture of transformers and Heed: data and a few functions, one object each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from heed.convert import generation
from heed.convert.config_table import ConfigTable, Settings
from heed.convert.weight_table import Weights, WeightTable
from heed.models.package import Package
from heed.vocabularies.vocabulary import Pair

# what models are for that heed reads and writes, but does not train
UNTRAINED = (
    "causal-encoder", "sentence-pairs", "image-features",
)  # fmt: skip


def source_and_target(vocabularies: Pair, settings: Settings) -> dict[str, Any]:
    """The processors of an encoder-decoder model."""
    return dict(zip(("source", "target"), vocabularies, strict=True))


@dataclass(frozen=True)
class Architecture:
    """A transformers class, the equivalent Heed model, and the mapping tables."""

    name: str  # of the class, as config.json has it
    model: type[nn.Module]
    config_table: ConfigTable
    weight_table: Callable[[Any], WeightTable]  # for a config
    vocabulary: str | None  # the kind, as in vocabularies/folder.py; None: it reads images
    task: str  # heed's, where config.json does not decide it
    aliases: tuple[str, ...] = ()  # also read as this: the class without a head, or just a model_type
    auto_class: str = "AutoModelForSeq2SeqLM"  # opens it in transformers
    pipeline_tag: str | None = None  # on the hub
    generates: bool = True  # text, by a search: the folder has a generation_config.json
    token_ids: tuple[str, ...] = generation.IDS  # special tokens that config.json names
    example: str | None = None  # Python that runs it on `texts`, where it neither generates nor classifies them
    framed_example: str | None = None  # the same for a model whose texts are between tokens of their own
    readable: bool = True  # False: heed's own model is written as this class, and comes back as another model
    fits: Callable[[Any], bool] = lambda config: True  # whether a model with this config is of this architecture
    processors: Callable[[Pair, Settings], dict[str, Any]] = source_and_target
    settings: Callable[[Package], dict[str, Any]] = lambda package: {}  # of config.json, beyond the config table
    task_of: Callable[[Settings], str] | None = None  # the task by config.json
    # config and weights as the tables expect them
    rearrange: Callable[[Any, Weights], tuple[Any, Weights]] = lambda config, weights: (config, weights)
    # models that are written into folders of their own within that of the model, by name
    beside: Callable[[Package], dict[str, Package]] = lambda package: {}

    def to_theirs(self, model: nn.Module) -> tuple[Weights, dict[str, Any]]:
        """The weights by name, and the model's own settings in config.json."""
        config, weights = self.rearrange(model.config, model.state_dict())
        settings = {"architectures": [self.name], **self.config_table.to_theirs(config)}
        return self.weight_table(config).to_theirs(weights), settings
