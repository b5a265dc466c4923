"""Read and write audio files: WAV here, FLAC, Ogg and the rest with soundfile."""

import io
import os
import struct
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from heed.files import check_file, write_bytes

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE  # formats of WAV
WAV_HEADER = 44  # bytes before the samples of what is written here
LOUDEST = 1e4  # of floats, which should be from -1 to 1
FASTEST = 768_000  # samples a second; more is damage
MOST = 1 << 32  # samples in all channels: twelve hours of stereo at 48 kHz
UNKNOWN = (1 << 63) - 1  # samples, of a FLAC whose header states none
BLOCK = 1 << 20  # samples in all channels that are decoded at one time
INTEGERS = {8: "u1", 16: "<i2", 32: "<i4"}
NEEDS = "needs soundfile: pip install 'heed[audio]', or convert it to WAV"


class Sound(NamedTuple):
    """Mono samples from -1 to 1, and the sample rate."""

    samples: np.ndarray
    rate: int

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.rate


def read(path: str | Path) -> Sound:
    """Read an audio file; several channels are averaged. Raises ValueError if it is not readable audio."""
    check_file(Path(path))
    with open(path, "rb") as file:
        return decode(file, str(path))


class Bounds(NamedTuple):
    """What is refused before it is decoded: more seconds, samples in all channels, or samples a second."""

    seconds: float = float("inf")
    samples: int = MOST
    rate: int = FASTEST

    def check(self, name: str, frames: int, channels: int, rate: int) -> None:
        if not 1 <= rate <= self.rate:
            damage = ": the file is damaged" if not 1 <= rate <= FASTEST else ": resample it"
            raise ValueError(f"{name} has a sample rate of {rate:,} Hz; it must be from 1 to {self.rate:,}{damage}")
        if frames > self.seconds * rate:
            raise ValueError(f"{name} is {frames / rate:,.1f} seconds long; the maximum is {self.seconds:g}: split it")
        if frames * channels > self.samples:
            raise ValueError(
                f"{name} has {frames * channels:,} samples in {channels} channels; at most {self.samples:,} are read: "
                "split it, or make it mono"
            )


def decode(file: BinaryIO, name: str, bounds: Bounds = Bounds()) -> Sound:  # noqa: B008 (it cannot be changed)
    """Read an open audio file, called `name` in errors."""
    try:
        return _decode(file, name, bounds)
    except MemoryError:
        raise ValueError(f"{name} has more samples than fit into memory: split it") from None


def _decode(file: BinaryIO, name: str, bounds: Bounds) -> Sound:
    begins = file.read(4)
    file.seek(0)
    found = _wav(name, file, bounds) if begins in (b"RIFF", b"RF64") else None
    if found is None:
        file.seek(0)
        found = _other(name, file, bounds)
    samples, rate = found
    if not len(samples):
        bounds.check(name, 0, 1, rate)
        raise ValueError(f"{name} has no samples: the recording is empty")
    if not (samples.max() <= LOUDEST and samples.min() >= -LOUDEST):  # or no number at all
        raise ValueError(f"{name} has samples that are not finite, or far outside -1 to 1: the file is damaged")
    return Sound(np.ascontiguousarray(samples, dtype=np.float32), rate)


def _mono(channels: np.ndarray) -> np.ndarray:
    """The average of the channels (samples, channels). One that is no number, or too large, is refused later."""
    with np.errstate(over="ignore", invalid="ignore"):
        return channels.mean(axis=1, dtype=np.float32) if channels.shape[1] > 1 else channels[:, 0]


def write_wav(path: Path, samples: np.ndarray, rate: int) -> None:
    """Write mono samples as 16-bit WAV; values beyond -1 and 1 are clipped."""
    write_bytes(path, wav_bytes(samples, rate))


def encode(sound: Sound, form: str) -> bytes:
    """Encode audio: "wav", or "pcm" (16-bit samples without a header); "flac" and "mp3" need soundfile."""
    if form in ("wav", "pcm"):
        data = wav_bytes(*sound)
        return data if form == "wav" else data[WAV_HEADER:]
    try:
        import soundfile
    except (ImportError, OSError):
        raise ValueError(f"to write {form}, heed needs soundfile: pip install 'heed[audio]', or ask for wav") from None
    file = io.BytesIO()
    soundfile.write(file, sound.samples, sound.rate, format=form.upper())
    return file.getvalue()


