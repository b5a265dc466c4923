"""heed distill: from a teacher to a student that translates, in one command."""

import io
import json
import shutil
import tomllib
from contextlib import redirect_stderr

import pytest

from heed.cli.main import main
from heed.loading import load, write_package
from heed.models.package import Package
from heed.models.rnn_lm import RNNLanguageModel, RNNLanguageModelConfig
from heed.products.translator import stages
from heed.runs import distill
from tests import fixed_pairs
from tests.cli.conftest import TINY, sets
from tests.convert.small import ENDS, classifier, package, speaking

STUDENT = [setting for setting in TINY if not setting.startswith(("data", "subwords"))]
STUDENT += ["model.encoder_layers=2", "model.decoder_layers=1", "distill.beam=2"]
LINES = 30


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(distill, "BLOCK", 12)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for part, count in (("train", LINES), ("valid", 4)):
        pairs = list(fixed_pairs.pairs(part, count))
        (folder / f"{part}.ko").write_text("".join(f"{pair.source}\n" for pair in pairs), "utf-8")
        (folder / f"{part}.en").write_text("".join(f"{pair.target}\n" for pair in pairs), "utf-8")
    return folder


@pytest.fixture(scope="module")
def command(files, trained):
    """The words of a command that makes a student in a folder; settings go over those that make it small."""

    def command(out, *words, teacher=trained, settings=()):
        data = [
            "--source",
            files / "train.ko",
            "--valid-source",
            files / "valid.ko",
            "--valid-target",
            files / "valid.en",
        ]
        return ["distill", teacher, *data, "--out", out, *words, *sets([*STUDENT, *settings])]

    return command


@pytest.fixture(scope="module")
def heard(command, trained, tmp_path_factory):
    """A student that hears its teacher, what was said, and models that cannot be heard."""
    folder, said = tmp_path_factory.mktemp("heard"), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stderr(said):
        patch.setenv("HEED_CACHE", str(folder / "cache"))
        assert main([str(word) for word in command(folder / "run", settings=["distill.soft=0.7"])]) == 0
    write_package(classifier(), folder / "labels")
    words = load(trained).source
    speech = RNNLanguageModel(RNNLanguageModelConfig(vocab_size=len(words), dim=6, hidden=6))
    write_package(Package(speech, "language", {"text": words}, {}), folder / "speech")
    return folder, " ".join(said.getvalue().split())


def test_one_command_makes_a_student_that_translates(heed, command, trained, files, tmp_path):
    code, _, err = heed(*command(tmp_path / "run"))
    assert code == 0
    assert f"translating · {LINES} of {LINES} sentences" in err
    assert f"Try it: heed translate {tmp_path}/run" in err
    code, out, _ = heed("translate", tmp_path / "run", "안녕.", "나는 책을 읽어요.")
    assert (code, len(out.splitlines())) == (0, 2)
    told = json.loads(heed("info", tmp_path / "run", "--json")[1])
    assert (told["model"]["encoder_layers"], told["model"]["decoder_layers"]) == (2, 1)
    own = tmp_path / "run" / "distilled"
    _, out, _ = heed("translate", trained, "--input", files / "train.ko", "--beam", 2)
    assert (own / "target.txt").read_text("utf-8") == out
    assert (own / "subwords.spm").read_bytes() == (trained / "model" / "subwords.spm").read_bytes()
    teacher = json.loads((trained / "model" / "config.json").read_text("utf-8"))
    assert told["text"]["languages"] == teacher["languages"] == {"source": "ko", "target": "en"}, (
        "it knows its languages"
    )


def test_a_student_that_is_gone_on_with_still_knows_its_languages(heed, command, tmp_path):
    assert heed(*command(tmp_path / "run", "--quiet", settings=["training.steps=2"]))[0] == 0
    assert heed(*command(tmp_path / "run", "--quiet", "--resume"))[0] == 0
    facts = json.loads((tmp_path / "run" / "model" / "config.json").read_text("utf-8"))
    assert facts["languages"] == {"source": "ko", "target": "en"}


def test_what_is_damaged_of_the_corpus_is_written_again(heed, command, tmp_path):
    run, own = tmp_path / "run", tmp_path / "run" / "distilled"
    assert heed(*command(run, "--quiet", settings=["training.steps=2"])) == (0, "", "")
    before = {path: path.read_bytes() for path in (own / "target.txt", own / "subwords.spm")}
    for path, content in before.items():
        path.write_bytes(content[:-2] + b"!" + content[-1:])
        code, _, err = heed(*command(run, "--quiet", "--resume", settings=["training.steps=2"]))
        assert code == 0 and f"{path} is damaged: rewriting the damaged part." in err
        assert path.read_bytes() == content
    plan = own / "plan.toml"
    plan.write_text(plan.read_text("utf-8").replace("beam = 2", "beam = 3"), "utf-8")
    code, _, err = heed("distill", "--out", run, "--resume")
    assert code == 1 and "plan.toml is damaged or was edited: its hash does not match its first line" in err


