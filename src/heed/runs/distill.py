"""A student's corpus: the translations of its teacher (sequence-level distillation: Kim and Rush, 2016), written in
blocks.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from heed import config
from heed.data import staged
from heed.data.config import DataConfig
from heed.files import write_text
from heed.loading import load
from heed.products.translator import stages
from heed.products.translator.translator import Translator
from heed.runs import saved_recipe
from heed.runs.distill_config import DistillConfig
from heed.runs.distill_corpus import TaughtText, has_references, with_targets
from heed.runs.distill_corpus import read as read_text
from heed.runs.distill_stages import teaching_search, teaching_stages
from heed.runs.distilled_files import Blocks, check_count, check_same, count_lines
from heed.runs.earlier import upgraded
from heed.runs.recipe import Recipe, parse
from heed.runs.teacher import WEIGHTS, check_weights
from heed.runs.teacher import check as check_teacher
from heed.vocabularies import folder as vocabularies
from heed.vocabularies.sentencepiece import Subwords

FOLDER, PLAN, STUDENT, BLOCKS = "distilled", "plan.toml", "student.toml", "blocks.json"
SOURCE, TARGET, REFERENCE = "source.txt", "target.txt", "reference.txt"
VALID = ("valid.source.txt", "valid.target.txt")
BLOCK = stages.CHUNK  # sentences that are translated and written together; an engine may need more to be busy

Tell = Callable[[str, int, int], None]  # what is being done, how much of it is done, and the total (0: not known yet)


@dataclass(frozen=True)
class Plan:
    """The recipe of a student; `data` is what the teacher translates, and may lack references."""

    recipe: Recipe
    data: DataConfig
    distill: DistillConfig

    @property
    def referenced(self) -> bool:
        """Whether every text has a reference."""
        return all(map(has_references, self.data.parts)) if not self.data.phrasebook else True

    def to_toml(self) -> str:
        sections = self.recipe.sections()
        return config.to_toml({**sections, "data": config.plain(self.data), "distill": asdict(self.distill)})

    def __post_init__(self):
        d, recipe = self.distill, self.recipe
        if not d.teacher:
            raise ValueError("distill.teacher: set the teacher model: a run, a folder or a name on the hub")
        _check_task(recipe.task.name)
        if len(ways := self.data.directions) > 1:
            named = ", ".join(f"{source} to {target}" for source, target in ways)
            raise ValueError(
                f"data.corpora: a student learns one direction, and these are {named}: give the corpora of one"
            )
        if self.data.phrasebook:
            raise ValueError("data.phrasebook: the teacher needs files; heed phrasebook --out FOLDER writes them")
        for name, asked in (("nbest", d.nbest > d.take), ("mix", d.mix)):
            if asked and not self.referenced:
                value = getattr(d, name)
                raise ValueError(f"distill.{name} is {value}, which needs references: set data.target")
        self._check_soft()
        if d.vocabulary == "teacher" and not recipe.model.folder:
            given = (("model.name", recipe.model.vocabulary), ("subwords.source_model", recipe.subwords.source_model))
            for name, value in given:
                if value:
                    raise ValueError(
                        f"{name} is {value!r}, which needs a vocabulary other than the teacher's: set "
                        "distill.vocabulary to own"
                    )

    def _check_soft(self) -> None:
        soft, task, folder = self.distill.soft, self.recipe.task, self.recipe.model.folder
        if task.teachers:
            raise ValueError(
                f"task.teacher is {', '.join(task.teachers)!r}, which heed distill sets itself: use distill.soft"
            )
        if soft and folder:
            raise ValueError(
                f"distill.soft is {soft} and model.folder {folder}: a student that starts from a model has its own "
                "subwords"
            )
        if soft and task.settings.r_drop:
            drop = task.settings.r_drop
            raise ValueError(f"distill.soft is {soft} and task.r_drop is {drop}: use only one of them")


def _check_task(name: str) -> None:
    if name != "translation":
        raise ValueError(f"task.name is {name!r}; distillation needs 'translation'")


FIXED = {  # what a resumed run may not change: the translations depend on it
    "data": ("source", "target", "tsv", "columns", "holdout", "corpora"),
    "distill": ("teacher", "beam", "nbest", "take", "nearest", "mix", "vocabulary"),
}


def read(path: Path | None, changes: list[tuple[str, Any]], *, saved: bool = False) -> Plan:
    """A plan from a file, or from changes alone."""
    values = config.load_toml(path) if path is not None else {}
    if saved:
        saved_recipe.check(path)
        values = upgraded(values)
    for name, value in changes:
        config.override(values, name, value)
    try:
        distill = config.read(DistillConfig, values.pop("distill", {}), "distill.")
        data = config.read(DataConfig, values.get("data", {}), "data.")
        if isinstance(task := values.get("task"), Mapping):
            _check_task(task.get("name") or "translation")  # first: its error is the clearest
        return Plan(parse({**values, "data": config.plain(with_targets(data))}), data, distill)
    except ValueError as error:
        raise ValueError(f"{path}: {error}" if path is not None else str(error)) from error


def check_folder(plan: Plan, folder: Path, resume: bool) -> None:
    """Check that a student may be started, or resumed, in this folder."""
    if folder.exists() and any(folder.iterdir()) and not resume:
        raise ValueError(f"{folder} already exists: continue with --resume, or choose another --out")
    path = folder / FOLDER / PLAN
    if not path.is_file():
        if (folder / "recipe.toml").is_file():
            raise ValueError(f"{folder} is not a distillation run: continue with heed train, or choose another --out")
        return
    before = read(path, [], saved=True)
    for section, names in FIXED.items():
        for name in names:
            old, new = (getattr(getattr(one, section), name) for one in (before, plan))
            if old != new:
                raise ValueError(
                    f"{section}.{name} was {old!r} in {path} and is now {new!r}: a resumed run cannot change it"
                )


def make(
    plan: Plan,
    folder: Path,
    tell: Tell = lambda what, done, total: None,
    say: Callable[[str], None] = lambda sentence: None,
    warn: Callable[[str], None] = lambda sentence: None,
) -> Path:
    """Let the teacher translate the corpora, or the rest of them; returns the path of the student's recipe. `warn` is
    called with messages about damage.
    """
    own = (folder / FOLDER).resolve()  # absolute, because the student may be trained from another working directory
    written = Blocks(own / BLOCKS, BLOCK, warn)
    damaged = written.damaged(own)
    if damaged and (own / STUDENT).is_file():
        warn(f"{own / damaged[0]} is damaged: rewriting the damaged part.")
    if damaged or not (own / STUDENT).is_file():
        teacher = load(plan.distill.teacher, plan.recipe.training.device, verb="translate")
        if len(teacher.directions) > 1:
            teacher = teacher.toward(*plan.data.languages({}).values())
        plan = _of_languages(plan, teacher.facts.get("languages") or {})
        _check_vocabulary(plan, teacher)
        if plan.distill.soft:
            own_words = teacher.source, teacher.target
            for model, name in zip(teacher.models, plan.distill.teacher, strict=True):
                check_teacher(model, own_words, name, plan.recipe.filters.max_length)
        tell("reading", 0, 0)
        pair = teacher.source, teacher.target  # errors in the files are reported before anything is written
        text = read_text(plan.data, plan.recipe.filters, pair)
        say(text.describe())
        own.mkdir(parents=True, exist_ok=True)
        _write_plan(plan, own)
        if plan.distill.vocabulary == "teacher" and not plan.recipe.model.folder:
            vocabularies.write(own, (teacher.source, teacher.target))
        for name, texts in zip(VALID, zip(*text.held, strict=True), strict=False):
            write_text(own / name, "".join(f"{text}\n" for text in texts))
        for path in (*sorted(own.glob("*.spm")), *(own / name for name in VALID if text.held)):
            written.add_whole(path)
        _translate(plan, teacher, text, own, written, tell)
    else:
        before = read(own / PLAN, [], saved=True).data
        plan = _of_languages(plan, {"source": before.source_language, "target": before.target_language})
    _write_plan(plan, own)
    write_text(own / STUDENT, student(plan, own).to_toml())
    return own / STUDENT


def student(plan: Plan, own: Path) -> Recipe:
    """The recipe of the student, which learns from the files in the folder `own`."""
    texts: dict[str, Any] = _taught_files(plan, own)
    if (own / VALID[0]).is_file() and not plan.data.validated:
        texts |= {"valid_source": [str(own / VALID[0])], "valid_target": [str(own / VALID[1])]}
    recipe, changes = plan.recipe, {"data": dataclasses.replace(plan.data, **texts)}
    if plan.distill.soft:
        settings = {"teacher": plan.distill.teacher, "distillation": plan.distill.soft}
        changes["task"] = type(recipe.task)(dataclasses.replace(recipe.task.settings, **settings))
    if found := sorted(own.glob("*.spm")):  # one for both sides, or source.spm and target.spm
        models = {"source_model": str(found[0]), "target_model": str(found[-1])}
        changes["subwords"] = dataclasses.replace(recipe.subwords, **models)
    model = recipe.model
    if model.preset == "auto" and not model.folder:
        preset = f"{model.system.preset_for(sum(count_lines(own / names[0]) for names in _names(plan)))}-6-2"
        if preset in model.system.presets:
            changes["model"] = dataclasses.replace(model, preset=preset)
    return dataclasses.replace(recipe, **changes)


def _of_languages(plan: Plan, before: Mapping[str, str | None]) -> Plan:
    """The plan with its languages, which the names of the student's files do not contain; else those from `before`."""
    found = {f"{side}_language": code for side, code in plan.data.languages(before).items()}
    return dataclasses.replace(plan, data=dataclasses.replace(plan.data, **found))


