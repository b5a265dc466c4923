"""Spoken corpora from text: espeak-ng reads each line aloud, in several voices and at several speeds."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from heed.audio import files
from heed.audio.resampling import resample
from heed.data import readers
from heed.files import atomic_folder

PROGRAM = "espeak-ng"
VOICES = ("m1", "m2", "m3", "m4", "m5", "m6", "m7", "f1", "f2", "f3", "f4", "f5")  # variants that every language has
SPEEDS = (130, 145, 160, 175)  # words a minute
CHAT = re.compile(r"[ㄱ-ㆎ~〜～]|\^\^")  # espeak-ng reads letters of Hangul as sounds, and ~ as "tilde"
SPELLINGS = "chat spellings such as ㅋㅋ, ㅠㅠ, ~ or ^^"
MANIFEST, OTHER = "manifest.tsv", "translation.tsv"


@dataclass(frozen=True)
class Speaking:
    """How lines are read aloud: `each` times each, in a random voice and at a random speed."""

    language: str = "en"
    voices: Sequence[str] = field(default=VOICES)
    speeds: Sequence[int] = field(default=SPEEDS)
    each: int = 1
    rate: int = 16_000
    seed: int = 0

    def __post_init__(self):
        if not self.voices or not self.speeds or self.each < 1:
            raise ValueError("give at least one voice and one speed, and read each line at least once")
        if any(not 80 <= speed <= 450 for speed in self.speeds):
            raise ValueError(
                f"speeds are {', '.join(map(str, self.speeds))}; they must be from 80 to 450 words per minute"
            )
        for name in (self.language, *self.voices):
            if not name or not all(char.isalnum() or char in "-_" for char in name):
                raise ValueError(f"{name!r} is not a language or a voice: espeak-ng --voices lists them")


class Lines(NamedTuple):
    """Texts to speak and to write, and the number of lines left out because nobody says what they spell."""

    texts: list[tuple[str, str]]
    left_out: int


def lines_of(path: Path) -> Lines:
    """The spoken text and, after a tab, the written text; without a tab both are the same."""
    found, left_out = [], 0
    for line in readers.lines(path):
        spoken, tab, text = line.partition("\t")
        if CHAT.search(spoken):
            left_out += 1
        elif spoken.strip():
            found.append((" ".join(spoken.split()), " ".join((text if tab else spoken).split())))
    if not found:
        why = f": all {left_out:,} lines have {SPELLINGS}" if left_out else ""
        raise ValueError(f"{path}: there is nothing to read aloud{why}")
    return Lines(found, left_out)


def speak(lines: Sequence[tuple[str, str]], how: Speaking, out: Path, tell: Callable[[int], None]) -> int:
    """Write recordings and their tables into a new folder; returns the number of recordings."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise ValueError(
            f"{PROGRAM} is not installed; it synthesizes the speech: apt-get install espeak-ng (macOS: brew install "
            "espeak-ng)"
        )
    jobs = list(_jobs(lines, how))
    with atomic_folder(out) as part, ThreadPoolExecutor(os.cpu_count() or 1) as threads:
        (part / "wavs").mkdir()
        made = threads.map(lambda job: _record(program, part / job[0], job, how), jobs)
        for number, _ in enumerate(made, 1):
            tell(number)
        tables = {MANIFEST: [(name, spoken, voice) for name, voice, _, spoken, _ in jobs]}
        if any(spoken != text for spoken, text in lines):
            tables[OTHER] = [(name, text, voice, spoken) for name, voice, _, spoken, text in jobs]
        for name, rows in tables.items():
            text = "".join("\t".join(row) + "\n" for row in rows)
            (part / name).write_text(text, "utf-8", newline="\n")
    return len(jobs)


def _jobs(lines: Sequence[tuple[str, str]], how: Speaking) -> Iterator[tuple[str, str, int, str, str]]:
    """The file, voice, speed, spoken text and written text of each recording."""
    for number, (spoken, text) in enumerate(lines):
        random = np.random.default_rng([how.seed, number])
        choices = [(voice, speed) for voice in how.voices for speed in how.speeds]
        drawn = random.permutation(len(choices))[: how.each]
        for i in drawn.tolist():
            voice, speed = choices[i]
            yield f"wavs/{number + 1:06}-{voice}-{speed}.wav", voice, speed, spoken, text


def _record(program: str, path: Path, job: tuple[str, str, int, str, str], how: Speaking) -> None:
    _, voice, speed, spoken, _ = job
    command = [program, "-v", f"{how.language}+{voice}", "-s", str(speed), "-b", "1", "-z", "-w", str(path), "--stdin"]
    done = subprocess.run(command, input=spoken.encode(), capture_output=True, check=False)
    if done.returncode or not path.is_file():
        why = " ".join(done.stderr.decode(errors="replace").split()) or f"it ended with {done.returncode}"
        raise ValueError(f"{PROGRAM} could not speak {spoken!r} in the voice {how.language}+{voice}: {why}")
    sound = files.read(path)
    path.write_bytes(files.wav_bytes(resample(sound.samples, sound.rate, how.rate), how.rate))