def test_the_same_corpus_teaches_a_second_student(heed, command, tmp_path):
    assert heed(*command(tmp_path / "run", "--quiet")) == (0, "", "")
    again = ["--out", tmp_path / "second", "--set", "model.encoder_layers=1", "--quiet"]
    assert heed("train", tmp_path / "run" / "distilled" / "student.toml", *again) == (0, "", "")


def test_a_student_that_hears_its_teacher_learns_something_else_and_goes_on_to_the_same(
    heed, command, trained, tmp_path
):
    weights = {}
    for name, settings in (("hard", []), ("less", ["distill.soft=0.1"]), ("soft", ["distill.soft=0.9"])):
        assert heed(*command(tmp_path / name, "--quiet", settings=settings)) == (0, "", "")
        weights[name] = (tmp_path / name / "model" / "model.safetensors").read_bytes()
    assert len(set(weights.values())) == 3
    student = tmp_path / "soft" / "distilled" / "student.toml"
    assert f'teacher = ["{trained}"]' in student.read_text("utf-8")
    steps = ["--set", "training.steps=2", "--set", "training.checkpoint_every=1", "--quiet"]
    assert heed("train", student, "--out", tmp_path / "half", *steps) == (0, "", "")
    whole = [f"training.steps={tomllib.loads(student.read_text('utf-8'))['training']['steps']}"]
    assert heed("train", "--out", tmp_path / "half", "--resume", "--quiet", *sets(whole)) == (0, "", "")
    assert (tmp_path / "half" / "model" / "model.safetensors").read_bytes() == weights["soft"]
    (tmp_path / "half" / "teacher.sha256").write_text("another\n")
    code, _, err = heed("train", "--out", tmp_path / "half", "--resume")
    assert (code, "the teacher's weights have changed since this was started" in err) == (1, True)


def test_an_ensemble_can_be_heard_too(heed, command, trained, tmp_path):
    shutil.copytree(trained / "model", tmp_path / "second")
    names = [str(trained), str(tmp_path / "second")]
    code, _, err = heed(*command(tmp_path / "run", teacher=",".join(names), settings=["distill.soft=0.7"]))
    assert code == 0 and "the teachers' mean distribution is the target of 70% of the loss." in err
    student = tmp_path / "run" / "distilled" / "student.toml"
    assert tomllib.loads(student.read_text("utf-8"))["task"]["teacher"] == names


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (["subwords.size=500", "subwords.source_model=", "subwords.target_model="],
         "which has different subwords from this run: use the teacher's"),
        (["filters.max_length=2000", "model.max_length=3000"], "positions: lower it"),
        (["task.teacher=/nowhere"], "task.teacher: /nowhere: no such folder"),
        (["task.teacher="], ""),
        (["task.teacher={labels}"], "which is not a translation model: choose one"),
        (["task.teacher={speech}"], "which is not a translation model: choose one"),
    ],
)  # fmt: skip
def test_a_teacher_that_cannot_be_heard_is_refused_in_a_sentence(heed, heard, tmp_path, settings, says):
    folder, said = heard
    assert "the teacher's distribution is the target of 70% of the loss." in said
    student = folder / "run" / "distilled" / "student.toml"
    settings = [own.format(labels=folder / "labels", speech=folder / "speech") for own in settings]
    code, _, err = heed("train", student, "--out", tmp_path / "other", *sets(settings))
    assert (code != 0 and says in err) if says else code == 0, err  # an empty name is no teacher


def silent_after(monkeypatch, blocks: int) -> None:
    """Ctrl-C while a teacher translates its next block."""
    real, asked = stages.begin, []

    def said(*about):
        if len(asked) == blocks:
            raise KeyboardInterrupt
        asked.append(about)
        return real(*about)

    monkeypatch.setattr(stages, "begin", said)


