"""What the host does around the search of a GPU, with a device that is only played."""

import json
import time

import pytest
from bench import host_work
from bench.host_work import Device, Times

from heed.bulk import command
from heed.data import staged
from heed.products.translator import stages


def test_a_device_does_one_thing_after_another():
    device = Device()
    first = device.run(0.02)
    assert device.run(0.01) == pytest.approx(first + 0.01)
    device.wait(device.free)
    assert time.perf_counter() >= first + 0.01 and device.idle < 0.01
    time.sleep(0.01)
    device.run(0.0)
    assert device.idle >= 0.01


def test_time_within_another_stage_is_not_counted_twice():
    def work(seconds):
        end = time.process_time() + seconds
        while time.process_time() < end:
            pass

    times = Times()
    inner = times.timed("inner", work)
    times.timed("outer", lambda: (work(0.02), inner(0.05)))()
    times.switch()
    assert times.found["inner"] == pytest.approx(0.05, abs=0.015)
    assert times.found["outer"] == pytest.approx(0.02, abs=0.015)


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
