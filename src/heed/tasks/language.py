"""Language modelling: predict each token of a text from those before it."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from torch import Tensor, nn

from heed.config import check_fraction
from heed.data.batching import DataPosition
from heed.data.filters import FiltersConfig
from heed.data.prepare import UNFILTERED, Learning, TextFiles, counted, digest, text_stream
from heed.data.readers import Line
from heed.data.streams import Window, Windows, join_lines, row_count
from heed.decoding.config import DecodingConfig
from heed.evaluation.perplexity import total_nll
from heed.models.abilities import ComputesLosses, ContinuesText
from heed.models.package import Package
from heed.products.generator import Generator
from heed.tasks.base import Metric, Objective, Prepared, Tell, Validation, ValidationResult
from heed.tasks.text import TextTask, validation_search
from heed.tasks.validation import sample_rows
from heed.training.loss import Loss, chunked_cross_entropy
from heed.vocabularies.vocabulary import Vocabulary

ROWS, LEAST = 32, 256  # a validation text is read in this many parts, none of fewer tokens
PROMPT, CONTINUATION = 8, 30  # tokens of a sample


@dataclass(frozen=True)
class LanguageSettings:
    window: int = 35  # tokens of a text that are read, and backpropagated through, at once
    label_smoothing: float = 0.0  # share of the probability that is spread over the vocabulary

    def __post_init__(self):
        if self.window < 1:
            raise ValueError(f"task.window is {self.window}; it must be at least 1")
        check_fraction("task.label_smoothing", self.label_smoothing)


class LanguageLoss:
    """Cross entropy, window after window. The state is carried over; gradients are not.

    (Truncated backpropagation through time: Williams and Peng, 1990.)
    """

    def __init__(self, smoothing: float = 0.0):
        self.smoothing = smoothing
        self.state: Any = None
        self.kept: list[tuple[Tensor, ...]] | None = None

    def __call__(self, model: ContinuesText, batch: Window) -> Loss:
        state = self._state(model, batch)
        states = model.hidden_states(batch.tokens, state)
        self.state = state.detach()
        expected = batch.expected.flatten()
        if isinstance(model, ComputesLosses):
            if self.smoothing:
                raise ValueError("task.label_smoothing is for models with one softmax; this one has none: leave it out")
            total = model.token_losses(states.flatten(0, 1), expected).sum()
            return Loss(total, total.detach(), batch.count)
        total, nll = chunked_cross_entropy(states.flatten(0, 1), *model.output_weights(), expected, self.smoothing)
        return Loss(total, nll, batch.count)

    def _state(self, model: ContinuesText, batch: Window) -> Any:
        """Where the text continues from."""
        kept, self.kept = self.kept, None
        if self.state is not None and not batch.begins:
            return self.state
        state = model.start(len(batch.tokens))
        if kept is not None and not batch.begins:
            state.layers = kept
        return state

    def recurrent_state(self) -> dict[str, Tensor]:
        """The state as tensors of a checkpoint, by layer and part."""
        layers = [] if self.state is None else self.state.layers
        return {f"{i}.{j}": part for i, layer in enumerate(layers) for j, part in enumerate(layer)}

    def restore_recurrent_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Continue from what `recurrent_state` gave."""
        layers: dict[int, dict[int, Tensor]] = {}
        for name, part in tensors.items():
            layer, number = map(int, name.split("."))
            layers.setdefault(layer, {})[number] = part
        found = [tuple(layer[j] for j in sorted(layer)) for _, layer in sorted(layers.items())]
        self.state, self.kept = None, found or None


