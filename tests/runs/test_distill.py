"""A teacher's corpus: it is what the teacher says, however often the work was broken off."""

import dataclasses
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from heed.config import assignment
from heed.evaluation.translation import metrics
from heed.loading import load, write_package
from heed.models.transformer import PRESETS, Transformer
from heed.products.translator import stages
from heed.runs import distill
from heed.runs import recipe as recipes
from heed.runs.teacher import check, check_vocab_size
from heed.vocabularies.sentencepiece import SubwordsConfig, learn
from tests import fixed_pairs
from tests.helpers import translation_package
from tests.products.conftest import drawn

LINES = 20
DATA = ("source", "target")


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Models this small only lose time by sharing their work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(distill, "BLOCK", 6)


@pytest.fixture(scope="module")
def pairs():
    return list(fixed_pairs.pairs("train", LINES))


def model_folder(folder: Path, vocabulary, seed: int) -> Path:
    """A model that has learned nothing, but says different things of different texts."""
    facts = {"decoding": {"beam": 3, "max_length": 6}, "max_source": 48}
    write_package(translation_package(drawn(vocabulary, seed).float(), (vocabulary, vocabulary), facts), folder)
    return folder


@pytest.fixture(scope="module")
def vocabulary(pairs):
    return learn([text for pair in pairs for text in (pair.source, pair.target)], SubwordsConfig(), 600)


@pytest.fixture(scope="module")
def teachers(tmp_path_factory, vocabulary):
    folder = tmp_path_factory.mktemp("teachers")
    return [model_folder(folder / f"teacher-{seed}", vocabulary, seed) for seed in (16, 17)]


@pytest.fixture(scope="module")
def files(tmp_path_factory, pairs):
    folder = tmp_path_factory.mktemp("files")
    for name, texts in zip(DATA, zip(*[(p.source, p.target) for p in pairs], strict=True), strict=True):
        (folder / name).write_text("".join(f"{text}\n" for text in texts), "utf-8")
    for name, texts in zip(DATA, zip(*[pair[:2] for pair in fixed_pairs.pairs("valid", 4)], strict=True), strict=True):
        (folder / f"valid.{name}").write_text("".join(f"{text}\n" for text in texts), "utf-8")
    (folder / "tsv").write_text("".join(f"{p.target}\t{p.source}\n" for p in pairs), "utf-8")
    return folder


@pytest.fixture
def plan(teachers, files):
    """Makes plans with the validation files, one teacher and the source alone; settings go over that."""

    def plan(*settings: str, **data: str | None) -> distill.Plan:
        names = {"source": "source", "valid_source": "valid.source", "valid_target": "valid.target", **data}
        changes = [(f"data.{name}", [str(files / file)]) for name, file in names.items() if file]
        changes += [("distill.teacher", [str(teachers[0])]), ("training.device", "cpu")]
        return distill.read(None, [*changes, *map(assignment, settings)])

    return plan


def toml(tables: list[dict]) -> str:
    """Tables as a setting of the command line."""
    return "[" + ", ".join("{" + ", ".join(f"{k} = {json.dumps(v)}" for k, v in t.items()) + "}" for t in tables) + "]"


def made(out: Path) -> dict[str, str]:
    """The files of a corpus."""
    return {path.name: path.read_bytes().decode() for path in sorted((out / "distilled").glob("*.txt"))}


def lines(path: Path) -> list[str]:
    return path.read_text("utf-8").split("\n")[:-1]


def said(teacher, texts, **decoding):
    """What a teacher says, asked for a block at a time."""
    translator = load(teacher, "cpu")
    blocks = [texts[i : i + distill.BLOCK] for i in range(0, len(texts), distill.BLOCK)]
    return [t for block in blocks for t in translator.translate(block, **decoding)]


def test_the_target_is_what_the_teacher_says_of_the_source(plan, teachers, pairs, tmp_path):
    distill.make(plan(), tmp_path)
    sources = [pair.source for pair in pairs]
    assert lines(tmp_path / "distilled" / "source.txt") == sources
    found = lines(tmp_path / "distilled" / "target.txt")
    assert found == [t.text for t in said(teachers[0], sources)]
    assert len(set(found)) > LINES // 3


