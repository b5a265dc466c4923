"""What recipes and model folders need to know about an architecture."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class System:
    """A model class, which takes only its config; its config; presets of sizes by name. `title` is for display.
    `vocabulary`: the kind learned with it (None: Heed's own). `task`: the default task. `defaults`: settings whose
    default in a recipe is not that of the config. `growth`: the number of examples below which each preset is the
    default.
    """

    model: type[Any]
    config: type
    presets: Mapping[str, Mapping[str, Any]]
    title: str
    vocabulary: str | None = None
    task: str = "translation"
    defaults: Mapping[str, Any] = field(default_factory=dict)
    has_rules: bool = False  # whether runs/defaults.py was measured for it
    growth: tuple[tuple[int, str], ...] = ((100_000, "tiny"), (1_000_000, "small"))

    def preset_for(self, examples: int) -> str:
        """The preset for this much data."""
        return next((name for limit, name in self.growth if examples < limit), "base")
