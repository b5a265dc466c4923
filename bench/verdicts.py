"""What is known of faults, kept in files so that a sample can be done in pieces."""

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple


class Verdict(NamedTuple):
    """What became of a fault: the test that noticed, if one did, and how many test files run the place."""

    key: str
    told: str
    killer: str | None
    files: int


class Results:
    """What is known of faults: one line each; a later line counts."""

    def __init__(self, folder: Path):
        self.path = folder / "results.jsonl"

    @cached_property
    def known(self) -> dict[str, Verdict]:
        lines = self.path.read_text("utf-8").splitlines() if self.path.is_file() else []
        return {verdict.key: verdict for verdict in (Verdict(**json.loads(line)) for line in lines)}

    def add(self, verdict: Verdict) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(verdict._asdict(), ensure_ascii=False) + "\n")


class Looked:
    """With which tests a first look was taken at a fault, and for how long."""

    def __init__(self, folder: Path):
        self.path = folder / "looked.jsonl"
        lines = self.path.read_text("utf-8").splitlines() if self.path.is_file() else []
        self.known = {key: (digest, seconds) for key, digest, seconds in map(json.loads, lines)}

    def holds(self, key: str, tests: Sequence[Path], seconds: float) -> bool:
        digest, before = self.known.get(key, ("", 0))
        return digest == _digest(tests) and seconds <= before

    def add(self, key: str, tests: Sequence[Path], seconds: float) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps([key, _digest(tests), seconds]) + "\n")


def _digest(tests: Sequence[Path]) -> str:
    return hashlib.sha256(b"".join(bytes(test) + test.read_bytes() for test in tests)).hexdigest()[:16]