def test_a_student_that_was_interrupted_is_the_same_in_the_end(heed, command, tmp_path, monkeypatch):
    assert heed(*command(tmp_path / "whole", "--quiet")) == (0, "", "")
    with monkeypatch.context() as patch:
        silent_after(patch, 2)
        code, _, err = heed(*command(tmp_path / "part"))
    assert code == 130
    assert (
        f"Interrupted; finished translations are kept. Continue with: heed distill --out {tmp_path}/part --resume"
        in err
    )
    code, _, err = heed("distill", "--out", tmp_path / "part", "--resume", "--set", "training.steps=2")
    assert (code, "step 2" in err) == (0, True)
    assert heed("distill", "--out", tmp_path / "part", "--resume", "--quiet", "--set", "training.steps=4") == (
        0,
        "",
        "",
    )
    for name in ("distilled/source.txt", "distilled/target.txt", "model/model.safetensors"):
        assert (tmp_path / "part" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert heed("train", "--out", tmp_path / "part", "--resume", "--quiet") == (0, "", "")


def test_a_student_goes_on_by_any_name_of_its_folder(heed, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert heed(*command("run", "--quiet", settings=["training.steps=2"])) == (0, "", "")
    assert heed("distill", "--out", tmp_path / "run", "--resume", "--quiet", "--set", "training.steps=3") == (0, "", "")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert heed("train", "--out", "../run", "--resume", "--quiet", "--set", "training.steps=4") == (0, "", "")


def test_without_any_references_it_is_said_what_the_student_is_validated_on(heed, command, trained, files, tmp_path):
    words = [
        "distill",
        trained,
        "--source",
        files / "train.ko",
        "--out",
        tmp_path / "run",
        *sets([*STUDENT, "data.holdout=3"]),
    ]
    code, _, err = heed(*words)
    assert (code, "There are no references: the student is validated on its teacher's translations." in err) == (
        0,
        True,
    )


def test_a_missing_source(heed, command, tmp_path):
    code, _, err = heed(*command(tmp_path / "run", "--source", tmp_path / "nowhere.ko"))
    assert (code, f"heed: {tmp_path}/nowhere.ko: no such file" in err) == (1, True)
    assert not (tmp_path / "run").exists()


def test_counts_that_differ(heed, command, files, tmp_path):
    code, _, err = heed(*command(tmp_path / "run", "--target", files / "valid.en"))
    assert (code, f"valid.en has 4 lines and {files}/train.ko has {LINES}: each line must be" in err) == (1, True)


def test_a_teacher_that_is_a_classifier(heed, command, tmp_path):
    write_package(classifier(), tmp_path / "labels")
    code, _, err = heed(*command(tmp_path / "run", teacher=tmp_path / "labels"))
    assert (code, f"{tmp_path}/labels is a classifier: it cannot translate; use heed classify" in err) == (1, True)
    assert not (tmp_path / "run").exists()


def test_a_teacher_of_another_family_teaches_a_student_with_subwords_of_its_own(heed, command, tmp_path):
    write_package(speaking(package("marian"), ENDS["marian"]), tmp_path / "marian")
    code, _, err = heed(*command(tmp_path / "run", teacher=tmp_path / "marian"))
    assert code == 1
    assert "marian has a vocabulary of Marian, which a new Heed model cannot use: set distill.vocabulary to" in err
    settings = ["distill.vocabulary=own", "subwords.size=600"]
    assert heed(*command(tmp_path / "run", "--quiet", teacher=tmp_path / "marian", settings=settings)) == (0, "", "")
    assert heed("translate", tmp_path / "run", "안녕.")[0] == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["recipes/distill.toml"],
            "recipes/distill.toml is a recipe; the teacher must come before it: heed distill TEACHER",
        ),
        ([], "distill.teacher: set the teacher model:"),
        (["--resume"], "is not a distillation run that can be resumed: it has no"),
        (["nowhere", "recipes/distill.toml"], "nowhere: no such folder"),
        (
            ["nowhere", "recipes/distill.toml", "--set", "distill.beam=no"],
            "distill.toml: distill.beam: 'no' is not an integer",
        ),
    ],
)
def test_what_is_missing_is_named(heed, tmp_path, words, says):
    more = [] if words else ["--source", "a.ko"]
    code, _, err = heed("distill", *words, *more, "--out", tmp_path / "run")
    assert (code, says in err) == (1, True)


def test_a_run_is_not_overwritten(heed, command, trained):
    code, _, err = heed(*command(trained))
    assert (code, f"{trained} already exists: continue with --resume, or choose another --out" in err) == (1, True)
    code, _, err = heed(*command(trained, "--resume"))
    assert (code, f"{trained} is not a distillation run: continue with heed train" in err) == (1, True)


def test_several_processes_are_told_that_one_is_enough(heed, command, tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    code, _, err = heed(*command(tmp_path / "run"))
    assert (code, f"torchrun can continue it with: heed train --out {tmp_path}/run --resume" in err) == (1, True)
