"""From the files of a recipe to subwords and a corpus of ids: done once, kept, and used again by the next run."""

import dataclasses
import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, count, islice
from pathlib import Path

from heed.data import corpus as corpora
from heed.data import readers, streams
from heed.data.corpus import Corpus
from heed.data.filters import FiltersConfig
from heed.data.readers import Line
from heed.data.streams import Stream
from heed.files import atomic_folder, cache_folder, sha256
from heed.models.package import Package
from heed.runs.recipe import DataConfig, Recipe
from heed.vocabularies import folder as vocabularies
from heed.vocabularies import sentencepiece, words
from heed.vocabularies.labels import Labels
from heed.vocabularies.vocabulary import Pair

FORMAT = 2  # of what is kept; a change of how text is cleaned, cut or stored changes it

Tell = Callable[[str, int], None]


@dataclass(frozen=True)
class Prepared:
    """What a run trains on. `key` names the data: the same files and settings have the same."""

    key: str
    corpus: Corpus | Stream
    subwords: Pair
    valid: list[Line]

    @property
    def joint(self) -> bool:
        return self.subwords[0].key() == self.subwords[1].key()


def prepare(recipe: Recipe, tell: Tell = lambda what, done: None, base: Package | None = None) -> Prepared:
    """Learn the subwords and encode the corpus, or find both where an earlier run has left them.

    Where training starts from a model, `base`, its subwords are used.
    """
    data = _with_phrasebook(recipe.data)
    lines = partial(_lines, data.source, data.target, data.tsv, data.columns, recipe.task.one_sided)
    named = _lines(data.valid_source, data.valid_target, data.valid_tsv, data.columns, recipe.task.one_sided)
    valid = list(named)
    if recipe.task.name == "language":
        return _stream(recipe, data, lines, valid, tell, base)
    holdout = 0 if valid else data.holdout
    filters = _filters(recipe)
    texts = _key(data, filters.duplicates, holdout, recipe.task.one_sided)
    learned = base.subwords if base is not None else _subwords(recipe, lines, texts, tell)
    if recipe.task.name == "classification":
        learned = learned[0], _labels(lines(), base)
    with_text = recipe.subwords.sampling > 0
    key = _digest(texts, dataclasses.asdict(filters), [part.key() for part in learned], with_text)
    folder = cache_folder() / f"corpus-{key}"
    if not (folder / "corpus.json").is_file():
        skip = corpora.find_skipped(_counted(lines(), "reading", tell), filters, holdout, share=0.1)
        sides = corpora.SIDES[:1] if recipe.task.one_sided else corpora.SIDES
        corpora.build(
            folder,
            lines,
            learned,
            filters,
            skip=skip,
            with_text=with_text,
            sides=sides,
            progress=partial(tell, "encoding"),
        )
    if recipe.filters.rejected:
        Path(recipe.filters.rejected).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / "rejected.tsv", recipe.filters.rejected)
    if holdout:
        valid = corpora.read_held_out(folder)
    return Prepared(key, Corpus(folder), learned, valid)


