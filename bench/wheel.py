"""Try a wheel of heed as its user has it, in an empty environment without the repository: `make wheel`."""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from bench.environment import ROOT, Environment

TINY = ["--set", "data.phrasebook=300", "--set", "subwords.joint=true", "--set", "subwords.size=900", "--set", "model.dim=16", "--set", "model.heads=2",
        "--set", "model.hidden=32", "--set", "training.threads=1", "--set", "training.steps=4", "--set", "training.valid_every=2",
        "--set", "training.batch_tokens=200", "--set", "decoding.max_length=12", "--set", "filters.max_length=40"]  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.wheel", description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="where to try it (default: a folder that is removed)"
    )
    options = parser.parse_args(arguments)
    folder = options.keep or Path(tempfile.mkdtemp(prefix="heed-wheel-"))
    try:
        environment = Environment(folder / "environment", folder / "home")
        environment.install("--constraint", str(ROOT / "constraints.txt"), str(options.wheel.resolve()))
        try_verbs(environment, options.wheel.name.split("-")[1])
        try_service(environment)
    except (RuntimeError, AssertionError, OSError, subprocess.SubprocessError) as error:
        print(f"{options.wheel.name} does not work: {error}", file=sys.stderr)
        return 1
    finally:
        if options.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{options.wheel.name} works in an empty environment")
    return 0


def try_verbs(environment: Environment, version: str) -> None:
    """What `make demo` does, smaller: whatever a verb writes needs the files of its page, its fonts and its recipe."""
    home = environment.home
    where = environment.run("python", "-c", "import heed; print(heed.__file__)").strip()
    check(Path(where).is_relative_to(environment.folder), f"heed is imported from {where}")
    check(environment.run("heed", "--version") == f"heed {version}\n", "heed --version is not the version of the wheel")
    shown = environment.run("heed", "recipes").splitlines()
    check(len(shown) == len(list((ROOT / "recipes").glob("*.toml"))), f"it has {len(shown)} recipes")
    environment.run("heed", "phrasebook", "--out", "data", "--train", "300")
    environment.run("heed", "train", "phrasebook", "--out", "run", "--quiet", *TINY)
    translated = environment.run("heed", "translate", "run", "나는 책을 읽어요.", "--threads", "1")
    check(len(translated.splitlines()) == 1, "heed translate gives no line")
    test = ["--source", "data/valid.ko", "--reference", "data/valid.en", "--sentences", "sentences.html"]
    environment.run("heed", "evaluate", "run", "--threads", "1", *test)
    environment.run("heed", "look", "run", "나는 책을 읽어요.", "--out", "look.html")
    environment.run("heed", "look", "run", "나는 책을 읽어요.", "--out", "look.png")
    environment.run("heed", "lab", "positions", "--out", "lab", "--lang", "ko")
    for page in ("run/report.html", "sentences.html", "look.html", "look.png", "lab/positions.html"):
        check((home / page).is_file() and (home / page).stat().st_size > 1000, f"{page} is missing or empty")


def try_service(environment: Environment) -> None:
    """The service answers: its health, a translation, and the page with every file that the page names."""
    command = environment.command("heed", "serve", "run", "--port", "0", "--threads", "1")
    pipes = {"stderr": subprocess.PIPE, "text": True, "encoding": "utf-8"}
    with subprocess.Popen(command, cwd=environment.home, env=environment.environment(), **pipes) as process:
        try:
            said = iter(process.stderr.readline, "")
            address = next((found[0] for line in said if (found := re.search(r"http://[\d.]+:\d+", line))), None)
            check(address is not None, "heed serve ended without an address")
            check(json.loads(fetch(f"{address}/health"))["status"] == "ok", "/health is not ok")
            body = json.dumps({"q": "나는 책을 읽어요.", "source": "ko", "target": "en"}).encode()
            check("translatedText" in json.loads(fetch(f"{address}/translate", body)), "/translate gives no text")
            page = fetch(f"{address}/").decode()
            for name in re.findall(r'(?:src|href)="([\w./-]+\.(?:js|css|svg|woff2))"', page):
                check(fetch(f"{address}/{name.lstrip('./')}"), f"{name} of the page is empty")
        finally:
            process.terminate()


def fetch(address: str, body: bytes | None = None) -> bytes:
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"} if body else {})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return answer.read()


def check(holds: object, otherwise: str) -> None:
    if not holds:
        raise RuntimeError(otherwise)


if __name__ == "__main__":
    sys.exit(main())
