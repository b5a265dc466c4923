"""Whether a run may start, or be resumed, in a folder."""

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from heed.data.batching import DataPosition
from heed.files import exclusive, write_text
from heed.runs.ending import can_extend, reopened
from heed.runs.recipe import Recipe, differences, read
from heed.runs.run_folder import RunFolder
from heed.runs.teacher import WEIGHTS
from heed.runs.validation_history import ValidationHistory
from heed.training import checkpoints, torchrun
from heed.training.checkpoints import Checkpoint
from heed.training.config import TrainingConfig

LOCK = ".lock"
JOB = ".torchrun"  # the identifier of the torchrun call that started or resumed the run last
FIXED = ("data", "task", "filters", "subwords", "vectors", "model")  # what a resumed run may not change
FREE = {  # except for what changes no batch
    "filters.rejected", "data.source_language", "data.target_language", "data.licence", "data.corpora.name",
    "task.label_smoothing", "task.lm_weight", "task.r_drop", "task.teacher", "task.distillation", "task.tune_length_penalty",
}  # fmt: skip

LEFT_OPEN = {  # what a recipe may leave to the data, and to a model that was trained before
    "any": ("subwords.size",),
    "trained": (
        "data.features",
        "data.rate",
        "data.mels",
        "data.cepstra",
        "data.frame",
        "data.shift",
        "data.normalize",
    ),
}


def check_new(folder: Path, resume: bool) -> None:
    """Refuse a folder with files in it, unless a run is resumed there."""
    above = next((path for path in folder.absolute().parents if path.exists()), folder)
    if not above.is_dir():
        raise ValueError(f"{above} is a file: --out cannot be in it")
    if not folder.exists() or resume:
        return
    if not folder.is_dir():
        raise ValueError(f"{folder} is a file: --out is the run folder")
    if {path.name for path in folder.iterdir()} - {LOCK, WEIGHTS}:
        raise ValueError(f"{folder} already exists: continue with --resume, or choose another --out")


def check_folder(recipe: Recipe, folder: Path, resume: bool, say: Callable[[str], None]) -> None:
    """Check that a run may start or be resumed in this folder."""
    check_new(folder, resume)
    path = folder / "recipe.toml"
    if not resume or not path.is_file():
        return
    before = read(path, [], saved=True)
    for name, old, new in differences(before, recipe):
        if _absolute(old) == _absolute(new):  # the same files, named from another working directory
            continue
        if name.split(".")[0] in FIXED and re.sub(r"\[\d+\]", "", name) not in FREE:
            raise ValueError(f"{name} was {old!r} in {path} and is now {new!r}: a resumed run cannot change it")
        say(f"{name} is now {new!r}; it was {old!r}.")


def as_built(recipe: Recipe, folder: Path, resume: bool) -> Recipe:
    """The recipe of a resumed run, with the settings that it leaves open as they were when the model was built."""
    path = folder / "recipe.toml"
    if not resume or not path.is_file():
        return recipe
    before = read(path, [], saved=True)
    rest = {name: value for name, value in before.model.settings.items() if f"model.{name}" not in recipe.explicit}
    model = dataclasses.replace(recipe.model, settings={**recipe.model.settings, **rest})
    recipe = dataclasses.replace(recipe, model=model)
    names = LEFT_OPEN["any"] + (LEFT_OPEN["trained"] if before.model.folder else ())
    old = before.settings()
    kept = {name: old[name] for name in names if name in old.keys() & recipe.settings().keys() - recipe.explicit}
    return recipe.with_settings(kept)


def _absolute(value: Any) -> Any:
    """File names as absolute paths; the result is only compared, so other texts do no harm."""
    if isinstance(value, list):
        return [_absolute(one) for one in value]
    if isinstance(value, dict):
        return {name: _absolute(one) for name, one in value.items()}
    return str(Path(value).resolve()) if isinstance(value, str) else value


def check_state(state: Mapping[str, Any]) -> None:
    """Refuse state.json of a checkpoint if a run cannot continue from it."""
    history = ValidationHistory(**state["record"])
    rest = [number for number in (history.ends_at, history.budget) if number is not None]
    _, batch, seed = state.get("order", ["", 0, 0])
    scored = [number for score, step in history.best for number in (score, step)]
    counted = [history.waited, history.cooldown_from, history.seconds, history.validation, batch, seed]
    counted += [history.pace, history.reached]
    score_before, step_before = history.finished or (0.0, 0)
    numbers = [*scored, *history.saved, *rest, *counted, score_before, step_before]
    epoch, index = state["place"]
    whole = all(type(number) is int and number >= 0 for number in (epoch, index))
    if not (whole and isinstance(state["key"], str) and all(isinstance(number, int | float) for number in numbers)):
        raise ValueError("it was not written by a run")


def checkpoint_to_resume(
    files: RunFolder, training: TrainingConfig, say: Callable[[str], None], warn: Callable[[str], None]
) -> Checkpoint | None:
    """The newest intact checkpoint; to extend a finished run, the newest from before its cool-down."""
    newest = checkpoints.read_newest(files.checkpoints, warn, check_state)
    if newest is None:
        return None
    files.check_run(newest.state.get("run"))
    history = ValidationHistory(**newest.state["record"])
    if not can_extend(training, history):
        return newest
    if newest.step >= training.steps:
        raise ValueError(
            f"{files.folder} has done all its {training.steps:,} steps (training.steps), so extending it changes nothing: "
            f"add --set training.steps={2 * training.steps}"
        )
    before = checkpoints.read_newest(files.checkpoints, warn, check_state, history.cooldown_from)
    if before is None:
        raise ValueError(
            f"{files.checkpoints}: no checkpoint from before the learning rate decay is intact, so the run cannot be "
            f"extended; restore step-{history.cooldown_from:06d}, or start a new run from its model with --from"
        )
    say("Extending the run: it continues from before the learning rate decay.")
    return dataclasses.replace(
        before, state={**before.state, "record": reopened(before.state["record"], history, newest.step)}
    )


def position_of(state: Mapping[str, Any], order: Sequence[Any]) -> tuple[DataPosition, list[str]]:
    """The position to continue from, and messages. If the order has changed, the epoch starts over: otherwise texts
    would be skipped.
    """
    position, before = DataPosition(*state["place"]), state.get("order", order)
    if before == order or not position.index:
        return position, []
    now, then = (f"{kind}, of {tokens:,} tokens, seed {seed}" for kind, tokens, seed in (order, before))
    note = f"Batches are now {now} (before: {then}), so epoch {position.epoch + 1} starts over; no data is skipped."
    return DataPosition(position.epoch, 0), [note]


def begin(folder: Path) -> None:
    """Create the folder of a run; under torchrun, record which call it belongs to."""
    folder.mkdir(parents=True, exist_ok=True)
    if torchrun.job_id():
        write_text(folder / JOB, torchrun.job_id())


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Lock the folder, so that no other process trains into it; the system releases the lock if the process is
    killed.
    """
    with exclusive(
        folder / LOCK, f"{folder} is being trained by another process: wait for it, stop it, or choose another --out"
    ):
        yield


def restarted(folder: Path) -> bool:
    """Whether torchrun has restarted the run in this folder: then it is resumed without --resume."""
    path = folder / JOB
    return path.is_file() and path.read_text("utf-8") == torchrun.job_id()
