"""The interface of a task: everything that differs between translation, language modelling, classification and the
rest.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from torch import nn

from heed.data.batching import DataPosition
from heed.models.package import Package
from heed.products.product import Product
from heed.training.loss import Loss

Tell = Callable[
    [str, int | None], None
]  # what is being done, and how much of it is done; None: a sentence for the user


class Metric(NamedTuple):
    """Declared once by a task; used by training, early stopping, log, curves, model card and page."""

    name: str
    label: str
    higher_is_better: bool
    meaning: Callable[[], str]  # for the model card: what the number means, or its signature
    decimals: int = 2
    optional: bool = False  # not measured under every setting of the task


@dataclass(frozen=True)
class Prepared:
    """Prepared data. `key` is a hash of files and settings.

    `sizes` fill the fields of a new model's config that the data determine; `defaults` those that the data suggest.
    `chosen` are settings that the recipe left open, by section.name. `renewed`: prefixes of the weights of a pre-trained model that are reinitialized for these data. `earlier_keys` are
    the keys of earlier versions for the same data. `valid_left_out` counts unused validation pairs by rule.
    """

    key: str
    train: Any
    valid: Any
    processors: Mapping[str, Any]
    sizes: Mapping[str, Any]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    earlier_keys: Sequence[str] = ()
    valid_left_out: Mapping[str, int] = field(default_factory=dict)
    renewed: Sequence[str] = ()
    chosen: Mapping[str, Any] = field(default_factory=dict)


class ValidationResult(NamedTuple):
    """`scores` by metric name, and with several directions also by name_direction; `samples` are (input, expected,
    output). `outputs` are all generated texts, if any; with several directions, `directions` says how many belong to
    each, in order.
    """

    scores: dict[str, float]
    samples: list[tuple[str, str, str]]
    outputs: Sequence[tuple[str, str, str]] = ()
    directions: Mapping[str, int] = MappingProxyType({})


@runtime_checkable
class Validation(Protocol):
    """A validation set, prepared once and run many times."""

    size: int

    def run(self, model: nn.Module) -> ValidationResult: ...

    def facts(self, model: nn.Module) -> dict[str, Any]:
        """What config.json of the model folder records from this validation."""

    def too_long(self, max_length: int) -> int:
        """How many texts are cut, or not in the loss, because they exceed the model's positions."""


Objective = Callable[[nn.Module, Any], Loss]


