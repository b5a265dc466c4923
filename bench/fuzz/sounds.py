"""What reads recordings: sound files, tables of them, stored features."""

import io
import lzma
import struct
from pathlib import Path

import numpy as np

from bench.fuzz.cases import Case, Reader
from heed.audio import files
from heed.data.audio import manifests
from heed.data.audio.prepare import computed
from heed.data.audio.stored_features import open_features, opened
from heed.vocabularies.sound import FeatureSettings, SoundFeatures

TONE = 0.5 * np.sin(np.arange(900) * 0.2)
LONGEST = 60.0  # seconds


def _wav(kind: int, bits: int, data: bytes, channels: int = 1) -> bytes:
    form = struct.pack("<HHIIHH", kind, channels, 8000, 8000, channels * bits // 8, bits)
    parts = b"WAVEfmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(parts)) + parts


def _sound_seeds() -> list[Case]:
    made = [files.wav_bytes(TONE, 8000), _wav(3, 32, TONE.astype("<f4").tobytes()), _wav(1, 24, bytes(range(120)), 2)]
    made += [files.encode(files.Sound(TONE.astype(np.float32), 8000), kind) for kind in ("flac", "mp3")]
    return [{"a.wav": data} for data in made]


def _read_sound(folder: Path) -> None:
    with open(folder / "a.wav", "rb") as file:
        sound = files.decode(file, "a.wav", files.Bounds(seconds=LONGEST))
    if 1000 <= sound.rate <= 192_000:
        assert np.isfinite(SoundFeatures(FeatureSettings(rate=8000, mels=8))(sound)).all()


def _read_table(folder: Path) -> None:
    for path in folder.iterdir():
        if path.suffix in (".tsv", ".csv"):
            assert all(own.text and own.path.is_file() for own in manifests.read(str(path)))


def _stored_seeds() -> list[Case]:
    array = io.BytesIO()
    np.save(array, np.arange(130, dtype=np.int16).reshape(13, 10))
    index = b"train\ta\t0\t6\tYES\ntest\tb\t6\t4\tNO\n"
    plain = {"index.tsv": index, "mfcc13_x256.npy": array.getvalue()}
    return [plain, {"index.tsv": index, "mfcc13_x256.npy.xz": lzma.compress(array.getvalue(), preset=0)}]


def _read_stored(folder: Path) -> None:
    opened.cache_clear()
    for own in manifests.read(str(folder), "mfcc", "all"):
        size = open_features(own.path).size
        computed(own, SoundFeatures(FeatureSettings("given", given=max(1, min(1024, size)))))


READERS: dict[str, Reader] = {
    "sound": Reader(_sound_seeds, _read_sound, ("RIFF", "WAVE", "fmt ", "data", "fLaC", "ID3")),
    "recordings": Reader(
        lambda: [
            {"t.tsv": b"a.wav\tone\ta\na.wav\ttwo\n", "a.wav": b"RIFF"},
            {"metadata.csv": b"a|One|one\n", "wavs/a.wav": b"RIFF"},
        ],
        _read_table,
        ("\t", "|"),
    ),
    "stored-features": Reader(_stored_seeds, _read_stored, ("train", "test", "\x93NUMPY", "'shape': ", "<i2", "|O")),
}
