"""A local cluster of Ray and one of Spark, in which a worker is killed: nothing is lost, and nothing is there twice."""

import os
import shutil
import signal
import sys

import pytest

from heed.bulk.blocks import Task, Worker
from heed.loading import load
from tests.convert.small import pairs

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]
TEXTS = [source for source, _ in pairs()[:8]] * 5


class Dies(Worker):
    """A worker that is killed at its third block, the first time there is one."""

    def __init__(self, task: Task):
        super().__init__(task)
        self.blocks = 0

    def __call__(self, columns):
        self.blocks += 1
        if self.blocks == 3:
            die(self.task)
        return super().__call__(columns)


def die(task: Task) -> None:
    """End this process as `kill -9` does; a file remembers that it has happened."""
    try:
        os.close(os.open(f"{task.model}.killed", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def dying_frames(task: Task, frames):
    """The same for Spark: killed after it has computed a table, before that is handed over."""
    for number, frame in enumerate(Worker(task).frames(frames)):
        if number == 1:
            die(task)
        yield frame


@pytest.fixture
def folder(translator_folder, tmp_path):
    return shutil.copytree(translator_folder, tmp_path / "model")


@pytest.fixture
def expected(translator_folder):
    found = load(translator_folder, "cpu", "torch").translate(TEXTS)
    return sorted((number, text, own.text) for number, (text, own) in enumerate(zip(TEXTS, found, strict=True)))


def rows(table) -> list[tuple]:
    return sorted((row["number"], row["text"], row["translation"]) for row in table)


@pytest.fixture(scope="module")
def ray():
    module = pytest.importorskip("ray")
    module.init(num_cpus=4, include_dashboard=False, log_to_driver=False)  # two actors, and room for writing
    yield module
    module.shutdown()


@pytest.fixture(scope="module")
def spark():
    sql = pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        made = sql.SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false")
        made = made.config("spark.sql.execution.arrow.maxRecordsPerBatch", "5").getOrCreate()
        made.sparkContext.setLogLevel("OFF")
        yield made
        made.stop()


def test_ray(ray, folder, expected, tmp_path):
    from heed.bulk import on_ray

    task = Task("translate", str(folder), device="cpu", engine="torch")
    dataset = ray.data.from_items([{"number": number, "text": text} for number, text in enumerate(TEXTS)])
    found = on_ray.run(dataset, task, workers=2, worker=Dies, rows=5)
    found.write_parquet(str(tmp_path / "out"))
    assert os.path.exists(f"{folder}.killed")
    assert rows(ray.data.read_parquet(str(tmp_path / "out")).take_all()) == expected


def test_spark(spark, folder, expected, tmp_path):
    from heed.bulk import on_spark

    task = Task("translate", str(folder), device="cpu", engine="torch")
    frame = spark.createDataFrame(list(enumerate(TEXTS)), ["number", "text"]).repartition(3)
    on_spark.run(frame, task, dying_frames).write.parquet(str(tmp_path / "out"))
    assert os.path.exists(f"{folder}.killed")
    assert rows(spark.read.parquet(str(tmp_path / "out")).collect()) == expected


def test_the_commands(ray, spark, translator_folder, expected, tmp_path):
    from heed.bulk import on_ray, on_spark

    (tmp_path / "in.txt").write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8", newline="\n")
    wanted = sorted((text, translation) for _, text, translation in expected)
    for module in (on_ray, on_spark):
        out = str(tmp_path / module.__name__)
        words = [
            "translate",
            str(translator_folder),
            "--input",
            str(tmp_path / "in.txt"),
            "--output",
            out,
            "--workers",
            "2",
        ]
        assert module.main([*words, "--device", "cpu", "--engine", "torch"]) == 0
        assert sorted((row["text"], row["translation"]) for row in spark.read.parquet(out).collect()) == wanted
