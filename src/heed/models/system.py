"""What a recipe and a model folder need to know of a system."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn


@dataclass(frozen=True)
class System:
    """A model class, which takes its config and nothing else; its config; sizes by name.

    `title` is for people. `vocabulary`: the kind that is learned with it (None: heed's own). `task`: what it learns by default. `defaults`:
    where a recipe differs from the config's. `growth`: up to how many examples each preset is chosen by itself.
    """

    model: type[nn.Module]
    config: type
    presets: Mapping[str, Mapping[str, Any]]
    title: str
    vocabulary: str | None = None
    task: str = "translation"
    defaults: Mapping[str, Any] = field(default_factory=dict)
    growth: tuple[tuple[int, str], ...] = ((100_000, "tiny"), (1_000_000, "small"))

    def preset_for(self, examples: int) -> str:
        """The size that this much data can train."""
        return next((name for limit, name in self.growth if examples < limit), "base")
