"""The measurements of guards and of minimum Bayes risk, with a model that does not know what it says."""

import json

import pytest
import torch
from bench import guards

from heed.models.transformer import Transformer, TransformerConfig
from heed.products.translator.translator import Translator
from heed.vocabularies.sentencepiece import SubwordsConfig, learn
from tests import fixed_pairs


@pytest.fixture(scope="module")
def pairs():
    return [(pair.source, pair.target) for pair in fixed_pairs.pairs("train", 300)]


@pytest.fixture(scope="module")
def translator(pairs):
    own = learn([text for pair in pairs for text in pair], SubwordsConfig(), 900)
    torch.manual_seed(1)
    model = Transformer(TransformerConfig(len(own), dim=8, heads=2, hidden=8, max_length=60)).eval()
    return Translator([model], (own, own), facts={"languages": {"source": "ko", "target": "en"}})


@pytest.fixture
def files(pairs, tmp_path, monkeypatch, translator):
    monkeypatch.setattr("heed.load", lambda run, **_: translator)
    for side, name in enumerate(("source", "reference")):
        text = "".join(f"{pair[side]}\n" for pair in pairs[:6])
        (tmp_path / name).write_text(text, encoding="utf-8", newline="\n")
    return ["run", "--source", str(tmp_path / "source"), "--reference", str(tmp_path / "reference")]


def test_each_part_is_measured(files, tmp_path, capsys):
    small = ["--beam", "2", "--candidates", "2", "--texts", "2", "--rounds", "1", "--foreign", files[4]]
    assert guards.main([*files, *small, "--json", str(tmp_path / "found.json")]) == 0
    found = json.loads((tmp_path / "found.json").read_text("utf-8"))
    assert list(found) == ["run", "engine", "cpu", *guards.PARTS]
    assert list(found["mbr"]) == ["beam 2", "mbr, bleu", "mbr, chrf"] and found["references"]["references"] == 6
    assert found["scores"]["guards"]["bleu"] == pytest.approx(found["mbr"]["beam 2"]["bleu"])
    kinds = {"loops", "no end", "copies", "cpu seconds"}
    assert all(set(own["guards"]) == kinds for own in found["poor"].values()) and "another language" in found["poor"]
    assert all(own["guards"]["no end"] == 0 for own in found["poor"].values())  # a second search has to end
    assert "loops" in capsys.readouterr().out


def test_faults_of_each_kind_are_found(translator):
    piece, last = translator.target.encode(["I love you"])[0], translator.target.special.last
    copied = "나는 너를 많이 사랑해"
    targets = [[*piece, last], [*piece * 4, last], piece, [*translator.target.encode([copied])[0], last]]
    found = guards.faults(translator, ["책을 읽어요"] * 3 + [copied], targets, beam=5)
    assert found == {"loops": {1}, "no end": {2}, "copies": {3}}


def test_a_reference_longer_than_the_limit_of_its_source_has_no_end(translator):
    options = guards.parser().parse_args(["run", "--source", "s", "--reference", "r"])
    pairs = [("네", "Yes."), ("네", " ".join(fixed.target for fixed in fixed_pairs.pairs("train", 20)))]
    assert guards.references(translator, pairs, options) == {"references": 2, "loops": [], "no end": [1], "copies": []}


def test_poor_texts_are_made_of_the_test_set(pairs):
    found = guards.poor_texts(pairs, ["ahoj"], 3)
    assert all(len(texts) == 3 and all(texts) for kind, texts in found.items() if kind != "another language")
    assert found["the target language"] == [target for _, target in pairs[:3]]
    assert found == guards.poor_texts(pairs, ["ahoj"], 3)  # the same each time
