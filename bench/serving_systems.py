"""The services that `bench.serving` asks, each a process of its own, and their model."""

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SYSTEMS = {
    "heed": [],
    "heed-unbatched": ["--batch-sentences", "1", "--wait-ms", "0"],
    "heed-torch": ["--engine", "torch"],
    "transformers": None,
}


def folders(args: argparse.Namespace, place: Path) -> dict[str, str]:
    """The model as heed and, if it can be written so, as transformers reads it."""
    from heed.convert import huggingface
    from heed.loading import open_package, write_package

    package = open_package(args.model) if args.model else drawn()
    found = {"heed": args.model or str(place / "heed")}
    if not args.model:
        write_package(package, place / "heed")
    if "transformers" in args.systems:
        try:
            huggingface.write(package, place / "huggingface")
            found["transformers"] = str(place / "huggingface")
        except ValueError as error:
            print(f"without transformers: {error}")
    return found


def drawn() -> Any:
    """A model with drawn weights. It would never end: so each answer is 12 tokens long, a little more than its source."""
    import torch

    from bench.shared import _enliven
    from heed.data.synthetic import phrasebook
    from heed.models.package import Package
    from heed.models.transformer import Transformer, TransformerConfig
    from heed.vocabularies.sentencepiece import SubwordsConfig, learn

    torch.manual_seed(1)
    texts = [text for pair in phrasebook.pairs("train", 2000) for text in (pair.source, pair.target)]
    vocabulary = learn(texts, SubwordsConfig(), 2000)
    sizes = {"dim": 256, "heads": 4, "hidden": 1024, "encoder_layers": 3, "decoder_layers": 3, "max_length": 256}
    model = Transformer(TransformerConfig(len(vocabulary), **sizes)).eval().requires_grad_(False)
    _enliven(model)
    return Package(
        model,
        "translation",
        dict.fromkeys(("source", "target"), vocabulary),
        {"decoding": {"beam": 5, "max_length": 12}},
    )


def texts(args: argparse.Namespace) -> list[str]:
    if args.source:
        return [line for line in Path(args.source).read_text("utf-8").splitlines() if line.strip()][: args.texts]
    from heed.data.synthetic import phrasebook

    return [pair.source for pair in phrasebook.pairs("test", args.texts)]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def service(system: str, args: argparse.Namespace, paths: dict[str, str]) -> Iterator[tuple[subprocess.Popen, int]]:
    """A process that serves, and where."""
    port = free_port()
    if system == "transformers":
        words = ["bench.serving_plain", paths["transformers"], str(port), str(args.threads)]
    else:
        words = ["heed", "serve", f"{args.pair}={paths['heed']}", "--port", str(port), "--threads", str(args.threads)]
        words += SYSTEMS[system]
    env = {**os.environ, "OMP_NUM_THREADS": str(args.threads)}
    process = subprocess.Popen([sys.executable, "-m", *words], env=env, stderr=subprocess.DEVNULL)
    try:
        wait_for(system, process, port)
        yield process, port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(90)


def wait_for(system: str, process: subprocess.Popen, port: int) -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).read()
            return
        except OSError:
            if process.poll() is not None:
                raise ValueError(f"{system} ended with {process.returncode} before it served") from None
            time.sleep(0.2)
    raise ValueError(f"{system} did not answer within two minutes")


def offline(folder: str, engine: str, language: str, asked: list[str]) -> list[str]:
    """The translations without a service: of each text by itself, in its layout."""
    import heed
    from heed.text import layout, protected

    translator = heed.load(folder, "cpu", engine)

    def translate(own: list[str]) -> list[str]:
        return protected.translate(own, lambda plain: [one.text for one in translator.translate(plain)])

    return [layout.translate(text, translate, language) for text in asked]
