"""What a trained folder is to its user."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, ClassVar, TypeVar

from heed.data.batching import by_length
from heed.models.package import Package

Item, Result = TypeVar("Item"), TypeVar("Result")


class Product:
    """An object with verbs: what a user can ask of it from Python, the command line or the service."""

    noun: ClassVar[str]
    verbs: ClassVar[tuple[str, ...]]

    @classmethod
    def open(cls, packages: Sequence[Package], names: Sequence[str], **options: Any) -> Any:
        """The product of a model, or of several as one. `names` are the folders, for errors."""
        raise NotImplementedError

    @classmethod
    def refusal(cls, name: str, verb: str) -> str:
        """The error message for a verb that this product does not have."""
        *most, last = cls.verbs
        able = f"{', '.join(most)} or {last}" if most else last
        return f"{name} is {cls.noun}: it cannot {verb}; use heed {able}"


def single(packages: Sequence[Package], names: Sequence[str], noun: str) -> Package:
    """The one model of a product that cannot be an ensemble."""
    if len(packages) > 1:
        raise ValueError(f"{','.join(names)} are several: {noun} is opened alone")
    return packages[0]


def in_batches(
    run: Callable[[list[Item]], Iterable[Result]],
    items: Sequence[Item],
    sizes: Sequence[int],
    budget: int,
    workers: int = 1,
) -> list[Result]:
    """The result of `run` for each item, in batches of items of similar sizes, of which `workers` run at once."""
    batches, results = list(by_length(sizes, max(1, budget))), {}
    with ThreadPoolExecutor(workers) if workers > 1 else nullcontext() as threads:
        found = (threads.map if threads else map)(lambda rows: run([items[row] for row in rows]), batches)
        for rows, own in zip(batches, found, strict=True):
            results |= zip(rows, own, strict=True)
    return [results[row] for row in range(len(items))]
