"""Checkpoints: everything a run needs to resume as if it had never stopped.

`checkpoints/step-000500/` holds model.safetensors, training.safetensors (optimizer, EMA) and state.json, which is
written last and has the hashes of the other two and of itself. The folder is written under a temporary name and then renamed, so a
folder of that name is complete. Older checkpoints keep only their weights, for averaging.
"""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.optim import Optimizer

from heed.files import atomic_folder, json_digest, sha256, write_json
from heed.models import folder as model_folder
from heed.models.folder import check_finite, write_weights
from heed.training.average import EMA
from heed.training.checkpoint_names import list_checkpoints, step_of
from heed.training.recurrent_state import RecurrentState
from heed.training.shards import shard_like

MODEL, TRAINING, STATE = "model.safetensors", "training.safetensors", "state.json"
DAMAGES = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, SafetensorError)


Check = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True)
class Checkpoint:
    """The contents of one checkpoint folder."""

    step: int
    model: dict[str, Tensor]
    training: dict[str, Tensor]
    state: dict[str, Any]


def write(
    folder: Path, step: int, model: Mapping[str, Tensor], training: Mapping[str, Tensor], state: Mapping[str, Any]
) -> Path:
    """Write `folder`/step-N atomically."""
    path = folder / f"step-{step:06d}"
    _remove_partial(folder)
    with atomic_folder(path, "replace") as part:
        write_weights(part / MODEL, model)
        write_weights(part / TRAINING, training)
        hashes = {name: sha256(part / name) for name in (MODEL, TRAINING)}
        whole = {"step": step, **state, "sha256": hashes}
        write_json(part / STATE, {**whole, "sha256": {**hashes, STATE: json_digest(whole)}})
    return path


def read_newest(
    folder: Path, warn: Callable[[str], None], check: Check = lambda state: None, last: int | None = None
) -> Checkpoint | None:
    """The newest intact checkpoint up to step `last`; `warn` is called with one sentence for each damaged one that is
    skipped.
    """
    for path in reversed(list_checkpoints(folder)):
        if last is not None and step_of(path) > last:
            continue
        try:
            kept = read(path, check)
        except ValueError as error:
            warn(f"{error}; using the checkpoint before it")
            continue
        if STATE not in kept.state["sha256"]:
            warn(f"{path / STATE} was written by an earlier version without a hash: it cannot be verified")
        return kept
    return None


def read(path: Path, check: Check = lambda state: None) -> Checkpoint:
    """A complete checkpoint, verified; `check` raises an error if the run cannot continue from its state."""
    state = read_state(path)
    weights, rest = (_read_tensors(path, name, state) for name in (MODEL, TRAINING))
    try:
        check(state)
    except DAMAGES as error:
        raise ValueError(f"{path / STATE} is damaged ({_said(error)})") from error
    return Checkpoint(state["step"], weights, rest, state)


def read_weights(path: Path) -> dict[str, Tensor]:
    """The weights of a checkpoint, verified."""
    if not path.is_dir():
        raise ValueError(f"{path} is missing")
    return _read_tensors(path, MODEL, read_state(path))


def read_state(path: Path) -> dict[str, Any]:
    """The content of state.json, if its hash is correct, it is of this step, and it has the hashes of the other
    files.
    """
    try:
        state = json.loads((path / STATE).read_text("utf-8"))
        hashes = dict(state["sha256"])
        own = hashes.pop(STATE, None)  # an earlier version wrote none
        if own not in (None, json_digest({**state, "sha256": hashes})):
            raise ValueError("its hash does not match the recorded one")
        if {MODEL, TRAINING} - hashes.keys():
            raise ValueError("it lacks hashes of the other files")
        if state["step"] != step_of(path):
            raise ValueError(f"it is from step {state['step']}")
        return state
    except DAMAGES as error:
        raise ValueError(f"{path / STATE} is damaged ({_said(error)})") from error


