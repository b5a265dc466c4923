"""Checkpoints: all that a run needs to go on as if it had never stopped.

`checkpoints/step-000500/` holds model.safetensors, training.safetensors (optimizer, EMA) and state.json,
which comes last and has the hashes of the other two. It is written aside and renamed: what bears the
name is complete. Older ones keep their weights alone, for averaging.
"""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import Tensor, nn
from torch.optim import Optimizer

from heed.files import atomic_folder, sha256, write_json
from heed.models import folder as model_folder
from heed.models.folder import write_weights
from heed.training.average import EMA
from heed.training.recurrent_state import Carried
from heed.training.shards import like

MODEL, TRAINING, STATE = "model.safetensors", "training.safetensors", "state.json"


@dataclass(frozen=True)
class Checkpoint:
    """What was read back."""

    step: int
    model: dict[str, Tensor]
    training: dict[str, Tensor]
    state: dict[str, Any]


def write(
    folder: Path, step: int, model: Mapping[str, Tensor], training: Mapping[str, Tensor], state: Mapping[str, Any]
) -> Path:
    """`folder`/step-N, complete or not there at all."""
    path = folder / f"step-{step:06d}"
    _remove_partial(folder)
    with atomic_folder(path, "replace") as part:
        write_weights(part / MODEL, model)
        write_weights(part / TRAINING, training)
        hashes = {name: sha256(part / name) for name in (MODEL, TRAINING)}
        write_json(part / STATE, {"step": step, **state, "sha256": hashes})
    return path


def found(folder: Path) -> list[Path]:
    """The checkpoints of a run, oldest first, whole or thin."""
    numbered = (path for path in folder.glob("step-*") if path.is_dir() and path.name[5:].isdigit())
    return sorted(numbered, key=step_of)


def step_of(path: Path) -> int:
    return int(path.name.removeprefix("step-"))


def newest(folder: Path, tell: Callable[[str], None]) -> Checkpoint | None:
    """The newest checkpoint that is whole. Of each that is not, `tell` is told in a sentence."""
    for path in reversed(found(folder)):
        try:
            return read(path)
        except ValueError as error:
            tell(f"{error}; going back to the checkpoint before it")
    return None


def read(path: Path) -> Checkpoint:
    try:
        state = json.loads((path / STATE).read_text("utf-8"))
        for name, digest in state["sha256"].items():
            if sha256(path / name) != digest:
                raise ValueError(f"{path / name} is damaged (its hash is not the one in {STATE})")
        return Checkpoint(state["step"], load_file(path / MODEL), load_file(path / TRAINING), state)
    except (OSError, KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is damaged ({error})") from error


def prune(folder: Path, keep: int, weights_of: Sequence[int]) -> None:
    """Keep the newest `keep` whole, of the steps `weights_of` the weights alone, and nothing else."""
    paths = found(folder)
    for path in paths[:-keep]:
        if step_of(path) in weights_of:
            (path / TRAINING).unlink(missing_ok=True)
        else:
            shutil.rmtree(path)
    _remove_partial(folder)


def _remove_partial(folder: Path) -> None:
    """Remove what a killed process left half written."""
    for part in folder.glob(".*.part"):
        shutil.rmtree(part, ignore_errors=True)


def optimizer_tensors(optimizer: Optimizer, names: Sequence[str]) -> dict[str, Tensor]:
    """The optimizer's memory under the names of the weights it belongs to."""
    state = optimizer.state_dict()["state"]
    return {f"optimizer.{key}.{names[i]}": value for i, entry in state.items() for key, value in entry.items()}


def restore_optimizer(optimizer: Optimizer, tensors: Mapping[str, Tensor], names: Sequence[str]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    place = {name: i for i, name in enumerate(names)}
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    for full, value in tensors.items():
        if full.startswith("optimizer."):
            _, key, name = full.split(".", 2)
            state.setdefault(place[name], {})[key] = like(value, weights[place[name]])
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


class TrainingState:
    """What a checkpoint is of: a model, the optimizer's memory, and the moving average and what is carried, if any."""

    def __init__(self, model: nn.Module, optimizer: Optimizer, ema: EMA | None = None, carried: Carried | None = None):
        self.model, self.optimizer, self.ema, self.carried = model, optimizer, ema, carried
        self.names = [name for name, _ in model.named_parameters()]

    def tensors(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The weights, and the rest."""
        rest = optimizer_tensors(self.optimizer, self.names)
        if self.ema is not None:
            rest |= {f"ema.{name}": weight for name, weight in self.ema.weights.items()}
        if self.carried is not None:
            rest |= self.carried.tensors()
        return self.model.state_dict(), rest

    def restore(self, weights: Mapping[str, Tensor], rest: Mapping[str, Tensor], folder: Path) -> list[str]:
        """Be again what was written into `folder`; what to say about it."""
        own = self.model.state_dict()
        weights = {name: like(weight, own.get(name, weight)) for name, weight in weights.items()}
        model_folder.put(self.model, weights, folder)
        restore_optimizer(self.optimizer, rest, self.names)
        if self.carried is not None:
            self.carried.restore(rest)
        if self.ema is None:
            return []
        if f"ema.{self.names[0]}" not in rest:
            self.ema = EMA(self.model, self.ema.decay)
            return ["The checkpoint has no moving average: it starts from the weights there."]
        for name, weight in self.ema.weights.items():
            weight.copy_(like(rest[f"ema.{name}"], weight))
        return []
