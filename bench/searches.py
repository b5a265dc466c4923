"""Every validation of a run by both searches, that of the GPU and the plain one: seconds, and whether they agree."""

import time
from collections.abc import Callable
from contextlib import contextmanager
from copy import copy
from typing import Any

Row = dict[str, Any]
HEADER = (
    "  search: fast   plain  validation: fast   plain  equal translations       BLEU   plain  graphs  memory  state"
)


def watch_searches(phase: Callable[[str], Any]) -> list[Row]:
    """From now on, each validation of a translator also searches with the torch engine. Each is printed, and becomes a row of the list."""
    from heed.products.translator.engines.validation import only_torch
    from heed.tasks.translation import TranslationValidation

    rows, usual = [], TranslationValidation.run

    def run(self: Any, model: Any) -> Any:
        if self.engines is only_torch:
            return usual(self, model)
        plain, before = copy(self), _state(model)
        plain.engines = only_torch
        with _searching() as fast:
            found, seconds = _timed(usual, self, model)
        unchanged = _same(before, _state(model))
        with phase("validation, plain search"), _searching() as slow:
            wanted, plain_seconds = _timed(usual, plain, model)
        equal = sum(one == other for one, other in zip(found.outputs, wanted.outputs, strict=True))
        machine = self.engines.shared.machine
        rows.append(
            {
                "engine": "torch" if machine is None else "cuda", "sentences": self.size, "equal": equal, "unchanged": unchanged,
                "search": fast[0], "plain_search": slow[0], "validation": seconds, "plain_validation": plain_seconds,
                "bleu": found.scores["bleu"], "plain_bleu": wanted.scores["bleu"], "graphs": _graphs(machine), "bytes": _bytes(machine),
            }
        )  # fmt: skip
        print(f"{HEADER}\n{line(rows[-1])}" if len(rows) == 1 else line(rows[-1]), flush=True)
        return found

    TranslationValidation.run = run
    return rows


def line(r: Row) -> str:
    """A validation under the HEADER."""
    equal = f"{r['equal']:,} of {r['sentences']:,} ({r['engine']})"
    state = "unchanged" if r["unchanged"] else "CHANGED"
    return (
        f"{r['search']:12.3f} s{r['plain_search']:6.2f} s{r['validation']:16.3f} s{r['plain_validation']:6.2f} s  {equal:22}"
        f"{r['bleu']:8.2f}{r['plain_bleu']:8.2f}{r['graphs']:8}{r['bytes'] / 2**20:6.0f} MB  {state}"
    )


def _timed(run: Callable[..., Any], *given: Any) -> tuple[Any, float]:
    _synchronize()
    begin = time.perf_counter()
    found = run(*given)
    _synchronize()
    return found, time.perf_counter() - begin


@contextmanager
def _searching():
    """The seconds that translators search meanwhile, in a list of one."""
    from heed.products.translator.translator import Translator

    spent, usual = [0.0], Translator.search_ids

    def search_ids(*given: Any, **options: Any) -> Any:
        found, seconds = _timed(lambda: usual(*given, **options))
        spent[0] += seconds
        return found

    Translator.search_ids = search_ids
    try:
        yield spent
    finally:
        Translator.search_ids = usual


def _synchronize() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _state(model: Any) -> list[Any]:
    """Copies of the weights, and the random states: what a validation must not change."""
    import torch

    random = [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [])]
    return [own.clone() for own in (*model.state_dict().values(), *random)]


def _same(one: list[Any], other: list[Any]) -> bool:
    import torch

    return all(map(torch.equal, one, other))


def _graphs(machine: Any) -> int:
    return sum(1 + len(getattr(own, "encode_graphs", ())) for own in machine.buffers.values()) if machine else 0


def _bytes(machine: Any) -> int:
    """Of the weights' copy, and of keys and values."""
    if machine is None:
        return 0
    from heed.decoding.cuda.weights import _leaves

    tensors = [own for own in _leaves(machine.weights) if hasattr(own, "untyped_storage")]
    copies = {own.untyped_storage().data_ptr(): own.untyped_storage().nbytes() for own in tensors}
    pool = machine.pool.keys.nbytes + machine.pool.memory.nbytes if machine.pool else 0
    return pool + sum(copies.values())