def test_the_beam_is_the_teachers_unless_it_is_set(plan, teachers, pairs, tmp_path):
    distill.make(plan("distill.beam=1"), tmp_path)
    texts = [pair.source for pair in pairs]
    greedy, searched = ([t.text for t in said(teachers[0], texts, beam=beam)] for beam in (1, 3))
    assert lines(tmp_path / "distilled" / "target.txt") == greedy != searched


def test_several_teachers_speak_as_one(plan, teachers, pairs, tmp_path):
    both = [str(teacher) for teacher in teachers]
    distill.make(plan(f"distill.teacher={both}"), tmp_path)
    together = [t.text for t in said(both, [pair.source for pair in pairs])]
    assert lines(tmp_path / "distilled" / "target.txt") == together


@pytest.mark.parametrize("nearest", ["chrf", "bleu"])
def test_of_several_translations_the_student_is_given_the_nearest_to_the_reference(
    plan, teachers, pairs, tmp_path, nearest
):
    distill.make(plan("distill.nbest=8", f"distill.nearest={nearest}", target="target"), tmp_path)
    metric = dict(zip(("bleu", "chrf"), metrics(False, "13a", sentences=True), strict=False))[nearest]
    found = lines(tmp_path / "distilled" / "target.txt")
    asked = said(teachers[0], [pair.source for pair in pairs], beam=8, nbest=8)
    for pair, translation, text in zip(pairs, asked, found, strict=True):
        texts = [candidate.text for candidate in translation.nbest]
        scores = [metric.sentence_score(candidate, [pair.target]).score for candidate in texts]
        assert text == texts[scores.index(max(scores))]
    assert found != [translation.text for translation in asked]


@pytest.mark.parametrize("take", [3, 8])
def test_of_several_translations_the_student_may_take_several(plan, teachers, pairs, tmp_path, take):
    needed = {"target": "target"} if take < 8 else {}  # to take all of them needs no reference
    path = distill.make(plan("distill.nbest=8", f"distill.take={take}", **needed), tmp_path)
    own = tmp_path / "distilled"
    names = ["target.txt", *(f"target.{number}.txt" for number in range(2, take + 1))]
    learned = recipes.read(path, []).data
    assert (learned.source, learned.target) == (take * [f"{own}/source.txt"], [f"{own}/{name}" for name in names])
    chrf = metrics(False, "13a", sentences=True)[1]
    asked = said(teachers[0], [pair.source for pair in pairs], beam=8, nbest=8)
    for pair, translation, *texts in zip(pairs, asked, *(lines(own / name) for name in names), strict=True):
        found = list(dict.fromkeys(candidate.text for candidate in translation.nbest))
        if take < 8:
            found.sort(key=lambda text: -chrf.sentence_score(text, [pair.target]).score)
        assert texts == (found * 8)[:take]


class Broken(Exception):
    pass


def breaking(monkeypatch, at: int):
    """A teacher who falls silent before it is asked for the block `at`; those who are asked, and for what."""
    asked: list[list[str]] = []
    real = stages.begin

    def once(teacher, work, meanwhile):
        if len(asked) == at:
            raise Broken
        asked.append(work.texts)
        return real(teacher, work, meanwhile)

    monkeypatch.setattr(stages, "begin", once)
    return asked


@pytest.mark.parametrize("at", [0, 1, 3])
def test_what_was_broken_off_goes_on_to_the_same_files(plan, pairs, tmp_path, monkeypatch, at):
    chosen = plan("distill.mix=true", "distill.nbest=3", "distill.take=2", target="target")
    distill.make(chosen, tmp_path / "whole")
    with monkeypatch.context() as patch:
        breaking(patch, at)
        with pytest.raises(Broken):
            distill.make(chosen, tmp_path / "part")
    assert not (tmp_path / "part" / "distilled" / "student.toml").exists()
    asked = breaking(monkeypatch, -1)
    distill.make(chosen, tmp_path / "part")
    assert asked[0][0] == pairs[6 * at].source
    assert made(tmp_path / "part") == made(tmp_path / "whole")


