"""Shared by tagging and question answering. Long texts are read in windows."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from heed.data import contamination
from heed.data import corpus as corpora
from heed.data.batching import Batches, DataPosition
from heed.data.corpus import Corpus
from heed.data.prepare import Learning, cached, digest
from heed.data.readers import Line
from heed.files import sha256
from heed.models.package import Package
from heed.products.product import aligned_vocabulary
from heed.tasks.base import Prepared, Task, Tell, Validation
from heed.tasks.subwords import check_subwords, vocabulary_kind
from heed.tasks.validation import trained_too
from heed.vocabularies.labels import Labels

Row = tuple[Sequence[int], Sequence[int]]  # the tokens of a window, and what is told of them
EDITION = 1  # of the rows in the cache


class Examples(NamedTuple):
    """The contents of the files; `counts` are those of skipped or repaired examples; `scheme` is that of `labels`. `reading` is
    what was read in another way than by earlier versions.
    """

    train: list[Any]
    valid: list[Any]
    counts: Counter
    note: str = ""
    scheme: str = ""
    labels: Sequence[str] = ()
    reading: Sequence[str] = ()


class TokenTask(Task):
    """Examples as rows of tokens with their labels."""

    any_vocabulary: ClassVar[bool] = False
    samples_subwords: ClassVar[bool] = False

    # what differs

    @abstractmethod
    def read(self, recipe: Any, base: Package | None) -> Examples:
        """The examples of the files; errors are refused, or counted."""

    @abstractmethod
    def texts(self, examples: Sequence[Any]) -> Iterator[str]:
        """The texts that a vocabulary is learned from."""

    @abstractmethod
    def rows(self, examples: Examples, processors: Mapping[str, Any], longest: int, counts: Counter) -> Iterator[Row]:
        """The training windows, none with more than `longest` tokens; `counts` says what was skipped."""

    def note(self, examples: Examples, processors: Mapping[str, Any]) -> str:
        """Warnings about the files."""
        return examples.note

    @abstractmethod
    def labels_of(self, examples: Examples, base: Package | None) -> dict[str, Labels]:
        """The processors besides the vocabulary."""

    @abstractmethod
    def head_sizes(self, processors: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a model's config that determine its head."""

    def window(self, positions: int) -> int:
        """The window size in tokens, including special ones, for a model with this many positions."""
        chosen = self.settings.max_length
        if chosen is not None and chosen > positions:
            raise ValueError(
                f"task.max_length is {chosen}, but the model has {positions} positions: lower it, or leave it out"
            )
        return chosen or positions

    # checks

    def check(self, recipe: Any) -> None:
        check_subwords(self, recipe)
        if not recipe.model.folder:
            self.window(recipe.model.setting("max_length"))
        if recipe.model.prompt:
            raise ValueError(f"model.prompt is {recipe.model.prompt}, but {self.name} has no prompts: set it to 0")

    # data

    def prepare(self, recipe: Any, base: Package | None, tell: Tell) -> Prepared:
        tell("reading", 0)
        examples = self.read(recipe, base)
        if not examples.valid:
            raise ValueError(f"{' and '.join(recipe.data.valid)}: there are no validation examples")
        parts = [[sha256(Path(path)) for path in recipe.data.train], self.reading_key(recipe), *examples.reading]
        texts = digest(self.name, EDITION, *parts)
        learning = Learning(recipe.subwords, vocabulary_kind(self, recipe), one_sided=True)
        if base is not None:
            text = aligned_vocabulary(base.vocabularies[0])
        else:
            text = learning.pair(lambda: (Line(own, own, "") for own in self.texts(examples.train)), texts, tell)[0]
        processors = {"text": text, **self.labels_of(examples, base)}
        longest = self.window(base.model.config.max_length if base is not None else recipe.model.setting("max_length"))
        settings = [self.row_settings(), longest, [own.key() for own in processors.values()]]
        key = digest(texts, settings)

        def build(folder: Path) -> None:
            tell("encoding", 0)
            facts = {
                "counts": Counter(examples.counts),
                "note": self.note(examples, processors),
                "scheme": examples.scheme,
            }
            rows = self.rows(examples, processors, longest, facts["counts"])
            largest = max(len(text), longest, *(len(own) + 1 for own in processors.values()))
            corpora.write_rows(folder, rows, largest, facts, self.texts(examples.train))

        corpus = cached(f"rows-{key}", Corpus, build, tell)
        if not len(corpus):
            raise ValueError(f"no training example is left: {self._counted(corpus) or 'the files have none'}")
        return Prepared(key, corpus, examples.valid, processors, self._sizes(processors, base))

    @abstractmethod
    def reading_key(self, recipe: Any) -> Any:
        """What determines which examples are read from the training files."""

    @abstractmethod
    def row_settings(self) -> Any:
        """The settings that determine the rows of an example."""

    def _sizes(self, processors: Mapping[str, Any], base: Package | None) -> dict[str, Any]:
        text, head = processors["text"], self.head_sizes(processors)
        own = {"separator": text.special.last, **head}
        return own if base is not None else {"vocab_size": len(text), "pad": text.special.pad, **own}

    def batches(
        self, recipe: Any, prepared: Prepared, plan: Any, share: tuple[int, int], position: DataPosition
    ) -> Iterator[tuple[DataPosition, Any]]:
        made = Batches(
            prepared.train,
            budget=recipe.training.batch_tokens,
            seed=recipe.training.seed,
            special=(prepared.processors["text"].special, Labels.special),
            collate=plan.collate,
            share=share,
            plan=plan.grouping,
        )
        return made.start(position)

    def longest(self, recipe: Any, prepared: Prepared, max_length: int) -> int:
        return prepared.train.longest + len(prepared.processors["text"].special.before) + 1

    # reports and records

    counted: ClassVar[Mapping[str, str]]  # what the counts of rows say, by name

    def _counted(self, corpus: Corpus) -> str:
        """What was skipped, repaired or split, as text."""
        counts = corpus.facts["counts"]
        return "; ".join(f"{counts[name]:,} {line}" for name, line in self.counted.items() if counts.get(name))

    def data_summary(self, prepared: Prepared) -> str:
        corpus, rest = prepared.train, self._counted(prepared.train)
        return f"{corpus.facts['counts']['examples']:,} {self.unit} to train on{'; ' * bool(rest)}{rest}."

    def notes(self, recipe: Any, prepared: Prepared, validation: Validation, max_length: int) -> list[str]:
        known = [prepared.train.facts["note"]] if prepared.train.facts.get("note") else []
        return known + trained_too(prepared.train.folder, {"source": list(self.texts(prepared.valid))})

    def kept_files(self, prepared: Prepared) -> list[Path]:
        path = prepared.train.folder / contamination.FILE
        return [path] if path.is_file() else []  # what an earlier version prepared may lack it

    def facts(self, recipe: Any, prepared: Prepared, base: Mapping[str, Any]) -> dict[str, Any]:
        longest = self.settings.max_length
        kept = {name: base[name] for name in ("origin",) if name in base}
        return kept | ({"max_length": longest} if longest else {})

    def card_rows(self, recipe: Any, prepared: Prepared, facts: Mapping[str, Any]) -> dict[str, str]:
        corpus, rest = prepared.train, self._counted(prepared.train)
        return {
            "data": ", ".join(Path(path).name for path in recipe.data.train),
            self.unit: f"{corpus.facts['counts']['examples']}{'; ' * bool(rest)}{rest}",
            "licence of the data": recipe.data.licence or "not stated",
        }


def hold_out(groups: Sequence[Sequence[Any]], wanted: int, skipped: int = 0) -> tuple[list[Any], list[Any]]:
    """Training and validation examples: whole groups, spread over all, at most a tenth."""
    total = sum(map(len, groups))
    wanted = min(wanted, total // 10)
    if not wanted:
        rest = f" (and {skipped:,} were skipped)" if skipped else ""
        raise ValueError(f"{total} examples{rest} are too few to set any aside: set data.valid")
    kept, held, read = [], [], 0
    for group in groups:
        read += len(group)
        mine = held if len(held) < wanted * read / total else kept
        mine.extend(group)
    return kept, held
