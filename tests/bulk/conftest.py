import dataclasses

import pytest

from heed.decoding.config import UNGUARDED, DecodingConfig
from heed.loading import write_package
from tests.convert.encoders import package as encoder
from tests.convert.small import ENDS, classifier, package, speaking
from tests.helpers import language_package
from tests.products.test_token_products import answering_package, tagging_package


@pytest.fixture(scope="session")
def translator_folder(tmp_path_factory):
    """A small translator with drawn weights; it loops, and nobody minds."""
    path = tmp_path_factory.mktemp("bulk") / "translator"
    own = speaking(package("one", tied="none", norm="pre", output_bias=True), ENDS["one"])
    own.model.float()
    decoding = dataclasses.asdict(DecodingConfig(beam=4, max_length=16)) | UNGUARDED
    write_package(own._replace(facts={"decoding": decoding}), path)
    return path


@pytest.fixture(scope="session")
def encoder_folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("bulk") / "encoder"
    own = encoder("bert", "none")
    own.model.float()
    write_package(own, path)
    return path


@pytest.fixture(scope="session")
def classifier_folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("bulk") / "classifier"
    own = classifier()
    own.model.float()
    write_package(own._replace(facts={**own.facts, "texts": 1}), path)
    return path


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    out = tmp_path_factory.mktemp("bulk")
    packages = {
        "gpt2": language_package("gpt2"),
        "ctrl": language_package("ctrl"),
        "tagger": tagging_package("bert"),
        "answerer": answering_package("bert"),
        "filler": encoder("bert", "masked")._replace(task="masked"),
        "summarizer": speaking(package("pegasus"), ENDS["pegasus"]),
    }
    for name, own in packages.items():
        own.model.float()
        facts = {"decoding": {"beam": 2, "max_length": 8}} if name == "summarizer" else own.facts
        write_package(own._replace(facts=facts), out / name)
    return out
