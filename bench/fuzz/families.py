"""What reads logs of interactions, pronouncing dictionaries, vocoders, and models of images, speech and recommendation."""

import gzip
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save

from bench.fuzz.cases import Case, Reader
from bench.fuzz.folders import unverified, written
from heed import loading
from heed.convert import hifi_gan
from heed.data import pronunciations
from heed.data.interactions.config import InteractionsConfig
from heed.data.interactions.files import find_format
from heed.data.interactions.log import open_log
from heed.data.interactions.split import split
from heed.models import MODELS
from heed.models.hifi_gan import HiFiGAN
from heed.models.package import Package
from heed.vocabularies.characters import Characters
from heed.vocabularies.histories import Histories
from heed.vocabularies.images import Images
from heed.vocabularies.items import Items
from heed.vocabularies.labels import Labels
from heed.vocabularies.phonemes import of_dictionary
from heed.vocabularies.sound import FeatureSettings, SoundFeatures

SHAPE = {"dim": 8, "heads": 2, "hidden": 8}
SIDES = {"encoder_layers": 1, "decoder_layers": 1}
ROWS = [(user, item, str(1 + i % 5), str(1000 + 7 * i)) for i, (user, item) in enumerate(
    (user, item) for item in ("tea", "고구마", "soap", "milk") for user in ("ann", "bob", "kim")
)]  # fmt: skip
SPOKEN = ";;; words\nHELLO  HH AH0 L OW1\nHELLO(1)  HH EH0 L OW1\nit's IH1 T S # x\nI AY1\ntea T IY1\n"
VOCODER = {
    "model_in_dim": 4, "sampling_rate": 8000, "upsample_initial_channel": 4, "upsample_rates": [2, 2], "upsample_kernel_sizes": [4, 4],
    "resblock_kernel_sizes": [3], "resblock_dilation_sizes": [[1, 3]], "leaky_relu_slope": 0.1, "n_fft": 64, "fmin": 0, "fmax": None,
}  # fmt: skip


def _log_seeds() -> Iterable[Case]:
    for name, between in (("a.csv", ","), ("a.tsv", "\t"), ("a.dat", "::")):
        head = "" if between == "::" else between.join(("user_id", "item_id", "rating", "timestamp")) + "\n"
        yield {name: (head + "".join(between.join(row) + "\n" for row in ROWS)).encode()}
    times = [f"2024-05-{day:02d}T12:30:00" for day in range(1, 11)] + ["2024-05-11", "2024-05-12 00:00:00+09:00"]
    rows = "".join(f"{user},{item},{time}\n" for (user, item, *_), time in zip(ROWS, times, strict=True))
    dated = f"user,item,time\n{rows}"
    yield {"a.csv.gz": gzip.compress(dated.encode())}
    yield {"a.txt": b"ann tea soap\nbob soap tea milk\n"}
    yield {"a.txt": b"1 10\n1 11\n1 12\n2 10\n2 12\n"}
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        return
    out, columns = io.BytesIO(), zip(("user", "item", "rating", "timestamp"), zip(*ROWS, strict=True), strict=True)
    parquet.write_table(pyarrow.table({name: list(own) for name, own in columns}), out)
    yield {"a.parquet": out.getvalue()}


def _read_log(folder: Path) -> None:
    """With ratings, and split in both ways."""
    for path in folder.iterdir():
        timed = find_format(path, "auto") not in ("users", "pairs")
        given = {"interactions": [str(path)], "core": 0, "split": "time" if timed else "leave-one-out"}
        config = InteractionsConfig(**given, min_rating=2 if path.suffix == ".tsv" else None)
        work = folder.parent / "work"
        work.mkdir(exist_ok=True)
        with open_log(config, folder=work) as log:
            split(log, config, work)


def _read_dictionary(folder: Path) -> None:
    for path in folder.iterdir():
        found = pronunciations.read(path)
        of_dictionary(found).encode(["hello it's"])
        parts = pronunciations.split(found, 1, 1)
        assert len({*parts.train, *parts.valid, *parts.test}) == sum(map(len, parts))