@pytest.mark.parametrize(("at", "refused"), [(0, False), (1, True)])
def test_a_teacher_that_has_changed_does_not_go_on(plan, teachers, vocabulary, tmp_path, monkeypatch, at, refused):
    name = f"distill.teacher={tmp_path}/teacher"
    model_folder(tmp_path / "teacher", vocabulary, 16)
    with monkeypatch.context() as patch:
        breaking(patch, at)
        with pytest.raises(Broken):
            distill.make(plan(name), tmp_path / "part")
    shutil.rmtree(tmp_path / "teacher")
    model_folder(tmp_path / "teacher", vocabulary, 17)
    if refused:
        with pytest.raises(ValueError, match="the teacher's weights have changed since this was started"):
            distill.make(plan(name), tmp_path / "part")
    else:  # nothing had been said yet
        distill.make(plan(name), tmp_path / "part")
        assert lines(tmp_path / "part" / "distilled" / "source.txt")


@pytest.mark.parametrize(
    ("name", "kept", "torn"),
    [("source.txt", 13, b""), ("target.txt", 13, b"\xed\x95"), ("target.txt", 12, b"a"), ("target.txt", 19, b""),
     ("target.txt", 3, b"a"), ("target.txt", 0, b"")],
)  # fmt: skip
def test_half_a_block_is_written_again(plan, tmp_path, name, kept, torn):
    distill.make(plan(), tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "part")
    own = tmp_path / "part" / "distilled"
    (own / "student.toml").unlink()
    text = (own / name).read_bytes().splitlines(keepends=True)
    (own / name).write_bytes(b"".join(text[:kept]) + torn)
    told = []
    distill.make(plan(), tmp_path / "part", lambda *facts: told.append(facts))
    assert made(tmp_path / "part") == made(tmp_path / "whole")
    first = kept // 6 * 6
    assert told == [("reading", 0, 0), *[("translating", n, LINES) for n in [*range(first, LINES, 6), LINES]]]


def test_when_all_is_translated_the_teacher_is_not_needed(plan, teachers, tmp_path):
    teacher = shutil.copytree(teachers[0], tmp_path / "teacher")
    chosen = plan(f"distill.teacher={str(teacher)!r}")
    distill.make(chosen, tmp_path / "run")
    before = made(tmp_path / "run")
    shutil.rmtree(teacher)
    longer = dataclasses.replace(chosen.recipe.training, steps=7)
    changed = dataclasses.replace(chosen, recipe=dataclasses.replace(chosen.recipe, training=longer))
    path = distill.make(changed, tmp_path / "run")
    assert made(tmp_path / "run") == before
    assert recipes.read(path, []).training.steps == 7


def test_another_text_is_not_gone_on_with(plan, files, tmp_path, pairs):
    shutil.copy(files / "source", tmp_path / "mine")
    chosen = plan(f"data.source=['{tmp_path}/mine']")
    distill.make(chosen, tmp_path / "run")
    (tmp_path / "run" / "distilled" / "student.toml").unlink()
    changed = [pair.source for pair in pairs]
    changed[3] = "다른 문장."
    (tmp_path / "mine").write_text("".join(f"{text}\n" for text in changed), "utf-8")
    with pytest.raises(ValueError, match=r"source\.txt, line 4 is not mine:4: the text has changed since it was"):
        distill.make(chosen, tmp_path / "run")
    (tmp_path / "mine").write_text("".join(f"{text}\n" for text in changed[:12]), "utf-8")
    with pytest.raises(
        ValueError, match=r"source.txt has 20 lines, but there are 12 to translate: the text has changed"
    ):
        distill.make(chosen, tmp_path / "run")


def test_without_validation_files_pairs_are_set_aside_and_not_translated(plan, pairs, tmp_path):
    none = {"valid_source": None, "valid_target": None}
    path = distill.make(plan("distill.mix=true", "data.holdout=2", target="target", **none), tmp_path)
    files = {name: text.splitlines() for name, text in made(tmp_path).items()}
    held = list(zip(files["valid.source.txt"], files["valid.target.txt"], strict=True))
    learned = list(zip(files["source.txt"], files["reference.txt"], strict=True))
    assert len(held) == 2
    assert sorted(held + learned) == sorted((pair.source, pair.target) for pair in pairs)
    data = recipes.read(path, []).data
    own = tmp_path / "distilled"
    assert (data.valid_source, data.valid_target) == ([f"{own}/valid.source.txt"], [f"{own}/valid.target.txt"])


