"""What the host does around the search of a GPU, with a simulated device."""

import json

import pytest
from bench import host_work
from bench.host_work import Device, Times

from heed.bulk import command
from heed.data import staged
from heed.products.translator import stages


class Clock:
    """What a bench asks of `time`; it only moves when it is told to."""

    def __init__(self):
        self.now = 100.0

    def sleep(self, seconds):
        self.now += seconds

    def perf_counter(self):
        return self.now

    process_time = perf_counter


@pytest.fixture
def clock(monkeypatch):
    own = Clock()
    monkeypatch.setattr(host_work, "time", own)
    return own


def test_a_device_does_one_thing_after_another(clock):
    device = Device()
    assert device.run(2.0) == 102.0 and device.run(1.0) == 103.0
    device.wait(device.free)
    assert clock.now == 103.0 and device.idle == 0.0
    clock.sleep(0.5)
    assert device.run(0.0) == 103.5 and device.idle == 0.5


def test_time_within_another_stage_is_not_counted_twice(clock):
    times = Times()
    inner = times.timed("inner", clock.sleep)
    times.timed("outer", lambda: (clock.sleep(2.0), inner(5.0)))()
    clock.sleep(1.0)
    times.switch()
    assert times.found == {"all else": 1.0, "outer": 2.0, "inner": 5.0}


def test_both_ways_are_measured_and_nothing_stays_changed(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(host_work, "MOST", 64)
    before = staged.run, command.run, stages.finish
    assert host_work.main(["--lines", "40", "--rounds", "1", "--guards", "--json", str(tmp_path / "j")]) == 0
    assert (staged.run, command.run, stages.finish) == before
    found = json.loads((tmp_path / "j").read_text("utf-8"))
    for way in host_work.WAYS:
        assert {"clean and split", "subwords of the sources", "results", "guards"} <= {*found[way]["stages"]}
        assert found[way]["wall"] > 0
    assert found["heed translate, file to file"]["stages"]["writing"] > 0
    assert "the search alone" in capsys.readouterr().out
