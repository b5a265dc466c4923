"""An environment of its own, made by uv in a folder: for the wheel and for the lowest versions."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


class Environment:
    """A fresh virtual environment. Commands run in it know nothing of the repository unless they are told."""

    def __init__(self, folder: Path, home: Path):
        self.folder, self.home = folder, home  # where it is, and where its commands run
        self.programs = folder / ("Scripts" if os.name == "nt" else "bin")
        home.mkdir(parents=True, exist_ok=True)
        uv("venv", "--quiet", "--clear", "--python", sys.executable, str(folder))

    def install(self, *what: str) -> None:
        uv("pip", "install", "--quiet", "--python", str(self.folder), *what)

    def environment(self) -> dict[str, str]:
        """The variables for its commands: no PYTHONPATH, and a cache of their own."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
        return kept | {"HEED_CACHE": str(self.home / "cache"), "PYTHONSAFEPATH": "1"}

    def command(self, program: str, *arguments: str) -> list[str]:
        return [str(self.programs / program), *arguments]

    def run(self, program: str, *arguments: str) -> str:
        """What a command prints; RuntimeError with its last words if it fails."""
        done = subprocess.run(
            self.command(program, *arguments),
            cwd=self.home, env=self.environment(), capture_output=True, text=True, encoding="utf-8",
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{program} {' '.join(arguments)} ended with {done.returncode}: {done.stderr[-2000:]}")
        return done.stdout


def uv(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "uv", *arguments], cwd=ROOT, check=True)
