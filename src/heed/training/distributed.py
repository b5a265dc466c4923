"""Training on one or several processes: collective calls, and torch's gradient synchronization. The loop gets a
worker object. `SingleProcess` is one process, so its collective calls do nothing. Processes started by torchrun are
`Replicated` (DDP: each has the whole model) or `Sharded` (FSDP2: each has a part of every weight). The first process
writes files and broadcasts its results.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn

from heed.nn.transformer import Layer
from heed.training import shards, torchrun
from heed.training.average import temporary_weights
from heed.training.loss import Loss

T = TypeVar("T")
Objective = Callable[[nn.Module, Any], Loss]
STEP_TIMEOUT = timedelta(minutes=30)
LONG_TIMEOUT = timedelta(days=7)  # for what only the first process does, such as preparing data or validating


class SingleProcess:
    """One process."""

    rank, world = 0, 1

    def __init__(self, device: torch.device = torch.device("cpu")):  # noqa: B008 (a constant)
        self.device, self.stop_requested = device, False
        if device.index is not None and device.type == "cuda":
            torch.cuda.set_device(device)  # Triton launches kernels on the current device, wherever the tensors are

    @property
    def first(self) -> bool:
        return self.rank == 0

    def wrap_objective(self, model: nn.Module, objective: Objective, compiled: bool = False) -> Objective:
        """Move the model to its device, and return the objective for the loop to call."""
        model.to(self.device)
        return torch.compile(objective, dynamic=True) if compiled else objective

    def accumulating(self, more: bool) -> AbstractContextManager:
        """Context of one batch; with `more` batches to come in this step, gradients need not be synchronized yet."""
        return nullcontext()

    def sum(self, nll: Any, count: int) -> tuple[Any, Any]:
        """Both summed over all processes."""
        return nll, count

    def sum_parts(self, parts: dict[str, tuple[Any, Any]]) -> dict[str, tuple[Any, Any]]:
        """The parts of a loss, (sum, count) each, summed over all processes."""
        return parts

    def sum_gradients(self, gradients: Tensor) -> None:
        """Sum gradients over all processes, in place, if no engine has done so."""

    def request_stop(self) -> None:
        self.stop_requested = True

    def should_stop(self) -> bool:
        """Whether any process was asked to stop: the same answer everywhere after the same step."""
        return self.stop_requested

    def broadcast(self, make: Callable[[], T] = lambda: None) -> T:
        """The result of calling `make` on the first process. The others wait as long as it takes."""
        return make()

    def first_before_others(self, make: Callable[[], T]) -> T:
        """Call `make` everywhere, on the first process first; the others may use what it has cached."""
        return make()

    def broadcast_tensors(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The tensors of the first process."""
        return dict(tensors)

    def gather_rows(self, rows: Tensor) -> Tensor:
        """The rows of all processes, ordered by rank; each process has the same number."""
        return rows

    def errors_from_first(self) -> AbstractContextManager:
        """Context for work that fails on all processes or on none: only the first reports the error."""
        return nullcontext()

    @contextmanager
    def full_model(self, model: nn.Module, weights: Mapping[str, Tensor] | None = None) -> Iterator[nn.Module | None]:
        """The unsharded model, with these weights or its own, on the first process."""
        with nullcontext() if weights is None else temporary_weights(model, dict(weights)):
            yield model

    def raise_if_peer_died(self, error: RuntimeError) -> None:
        """Raise a clearer error if this one means that another process has died."""

    def close(self) -> None:
        """Leave the process group."""


