"""Translation: learn from pairs of texts to generate the second from the first. Also used for summaries."""

import logging
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from torch import nn

from heed.config import check_fraction, check_not_negative
from heed.convert import ctranslate2
from heed.convert.ctranslate2_names import names
from heed.data import shortlist
from heed.data.batching import collate
from heed.data.readers import Line
from heed.decoding.config import DecodingConfig
from heed.evaluation import rouge
from heed.evaluation.translation import metrics, signature
from heed.models.abilities import EncodesAndDecodes
from heed.models.package import Package
from heed.products.summarizer import Summarizer
from heed.products.translator.attention_trace import AlignmentRows, choose_rows
from heed.products.translator.engines.validation import EngineMaker, ValidationEngines, only_torch
from heed.products.translator.translator import Translator
from heed.tasks import length_penalty
from heed.tasks.base import Metric, Objective, Prepared, Tell, Validation, ValidationResult
from heed.tasks.sequence_loss import CrossEntropy, Distilled, RDrop
from heed.tasks.shortlist import CHECKED, choose
from heed.tasks.text import TextTask, max_source
from heed.tasks.validation import (
    describe_rules,
    mean_nll,
    sample_rows,
    short_enough,
    validation_search,
    within_limits,
)
from heed.vocabularies.tags import is_language_tag
from heed.vocabularies.vocabulary import Pair

LARGE = 4000  # target subwords: with fewer, a shortlist saves little
PLAIN_COST = 8  # of a plain search, which a shortlist needs, in validations by the GPU search


@dataclass(frozen=True)
class TranslationSettings:
    label_smoothing: float = 0.1  # label smoothing: probability mass spread over the vocabulary
    r_drop: float = 0.0  # weight of R-Drop (5 is usual); 0 is off
    teacher: list[str] = field(
        default_factory=list
    )  # teacher with the same vocabulary, to distill from (docs/guides/distill.md)
    tune_length_penalty: int = (
        0  # tune the length penalty of the trained model on this many validation sentences; 0 is off
    )
    distillation: float = 0.5  # weight of the distillation loss

    def __post_init__(self):
        check_fraction("task.label_smoothing", self.label_smoothing)
        check_not_negative("task.r_drop", self.r_drop)
        check_not_negative("task.tune_length_penalty", self.tune_length_penalty)
        if not 0 < self.distillation <= 1:
            raise ValueError(f"task.distillation is {self.distillation}; it must be above 0 and at most 1")
        if any(self.teacher) and self.r_drop:
            names = ", ".join(filter(None, self.teacher))
            raise ValueError(f"task.teacher is {names!r} and task.r_drop is {self.r_drop}: use only one of them")