def test_the_student_learns_from_the_teacher_or_from_both(plan, tmp_path):
    own = tmp_path / "distilled"
    learned = recipes.read(distill.make(plan(target="target"), tmp_path), []).data
    assert (learned.source, learned.target) == ([f"{own}/source.txt"], [f"{own}/target.txt"])
    assert learned.valid_source == plan().data.valid_source
    shutil.rmtree(own)
    mixed = recipes.read(distill.make(plan("distill.mix=true", target="target"), tmp_path), []).data
    assert (mixed.source, mixed.target) == (2 * [f"{own}/source.txt"], [f"{own}/target.txt", f"{own}/reference.txt"])
    assert (own / "reference.txt").read_text("utf-8") == Path(plan(target="target").data.target[0]).read_text("utf-8")


def test_a_student_may_hear_what_its_teacher_thinks(plan, teachers, tmp_path):
    for number in (1, 2):
        names, folder = [str(own) for own in teachers[:number]], tmp_path / str(number)
        asked = plan("distill.soft=0.3", "filters.max_length=60", f"distill.teacher={names}")
        settings = recipes.read(distill.make(asked, folder), []).task.settings
        assert (settings.teacher, settings.distillation) == (names, 0.3)


def test_a_teacher_that_cannot_be_heard_is_refused_before_it_translates(plan, tmp_path):
    with pytest.raises(
        ValueError, match=r"filters.max_length is 2000, but the teacher .* has only \d+ positions: lower it"
    ):
        distill.make(plan("distill.soft=0.3", "filters.max_length=2000", "model.max_length=3000"), tmp_path)
    assert not (tmp_path / "distilled").exists()


def test_a_table_is_a_corpus_too(plan, tmp_path, pairs):
    table = ["data.columns=[2, 1]", "distill.mix=true"]
    path = distill.make(plan(*table, source=None, tsv="tsv"), tmp_path / "table")
    distill.make(plan("distill.mix=true", target="target"), tmp_path / "files")
    assert made(tmp_path / "table") == made(tmp_path / "files")
    assert recipes.read(path, []).data.tsv == []


def test_a_teacher_with_rows_that_no_subword_has_is_refused(teachers, vocabulary, pairs):
    other = learn([pair.target for pair in pairs], SubwordsConfig(), 350)
    config = load(teachers[0], "cpu").model.config
    roomy = Transformer(dataclasses.replace(config, source_vocab_size=len(vocabulary), vocab_size=351))
    with pytest.raises(
        ValueError, match="runs/a, which has 351 embeddings, but there are 350 subwords: a teacher must"
    ):
        check(roomy, (vocabulary, other), "runs/a", 5)


def test_the_student_has_the_teachers_subwords_unless_it_learns_its_own(plan, vocabulary, tmp_path):
    student = recipes.read(distill.make(plan(), tmp_path / "same"), [])
    assert student.subwords.source_model == student.subwords.target_model
    assert Path(student.subwords.source_model).read_bytes() == vocabulary.model
    student = recipes.read(distill.make(plan("distill.vocabulary=own", "subwords.size=400"), tmp_path / "own"), [])
    assert (student.subwords.source_model, student.subwords.size) == (None, 400)


def test_two_vocabularies_stay_two(plan, teachers, vocabulary, pairs, tmp_path):
    other = learn([pair.target for pair in pairs], SubwordsConfig(), 350)
    package = load(teachers[0], "cpu")
    config = dataclasses.replace(package.model.config, source_vocab_size=len(vocabulary), vocab_size=len(other))
    facts = {"decoding": {"beam": 1, "max_length": 5}}
    write_package(translation_package(Transformer(config), (vocabulary, other), facts), tmp_path / "two")
    student = recipes.read(distill.make(plan(f"distill.teacher='{tmp_path}/two'"), tmp_path / "run"), []).subwords
    found = Path(student.source_model).read_bytes(), Path(student.target_model).read_bytes()
    assert found == (vocabulary.model, other.model)


@pytest.mark.parametrize(
    ("settings", "preset"),
    [([], "tiny-6-2"), (["model.preset=small-12-1"], "small-12-1"), (["model.preset=tiny"], "tiny")],
)
def test_a_student_writes_with_few_layers_unless_it_is_said_otherwise(plan, tmp_path, settings, preset):
    assert recipes.read(distill.make(plan(*settings), tmp_path), []).model.preset == preset


@pytest.mark.parametrize("size", ["tiny", "small", "base"])
@pytest.mark.parametrize("layers", [(6, 2), (12, 1)])
def test_a_deep_and_shallow_preset_differs_in_its_layers_alone(size, layers):
    deep = PRESETS["{}-{}-{}".format(size, *layers)]
    assert deep == {**PRESETS[size], "encoder_layers": layers[0], "decoder_layers": layers[1]}