def wav_bytes(samples: np.ndarray, rate: int) -> bytes:
    data = np.round(np.clip(samples, -1, 1 - 2**-15) * 2**15).astype("<i2").tobytes()
    form = struct.pack("<HHIIHH", PCM, 1, rate, 2 * rate, 2, 16)
    size = 4 + 8 + len(form) + 8 + len(data)
    return b"RIFF" + struct.pack("<I", size) + b"WAVEfmt " + struct.pack("<I", len(form)) + form + (
        b"data" + struct.pack("<I", len(data)) + data
    )  # fmt: skip


def _wav(path: str, file: BinaryIO, bounds: Bounds) -> tuple[np.ndarray, int] | None:
    """The samples and the rate of a WAV file; None if it is compressed."""
    end = file.seek(0, os.SEEK_END)
    file.seek(8)
    if file.read(4) != b"WAVE":
        raise ValueError(f"{path} starts like a WAV file but is not a valid one: it is damaged, or in another format")
    form = None
    while len(header := file.read(8)) == 8:
        name, size = header[:4], struct.unpack("<I", header[4:])[0]
        held = min(size, end - file.tell())  # a stream may declare 4 GB, which read() would allocate
        if name == b"data":
            if form is None:
                raise ValueError(f"{path} does not state its sample format: it is damaged")
            return _samples(path, form, file.read(held), bounds)
        if name == b"fmt ":
            form = file.read(held)
            file.seek(size % 2, 1)
        else:
            file.seek(size + size % 2, 1)
    raise ValueError(f"{path} has no samples: it is damaged or truncated")


def _samples(path: str, form: bytes, data: bytes, bounds: Bounds) -> tuple[np.ndarray, int] | None:
    if len(form) < 16:
        raise ValueError(f"{path} does not state its sample format: it is damaged")
    kind, channels, rate, _, _, bits = struct.unpack("<HHIIHH", form[:16])
    if kind == EXTENSIBLE and len(form) >= 26:
        kind = struct.unpack("<H", form[24:26])[0]
    if not channels:
        raise ValueError(f"{path} has no channels: it is damaged")
    width = channels * (bits // 8)
    data = data[: len(data) - len(data) % width] if width else b""
    if width and (kind in (PCM, FLOAT)):
        bounds.check(path, len(data) // width, channels, rate)
    if kind == PCM and bits == 24:
        parts = np.frombuffer(data, np.uint8).reshape(-1, 3).astype(np.int32)
        values = ((parts[:, 0] << 8) | (parts[:, 1] << 16) | (parts[:, 2] << 24)) / np.float32(2**31)
    elif kind == PCM and bits in INTEGERS:
        values = np.frombuffer(data, INTEGERS[bits]).astype(np.float32)
        values = (values - 128) / 128 if bits == 8 else values / np.float32(2 ** (bits - 1))
    elif kind == FLOAT and bits in (32, 64):
        values = np.frombuffer(data, f"<f{bits // 8}").astype(np.float32)
    else:
        return None
    return _mono(values.astype(np.float32).reshape(-1, channels)), rate


def _other(path: str, file: BinaryIO, bounds: Bounds) -> tuple[np.ndarray, int]:
    """What soundfile reads: FLAC, Ogg, MP3, compressed WAV. Nothing is allocated for what a header declares: a
    hundred bytes may declare terabytes.
    """
    try:
        import soundfile
    except (ImportError, OSError):  # OSError: without its C library
        raise ValueError(f"{path} is not a plain WAV file; to read other formats, heed {NEEDS}") from None
    try:
        sound = soundfile.SoundFile(file)
    except (soundfile.SoundFileError, RuntimeError, ValueError, TypeError) as error:
        raise _unreadable(path, error) from None
    with sound:
        rate, channels = int(sound.samplerate), sound.channels
        if sound.frames >= UNKNOWN:  # which libsndfile cannot seek in
            raise ValueError(f"{path} does not state its length, as if written into a pipe: convert it into a file")
        bounds.check(path, sound.frames, channels, rate)
        data, frames = bytearray(), 0
        while True:
            try:
                block = sound.read(max(1, BLOCK // channels), dtype="float32", always_2d=True)
            except (soundfile.SoundFileError, RuntimeError, ValueError, TypeError) as error:
                raise _unreadable(path, error) from None
            if not len(block):
                return np.frombuffer(data, np.float32), rate
            frames += len(block)
            bounds.check(path, frames, channels, rate)
            data += _mono(block).tobytes()


def _unreadable(path: str, error: Exception) -> ValueError:
    why = " ".join(str(error).split()).rstrip(".")
    return ValueError(f"{path} is not a readable audio file ({why}): use WAV, FLAC, Ogg or MP3")
