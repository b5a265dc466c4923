"""The best items of each user: heed's blocked search beside one matrix product with topk, and faiss. All are exact."""

from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import torch

from heed.products.item_search import ItemMatrix, best_items

Search = Callable[[], np.ndarray]  # the ids of the best items
AT_ONCE = {"cuda": 2**30, "cpu": 2**26}  # scores that one matrix product may have


def systems(
    items: int, users: int, dim: int, count: int, device: torch.device, threads: int
) -> tuple[dict[str, Search], list[str]]:
    """What finds the best items of random users, by name, and sentences on what is not measured; the first is heed."""
    random = torch.Generator().manual_seed(0)
    weight, states = (torch.randn(n, dim, generator=random).to(device) for n in (items, users))
    found: dict[str, Search] = {
        "heed": lambda: best_items(states, ItemMatrix(weight), count)[1].cpu().numpy(),
        "torch: matmul and topk": lambda: _at_once(states, weight, count),
    }
    if device.type == "cuda":
        return found, ["faiss is measured on the CPU only."]
    if find_spec("faiss") is None:
        return found, ["faiss (faiss-cpu) is not installed here: it is not measured."]
    import faiss

    faiss.omp_set_num_threads(threads)
    index = faiss.IndexFlatIP(dim)
    index.add(weight.numpy())
    found["faiss, exact (IndexFlatIP)"] = lambda: index.search(states.numpy(), count)[1]
    return found, []


def _at_once(states: torch.Tensor, weight: torch.Tensor, count: int) -> np.ndarray:
    """As most code does it: the scores of all items for as many users as memory takes."""
    step = max(1, AT_ONCE[states.device.type] // len(weight))
    parts = [(own @ weight.T).topk(count, dim=1).indices for own in states.split(step)]
    return torch.cat(parts).cpu().numpy()
