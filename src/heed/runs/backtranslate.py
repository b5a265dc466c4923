"""Back-translation (Sennrich et al., 2016): pairs for training, made from text in the target language alone.

A model of the other direction translates the text. Its translations are the sources of the new pairs, the text their targets.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from heed.config import parse_json
from heed.data import readers
from heed.files import exclusive, write_json
from heed.products.translator.translator import Translator
from heed.runs.distilled_files import Blocks, count_lines
from heed.runs.teacher import hash_weights

BLOCK = 2000  # sentences that are translated and written together, as many as heed translate takes
Tell = Callable[[str, int, int], None]  # what is being done, how much of it is done, and the total (0: not known yet)


@dataclass(frozen=True)
class BackTranslation:
    """What is translated, how, and into which file; `tag` is written before each translation."""

    text: Path
    out: Path
    tag: str = ""
    batch_tokens: int = 4096
    decoding: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        if self.tag and self.tag.split() != [self.tag]:
            raise ValueError(f"--tag is {self.tag!r}; it must be one word, such as <bt>")
        if self.decoding.get("nbest", 1) != 1:
            raise ValueError(f"nbest is {self.decoding['nbest']}; each line gets one translation")
        if self.out.exists():
            raise ValueError(f"{self.out} already exists: choose another --out")

    @property
    def part(self) -> Path:
        """The file until it is complete."""
        return self.out.with_name(f"{self.out.name}.part")

    @property
    def lock(self) -> Path:
        """Not the file itself: closing it once would release the lock."""
        return self.out.with_name(f".{self.out.name}.lock")

    @property
    def settings(self) -> Path:
        """What the file is being made with, so that nothing else continues it."""
        return self.out.with_name(f"{self.out.name}.part.json")

    @property
    def hashes(self) -> Path:
        """Those of what is written so far."""
        return self.out.with_name(f"{self.out.name}.part.blocks.json")


@dataclass
class LineCounts:
    """How many lines were read, and how many were skipped by reason."""

    read: int = 0
    empty: int = 0
    too_long: int = 0

    @property
    def translated(self) -> int:
        return self.read - self.empty - self.too_long

    def describe(self) -> str:
        reasons = {"empty": self.empty, "too long for the model": self.too_long}
        skipped = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
        return f"{self.translated:,} pairs of {self.read:,} lines; skipped: {skipped or 'none'}."


def run(
    job: BackTranslation,
    translator: Translator,
    tell: Tell = lambda what, done, total: None,
    warn: Callable[[str], None] = lambda sentence: None,
) -> LineCounts:
    """Translate the text, or what an interrupted call has left of it. The file appears when it is complete.

    It is continued after its last whole block, so that it does not depend on where it was interrupted. `warn` tells of damage.
    """
    tell("reading", 0, 0)
    total = sum(1 for _ in readers.lines(job.text))  # errors in the text are reported before anything is written
    job.out.parent.mkdir(parents=True, exist_ok=True)
    with exclusive(job.lock, f"{job.part} is being written by another process: wait for it, or choose another --out"):
        _check_settings(job, translator)
        counts, written = LineCounts(), Blocks(job.hashes, BLOCK, warn)
        blocks = _blocks(job.text, translator, counts)
        done = _cut_back(job, blocks, written)
        tell("translating", counts.read, total)
        for number, block in enumerate(blocks, done):
            written.append({job.part: _pairs(job, translator, block, number)})
            tell("translating", counts.read, total)
        if not counts.translated:
            _remove(job)
            raise ValueError(f"{job.text} has no lines to translate: {counts.describe()}")
        os.replace(job.part, job.out)
        _remove(job)
    return counts


def _blocks(text: Path, translator: Translator, counts: LineCounts) -> Iterator[list[str]]:
    """The lines to translate; the others are counted."""
    lines, block = readers.lines(text), []
    while chunk := list(islice(lines, BLOCK)):
        for line, fits in zip(chunk, _fit(translator, chunk), strict=True):
            counts.read += 1
            if not translator.source.clean(line):
                counts.empty += 1
            elif not fits:
                counts.too_long += 1
            else:
                block.append(line.replace("\t", " "))
                if len(block) == BLOCK:
                    yield block
                    block = []
    if block:
        yield block


def _fit(translator: Translator, texts: list[str]) -> list[bool]:
    """Whether each text is short enough to be translated as one."""
    most = translator.max_source - len(translator.special[0].before) - 1
    return [len(ids) <= most for ids in translator.source.encode([translator.source.clean(text) for text in texts])]


def _pairs(job: BackTranslation, translator: Translator, block: list[str], number: int) -> list[str]:
    """The lines of the file; a sample depends on its block and its line in it."""
    decoding = dict(job.decoding)
    if decoding.get("sample"):
        decoding["seed"] = decoding.get("seed", translator.decoding.seed) + number
    found = translator.translate(block, batch_tokens=job.batch_tokens, **decoding)
    tag = f"{job.tag} " if job.tag else ""
    return [f"{tag}{own.text}\t{line}" for own, line in zip(found, block, strict=True)]


def _check_settings(job: BackTranslation, translator: Translator) -> None:
    """Refuse to continue a file that was begun with another model or another search."""
    found = {
        "weights": [hash_weights(model) for model in translator.models],
        "engine": translator.engine(**job.decoding),
        "decoding": job.decoding,
        "tag": job.tag,
        "batch_tokens": job.batch_tokens,
        "block": BLOCK,
    }
    before = _read_settings(job) if job.settings.is_file() and count_lines(job.part) else found
    for name, value in json.loads(json.dumps(found)).items():
        if before.get(name) != value:
            was = "other weights" if name == "weights" else f"{name} {before.get(name)!r}, which is now {value!r}"
            raise ValueError(
                f"{job.part} was started with {was}: restore that, choose another --out, or remove the file to start "
                "over"
            )
    write_json(job.settings, found)


def _read_settings(job: BackTranslation) -> dict[str, Any]:
    try:
        return dict(parse_json(job.settings.read_text("utf-8")))
    except (ValueError, TypeError):
        raise ValueError(f"{job.settings} is damaged: restore it, or remove it and {job.part} to start over") from None


def _cut_back(job: BackTranslation, blocks: Iterator[list[str]], written: Blocks) -> int:
    """How many whole blocks of the file are intact; the rest is cut off. Their text is compared with the file's."""
    done = written.intact([job.part], total=-1) // BLOCK
    job.part.touch()
    with open(job.part, "rb") as file:
        texts = [file.readline().rstrip(b"\n").rpartition(b"\t")[2] for _ in range(done * BLOCK)]
    if texts != [line.encode() for block in islice(blocks, done) for line in block]:
        raise ValueError(
            f"{job.text} has changed since {job.part} was started: restore it, choose another --out, or remove the file"
        )
    written.cut([job.part], done * BLOCK)
    return done


def _remove(job: BackTranslation) -> None:
    for path in (job.part, job.settings, job.hashes):
        path.unlink(missing_ok=True)
    with suppress(OSError):  # Windows keeps a file that is open
        job.lock.unlink()
