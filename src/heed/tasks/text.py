"""Shared by tasks on lines of text: files, vocabularies, filters, batches."""

import dataclasses
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from heed.data import contamination, tables
from heed.data import corpus as corpora
from heed.data.batching import Batches, DataPosition
from heed.data.cleaning import Cleaning
from heed.data.config import DataConfig
from heed.data.filters import PAIRS_ONLY, FiltersConfig
from heed.data.prefetch import in_processes, worker_count
from heed.data.prepare import Learning, TableReader, TextFiles, pair_corpus, pair_keys
from heed.data.vectors import VectorsConfig
from heed.decoding.config import DecodingConfig
from heed.models.package import Package
from heed.tasks.base import Prepared, Task, Tell, Validation
from heed.tasks.directions import direction_facts, in_direction, languages_row
from heed.tasks.subwords import check_subwords, vocabulary_kind
from heed.tasks.validation import trained_too
from heed.vocabularies.sentencepiece import SubwordsConfig
from heed.vocabularies.tags import tag_ids
from heed.vocabularies.vocabulary import Pair

MIXED = 0.1  # share of swapped pairs above which they are probably no mistake
QUICKLY_PLANNED = 1_000_000  # texts of an epoch: planning more batches than that in two processes would take too long


class TextTask(Task):
    """Pairs of lines, or lines if `one_sided`; both sides are encoded by vocabularies, unless the target is a label
    (`label_target`).
    """

    sections: ClassVar[Mapping[str, type]] = {
        "data": DataConfig, "filters": FiltersConfig, "subwords": SubwordsConfig, "vectors": VectorsConfig, "decoding": DecodingConfig,
    }  # fmt: skip
    one_sided: ClassVar[bool] = False
    label_target: ClassVar[bool] = False
    filtered: ClassVar[bool] = True
    directed: ClassVar[bool] = False  # whether sources may have tags, and corpora be of several languages
    samples_subwords: ClassVar[bool] = False  # whether subword regularization (BPE-dropout) makes sense
    coded: ClassVar[bool] = False  # whether corpora may have control codes
    long_validation: ClassVar[str] = "left out of the loss"  # what happens to validation texts that are too long
    any_vocabulary: ClassVar[bool] = False  # whether words, characters and bytes may replace a model's own kind
    whole_texts: ClassVar[bool] = (
        False  # whether filters.max_length is as many subwords as the model can read, by default
    )

    # checks

    def check(self, recipe: Any) -> None:
        self._check_data(recipe)
        check_subwords(self, recipe)
        self._check_vectors(recipe)
        self._check_length(recipe)

    def _check_data(self, recipe: Any) -> None:
        data = recipe.data
        if self.one_sided and (data.target or data.valid_target):
            raise ValueError(f"data.target is set, but {self.name} needs only plain text: set data.source")
        if not self.one_sided and data.source and not data.target:
            raise ValueError(f"data.target is missing: {self.name} needs pairs; give their other side with --target")
        for one in data.corpora:
            if self.one_sided and (one.target or one.valid_target):
                raise ValueError(
                    f"data.corpora: {one.label} has a target, but {self.name} needs only plain text: leave it out"
                )
        self._check_columns(recipe)
        self._check_tags(recipe)

    def _check_columns(self, recipe: Any) -> None:
        for own in [recipe.data, *recipe.data.corpora]:
            if len(own.columns) != 2:
                raise ValueError(f"data.columns is {own.columns}; {self.name} has two columns, source and target")

    def _check_tags(self, recipe: Any) -> None:
        data, words = recipe.data, recipe.subwords
        tags = [one.tag for one in data.corpora if one.tag] or [">>language<<"] * (len(data.directions) > 1)
        if tags and not self.directed:
            raise ValueError(f"data.corpora: {self.name} has no tags and a single language, so {tags[0]} has no effect")
        codes = [one.code for one in data.corpora if one.code]
        if codes and not self.coded:
            raise ValueError(f"data.corpora: the code {codes[0]} is for language models, and {self.name} has none")
        if tags and not recipe.model.folder and (recipe.model.vocabulary or words.kind == "words"):
            kind = recipe.model.vocabulary or words.kind
            raise ValueError(f"data.corpora: {tags[0]} needs Heed's own subword vocabulary, and this one is {kind}")

    def _check_vectors(self, recipe: Any) -> None:
        model = recipe.model
        for name, path in recipe.vectors.files.items():
            if (name == "text") != self.one_sided:
                right = "vectors.text" if self.one_sided else "vectors.source or vectors.target"
                raise ValueError(f"vectors.{name} is {path!r}, but the task is {self.name}: use {right}")
            if model.folder and not model.fresh:
                raise ValueError(f"vectors.{name} is {path!r}, but {model.folder} has its own embeddings: leave it out")
            if recipe.subwords.kind != "words" and not model.folder:
                raise ValueError(
                    f"vectors.{name} is {path!r}, but subwords.kind is {recipe.subwords.kind!r}, and subwords have no "
                    'word vectors: set subwords.kind to "words"'
                )

    def _check_length(self, recipe: Any) -> None:
        longest, limit = recipe.model.setting("max_length"), recipe.filters.max_length
        if self.whole_texts and "filters.max_length" not in recipe.explicit:
            return  # it will be set by the positions (runs/text_length.py)
        if self.label_target:  # then the texts themselves count (runs/models.py)
            longest = None
        if limit < 2 or (longest is not None and limit > longest):
            most = f", and at most model.max_length, {longest}" if longest else ""
            raise ValueError(f"filters.max_length is {limit}; it must be at least 2{most}")

    def check_base(self, recipe: Any, base: Package) -> None:
        source, target = base.vocabularies
        if recipe.subwords.sampling and not hasattr(source, "sample"):
            raise ValueError(
                f"subwords.sampling is {recipe.subwords.sampling}, but it only works with Heed's own vocabulary, and "
                f"{recipe.model.folder} has another: set it to 0"
            )
        if self.one_sided and source.key() != target.key():
            raise ValueError(
                f"{recipe.model.folder} has separate vocabularies for source and target, and {self.name} needs one: "
                "start from another model"
            )

    # data

    def filters(self, filters: FiltersConfig) -> FiltersConfig:
        """The filters that make sense for this task: with one text, both sides are the same."""
        return dataclasses.replace(filters, rejected=None, **(PAIRS_ONLY if self.one_sided else {}))

    def prepare(self, recipe: Any, base: Package | None, tell: Tell) -> Prepared:
        tagged = base is not None and len(base.facts.get("directions") or []) > 1
        files = TextFiles(recipe.data, self.one_sided, tagged, self.table(), tell)
        valid = files.valid()
        holdout = 0 if valid else files.data.holdout
        filters = self.filters(recipe.filters)
        sides = 1 if self.one_sided or self.label_target else 2
        languages = files.languages((base.facts.get("languages") or {}) if base is not None else {})
        cleaning = Cleaning(filters, holdout, valid, languages, sides, files.origins)
        texts = files.key(filters.duplicates, holdout, self.one_sided)
        tags = [files.tags(number) for number in range(len(files.data.parts))]
        learning = Learning(
            recipe.subwords,
            vocabulary_kind(self, recipe),
            self.one_sided,
            sources_only=self.label_target,
            tags=tuple(dict.fromkeys(tag for own in tags for tag in own)),
        )
        pair = base.vocabularies if base is not None else learning.pair(files.whole_texts, texts, tell)
        if not self.label_target:
            pair = in_direction(pair, files.data, base.facts if base else {}, self.one_sided)
        processors = self.processors(recipe, pair, files, base)
        pair = tuple(processors.values())
        with_text = recipe.subwords.sampling > 0
        named = ([tags] if any(tags) else []) + self.reading_key()
        rest = [part.key() for part in pair], with_text, *named
        key, earlier = pair_keys(files, cleaning, recipe.filters.max_ratio, *rest)
        corpus = pair_corpus(
            key,
            files.train,
            pair,
            cleaning,
            with_text=with_text,
            one_sided=self.one_sided,
            tell=tell,
            prefixes=[tag_ids(pair[0], own) for own in tags],
        )
        if recipe.filters.rejected:
            Path(recipe.filters.rejected).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(corpus.folder / "rejected.tsv", recipe.filters.rejected)
        valid = corpora.read_held_out(corpus.folder) if holdout else valid
        earlier = earlier if cleaning.same_one_way(corpus.report) else []
        joint = pair[0].key() == pair[1].key()
        return Prepared(
            key,
            corpus,
            valid,
            processors,
            self.sizes(pair, base),
            {} if joint or self.label_target else {"tied": "target"},
            earlier,
            chosen=learning.chosen(texts) if base is None else {},
        )

    def table(self) -> TableReader:
        """The reader of the tables in data.tsv."""
        return tables.table

    def reading_key(self) -> list[Any]:
        """Further settings that determine which texts are read from the files."""
        return []

    def processors(self, recipe: Any, pair: Pair, files: TextFiles, base: Package | None) -> dict[str, Any]:
        """The vocabularies, by their names in the model folder."""
        return dict(zip(("source", "target"), pair, strict=True))

    def sizes(self, pair: Pair, base: Package | None) -> dict[str, int | None]:
        """A pre-trained model keeps its vocabulary, which may have unused entries."""
        if base is not None:
            return {}
        joint = pair[0].key() == pair[1].key()
        return {"vocab_size": len(pair[1]), "source_vocab_size": None if joint else len(pair[0])}

    # training

    def batches(
        self, recipe: Any, prepared: Prepared, plan: Any, share: tuple[int, int], position: DataPosition
    ) -> Iterator[tuple[DataPosition, Any]]:
        pair, noise, sampling = tuple(prepared.processors.values()), self.noise(prepared), recipe.subwords.sampling
        made = Batches(
            prepared.train,
            budget=recipe.training.batch_tokens,
            seed=recipe.training.seed,
            sampling=sampling,
            vocabularies=pair if sampling else None,
            max_length=plan.longest,
            special=tuple(part.special for part in pair),
            collate=plan.collate,
            noise=noise,
            share=share,
            plan=plan.grouping,
            weights=[one.weight for one in recipe.data.corpora],
        )
        # sampling subwords or making noise costs as much as training on the result: other processes do it
        if not sampling and noise is None:
            return made.start(position)
        return in_processes(made, position, workers=worker_count(), meanwhile=len(prepared.train) < QUICKLY_PLANNED)

    def noise(self, prepared: Prepared) -> Any:
        """The noise applied to the source of each example, if any."""
        return None

    def longest(self, recipe: Any, prepared: Prepared, max_length: int) -> int:
        if recipe.subwords.sampling:
            return max_length
        sides = zip((prepared.train.source, prepared.train.target), prepared.processors.values(), strict=True)
        return max(int(side.lengths.max()) + len(words.special.before) + 1 for side, words in sides)

    # reports and records

    def data_summary(self, prepared: Prepared) -> str:
        r = prepared.train.report
        aside = f"; {r.held_out:,} set aside for validation" if r.held_out else ""
        return f"{r.kept:,} {self.unit} to train on, of {r.read:,}{aside}; filtered out: {r.describe()}."

    def corpus_summaries(self, recipe: Any, prepared: Prepared) -> list[str]:
        """A sentence on each of several corpora."""
        found = []
        for one, r in zip(recipe.data.corpora, prepared.train.reports, strict=False):
            aside = f"; {r.held_out:,} set aside" if r.held_out else ""
            how = f", weight {one.weight:g}" + (f", tag {one.tag}" if one.tag else "")
            found.append(
                f"{one.label}: {r.kept:,} of {r.read:,} {self.unit}{how}{aside}; filtered out: {r.describe()}."
            )
        return found

    def notes(self, recipe: Any, prepared: Prepared, validation: Validation, max_length: int) -> list[str]:
        data, notes = recipe.data, recipe.data.swapped_validation() + self.corpus_summaries(recipe, prepared)
        source, target = data.languages({}).values()
        named = source and target and not (data.source_language and data.target_language)
        if named and not recipe.model.folder:
            notes.append(f"Languages, from the file names: {source} to {target}.")
        if long := validation.too_long(max_length):
            notes.append(
                f"{long:,} of {validation.size:,} validation texts are too long for the model and are "
                f"{self.long_validation}."
            )
        if long := self.whole_texts and prepared.train.report.taken.get("length"):
            way = (
                "raise it"
                if recipe.filters.max_length < max_length - 1
                else "shorten them, or start from a model with more positions, such as BigBird"
            )
            notes.append(
                f"{long:,} {self.unit} are too long and are not trained on (filters.max_length is "
                f"{recipe.filters.max_length:,}, the model has {max_length:,} positions): {way}."
            )
        if shared := prepared.train.report.taken.get("overlap"):
            notes.append(
                f"{shared:,} {self.unit} are excluded from training because one side is also in the validation set, "
                "ignoring case, whitespace and punctuation (filters.overlap)."
            )
        if shared := prepared.train.report.taken.get("reversed"):
            notes.append(
                f"{shared:,} {self.unit} are excluded from training because they are in the validation set in the other "
                "direction (filters.overlap)."
            )
        return notes + self.mixed_directions(recipe, prepared) + self.trained_too(recipe, prepared)

    def mixed_directions(self, recipe: Any, prepared: Prepared) -> list[str]:
        """A warning if so many pairs are filtered as swapped that the corpus probably has both directions."""
        swapped, read = prepared.train.report.taken.get("swapped", 0), prepared.train.report.read
        if swapped <= MIXED * read:
            return []
        return [
            f"Warning: {swapped:,} of {read:,} {self.unit} are filtered as swapped. If the corpus has both directions on "
            "purpose, give each as a table of [[data.corpora]] with its languages, or set filters.swapped=false."
        ]

    def trained_too(self, recipe: Any, prepared: Prepared) -> list[str]:
        """A sentence on validation texts that are also trained on, if any."""
        sides = corpora.SIDES[:1] if self.one_sided or self.label_target else corpora.SIDES
        texts = {side: [line[number] for line in prepared.valid] for number, side in enumerate(sides)}
        several = len(recipe.data.directions) > 1
        return trained_too(prepared.train.folder, texts, "filters.overlap removes them from training", several)

    def kept_files(self, prepared: Prepared) -> list[Path]:
        path = prepared.train.folder / contamination.FILE
        return [path] if path.is_file() else []  # what an earlier version prepared may lack it

    def facts(self, recipe: Any, prepared: Prepared, base: Mapping[str, Any]) -> dict[str, Any]:
        return {
            **direction_facts(recipe.data, tuple(prepared.processors.values()), base),
            **{name: base[name] for name in ("origin",) if name in base},
            "max_source": max_source(prepared),
            "decoding": dataclasses.asdict(recipe.decoding),
        }

    def card_rows(self, recipe: Any, prepared: Prepared, facts: Mapping[str, Any]) -> dict[str, str]:
        data, report = recipe.data, prepared.train.report
        files = [Path(f).name for own in data.corpora or [data] for f in (*own.source, *own.target, *own.tsv)]
        return {
            "data": ", ".join(files or [f"phrasebook ({data.phrasebook} pairs)"]),
            self.unit: f"{report.kept} of {report.read}; filtered out: {report.describe()}",
            **({"corpora": " ".join(self.corpus_summaries(recipe, prepared))} if data.corpora else {}),
            **languages_row(tuple(prepared.processors.values())),
            "licence of the data": data.licence or "not stated",
        }


def max_source(prepared: Prepared) -> int:
    """The longest training source, with special tokens: longer ones are split."""
    vocabulary = next(iter(prepared.processors.values()))
    return prepared.train.longest + len(vocabulary.special.before) + 1