def test_every_preset_can_be_named():
    for preset in PRESETS:
        assert recipes.read(None, [("data.phrasebook", 5), ("model.preset", preset)]).model.preset == preset


def test_a_plan_is_read_back_as_it_was_written(plan, tmp_path):
    chosen = plan("distill.nbest=2", "distill.mix=true", "training.steps=9", target="target")
    distill.make(chosen, tmp_path)
    assert distill.read(tmp_path / "distilled" / "plan.toml", []) == chosen


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (["distill.beams=3"], "distill.beams: no such setting; did you mean beam?"),
        (["training.step=3"], "training.step: no such setting; did you mean steps?"),
        (["distill.teacher=[]"], "distill.teacher: set the teacher model:"),
        (["distill.beam=0"], "distill.beam is 0; it must be at least 1"),
        (["distill.nbest=0"], "distill.nbest is 0; it must be at least 1"),
        (["distill.nbest=4", "distill.beam=2"], "distill.nbest is 4, but distill.beam is 2: a beam cannot return more"),
        (["distill.soft=2.5"], "distill.soft is 2.5; it must be from 0 to 1"),
        (["distill.soft=0.5", "distill.vocabulary=own"], "distill.soft is 0.5, which needs the teacher's vocabulary"),
        (["distill.soft=0.5", "task.teacher='a'"], "task.teacher is 'a', which heed distill sets itself: use distill.soft"),
        (["distill.soft=0.5", "model.folder='a'"], "distill.soft is 0.5 and model.folder a: a student that starts from a model has its own"),
        (["distill.soft=0.5", "task.r_drop=5.0"], "distill.soft is 0.5 and task.r_drop is 5.0: use only one of"),
        (["task.teacher=['a', 'b']", "task.r_drop=1.0"], "task.teacher is 'a, b' and task.r_drop is 1.0: use"),
        (["task.distillation=1.5"], "task.distillation is 1.5; it must be above 0 and at most 1"),
        (["distill.take=0"], "distill.take is 0; it must be at least 1"),
        (["distill.nbest=4", "distill.take=5"], "distill.take is 5, but distill.nbest is 4: it cannot exceed that"),
        (["distill.nbest=4"], "distill.nbest is 4, which needs references: set data.target"),
        (["distill.mix=true"], "distill.mix is True, which needs references: set data.target"),
        (["distill.nearest=ter"], "distill.nearest: 'ter' is none of 'chrf', 'bleu'"),
        (["task.name=classification"], "task.name is 'classification'; distillation needs 'translation'"),
        (["data.corpora=[{source=['a.en'], target=['a.de']}, {source=['b.en'], target=['b.fr']}]", "data.source=[]", "data.valid_source=[]",
          "data.valid_target=[]"], "data.corpora: a student learns one direction, and these are en to de, en to fr: give the corpora"),
        (["data.phrasebook=5", "data.source=[]"], "data.phrasebook: the teacher needs files; heed phrasebook --out"),
        (["model.name=marian"], "model.name is 'marian', which needs a vocabulary other than the teacher's: set distill."),
        (["subwords.source_model=a.spm"], "subwords.source_model is 'a.spm', which needs a vocabulary other than the"),
        (["filters.max_length=1"], "filters.max_length is 1; it must be at least 2"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said(plan, settings, says):
    with pytest.raises(ValueError) as error:
        plan(*settings)
    assert str(error.value).startswith(says)


def test_what_has_been_translated_by_may_not_change(plan, teachers, tmp_path):
    distill.make(plan(), tmp_path)
    for setting, says in [
        ("distill.beam=2", "distill.beam was None in"),
        (f"distill.teacher='{teachers[1]}'", "distill.teacher was"),
        ("data.source=['other']", "data.source was"),
    ]:
        with pytest.raises(ValueError, match=says):
            distill.check_folder(plan(setting), tmp_path, resume=True)
    distill.check_folder(plan("training.steps=7", "distill.batch_tokens=100"), tmp_path, resume=True)


@pytest.mark.parametrize("change", ["source", "valid_target", "target"])
def test_whatever_is_wrong_with_the_files_is_said_before_anything_is_written(plan, tmp_path, files, change):
    (tmp_path / "short").write_text("하나\n둘\n", "utf-8")
    words = {
        "source": (["data.source=['nowhere']"], "nowhere: no such file"),
        "valid_target": ([f"data.valid_target=['{tmp_path}/short']"], "short has 2 lines and .* has 4: each line"),
        "target": ([f"data.target=['{tmp_path}/short']"], "short has 2 lines and .* has 20: each line"),
    }
    settings, says = words[change]
    with pytest.raises(ValueError, match=says):
        distill.make(plan(*settings), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_student_with_other_room_than_its_teacher_is_refused():
    def model(room):
        own = torch.nn.Module()
        own.config = SimpleNamespace(vocab_size=room)
        return own

    check_vocab_size(model(20), "runs/a", model(20))
    with pytest.raises(ValueError, match=r"task\.teacher is runs/a, which has 20 subword embeddings, and the model 24"):
        check_vocab_size(model(20), "runs/a", model(24))


def test_what_training_leaves_out_is_not_translated(plan, tmp_path, pairs, files):
    """A duplicate, a copy of its source, an empty line, and a text of the validation set, spelled otherwise."""
    faults = [
        pairs[0][:2],
        ("same", "same"),
        ("alone", ""),
        (lines(files / "valid.source")[0].replace(".", " !"), "new"),
    ]
    every = [pair[:2] for pair in pairs] + faults
    for side, name in enumerate(DATA):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in every), "utf-8")
    told = []
    chosen = plan("filters.same=true", source=str(tmp_path / "source"), target=str(tmp_path / "target"))
    path = distill.make(chosen, tmp_path / "run", say=told.append)
    assert lines(tmp_path / "run" / "distilled" / "source.txt") == [pair.source for pair in pairs]
    assert told[0].startswith("20 texts to translate, of 24; filtered out: 1 for ") and told[0].count(" 1 for ") == 4
    read = dataclasses.replace(chosen.recipe, data=chosen.data)
    kept = read.task.prepare(read, None, lambda what, done: None).train.report
    assert kept.kept == 20, "as training does"
    assert recipes.read(path, []).data.source


