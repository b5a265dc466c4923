"""Bulk work on a Ray cluster: one model per actor; blocks are recomputed when an actor dies.

    dataset = heed.bulk.on_ray.run(ray.data.read_text("corpus/*.txt"), Task("translate", "runs/en-de"), workers=8)
    dataset.write_parquet("translated/")

or from a shell: python -m heed.bulk.on_ray translate runs/en-de --input 'corpus/*.txt' --output translated
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from heed.bulk.blocks import ROWS, Task, Worker
from heed.bulk.cluster import in_one_sentence, parse


def ray_data() -> Any:
    """Import Ray Data; raises one sentence if it is missing."""
    try:
        import ray.data
    except ImportError as error:
        raise ValueError("bulk work on Ray needs its package: pip install 'heed[ray]'") from error
    return ray.data


def run(
    dataset: Any, task: Task, workers: int = 1, gpus: float = 0, worker: type[Worker] = Worker, rows: int = ROWS
) -> Any:
    """The dataset with the columns that the task adds. There are `workers` actors with one model and `gpus` GPUs
    each. An actor that dies is restarted, and its blocks are recomputed.
    """
    data = ray_data()
    task.check(dataset.columns())
    again = {"max_restarts": -1, "max_task_retries": -1}
    actors = data.ActorPoolStrategy(size=workers)
    return dataset.map_batches(
        worker, fn_constructor_args=(task,), batch_size=rows, compute=actors, num_gpus=gpus or None, **again
    )


def main(words: Sequence[str] | None = None) -> int:
    return in_one_sentence(partial(_main, *parse("heed.bulk.on_ray", words)))


def _main(task: Task, args: argparse.Namespace) -> int:
    data = ray_data()
    read = data.read_parquet if args.parquet else data.read_text
    run(read(args.input), task, args.workers, args.gpus).write_parquet(args.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
