"""Whether a run may start, or go on, in a folder."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from heed.data.batching import DataPosition
from heed.files import write_text
from heed.runs.recipe import Recipe, differences, read
from heed.runs.teacher import WEIGHTS
from heed.training import torchrun

LOCK = ".lock"
JOB = ".torchrun"  # the name of the call of torchrun that a run was last begun by
FIXED = ("data", "task", "filters", "subwords", "vectors", "model")  # what a run that goes on may not change
FREE = {  # of that, what changes no batch
    "filters.rejected", "data.source_language", "data.target_language", "data.licence",
    "task.label_smoothing", "task.r_drop", "task.teacher", "task.distillation",
}  # fmt: skip


def check_folder(recipe: Recipe, folder: Path, resume: bool, say: Callable[[str], None]) -> None:
    """See that a run may start or go on in this folder."""
    path = folder / "recipe.toml"
    if folder.exists() and {path.name for path in folder.iterdir()} - {LOCK, WEIGHTS} and not resume:
        raise ValueError(f"{folder} exists already: go on with --resume, or choose another --out")
    if not resume or not path.is_file():
        return
    before = read(path, [], saved=True)
    for name, old, new in differences(before, recipe):
        if _absolute(old) == _absolute(new):  # files, from another folder
            continue
        if name.split(".")[0] in FIXED and name not in FREE:
            raise ValueError(f"{name} was {old!r} in {path} and is now {new!r}: a run that goes on cannot change it")
        say(f"{name} is now {new!r}; it was {old!r}.")


def _absolute(value: Any) -> Any:
    """Names of files as whole paths; anything else stays told apart."""
    if isinstance(value, list):
        return [_absolute(one) for one in value]
    return str(Path(value).resolve()) if isinstance(value, str) else value


def position_of(state: Mapping[str, Any], order: Sequence[Any]) -> tuple[DataPosition, list[str]]:
    """Where in the data to go on, and what to say of it: in another order than before, some texts would be left out."""
    place, before = DataPosition(*state["place"]), state.get("order", order)
    if before == order or not place.index:
        return place, []
    now, then = (f"{kind}, of {tokens:,} tokens, seed {seed}" for kind, tokens, seed in (order, before))
    told = f"Batches are now {now} (before: {then}), so epoch {place.epoch + 1} begins anew: nothing of it is left out."
    return DataPosition(place.epoch, 0), [told]


def begin(folder: Path) -> None:
    """Make the folder of a run; under torchrun, say in it whose it is."""
    folder.mkdir(parents=True, exist_ok=True)
    if torchrun.job_id():
        write_text(folder / JOB, torchrun.job_id())


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Nobody else trains into this folder meanwhile, as far as the system can tell; who is killed is gone from it."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    with open(folder / LOCK, "w", encoding="utf-8") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            raise ValueError(
                f"{folder} is being trained by another process: wait for it, end it, or choose another --out"
            ) from None
        except OSError:
            pass  # a file system that knows no locks
        yield


def restarted(folder: Path) -> bool:
    """Whether torchrun has started again what it began in this folder: then it goes on, without being told to."""
    path = folder / JOB
    return path.is_file() and path.read_text("utf-8") == torchrun.job_id()
