"""heed average: of the checkpoints of a run, and of folders of every kind that heed reads."""

import dataclasses
import json

import pytest
import torch
from safetensors.torch import load_file

from heed.convert import huggingface
from heed.loading import load, open_package, write_package
from heed.models.folder import CONFIG
from heed.models.package import Package
from heed.models.rnn_lm import RNNLanguageModel, RNNLanguageModelConfig
from heed.training import checkpoints
from heed.vocabularies import words
from heed.vocabularies.sentencepiece import SubwordsConfig
from tests.convert.small import classifier, drawn, package

KINDS = ["one", "two", "marian", "bart", "pegasus", "classifier"]
THEIRS = KINDS[2:]
LANGUAGES = {"source": "ko", "target": "en"}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def made(kind, seed=0, **facts):
    """A model of a kind, with weights of its own by the seed."""
    own = classifier() if kind == "classifier" else package(kind)
    said = {"languages": LANGUAGES, "max_source": 40, **own.facts}
    if kind != "classifier":
        said["decoding"] = {"beam": 2, "max_length": 8}
    return own._replace(model=drawn(own.model, seed), facts={**said, **facts})


def weights(own):
    return {name: weight.clone() for name, weight in own.model.state_dict().items()}


def is_mean(folder, each):
    found = load_file(folder / "model.safetensors")
    assert found.keys() == each[0].keys()
    for name, weight in found.items():
        expected = sum(own[name].double() for own in each) / len(each)
        torch.testing.assert_close(weight, expected.float(), rtol=0, atol=1e-7)


def speaks(heed, folder, kind):
    verb = "classify" if kind == "classifier" else "translate"
    code, out, err = heed(verb, folder, "나는 책을 읽어요.")
    assert (code, len(out.splitlines())) == (0, 1), err


@pytest.fixture
def run(tmp_path):
    """The folder of a run that has come to its third checkpoint; and their weights."""

    def make(kind):
        folder = tmp_path / "run"
        folder.mkdir()
        (folder / "recipe.toml").write_text("")
        trained = {"task": "translation", "weights": "step 3", "valid_loss": 1.0}
        write_package(made(kind, trained=trained), folder / "model")
        each = [weights(made(kind, seed)) for seed in (1, 2, 3)]
        for step, own in enumerate(each, 1):
            checkpoints.write(folder / "checkpoints", step, own, {"x": torch.zeros(1)}, {})
        return folder, each

    return make


@pytest.mark.parametrize("kind", KINDS)
def test_the_checkpoints_of_a_run(heed, run, tmp_path, kind):
    folder, each = run(kind)
    code, _, err = heed("average", folder, "--out", tmp_path / "all")
    assert (code, err) == (0, f"{tmp_path}/all is the mean of 3: step-000001, step-000002, step-000003")
    is_mean(tmp_path / "all", each)
    assert heed("average", folder, "--last", 2, "--out", tmp_path / "two")[0] == 0
    is_mean(tmp_path / "two", each[1:])
    before, after = open_package(folder), open_package(tmp_path / "two")
    assert [side.key() for side in after.vocabularies] == [side.key() for side in before.vocabularies]
    of = ", ".join(f"{folder}/checkpoints/step-00000{step}" for step in (2, 3))
    assert after.facts == {**before.facts, "trained": {"task": "translation", "weights": f"mean of {of}"}}
    speaks(heed, tmp_path / "two", kind)


@pytest.mark.parametrize("kind", KINDS)
def test_models_of_heed(heed, tmp_path, kind):
    each = [made(kind, seed) for seed in (1, 2)]
    for name, own in zip("ab", each, strict=True):
        write_package(own, tmp_path / name)
    code, _, err = heed("average", tmp_path / "a", tmp_path / "b", "--out", tmp_path / "out")
    assert (code, err) == (0, f"{tmp_path}/out is the mean of 2: a, b")
    is_mean(tmp_path / "out", [weights(own) for own in each])
    speaks(heed, tmp_path / "out", kind)


@pytest.mark.parametrize("kind", THEIRS)
def test_folders_of_transformers_with_an_old_pickle_among_them(heed, tmp_path, kind):
    each = [made(kind, seed) for seed in (1, 2, 3)]
    for name, own in zip("abc", each, strict=True):
        huggingface.write(own, tmp_path / name)
    held = load_file(tmp_path / "b" / "model.safetensors")
    (tmp_path / "b" / "model.safetensors").unlink()
    torch.save(held, tmp_path / "b" / "pytorch_model.bin")
    assert heed("average", *(tmp_path / name for name in "abc"), "--out", tmp_path / "out")[0] == 0
    is_mean(tmp_path / "out", [weights(own) for own in each])
    facts = open_package(tmp_path / "out").facts
    assert facts["trained"] == {"weights": f"mean of {tmp_path}/a, {tmp_path}/b, {tmp_path}/c"}
    assert facts["origin"] == open_package(tmp_path / "a").facts["origin"]
    speaks(heed, tmp_path / "out", kind)


