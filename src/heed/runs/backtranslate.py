"""Back-translation (Sennrich et al., 2016): training pairs from monolingual text in the target language. A model of
the opposite direction translates the text. Its translations are the sources of the new pairs, the text their targets.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from heed.bulk.recorded import RecordedFile, begun_chunk
from heed.data import readers, staged
from heed.data.staged import Chunk, Stages
from heed.models.weight_hash import hash_weights
from heed.products.translator import stages
from heed.products.translator.model_bundle import Hypotheses
from heed.products.translator.translator import Translator
from heed.text.glossary import Glossary

BLOCK = stages.CHUNK  # sentences that are translated and written together; an engine may need more to be busy
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
    """Translate the text, or the rest of it after an interrupted call. The file appears when it is complete. It is
    continued after its last whole block, so that the result does not depend on where it was interrupted. `warn` is
    called with messages about damage.
    """
    tell("reading", 0, 0)
    total = sum(1 for _ in readers.lines(job.text))  # errors in the text are reported before anything is written
    translator = translator.toward() if translator.bundle.undirected else translator
    counts = LineCounts()
    usual = stages.chunk_size(translator, translator.search_config(job.decoding), BLOCK)
    size = begun_chunk(job.out, "block") or usual
    source = _blocks(job.text, translator, counts, size)
    settings = _settings(job, translator, size)
    with RecordedFile(job.out, settings, warn=warn, again="remove the file to start again") as file:
        _refuse_earlier(job)
        file.resume(source) if file.begun else file.remove()
        tell("translating", counts.read, total)

        def write(chunk: Chunk, data: bytes) -> None:
            file.append(chunk, data)
            tell("translating", counts.read, total)

        staged.run(source, _stages(job, translator, size), write)
        if not counts.translated:
            raise ValueError(f"{job.text} has no lines to translate: {counts.describe()}")
        file.finish()
    return counts


def _blocks(text: Path, translator: Translator, counts: LineCounts, size: int) -> Iterator[Chunk]:
    """The lines to translate, in blocks of `size`; the others are counted."""
    lines, block, start = readers.lines(text), [], 0
    while chunk := list(islice(lines, size)):
        for line, fits in zip(chunk, stages.fitting(translator, chunk), strict=True):
            counts.read += 1
            if not translator.source.clean(line):
                counts.empty += 1
            elif not fits:
                counts.too_long += 1
            else:
                block.append(line.replace("\t", " "))
                if len(block) == size:
                    yield Chunk(start, block)
                    block, start = [], start + size
    if block:
        yield Chunk(start, block)


def _stages(job: BackTranslation, translator: Translator, size: int) -> Stages:
    """From lines to lines of the file; a sample depends on its block and its line within it."""
    nothing, tag = Glossary(), f"{job.tag} " if job.tag else ""

    def prepare(chunk: Chunk) -> stages.Work:
        decoding = dict(job.decoding)
        if decoding.get("sample"):
            decoding["seed"] = decoding.get("seed", translator.decoding.seed) + chunk.start // size
        config = translator.search_config(decoding)
        return stages.prepare(translator, chunk.items, config, nothing, batch_tokens=job.batch_tokens)

    def finish(work: stages.Work, found: Hypotheses) -> bytes:
        translations = stages.finish(translator, work, found)
        lines = (f"{tag}{own.text}\t{line}\n" for own, line in zip(translations, work.texts, strict=True))
        return "".join(lines).encode()

    return stages.searching(translator, prepare, finish)


def _settings(job: BackTranslation, translator: Translator, size: int) -> dict[str, Any]:
    """The settings of the file, so that nothing else continues it."""
    return {
        "weights": [hash_weights(model) for model in translator.models],
        "engine": translator.engine(**job.decoding),
        "decoding": job.decoding,
        "tag": job.tag,
        "batch_tokens": job.batch_tokens,
        "block": size,
    }


def _refuse_earlier(job: BackTranslation) -> None:
    """The block format of an earlier version."""
    if job.part.is_file() and (old := job.out.with_name(f"{job.part.name}.blocks.json")).is_file():
        raise ValueError(
            f"{job.part} was started by an earlier version of heed: finish it with that version, or remove it and {old} to start over"
        )
