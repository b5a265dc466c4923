"""Prepare text files as vocabularies and a corpus of ids: done once, cached, and reused by the next run."""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

from heed.data import corpus as corpora
from heed.data import readers, streams, tables
from heed.data.cleaning import Cleaning, counted
from heed.data.config import CorpusConfig, DataConfig
from heed.data.corpus import Corpus
from heed.data.documents import Boundaries, DocumentKind
from heed.data.duplicates import Origin
from heed.data.readers import Line
from heed.data.streams import Stream
from heed.data.tables import Columns
from heed.files import SUMS, atomic_folder, cache_folder, check_file, check_sums, move_away, sha256, write_sums
from heed.vocabularies import characters, sentencepiece, words
from heed.vocabularies import folder as vocabularies
from heed.vocabularies.sentencepiece import SubwordsConfig
from heed.vocabularies.tags import language_tag
from heed.vocabularies.text_parts import SEPARATOR
from heed.vocabularies.vocabulary import Pair, Vocabulary

FORMAT = 3  # of what is cached; a change of how text is cleaned, segmented or stored changes it
SIZE = "size.json"  # of a vocabulary, if it was chosen
UNFILTERED = 2  # the format before most of the filters; the same pairs were trained on where those are off

T = TypeVar("T")
Tell = Callable[[str, int | None], None]  # as in tasks/base.py
Lines = Callable[..., Iterable[Line]]
TableReader = Callable[[Path, Columns], Iterator[Line]]


class TextFiles:
    """The files of a [data] section as pairs, or with `one_sided` as texts. With `tagged`, sources have language
    tags.
    """

    def __init__(
        self,
        data: DataConfig,
        one_sided: bool,
        tagged: bool = False,
        table: TableReader = tables.table,
        tell: Tell = lambda what, done: None,
    ):
        self.data, self.one_sided, self.table = _with_phrasebook(data, tell), one_sided, table
        self.tagged = tagged or len(data.directions) > 1

    def train(self, corpora: Container[int] | None = None) -> Iterator[Line]:
        """The training pairs of all corpora, or of those with these numbers."""
        for number, own in enumerate(self.data.parts):
            if corpora is not None and number not in corpora:
                continue
            for line in self._lines(own.source, own.target, own.tsv, own.columns):
                if own.tag and line.source.startswith(f"{own.tag} "):  # heed backtranslate --tag writes it there
                    line = line._replace(source=line.source.removeprefix(own.tag).lstrip())
                yield line._replace(corpus=number) if number else line

    def whole_texts(self) -> Iterator[Line]:
        """The training texts with spaces between their parts, for learning subwords."""
        return (line._replace(source=line.source.replace(SEPARATOR, " ")) for line in self.train())

    def valid(self) -> list[Line]:
        """The validation pairs; files without any complete pair are refused."""
        found: list[Line] = []
        for number, own in [(0, self.data), *enumerate(self.data.corpora)]:
            lines = list(self._lines(own.valid_source, own.valid_target, own.valid_tsv, own.columns))
            names = [*own.valid_source, *own.valid_target, *own.valid_tsv]
            if names and not any(line.source.strip() and line.target.strip() for line in lines):
                raise ValueError(
                    f"{' and '.join(names)}: there is nothing to validate on, since every line lacks a text; use other "
                    "files, or none, to set data.holdout pairs aside"
                )
            found += [line._replace(corpus=number) for line in lines]
        return found

    def key(self, *settings, edition: int = FORMAT) -> str:
        """A hash of the contents of the training files, wherever they are stored, and of the settings."""
        if not self.data.corpora:
            return digest(*self._contents[0], *settings, edition=edition)
        tagged = [[*part, own.tag] for part, own in zip(self._contents, self.data.parts, strict=True)]
        return digest(tagged, self.origins, *settings, edition=edition)

    @cached_property
    def _contents(self) -> list[tuple[list[list[str]], list[int | str]]]:
        return [_contents(own) for own in self.data.parts]

    def tags(self, number: int) -> list[str]:
        """The tokens before each source of a corpus: >>de<< if there are several directions, and its own tag."""
        own = self.data.parts[number]
        target = self.data.direction(own)[1]
        if self.tagged and target is None:
            raise ValueError(
                f"data: {own.label} has no target language, and the model has several: set "
                "data.source_language and data.target_language"
            )
        return [*([language_tag(target)] if self.tagged else []), *([own.tag] if own.tag else [])]

    def languages(self, before: Mapping[str, str | None]) -> list[tuple[str | None, str | None]]:
        """The languages of each corpus, as far as they are known; `before` are those of a pre-trained model."""
        whole = tuple(self.data.languages(before).values())
        each = (self.data.direction(own) for own in self.data.parts)
        return [(source or whole[0], target or whole[1]) for source, target in each]

    @property
    def origins(self) -> list[Origin]:
        """What matters about each corpus for holding out pairs."""
        directions = self.data.directions
        if len(directions) < 2:
            return [Origin(0, own.tag is None) for own in self.data.parts]
        return [Origin(directions.index(self.data.direction(own)), own.tag is None) for own in self.data.parts]

    def _lines(self, source: list[str], target: list[str], tsv: list[str], columns: Columns) -> Iterator[Line]:
        rows = chain.from_iterable(self.table(Path(f), columns) for f in tsv)
        sources = [Path(f) for f in source]
        if self.one_sided:
            return chain(readers.texts(sources), (line._replace(target=line.source) for line in rows))
        return chain(readers.pairs(sources, [Path(f) for f in target]), rows)


