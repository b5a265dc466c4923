"""Benchmarks of many runs go on after a failure, keep to their budget, and do not repeat what is finished."""

import json
import sys

import pytest
from bench import pretraining, tuning
from bench.jobs import Job, Jobs

PYTHON = (sys.executable, "-S", "-E", "-c")


def job(name, code="", **settings):
    return Job(name, (*PYTHON, code), **settings)


def test_a_job_that_fails_stops_only_what_needs_it(tmp_path):
    jobs = [job("bad", "raise SystemExit(3)"), job("good", share=0.5), job("after", after=("bad",)), job("last", after=("good",))]  # fmt: skip
    assert not Jobs(jobs, tmp_path).run()
    ended = {row["name"]: row["code"] for row in map(json.loads, (tmp_path / "jobs.jsonl").read_text().splitlines())}
    assert ended == {"bad": 3, "good": 0, "last": 0}


def test_a_job_that_takes_too_long_is_ended_and_the_others_go_on(tmp_path):
    assert not Jobs([job("hangs", "import time; time.sleep(1000)", limit=0.0), job("good")], tmp_path).run()
    assert [json.loads(line)["name"] for line in (tmp_path / "jobs.jsonl").read_text().splitlines()] == [
        "hangs",
        "good",
    ]


def test_what_is_finished_is_not_run_again(tmp_path):
    count = tmp_path / "count"
    code = f"open({str(count)!r}, 'a').write('x')"
    assert Jobs([job("once", code)], tmp_path).run() and Jobs([job("once", code)], tmp_path).run()
    assert count.read_text() == "x"


OPTIONS = ["--text", "text.txt", "--valid", "valid.txt", "--glue", "glue", "--kor-nlu", "kor"]


def options(folder, *more):
    return pretraining.parser().parse_args([*OPTIONS, "--out", str(folder), *more])


def trained(folder, rows, code=0):
    """A run, and how its job ended."""
    (folder / "model").mkdir(parents=True)
    with (folder.parent / "jobs.jsonl").open("a", encoding="utf-8") as record:
        record.write(json.dumps({"name": folder.name, "code": code, "seconds": 1.0}) + "\n")
    lines = "".join(json.dumps({"kind": "valid", **row}) + "\n" for row in rows)
    (folder / "log.jsonl").write_text(lines, encoding="utf-8", newline="\n")


def test_the_table_has_the_best_validation_of_each_run_and_leaves_failed_runs_empty(tmp_path):
    trained(tmp_path / "BERT", [{"step": 10, "loss": 5.5}, {"step": 20, "loss": 5.25}])
    trained(tmp_path / "BERT-CoLA-1", [{"step": 1, "matthews": 10.0, "accuracy": 70.0}, {"step": 2, "matthews": 8.0, "accuracy": 71.0}])  # fmt: skip
    trained(tmp_path / "BERT-CoLA-2", [{"step": 1, "matthews": 20.0, "accuracy": 72.0}])
    trained(tmp_path / "BERT-CoLA-3", [{"step": 1, "matthews": 90.0, "accuracy": 90.0}], code=-15)  # it was stopped
    _, _, steps, losses, matthews, accuracy = pretraining.table(options(tmp_path, "--tasks", "CoLA"))
    assert steps.split(" | ")[:4] == ["| pre-training", "steps", "20", ""] and " 5.250 " in losses
    assert "| 15.0 (10.0, 20.0) |" in matthews and "| 71.0 (70.0, 72.0) |" in accuracy


@pytest.mark.parametrize(("more", "share"), [((), 1.0), (("--together",), 1 / 6)])
def test_a_budget_leaves_each_model_the_same_time(tmp_path, more, share):
    own = options(tmp_path, "--budget", "1400", "--tuning", "400", *more)
    each = pretraining.time_of_each(own, 1300.0)
    assert each == pytest.approx(900 / (1 if more else 6))
    assert pretraining.time_of_each(own, 50.0) == each  # the same when the command is repeated
    jobs = pretraining.pretrainings(own, each)
    assert all(job.share == pytest.approx(share) and f"{each:.0f}s" in job.command for job in jobs)


def test_a_pretraining_on_short_rows_is_continued_on_long_ones(tmp_path):
    own = options(tmp_path, "--short", "32", "--set", "model.layers=6", "--set", "training.rate=0.001")
    jobs = {job.name: job for job in pretraining.pretrainings(own, 100.0)}
    assert {"task.length=32", "60s"} <= set(jobs["short-BERT"].command) and "task.window=32" in jobs[
        "short-GPT"
    ].command
    then = jobs["BERT"].command
    assert jobs["BERT"].after == ("short-BERT",) and {str(tmp_path / "short-BERT"), "40s", "task.length=128"} <= set(
        then
    )
    assert then.index("training.rate=0.0005") < then.index("training.rate=0.001")  # the later one counts
    assert not any(part.startswith(("model.", "subwords.")) for part in then)  # they are those of the first
    trained(tmp_path / "short-BERT", [{"step": 30, "loss": 6.0}])
    trained(tmp_path / "BERT", [{"step": 20, "loss": 5.5}])
    assert pretraining.pretrained(tmp_path, "BERT") == (50, 5.5)


def test_a_budget_that_is_too_small_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="--budget leaves 300 s after preparing the text, and --tuning needs 420"):
        pretraining.time_of_each(options(tmp_path, "--budget", "400"), 300.0)


@pytest.fixture
def own_text(tmp_path):
    texts = {"source": "a\nb\nc\n", "target": "A\nB\nC\n", "valid": "the cat sat on the mat\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8", newline="\n")
    files = [str(tmp_path / name) for name in ("source", "target", "valid", "valid")]
    sizes = ["--rates", "0.0001", "0.001", "--pairs", "2", "--out", str(tmp_path / "out")]
    (tmp_path / "out").mkdir()
    return tuning.parser().parse_args(["--general", *files, "--own", *files, *sizes])


def test_each_fine_tuning_starts_from_the_general_model_with_its_rate(own_text):
    jobs = {job.name: job for job in tuning.jobs(own_text)}
    runs = ["general", "2-0.0001", "2-0.001"]
    assert list(jobs) == [*runs, *(f"{name}.{kind}" for name in runs for kind in ("own", "general"))]
    assert jobs["2-0.001"].after == ("general",) and "training.rate=0.001" in jobs["2-0.001"].command
    assert (own_text.out / "2.target").read_text("utf-8") == "A\nB\n"  # the first pairs


def test_the_table_of_rates_has_both_scores_and_leaves_missing_runs_empty(own_text):
    for name in ("general.own", "general.general", "2-0.001.own", "2-0.001.general"):
        text = "the cat sat on the mat\n" if name.endswith("own") else "a dog\n"
        (own_text.out / f"{name}.txt").write_text(text, encoding="utf-8", newline="\n")
    assert tuning.table(own_text)[2:] == ["| not fine-tuned | 100.00, 0.00 |", "| 0.0001 |  |", "| 0.001 | 100.00, 0.00 |"]  # fmt: skip


def test_a_rate_for_all_runs_is_refused(own_text, monkeypatch):
    monkeypatch.setattr(tuning, "Jobs", lambda *of: pytest.fail("started"))
    files = ["--general", *own_text.general, "--own", *own_text.own, "--out", str(own_text.out)]
    with pytest.raises(
        SystemExit, match=r"--set training\.rate=0\.1 would replace the rate of every run: give the rates"
    ):
        tuning.main([*files, "--set", "model.dim=8", "--set", "training.rate=0.1"])
