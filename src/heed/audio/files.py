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


def decode(file: BinaryIO, name: str, longest: float = float("inf")) -> Sound:
    """Read an open audio file, called `name` in errors; anything longer than `longest` seconds is refused before it
    is decoded.
    """
    begins = file.read(4)
    file.seek(0)
    found = _wav(name, file) if begins in (b"RIFF", b"RF64") else None
    if found is None:
        file.seek(0)
        found = _other(name, file, longest)
    channels, rate = found
    if not 1 <= rate <= FASTEST:
        raise ValueError(
            f"{name} has a sample rate of {rate:,} Hz; it must be from 1 to {FASTEST:,}: the file is damaged"
        )
    if not len(channels):
        raise ValueError(f"{name} has no samples: the recording is empty")
    _check_seconds(name, len(channels), rate, longest)
    samples = channels.mean(axis=1, dtype=np.float32) if channels.shape[1] > 1 else channels[:, 0]
    if not np.abs(samples).max() <= LOUDEST:  # or no number at all
        raise ValueError(f"{name} has samples that are not finite, or far outside -1 to 1: the file is damaged")
    return Sound(np.ascontiguousarray(samples, dtype=np.float32), rate)


def _check_seconds(name: str, samples: int, rate: int, longest: float) -> None:
    if samples > longest * max(1, rate):
        raise ValueError(f"{name} is {samples / rate:,.1f} seconds long; the maximum is {longest:g}: split it")


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


def _wav(path: str, file: BinaryIO) -> tuple[np.ndarray, int] | None:
    """The channels (samples, channels) and the rate of a WAV file; None if it is compressed."""
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
            return _samples(path, form, file.read(held))
        if name == b"fmt ":
            form = file.read(held)
            file.seek(size % 2, 1)
        else:
            file.seek(size + size % 2, 1)
    raise ValueError(f"{path} has no samples: it is damaged or truncated")


def _samples(path: str, form: bytes, data: bytes) -> tuple[np.ndarray, int] | None:
    if len(form) < 16:
        raise ValueError(f"{path} does not state its sample format: it is damaged")
    kind, channels, rate, _, _, bits = struct.unpack("<HHIIHH", form[:16])
    if kind == EXTENSIBLE and len(form) >= 26:
        kind = struct.unpack("<H", form[24:26])[0]
    if not channels:
        raise ValueError(f"{path} has no channels: it is damaged")
    width = channels * (bits // 8)
    data = data[: len(data) - len(data) % width] if width else b""
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
    return values.astype(np.float32).reshape(-1, channels), rate


def _other(path: str, file: BinaryIO, longest: float) -> tuple[np.ndarray, int]:
    """What soundfile reads: FLAC, Ogg, MP3, compressed WAV."""
    try:
        import soundfile
    except (ImportError, OSError):  # OSError: without its C library
        raise ValueError(f"{path} is not a plain WAV file; to read other formats, heed {NEEDS}") from None
    try:
        with soundfile.SoundFile(file) as sound:
            rate, frames = int(sound.samplerate), sound.frames
            samples = sound.read(dtype="float32", always_2d=True) if frames <= longest * rate else None
    except (soundfile.SoundFileError, RuntimeError, ValueError, TypeError) as error:
        why = " ".join(str(error).split()).rstrip(".")
        raise ValueError(f"{path} is not a readable audio file ({why}): use WAV, FLAC, Ogg or MP3") from None
    if samples is None:
        _check_seconds(path, frames, rate, longest)
    return samples, rate