def pair_keys(files: TextFiles, cleaning: Cleaning, max_ratio: float, *rest) -> tuple[str, list[str]]:
    """The key of a corpus, and its keys in earlier versions. `max_ratio` is as in the recipe. Where directions are
    compared with each other, an earlier key is only right if `cleaning.same_one_way`.
    """
    settings = cleaning.filters.duplicates, cleaning.holdout, files.one_sided
    key, first = digest(files.key(*settings), cleaning.key(), *rest), cleaning.earlier_key()
    if (before := cleaning.one_way_key()) is not None:
        return key, [digest(files.key(*settings), before, *rest)]
    if first is None:
        return key, []
    if files.one_sided:
        first["max_ratio"] = max_ratio  # it was hashed, though it has no effect
    return key, [digest(files.key(*settings, edition=UNFILTERED), first, *rest, edition=UNFILTERED)]


def pair_corpus(
    key: str,
    lines: Lines,
    pair: Pair,
    cleaning: Cleaning,
    *,
    with_text: bool,
    one_sided: bool,
    tell: Tell,
    prefixes: Sequence[list[int]] = ((),),
) -> Corpus:
    """The ids of both sides, encoded or cached."""

    def build(folder: Path) -> None:
        skip, filters = cleaning.reasons(lines, pair, tell), cleaning.filters
        sides = corpora.SIDES[:1] if one_sided else corpora.SIDES
        report = partial(tell, "encoding")
        options = {"with_text": with_text, "sides": sides, "prefixes": prefixes, "progress": report}
        corpora.build(folder, lines, pair, filters, skip=skip, **options)

    return cached(f"corpus-{key}", Corpus, build, tell)


def text_stream(
    key: str, lines: Lines, vocabulary: Vocabulary, held_out: int, tell: Tell, document: DocumentKind | None = None
) -> Stream:
    """The ids of one text, encoded or cached; with `document`, also where its documents begin."""

    def build(folder: Path) -> None:
        index = Boundaries(document) if document else None
        texts = index.watch(lines()) if index else (line.source for line in lines())
        streams.build(folder, texts, vocabulary, held_out, partial(tell, "encoding"), index)

    return cached(f"stream-{key}", Stream, build, tell)


