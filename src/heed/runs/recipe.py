"""A recipe: every setting of a run, in sections. What a TOML file says, and --set on top of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from heed import config
from heed.data.filters import FiltersConfig
from heed.data.vectors import VectorsConfig
from heed.decoding.config import DecodingConfig
from heed.models.transformer import TransformerConfig
from heed.tasks.config import TaskConfig
from heed.text.languages import language_of_files
from heed.training.config import TrainingConfig
from heed.vocabularies.sentencepiece import SubwordsConfig


@dataclass(frozen=True)
class DataConfig:
    """Files, or the built-in phrasebook with so many pairs.

    Without validation files, `holdout` pairs (a tenth of the corpus at most) are set aside.
    """

    source: list[str] = field(default_factory=list)
    target: list[str] = field(default_factory=list)
    tsv: list[str] = field(default_factory=list)
    columns: list[int] = field(default_factory=lambda: [1, 2])
    valid_source: list[str] = field(default_factory=list)
    valid_target: list[str] = field(default_factory=list)
    valid_tsv: list[str] = field(default_factory=list)
    holdout: int = 1000
    phrasebook: int | None = None
    source_language: str | None = None
    target_language: str | None = None
    licence: str | None = None

    def __post_init__(self):
        given = bool(self.source or self.target or self.tsv) + bool(self.phrasebook)
        if given != 1:
            raise ValueError(
                "data: name the files to train on (source and target, or tsv), or set data.phrasebook"
                + ("; not both" if given else "")
            )
        if len(self.columns) != 2 or min(self.columns) < 1:
            raise ValueError(f"data.columns is {self.columns}; it must be two column numbers, counted from 1")
        if self.holdout < 1 and not (self.valid_source or self.valid_target or self.valid_tsv or self.phrasebook):
            raise ValueError(
                f"data.holdout is {self.holdout}; it must be at least 1 where no validation files are named"
            )

    def languages(self, before: Mapping[str, str | None]) -> dict[str, str | None]:
        """Of both sides: those set, else those that the files name as theirs, else those of the model from `before`."""
        source, target = language_of_files(self.source), language_of_files(self.target)
        if source == target:  # then the names tell something else
            source = target = None
        return {
            "source": self.source_language or source or before.get("source"),
            "target": self.target_language or target or before.get("target"),
        }


@dataclass(frozen=True)
class ModelConfig:
    """A size by name, and whatever should differ from it; or a model in a `folder`, to start from.

    `fresh`: of that model the shape and the vocabulary alone, its weights drawn anew.
    """

    name: Literal["transformer", "marian", "bart", "pegasus", "seq2seq", "rnn-lm"] = "transformer"
    folder: str | None = None
    fresh: bool = False
    preset: Literal[
        "auto", "tiny", "small", "base", "big",
        "tiny-6-2", "tiny-12-1", "small-6-2", "small-12-1", "base-6-2", "base-12-1",
    ] = "auto"  # fmt: skip
    dim: int | None = None
    heads: int | None = None
    hidden: int | None = None
    encoder_layers: int | None = None
    decoder_layers: int | None = None
    max_length: int | None = None
    dropout: float | None = None
    attention_dropout: float | None = None
    hidden_dropout: float | None = None
    norm: Literal["post", "pre"] | None = None
    positions: Literal["sinusoidal", "learned"] | None = None
    tied: Literal["all", "target", "none"] | None = None
    output_bias: bool | None = None
    norm_eps: float | None = None
    activation: Literal["relu", "gelu", "swish"] | None = None
    scaled: bool | None = None
    init_std: float | None = None
    classifier_dropout: float | None = None
    cell: Literal["rnn", "lstm", "gru"] | None = None
    layers: int | None = None
    input_dropout: float | None = None
    layer_dropout: float | None = None
    word_dropout: float | None = None
    weight_dropout: float | None = None
    attention: Literal["off", "content", "additive", "dot", "general", "scaled-dot"] | None = None
    order: Literal["bahdanau", "luong"] | None = None
    feeding: bool | None = None
    bidirectional: bool | None = None
    reverse_source: bool | None = None
    encoder: Literal["attention", "restricted", "convolution"] | None = None
    window: int | None = None
    kernel: int | None = None

    def __post_init__(self):
        if self.fresh and not self.folder:
            raise ValueError("model.fresh goes with model.folder: it draws the weights of that model anew")


@dataclass(frozen=True)
class Recipe:
    data: DataConfig
    task: TaskConfig = field(default_factory=TaskConfig)
    filters: FiltersConfig = field(default_factory=FiltersConfig)
    subwords: SubwordsConfig = field(default_factory=SubwordsConfig)
    vectors: VectorsConfig = field(default_factory=VectorsConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)

    @property
    def family(self) -> str | None:
        """The family whose vocabulary is learned; None is heed's own."""
        return None if self.model.name in ("transformer", "seq2seq", *TASKS["language"]) else self.model.name

    def __post_init__(self):
        for check in (_check_data, _check_task, _check_subwords, _check_vectors, _check_model):
            check(self)


TASKS = {  # which models can learn them, unless one is there already
    "denoising": ("bart", "pegasus"),
    "gap-sentences": ("pegasus",),
    "classification": ("bart",),
    "language": ("rnn-lm",),
}


