"""bench/phases.py: time belongs to the innermost phase, and what it watches exists."""

from importlib import import_module
from types import SimpleNamespace

import pytest
from bench import phases
from bench.phases import PARTS, Phases


def test_time_belongs_to_the_innermost_phase():
    now = [0.0]
    found = Phases(lambda: now[0])

    def spend(seconds):
        now[0] += seconds

    own = SimpleNamespace(inner=spend)
    found.watch(own, "inner", "inside")
    with found.phase("outside"):
        spend(1)
        own.inner(10)
        spend(2)
        own.inner(20)
        with pytest.raises(ZeroDivisionError), found.phase("broken"):
            spend(5)
            raise ZeroDivisionError
        spend(4)
    assert found.seconds == {"outside": 7, "inside": 30, "broken": 5}
    assert found.calls == {"outside": 1, "inside": 2, "broken": 1}


@pytest.mark.parametrize(("module", "kind", "function", "name"), PARTS)
def test_what_is_watched_exists(module, kind, function, name):
    owner = import_module(module)
    assert callable(getattr(getattr(owner, kind) if kind else owner, function)), name


def test_the_words_of_a_run(monkeypatch, tmp_path):
    given = []
    monkeypatch.setattr(phases, "watch_all", lambda own, device: None)
    monkeypatch.setattr("heed.cli.main.main", lambda words: given.append(words) or 0)
    args = phases.parser().parse_args(["my.toml", "--set", "training.steps=3", "--time", "9s"])
    found, _, _ = phases.train(args, tmp_path)
    assert set(found.seconds) == {"other", "imports"}
    assert given == [["train", "my.toml", "--out", str(tmp_path / "run"), "--device", "cpu", "--quiet", "--time", "9s", "--set", "training.steps=3"]]  # fmt: skip