def _package(name: str, task: str, processors: dict[str, Any], facts: dict[str, Any], **shape: Any) -> Package:
    torch.manual_seed(0)
    system = MODELS[name]
    return Package(system.model(system.config(**SHAPE, **shape)).eval(), task, processors, facts)


def packages() -> Iterable[Package]:
    images, labels = Images(8, 3, (0.5,) * 3, (0.25,) * 3), Labels(["dots", "lines"])
    picture = {"size": 8, "labels": 2, "layers": 1}
    yield _package("vit", "image-classification", {"images": images, "labels": labels}, {}, patch=4, **picture)
    yield _package("image-transformer", "image-generation", {"images": images, "labels": labels}, {}, **picture)
    letters, hearing = Characters(list("ab c")), SoundFeatures(FeatureSettings(mels=10))
    size = {"vocab_size": len(letters), **SIDES}
    facts = {"language": "en", "longest_seconds": 5.0}
    yield _package("speech-transformer", "speech-recognition", {"sound": hearing, "target": letters}, facts, inputs=10, channels=2, **size)  # fmt: skip
    settings = FeatureSettings("mel", rate=8000, mels=10, frame=32.0, shift=16.0, normalize="corpus")
    voice = {"sound": SoundFeatures(settings, [-3.0] * 10, [1.0] * 10), "text": letters, "speakers": Labels(["a", "b"])}
    yield _package("transformer-tts", "speech-synthesis", voice, {"frames_per_token": 3.0}, outputs=10, speakers=2, postnet=4, **size)  # fmt: skip
    offsets, ends, none = np.array([0, 2, 3]), np.array([2, 1], np.int32), np.full(2, -1, np.int32)
    arrays = {"items": np.array([0, 2, 1], np.uint32), "offsets": offsets, "train_end": ends, "valid_at": none, "test_at": none}  # fmt: skip
    shop = {"items": Items(["tea", "soap", "사과"]), "histories": Histories(["ann", "bob"], 3, arrays)}
    yield _package("sasrec", "recommendation", shop, {}, items=3, layers=1, max_length=6)


def _model_seeds() -> Iterable[Case]:
    for package in packages():
        case = written(lambda folder, package=package: loading.write_package(package, folder))
        yield unverified(case)
        yield case


def _vocoder_seeds() -> Iterable[Case]:
    config = hifi_gan._config(VOCODER, "")
    torch.manual_seed(0)
    ours = HiFiGAN(config).state_dict()
    names = {"first.": "conv_pre.", "last.": "conv_post.", "upsamplers.": "ups."}
    theirs = {_replaced(name, names): own for name, own in ours.items()}
    yield {"config.json": json.dumps(VOCODER).encode(), "generator.safetensors": save(theirs)}
    normed = {name: own for name, own in theirs.items() if name != "conv_pre.weight"}
    weight = theirs["conv_pre.weight"]
    normed |= {"conv_pre.weight_g": weight.flatten(1).norm(dim=1)[:, None, None], "conv_pre.weight_v": 3 * weight}
    yield {"config.json": json.dumps({**VOCODER, "win_size": 64}).encode(), "generator.safetensors": save(normed)}


def _replaced(name: str, beginnings: dict[str, str]) -> str:
    for ours, theirs in beginnings.items():
        if name.startswith(ours):
            return theirs + name.removeprefix(ours)
    return name


READERS: dict[str, Reader] = {
    "interactions": Reader(_log_seeds, _read_log, ("user", "item", "time", "rating", "::", "\t", ",", "1e999", "nan")),
    "pronunciations": Reader(lambda: [{"a.dict": SPOKEN.encode()}], _read_dictionary, (";;;", "(1)", "#", "AH0")),
    "family-model": Reader(_model_seeds, lambda folder: loading.load(folder, "cpu", "torch")),
    "vocoder": Reader(_vocoder_seeds, hifi_gan.read),
}