class Translation(TextTask):
    name, title, example = "translation", "Translator, {source} to {target}", "heed translate {} < text"
    perplexity = searches = fast_validation = True
    Settings, needs, products = TranslationSettings, EncodesAndDecodes, (Translator, Summarizer)
    directed, samples_subwords, final_names = True, True, (shortlist.FILE,)
    best, has_rules = "chrf", True
    metrics = (
        Metric("bleu", "BLEU", True, lambda: signature("bleu")),
        Metric("chrf", "chrF", True, lambda: signature("chrf")),
        Metric("rouge", "ROUGE-L", True, lambda: "F1, words lower-cased"),
        Metric("loss", "loss", False, lambda: "-log p per token", 3),
    )

    @property
    def teachers(self) -> Sequence[str]:
        return [name for name in self.settings.teacher if name]

    def usage(self, folder: Any, facts: Mapping[str, Any]) -> str:
        directions = facts.get("directions") or []
        if len(directions) < 2:
            return super().usage(folder, facts)
        own = list((facts.get("languages") or {}).values())  # of the data, where they have one direction
        source, target = own if own in directions else directions[0]
        several = sum(other == target for _, other in directions) > 1  # then the target alone does not say which
        return super().usage(f"{folder}{f' --from {source}' * several} --to {target}", facts)

    def prepare(self, recipe: Any, base: Package | None, tell: Tell) -> Prepared:
        found = super().prepare(recipe, base, tell)
        pair = tuple(found.processors.values())
        kept, left_out = within_limits(found.valid, pair, recipe.filters, found.train.prefixes)
        return replace(found, valid=kept, valid_left_out=left_out)

    def objective(self, prepared: Prepared, teachers: Sequence[nn.Module] = ()) -> Objective:
        s = self.settings
        if teachers:
            return Distilled(tuple(teachers), s.label_smoothing, s.distillation)
        return RDrop(s.label_smoothing, s.r_drop) if s.r_drop else CrossEntropy(s.label_smoothing)

    def validation(self, recipe: Any, prepared: Prepared) -> "TranslationValidation | DirectionsValidation":
        source, target = prepared.processors.values()
        lines: dict[tuple[str | None, str], list[Line]] = {}  # by the tag of their language, and by direction
        tags, parts = getattr(source, "tags", {}), [] if recipe.data.phrasebook else recipe.data.parts
        for line in prepared.valid:
            names = [name for name, i in tags.items() if i in prepared.train.prefixes[line.corpus]]
            tag = next((name for name in names if is_language_tag(name)), None)
            pair = recipe.data.direction(parts[line.corpus]) if tag else ()
            lines.setdefault((tag, "-".join(map(str, pair))), []).append(line)
        options = {
            "search": validation_search(recipe),
            "max_source": max_source(prepared),
            "budget": recipe.training.valid_tokens,
            "samples": -(-recipe.training.samples // len(lines)),
            "engines": ValidationEngines() if recipe.training.valid_engine == "cuda" else only_torch,
        }
        each = {
            name: TranslationValidation(own, (source.with_tag(tag) if tag else source, target), **options)
            for (tag, name), own in lines.items()
        }
        return DirectionsValidation(each) if len(each) > 1 else next(iter(each.values()))

    def trained_on(self, recipe: Any, prepared: Prepared) -> dict[str, Any]:
        found = {"pairs": prepared.train.report.kept}
        if recipe.data.phrasebook:
            from heed.data.synthetic import phrasebook  # its tables are read when it is imported

            found |= {"corpus": "phrasebook", "examples": list(phrasebook.EXAMPLES)}
        return found

    def notes(self, recipe: Any, prepared: Prepared, validation: Validation, max_length: int) -> list[str]:
        notes = super().notes(recipe, prepared, validation, max_length)
        if unused := sum(prepared.valid_left_out.values()):
            read, why = unused + len(prepared.valid), describe_rules(prepared.valid_left_out)
            notes.append(f"{unused:,} of {read:,} validation pairs are not used: {why}.")
        if self.teachers:
            target = "the teacher's distribution" if len(self.teachers) == 1 else "the teachers' mean distribution"
            notes.append(f"{target} is the target of {self.settings.distillation:.0%} of the loss.")
        return notes

    def final_search(
        self,
        recipe: Any,
        model: nn.Module,
        validation: "TranslationValidation | DirectionsValidation",
        seconds: float | None = None,
    ) -> tuple[DecodingConfig | None, str] | None:
        each = list(validation.each.values()) if isinstance(validation, DirectionsValidation) else [validation]
        sets, count = [(own.vocabularies, own.pairs) for own in each], self.settings.tune_length_penalty
        given = recipe.decoding, count, recipe.training.valid_tokens, each[0].engines
        if not count or recipe.decoding.beam == 1 or recipe.decoding.sample:
            return None
        if seconds is not None and (count := length_penalty.affordable(model, sets, *given, seconds)) == 0:
            return None, f"Length penalty kept at {recipe.decoding.length_penalty:g}: no time is left for tuning it."
        found = length_penalty.choose(model, sets, given[0], count, *given[2:])
        if found is None:
            return None
        return replace(recipe.decoding, length_penalty=found.alpha), found.describe()

    def final_costs(
        self, prepared: Prepared, validation: "TranslationValidation | DirectionsValidation", beam: int, tuned: bool
    ) -> tuple[float, float]:
        """A beam costs about half as much as its greedy searches; for a shortlist, two sizes are tried, by the plain
        search.
        """
        tuning = min(self.settings.tune_length_penalty, validation.size) * beam / 2 if beam > 1 else 0.0
        large = len(tuple(prepared.processors.values())[1]) >= LARGE
        listed = large and not tuned
        first = next(iter(validation.each.values())) if isinstance(validation, DirectionsValidation) else validation
        each = PLAIN_COST if listed and getattr(first.engines, "fast", False) else 1
        files = 3 * each * min(CHECKED, validation.size) if listed else 0
        return tuning / validation.size, files / validation.size

    def final_files(
        self, model: nn.Module, prepared: Prepared, validation: "TranslationValidation | DirectionsValidation"
    ) -> dict[str, str]:
        """A lexical shortlist for a large vocabulary, if the validation set of each direction is translated as well
        with it.
        """
        source, target = pair = tuple(prepared.processors.values())
        each = list(validation.each.values()) if isinstance(validation, DirectionsValidation) else [validation]
        tags = {i for name, i in getattr(source, "tags", {}).items() if is_language_tag(name)}
        untagged = len(each) > 1 and not all(tags.intersection(prefix) for prefix in prepared.train.prefixes)
        if len(target) < LARGE or not ctranslate2.able(model) or untagged:
            return {}
        table = shortlist.learn(prepared.train, pair, tags if len(each) > 1 else ())
        few = choose(model, [(own.vocabularies, own.pairs) for own in each], table, each[0].budget)
        if few is None:
            return {}
        return {shortlist.FILE: shortlist.to_text(few, (names(source), names(target)))}


class TranslationValidation:
    """Loss, BLEU, chrF and ROUGE of translations."""

    def __init__(
        self,
        lines: Sequence[Line],
        vocabularies: Pair,
        *,
        search: DecodingConfig,
        max_source: int | None,
        budget: int,
        samples: int,
        engines: EngineMaker = only_torch,
    ):
        self.engines = engines
        self.sources = [vocabularies[0].clean(line.source) for line in lines]
        self.references = [vocabularies[1].clean(line.target) for line in lines]
        self.vocabularies, self.search, self.max_source = vocabularies, search, max_source
        self.budget, self.size, self.shown = budget, len(lines), sample_rows(len(lines), samples)
        sides = zip(vocabularies, (self.sources, self.references), strict=True)
        self.ids = [vocabulary.encode(texts) for vocabulary, texts in sides]

    def run(self, model: nn.Module) -> ValidationResult:
        model.eval()
        translator = Translator([model], self.vocabularies, decoding=self.search, max_source=self.max_source)
        translator.engines = self.engines(translator.bundle)
        found = [t.text for t in translator.translate(self.sources, batch_tokens=self.budget)]
        outputs = list(zip(self.sources, self.references, found, strict=True))
        samples = [outputs[i] for i in self.shown]
        logging.getLogger("sacrebleu").setLevel(logging.ERROR)  # output of an untrained model looks tokenized to it
        bleu, chrf = (m.corpus_score(found, [self.references]).score for m in metrics(False, "13a")[:2])  # TER is slow
        overlap = 100 * rouge.score(found, self.references).longest.f1
        scores = {"loss": self.loss(model), "bleu": bleu, "chrf": chrf, "rouge": overlap}
        return ValidationResult(scores, samples, outputs)

    def part(self, count: int) -> "TranslationValidation":
        """The validation of some of its texts, spread over all."""
        rows, found = sample_rows(self.size, count), copy(self)
        found.sources, found.references = ([texts[row] for row in rows] for texts in (self.sources, self.references))
        found.ids = [[own[row] for row in rows] for own in self.ids]
        found.size, found.shown = len(rows), []
        return found

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return list(zip(self.sources, self.references, strict=True))

    def facts(self, model: nn.Module) -> dict[str, Any]:
        return {"alignment": self.alignment_rows(model)._asdict()}

    def too_long(self, max_length: int) -> int:
        return sum(max(map(len, pair)) >= max_length for pair in zip(*self.ids, strict=True))

    def alignment_rows(self, model: nn.Module) -> AlignmentRows:
        """Where this model's word alignments are read."""
        most = min(60, model.config.max_length - max(len(v.special.before) for v in self.vocabularies))
        pairs = [pair for pair in zip(*self.ids, strict=True) if all(0 < len(side) < most for side in pair)][:200]
        if not pairs:
            return AlignmentRows(model.config.decoder_layers - 1, after=False)
        return choose_rows(model.eval(), pairs, self.vocabularies)

    def loss(self, model: nn.Module) -> float:
        """The mean nll of a reference token. Pairs too long for the model are ignored."""
        special = self.vocabularies[0].special, self.vocabularies[1].special
        pairs = short_enough(
            list(zip(*self.ids, strict=True)), model.config.max_length - max(len(m.before) for m in special)
        )
        return mean_nll(
            model, CrossEntropy(0.0), pairs, lambda own: collate(*zip(*own, strict=True), special), self.budget
        )


class DirectionsValidation:
    """The scores of each direction, and their means, which determine the best model."""

    def __init__(self, each: Mapping[str, TranslationValidation]):
        self.each, self.size = each, sum(own.size for own in each.values())

    def part(self, count: int) -> "DirectionsValidation":
        share = max(1, count // len(self.each))
        return DirectionsValidation({name: own.part(share) for name, own in self.each.items()})

    def run(self, model: nn.Module) -> ValidationResult:
        found = {name: own.run(model) for name, own in self.each.items()}
        metrics = next(iter(found.values())).scores
        means = {metric: sum(own.scores[metric] for own in found.values()) / len(found) for metric in metrics}
        split = {f"{metric}_{name}": own.scores[metric] for metric in metrics for name, own in found.items()}
        samples, outputs = ([row for own in found.values() for row in own[part]] for part in (1, 2))
        return ValidationResult(
            {**means, **split}, samples, outputs, {name: len(own.outputs) for name, own in found.items()}
        )

    def facts(self, model: nn.Module) -> dict[str, Any]:
        return next(iter(self.each.values())).facts(model)  # alignments are read at one place for all

    def too_long(self, max_length: int) -> int:
        return sum(own.too_long(max_length) for own in self.each.values())
