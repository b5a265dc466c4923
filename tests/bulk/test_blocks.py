"""What a worker of a cluster does with a block: what the product does, whatever the blocks are."""

import pickle
import sys

import numpy as np
import pytest

from heed.bulk import cluster, on_ray, on_spark
from heed.bulk.blocks import Task, Worker
from heed.loading import load
from tests.convert.small import pairs

PAIRS = pairs()[:7]
TEXTS = [source for source, _ in PAIRS]
LONG = " ".join(TEXTS)


def task(verb, folder, **more):
    return Task(verb, str(folder), device="cpu", engine="torch", **more)


def test_translations_are_those_of_the_translator(translator_folder):
    found = Worker(task("translate", translator_folder, options={"beam": 2}))({"text": TEXTS, "id": range(7)})
    expected = load(translator_folder, "cpu", "torch").translate(TEXTS, beam=2)
    assert list(found) == ["text", "id", "translation", "score"]
    assert found["text"] == TEXTS and list(found["id"]) == list(range(7))
    assert found["translation"] == [own.text for own in expected]
    assert found["score"] == [own.score for own in expected]


def test_a_row_does_not_depend_on_its_block(translator_folder):
    work = Worker(task("translate", translator_folder))
    whole = work({"text": np.array(TEXTS, dtype=object)})
    parts = [work({"text": TEXTS[start : start + 3]}) for start in range(0, len(TEXTS), 3)]
    assert whole["translation"] == [text for part in parts for text in part["translation"]]
    assert whole["score"] == pytest.approx([score for part in parts for score in part["score"]], abs=1e-5)


def test_scores_are_those_of_the_translator(translator_folder):
    own, columns = (
        task("score", translator_folder, text="a", target="b"),
        dict(zip("ab", zip(*PAIRS, strict=True), strict=True)),
    )
    found = Worker(own)(columns)
    expected = load(translator_folder, "cpu", "torch").score(*map(list, columns.values()))
    assert found["logp"] == [score.logp for score in expected]
    assert found["tokens"] == [len(score.tokens) for score in expected]


def test_vectors_are_those_of_the_embedder(encoder_folder):
    found = Worker(task("embed", encoder_folder))({"text": TEXTS})
    expected = load(encoder_folder, "cpu", verb="embed").embed(TEXTS)
    assert np.array_equal(np.stack(found["vector"]), expected)


def test_back_translation_leaves_out_what_the_command_leaves_out(translator_folder):
    texts, number = [TEXTS[0], "  ", LONG, TEXTS[1]], np.arange(4)
    found = Worker(task("backtranslate", translator_folder, tag="<bt>"))({"text": texts, "number": number})
    expected = load(translator_folder, "cpu", "torch").translate([TEXTS[0], TEXTS[1]])
    assert found["text"] == [TEXTS[0], TEXTS[1]] and found["number"].tolist() == [0, 3]
    assert found["source"] == [f"<bt> {own.text}" for own in expected]


def test_a_process_opens_a_model_once(translator_folder):
    first, second = (Worker(task("translate", translator_folder, options={"beam": beam})) for beam in (1, 2))
    assert first.product is second.product
    assert pickle.loads(pickle.dumps(first.task)) == first.task


def test_tables_of_pandas(translator_folder, monkeypatch):
    pandas = pytest.importorskip("pandas")
    monkeypatch.setattr("heed.bulk.blocks.ROWS", 3)
    work = Worker(task("translate", translator_folder))
    found = list(work.frames(iter([pandas.DataFrame({"text": TEXTS}), pandas.DataFrame({"text": []})])))
    assert [len(frame) for frame in found] == [3, 3, 1]
    assert pandas.concat(found)["translation"].tolist() == work({"text": TEXTS})["translation"]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"verb": "speak"}, "verb is 'speak'; it must be translate, score, embed or backtranslate"),
        (
            {"verb": "translate", "tag": "<bt>"},
            "tag is '<bt>'; it must be one word, such as <bt>, and is for backtranslate",
        ),
        ({"verb": "translate", "options": {"nbest": 2}}, "nbest is 2; each row gets one translation"),
    ],
)
def test_what_cannot_be_asked_is_refused(values, words):
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        Task(model="runs/none", **values)


def test_other_tables_are_refused(translator_folder):
    work = Worker(task("translate", translator_folder))
    with pytest.raises(ValueError, match="the table has no column 'text'; it has value, id: name it"):
        work({"value": TEXTS, "id": TEXTS})
    with pytest.raises(ValueError, match="has a column 'score' already, which translate adds: rename it"):
        work({"text": TEXTS, "score": TEXTS})
    with pytest.raises(ValueError, match="the column 'text' has None; it must be text in every row"):
        work({"text": [*TEXTS, None]})


def test_the_command_line(capsys):
    words = [
        "translate",
        "runs/a",
        "--input",
        "in",
        "--output",
        "out",
        "--set",
        "beam=2",
        "--text",
        "value",
        "--workers",
        "3",
    ]
    own, args = cluster.parse("heed.bulk.on_ray", words)
    assert own == Task("translate", "runs/a", text="value", options={"beam": 2})
    assert (args.workers, args.input, args.output, args.parquet) == (3, "in", "out", False)
    with pytest.raises(SystemExit):
        cluster.parse("heed.bulk.on_ray", [*words, "--tag", "<bt>"])
    assert "error: tag is '<bt>'; it must be one word" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cluster.parse("heed.bulk.on_ray", [*words, "--workers", "0"])


def test_an_output_with_files_is_refused_since_ray_would_add_to_it(tmp_path, capsys):
    words = ["translate", "runs/a", "--input", "in", "--output", str(tmp_path)]
    assert cluster.parse("heed.bulk.on_ray", words)[1].output == str(tmp_path)  # an empty folder
    (tmp_path / "part.parquet").touch()
    with pytest.raises(SystemExit):
        cluster.parse("heed.bulk.on_ray", words)
    assert "has files already, and rows would be doubled: choose another folder" in capsys.readouterr().err


def test_a_missing_package_has_a_sentence(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setitem(sys.modules, "ray.data", None)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(ValueError, match=r"bulk work on Ray needs its package: pip install 'heed\[ray\]'"):
        on_ray.run(None, Task("translate", "runs/a"))
    with pytest.raises(
        ValueError, match=r"bulk work on Spark needs its package, and Java: pip install 'heed\[spark\]'"
    ):
        on_spark.run(None, Task("translate", "runs/a"))
    words = ["translate", "runs/a", "--input", "in", "--output", "out"]
    for module, name in ((on_ray, "Ray"), (on_spark, "Spark")):
        assert module.main(words) == 1
        assert capsys.readouterr().err.startswith(f"heed: bulk work on {name} needs its package")