def _stream(
    recipe: Recipe,
    data: DataConfig,
    lines: Callable[[], Iterable[Line]],
    valid: list[Line],
    tell: Tell,
    base: Package | None,
) -> Prepared:
    """One text, line after line, as it stands. Without another to validate on, its last lines are set aside."""
    train, held = lines, 0
    if not valid:
        read = sum(1 for _ in _counted(lines(), "counting", tell))
        if read < 2:
            raise ValueError(
                "data.source has one line, of which none can be set aside: name a text as data.valid_source"
            )
        held = min(data.holdout, max(1, read // 10))
        train, valid = lambda: islice(lines(), read - held), list(islice(lines(), read - held, None))
    texts = _key(data, "language", held)
    learned = base.subwords if base is not None else _subwords(recipe, train, texts, tell)
    key = _digest(texts, learned[0].key())
    folder = cache_folder() / f"stream-{key}"
    if not (folder / "stream.json").is_file():
        streams.build(folder, (line.source for line in train()), learned[0], held, partial(tell, "encoding"))
    return Prepared(key, Stream(folder), learned, valid)


def _filters(recipe: Recipe) -> FiltersConfig:
    """The filters that make sense of what is learned: of one text, both sides are the same; a label is short."""
    filters = dataclasses.replace(recipe.filters, rejected=None)
    if recipe.task.one_sided:
        return dataclasses.replace(filters, same=False)
    if recipe.task.name == "classification":
        return dataclasses.replace(filters, same=False, max_ratio=0.0)
    return filters


def _labels(lines: Iterable[Line], base: Package | None) -> Labels:
    """Those of the model that training starts from, or those of the corpus."""
    if base is not None and "labels" in base.facts:
        return Labels(base.facts["labels"])
    names = sorted({Labels([]).clean(line.target) for line in lines} - {""})
    if len(names) < 2:
        raise ValueError(
            f"data.target has {', '.join(names) or 'no labels'} and nothing else: a classifier needs two labels at least"
        )
    return Labels(names)


def _with_phrasebook(data: DataConfig) -> DataConfig:
    """Where the built-in phrasebook is asked for, its files."""
    if not data.phrasebook:
        return data
    from heed.data.synthetic import phrasebook

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


def _lines(source: list[str], target: list[str], tsv: list[str], columns: list[int], one_sided: bool) -> Iterator[Line]:
    if one_sided:
        from_tables = chain.from_iterable(readers.table(Path(f), columns) for f in tsv)
        return chain(
            readers.texts([Path(f) for f in source]), (line._replace(target=line.source) for line in from_tables)
        )
    pairs = readers.pairs([Path(f) for f in source], [Path(f) for f in target])
    return chain(pairs, *(readers.table(Path(f), columns) for f in tsv))


def _subwords(recipe: Recipe, lines: Callable[[], Iterable[Line]], texts: str, tell: Tell) -> Pair:
    """Given, kept, or learned now."""
    c, family = recipe.subwords, recipe.family
    if c.source_model or c.target_model:
        load = words.load if c.kind == "words" else sentencepiece.load
        source = load(Path(c.source_model or c.target_model))
        other = c.target_model and c.target_model != c.source_model
        return source, load(Path(c.target_model)) if other else source
    learning = dataclasses.replace(c, sampling=0.0, source_model=None, target_model=None, texts=[])
    more = [_file(Path(f)) for f in c.texts]
    folder = (
        cache_folder()
        / f"subwords-{_digest(texts, more, family, recipe.task.name == 'classification', dataclasses.asdict(learning))}"
    )
    if not (folder / "subwords.json").is_file():
        pair = _learn(recipe, lines, tell)
        with atomic_folder(folder, "keep") as aside:
            (aside / "subwords.json").write_text(json.dumps(vocabularies.write(aside, pair)))
    return vocabularies.read(folder, json.loads((folder / "subwords.json").read_text()))


def _learn(recipe: Recipe, lines: Callable[[], Iterable[Line]], tell: Tell) -> Pair:
    c = recipe.subwords
    if c.texts:
        lines = partial(readers.texts, [Path(f) for f in c.texts])
    one_sided = recipe.task.one_sided or bool(c.texts) or recipe.task.name == "classification"
    pairs = sum(1 for _ in _counted(lines(), "counting", tell))
    if not pairs:
        raise ValueError("data: there is not one pair to train on")
    together = c.joint and not one_sided
    every = -(-pairs // max(1, c.lines // 2 if together else c.lines))  # spread over the whole corpus
    sample = list(islice(lines(), 0, None, every))
    sides = [[line.source for line in sample], [line.target for line in sample]]
    if one_sided or recipe.family:
        sides = [sides[0] if one_sided else sides[0] + sides[1]]
    elif c.joint:
        sides = [[text for line in sample for text in line[:2]]]
    learned = []
    for own in sides:
        tell("learning subwords", 0)
        if c.kind == "words":
            learned.append(words.learn(own, c))
            continue
        size = c.size or sentencepiece.choose_size(pairs, len(set().union(*own)))
        if recipe.family:
            return vocabularies.learn(recipe.family, own, size)
        learned.append(sentencepiece.learn(own, c, size))
    return learned[0], learned[-1]


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
    return sha256(path)


def _digest(*parts) -> str:
    text = json.dumps([FORMAT, *parts], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
