import pytest

from heed.cli.main import main
from heed.data.synthetic.phrasebook import corpus
from heed.loading import write_package
from heed.models.folder import WEIGHTS
from heed.models.package import Package
from heed.models.rnn_lm import RNNLanguageModel, RNNLanguageModelConfig
from heed.vocabularies import words
from heed.vocabularies.sentencepiece import SubwordsConfig
from tests.convert.small import classifier

TINY = ["data.phrasebook=300", "subwords.joint=true", "subwords.size=750", "model.dim=16", "model.heads=2", "model.hidden=32", "training.threads=1",
        "training.steps=4", "training.valid_every=2", "training.batch_tokens=200", "decoding.max_length=12",
        "filters.max_length=40"]  # fmt: skip


FEW = (corpus.write.__kwdefaults__, "valid", 60)  # sentences for validation, which translates all of them


@pytest.fixture(autouse=True, scope="package")
def few_validation_sentences():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(*FEW)
        yield


def sets(settings: list[str]) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A run of four steps: it has learned nothing, and does everything."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEED_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setitem(*FEW)
        out = tmp_path_factory.mktemp("runs") / "tiny"
        assert main(["train", "recipes/phrasebook.toml", "--out", str(out), "--quiet", "--no-report", *sets(TINY)]) == 0
    return out


@pytest.fixture(scope="session")
def folders(trained, tmp_path_factory):
    """A model folder of each product, by name. All but the translator lack their weights: what they are is known without."""
    root = tmp_path_factory.mktemp("folders")
    vocabulary = words.learn(["the cat sat on the mat"], SubwordsConfig(kind="words", least=1))
    model = RNNLanguageModel(RNNLanguageModelConfig(vocab_size=len(vocabulary), dim=6, hidden=6))
    write_package(Package(model, "language", {"text": vocabulary}, {}), root / "language")
    write_package(classifier(), root / "classifier")
    for folder in root.iterdir():
        (folder / WEIGHTS).unlink()
    return {"translator": trained, **{folder.name: folder for folder in root.iterdir()}}


@pytest.fixture
def heed(capsys, monkeypatch, tmp_path):
    """Run a command; (exit code, standard output, standard error)."""
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))

    def run(*words) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([str(word) for word in words])
        out, err = capsys.readouterr()
        return code, out, " ".join(err.split())

    return run
