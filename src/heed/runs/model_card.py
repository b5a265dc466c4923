"""The model card: what a model was trained on, and how good it is."""

from pathlib import Path
from typing import Any

from heed.models import MODELS
from heed.runs.recipe import Recipe
from heed.tasks.base import Prepared


def write(recipe: Recipe, facts: dict[str, Any], prepared: Prepared, size: int) -> str:
    """README.md of a model folder. `size` is that of the validation set."""
    trained, task = facts["trained"], recipe.task
    rows = {"model": shape(facts["model"]), "weights": trained["weights"]}
    if recipe.model.folder:
        rows["started from"] = Path(recipe.model.folder).name
    rows |= task.card_rows(recipe, prepared, facts)
    named = [
        (task.metric_of(name.removeprefix("valid_")), value) for name, value in trained.items() if "valid_" in name
    ]
    scores = [f"| {found[1]} | {value:.4g} | {found[0].meaning()} |" for found, value in named if found]
    beam = f", beam {recipe.training.valid_beam}" if task.searches else ""
    unit = "sentences" if task.searches else task.unit
    return f"""# {title(recipe, facts)}

Made with heed {facts["heed"]}. Use it with `{task.usage("FOLDER", facts)}`.

| | |
|---|---|
{chr(10).join(f"| {name} | {value} |" for name, value in rows.items())}

## Scores on the validation set ({size} {unit}{beam})

| metric | value | signature |
|---|---|---|
{chr(10).join(scores)}

The run's settings are in `recipe.toml` in its folder.
"""


def title(recipe: Recipe, facts: dict[str, Any]) -> str:
    """What the model is, with its languages if they are known."""
    languages = {side: (facts.get("languages") or {}).get(side) or side for side in ("source", "target")}
    if len(pairs := facts.get("directions") or []) > 1:
        (source, target), *others = pairs
        languages = {"source": source, "target": ", ".join([target, *(f"{one} to {two}" for one, two in others)])}
    return recipe.task.title.format(**languages)


def shape(model: dict[str, Any]) -> str:
    """The size of a model in a few words."""
    if "cell" in model and "layers" in model:
        layers, words = "{layers} layers of {hidden}", "{vocab_size} words or subwords"
        return f"{{name}} ({{cell}}), {layers}, embeddings of {{dim}}, {words}".format(**model)
    parts = {  # how the card describes a model that has this setting
        "encoder_layers": "{encoder_layers}+{decoder_layers} layers", "layers": "{layers} layers", "dim": "width {dim}",
        "heads": "{heads} heads", "cell": "{cell}, attention {attention}", "vocab_size": "{vocab_size} subwords",
        "items": "{items} items",
    }  # fmt: skip
    known = [text.format(**model) for name, text in parts.items() if name in model]
    return ", ".join([MODELS[model["name"]].title, *known])
