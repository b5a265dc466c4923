"""The environment of processes started by torchrun, or a launcher with the same interface."""

import os
import socket
import time
from typing import Any
from uuid import uuid4

import torch


def is_distributed() -> bool:
    """Whether this process is one of several."""
    return all(name in os.environ for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"))


def rank_and_world() -> tuple[int, int]:
    """The rank of this process and the number of processes."""
    return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def is_first() -> bool:
    return not is_distributed() or rank_and_world()[0] == 0


def local_device(name: str) -> str:
    """The device of this process, given that of the run: each of several processes uses the GPU of its local rank."""
    if not is_distributed() or name == "cpu" or (name == "auto" and not torch.cuda.is_available()):
        return name
    if name not in ("auto", "cuda"):
        raise ValueError(
            f"training.device is {name!r}, but torchrun gives each process its own GPU: set it to auto, cuda or cpu"
        )
    return f"cuda:{os.environ.get('LOCAL_RANK', '0')}"


def job_id() -> str | None:
    """An identifier of this call of torchrun: unchanged by its restarts, different for each call."""
    name = os.environ.get("TORCHELASTIC_RUN_ID")
    return f"{socket.gethostname()} {os.getppid()}" if name == "none" else name  # "none": no --rdzv-id was given


def rendezvous_store(rank: int, world: int) -> Any:
    """The store through which the processes find each other, without the keys of those that died before a restart.

    torchrun keeps one store for all its restarts, and the addresses of dead processes stay in it
    (pytorch/pytorch#135712). The restart count cannot be used as a prefix, since each machine has its own. So the
    first process draws a random prefix, and sends it to each other process under a token drawn by that process.
    """
    from torch.distributed import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    store, _, _ = next(rendezvous("env://", rank, world))
    if rank:
        token = uuid4().hex
        store.set(f"heed/{rank}", token)
        prefix = store.get(f"heed/{token}").decode()
        store.add(f"heed/{prefix}", 1)
        return PrefixStore(prefix, store)
    prefix, answered = uuid4().hex, set()
    while store.add(f"heed/{prefix}", 0) < world - 1:
        for other in range(1, world):
            if store.check([f"heed/{other}"]) and (token := store.get(f"heed/{other}").decode()) not in answered:
                store.set(f"heed/{token}", prefix)
                answered.add(token)
        time.sleep(0.02)
    return PrefixStore(prefix, store)
