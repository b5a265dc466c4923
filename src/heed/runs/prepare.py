"""From the files of a recipe to subwords and a corpus of ids: done once, kept, and used again by the next run."""

import dataclasses
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, count, islice
from pathlib import Path

from heed.data import corpus as corpora
from heed.data import readers, subwords
from heed.data.corpus import Corpus
from heed.data.readers import Line
from heed.data.subwords import Subwords
from heed.runs.recipe import DataConfig, Recipe

FORMAT = 1  # of what is kept; a change of how text is cleaned, cut or stored changes it

Tell = Callable[[str, int], None]


@dataclass(frozen=True)
class Prepared:
    """What a run trains on. `key` names the data: the same files and settings have the same."""

    key: str
    corpus: Corpus
    subwords: tuple[Subwords, Subwords]
    joint: bool
    valid: list[Line]


def cache_folder() -> Path:
    """Where prepared corpora are kept: $HEED_CACHE, or ~/.cache/heed."""
    return Path(os.environ.get("HEED_CACHE") or Path.home() / ".cache" / "heed")


def prepare(recipe: Recipe, tell: Tell = lambda what, done: None) -> Prepared:
    """Learn the subwords and encode the corpus, or find both where an earlier run has left them."""
    data = _with_phrasebook(recipe.data)
    lines = partial(_train_lines, data)
    valid = list(_valid_lines(data))
    holdout = 0 if valid else data.holdout
    texts = _key(data, recipe.filters.duplicates, holdout)
    learned = _subwords(recipe, lines, texts, tell)
    with_text = recipe.subwords.sampling > 0
    filters = dataclasses.replace(recipe.filters, rejected=None)
    key = _digest(texts, dataclasses.asdict(filters), [_digest(part.model) for part in learned], with_text)
    folder = cache_folder() / f"corpus-{key}"
    if not (folder / "corpus.json").is_file():
        skip = corpora.survey(_counted(lines(), "reading", tell), recipe.filters, holdout, share=0.1)
        corpora.build(
            folder, lines, learned, recipe.filters, skip=skip, with_text=with_text, tell=partial(tell, "encoding")
        )
    if recipe.filters.rejected:
        Path(recipe.filters.rejected).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / "rejected.tsv", recipe.filters.rejected)
    if holdout:
        valid = corpora.held_out(folder)
    return Prepared(key, Corpus(folder), learned, learned[0] is learned[1], valid)


def _with_phrasebook(data: DataConfig) -> DataConfig:
    """Where the built-in phrasebook is asked for, its files."""
    if not data.phrasebook:
        return data
    from heed.data import phrasebook

    folder = cache_folder() / f"phrasebook-{phrasebook.EDITION}-{data.phrasebook}"
    paths = {f"{part}.{side}": folder / f"{part}.{side}" for part in ("train", "valid") for side in ("ko", "en")}
    if not all(path.is_file() for path in paths.values()):
        phrasebook.write(folder, train=data.phrasebook)
    return dataclasses.replace(
        data,
        source=[str(paths["train.ko"])],
        target=[str(paths["train.en"])],
        valid_source=data.valid_source or [str(paths["valid.ko"])],
        valid_target=data.valid_target or [str(paths["valid.en"])],
        phrasebook=None,
    )


def _train_lines(data: DataConfig) -> Iterator[Line]:
    pairs = readers.pairs([Path(f) for f in data.source], [Path(f) for f in data.target])
    return chain(pairs, *(readers.table(Path(f), data.columns) for f in data.tsv))


def _valid_lines(data: DataConfig) -> Iterator[Line]:
    pairs = readers.pairs([Path(f) for f in data.valid_source], [Path(f) for f in data.valid_target])
    return chain(pairs, *(readers.table(Path(f), data.columns) for f in data.valid_tsv))


def _subwords(recipe: Recipe, lines: Callable[[], Iterable[Line]], texts: str, tell: Tell) -> tuple[Subwords, Subwords]:
    """Given, kept, or learned now."""
    c = recipe.subwords
    if c.source_model or c.target_model:
        source = subwords.load(Path(c.source_model or c.target_model))
        other = c.target_model and c.target_model != c.source_model
        return source, subwords.load(Path(c.target_model)) if other else source
    learning = dataclasses.replace(c, sampling=0.0, source_model=None, target_model=None)
    folder = cache_folder() / f"subwords-{_digest(texts, dataclasses.asdict(learning))}"
    names = ["joint.spm"] if c.joint else ["source.spm", "target.spm"]
    if not all((folder / name).is_file() for name in names):
        _learn(folder, names, recipe, lines, tell)
    parts = [subwords.load(folder / name) for name in names]
    return parts[0], parts[-1]


def _learn(folder: Path, names: list[str], recipe: Recipe, lines: Callable[[], Iterable[Line]], tell: Tell) -> None:
    c = recipe.subwords
    pairs = sum(1 for _ in _counted(lines(), "counting", tell))
    if not pairs:
        raise ValueError("data: there is not one pair to train on")
    every = -(-pairs // max(1, c.lines // 2 if c.joint else c.lines))  # spread over the whole corpus
    sample = [line for line in islice(lines(), 0, None, every)]
    sides = (
        [[text for line in sample for text in line[:2]]]
        if c.joint
        else [[p[0] for p in sample], [p[1] for p in sample]]
    )
    folder.mkdir(parents=True, exist_ok=True)
    for name, texts in zip(names, sides, strict=True):
        tell("learning subwords", 0)
        size = c.size or subwords.choose_size(pairs, len(set().union(*texts)))
        aside = folder / f"{name}.{os.getpid()}.part"
        subwords.learn(texts, c, size).save(aside)
        os.replace(aside, folder / name)


def _counted(lines: Iterable[Line], what: str, tell: Tell) -> Iterator[Line]:
    for number, line in zip(count(), lines, strict=False):
        if number % 50_000 == 0:
            tell(what, number)
        yield line


def _key(data: DataConfig, *settings) -> str:
    """A name for what the files hold, wherever they lie."""
    contents = [[_file(Path(f)) for f in files] for files in (data.source, data.target, data.tsv)]
    return _digest(contents, data.columns if data.tsv else [], *settings)


def _file(path: Path) -> str:
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(*parts) -> str:
    plain = [part.hex() if isinstance(part, bytes) else part for part in parts]
    text = json.dumps([FORMAT, *plain], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
