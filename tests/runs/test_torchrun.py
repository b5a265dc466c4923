"""`torchrun … heed train`: a worker that dies costs nothing, and a run goes on with another number of workers."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch.distributed import TCPStore

from heed.cli.main import main
from heed.runs import resume
from tests import forked

SETTINGS = {
    "data.holdout": 10,
    "subwords.size": 300,
    "subwords.coverage": 1.0,
    "model.dim": 16,
    "model.heads": 2,
    "model.hidden": 32,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "training.batch_tokens": 120,
    "training.steps": 40,
    "training.warmup": 10,
    "training.log_every": 1,
    "training.valid_every": 20,
    "training.checkpoint_every": 5,
    "training.final": "average-last",
    "training.average": 3,
    "training.threads": 1,
    "training.device": "cpu",
    "decoding.max_length": 8,
}


def words(out: Path, settings: dict) -> list[str]:
    sets = [word for name, value in {**SETTINGS, **settings}.items() for word in ("--set", f"{name}={value}")]
    corpus = [f"--{side}={out.parent / f'train.{side}'}" for side in ("source", "target")]
    return ["train", *corpus, "--out", str(out), "--no-report", *sets]


@contextmanager
def run(out: Path, restarts: int = 0, **settings) -> Iterator[subprocess.Popen]:
    """A run at work, on two processes under torchrun."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", f"--max-restarts={restarts}"]
    command = [sys.executable, *launcher, "-m", "heed", *words(out, settings)]
    environment = {**os.environ, "HEED_CACHE": str(out.parent / "cache"), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as at_work:
        try:
            yield at_work
        finally:
            if at_work.poll() is None:
                at_work.terminate()  # torchrun takes its workers along


def finish(at_work: subprocess.Popen, code: int = 0) -> str:
    _, said = at_work.communicate(timeout=900)
    assert at_work.returncode == code, said
    return said


def resume_on(processes: int, out: Path, settings: dict) -> str:
    """What a run says that goes on, on so many processes that another launcher has started."""
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    environment = {"WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port),
                   "TORCHELASTIC_USE_AGENT_STORE": "True", "HEED_CACHE": str(out.parent / "cache")}  # fmt: skip
    command, files = [*words(out, settings), "--resume"], [out / f"said-{rank}" for rank in range(processes)]
    workers = [forked.start(command, {**environment, "RANK": str(i)}, said) for i, said in enumerate(files)]
    codes, said = [forked.finish(one) for one in workers], [path.read_text("utf-8") for path in files]
    assert codes == [0] * processes, said
    return said[0]


def log(out: Path) -> list[dict]:
    path = out / "log.jsonl"
    lines = path.read_text("utf-8").splitlines(keepends=True) if path.is_file() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def wait(out: Path, at_work: subprocess.Popen, starts: int, more: int) -> None:
    """Until the log has so many starts, and so many steps after the last of them."""
    deadline = time.monotonic() + 600
    while at_work.poll() is None and time.monotonic() < deadline:
        kinds = [line["kind"] for line in log(out)]
        if kinds.count("start") >= starts and "start" not in kinds[-more:]:
            return
        time.sleep(0.005)
    pytest.fail(f"it did not come so far: {at_work.communicate(timeout=5)[1] if at_work.poll() is not None else kinds}")


def worker(at_work: subprocess.Popen, rank: int) -> int:
    """The process with this number among those that torchrun has started."""
    for pid in Path(f"/proc/{at_work.pid}/task/{at_work.pid}/children").read_text().split():
        if f"RANK={rank}" in Path(f"/proc/{pid}/environ").read_text().split("\0"):
            return int(pid)
    raise AssertionError(f"there is no worker {rank}")


def digest(out: Path) -> str:
    return hashlib.sha256((out / "model" / "model.safetensors").read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("torchrun")
    texts = [" ".join("abcdefgh"[int(digit)] * 2 for digit in oct(i * i * 7)[2:]) for i in range(1, 90)]
    (path / "train.source").write_text("".join(f"{text}\n" for text in texts))
    (path / "train.target").write_text("".join(f"{text[::-1].upper()}\n" for text in texts))
    return path


@pytest.mark.long
def test_of_two_workers_either_may_be_killed_and_nothing_is_lost(folder):
    """The bits are those of a run on two processes that was left alone, dropout and all."""
    whole, broken = folder / "whole", folder / "broken"
    with run(broken, restarts=2) as at_work:
        for attempt, rank in ((1, 1), (2, 0)):
            wait(broken, at_work, starts=attempt, more=8)
            os.kill(worker(at_work, rank), signal.SIGKILL)
        said = finish(at_work)
    assert "heed: another process of this run has died" in said
    with run(whole) as at_work:
        finish(at_work)
    assert [line["step"] for line in log(broken) if line["kind"] == "step"] == list(range(1, 41))
    assert digest(broken) == digest(whole)


def test_a_signal_to_one_worker_makes_all_save_and_leave_and_any_number_goes_on(folder, monkeypatch, capsys):
    monkeypatch.setenv("HEED_CACHE", str(folder / "cache"))
    out = folder / "interrupted"
    # With a smaller epsilon, Adam amplifies rounding. Sampled subwords, which the long test has, cost one more process
    # for each of the workers.
    settings = {"model.dropout": 0.0, "training.epsilon": 1e-3, "subwords.sampling": 0.0}
    with run(out, **settings) as at_work:
        wait(out, at_work, starts=1, more=12)
        os.kill(worker(at_work, 1), signal.SIGTERM)
        said = finish(at_work, code=1)
    step = log(out)[-1]["step"]
    assert f"Interrupted at step {step} and saved." in said
    assert (out / "checkpoints" / f"step-{step:06d}" / "state.json").is_file()
    alone, three = folder / "alone", folder / "three"
    for path in (alone, three):
        shutil.copytree(out, path)
    assert main([*words(alone, settings), "--resume"]) == 0
    for said in (capsys.readouterr().err, resume_on(3, three, {**settings, "training.parallel": "fsdp"})):
        assert f"Continuing from step {step}." in said
    losses = [[line["loss"] for line in log(path) if line["kind"] != "start"] for path in (alone, three)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    one, other = (load_file(path / "model" / "model.safetensors") for path in (alone, three))
    for name, weight in one.items():
        torch.testing.assert_close(weight, other[name], rtol=0, atol=1e-4)


def test_only_the_call_of_torchrun_that_began_a_folder_goes_on_in_it_unasked(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "one")
    out = tmp_path / "run"
    assert not resume.restarted(out)
    resume.begin(out)
    assert resume.restarted(out)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "another")
    assert not resume.restarted(out)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")  # what torchrun says when it was given no name
    assert not resume.restarted(out)
    resume.begin(out)
    assert resume.restarted(out)
    monkeypatch.delenv("TORCHELASTIC_RUN_ID")
    assert not resume.restarted(out)
