"""Sound files: what is read, and what is refused with a sentence."""

import io
import struct
import sys
import tracemalloc

import numpy as np
import pytest

from heed.audio import files
from heed.audio.files import Bounds, decode, read, wav_bytes, write_wav

TONE = (0.5 * np.sin(np.arange(800) * 0.1)).astype(np.float32)


def wav(data: bytes, kind=1, channels=1, rate=16_000, bits=16, extra=b"") -> bytes:
    form = struct.pack("<HHIIHH", kind, channels, rate, rate * channels * bits // 8, channels * bits // 8, bits) + extra
    parts = b"fmt " + struct.pack("<I", len(form)) + form + b"LIST" + struct.pack("<I", 3) + b"abc\0"
    return b"RIFF" + struct.pack("<I", 0) + b"WAVE" + parts + b"data" + struct.pack("<I", len(data)) + data


def test_a_sound_that_was_written_is_read(tmp_path):
    write_wav(tmp_path / "a.wav", TONE, 22_050)
    found = read(tmp_path / "a.wav")
    assert found.rate == 22_050 and found.seconds == 800 / 22_050
    np.testing.assert_allclose(found.samples, TONE, atol=2**-15)


@pytest.mark.parametrize(
    ("bits", "kind", "made"),
    [
        (8, 1, lambda x: np.round(x * 127 + 128).astype("u1").tobytes()),
        (16, 1, lambda x: np.round(x * 32767).astype("<i2").tobytes()),
        (24, 1, lambda x: b"".join(int(v).to_bytes(3, "little", signed=True) for v in np.round(x * (2**23 - 1)))),
        (32, 1, lambda x: np.round(x.astype(np.float64) * (2**31 - 1)).astype("<i4").tobytes()),
        (32, 3, lambda x: x.astype("<f4").tobytes()),
        (64, 3, lambda x: x.astype("<f8").tobytes()),
    ],
)
@pytest.mark.parametrize("extensible", [False, True])
def test_all_plain_kinds_of_wav_are_read_and_channels_are_averaged(tmp_path, bits, kind, made, extensible):
    both = np.stack([TONE, np.zeros_like(TONE)], axis=1).ravel()
    extra = struct.pack("<HHIH", 22, bits, 3, kind) + bytes(14) if extensible else b""
    path = tmp_path / "a.wav"
    path.write_bytes(wav(made(both), 0xFFFE if extensible else kind, channels=2, bits=bits, extra=extra))
    np.testing.assert_allclose(read(path).samples, TONE / 2, atol=0.005 if bits == 8 else 1e-4)


@pytest.mark.parametrize("ending", ["flac", "ogg", "wav"])
def test_what_soundfile_writes_is_read(tmp_path, ending):
    soundfile = pytest.importorskip("soundfile")
    soundfile.write(tmp_path / f"a.{ending}", TONE, 16_000)
    np.testing.assert_allclose(read(tmp_path / f"a.{ending}").samples, TONE, atol=0.05 if ending == "ogg" else 1e-4)


def test_a_file_that_was_cut_has_what_is_left(tmp_path):
    (tmp_path / "a.wav").write_bytes(wav_bytes(TONE, 16_000)[:-101])
    assert len(read(tmp_path / "a.wav").samples) == 800 - 51


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"I am a text.\n", "is not a readable audio file"),
        (b"", "is not a readable audio file"),
        (b"RIFFxxxxAVI ", "starts like a WAV file but is not a valid one"),
        (wav(b""), "has no samples: the recording is empty"),
        (wav(b"")[:30], "has no samples: it is damaged or truncated"),
        (wav(b"ab", channels=0), "has no channels"),
        (wav(b"ab", rate=0), "has a sample rate of 0 Hz"),
        (wav(struct.pack("<f", float("nan")), kind=3, bits=32), "samples that are not finite"),
        (wav(b"abcd", kind=2, bits=4), "is not a readable audio file"),
        (b"RIFF\0\0\0\0WAVEdata\2\0\0\0ab", "does not state its sample format"),
    ],
)
def test_what_is_no_sound_is_refused(tmp_path, content, words):
    pytest.importorskip("soundfile")
    (tmp_path / "a.wav").write_bytes(content)
    with pytest.raises(ValueError, match=words):
        read(tmp_path / "a.wav")