@dataclasses.dataclass(frozen=True)
class Learning:
    """How the vocabularies of a new model are learned. `kind` is that of a model family; None is Heed's own.
    `sources_only`: the target has no vocabulary (labels). `tags` are put before sources, one token each.
    """

    config: SubwordsConfig
    kind: str | None
    one_sided: bool = False
    sources_only: bool = False
    tags: tuple[str, ...] = ()

    def pair(self, lines: Lines, texts: str, tell: Tell) -> Pair:
        """Given as files, cached under `texts`, or learned now."""
        c = self.config
        if c.source_model or c.target_model:
            loads = {"words": words.load, "characters": characters.load, "bytes": characters.load}
            load = loads.get(c.kind, sentencepiece.load)
            source = load(Path(c.source_model or c.target_model))
            other = c.target_model and c.target_model != c.source_model
            return source, load(Path(c.target_model)) if other else source

        def learn(folder: Path) -> None:
            pair, size = self._learn(lines, tell)
            _write_pair(folder, pair, size)
            if size is not None:  # a recipe that states the size finds the same vocabulary
                cached(self._sized(size)._folder(texts), _read_pair, partial(_write_pair, pair=pair), tell)

        return cached(self._folder(texts), _read_pair, learn, tell)

    def chosen(self, texts: str) -> dict[str, Any]:
        """The setting that the recipe left open and `pair` chose for the texts of this key, if there is one."""
        path, c = cache_folder() / self._folder(texts) / SIZE, self.config
        learned = not (c.source_model or c.target_model) and path.is_file()
        return {"subwords.size": json.loads(path.read_text("utf-8"))} if learned else {}

    def _sized(self, size: int) -> "Learning":
        return dataclasses.replace(self, config=dataclasses.replace(self.config, size=size))

    @cached_property
    def _more(self) -> list[str]:
        return [_hash(Path(f)) for f in self.config.texts]

    def _folder(self, texts: str) -> str:
        """The name of the cache folder."""
        plain = dataclasses.replace(self.config, sampling=0.0, source_model=None, target_model=None, texts=[])
        tags = [self.tags] if self.tags else []
        key = digest(texts, self._more, self.kind, self.sources_only, dataclasses.asdict(plain), *tags)
        return f"subwords-{key}"

    def _learn(self, lines: Lines, tell: Tell) -> tuple[Pair, int | None]:
        """The vocabularies, and the size that was chosen for them if they are of one."""
        c = self.config
        if c.texts:
            lines = partial(readers.texts, [Path(f) for f in c.texts])
        sources_only = self.one_sided or bool(c.texts) or self.sources_only
        pairs = sum(1 for _ in counted(lines(), "counting", tell))
        if not pairs:
            raise ValueError("data: there are no pairs to train on")
        if not any(text.strip() for line in lines() for text in line[:2]):
            raise ValueError(f"data: there is no text to train on: all {pairs:,} lines are empty")
        both = c.joint and not sources_only
        every = -(-pairs // max(1, c.lines // 2 if both else c.lines))  # spread over the whole corpus
        sample = list(islice(lines(), 0, None, every))
        sides = [[line.source for line in sample], [line.target for line in sample]]
        if sources_only or self.kind:
            sides = [sides[0] if sources_only else sides[0] + sides[1]]
        elif c.joint:
            sides = [[text for line in sample for text in line[:2]]]
        learned, chosen = [], None
        for texts in sides:
            tell("learning subwords", 0)
            if c.kind == "words":
                learned.append(words.learn(texts, c))
                continue
            if c.kind in ("characters", "bytes"):
                learned.append(characters.learn(c.kind, texts, c, self.tags))
                continue
            size = c.size or sentencepiece.choose_size(pairs, len(set().union(*texts)))
            chosen = None if c.size or len(sides) > 1 else size
            if self.kind:
                return vocabularies.learn(self.kind, texts, size, self.tags), chosen
            tags = self.tags if not learned else ()  # they are put before sources only
            learned.append(sentencepiece.learn(texts, c, size, tags))
        return (learned[0], learned[-1]), chosen


def _write_pair(folder: Path, pair: Pair, size: int | None = None) -> None:
    with atomic_folder(folder, "keep") as part:
        (part / "subwords.json").write_text(json.dumps(vocabularies.write(part, pair)), "utf-8", newline="\n")
        if size is not None:
            (part / SIZE).write_text(json.dumps(size), "utf-8", newline="\n")
        write_sums(part)


def _read_pair(folder: Path) -> Pair:
    return vocabularies.read(folder, json.loads((folder / "subwords.json").read_text("utf-8")))


def cached(name: str, opened: Callable[[Path], T], make: Callable[[Path], None], tell: Tell) -> T:
    """The content of a cache folder, verified against its checksums; it is built if it is missing or damaged. This
    costs less than hashing the texts it was built from, which every run does for the key.
    """
    folder = cache_folder() / name
    if folder.exists():
        try:
            if not check_sums(folder):
                tell(f"{folder} has no checksums, so it cannot be verified: remove it to prepare it again.", None)
            return opened(folder)
        except (OSError, ValueError, LookupError, TypeError) as error:
            tell(f"{folder} is damaged ({error}): preparing it again.", None)
            move_away(folder)
    make(folder)
    return opened(folder)


def digest(*parts, edition: int = FORMAT) -> str:
    text = json.dumps([edition, *parts], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _contents(own: CorpusConfig) -> tuple[list[list[str]], list[int | str]]:
    """Hashes of the files of a corpus, and the columns of its tables."""
    return [
        [_hash(Path(f)) for f in files] for files in (own.source, own.target, own.tsv)
    ], own.columns if own.tsv else []


def _hash(path: Path) -> str:
    check_file(path)
    return sha256(path)


def _with_phrasebook(data: DataConfig, tell: Tell) -> DataConfig:
    """The files of the built-in phrasebook, if requested."""
    if not data.phrasebook:
        return data
    from heed.data.synthetic import phrasebook

    def write(folder: Path) -> None:
        with atomic_folder(folder, "keep") as part:
            phrasebook.write(part, train=data.phrasebook, test=0)  # training reads no test pairs
            write_sums(part)

    def find(folder: Path) -> dict[str, list[str]]:
        return {setting: [str(folder / name)] for setting, name in names.items()}

    names = {"source": "train.ko", "target": "train.en", "valid_source": "valid.ko", "valid_target": "valid.en"}
    name = f"phrasebook-{phrasebook.EDITION}-{phrasebook.SOURCES}-{data.phrasebook}"
    if not (cache_folder() / name / SUMS).is_file():  # an earlier version's may be cut; the same is written in seconds
        move_away(cache_folder() / name)
    files = cached(name, find, write, tell)
    given = {setting: paths for setting in ("valid_source", "valid_target") if (paths := getattr(data, setting))}
    return dataclasses.replace(data, **files | given, phrasebook=None)
