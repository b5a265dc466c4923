"""kill -9 at any moment: the run goes on, and ends with the weights of one that was never touched."""

import hashlib
import os
import random
import signal
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from tests import fixed_pairs, forked

RECIPE = Path(__file__).parents[2] / "recipes" / "phrasebook.toml"
SMALL = {
    "data.phrasebook": 600,
    "subwords.joint": "true",
    "subwords.size": 900,
    "model.dim": 32,
    "model.hidden": 64,
    "training.batch_tokens": 300,
    "training.valid_every": 45,
    "training.valid_tokens": 20000,
    "training.threads": 1,
    "decoding.max_length": 6,
    "decoding.beam": 1,
}


def command(out: Path, settings: dict) -> list[str]:
    sets = [word for name, value in {**SMALL, **settings}.items() for word in ("--set", f"{name}={value}")]
    valid = [f"--valid-{side}={out.parent / f'valid.{side}'}" for side in ("source", "target")]
    return ["train", str(RECIPE), "--out", str(out), "--quiet", "--no-report", *valid, *sets]


def digest(run: Path) -> str:
    return hashlib.sha256((run / "model" / "model.safetensors").read_bytes()).hexdigest()


def killed_again_and_again(out: Path, settings: dict, environment: dict, kills: int, seed: int) -> None:
    """Run to the end, killed `kills` times on the way."""
    chance = random.Random(seed)
    command_line = [*command(out, settings), "--resume"]
    for done in range(kills):
        worker = forked.start(command_line, environment)
        _wait_for_steps(out, worker, more=chance.randint(1, 6))
        time.sleep(chance.random() * 0.5)  # in a step, in a validation, in a checkpoint
        if worker.exitcode is not None:
            assert done, "the run ended before it could be killed: give it more steps"
            break
        os.killpg(worker.pid, signal.SIGKILL)
        worker.join()
    assert forked.finish(forked.start(command_line, environment)) == 0


def _wait_for_steps(out: Path, worker: BaseProcess, more: int) -> None:
    """Until so many more lines stand in the log than when this worker began to write."""
    begun, deadline = None, time.monotonic() + 600
    while worker.exitcode is None and time.monotonic() < deadline:
        lines = (out / "log.jsonl").read_text().splitlines() if (out / "log.jsonl").is_file() else []
        if begun is None and lines and '"start"' in lines[-1]:
            begun = len(lines)
        if begun is not None and len(lines) >= begun + more:
            return
        time.sleep(0.01)


@pytest.fixture
def environment(tmp_path) -> dict:
    pairs = list(fixed_pairs.pairs("test", 60))  # all of the phrasebook's 500 would take most of the time to translate
    for side in ("source", "target"):
        text = "".join(f"{getattr(pair, side)}\n" for pair in pairs)
        (tmp_path / f"valid.{side}").write_text(text, "utf-8", newline="\n")
    return {"HEED_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}


@pytest.mark.parametrize(
    "settings",
    [
        {"training.steps": 90, "training.checkpoint_every": 7, "training.log_every": 2, 
         "training.final": "average-last", "training.average": 3, "training.accumulate": 2, "subwords.sampling": 0.1},
    ],
    ids=["averaged, accumulated, with BPE-dropout"],
)  # fmt: skip
def test_a_run_killed_three_times_ends_with_the_same_bits(tmp_path, environment, settings):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert forked.finish(forked.start(command(whole, settings), environment)) == 0
    killed_again_and_again(broken, settings, environment, kills=3, seed=1)
    assert digest(broken) == digest(whole)


@pytest.mark.long
@pytest.mark.parametrize("final", ["best", "average-best", "ema", "last"])
def test_a_longer_run_killed_a_dozen_times_ends_with_the_same_bits(tmp_path, environment, final):
    settings = {
        "training.steps": 400, "training.checkpoint_every": 15, "training.log_every": 3, "training.ema": 0.95 if final == "ema" else 0.0,
        "training.final": final, "task.r_drop": 1.0, "model.dropout": 0.2,
    }  # fmt: skip
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert forked.finish(forked.start(command(whole, settings), environment)) == 0
    killed_again_and_again(broken, settings, environment, kills=12, seed=2)
    assert digest(broken) == digest(whole)
