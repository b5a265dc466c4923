"""How a run is executed: precision, packed or padded, with plain torch or the accelerated step."""

import dataclasses
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from torch import nn

from heed.data.batching import Collate, collate, plan, plan_packed
from heed.data.labelled import PackTexts
from heed.data.packing import pack
from heed.kernels import fused_model
from heed.nn.attention import Attention
from heed.nn.packing import SHORT
from heed.nn.transformer import SharedStack, Stack
from heed.tasks.base import Objective, Task
from heed.training.config import TrainingConfig
from heed.training.distributed import Sharded, SingleProcess


class ExecutionPlan(NamedTuple):
    """`grouping` and `collate` build batches for a model with `longest` positions. `accelerated`: with CUDA graphs
    and fused kernels; `missing` is what they lack. `captured`: with CUDA graphs of the plain kernels.
    """

    precision: str
    grouping: Callable
    collate: Collate
    longest: int
    accelerated: bool = False
    missing: str = ""
    slots: int = 1  # the tokens of an accelerated batch are a multiple of this
    captured: bool = False

    def order(self, t: TrainingConfig) -> list[Any]:
        """What determines the batches and their order: a position is meaningless in another order."""
        return ["packed" if self.grouping is plan_packed else "padded", t.batch_tokens, t.seed]

    def notes(self, device: torch.device) -> list[str]:
        """Messages for the user about the plan."""
        if self.missing and not self.captured:
            return [f"This run uses the standard training step, which is slower: {self.missing}."]
        if self.precision != "bfloat16" or device.type != "cpu" or _cpu_multiplies_bfloat16():
            return []
        warnings.filterwarnings("ignore", "mkldnn_matmul failed")  # the same warning in a hundred lines
        return [
            "training.precision is bfloat16, which this CPU does not support: it is many times slower than float32; "
            'use training.precision = "auto"'
        ]

    def context(self, device: torch.device) -> AbstractContextManager:
        """The autocast context of the model if the step is not accelerated."""
        torch.set_float32_matmul_precision("high" if self.precision == "tf32" else "highest")
        half = self.precision == "bfloat16"
        return torch.autocast(device.type, dtype=torch.bfloat16) if half else nullcontext()

    def passes(self, model: nn.Module, objective: Objective) -> Callable[[Any], Any] | None:
        """What computes the forward and backward pass instead of the objective; None if nothing does."""
        if self.captured:
            from heed.training.accelerated.captured_passes import CapturedPasses

            device = next(model.parameters()).device
            return CapturedPasses(model, objective, lambda: self.context(device))
        if not self.accelerated:
            return None
        from heed.training.accelerated.cuda_graph_step import CudaGraphStep

        if teachers := getattr(objective, "teachers", ()):
            device = next(model.parameters()).device
            copies = tuple(fused_model.half_precision_copy(teacher).to(device) for teacher in teachers)
            objective = dataclasses.replace(objective, teachers=copies)
        return CudaGraphStep(model, objective)


def _cpu_multiplies_bfloat16() -> bool:
    able = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)
    return able is not None and able()


def plan_execution(
    t: TrainingConfig, model: nn.Module, task: Task, objective: Objective, workers: SingleProcess, most: int = 0
) -> ExecutionPlan:
    """The fastest plan that the settings, the model, the task and the device allow; no text has more than `most`
    tokens.
    """
    cuda = workers.device.type == "cuda"
    precision = t.precision
    if precision == "auto":
        precision = "bfloat16" if cuda and gpu_multiplies_bfloat16() else "float32"
    models = [model, *getattr(objective, "teachers", ())]
    refusals = [_refusal(task, objective, one, most) for one in models]
    longest = min(one.config.max_length for one in models)
    asked = t.packed or not getattr(objective, "packed_if_asked", False)
    preferred = t.packed is None and getattr(objective, "prefers_packing", False)
    rows = (
        cuda
        and bool(t.packed or preferred)
        and getattr(objective, "rows_of_text", False)
        and fused_model.supports(model)
    )
    packable = not any(refusals) and not rows and bool(asked)
    if t.packed and not (packable or rows):
        raise ValueError(f"training.packed is true, but {next(filter(None, refusals))}: remove the setting")
    accelerated = (
        (packable or rows or getattr(objective, "windows", False))
        and (rows or getattr(objective, "few_shapes", True))
        and all(map(fused_model.supports, models))
        and cuda
        and precision == "bfloat16"
        and not isinstance(workers, Sharded)
        and not t.compile
        and t.packed is not False
    )
    missing = _missing(model, most) if accelerated else ""
    accelerated = accelerated and not missing
    packed = packable and bool(t.packed or preferred or accelerated)
    few = getattr(objective, "few_shapes", False) if packed else getattr(task, "equal_batches", False)
    captured = (
        cuda
        and not accelerated
        and type(workers) is SingleProcess
        and not t.compile
        and few
        and _has_fixed_shapes(model)
    )
    if not packed:
        collated = getattr(task, "collate", collate)
        return ExecutionPlan(precision, plan, collated, longest, accelerated, missing, captured=captured)
    packs = getattr(task, "pack", pack)
    if isinstance(packs, PackTexts):
        packs = dataclasses.replace(packs, most=most)
    slots = _slots(-(-t.batch_tokens // workers.world)) if accelerated or captured else 1  # of one process's share
    return ExecutionPlan(
        precision, plan_packed, partial(packs, slots=slots), longest, accelerated, missing,
        slots if accelerated else 1, captured,
    )  # fmt: skip


def _refusal(task: Task, objective: Objective, model: nn.Module, most: int) -> str:
    """Why there can be no packed batches of texts of up to `most` tokens for a model; empty if there can."""
    if not hasattr(objective, "packed"):
        return getattr(objective, "unpacked", "") or f"{task.name} with these settings does not support packed training"
    own = getattr(objective, "packs", None)
    if own(model, most) if own else fused_model.supports_packing(model):
        return ""
    longest = max(most, getattr(objective, "length", 0))
    return f"this {type(model).__name__} does not support packed training with texts of {longest} tokens"


def _has_fixed_shapes(model: nn.Module) -> bool:
    """Whether a model is a Transformer whose tensors have the same shapes for all batches of one shape."""
    parts = list(model.modules())
    fixed = all(getattr(part, "fixed_shapes", True) for part in parts)
    return fixed and any(isinstance(part, (Stack, SharedStack)) for part in parts)


def gpu_multiplies_bfloat16() -> bool:
    return torch.cuda.is_bf16_supported(including_emulation=False)


def _missing(model: nn.Module, most: int) -> str:
    """What the accelerated step lacks; empty if nothing."""
    if find_spec("triton") is None:
        return "the accelerated step needs Triton, which is not installed"
    if not gpu_multiplies_bfloat16():
        return "this GPU has no bfloat16 matrix products"
    if any(getattr(part, "word_dropout", 0.0) for part in model.modules()):
        return "the accelerated step does not drop whole words (model.word_dropout)"
    drops = any(part.dropout for part in model.modules() if isinstance(part, Attention))
    if drops and most > SHORT:  # torch's kernel would need padding to the longest text there
        return f"with attention dropout the accelerated step takes texts of up to {SHORT} tokens, but some have {most}"
    return ""


def _slots(budget: int) -> int:
    """About a sixteenth of a batch, in whole tiles, chosen so that a full batch has the least padding."""
    tried = [-(-budget // parts // 128) * 128 for parts in range(12, 21)]
    return min(tried, key=lambda slots: (-budget % slots, slots))
