"""Compute features of recordings once into a memory-mapped array in the cache."""

import json
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heed.audio import files
from heed.audio.features import stretch
from heed.audio.resampling import change_speed
from heed.data.audio.manifests import Utterance
from heed.data.audio.stored_features import open_features
from heed.data.prepare import cached, digest
from heed.files import atomic_folder, open_checked, sha256, write_sums
from heed.vocabularies.sound import SoundFeatures

EDITION = 2  # of the folders in the cache
Tell = Callable[[str, int | None], None]


class SpeechCorpus:
    """Features of recordings and their texts, opened from a cache folder. A recording at several speeds has as many
    adjacent rows. `facts` are the skipped counts and the moments.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.facts: dict[str, Any] = json.loads((folder / "corpus.json").read_text("utf-8"))
        rows = json.loads((folder / "rows.json").read_text("utf-8"))
        self.texts: list[str] = [row["text"] for row in rows]
        self.names: list[str] = [row["name"] for row in rows]
        self.speakers: list[str] = [row.get("speaker", "") for row in rows]
        self.transcripts: list[str] = [row.get("transcript", "") for row in rows]
        self.lengths = np.array([row["frames"] for row in rows], dtype=np.int64)
        self.ends = self.lengths.cumsum()
        shape = (int(self.lengths.sum()), int(self.facts["size"]))
        self.values = np.memmap(folder / "features.f32", dtype="<f4", mode="r", shape=shape)

    def __len__(self) -> int:
        return len(self.texts)

    def __reduce__(self):
        return open_checked, (SpeechCorpus, self.folder)  # another process opens the same files

    def frames(self, row: int) -> np.ndarray:
        return np.array(self.mapped(row))

    def mapped(self, row: int) -> np.ndarray:
        """The frames where they are: not copied."""
        return self.values[self.ends[row] - self.lengths[row] : self.ends[row]]

    @cached_property
    def moments(self) -> tuple[list[float], list[float]]:
        return self.facts["mean"], self.facts["deviation"]


def key_of(utterances: Sequence[Utterance], settings: dict[str, Any]) -> str:
    """A hash of the recordings' contents and texts, wherever they are stored, and of the settings."""
    hashes: dict[Path, str] = {}
    for own in utterances:
        if own.path not in hashes:
            hashes[own.path] = sha256(own.path)
    rows = [
        (own.name, own.text, hashes[own.path], own.frames, own.speaker, *filter(None, [own.transcript]))
        for own in utterances
    ]
    return digest("speech", EDITION, rows, settings)


def features_of(config: Any, utterances: Sequence[Utterance]) -> SoundFeatures:
    """The feature extractor for these recordings, or the stored features."""
    stored = {own.path for own in utterances if own.frames is not None}
    if stored and any(own.frames is None for own in utterances):
        raise ValueError("data.audio mixes recordings and stored features: use one kind")
    sizes = {open_features(path).size for path in stored}
    if len(sizes) > 1:
        raise ValueError(f"data.audio: the stored features have different sizes ({', '.join(map(str, sorted(sizes)))})")
    return SoundFeatures(config.settings(given=sizes.pop() if sizes else 0))


def prepare(
    utterances: Sequence[Utterance],
    features: SoundFeatures,
    tell: Tell,
    *,
    speeds: Sequence[float] = (1.0,),
    longest: float = float("inf"),
) -> tuple[str, SpeechCorpus]:
    """The key of the recordings and their feature corpus, computed or cached; longer recordings are skipped."""
    limit = None if longest == float("inf") else longest
    settings = {**features.facts()["features"], "normalize": "", "speeds": list(speeds), "longest": limit}
    key = key_of(utterances, settings)

    def make(folder: Path) -> None:
        with atomic_folder(folder, "keep") as part:
            _write(part, utterances, features, tell, speeds, longest)
            write_sums(part)

    return key, cached(f"speech-{key}", SpeechCorpus, make, tell)


def _write(
    part: Path,
    utterances: Sequence[Utterance],
    features: SoundFeatures,
    tell: Tell,
    speeds: Sequence[float],
    longest: float,
) -> None:
    rows, left_out, seconds = [], 0, 0.0
    sums = np.zeros((2, len(features)))
    with open(part / "features.f32", "wb") as file:
        for number, (own, versions) in enumerate(_in_order(utterances, features, speeds)):
            if number % 50 == 0:
                tell("computing features", number)
            length = len(versions[0]) * features.seconds
            if length > longest or not len(versions[0]):
                left_out += 1
                continue
            seconds += length
            for made in versions:
                said = {"transcript": own.transcript} if own.transcript else {}
                rows.append({"name": own.name, "text": own.text, "speaker": own.speaker, "frames": len(made), **said})
                sums += made.sum(axis=0, dtype=np.float64), np.square(made, dtype=np.float64).sum(axis=0)
                file.write(made.astype("<f4").tobytes())
    if not rows:
        raise ValueError(f"data: all {len(utterances):,} recordings are longer than data.max_seconds: none is left")
    count = sum(row["frames"] for row in rows)
    mean = sums[0] / count
    deviation = np.sqrt(np.maximum(sums[1] / count - mean**2, 0))
    facts = {
        "size": len(features), "left_out": left_out, "seconds": seconds, "recordings": len(rows) // len(speeds),
        "mean": mean.tolist(), "deviation": deviation.tolist(),
    }  # fmt: skip
    for name, values in (("corpus.json", facts), ("rows.json", rows)):
        (part / name).write_text(json.dumps(values, ensure_ascii=False), "utf-8", newline="\n")


def _in_order(
    utterances: Sequence[Utterance], features: SoundFeatures, speeds: Sequence[float]
) -> Iterator[tuple[Utterance, list[np.ndarray]]]:
    """Each recording with its features, in order; threads read and transform the next ones.

    The first is computed here: if two threads are the first to use MKL's vector functions, they may get other values.
    """
    count = os.cpu_count() or 1
    for own in utterances[:1]:
        yield own, computed(own, features, speeds)
    with ThreadPoolExecutor(count) as threads:
        waiting = deque()
        try:
            for own in utterances[1:]:
                waiting.append((own, threads.submit(computed, own, features, speeds)))
                if len(waiting) > 4 * count:
                    first, done = waiting.popleft()
                    yield first, done.result()
            while waiting:
                first, done = waiting.popleft()
                yield first, done.result()
        finally:
            for _, left in waiting:
                left.cancel()


def computed(own: Utterance, features: SoundFeatures, speeds: Sequence[float] = (1.0,)) -> list[np.ndarray]:
    """The features of a recording at each speed."""
    if own.frames is not None:
        first, count = own.frames
        values = open_features(own.path)
        if first + count > len(values):
            raise ValueError(
                f"{own.path} has {len(values):,} frames; {own.name} would be {first:,} to {first + count:,}"
            )
        frames = torch.from_numpy(values.frames(first, count))
        return [stretch(frames, speed).numpy() for speed in speeds]
    sound = files.read(own.path)
    made = []
    for speed in speeds:
        samples = sound.samples if speed == 1 else change_speed(sound.samples, speed)
        made.append(features.frames(files.Sound(samples, sound.rate)))
    return made
