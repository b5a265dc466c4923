"""Collect the findings of a report from a run folder. Stored translations are reused; the rest is computed now."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from heed.config import read as read_config
from heed.data import contamination
from heed.data.contamination import Seen
from heed.data.corpus import Corpus, CorpusSide
from heed.decoding.config import UNGUARDED
from heed.device import choose_device
from heed.evaluation.analysis import analyze, count_words, words
from heed.evaluation.comparison import compare, half_widths
from heed.evaluation.sentence_scores import score_sentences
from heed.evaluation.translation import score
from heed.loading import load, open_package
from heed.models import folder as model_folder
from heed.runs import final_validation, model_card, saved_recipe, trained_texts
from heed.runs.final_validation import FinalValidation
from heed.runs.recipe import Recipe, read
from heed.runs.report.findings import Against, Findings, Outputs, SetScores, TrainingText
from heed.runs.report.log import read_training
from heed.tasks.base import Prepared
from heed.tasks.validation import validation_search
from heed.training import checkpoints

DECODED = 1000  # texts at a time
MOST_PAIRS = 500_000  # of the training text that are read to count words: seconds, not minutes

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """What to analyse: `test` are sources and references; `against` another run, None for the previous one, "" for
    none.
    """

    test: tuple[list[str], list[str]] | None = None
    against: str | None = None
    device: str = "auto"
    direction: tuple[str | None, str | None] = (None, None)  # of the test set, for a model of several
    lowercase: bool = False
    tokenize: str = "13a"

    @property
    def scoring(self) -> dict[str, Any]:
        return {"lowercase": self.lowercase, "tokenize": self.tokenize}


def collect(folder: Path, options: Options, tell: Tell = lambda what: None) -> Findings:
    """Analyse a run; what its task lacks, or what can no longer be measured, is skipped with a note."""
    recipe, notes = _recipe(folder), []
    task = recipe.task
    log = read_training(folder, [metric.name for metric in task.metrics])
    if not (folder / "model" / model_folder.CONFIG).is_file():
        raise ValueError(f"{folder} has no model yet: its training has not reached its first validation")
    kept, prepared = final_validation.read(folder), None
    if kept is None or kept.outputs:
        tell("reading the training text")
        prepared = _prepared(recipe, folder, notes)
    if kept is None and prepared is not None:
        tell("validating")
        kept = _validate(recipe, folder, prepared, options.device)
    facts = model_folder.read_config(folder / "model")
    recipe = _as_finished(recipe, facts)
    title, data = model_card.title(recipe, facts), kept.data if kept else {}
    scores = kept.scores if kept else _recorded(facts)
    report = getattr(getattr(prepared, "train", None), "report", None)
    findings = Findings(folder, title, recipe, log, facts["model"], scores, data, report, notes=notes)
    if kept and not kept.outputs and options.test is not None:
        raise ValueError(f"{folder} was trained for {task.name}: --source and --reference are for translation")
    if (kept and kept.outputs) or options.test is not None:
        return _with_translations(findings, kept, prepared, options, tell)
    return findings


def _recorded(facts: Mapping[str, Any]) -> dict[str, float]:
    """The scores in config.json of the model folder."""
    trained = facts.get("trained", {}).items()
    return {name.removeprefix("valid_"): value for name, value in trained if name.startswith("valid_")}


def _recipe(folder: Path) -> Recipe:
    if not (folder / "recipe.toml").is_file():
        raise ValueError(f"{folder} is not a run: it has no recipe.toml; give a folder written by heed train")
    run = None
    for path in checkpoints.list_checkpoints(folder / "checkpoints"):
        with suppress(ValueError):  # resuming tells of a damaged one
            run = checkpoints.read_state(path).get("run")
    saved_recipe.check_run(folder / "recipe.toml", run)
    return read(folder / "recipe.toml", [], saved=True)


def _as_finished(recipe: Recipe, facts: Mapping[str, Any]) -> Recipe:
    """The recipe with the search settings of the model: its length penalty may have been tuned at the end."""
    if recipe.decoding is None:
        return recipe
    return dataclasses.replace(recipe, decoding=read_config(type(recipe.decoding), facts.get("decoding", {})))


def _prepared(recipe: Recipe, folder: Path, notes: list[str]) -> Prepared | None:
    """The data of the run, cached if possible, with the trained model's own vocabulary."""
    if recipe.filters is not None:
        recipe = dataclasses.replace(recipe, filters=dataclasses.replace(recipe.filters, rejected=None))
    base = open_package(folder / "model")
    try:
        return recipe.task.prepare(recipe, base, lambda what, done: None)
    except (ValueError, OSError) as error:
        notes.append(f"The training text could not be read again ({error}), so it is not covered here.")
        return None


def _validate(recipe: Recipe, folder: Path, prepared: Prepared, device: str) -> FinalValidation:
    """The model's outputs on the validation set, as at the end of training."""
    model = open_package(folder / "model").model.to(choose_device(device))
    found = recipe.task.validation(recipe, prepared).run(model)
    facts = model_folder.read_config(folder / "model")
    data = recipe.task.card_rows(recipe, prepared, facts)
    return FinalValidation(found.scores, list(found.outputs), data, found.directions)


