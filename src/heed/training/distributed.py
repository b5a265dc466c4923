"""A run on several processes: what they agree on, and torch's engines that make one gradient of theirs.

The loop is handed workers. `SingleProcess` is one process and has nothing to agree on. Those that torchrun starts are
`Replicated` (DDP: each has the whole model) or `Sharded` (FSDP2: each has a part of every weight). The first one
writes; what it makes or finds, the others are told.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn

from heed.nn.transformer import Layer
from heed.training import shards, torchrun
from heed.training.average import swapped
from heed.training.loss import Loss

T = TypeVar("T")
Objective = Callable[[nn.Module, Any], Loss]
STEP, ERRAND = (
    timedelta(minutes=30),
    timedelta(days=7),
)  # how long the others may take: in a step, or over something long


class SingleProcess:
    """One process."""

    rank, world = 0, 1

    def __init__(self, device: torch.device = torch.device("cpu")):  # noqa: B008 (a constant)
        self.device, self.asked = device, False
        if device.index is not None and device.type == "cuda":
            torch.cuda.set_device(device)  # kernels are started on the current one, wherever their tensors are

    @property
    def first(self) -> bool:
        return self.rank == 0

    def wrap(self, model: nn.Module, objective: Objective, compiled: bool = False) -> Objective:
        """Put the model on its device; the objective as the loop should call it."""
        model.to(self.device)
        return torch.compile(objective, dynamic=True) if compiled else objective

    def more(self, coming: bool) -> AbstractContextManager:
        """Around a batch: whether more are to come before gradients are needed."""
        return nullcontext()

    def sum(self, nll: Any, count: int) -> tuple[Any, Any]:
        """Both over all processes."""
        return nll, count

    def add(self, gradients: Tensor) -> None:
        """Gradients that no engine has summed over all processes."""

    def ask_to_leave(self) -> None:
        self.asked = True

    def leaving(self) -> bool:
        """Whether anyone has been asked to leave: the same answer at all, after the same step."""
        return self.asked

    def broadcast(self, make: Callable[[], T] = lambda: None) -> T:
        """What the first process makes of it, at all. The others wait as long as it takes."""
        return make()

    def in_turn(self, make: Callable[[], T]) -> T:
        """What each process makes; the first before the others, who may find what it has left in a cache."""
        return make()

    def broadcast_tensors(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The tensors of the first process, at all."""
        return dict(tensors)

    def rows(self, part: Tensor) -> Tensor:
        """The rows of all processes, in order; each has as many."""
        return part

    def errors_from_first(self) -> AbstractContextManager:
        """Around what fails at all processes or at none: the first alone says why."""
        return nullcontext()

    @contextmanager
    def full_model(self, model: nn.Module, weights: Mapping[str, Tensor] | None = None) -> Iterator[nn.Module | None]:
        """For the first process to look at: the model, whole, with these weights or its own."""
        with nullcontext() if weights is None else swapped(model, dict(weights)):
            yield model

    def explain(self, error: RuntimeError) -> None:
        """Raise a better error where this one came from the others."""

    def close(self) -> None:
        """Part from the others."""


