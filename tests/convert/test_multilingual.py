"""Folders of mBART-50, M2M-100 and NLLB say in heed what they say in transformers, in every direction, and come back."""

import json

import pytest
import torch
import transformers
from safetensors.torch import load_file

import heed
from heed.convert import huggingface
from heed.loading import open_package
from heed.text.language_codes import resolve
from tests.convert.multilingual import CODES, ENDS, saved, vocabularies
from tests.data.mixed import PLAIN

transformers.utils.logging.disable_progress_bar()
DIRECTIONS = [("ko", "en"), ("fr", "zh")]
SEARCHES = {
    "greedy": ({"num_beams": 1}, {"beam": 1}),
    "beam": ({"num_beams": 4, "length_penalty": 0.6}, {"beam": 4, "length_penalty": 0.6}),
}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """More threads wait for each other in models this small."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module", params=CODES)
def folder(request, tmp_path_factory):
    path = tmp_path_factory.mktemp(request.param)
    saved(request.param, path, ENDS[request.param])
    return path


def doubled(folder):
    """Their model and our translator, in float64, and their tokenizer."""
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).double().eval()
    ours = heed.load(folder, device="cpu", engine="torch")
    ours.model.double()
    return theirs, ours, transformers.AutoTokenizer.from_pretrained(folder)


@torch.no_grad()
@pytest.mark.parametrize("search", SEARCHES)
def test_every_direction_says_what_generate_says(folder, search):
    theirs, ours, tokenizer = doubled(folder)
    (given, own), lengths, texts = SEARCHES[search], set(), PLAIN
    for source, target in DIRECTIONS:
        codes = [resolve(code, tuple(ours.source.languages)) for code in (source, target)]
        tokenizer.src_lang, forced = codes[0], ours.target.languages[codes[1]]
        batch = tokenizer(texts, return_tensors="pt", padding=True)
        ids = theirs.generate(**batch, forced_bos_token_id=forced, max_length=20, **given).tolist()
        found = ours.translate(texts, source=source, target=target, max_length=19, **own)
        assert [[2, *one.ids] for one in found] == [[i for i in row if i != 1] for row in ids]
        assert [one.text for one in found] == [
            " ".join(tokenizer.decode(row, skip_special_tokens=True).split()) for row in ids
        ]
        lengths |= {len(one.ids) for one in found}
    assert len(lengths) > 2


def test_a_folder_goes_out_as_it_came(folder, tmp_path):
    package = open_package(folder)
    huggingface.write(package, tmp_path / "out")
    one, other = (load_file(path / "model.safetensors") for path in (folder, tmp_path / "out"))
    assert one.keys() == other.keys() and all(torch.equal(weight, other[name]) for name, weight in one.items())
    config, back = (json.loads((path / "config.json").read_text()) for path in (folder, tmp_path / "out"))
    assert back == {name: config[name] for name in back}
    for name in ("sentencepiece.bpe.model", "vocab.json", "tokenizer.json", "tokenizer_config.json"):
        assert (folder / name).is_file() == (tmp_path / "out" / name).is_file()
        if (folder / name).is_file():
            assert (folder / name).read_bytes() == (tmp_path / "out" / name).read_bytes(), name
    search = json.loads((tmp_path / "out" / "generation_config.json").read_text())
    assert "forced_bos_token_id" not in search and (search["bos_token_id"], search["decoder_start_token_id"]) == (0, 2)
    transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "out")


def test_a_folder_of_heeds_own_keeps_all_languages(folder, tmp_path):
    from heed.loading import write_package

    write_package(open_package(folder), tmp_path / "own")
    one, other = heed.load(folder, engine="torch"), heed.load(tmp_path / "own", engine="torch")
    assert one.directions == other.directions and len(one.directions) > 40
    told = [each.translate(PLAIN[:3], source="ko", target="en", beam=2, max_length=9) for each in (one, other)]
    assert [t.ids for t in told[0]] == [t.ids for t in told[1]]


def test_a_default_direction_is_read_and_written(folder, tmp_path):
    kind = next(kind for kind in CODES if folder.name.startswith(kind))
    package = open_package(folder)
    package.facts["languages"] = {"source": "ko", "target": "en"}
    huggingface.write(package, tmp_path / "out")
    settings = json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())
    assert (settings["src_lang"], settings["tgt_lang"]) == CODES[kind]
    forced = json.loads((tmp_path / "out" / "generation_config.json").read_text())["forced_bos_token_id"]
    assert forced == vocabularies(kind)[1].languages[CODES[kind][1]]
    ours = heed.load(tmp_path / "out", engine="torch")
    assert ours.facts["languages"] == {"source": "ko", "target": "en"}
    same = heed.load(folder, engine="torch").translate(PLAIN[:2], source="ko", target="en", beam=2, max_length=9)
    assert [t.ids for t in ours.translate(PLAIN[:2], beam=2, max_length=9)] == [t.ids for t in same]
    assert (
        ours.translate(PLAIN[0], target="de", beam=1).ids[0]
        == ours.target.languages[resolve("de", tuple(ours.target.languages))]
    )
