"""mBART-50, M2M-100 and NLLB in CTranslate2: as a folder of its own, and as the engine of a translator."""

import re

import pytest
import torch

import heed
from heed.convert import ctranslate2
from heed.convert.ctranslate2_names import names as token_names
from heed.loading import open_package
from tests.convert.multilingual import CODES, ENDS, saved
from tests.data.mixed import PLAIN

engine = pytest.importorskip("ctranslate2")
SEARCH = {"beam": 1, "max_length": 15}


@pytest.fixture(scope="module", params=CODES)
def folder(request, tmp_path_factory):
    path = tmp_path_factory.mktemp(request.param)
    saved(request.param, path, ENDS[request.param])
    return path


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))


def test_an_exported_folder_says_what_torch_says(folder, tmp_path):
    ours = heed.load(folder, device="cpu", engine="torch").toward("ko", "en")
    ctranslate2.write(open_package(folder), tmp_path / "out")
    model, names = engine.Translator(str(tmp_path / "out")), token_names(ours.target)
    sources = [ours.bundle.source_pieces(ids) for ids in ours.source.encode(PLAIN)]
    prefix = [[names[i] for i in ours.special[1].before]] * len(PLAIN)
    options = {"beam_size": 1, "max_decoding_length": 15, "min_decoding_length": 0, "return_end_token": True}
    found = model.translate_batch(sources, prefix, **options)
    told = ours.translate(PLAIN, **SEARCH, force_end=False)  # CTranslate2 has no forced end
    assert [one.hypotheses[0] for one in found] == [[names[i] for i in one.ids] for one in told]


def test_the_engine_says_what_torch_says_in_each_direction_with_one_pool(folder):
    reference, fast = heed.load(folder, device="cpu", engine="torch"), heed.load(folder, device="cpu", engine="torch")
    fast.use("ctranslate2", "float32")
    for source, target in (("ko", "en"), ("en", "de")):
        found = fast.translate(PLAIN, source=source, target=target, **SEARCH)
        told = reference.translate(PLAIN, source=source, target=target, **SEARCH)
        assert [one.ids for one in found] == [one.ids for one in told]
        assert torch.allclose(torch.tensor([t.score for t in found]), torch.tensor([t.score for t in told]), atol=1e-4)
    one, other = fast.toward("ko", "en").engines[0], fast.toward("en", "de").engines[0]
    assert one.name == "ctranslate2-float32" and one.shared is other.shared and len(one.shared.pools) == 1


def test_the_program_on_the_card_runs(folder, tmp_path, monkeypatch, capsys):
    package = open_package(folder)
    package.facts["decoding"] |= {"max_length": 9, "beam": 1, "min_length": 1}
    ctranslate2.write(package, tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text("utf-8")
    [code] = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    monkeypatch.chdir(tmp_path / "out")
    exec(compile(code, "README.md", "exec"), {})
    ours = heed.load(folder, device="cpu", engine="torch")
    assert (
        capsys.readouterr().out.split()
        == ours.translate(
            "A text.", source="en", target="de", max_length=9, beam=1, min_length=1, force_end=False
        ).text.split()
    )


def test_every_id_has_a_name_of_its_own():
    """Also where a vocabulary has a piece twice, none for an id, or fewer pieces than the model has ids."""

    class Pieces(list):
        tokenizer = None

        def pieces(self, ids):
            return [self[i] for i in ids]

    assert token_names(Pieces(["<s>", "a", "b"])) == ["<s>", "a", "b"]
    found = token_names(Pieces(["<s>", "a", None, "a", None, "b"]), 8)
    assert found == ["<s>", "a", "<unused_2>", "<unused_3>", "<unused_4>", "b", "<unused_6>", "<unused_7>"]