class MultiProcess(SingleProcess):
    """One of the processes that torchrun has started; they find each other through a `store`."""

    def __init__(self, device: torch.device, rank: int, world: int, store: Any):
        import torch.distributed as dist

        super().__init__(device)
        self.rank, self.world, self.dist = rank, world, dist
        dist.init_process_group(
            "nccl" if device.type == "cuda" else "gloo",
            store=store,
            rank=rank,
            world_size=world,
            timeout=STEP,
            device_id=device if device.type == "cuda" else None,
        )
        self.patient = dist.new_group(backend="gloo", timeout=ERRAND)
        self.agreed: _Coming | None = None
        self.coming: _Coming | None = None

    def sum(self, nll: Any, count: int) -> tuple[Tensor, Tensor]:
        """Both over all processes; who has been asked to leave is told along with them."""
        sums = torch.tensor([0.0, count, self.asked], dtype=torch.float64).to(self.device, non_blocking=True)
        sums[0] += nll
        self.dist.all_reduce(sums)
        self.agreed, self.coming = self.coming, _Coming(sums[2])
        return sums[0], sums[1]

    def add(self, gradients: Tensor) -> None:
        self.dist.all_reduce(gradients)

    def leaving(self) -> bool:
        """By what was known one step before: to wait for that keeps no device waiting."""
        return self.agreed is not None and self.agreed.read() > 0

    def broadcast(self, make: Callable[[], T] = lambda: None) -> T:
        failed, kept = None, [None, False]
        if self.first:
            try:
                kept = [make(), False]
            except Exception as error:  # raised below, when the others know
                failed, kept = error, [None, True]
        try:
            self.dist.broadcast_object_list(kept, src=0, group=self.patient)
        except FileNotFoundError as error:
            raise ValueError(
                f"{error.filename} is not on this machine, but the first process of the run has it: set HEED_CACHE to a folder "
                "that all machines share"
            ) from error
        if failed is not None:
            raise failed
        if kept[1]:
            raise SystemExit(1)  # the first process says why
        return kept[0]

    def in_turn(self, make: Callable[[], T]) -> T:
        made: list[T] = []
        self.broadcast(lambda: made.append(make()))
        return made[0] if made else make()

    def broadcast_tensors(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        kinds = self.broadcast(lambda: {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in tensors.items()})
        found = {}
        for name, (shape, dtype) in kinds.items():
            found[name] = tensors[name].contiguous() if self.first else torch.empty(shape, dtype=dtype)
            self.dist.broadcast(found[name], src=0, group=self.patient)
        return found

    def rows(self, part: Tensor) -> Tensor:
        every = [torch.empty_like(part, memory_format=torch.contiguous_format) for _ in range(self.world)]
        self.dist.all_gather(every, part.contiguous())
        return torch.cat(every)

    @contextmanager
    def errors_from_first(self) -> Iterator[None]:
        try:
            yield
        except ValueError:
            if self.first:
                raise
            raise SystemExit(1) from None

    def explain(self, error: RuntimeError) -> None:
        if not isinstance(error, self.dist.DistError) and "gloo" not in str(error).lower():
            return
        if self.rank > 1:  # two say it: one of them may be the dead one
            raise SystemExit(1) from error
        raise ValueError(
            f"another process of this run has died, or cannot be reached any more (process {self.rank} of {self.world} "
            f"noticed it: {str(error).strip().splitlines()[0]}); go on from the last checkpoint with --resume, or let "
            "torchrun do so by itself with --max-restarts"
        ) from error

    def close(self) -> None:
        self.dist.destroy_process_group()


class Replicated(MultiProcess):
    """Each process has the whole model, and a share of the batch (DDP)."""

    engine = None  # until one is asked for

    def wrap(self, model: nn.Module, objective: Objective, compiled: bool = False) -> Objective:
        from torch.nn.parallel import DistributedDataParallel

        model.to(self.device)
        module = _Module(model, _nothing, self.world)
        self.engine = DistributedDataParallel(module, gradient_as_bucket_view=True)
        self.engine.broadcast_buffers = False  # none of ours ever changes
        # Gradients are summed in groups, which torch makes anew after the first step. Have that behind before a step
        # counts: so a run that goes on sums in the same order, and to the same bits, as one that was never stopped.
        self.engine(None).total.backward()
        self.engine.zero_grad()
        module.objective = super().wrap(model, objective, compiled)
        return lambda _, batch: self.engine(batch)

    def more(self, coming: bool) -> AbstractContextManager:
        return self.engine.no_sync() if coming and self.engine is not None else nullcontext()


class Sharded(MultiProcess):
    """Each process has a part of every weight and of the optimizer's memory, and a share of the batch (FSDP2).

    The gradients of each batch are summed at once, also where several make a step: kept whole, they would not fit.
    """

    def wrap(self, model: nn.Module, objective: Objective, compiled: bool = False) -> Objective:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh(self.device.type, (self.world,))
        for layer in [module for module in model.modules() if isinstance(module, Layer)]:
            if compiled:
                layer.compile(dynamic=True)  # the weights come and go between layers, not inside
            fully_shard(layer, mesh=mesh)
        engine = fully_shard(_Module(model, objective, self.world), mesh=mesh)
        return lambda _, batch: engine(batch)

    @contextmanager
    def full_model(self, model: nn.Module, weights: Mapping[str, Tensor] | None = None) -> Iterator[nn.Module | None]:
        full = shards.gathered(model.state_dict() if weights is None else weights, keep=self.first)
        copy = None
        if self.first:
            copy = type(model)(model.config)
            copy.load_state_dict(full, assign=True)
            copy.to(self.device)
        yield copy


class _Module(nn.Module):
    """A model and its objective as one module: what torch's engines take."""

    def __init__(self, model: nn.Module, objective: Objective, world: int):
        super().__init__()
        self.model, self.objective, self.world = model, objective, world

    def forward(self, batch: Any) -> Loss:
        loss = self.objective(self.model, batch)
        return loss._replace(
            total=loss.total * self.world
        )  # engines take the mean of the processes; the loop wants sums


def _nothing(model: nn.Module, batch: None) -> Loss:
    """A loss of zero in which every weight has its part."""
    total = sum(weight.sum() for weight in model.parameters() if weight.requires_grad) * 0
    return Loss(total, total.detach(), 0)


class _Coming:
    """A number on its way from a device."""

    def __init__(self, number: Tensor):
        self.number = number.to("cpu", non_blocking=True)
        self.event = torch.cuda.Event() if number.is_cuda else None
        if self.event is not None:
            self.event.record()

    def read(self) -> float:
        if self.event is not None:
            self.event.synchronize()
        return self.number.item()


def join(device: torch.device, parallel: Literal["ddp", "fsdp"]) -> SingleProcess:
    """The workers of this process: with the others where torchrun has started some, else alone."""
    if not torchrun.several():
        return SingleProcess(device)
    kind = Replicated if parallel == "ddp" else Sharded
    rank, world = torchrun.number()
    return kind(device, rank, world, torchrun.meet(rank, world))
