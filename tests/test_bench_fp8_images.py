"""python -m bench.fp8_images: what fails is left out, and the fastest of the rest is used."""

from types import SimpleNamespace

import numpy as np
import torch
from bench import fp8_images
from bench.fp8_layers import How, Plan

CPU, TILE = torch.device("cpu"), How("a tile")


def broken():
    raise RuntimeError("it is\nout of resource")


def test_a_candidate_that_fails_is_reported_and_left_out(capsys):
    kept = []

    def candidate(name, run, keep):
        prepare = error = lambda: 0.0
        return SimpleNamespace(part="norm", name=name, how=name, run=run, prepare=prepare, error=error, keep=keep)

    def launches():
        yield candidate("one", broken, kept.append)
        yield candidate("two", lambda: None, kept.append)
        broken()

    data = SimpleNamespace(launches=launches, products=lambda hows: [iter([candidate("three", broken, None)])])
    rows = fp8_images.measure_layer(data, [], CPU)
    assert [row.get("failed") for row in rows] == ["out of resource", None, "out of resource"]
    assert kept == [None, "two"] and capsys.readouterr().out.count("out of resource") == 3


def row(part, how, time, **more):
    return {"part": part, "name": "", "how": how, "microseconds": time, **more}


def test_plans_have_the_fastest_that_did_not_fail():
    exact = How(fast=False)
    rows = [
        row("qkv", None, 1.0), row("qkv", exact, 2.0), row("qkv", How(), 4.0), row("qkv", TILE, 3.0),
        row("up", How(), 2.0), row("up with GELU", TILE, 1.0), row("down", How(), 5.0), row("out", How(), 1.0),
        {"part": "up with GELU, to e4m3", "how": TILE, "failed": "no"},
    ]  # fmt: skip
    found = fp8_images.plans_of(rows)
    assert found["qkv, up, down"] == Plan(qkv=TILE, up=How(), down=How())
    assert found["qkv, up with GELU"] == Plan(qkv=TILE, up=TILE)
    assert found["qkv, up, down, exact sums"] == Plan(exact, None, exact, exact)
    assert not any("up with GELU, down" in name for name in found)


def test_differences_of_probabilities():
    wanted = np.array([[0.5, 0.5 - 1e-9, 1e-9], [0.1, 0.2, 0.7]])
    same = fp8_images.differences(wanted, wanted, np.array([0, 1]))
    assert same == {"largest": 0.0, "divergence": 0.0, "same_class": 1.0, "accuracy": 0.5}
    other = np.array([[0.25, 0.75 - 1e-9, 1e-9], [0.1, 0.2, 0.7]])
    found = fp8_images.differences(other, wanted)
    assert found["same_class"] == 0.5 and abs(found["largest"] - 0.25) < 1e-6
    assert abs(found["divergence"] - (0.5 * np.log(2) + 0.5 * np.log(2 / 3)) / 2) < 1e-6