def _check_vocabulary(plan: Plan, teacher: Translator) -> None:
    if (
        plan.distill.vocabulary == "teacher"
        and not plan.recipe.model.folder
        and not isinstance(teacher.source, Subwords)
    ):
        kind = type(teacher.source).__name__.removesuffix("Vocabulary")
        raise ValueError(
            f"{plan.distill.teacher[0]} has a vocabulary of {kind}, which a new Heed model cannot use: set "
            "distill.vocabulary to own"
        )


def _write_plan(plan: Plan, own: Path) -> None:
    text = plan.to_toml()
    saved_recipe.write(own / PLAN, text, saved_recipe.identifier(text))


def _translate(plan: Plan, teacher: Translator, text: TaughtText, own: Path, written: Blocks, tell: Tell) -> None:
    """Continue the files of each corpus where they end."""
    before, total = 0, sum(corpus.total for corpus in text.corpora)
    written.of_size(stages.chunk_size(teacher, teaching_search(teacher, plan.distill), BLOCK))
    for names, corpus in zip(_names(plan), text.corpora, strict=True):
        paths = [own / name for name in names]
        check_count(paths, corpus.total)
        written.cut(paths, done := written.intact(paths, corpus.total))
        check_same(corpus.lines, own / names[0], done)
        check_weights(teacher.models, own / WEIGHTS, begun=before + done > 0)
        before += done
        tell("translating", before, total)
        write = _writer(written, paths, lambda lines, own=before: tell("translating", own + lines, total))
        staged.run(staged.chunks(corpus.lines, written.size), teaching_stages(teacher, plan.distill), write)
        before += corpus.total - done


