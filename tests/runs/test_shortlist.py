"""The final model of a run has a shortlist, where one is worth having and changes nothing that was said."""

import numpy as np
import pytest

from heed.convert.ctranslate2 import names
from heed.data import corpus as corpora
from heed.data import phrasebook, shortlist
from heed.data.filters import FiltersConfig
from heed.data.readers import Line
from heed.data.subwords import SubwordsConfig, learn
from heed.models.package import Package
from heed.models.transformer import Transformer, TransformerConfig
from heed.runs import product
from heed.runs.prepare import Prepared
from heed.runs.product import Product
from heed.runs.recipe import DataConfig, Recipe
from heed.runs.validation import Translating, Validity


@pytest.fixture(scope="module")
def lines():
    return [Line(pair.source, pair.target, str(i)) for i, pair in enumerate(phrasebook.pairs("train", 300))]


@pytest.fixture(scope="module")
def prepared(lines, tmp_path_factory):
    own = learn([text for line in lines for text in line[:2]], SubwordsConfig(), 900)
    skip = np.zeros(len(lines), dtype=np.uint8)
    folder = tmp_path_factory.mktemp("corpora") / "corpus"
    return Prepared("key", corpora.build(folder, lambda: lines, (own, own), FiltersConfig(), skip=skip), (own, own), [])


def written(prepared, folder, said, base=None):
    folder.mkdir(exist_ok=True)
    validation = Translating([Line("a", "b", "1")], prepared.subwords, budget=100, samples=1)
    made = Product(folder, Recipe(DataConfig(phrasebook=300)), prepared, validation, base)
    made._write_shortlist(folder, Validity({}, [], said))
    return shortlist.read(folder, names(prepared.subwords[1]))


def test_it_is_there_if_all_could_be_said_with_it(prepared, lines, tmp_path, monkeypatch):
    said = [line[:2] for line in lines[:50]]
    assert written(prepared, tmp_path, said) is None  # a vocabulary this small needs none
    monkeypatch.setattr(product, "LARGE", 0)
    monkeypatch.setattr(shortlist, "SIZES", ((100, 20),))
    found = written(prepared, tmp_path, said)
    rows = [line.split("\t") for line in found.splitlines()]
    assert rows[0][0] == "" and len(rows[0][1].split(" ")) == 100
    assert [name for name, _ in rows[1:]] == names(prepared.subwords[0])
    strange = [(source, "völlig Ändëres") for source, _ in said]
    assert written(prepared, tmp_path, strange) is None  # and the one of before is gone


def test_what_was_learned_before_from_another_corpus_it_cannot_tell(prepared, lines, tmp_path, monkeypatch):
    monkeypatch.setattr(product, "LARGE", 0)
    model = Transformer(TransformerConfig(len(prepared.subwords[0]), dim=8, heads=2, hidden=8))
    base = Package(model, prepared.subwords, {"heed": "0"})
    assert written(prepared, tmp_path, [line[:2] for line in lines[:50]], base) is None
    assert written(prepared, tmp_path, [], None) is None
