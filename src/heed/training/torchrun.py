"""What torchrun, or anything that speaks as it does, tells a process that it starts."""

import os
import socket
import time
from typing import Any
from uuid import uuid4

import torch


def several() -> bool:
    """Whether this process is one of several."""
    return all(name in os.environ for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"))


def number() -> tuple[int, int]:
    """The number of this process, and how many there are."""
    return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def is_first() -> bool:
    return not several() or number()[0] == 0


def card(name: str) -> str:
    """The device of this process, by that of the run: of several on a machine, each has the card of its number."""
    if not several() or name == "cpu" or (name == "auto" and not torch.cuda.is_available()):
        return name
    if name not in ("auto", "cuda"):
        raise ValueError(
            f"training.device is {name!r}, but torchrun gives each process a card of its own: set it to auto, cuda or cpu"
        )
    return f"cuda:{os.environ.get('LOCAL_RANK', '0')}"


def job() -> str | None:
    """A name for what torchrun was called for: the same after each restart, another after another call."""
    name = os.environ.get("TORCHELASTIC_RUN_ID")
    return f"{socket.gethostname()} {os.getppid()}" if name == "none" else name  # "none": it was given no name


def meet(rank: int, world: int) -> Any:
    """The store through which the processes find each other, cleared of those that died before a restart.

    torchrun keeps one store for all its restarts, and the addresses of the dead are still in it (pytorch/pytorch#135712);
    how often it has restarted is no name for the living, since each machine counts for itself. So the first process draws
    a name, and tells it to each other one under a word that this one has drawn.
    """
    from torch.distributed import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    store, _, _ = next(rendezvous("env://", rank, world))
    if rank:
        word = uuid4().hex
        store.set(f"heed/{rank}", word)
        name = store.get(f"heed/{word}").decode()
        store.add(f"heed/{name}", 1)
        return PrefixStore(name, store)
    name, answered = uuid4().hex, set()
    while store.add(f"heed/{name}", 0) < world - 1:
        for other in range(1, world):
            if store.check([f"heed/{other}"]) and (word := store.get(f"heed/{other}").decode()) not in answered:
                store.set(f"heed/{word}", name)
                answered.add(word)
        time.sleep(0.02)
    return PrefixStore(name, store)
