"""The pre-trained model that training starts from, if any."""

import dataclasses
import re
from pathlib import Path

from heed import config
from heed.convert import hub
from heed.decoding.config import UNGUARDED, UNLIMITED, DecodingConfig
from heed.loading import open_package, read_task
from heed.models import MODELS
from heed.models import folder as model_folder
from heed.models.encoder import Encoder
from heed.models.package import Package
from heed.runs.recipe import Recipe, fits
from heed.tasks import TASKS


def open_base(recipe: Recipe, folder: Path, resume: bool) -> Package | None:
    """The pre-trained model of the recipe. A resumed run has its own copy, since the original may be gone."""
    if recipe.model.folder is None:
        return None
    if resume and (folder / "model" / model_folder.CONFIG).is_file():
        return open_package(folder / "model")
    base = lengthened(open_package(recipe.model.folder), recipe.model.settings.get("max_length"))
    check_fit(recipe, base)
    recipe.task.check_base(recipe, base)
    return base


def lengthened(base: Package, positions: int | None) -> Package:
    """The model with more positions, if it is an encoder and the recipe asks for more than it has."""
    if positions is None or not isinstance(base.model, Encoder) or positions <= base.model.config.max_length:
        return base
    return base._replace(model=base.model.lengthened(positions))


def check_folder(name: str, recipes: Path) -> None:
    """Refuse a missing folder, and say which recipe in the folder `recipes` creates it, if any."""
    if Path(name).is_dir() or not hub.is_path(name):
        return
    command = re.compile(rf"#\s*(heed train .*--out {re.escape(name)})(\s|$)")
    lines = (line for path in sorted(recipes.glob("*.toml")) for line in path.read_text("utf-8").splitlines())
    made = next((found[1] for line in lines if (found := command.match(line))), None)
    hint = f"make it first with: {made}" if made else "give an existing run or model"
    raise ValueError(f"model.folder is {name}, which does not exist: {hint}, or start from another with --from")


def task_of_plain_text(name: str) -> str | None:
    """The task of a model that was trained on plain text, so that it can be trained on more; None for other models."""
    task = read_task(name)
    return task if getattr(TASKS.get(task), "one_sided", False) else None


def check_fit(recipe: Recipe, base: Package) -> None:
    """Refuse a model that cannot learn the task, or that was trained for another."""
    task, labels = recipe.task, getattr(base.model.config, "labels", 0)
    if recipe.model.prompt and not hasattr(base.model.config, "prompt_length"):
        raise ValueError(
            f"model.prompt is {recipe.model.prompt}, but {recipe.model.folder} does not support prompts: set it to 0"
        )
    if isinstance(base.model, task.needs) and (not labels or task.name == base.task):
        return
    able = [name for name in MODELS if fits(task, name)]
    if base.task not in TASKS:
        raise ValueError(
            f"{recipe.model.folder} is for {base.task}, which heed cannot train: it cannot learn {task.name}; start "
            f"from another model ({', '.join(able)})"
        )
    raise ValueError(
        f"{recipe.model.folder} is {TASKS[base.task].products[0].noun}: it cannot learn {task.name}; "
        f"set task.name to {base.task!r}, or start from another model ({', '.join(able)})"
    )


def with_base_search(recipe: Recipe, base: Package | None) -> Recipe:
    """The recipe, with the pre-trained model's search settings where the recipe sets none. Those of a model that Heed
    did not train say no guards; the tuned model has them.
    """
    if base is None or recipe.decoding is None:
        return recipe
    brought = config.typed(type(recipe.decoding), base.facts.get("decoding", {}))
    if isinstance(recipe.decoding, DecodingConfig) and "trained" not in base.facts:
        spoken = set(recipe.data.languages(base.facts.get("languages") or {}).values())
        between = None not in spoken and len(spoken) == 2  # summaries keep their limit
        own = {*UNGUARDED, *(UNLIMITED if between and recipe.decoding.avoid_overlong else ())}
        brought = {name: value for name, value in brought.items() if name not in own}
    rest = {name: value for name, value in brought.items() if f"decoding.{name}" not in recipe.explicit}
    return dataclasses.replace(recipe, decoding=dataclasses.replace(recipe.decoding, **rest))