class MultiProcess(SingleProcess):
    """One of the processes started by torchrun; they find each other through a `store`."""

    def __init__(self, device: torch.device, rank: int, world: int, store: Any):
        import torch.distributed as dist

        super().__init__(device)
        self.rank, self.world, self.dist = rank, world, dist
        dist.init_process_group(
            "nccl" if device.type == "cuda" else "gloo",
            store=store,
            rank=rank,
            world_size=world,
            timeout=STEP_TIMEOUT,
            device_id=device if device.type == "cuda" else None,
        )
        self.long_group = dist.new_group(backend="gloo", timeout=LONG_TIMEOUT)
        self.stops_before: _PendingNumber | None = None  # stop requests, as of the step before the last
        self.stops: _PendingNumber | None = None  # as of the last step, perhaps not yet on the CPU

    def sum(self, nll: Any, count: int) -> tuple[Tensor, Tensor]:
        """Both summed over all processes; stop requests are summed in the same message."""
        sums = torch.tensor([0.0, count, self.stop_requested], dtype=torch.float64).to(self.device, non_blocking=True)
        sums[0] += nll
        self.dist.all_reduce(sums)
        self.stops_before, self.stops = self.stops, _PendingNumber(sums[2])
        return sums[0], sums[1]

    def sum_parts(self, parts: dict[str, tuple[Any, Any]]) -> dict[str, tuple[Any, Any]]:
        if not parts:
            return parts
        sums = torch.tensor([[0.0, count] for _, count in parts.values()], dtype=torch.float64).to(self.device)
        for row, (total, _) in zip(sums, parts.values(), strict=True):
            row[0] += total
        self.dist.all_reduce(sums)
        return {name: (row[0], row[1]) for name, row in zip(parts, sums, strict=True)}

    def sum_gradients(self, gradients: Tensor) -> None:
        self.dist.all_reduce(gradients)

    def should_stop(self) -> bool:
        """Based on the sums of the previous step: reading the latest would make the CPU wait for the device."""
        return self.stops_before is not None and self.stops_before.read() > 0

    def broadcast(self, make: Callable[[], T] = lambda: None) -> T:
        error, message = None, [None, False]  # the result, and whether there was an error instead
        if self.first:
            try:
                message = [make(), False]
            except Exception as raised:  # raised again below, once the others know
                error, message = raised, [None, True]
        try:
            self.dist.broadcast_object_list(message, src=0, group=self.long_group)
        except FileNotFoundError as missing:
            raise ValueError(
                f"{missing.filename} is not on this machine, but the first process of the run can see it: set "
                "HEED_CACHE to a folder "
                "that all machines share"
            ) from missing
        if error is not None:
            raise error
        if message[1]:
            raise SystemExit(1)  # the first process reports the error
        return message[0]

    def first_before_others(self, make: Callable[[], T]) -> T:
        made: list[T] = []
        self.broadcast(lambda: made.append(make()))
        return made[0] if made else make()

    def broadcast_tensors(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        shapes = self.broadcast(lambda: {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in tensors.items()})
        received = {}
        for name, (shape, dtype) in shapes.items():
            received[name] = tensors[name].contiguous() if self.first else torch.empty(shape, dtype=dtype)
            self.dist.broadcast(received[name], src=0, group=self.long_group)
        return received

    def gather_rows(self, rows: Tensor) -> Tensor:
        gathered = [torch.empty_like(rows, memory_format=torch.contiguous_format) for _ in range(self.world)]
        self.dist.all_gather(gathered, rows.contiguous())
        return torch.cat(gathered)

    @contextmanager
    def errors_from_first(self) -> Iterator[None]:
        try:
            yield
        except ValueError:
            if self.first:
                raise
            raise SystemExit(1) from None

    def raise_if_peer_died(self, error: RuntimeError) -> None:
        if not isinstance(error, self.dist.DistError) and "gloo" not in str(error).lower():
            return
        if self.rank > 1:  # two processes report it, since one of the two may be the dead one
            raise SystemExit(1) from error
        raise ValueError(
            f"another process of this run has died or become unreachable (process {self.rank} of {self.world} "
            f"noticed it: {str(error).strip().splitlines()[0]}); continue from the last checkpoint with --resume, or let "
            "torchrun do so with --max-restarts"
        ) from error

    def close(self) -> None:
        self.dist.destroy_process_group()


class Replicated(MultiProcess):
    """Each process has the whole model, and a share of the batch (DDP)."""

    engine = None  # until `wrap_objective`

    def wrap_objective(self, model: nn.Module, objective: Objective, compiled: bool = False) -> Objective:
        from torch.nn.parallel import DistributedDataParallel

        model.to(self.device)
        module = _ModelAndObjective(model, _zero_loss, self.world)
        self.engine = DistributedDataParallel(module, gradient_as_bucket_view=True)
        self.engine.broadcast_buffers = False  # our buffers never change
        # DDP sums gradients in buckets, which it rebuilds after the first backward pass. Do one here: then a resumed run
        # sums in the same order, and to the same bits, as an uninterrupted one.
        self.engine(None).total.backward()
        self.engine.zero_grad()
        module.objective = super().wrap_objective(model, objective, compiled)
        return lambda _, batch: self.engine(batch)

    def accumulating(self, more: bool) -> AbstractContextManager:
        return self.engine.no_sync() if more and self.engine is not None else nullcontext()


class Sharded(MultiProcess):
    """Each process has a part of every weight and of the optimizer state, and a share of the batch (FSDP2).

    The gradients of each batch are summed at once, even when accumulating: unsharded gradients would not fit.
    """

    def wrap_objective(self, model: nn.Module, objective: Objective, compiled: bool = False) -> Objective:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh(self.device.type, (self.world,))
        for layer in [module for module in model.modules() if isinstance(module, Layer)]:
            if compiled:
                layer.compile(dynamic=True)  # FSDP gathers weights between layers, never inside a compiled one
            fully_shard(layer, mesh=mesh)
        engine = fully_shard(_ModelAndObjective(model, objective, self.world), mesh=mesh)
        return lambda _, batch: engine(batch)

    @contextmanager
    def full_model(self, model: nn.Module, weights: Mapping[str, Tensor] | None = None) -> Iterator[nn.Module | None]:
        full = shards.gather(model.state_dict() if weights is None else weights, keep=self.first)
        copy = None
        if self.first:
            copy = type(model)(model.config)
            copy.load_state_dict(full, assign=True)
            copy.to(self.device)
        yield copy


class _ModelAndObjective(nn.Module):
    """A model and its objective as one module, for DDP and FSDP."""

    def __init__(self, model: nn.Module, objective: Objective, world: int):
        super().__init__()
        self.model, self.objective, self.world = model, objective, world

    def forward(self, batch: Any) -> Loss:
        loss = self.objective(self.model, batch)
        return loss._replace(total=loss.total * self.world)  # the engines average over processes; the loop wants sums


def _zero_loss(model: nn.Module, batch: None) -> Loss:
    """A loss of zero that depends on every weight."""
    total = sum(weight.sum() for weight in model.parameters() if weight.requires_grad) * 0
    return Loss(total, total.detach(), 0)


class _PendingNumber:
    """A number that is being copied from a device asynchronously."""

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
    """The worker object of this process: one of several if torchrun has started it, else a single one."""
    if not torchrun.is_distributed():
        return SingleProcess(device)
    kind = Replicated if parallel == "ddp" else Sharded
    rank, world = torchrun.rank_and_world()
    return kind(device, rank, world, torchrun.rendezvous_store(rank, world))