@pytest.mark.parametrize("values", [[3e38, 3e38], [np.inf, -np.inf], [np.nan, 0]])
def test_channels_whose_average_is_no_sound_are_refused_without_a_warning(values):
    data = wav(np.array(values, "<f4").tobytes(), kind=3, channels=2, bits=32)
    with pytest.raises(ValueError, match="not finite, or far outside"):
        decode(io.BytesIO(data), "a.wav")


def test_without_soundfile_wav_is_read_and_the_rest_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "soundfile", None)
    write_wav(tmp_path / "a.wav", TONE, 16_000)
    assert len(read(tmp_path / "a.wav").samples) == 800
    (tmp_path / "a.flac").write_bytes(b"fLaC")
    with pytest.raises(ValueError, match=r"not a plain WAV file; .* needs soundfile: pip install 'heed\[audio\]'"):
        read(tmp_path / "a.flac")


def flac(samples: np.ndarray, rate: int, declared: int | None = None) -> bytes:
    """A FLAC file whose header declares so many samples."""
    soundfile = pytest.importorskip("soundfile")
    out = io.BytesIO()
    soundfile.write(out, samples, rate, format="FLAC")
    data = bytearray(out.getvalue())
    if declared is not None:
        kept = int.from_bytes(data[18:26]) >> 36 << 36  # the rate, the channels, the bits; then 36 bits of samples
        data[18:26] = (kept | declared).to_bytes(8)
    return bytes(data)


@pytest.mark.parametrize(
    ("rate", "declared", "bounds", "words"),
    [
        (655_350, 2**36 - 2, Bounds(), "has 549,755,813,872 samples in 8 channels; at most 4,294,967,296 are read"),
        (655_350, 1800 * 655_350 - 5, Bounds(seconds=1800), "samples in 8 channels"),
        (655_350, 4096, Bounds(rate=192_000), "a sample rate of 655,350 Hz; it must be from 1 to 192,000: resample it"),
        (48_000, 48_001, Bounds(seconds=1), "is 1.0 seconds long; the maximum is 1: split it"),
        (48_000, 500_000_000, Bounds(), "is not a readable audio file"),  # it allocates nothing, and finds the end
        (48_000, 0, Bounds(), "does not state its length"),
    ],
)
def test_a_small_file_that_declares_much_is_refused(rate, declared, bounds, words):
    data = flac(np.zeros((4096, 8)), rate, declared)
    assert len(data) < 200
    with pytest.raises(ValueError, match=words):
        decode(io.BytesIO(data), "a.flac", bounds)


def test_many_channels_are_averaged_block_by_block(monkeypatch):
    tones = np.stack([TONE, -TONE / 2, np.zeros_like(TONE)], axis=1)
    monkeypatch.setattr(files, "BLOCK", 3 * 128)
    found = decode(io.BytesIO(flac(tones, 16_000)), "a.flac")
    np.testing.assert_allclose(found.samples, TONE / 6, atol=1e-4)
    monkeypatch.setattr(files, "BLOCK", 1 << 16)
    data = flac(np.zeros((200_000, 8), np.int16), 192_000)
    tracemalloc.start()
    assert len(decode(io.BytesIO(data), "a.flac").samples) == 200_000
    assert tracemalloc.get_traced_memory()[1] < 2_500_000 < 200_000 * 8 * 4  # bytes
    tracemalloc.stop()


def test_what_does_not_fit_into_memory_is_said(monkeypatch):
    def full(*_):
        raise MemoryError

    monkeypatch.setattr(files, "_mono", full)
    with pytest.raises(ValueError, match=r"a\.wav has more samples than fit into memory"):
        decode(io.BytesIO(wav_bytes(TONE, 8000)), "a.wav")
