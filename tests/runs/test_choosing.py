"""The plain command: settings are chosen, stated in the run folder, and kept when it is resumed or extended."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from heed import config
from heed.cli.main import main
from heed.models import folder as model_folder
from heed.runs import choosing
from heed.runs import recipe as recipes
from heed.runs.report.log import read_training
from heed.runs.run import Run
from heed.tasks.translation import Translation
from heed.training.checkpoint_names import list_checkpoints
from heed.training.curves import read_log
from heed.vocabularies.sentencepiece import choose_size

SMALL = [
    "model.dim=16", "model.heads=2", "model.hidden=16", "model.encoder_layers=1", "model.decoder_layers=1", "subwords.size=300",
    "training.valid_every=2", "training.samples=0", "training.warmup=2", "training.batch_tokens=200", "training.threads=1",
]  # fmt: skip


@pytest.fixture
def train(tmp_path, monkeypatch, capsys):
    """A plain command with settings; (exit code, what was said)."""
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))
    for name in ("en", "de"):
        lines = [f"{name} {i} is {i * 7 % 13}{name} ." for i in range(60)]
        (tmp_path / f"train.{name}").write_text("\n".join(lines) + "\n", "utf-8")

    def train(out, *more):
        sets = [word for setting in SMALL for word in ("--set", setting)]
        files = ["--source", str(tmp_path / "train.en"), "--target", str(tmp_path / "train.de")]
        code = main(["train", *files, "--out", str(tmp_path / out), "--no-report", *sets, *more])
        return code, capsys.readouterr().err

    return train


def weights(folder):
    return load_file(folder / "model" / "model.safetensors")


def same(one, other):
    return one.keys() == other.keys() and all((one[name] == other[name]).all() for name in one)


def test_what_was_chosen_is_said_and_stands_in_the_recipe(train, tmp_path):
    code, said = train("run", "--set", "training.steps=8", "--set", "task.r_drop=1.0")
    assert code == 0 and "Chosen for 60 pairs" in said and "regularization: dropout 0.3, sampling 0.1" in said
    recipe = config.load_toml(tmp_path / "run" / "recipe.toml")
    assert recipe["training"]["cooldown"] == 0.25 and recipe["training"]["final"] == "best-ema"
    assert recipe["task"]["r_drop"] == 1.0 and recipe["model"]["dim"] == 16, "what the user says counts"
    assert recipe["training"]["auto"] is False, "nothing is left to choose"
    assert "Final model: moving average at step" in said
    stated = model_folder.read_config(tmp_path / "run" / "model")["decoding"]["length_penalty"]
    assert f"Length penalty {'kept at' if stated == 1.0 else 'set to'} {stated:g}: on 6 validation sentences" in said
    log = read_training(tmp_path / "run", ["chrf"])
    assert (log.finished, log.ended_by, log.cooldown_from) == (True, "steps", 6)


def test_a_longer_run_from_before_the_cooldown_equals_one_planned_so(train, tmp_path):
    steps = "training.steps={}".format
    assert train("long", "--set", steps(16))[0] == 0
    assert train("short", "--set", steps(8))[0] == 0
    code, said = train("short", "--set", steps(16), "--resume")
    assert code == 0 and "Extending the run: it continues from before the learning rate decay." in said
    assert same(weights(tmp_path / "long"), weights(tmp_path / "short"))


def test_an_extension_that_is_killed_continues_although_the_first_end_had_later_steps(
    train, tmp_path, monkeypatch, capsys
):
    steps, every = "training.steps={}".format, ["--set", "training.checkpoint_every=1"]
    assert train("long", "--set", steps(32), *every)[0] == 0
    assert train("short", "--set", steps(16), *every)[0] == 0
    save = Run._save

    def killed(run, progress):
        save(run, progress)
        if progress.step == 14:  # after the cooldown began, before the first end
            raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(Run, "_save", killed)
        with pytest.raises(SystemExit):
            train("short", "--set", steps(32), *every, "--resume")
    capsys.readouterr()
    kept = list_checkpoints(tmp_path / "short" / "checkpoints")
    assert [path.name for path in kept] == ["step-000013", "step-000014"]
    code, said = train("short", "--set", steps(32), *every, "--resume")
    assert code == 0 and "Continuing from step 14." in said and "Extending" not in said
    assert same(weights(tmp_path / "long"), weights(tmp_path / "short"))
    assert train("short", "--set", steps(48), *every, "--resume")[0] == 0, "and it can be extended again"


def test_an_extension_keeps_the_finished_model_until_there_is_a_better_one(train, tmp_path, monkeypatch):
    scores = iter([1, 2, 30, 40, 3, 4, 5, 6])  # those of the cooldown, then those of the extension
    monkeypatch.setattr(Translation, "score", lambda task, found, metric: float(next(scores)))
    assert train("run", "--set", "training.steps=8", "--set", "training.cooldown=0.5")[0] == 0
    finished = weights(tmp_path / "run")
    more = ("--set", "training.cooldown=0.5", "--resume")
    code, said = train("run", "--set", "training.steps=12", *more)
    assert code == 0 and "Best checkpoint: step 8 (chrF 40.00), before the run was extended." in said
    assert same(weights(tmp_path / "run"), finished)
    scores = iter(range(41, 60))
    assert train("run", "--set", "training.steps=16", *more)[0] == 0
    assert not same(weights(tmp_path / "run"), finished)


def test_an_extension_trains_further_however_short_its_time_is(train, tmp_path):
    def end():
        return next(reversed([line["step"] for line in read_log(tmp_path / "run") if line["kind"] == "end"]))

    code, said = train("run", "--time", "2s")
    assert code == 0 and "2 s are too short for a useful model" in said and "Give at least --time" in said
    for _ in range(2):
        before = end()
        code, said = train("run", "--resume", "--time", "+1s")
        assert code == 0 and "Extending the run" in said
        assert end() > before


def test_more_time_is_refused_for_a_run_that_has_done_all_its_steps(train, tmp_path):
    assert train("run", "--set", "training.steps=8")[0] == 0
    code, said = train("run", "--resume", "--time", "+1h")
    assert code == 1 and "has done all its 8 steps (training.steps), so extending it changes nothing: add --set" in said
    assert train("run", "--resume", "--time", "+1h", "--set", "training.steps=9")[0] == 0


def test_time_is_added_to_a_resumed_run_alone(train, tmp_path):
    code, said = train("run", "--time", "+1h")
    assert code == 1 and "training.time is '+1h', which extends a resumed run: remove the +, or add" in said
    assert not (tmp_path / "run").exists()


def test_a_recipe_file_is_taken_as_it_is(train, tmp_path):
    assert train("run", "--set", "training.steps=8")[0] == 0
    recipe = str(tmp_path / "run" / "recipe.toml")
    assert main(["train", recipe, "--out", str(tmp_path / "again"), "--no-report", "--quiet"]) == 0
    assert same(weights(tmp_path / "run"), weights(tmp_path / "again"))


def test_the_recipe_of_a_run_may_be_resumed_repeated_and_given_another_size(train, tmp_path):
    """Its own recipe leaves the preset and the vocabulary open; the one in the run folder leaves nothing open."""
    files = f'source = "{(tmp_path / "train.en").as_posix()}"\ntarget = "{(tmp_path / "train.de").as_posix()}"\n'
    alphabet = {*"".join((tmp_path / f"train.{side}").read_text("utf-8") for side in ("en", "de"))} - {"\n"}
    small = "".join(f"{name} = {value}\n" for name, value in {"dim": 16, "heads": 2, "encoder_layers": 1}.items())
    quick = "steps = 2\nvalid_every = 1\nsamples = 0\nbatch_tokens = 200\nthreads = 1\n"
    (tmp_path / "own.toml").write_text(f"[data]\n{files}[model]\n{small}[training]\n{quick}", "utf-8")

    def run(recipe, out, *more):
        return main(["train", str(tmp_path / recipe), "--out", str(tmp_path / out), "--no-report", "--quiet", *more])

    def model(out):
        return model_folder.read_config(tmp_path / out / "model")["model"]

    assert run("own.toml", "first") == 0
    saved = config.load_toml(tmp_path / "first" / "recipe.toml")
    built = {name: value for name, value in model("first").items() if value is not None}
    vocab_size = built.pop("vocab_size")
    assert saved["model"] == built | {"preset": "auto", "fresh": False, "prompt": 0}
    assert saved["subwords"]["size"] == choose_size(60, len(alphabet)) > vocab_size, "which the text has no pieces for"
    text = (tmp_path / "first" / "recipe.toml").read_text("utf-8")
    assert text.endswith(f"\n# The data determine the rest of the model: vocab_size {vocab_size}.\n")
    assert run("own.toml", "first", "--resume", "--set", "training.steps=4") == 0, "it leaves open what was chosen"
    assert run("first/recipe.toml", "again") == 0
    assert same(weights(tmp_path / "first"), weights(tmp_path / "again"))
    assert run("first/recipe.toml", "other", "--set", "model.preset=tiny-6-2", "--set", "model.hidden=24") == 0
    assert (model("other")["dim"], model("other")["decoder_layers"], model("other")["hidden"]) == (128, 2, 24)
    assert model("other")["norm"] == "pre"


def mixed(tmp_path):
    """The recipe of docs/guides/fine-tuning.md, its files and a model to start from."""
    text = (Path(__file__).parents[2] / "docs" / "guides" / "fine-tuning.md").read_text("utf-8")
    recipe = text.split("```toml\n# mix.toml\n[[data.corpora]]\nname")[1].split("```")[0]
    (tmp_path / "mix.toml").write_text("[[data.corpora]]\nname" + recipe, "utf-8")
    for name, lines in (("medical", range(100, 120)), ("medical-val", range(200, 206)), ("news", range(300, 400))):
        for language in ("en", "de"):
            said = "".join(f"{language} {name[:3]} {i} is {i * 7 % 13}{language} .\n" for i in lines)
            (tmp_path / f"{name}.{language}").write_text(said, "utf-8")


def test_a_recipe_file_with_a_time_ends_annealed(train, tmp_path):
    """A cosine that was made for other steps would end in the middle."""
    assert train("first", "--set", "training.steps=2")[0] == 0
    text = (tmp_path / "first" / "recipe.toml").read_text("utf-8")
    lines = [
        line for line in text.splitlines() if not line.startswith(("cooldown", "steps", "time", "sha256", "schedule"))
    ]
    (tmp_path / "own.toml").write_text("\n".join(lines), "utf-8")
    settings = [word for name in ("steps=100000", "schedule=cosine") for word in ("--set", f"training.{name}")]
    command = ["train", str(tmp_path / "own.toml"), "--out", str(tmp_path / "timed"), "--time", "1s", "--no-report"]
    assert main([*command, *settings]) == 0
    log = read_training(tmp_path / "timed", ["chrf"])
    recipe = config.load_toml(tmp_path / "timed" / "recipe.toml")
    assert recipe["training"]["cooldown"] == 0.25 and log.ended_by == "time"
    assert main([*command[:3], str(tmp_path / "plain"), *command[4:], *settings, "--set", "training.cooldown=0"]) == 0
    assert config.load_toml(tmp_path / "plain" / "recipe.toml")["training"]["cooldown"] == 0.0, (
        "what the user says counts"
    )


def test_corpora_count_by_their_weights_when_the_rules_measure_them(train, tmp_path, monkeypatch):
    mixed(tmp_path)
    monkeypatch.chdir(tmp_path)
    given = recipes.read(Path("mix.toml"), [])
    text = choosing.measure(given, torch.device("cpu"), None, lambda what, done: None).text
    once = {
        name: sum(
            len(line) for side in ("en", "de") for line in (tmp_path / f"{name}.{side}").read_text("utf-8").splitlines()
        )
        for name in ("medical", "news")
    }
    assert text[:2] == (120, sum(once.values())) and text.read == pytest.approx(
        2 * once["medical"] + 0.1 * once["news"]
    )


def test_a_trained_model_is_tuned_on_a_mix_by_the_rules(train, tmp_path, monkeypatch, capsys):
    """The recipe is that of the documentation."""
    assert train("base", "--set", "training.steps=4")[0] == 0
    mixed(tmp_path)
    monkeypatch.chdir(tmp_path)
    few = ["--set", "training.steps=4", "--set", "training.valid_every=2", "--set", "training.threads=1"]
    assert main(["train", "mix.toml", "--from", "base", "--out", "tuned", "--no-report", *few]) == 0
    said = capsys.readouterr().err
    assert "Chosen for fine-tuning on 120 pairs" in said and "learning rate: rate 0.0002, warmup 1 " in said
    assert "medical: 20 of 20 pairs, weight 2" in said and "news: 100 of 100 pairs, weight 0.1" in said
    recipe = config.load_toml(tmp_path / "tuned" / "recipe.toml")
    assert recipe["training"]["rate"] == 0.0002 and recipe["training"]["patience"] == 5
    before, after = (model_folder.read_config(tmp_path / name / "model") for name in ("base", "tuned"))
    assert before["model"] == after["model"] and before["decoding"] == after["decoding"]