def _with_translations(
    findings: Findings, kept: FinalValidation | None, prepared: Prepared | None, options: Options, tell: Tell
) -> Findings:
    tell("scoring")
    recipe, name, outputs = findings.recipe, "validation set", kept.outputs if kept else []
    beam, each = validation_search(recipe).beam, kept.by_direction() if kept else {}
    sets = [_scored(f"{name}, {direction}", rows, beam, options) for direction, rows in each.items()]
    sets += [_scored(f"{name}, all directions combined" if each else name, outputs, beam, options)] if outputs else []
    if options.test is not None:
        tell("translating the test set")
        sources, references = options.test
        outputs = list(zip(sources, references, _translate(findings.folder, sources, options), strict=True))
        found = _scored(name := "test set", outputs, recipe.decoding.beam, options)
        sets.append(dataclasses.replace(found, guarded=recipe.decoding.avoid_loops))
    sources, references, hypotheses = map(list, zip(*outputs, strict=True))
    text = training_text(prepared, references) if prepared is not None else None
    seen, notes = _seen(findings.folder, sources, references)
    against = _against(findings.folder, outputs, name == "test set", options, tell)
    return dataclasses.replace(
        findings,
        sets=sets,
        sentences=score_sentences(hypotheses, [references], sources=sources, **options.scoring),
        analysis=analyze(sources, references, hypotheses, text and text.frequencies, **options.scoring),
        text=text,
        seen=seen,
        against=against,
        notes=[*findings.notes, *notes],
    )


def _scored(name: str, outputs: Outputs, beam: int, options: Options) -> SetScores:
    _, references, hypotheses = map(list, zip(*outputs, strict=True))
    widths = half_widths(hypotheses, [references], **options.scoring)
    return SetScores(name, score(hypotheses, [references], **options.scoring), widths, beam)


def _translate(folder: Path | str, sources: list[str], options: Options, **search: Any) -> list[str]:
    translator = load(folder, options.device, "torch", "translate").toward(*options.direction)
    return [found.text for found in translator.translate(sources, **search)]


def _seen(folder: Path, sources: list[str], references: list[str]) -> tuple[Seen | None, list[str]]:
    """How many pairs were trained on, as heed evaluate counts them, and notes."""
    try:
        trained = trained_texts.of_model(folder / "model")
    except ValueError as error:
        return None, [f"Whether the model was trained on these pairs is not covered here ({error})."]
    if trained is None:
        return None, [f"Not known: whether the model was trained on these pairs (it has no {contamination.FILE})."]
    unknown = "Not known: whether the model that training started from was trained on these pairs."
    return contamination.count_seen(trained, sources, [references]), [] if trained.known else [unknown]


def training_text(prepared: Prepared, references: list[str]) -> TrainingText:
    """Count the words of the references in the training text."""
    corpus, vocabularies = prepared.train, tuple(prepared.processors.values())
    wanted = {word for reference in references for word in words(reference)}
    counts = count_words(_texts(corpus, corpus.target, vocabularies[1]), wanted)
    return TrainingText(len(corpus), min(len(corpus), MOST_PAIRS), counts)


def _texts(corpus: Corpus, side: CorpusSide, vocabulary: Any) -> Iterator[str]:
    """One side of the corpus as trained on: without what was filtered or held out."""
    count = min(len(corpus), MOST_PAIRS)
    if side.text is not None:
        yield from (side.text[i] for i in range(count))
        return
    for start in range(0, count, DECODED):
        yield from vocabulary.decode_all([side[i].tolist() for i in range(start, min(start + DECODED, count))])


def _against(folder: Path, outputs: Outputs, is_test: bool, options: Options, tell: Tell) -> Against | None:
    """The comparison with the other run; None without one, or if it is this run itself."""
    other = options.against if options.against is not None else run_before(folder, outputs, is_test)
    if not other:
        return None
    sources, references, hypotheses = map(list, zip(*outputs, strict=True))
    before = None if is_test else _kept_translations(Path(other), outputs)
    if before is None:
        tell(f"translating with {other}")
        before = _translate(other, sources, options) if is_test else _validated_by(other, folder, outputs, options)
    tell("comparing")
    return Against(Path(other).name, compare(before, hypotheses, [references], **options.scoring))


def _validated_by(other: str, folder: Path, outputs: Outputs, options: Options) -> list[str]:
    """The outputs of another model on the validation set of a run, direction by direction."""
    recipe, kept = _recipe(folder), final_validation.read(folder)
    beam, rows = validation_search(recipe).beam, iter(outputs)
    pairs = {"-".join(map(str, pair)): pair for pair in recipe.data.directions}
    each = kept.directions if kept is not None and kept.directions else {"": len(outputs)}
    found = []
    for name, count in each.items():
        way = dataclasses.replace(options, direction=pairs.get(name, (None, None)))
        found += _translate(other, [row[0] for row in islice(rows, count)], way, beam=beam, **UNGUARDED)
    return found


def run_before(folder: Path, outputs: Outputs, is_test: bool = False) -> str | None:
    """The latest other run in the same folder that finished before this one and was validated on the same sentences."""
    ended = _ended(folder)
    if is_test or ended is None:
        return None
    found = []
    for path in folder.resolve().parent.iterdir():
        if path != folder.resolve() and (when := _ended(path)) is not None and when < ended:
            found.append((when, path))
    return next((str(path) for _, path in sorted(found, reverse=True) if _kept_translations(path, outputs)), None)


def _ended(folder: Path) -> int | None:
    path = folder / final_validation.FILE
    return path.stat().st_mtime_ns if path.is_file() else None


def _kept_translations(folder: Path, outputs: Outputs) -> list[str] | None:
    """The outputs of another run on the same sentences, if they were stored."""
    try:
        kept = final_validation.read(folder)
    except ValueError:
        return None
    if kept is None or [row[:2] for row in kept.outputs] != [row[:2] for row in outputs]:
        return None
    return [row[2] for row in kept.outputs]
