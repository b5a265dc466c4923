"""What heed info tells of a model: read from the files that heed wrote, without torch; else from the opened model."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from heed.files import sha256
from heed.models import signature
from heed.models.folder_config import read_config
from heed.models.package import Package
from heed.models.signature import CONFIG
from heed.tasks.described import DESCRIBED, TaskDescription
from heed.vocabularies import processors

WEIGHTS = "model.safetensors"
OTHER = ("model", "task", "processors", "sha256")  # sections that are no facts of a package


class ModelFacts(NamedTuple):
    """`package` may lack its model. `weights` and `size` are how many numbers and bytes the weights have."""

    folder: str
    name: str
    config: Mapping[str, Any]
    weights: int
    size: int
    task: TaskDescription
    package: Package


def read(name: str) -> ModelFacts | None:
    """From the files of a folder whose hashes are those that heed recorded; None for any other, which must be opened."""
    path = Path(name)
    if (path / "recipe.toml").is_file() and not (path / CONFIG).is_file():
        path /= "model"
    if not ((path / CONFIG).is_file() and (path / WEIGHTS).is_file()):
        return None
    try:
        return _read(path)
    except (ValueError, LookupError, TypeError):  # opening the model reports it
        return None


def _read(path: Path) -> ModelFacts | None:
    facts = read_config(path)
    stated, task = facts.get("sha256", {}), DESCRIBED.get(facts.get("task", {}).get("name"))
    if CONFIG not in stated or task is None or sha256(path / WEIGHTS) != stated.get(WEIGHTS):
        return None
    signature.check(path / CONFIG, facts)
    own = processors.read(path, facts["processors"])
    package = Package(None, facts["task"]["name"], own, {k: v for k, v in facts.items() if k not in OTHER})
    count, size = _weights(path / WEIGHTS)
    return ModelFacts(str(path), facts["model"]["name"], facts["model"], count, size, task, package)


def _weights(path: Path) -> tuple[int, int]:
    """How many numbers and bytes the header of a safetensors file states."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    count = size = 0
    for name, own in header.items():
        if name != "__metadata__":
            number = 1
            for length in own["shape"]:
                number *= length
            begin, end = own["data_offsets"]
            count, size = count + number, size + end - begin
    return count, size


def of_package(name: str, package: Package) -> ModelFacts:
    """Those of an opened model."""
    from heed.loading import find_model
    from heed.models import name_of

    weights = list(package.model.state_dict().values())
    return ModelFacts(
        str(find_model(Path(name))) if Path(name).is_dir() else name,
        name_of(package.model),
        vars(package.model.config),
        sum(own.numel() for own in weights),
        sum(own.numel() * own.element_size() for own in weights),
        DESCRIBED.get(package.task) or _of_task(package.task),
        package,
    )


def _of_task(name: str) -> TaskDescription:
    """The description of a task that is not Heed's own."""
    from heed.tasks import TASKS

    task = TASKS[name]
    metrics = {metric.name: metric.label for metric in task.metrics}
    return TaskDescription(task.products[0].noun, task.example, metrics)