def _read_tensors(path: Path, name: str, state: Mapping[str, Any]) -> dict[str, Tensor]:
    try:
        if sha256(path / name) != state["sha256"][name]:
            raise ValueError(f"its hash does not match {STATE}")
        tensors = load_file(path / name)
    except FileNotFoundError as error:
        raise ValueError(f"{path} has no {name}") from error
    except DAMAGES as error:
        raise ValueError(f"{path / name} is damaged ({_said(error)})") from error
    if name == MODEL:
        check_finite(tensors, path / name)
    return tensors


def _said(error: Exception) -> str:
    return f"it lacks {error}" if isinstance(error, KeyError) else str(error)


def prune(folder: Path, step: int, keep: int, weights_of: Sequence[int], whole: Sequence[int] = ()) -> None:
    """Keep the newest `keep` checkpoints and those of the steps `whole`, and the weights of `weights_of`; delete the
    rest. Those after `step`, where the run is, are from before it went back: to extend it, or since they are damaged.
    """
    paths = list_checkpoints(folder)
    for path in (path for path in paths if step_of(path) > step):
        shutil.rmtree(path)
    for path in [path for path in paths if step_of(path) <= step][:-keep]:
        if step_of(path) in whole:
            continue
        if step_of(path) in weights_of:
            (path / TRAINING).unlink(missing_ok=True)
        else:
            shutil.rmtree(path)
    _remove_partial(folder)


def _remove_partial(folder: Path) -> None:
    """Remove the temporary folders of a process that was killed while writing."""
    for part in folder.glob(".*.part"):
        shutil.rmtree(part, ignore_errors=True)


def optimizer_tensors(optimizer: Optimizer, names: Sequence[str]) -> dict[str, Tensor]:
    """The optimizer state under the names of the weights it belongs to."""
    state = optimizer.state_dict()["state"]
    return {f"optimizer.{key}.{names[i]}": value for i, entry in state.items() for key, value in entry.items()}


def restore_optimizer(optimizer: Optimizer, tensors: Mapping[str, Tensor], names: Sequence[str]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    index = {name: i for i, name in enumerate(names)}
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    for full, value in tensors.items():
        if full.startswith("optimizer."):
            _, key, name = full.split(".", 2)
            state.setdefault(index[name], {})[key] = shard_like(value, weights[index[name]])
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


class TrainingState:
    """What a checkpoint saves: model, optimizer and, if any, the moving average and the objective's recurrent state."""

    def __init__(
        self, model: nn.Module, optimizer: Optimizer, ema: EMA | None = None, recurrent: RecurrentState | None = None
    ):
        self.model, self.optimizer, self.ema, self.recurrent = model, optimizer, ema, recurrent
        names = {id(weight): name for name, weight in model.named_parameters()}
        self.names = [
            names[id(weight)] for group in optimizer.param_groups for weight in group["params"]
        ]  # in its order

    def tensors(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The weights, and all other tensors."""
        rest = optimizer_tensors(self.optimizer, self.names)
        if self.ema is not None:
            rest |= {f"ema.{name}": weight for name, weight in self.ema.weights.items()}
        if self.recurrent is not None:
            rest |= self.recurrent.tensors()
        return self.model.state_dict(), rest

    def restore(self, weights: Mapping[str, Tensor], rest: Mapping[str, Tensor], folder: Path) -> list[str]:
        """Load what was saved in `folder`; returns messages for the user."""
        current = self.model.state_dict()
        weights = {name: shard_like(weight, current.get(name, weight)) for name, weight in weights.items()}
        model_folder.put(self.model, weights, folder)
        restore_optimizer(self.optimizer, rest, self.names)
        if self.recurrent is not None:
            self.recurrent.restore(rest)
        if self.ema is None:
            return []
        if f"ema.{self.names[0]}" not in rest:
            self.ema = EMA(self.model, self.ema.decay)
            return ["The checkpoint has no moving average: it restarts from the weights."]
        for name, weight in self.ema.weights.items():
            weight.copy_(shard_like(rest[f"ema.{name}"], weight))
        return []