@dataclass(frozen=True)
class Task(ABC):
    """One object per run. It holds its settings and no other state."""

    settings: Any

    name: ClassVar[str]  # task.name in a recipe
    title: ClassVar[str]  # of the model card
    example: ClassVar[str]  # how the trained folder is used, with {} for its path
    unit: ClassVar[str] = "pairs"  # what the training data are counted in
    Settings: ClassVar[type]  # the [task] section
    sections: ClassVar[Mapping[str, type]]  # the other sections that it reads, by name; "data" is one of them
    needs: ClassVar[type]  # the Protocol of the models that it can train
    special_tokens: ClassVar[tuple[str, ...]] = ()  # that the vocabulary must have
    metrics: ClassVar[tuple[Metric, ...]]
    best: ClassVar[str]  # the metric that decides which model is best, unless a recipe names another
    perplexity: ClassVar[bool] = False  # whether the exponential of the loss is a perplexity
    searches: ClassVar[bool] = False  # whether its scores are those of texts that a search found
    fast_validation: ClassVar[bool] = False  # whether that may be the search of training.valid_engine
    final_names: ClassVar[tuple[str, ...]] = ()  # the files that `final_files` may write
    filtered: ClassVar[bool] = False  # whether the [filters] are applied to its data
    has_rules: ClassVar[bool] = False  # whether runs/defaults.py was measured for it
    products: ClassVar[tuple[type[Product], ...]]  # what a trained model can be to its user, the usual one first

    def usage(self, folder: Any, facts: Mapping[str, Any]) -> str:
        """A command that uses the trained folder; `facts` are those of its config.json."""
        return self.example.format(folder)

    def score(self, scores: Mapping[str, float], name: str) -> float:
        """The value that determines the best model, by the metric of this name; higher is better."""
        chosen = self._deciding(name)
        return scores[chosen.name] if chosen.higher_is_better else -scores[chosen.name]

    def describe_score(self, score: float, name: str) -> str:
        """What `score` returned, with its label."""
        chosen = self._deciding(name)
        return f"{chosen.label} {score if chosen.higher_is_better else -score:.{chosen.decimals}f}"

    def _deciding(self, name: str) -> Metric:
        return next(metric for metric in self.metrics if metric.name == (self.best if name == "auto" else name))

    def labels(self) -> dict[str, str]:
        return {metric.name: metric.label for metric in self.metrics}

    def metric_of(self, name: str) -> tuple[Metric, str] | None:
        """The metric of a score, and its label; bleu_en-de is BLEU of one direction. None for anything else."""
        first, _, part = name.partition("_")
        found = next((metric for metric in self.metrics if metric.name == first), None)
        return found and (found, f"{found.label} {part}".rstrip())

    def describe(self, scores: Mapping[str, float]) -> str:
        found = [(*self.metric_of(name), value) for name, value in scores.items()]
        return ", ".join(f"{label} {value:.{metric.decimals}f}" for metric, label, value in found)

    def describe_briefly(self, facts: Mapping[str, float]) -> str:
        """The loss and then the overall scores, for a line in the terminal."""
        found = sorted((metric for metric in self.metrics if metric.name in facts), key=lambda own: own.name != "loss")
        parts = [f"{metric.label} {facts[metric.name]:.{metric.decimals}f}" for metric in found]
        if "perplexity" in facts:
            parts.insert(1, f"perplexity {facts['perplexity']:,.2f}")
        return " · ".join(parts)

    @property
    def teachers(self) -> Sequence[str]:
        """The names of the teacher models."""
        return ()

    def check(self, recipe: Any) -> None:
        """Refuse settings of different sections that contradict each other."""
        return

    def check_base(self, recipe: Any, base: Package) -> None:
        """Refuse a pre-trained model that does not support this task."""
        return

    @abstractmethod
    def prepare(self, recipe: Any, base: Package | None, tell: Tell) -> Prepared:
        """Read the files, or reuse what an earlier run prepared. The processors of a pre-trained model are kept."""

    @abstractmethod
    def objective(self, prepared: Prepared, teachers: Sequence[nn.Module] = ()) -> Objective:
        """The training objective: from a model and a batch to the loss. With a method `packed` it also supports
        packed batches.
        """

    @abstractmethod
    def validation(self, recipe: Any, prepared: Prepared) -> Validation: ...

    @abstractmethod
    def batches(
        self, recipe: Any, prepared: Prepared, plan: Any, share: tuple[int, int], position: DataPosition
    ) -> Iterator[tuple[DataPosition, Any]]:
        """The batches from a position on, endlessly; `share` is (rank, world size). Each depends on (seed, epoch,
        index).
        """

    def longest(self, recipe: Any, prepared: Prepared, max_length: int) -> int:
        """The maximum number of tokens of a training text; 0 if texts are split into windows."""
        return 0

    def data_summary(self, prepared: Prepared) -> str:
        """A sentence on the amount of training data, and what was filtered."""
        return f"{len(prepared.train):,} {self.unit} to train on."

    def notes(self, recipe: Any, prepared: Prepared, validation: Validation, max_length: int) -> list[str]:
        """Warnings for the user before training starts."""
        return []

    def facts(self, recipe: Any, prepared: Prepared, base: Mapping[str, Any]) -> dict[str, Any]:
        """What config.json of the model folder records; `base` is the metadata of the pre-trained model."""
        return {}

    def trained_on(self, recipe: Any, prepared: Prepared) -> dict[str, Any]:
        """What config.json of the model folder says about the data; no texts or names, since models are shared."""
        return {}

    def card_rows(self, recipe: Any, prepared: Prepared, facts: Mapping[str, Any]) -> dict[str, str]:
        """Rows of the model card about the data."""
        return {}

    def kept_files(self, prepared: Prepared) -> Sequence[Path]:
        """Files of the prepared data to keep in the run folder."""
        return ()

    def final_search(
        self, recipe: Any, model: nn.Module, validation: Validation, seconds: float | None = None
    ) -> tuple[Any, str] | None:
        """Search settings of the finished model chosen on the validation set, within some seconds if given, and a
        sentence; None keeps the recipe's, and so does None as settings.
        """
        return None

    def final_costs(self, prepared: Prepared, validation: Validation, beam: int, tuned: bool) -> tuple[float, float]:
        """What `final_search` and `final_files` take, in validations. `beam` is that of the search settings; a `tuned`
        model, trained before, gets no files.
        """
        return 0.0, 0.0

    def final_files(self, model: nn.Module, prepared: Prepared, validation: Validation) -> dict[str, str]:
        """Additional text files of the finished model folder, by name."""
        return {}