def test_of_one_model_twice_it_is_the_model(heed, tmp_path):
    write_package(made("bart", 1), tmp_path / "ours")
    huggingface.write(made("bart", 1), tmp_path / "theirs")
    assert heed("average", tmp_path / "ours", tmp_path / "theirs", "--out", tmp_path / "out")[0] == 0
    said = [load(tmp_path / name, "cpu").translate("나는 책을 읽어요.").text for name in ("ours", "out")]
    assert said[0] == said[1]


def test_what_matters_for_learning_alone_may_differ(heed, tmp_path):
    one, other = made("bart", 1), made("bart", 2)
    other.model.config = dataclasses.replace(other.model.config, dropout=0.5, init_std=1.0)
    for name, own in (("a", one), ("b", other)):
        write_package(own, tmp_path / name)
    assert heed("average", tmp_path / "a", tmp_path / "b", "--out", tmp_path / "out")[0] == 0
    assert json.loads((tmp_path / "out" / CONFIG).read_text())["model"]["dropout"] == one.model.config.dropout


def recurrent(seed, **dropout):
    vocabulary = words.learn(["the cat sat on the mat"], SubwordsConfig(kind="words", least=1))
    config = RNNLanguageModelConfig(vocab_size=len(vocabulary), dim=6, hidden=6, **dropout)
    return Package(drawn(RNNLanguageModel(config), seed), "language", {"text": vocabulary}, {"max_source": 40})


def test_dropout_of_recurrent_models_may_differ(heed, tmp_path):
    each = [recurrent(1), recurrent(2, layer_dropout=0.1, weight_dropout=0.4, input_dropout=0.2, word_dropout=0.3)]
    for name, own in zip("ab", each, strict=True):
        write_package(own, tmp_path / name)
    code, _, err = heed("average", tmp_path / "a", tmp_path / "b", "--out", tmp_path / "out")
    assert (code, err) == (0, f"{tmp_path}/out is the mean of 2: a, b")
    is_mean(tmp_path / "out", [weights(own) for own in each])


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (lambda: made("pegasus"), "have different subwords: their average would be meaningless"),
        (lambda: made("classifier"), "have different labels: their average would be meaningless"),
        (lambda: package("bart", hidden=16), "have different architectures: compare them with `heed info`"),
        (lambda: package("bart", activation="relu"), "have different architectures: compare them with `heed info`"),
    ],
    ids=["subwords", "labels", "sizes", "activation"],
)
def test_models_that_do_not_go_together(heed, tmp_path, other, said):
    write_package(made("bart"), tmp_path / "a")
    write_package(other(), tmp_path / "b")
    code, _, err = heed("average", tmp_path / "a", tmp_path / "b", "--out", tmp_path / "out")
    assert (code, err) == (1, f"heed: {tmp_path}/a and {tmp_path}/b {said}")
    assert not (tmp_path / "out").exists()


def test_labels_in_another_order_are_other_labels(heed, tmp_path):
    for name, labels in (("a", ["no", "yes", "perhaps"]), ("b", ["yes", "no", "perhaps"])):
        write_package(classifier(labels), tmp_path / name)
    code, _, err = heed("average", tmp_path / "a", tmp_path / "b", "--out", tmp_path / "out")
    assert (code, "have different labels" in err) == (1, True)


def test_what_cannot_be_averaged_is_said_and_nothing_is_left(heed, run, tmp_path):
    folder, _ = run("marian")
    for arguments, said in [
        ([folder, "--last", 5], f"{folder} keeps 3 checkpoints, not 5; training.keep sets how many are kept"),
        ([folder, "--last", 0], "--last is 0; it must be at least 1"),
        (
            [folder, folder, "--last", 2],
            "--last is for a single run; with several model folders, list only the ones you want",
        ),
        ([folder / "model"], f"{folder}/model has no checkpoints: give a run folder, or several model folders"),
    ]:
        assert heed("average", *arguments, "--out", tmp_path / "out")[::2] == (1, f"heed: {said}")
    damaged = folder / "checkpoints" / "step-000002" / "model.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:100])
    code, _, err = heed("average", folder, "--out", tmp_path / "out")
    assert (code, f"{damaged} is damaged (its hash" in err) == (1, True)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_nothing_is_written_over(heed, run, tmp_path):
    folder, _ = run("marian")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("mine")
    code, _, err = heed("average", folder, "--out", tmp_path / "out")
    assert (code, err) == (1, f"heed: {tmp_path}/out already exists: choose another folder")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]
