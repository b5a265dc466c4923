"""How fast a run can go: in which precision, whether sentences go end to end, and by which road forward and back."""

import dataclasses
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from torch import nn

from heed.data.batching import Batches, Collate, DataPosition, collate, plan, plan_packed
from heed.data.packing import pack
from heed.data.prefetch import in_processes, worker_count
from heed.data.streams import Stream
from heed.kernels import fused_model
from heed.nn.attention import Attention
from heed.nn.packing import SHORT
from heed.runs.jobs import Job
from heed.runs.prepare import Prepared
from heed.runs.recipe import Recipe
from heed.tasks.translation import RDrop, Taught, Translation
from heed.training.config import TrainingConfig
from heed.training.distributed import Sharded, SingleProcess


class ExecutionPlan(NamedTuple):
    """`plan` and `together` are how batches are made, for a model with `longest` places; `accelerated` is whether training/fused_model.py
    goes forward and back, and `lacking` what it would have needed.
    """

    precision: str
    plan: Callable
    together: Collate
    longest: int
    accelerated: bool = False
    lacking: str = ""

    def order(self, t: TrainingConfig) -> list[Any]:
        """What decides which texts go together, and when: a place in the data means nothing in another order."""
        return ["packed" if self.plan is plan_packed else "padded", t.batch_tokens, t.seed]

    def says(self, device: torch.device) -> list[str]:
        """What a person should know of it."""
        if self.lacking:
            return [f"This run goes the plain way, which is slower: {self.lacking}."]
        if self.precision != "bfloat16" or device.type != "cpu" or _multiplies_bfloat16():
            return []
        warnings.filterwarnings("ignore", "mkldnn_matmul failed")  # which says the same in a hundred lines
        return [
            "training.precision is bfloat16, which this CPU does not multiply: it takes many times as long as float32; "
            'use training.precision = "auto"'
        ]

    def context(self, device: torch.device) -> AbstractContextManager:
        """Around what the model computes, where it does not go swiftly."""
        torch.set_float32_matmul_precision("high" if self.precision == "tf32" else "highest")
        half = self.precision == "bfloat16"
        return torch.autocast(device.type, dtype=torch.bfloat16) if half else nullcontext()

    def passes(self, model: nn.Module, objective: Callable) -> Callable[[Any], Any] | None:
        """What goes forward and back in the objective's stead, if anything does."""
        if not self.accelerated:
            return None
        from heed.training.accelerated.cuda_graph_step import CudaGraphStep

        if isinstance(objective, Taught):
            device = next(model.parameters()).device
            teachers = tuple(fused_model.half_precision_copy(own).to(device) for own in objective.teachers)
            objective = dataclasses.replace(objective, teachers=teachers)
        return CudaGraphStep(model, objective)


def _multiplies_bfloat16() -> bool:
    able = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)
    return able is not None and able()


def plan_execution(
    t: TrainingConfig, model: nn.Module, job: Job, workers: SingleProcess, most: int = 0
) -> ExecutionPlan:
    """The fastest that the settings, the model, the task and the device allow; no text has more than `most` tokens."""
    cuda = workers.device.type == "cuda"
    precision = t.precision
    if precision == "auto":
        precision = "bfloat16" if cuda and multiplies_bfloat16() else "float32"
    objective = job.objective
    heard = [model, *(objective.teachers if isinstance(objective, Taught) else ())]
    known = job.together is collate and isinstance(objective, Translation | RDrop | Taught)
    able = known and all(map(fused_model.supports_packing, heard))
    longest = min(own.config.max_length for own in heard)
    if t.packed and not able:
        raise ValueError(
            "training.packed is true, but this task or this model cannot take sentences end to end: leave the setting out"
        )
    accelerated = (
        able
        and all(map(fused_model.supports, heard))
        and cuda
        and precision == "bfloat16"
        and not isinstance(workers, Sharded)
        and not t.compile
        and t.packed is not False
    )
    lacking = _lacking(model, most) if accelerated else ""
    if not t.packed and (lacking or not accelerated):
        return ExecutionPlan(precision, plan, job.together, longest, lacking=lacking)
    slots = _slots(-(-t.batch_tokens // workers.world))  # of one process' share
    return ExecutionPlan(
        precision, plan_packed, partial(pack, slots=slots), longest, accelerated and not lacking, lacking
    )


def multiplies_bfloat16() -> bool:
    """Whether the GPU does."""
    return torch.cuda.is_bf16_supported(including_emulation=False)


def _lacking(model: nn.Module, most: int) -> str:
    """What else the swift way needs, if it is not there."""
    if find_spec("triton") is None:
        return "Triton is not installed, in which the kernels of the swift one are written"
    if not multiplies_bfloat16():
        return "this GPU does not multiply bfloat16"
    drops = any(part.dropout for part in model.modules() if isinstance(part, Attention))
    if drops and most > SHORT:  # there each would be padded to the longest, and more
        return f"attention is dropped, and texts have up to {most} tokens, of which the swift one is for {SHORT}"
    return ""


def longest(recipe: Recipe, prepared: Prepared, places: int) -> int:
    """How many tokens a text may have, its marks among them; one of sampled subwords as many as a model has `places`."""
    if isinstance(prepared.corpus, Stream):
        return 0
    if recipe.subwords.sampling:
        return places
    sides = zip((prepared.corpus.source, prepared.corpus.target), prepared.subwords, strict=True)
    return max(int(own.lengths.max()) + len(words.marks.before) + 1 for own, words in sides)


def _slots(budget: int) -> int:
    """About a sixteenth of a batch, of whole tiles, and such that a full batch is filled up by the least."""
    tried = [-(-budget // parts // 128) * 128 for parts in range(12, 21)]
    return min(tried, key=lambda slots: (-budget % slots, slots))


def batches(
    recipe: Recipe, prepared: Prepared, job: Job, chosen: ExecutionPlan, workers: SingleProcess, place: DataPosition
) -> Iterator[tuple[DataPosition, Any]]:
    """The batches of a run from a place on, for one of its processes."""
    share = workers.rank, workers.world
    if job.windows is not None:
        return job.windows(prepared.corpus, share).start(place)
    made = Batches(
        prepared.corpus,
        budget=recipe.training.batch_tokens,
        seed=recipe.training.seed,
        sampling=recipe.subwords.sampling,
        subwords=prepared.subwords if recipe.subwords.sampling else None,
        max_length=chosen.longest,
        marks=tuple(part.marks for part in prepared.subwords),
        collate=chosen.together,
        noise=job.noise,
        share=share,
        plan=chosen.plan,
    )
    # to sample subwords or to make noise costs as much as to train on it: a process of its own does it
    apart = recipe.subwords.sampling or job.noise is not None
    return in_processes(made, place, workers=worker_count()) if apart else made.start(place)
