"""Bulk work on a Spark cluster by `mapInPandas`: one model per Python worker; Spark recomputes tasks whose worker dies.

    frame = heed.bulk.on_spark.run(spark.read.text("corpus/*.txt"), Task("translate", "runs/en-de", text="value"))
    frame.write.parquet("translated")

or from a shell: spark-submit … or python -m heed.bulk.on_spark translate runs/en-de --input 'corpus/*.txt' --output translated
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from heed.bulk.blocks import Task, Worker
from heed.bulk.cluster import in_one_sentence, parse


def _types() -> Any:
    try:
        from pyspark.sql import types
    except ImportError as error:
        raise ValueError("bulk work on Spark needs its package, and Java: pip install 'heed[spark]'") from error
    return types


def compute(task: Task, frames: Iterator[Any]) -> Iterator[Any]:
    """What a Spark task runs: its data frames, through the model of its process."""
    return Worker(task).frames(frames)


def run(frame: Any, task: Task, function: Callable[[Task, Iterator[Any]], Iterator[Any]] = compute) -> Any:
    """The data frame with the columns that the task adds. Spark recomputes the work of a worker that dies."""
    types = _types()
    task.check(frame.columns)
    kinds = {
        "text": types.StringType(),
        "number": types.DoubleType(),
        "count": types.IntegerType(),
        "vector": types.ArrayType(types.FloatType()),
    }
    added = [types.StructField(name, kinds[kind]) for name, kind in task.writes.items()]
    return frame.mapInPandas(partial(function, task), types.StructType([*frame.schema.fields, *added]))


def main(words: Sequence[str] | None = None) -> int:
    return in_one_sentence(partial(_main, *parse("heed.bulk.on_spark", words)))


def _main(task: Task, args: argparse.Namespace) -> int:
    _types()
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.appName(f"heed {task.verb}").getOrCreate()
    frame = spark.read.parquet(args.input) if args.parquet else spark.read.text(args.input).toDF("text")
    if args.workers > 1:
        frame = frame.repartition(args.workers)
    run(frame, task).write.parquet(args.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