def _check_data(recipe: Recipe) -> None:
    task, data = recipe.task.name, recipe.data
    if recipe.task.one_sided and (data.target or data.valid_target):
        raise ValueError(f"data.target is given, but {task} is learned from text alone: name it as data.source")
    if not recipe.task.one_sided and data.source and not data.target:
        raise ValueError(f"data.target is missing: {task} is learned from pairs")


def _check_task(recipe: Recipe) -> None:
    task, name = recipe.task.name, recipe.model.name
    able = TASKS.get(task)
    if task != "language" and name in TASKS["language"]:
        raise ValueError(
            f"task.name is {task!r}, but a language model ({name}) learns from one text: set it to 'language'"
        )
    if able and name not in able and not recipe.model.folder:
        raise ValueError(f"task.name is {task!r}, which {name} cannot learn: set model.name to {' or '.join(able)}")


def _check_subwords(recipe: Recipe) -> None:
    c, plain = recipe.subwords, SubwordsConfig()
    if c.sampling and (recipe.family or c.kind == "words" or recipe.task.name != "translation"):
        raise ValueError(
            f"subwords.sampling is {c.sampling}, but words are cut anew for heed's own vocabulary and "
            "for translation alone: set it to 0"
        )
    of_words = ("cut", "lower", "least")
    for name in ("coverage",) if c.kind == "words" else of_words:
        if getattr(c, name) != getattr(plain, name):
            whose = "not" if c.kind == "words" else "only"
            raise ValueError(f"subwords.{name} is {getattr(c, name)!r}; it is {whose} for subwords.kind = 'words'")
    own = ("kind", "joint", "coverage", "source_model", "target_model", *of_words)
    every = (*own, "size", "lines", "texts")
    for name in every if recipe.model.folder else own if recipe.family else ():
        if getattr(c, name) != getattr(plain, name):
            whose = f"that of {recipe.model.folder}" if recipe.model.folder else f"of {recipe.family}'s own kind"
            raise ValueError(f"subwords.{name} is {getattr(c, name)!r}, but the vocabulary is {whose}: leave it out")


def _check_vectors(recipe: Recipe) -> None:
    model = recipe.model
    for name, path in recipe.vectors.files.items():
        if (name == "text") != recipe.task.one_sided:
            right = "vectors.text" if recipe.task.one_sided else "vectors.source or vectors.target"
            raise ValueError(f"vectors.{name} is {path!r}, but the task is {recipe.task.name}: call it {right}")
        if model.folder and not model.fresh:
            raise ValueError(f"vectors.{name} is {path!r}, but {model.folder} has vectors of its own: leave it out")
        if recipe.subwords.kind != "words" and not model.folder:
            raise ValueError(
                f"vectors.{name} is {path!r}, but subwords.kind is {recipe.subwords.kind!r}, and pieces of words have no word "
                'vectors: set subwords.kind to "words"'
            )


def _check_model(recipe: Recipe) -> None:
    model, plain = recipe.model, ModelConfig()
    for name in ("name", "preset"):
        if model.folder and getattr(model, name) != getattr(plain, name):
            raise ValueError(
                f"model.{name} is {getattr(model, name)!r}, but the model is that of {model.folder}: leave it out"
            )
    longest = model.max_length or (None if model.folder else TransformerConfig.max_length)
    if recipe.task.name == "language" and recipe.filters != FiltersConfig():
        raise ValueError(
            "filters are for pairs: the text that a language model learns from is read as it stands, all of it"
        )
    least = recipe.filters.max_length >= 2
    if not least or (longest is not None and recipe.filters.max_length > longest):
        most = f", and at most model.max_length, {longest}" if longest else ""
        raise ValueError(f"filters.max_length is {recipe.filters.max_length}; it must be at least 2{most}")


def read(path: Path | None, changes: list[tuple[str, Any]]) -> Recipe:
    """A recipe from a file, or from the changes alone."""
    values = config.load_toml(path) if path is not None else {}
    for name, value in changes:
        config.override(values, name, value)
    values.setdefault("data", {})
    _go_with_model(values)
    try:
        if "distill" in values:
            raise ValueError(f"[distill] is about a student: heed distill TEACHER {path or ''}".rstrip())
        return config.read(Recipe, values)
    except ValueError as error:
        raise ValueError(f"{path}: {error}" if path is not None else str(error)) from error


def _go_with_model(values: dict[str, Any]) -> None:
    """What a language model learns goes without saying, and so does that its probabilities are not to be smoothed."""
    model = values.get("model")
    if isinstance(model, dict) and model.get("name") in TASKS["language"]:
        for section, name, value in (("task", "name", "language"), ("training", "label_smoothing", 0.0)):
            if isinstance(values.setdefault(section, {}), dict):
                values[section].setdefault(name, value)


def differences(before: Recipe, after: Recipe) -> list[tuple[str, Any, Any]]:
    """(section.name, before, after) of every setting that is not the same."""
    found = []
    for section in fields(Recipe):
        one, other = getattr(before, section.name), getattr(after, section.name)
        for part in fields(one):
            if getattr(one, part.name) != getattr(other, part.name):
                found.append((f"{section.name}.{part.name}", getattr(one, part.name), getattr(other, part.name)))
    return found
