"""A summary of what is about to be trained: model, data, vocabulary, device, length and folder."""

from typing import Any

import torch
from torch import nn

from heed.data.corpus import Corpus
from heed.data.streams import Stream
from heed.models import MODELS, name_of
from heed.models.package import Package
from heed.runs.execution_plan import ExecutionPlan
from heed.runs.model_rows import sizes, vocabulary_row
from heed.runs.recipe import ModelChoice, Recipe
from heed.tasks.base import Prepared, Validation
from heed.training.config import TrainingConfig
from heed.training.distributed import SingleProcess
from heed.training.duration import in_words, seconds_of


def model_row(chosen: ModelChoice, model: nn.Module, base: Package | None, examples: int) -> str:
    """Architecture, preset or base model, sizes and the number of weights."""
    name, config = name_of(model), model.config
    origin = _preset(chosen, config, examples)
    if base is not None:
        origin = (
            f", with the architecture of {chosen.folder} and new weights" if chosen.fresh else f" from {chosen.folder}"
        )
    weights = list(model.parameters())
    total = sum(weight.numel() for weight in weights)
    trained = sum(weight.numel() for weight in weights if weight.requires_grad)
    some = f", {trained:,} of them trained" if trained < total else ""
    return f"{name}{origin}, {sizes(vars(config))} · {total:,} weights{some}"


def _preset(chosen: ModelChoice, config: Any, examples: int) -> str:
    """The preset in brackets, if the model has its sizes."""
    if chosen.folder is not None:
        return ""
    system = MODELS[chosen.name]
    preset = system.preset_for(examples) if chosen.preset == "auto" else chosen.preset
    same = all(getattr(config, name) == value for name, value in system.presets[preset].items())
    return f" ({preset})" if same else ""


def data_row(recipe: Recipe, prepared: Prepared, validation: Validation) -> str:
    """The training data, with token counts if applicable, and the size of the validation set."""
    train, tokens = prepared.train, ""
    if isinstance(train, Corpus):
        sides = [train.source] if train.target is train.source else [train.source, train.target]
        tokens = f" · {sum(len(side.ids) for side in sides):,} tokens"
    elif isinstance(train, Stream):
        tokens = f" · {len(train):,} tokens"
    summary = recipe.task.data_summary(prepared).removesuffix(".")
    return f"{summary}{tokens} · {validation.size:,} to validate on"


def device_row(plan: ExecutionPlan, workers: SingleProcess) -> str:
    """The device, and how the run is executed."""
    threads = torch.get_num_threads()
    cpu = f"CPU, {threads} {'thread' if threads == 1 else 'threads'}"
    where = cpu if workers.device.type == "cpu" else torch.cuda.get_device_name(workers.device)
    many = f"{workers.world} × {where}" if workers.world > 1 else where
    how = ", fused kernels and CUDA graphs" if plan.accelerated else ", CUDA graphs" if plan.captured else ""
    return f"{many}, {plan.precision}{how}"


def length_row(t: TrainingConfig, done: int) -> str:
    """The maximum length of the run, and what may end it earlier."""
    parts = [f"at most {t.steps:,}" if t.time or t.patience else f"{t.steps:,}"]
    if t.time is not None:
        parts.append(f"{in_words(seconds_of(t.time.removeprefix('+')))}{' more' if t.adds_time else ''} at most")
    if t.patience:
        parts.append(f"until {t.patience} validations bring no new best")
    parts.append(f"a validation every {t.valid_every:,}")
    return " · ".join(parts) + (f" · from step {done:,}" if done else "")


def training_summary(run: Any, base: Package | None) -> dict[str, str]:
    """The rows by label, as displayed; `run` is a Run with all its parts."""
    recipe, prepared = run.recipe, run.prepared
    rows = {
        "Task": recipe.task.name,
        "Model": model_row(recipe.model, run.model, base, len(prepared.train)),
        "Data": data_row(recipe, prepared, run.validation),
        "Vocabulary": vocabulary_row(prepared.processors),
        "Device": device_row(run.plan, run.workers),
        "Steps": length_row(recipe.training, run.step),
        "Folder": "" if run.command.rehearsal else str(run.folder),
    }
    return {label: value for label, value in rows.items() if value}