def _writer(written: Blocks, paths: Sequence[Path], tell: Callable[[int], None]) -> Callable[..., None]:
    """Appends a block of columns to the files, and tells how many lines that makes."""

    def write(chunk: staged.Chunk, columns: Sequence[Sequence[str]]) -> None:
        written.append(dict(zip(paths, columns, strict=False)))
        tell(chunk.start + len(chunk.items))

    return write


def _names(plan: Plan) -> list[list[str]]:
    """The names of the parallel files of each corpus: the source, and all targets for the student."""
    how = plan.distill
    further = [f"target.{number}.txt" for number in range(2, how.take + 1)]
    names = [SOURCE, TARGET, *further, *([REFERENCE] if how.mix else [])]
    return [[f"{number}.{name}" for name in names] for number in range(1, 1 + len(plan.data.corpora))] or [names]


def _taught_files(plan: Plan, own: Path) -> dict[str, Any]:
    """The settings of [data] with the files of the student."""
    each = []
    for source, *learned in _names(plan):
        paths = {"source": len(learned) * [str(own / source)], "target": [str(own / name) for name in learned]}
        each.append({**paths, "tsv": []})
    if not plan.data.corpora:
        return each[0]
    parts = zip(plan.data.corpora, each, strict=True)
    return {"corpora": [dataclasses.replace(one, name=one.label, **files) for one, files in parts]}
