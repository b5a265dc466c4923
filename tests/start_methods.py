"""How tests start processes: as forks of one that has imported heed and torch, which takes a new interpreter seconds."""

import multiprocessing
from multiprocessing.context import BaseContext

IMPORTED = ["tests.forked", "pytest", "heed.runs.train", "heed.tasks.translation", "torch._dynamo", "torch.distributed.fsdp"]  # fmt: skip

get_context = multiprocessing.get_context


def context() -> BaseContext:
    """There is one server for all tests of a process, started by the first that needs it."""
    own = get_context("forkserver")
    own.set_forkserver_preload(IMPORTED)
    return own


def instead_of_spawning(method: str | None = None) -> BaseContext:
    """Stands for `multiprocessing.get_context`: what would spawn an interpreter forks instead, where that is possible."""
    fork = method == "spawn" and "forkserver" in multiprocessing.get_all_start_methods()
    return context() if fork else get_context(method)
