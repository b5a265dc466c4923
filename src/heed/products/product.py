"""The user-facing interface of a trained model."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, ClassVar, TypeVar

from heed.data.batching import by_length
from heed.models.package import Package
from heed.vocabularies.text_parts import plain
from heed.vocabularies.unicode import check_surrogates
from heed.vocabularies.vocabulary import AlignsPieces, Vocabulary

Item, Result = TypeVar("Item"), TypeVar("Result")


Work = Generator[None, None, Result]  # yields after each part of the work, and returns its result


def finish(work: Work[Result]) -> Result:
    """The result of work, without a pause."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value


class Product:
    """An object with verbs: what users can do with it from Python, the command line or the service."""

    noun: ClassVar[str]
    verbs: ClassVar[tuple[str, ...]]
    reads: ClassVar[tuple[str, ...]] = ()  # the processors that it needs, which are looked for before it is opened

    @classmethod
    def open(cls, packages: Sequence[Package], names: Sequence[str], **options: Any) -> Any:
        """The product of a model, or of an ensemble. `names` are the folders, for errors."""
        raise NotImplementedError

    @classmethod
    def refusal(cls, name: str, verb: str) -> str:
        """The error message for a verb that this product does not support."""
        *most, last = cls.verbs
        able = f"{', '.join(most)} or {last}" if most else last
        return f"{name} is {cls.noun}: it cannot {verb}; use heed {able}"


def as_texts(texts: Iterable[str]) -> list[str]:
    """Texts as a list; lone surrogates are refused, since no vocabulary can encode them."""
    found = list(texts)
    check_surrogates(found)
    return found


def single(packages: Sequence[Package], names: Sequence[str], noun: str) -> Package:
    """The single model of a product that does not support ensembles."""
    if len(packages) > 1:
        raise ValueError(f"{','.join(names)} are several models: {noun} cannot be an ensemble")
    return packages[0]


def aligned_vocabulary(vocabulary: Vocabulary) -> Any:
    """The vocabulary of a model that provides character offsets; others are refused."""
    own = plain(vocabulary)
    if not isinstance(own, AlignsPieces):
        raise ValueError(f"a vocabulary of {type(own).__name__} does not support character offsets")
    return own


def each_batch(
    run: Callable[[list[Item]], Result], items: Sequence[Item], sizes: Sequence[int], budget: int, workers: int = 1
) -> Iterator[tuple[list[int], Result]]:
    """The result of `run` for each batch of items of similar size, with their rows; `workers` batches run at once."""
    batches = list(by_length(sizes, max(1, budget)))
    with ThreadPoolExecutor(workers) if workers > 1 else nullcontext() as threads:
        found = (threads.map if threads else map)(lambda rows: run([items[row] for row in rows]), batches)
        yield from zip(batches, found, strict=True)


def in_batches(
    run: Callable[[list[Item]], Iterable[Result]],
    items: Sequence[Item],
    sizes: Sequence[int],
    budget: int,
) -> list[Result]:
    """The result of `run` for each item, in batches of items of similar size."""
    results: dict[int, Result] = {}
    for rows, own in each_batch(run, items, sizes, budget):
        results |= zip(rows, own, strict=True)
    return [results[row] for row in range(len(items))]
