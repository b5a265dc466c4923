"""Denoising (BART: Lewis et al., 2020): restore a text from a corrupted copy of it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from torch import nn

from heed.config import check_fraction
from heed.data.batching import Noise, collate_masked
from heed.data.noise import Denoise, sentence_ends
from heed.data.readers import Line
from heed.decoding.config import DecodingConfig
from heed.models.abilities import EncodesAndDecodes
from heed.models.package import Package
from heed.products.summarizer import Summarizer
from heed.products.translator.translator import Translator
from heed.tasks.base import Metric, Objective, Prepared, ValidationResult
from heed.tasks.sequence_loss import CrossEntropy
from heed.tasks.text import TextTask
from heed.tasks.validation import mean_nll, sample_rows, short_enough, validation_search
from heed.vocabularies.vocabulary import Pair, Vocabulary


@dataclass(frozen=True)
class DenoisingSettings:
    infill: float = 0.3  # share of tokens in spans that are each replaced by one mask
    mask: float = 0.0  # share of tokens replaced by a mask
    delete: float = 0.0  # share of tokens that are deleted
    permute: float = 1.0  # probability that the sentences of a text are shuffled
    rotate: float = 0.0  # probability that a text is rotated to begin at a random token
    label_smoothing: float = 0.1  # label smoothing: probability mass spread over the vocabulary

    def __post_init__(self):
        check_fraction("task.label_smoothing", self.label_smoothing)


class Restoration(TextTask):
    """A task in which one text is corrupted and restored."""

    needs, products, unit, one_sided = EncodesAndDecodes, (Translator, Summarizer), "texts", True
    example: ClassVar[str] = "heed train --from {} --source … --target … --out …"
    perplexity, best, metrics = True, "loss", (Metric("loss", "loss", False, lambda: "-log p per token", 3),)

    def objective(self, prepared: Prepared, teachers: Sequence[nn.Module] = ()) -> Objective:
        return CrossEntropy(self.settings.label_smoothing)

    def validation(self, recipe: Any, prepared: Prepared) -> "RestorationValidation":
        return RestorationValidation(
            prepared.valid,
            tuple(prepared.processors.values()),
            self.noise(prepared),
            search=validation_search(recipe),
            budget=recipe.training.valid_tokens,
            samples=recipe.training.samples,
        )


class Denoising(Restoration):
    name, title, Settings = "denoising", "Pre-trained by denoising", DenoisingSettings
    special_tokens = ("mask",)

    def check_base(self, recipe: Any, base: Package) -> None:
        super().check_base(recipe, base)
        if base.vocabularies[0].special.mask is None and (self.settings.infill or self.settings.mask):
            raise ValueError(
                f"{recipe.model.folder} has a vocabulary without a mask token, which {self.name} needs: start from a "
                "BART or a Pegasus"
            )

    def noise(self, prepared: Prepared) -> Noise:
        vocabulary, s = next(iter(prepared.processors.values())), self.settings
        ends, keep = sentence_tokens(vocabulary)
        rates = {"infill": s.infill, "mask": s.mask, "delete": s.delete, "permute": s.permute, "rotate": s.rotate}
        return Denoise(vocabulary.special, ends, keep, **rates)


def sentence_tokens(vocabulary: Vocabulary) -> tuple[Any, tuple[int, ...]]:
    """The tokens that end a sentence, and those (<unk_7> and the like) that are neither hidden nor used as
    replacements.
    """
    pieces = vocabulary.pieces(range(len(vocabulary)))
    keep = tuple(i for i, piece in enumerate(pieces) if re.fullmatch(r"<(?!0x)\w+>", piece))
    return sentence_ends(pieces), keep


class RestorationValidation:
    """The loss on corrupted texts, the same corruption each time."""

    def __init__(
        self,
        lines: Sequence[Line],
        vocabularies: Pair,
        noise: Noise,
        *,
        search: DecodingConfig,
        budget: int,
        samples: int,
    ):
        self.vocabularies, self.search, self.budget, self.size = vocabularies, search, budget, len(lines)
        random = np.random.default_rng(0)
        ids = vocabularies[0].encode([line.source for line in lines])
        self.examples = [noise(np.asarray(text, dtype=np.int64), random) for text in ids]
        self.shown = sample_rows(len(lines), samples)

    def run(self, model: nn.Module) -> ValidationResult:
        model.eval()
        special = self.vocabularies[0].special, self.vocabularies[1].special
        most = model.config.max_length - len(special[0].before)
        examples = short_enough(self.examples, most)
        loss = mean_nll(model, CrossEntropy(0.0), examples, lambda own: collate_masked(own, special), self.budget)
        return ValidationResult({"loss": loss}, self._samples(model, most))

    def facts(self, model: nn.Module) -> dict[str, Any]:
        return {}

    def too_long(self, max_length: int) -> int:
        return sum(max(len(example[0]), len(example[1])) >= max_length for example in self.examples)

    def _samples(self, model: nn.Module, most: int) -> list[tuple[str, str, str]]:
        source, target = self.vocabularies
        translator = Translator([model], self.vocabularies, decoding=self.search)
        own = [self.examples[i] for i in self.shown if len(self.examples[i][0]) < most]
        found = translator.search_ids([list(map(int, e[0])) for e in own], self.search, [[] for _ in own])
        corrupted = ["".join(source.pieces(e[0].tolist())).replace("▁", " ").strip() for e in own]
        expected = [target.decode(e[1].tolist()) for e in own]
        return list(zip(corrupted, expected, [target.decode(best[0].tokens) for best in found], strict=True))