class LanguageModelling(TextTask):
    name, title, example = "language", "Language model", "heed generate {}"
    Settings, needs, products = LanguageSettings, ContinuesText, (Generator,)
    unit, one_sided, filtered = "texts", True, False
    best, metrics = "loss", (Metric("loss", "loss", False, lambda: "-log p a token", 3),)

    def corpus_summaries(self, recipe: Any, prepared: Prepared) -> list[str]:
        return []  # one text: `notes` says how long it is

    def _check_tags(self, recipe: Any) -> None:
        super()._check_tags(recipe)
        for one in recipe.data.corpora:
            if one.weight != 1:
                raise ValueError(
                    f"data.corpora: {one.label} has the weight {one.weight:g}, but a language model reads its text once: leave it out"
                )

    def _check_length(self, recipe: Any) -> None:
        if recipe.filters != FiltersConfig():
            raise ValueError("filters are for pairs: a language model reads all of its text, unchanged")

    def prepare(self, recipe: Any, base: Package | None, tell: Tell) -> Prepared:
        """One text, line after line. Without another to validate on, its last lines are set aside."""
        files = TextFiles(recipe.data, one_sided=True)
        train, valid, held = files.train, files.valid(), 0
        if not valid:
            lines = sum(1 for _ in counted(files.train(), "counting", tell))
            if lines < 2:
                raise ValueError(
                    "data.source has one line, of which none can be set aside: name a text as data.valid_source"
                )
            held = min(files.data.holdout, max(1, lines // 10))
            train, valid = lambda: islice(files.train(), lines - held), list(islice(files.train(), lines - held, None))
        texts, earlier = files.key("language", held), files.key("language", held, edition=UNFILTERED)
        learning = Learning(recipe.subwords, recipe.model.vocabulary, one_sided=True)
        text = base.vocabularies[0] if base is not None else learning.pair(train, texts, tell)[0]
        key = digest(texts, text.key())
        stream = text_stream(key, train, text, held, tell)
        sizes = {} if base else {"vocab_size": len(text)}
        earlier = digest(earlier, text.key(), edition=UNFILTERED)
        return Prepared(key, stream, valid, {"text": text}, sizes, earlier_keys=[earlier])

    def objective(self, prepared: Prepared, teachers: Sequence[nn.Module] = ()) -> Objective:
        return LanguageLoss(self.settings.label_smoothing)

    def batches(
        self, recipe: Any, prepared: Prepared, plan: Any, share: tuple[int, int], position: DataPosition
    ) -> Iterator[tuple[DataPosition, Any]]:
        stream, t, length = prepared.train, recipe.training, self.settings.window
        rows = row_count(len(stream), t.batch_tokens, length)
        return Windows(stream.ids, stream.last, rows=rows, length=length, seed=t.seed, share=share).start(position)

    def longest(self, recipe: Any, prepared: Prepared, max_length: int) -> int:
        return 0  # a text is read window after window

    def validation(self, recipe: Any, prepared: Prepared) -> "LanguageValidation":
        return LanguageValidation(
            prepared.valid,
            prepared.processors["text"],
            search=validation_search(recipe),
            budget=recipe.training.valid_tokens,
            samples=recipe.training.samples,
        )

    def notes(self, recipe: Any, prepared: Prepared, validation: Validation, max_length: int) -> list[str]:
        if self.settings.window > max_length:
            raise ValueError(
                f"task.window is {self.settings.window}, but the model has positions for {max_length}: set it no higher"
            )
        return [*super().notes(recipe, prepared, validation, max_length), prepared.train.summary()]


class LanguageValidation:
    """The loss on a text, and how some of its lines might continue."""

    def __init__(
        self, lines: Sequence[Line], vocabulary: Vocabulary, *, search: DecodingConfig, budget: int, samples: int
    ):
        self.vocabulary, self.search, self.size = vocabulary, search, len(lines)
        ids = vocabulary.encode([line.source for line in lines])
        long = [line for line in ids if len(line) > PROMPT]
        self.shown = [long[i] for i in sample_rows(len(long), samples)]
        self.stream, self.budget = join_lines(ids, vocabulary.special.last), budget

    def run(self, model: nn.Module) -> ValidationResult:
        rows = max(1, min(ROWS, len(self.stream) // LEAST))
        length = min(max(1, self.budget // rows), model.config.max_length)
        windows = Windows(self.stream, self.vocabulary.special.last, rows=rows, length=length)
        return ValidationResult({"loss": total_nll(model, windows) / len(self.stream)}, self._samples(model))

    def facts(self, model: nn.Module) -> dict[str, Any]:
        return {}

    def too_long(self, max_length: int) -> int:
        return 0  # a text is read window after window

    def _samples(self, model: nn.Module) -> list[tuple[str, str, str]]:
        generator, decode = Generator(model, self.vocabulary), self.vocabulary.decode
        names = ("temperature", "top_k", "top_p", "seed", "no_repeat")
        search = {name: value for name, value in dataclasses.asdict(self.search).items() if name in names}
        samples = []
        for line in self.shown:
            prompt, rest = line[:PROMPT], line[PROMPT : PROMPT + CONTINUATION]
            found = generator.generate_ids(prompt, length=CONTINUATION, one_line=True, **search)[0]
            samples.append((decode(prompt), decode(rest), found.text.strip()))
        return samples
