"""A corpus far larger than what is looked at: it is prepared and trained on in bounded memory."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

HEED = [sys.executable, "-m", "heed"]
SETTINGS = ["training.steps=100", "training.valid_every=100", "training.batch_tokens=2048", "data.holdout=200",
            "model.preset=tiny", "filters.duplicates=true", "decoding.max_length=20"]  # fmt: skip


@pytest.mark.long
def test_two_million_pairs_need_less_than_two_gigabytes(tmp_path):
    pairs, data, run = 2_000_000, tmp_path / "data", tmp_path / "run"
    environment = {**os.environ, "HEED_CACHE": str(tmp_path / "cache")}
    subprocess.run([*HEED, "phrasebook", "--out", str(data), "--train", str(pairs)], env=environment, check=True)
    files = ["--source", str(data / "train.ko"), "--target", str(data / "train.en")]
    sets = [word for setting in SETTINGS for word in ("--set", setting)]
    command = [*HEED, "train", *files, "--out", str(run), *sets]
    peak = peak_of(command, environment, tmp_path)
    print(f"peak resident memory: {peak / 2**20:.0f} MiB")
    assert '"end"' in (run / "log.jsonl").read_text().splitlines()[-1]
    assert peak < 2 * 2**30


def peak_of(command: list[str], environment: dict, folder: Path) -> int:
    """The most memory, in bytes, that this command had resident."""
    code = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command], env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    unit = 1024 if resource.getpagesize() and sys.platform != "darwin" else 1
    return int(done.stdout.split()[-1]) * unit
