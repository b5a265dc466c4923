import dataclasses

import pytest

from heed.decoding.config import UNGUARDED, DecodingConfig
from heed.loading import write_package
from tests.convert.encoders import package as encoder
from tests.convert.small import ENDS, package, speaking


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