def corpora(files, pairs, tmp_path, **settings):
    """Three corpora: pairs, a table with a tag, and texts of another folder alone if `alone`."""
    (tmp_path / "few.tsv").write_text("".join(f"{p.source}\t{p.target}\n" for p in pairs[:5]), "utf-8")
    (tmp_path / "rest.en").write_text("".join(f"{p.source}\n" for p in pairs[5:]), "utf-8")
    (tmp_path / "rest.de").write_text("".join(f"{p.target}\n" for p in pairs[5:]), "utf-8")
    first = {"source": [str(tmp_path / "rest.en")], "target": [str(tmp_path / "rest.de")], "weight": 2.0}
    second = {"tsv": [str(tmp_path / "few.tsv")], "tag": "<bt>", "source_language": "en", "target_language": "de"}
    return [{**first, **settings}, second]


def test_several_corpora_stay_apart(plan, tmp_path, pairs, files, teachers):
    """Their weights and tags are the student's, and the translations are those of one corpus."""
    chosen = plan(f"data.corpora={toml(corpora(files, pairs, tmp_path))}", source=None)
    student = recipes.read(distill.make(chosen, tmp_path / "run"), [])
    own = tmp_path / "run" / "distilled"
    assert [(c.label, c.weight, c.tag) for c in student.data.corpora] == [
        ("rest.en + rest.de", 2.0, None),
        ("few.tsv", 1.0, "<bt>"),
    ]
    assert student.data.languages({}) == {"source": "en", "target": "de"}
    distill.make(plan(), tmp_path / "one")
    whole = dict(
        zip(*(lines(tmp_path / "one" / "distilled" / name) for name in ("source.txt", "target.txt")), strict=True)
    )
    for number, expected in ((1, pairs[5:]), (2, pairs[:5])):
        sources, targets = (lines(own / f"{number}.{name}.txt") for name in DATA)
        assert sources == [pair.source for pair in expected]
        assert set(targets) <= set(whole.values())
    again = distill.read(own / "plan.toml", [], saved=True)
    distill.check_folder(again, tmp_path / "run", resume=True)
    alone = plan(f"data.corpora={toml(corpora(files, pairs, tmp_path, target=[]))}", source=None)
    assert not alone.referenced and len(recipes.read(distill.make(alone, tmp_path / "alone"), []).data.corpora) == 2
