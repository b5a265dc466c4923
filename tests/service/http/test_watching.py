"""Runs that are watched: a log that has not changed is not read again."""

import json

from heed.service.http import runs


def written(folder, name, lines):
    (folder / name).mkdir(exist_ok=True)
    (folder / name / "recipe.toml").write_text("[training]\nsteps = 600\n")
    (folder / name / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_only_logs_that_have_changed_are_read_again(tmp_path, monkeypatch):
    step = {"kind": "step", "step": 1, "seconds_left": 5.0}
    written(tmp_path, "done", [step, {"kind": "end", "step": 600}])
    written(tmp_path, "busy", [step])
    read, read_log = [], runs._read_log
    monkeypatch.setattr(runs, "_read_log", lambda path: read.append(path.name) or read_log(path))
    first = {one["name"]: one for one in runs.list_runs(tmp_path)}
    assert sorted(read) == ["busy", "done"]
    assert (first["done"]["finished"], first["busy"]["step"], first["busy"]["seconds_left"]) == (True, 1, 5.0)
    first["done"]["step"] = "another's"  # what one is given is its own
    with (tmp_path / "busy" / "log.jsonl").open("a") as log:
        log.write(json.dumps(step | {"step": 2, "seconds_left": 4.0}) + "\n")
    again = {one["name"]: one for one in runs.list_runs(tmp_path)}
    assert sorted(read) == ["busy", "busy", "done"]
    assert (again["done"]["step"], again["busy"]["step"], again["busy"]["seconds_left"]) == (600, 2, 4.0)


def test_a_list_says_of_a_run_what_following_it_does(tmp_path):
    valid = {"kind": "valid", "step": 2, "loss": 1.0, "bleu": 3.5}
    written(tmp_path, "one", [{"kind": "step", "step": 1}, valid])
    (listed,) = runs.list_runs(tmp_path)
    assert listed == {name: runs.read_run(tmp_path, "one", 0)[name] for name in listed}
    written(tmp_path, "one", [{"kind": "step", "step": 1}])  # begun anew
    assert runs.list_runs(tmp_path)[0]["valid"] is None


def test_the_metrics_of_a_run_are_those_of_its_task(tmp_path):
    written(tmp_path, "one", [{"kind": "step", "step": 1}])

    def metrics(recipe):
        (tmp_path / "one" / "recipe.toml").write_text(recipe)
        (listed,) = runs.list_runs(tmp_path)
        assert listed["metrics"] == runs.read_run(tmp_path, "one", 0)["metrics"]
        return listed["metrics"]

    accuracy = {"name": "accuracy", "label": "accuracy", "better": "high", "decimals": 2}
    loss = {"name": "loss", "label": "loss", "better": "low", "decimals": 3}
    f1 = {"name": "f1", "label": "F1", "better": "high", "decimals": 2}
    matthews = {"name": "matthews", "label": "Matthews", "better": "high", "decimals": 2}
    assert metrics('[task]\nname = "classification"\n') == [accuracy, f1, matthews, loss]
    assert metrics('[task]\nname = "language"\n') == [loss]
    for unknown in ("", "[task]\nname = 'chess'\n", "[task]\nname = [1]\n", "task = 3\n", "half a li"):
        assert [one["name"] for one in metrics(unknown)][:5] == ["bleu", "chrf", "rouge", "loss", "accuracy"]


def test_the_last_step_is_the_one_that_can_be_expected(tmp_path):
    """A time ends a run long before the bound of its recipe."""
    first, later = {"kind": "step", "step": 1}, {"kind": "step", "step": 20, "steps": 480}

    def steps(*lines, time='time = "1h"\n'):
        written(tmp_path, "one", lines)
        (tmp_path / "one" / "recipe.toml").write_text(f"[training]\nsteps = 1000000\n{time}")
        (listed,) = runs.list_runs(tmp_path)
        assert listed["steps"] == runs.read_run(tmp_path, "one", 0)["steps"]
        return listed["steps"]

    assert steps(first) is None
    assert steps(first, later) == 480
    assert steps(first, later, {"kind": "end", "step": 470}) == 470
    assert steps(first, time="") == 1_000_000
