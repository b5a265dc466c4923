"""A GPT-2 for CTranslate2: the same scores, the same tokens, and the engine that uses it."""

import dataclasses
import json
import re

import ctranslate2
import pytest
import torch
from torch import nn

import heed
from heed.convert import ctranslate2 as out
from heed.decoding.config import DecodingConfig
from heed.loading import write_package
from heed.models.gpt2 import GPT2, GPT2Config
from heed.models.package import Package
from heed.products.ctranslate2_text import TextEngine
from heed.products.generator import Generator
from heed.vocabularies import gpt2
from tests.data.mixed import training
from tests.helpers import language_package

TEXTS = [
    "the dog sees",
    "a",
    "she never finds the street, does she?",
    "나는 어제 학교에 갔다.",
    "",
    "A child likes bread",
]


@pytest.fixture(autouse=True, scope="module")
def one_thread(tmp_path_factory):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEED_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
    torch.set_num_threads(threads)


def build(room=0, **changes):
    vocabulary = gpt2.learn(training(), 500)[0]
    sizes = {"dim": 24, "heads": 3, "hidden": 48, "layers": 2, "max_length": 64, **changes}
    torch.manual_seed(1)
    model = GPT2(GPT2Config(vocab_size=len(vocabulary) + room, **sizes)).eval().requires_grad_(False)
    for name, weight in model.named_parameters():
        nn.init.normal_(weight, mean=1.0 if "norm.weight" in name else 0.0, std=0.3)
    return Package(model, "language", {"text": vocabulary}, {})


@pytest.fixture(scope="module")
def package():
    return build()


@pytest.mark.parametrize("changes", [{}, {"norm_eps": 0.5}, {"room": 7}], ids=str)
def test_scores_are_those_of_heed(tmp_path, changes):
    own = build(**changes)
    out.write(own, tmp_path / "out")
    theirs, names = ctranslate2.Generator(str(tmp_path / "out"), intra_threads=1), out.names(own.processors["text"])
    generator = Generator(own.model, own.processors["text"])
    lines = [[0, *ids, 0] for ids in own.processors["text"].encode(TEXTS)]
    found = theirs.score_batch([[names[i] for i in line] for line in lines])
    for score, expected in zip(found, generator.score(TEXTS), strict=True):
        assert list(score.log_probs) == pytest.approx(expected.token_scores, abs=1e-4)


def test_the_engine_finds_the_tokens_of_torch_and_their_scores(package):
    torch_engine, own = (Generator(package.model, package.processors["text"]) for _ in range(2))
    own.use("ctranslate2")
    for way in ({"length": 12}, {"length": 30, "one_line": True}):
        expected = torch_engine.generate_many(TEXTS, sample=False, **way)
        found = own.generate_many(TEXTS, sample=False, **way)
        assert [one.tokens for (one,) in found] == [one.tokens for (one,) in expected]
        assert len({str(one.tokens) for (one,) in found}) == len(TEXTS)
        for (one,), (other,) in zip(found, expected, strict=True):
            assert one.text == other.text and one.token_scores == pytest.approx(other.token_scores, abs=1e-4)
    for one, other in zip(own.score(TEXTS), torch_engine.score(TEXTS), strict=True):
        assert one.tokens == other.tokens and one.token_scores == pytest.approx(other.token_scores, abs=1e-4)
    assert own.engine.shared.pools  # it was used


@pytest.mark.parametrize(
    "way", [{"seed": 3}, {"sample": False, "beam": 2}, {"sample": False, "repetition_penalty": 1.2},
            {"sample": False, "stop": ["o"]}, {"sample": False, "length": 90}], ids=str
)  # fmt: skip
def test_what_it_does_not_run_as_asked_stays_with_torch(package, way):
    torch_engine, own = (Generator(package.model, package.processors["text"]) for _ in range(2))
    own.use("ctranslate2")
    way = {"length": 8, **way}
    assert own.generate("the dog", **way) == torch_engine.generate("the dog", **way)
    assert not own.engine.shared.pools


def test_changed_weights_are_converted_again():
    package = build()
    own = Generator(package.model, package.processors["text"])
    own.use("ctranslate2")
    before = own.score(["the dog"])[0].logp
    package.model.tokens.weight.mul_(0.5)
    after = own.score(["the dog"])[0].logp
    own.use("torch")
    assert after != before and after == pytest.approx(own.score(["the dog"])[0].logp, abs=1e-4)


def test_the_program_in_the_readme_says_what_heed_says(package, tmp_path, capsys, monkeypatch):
    out.write(package, tmp_path / "out")
    [code] = re.findall(r"```python\n(.*?)```", (tmp_path / "out" / "README.md").read_text("utf-8"), re.DOTALL)
    assert len(code.splitlines()) <= 10
    monkeypatch.chdir(tmp_path / "out")
    exec(code.replace("A text.", "the dog").replace("max_length=100", "max_length=9"), {})
    [expected] = Generator(package.model, package.processors["text"]).generate(
        "the dog", length=9, one_line=True, sample=False
    )
    assert capsys.readouterr().out.rstrip("\n") == "the dog" + expected.text.rstrip("\n")
    assert out.is_one(tmp_path / "out")
    assert json.loads((tmp_path / "out" / "config.json").read_text())["eos_token"] == "<|endoftext|>"


@pytest.mark.parametrize("quantization", ["int8", "float16"])
def test_other_weights_run_too(package, tmp_path, quantization):
    out.write(package, tmp_path / "out", quantization)
    theirs, names = ctranslate2.Generator(str(tmp_path / "out"), intra_threads=1), out.names(package.processors["text"])
    [found] = theirs.score_batch([[names[0], names[300], names[301]]])
    assert len(found.log_probs) == 2


def test_a_second_head_and_other_models_are_refused(package, tmp_path):
    double = GPT2(GPT2Config(vocab_size=500, dim=24, heads=3, hidden=48, layers=1, max_length=8, choices=True))
    with pytest.raises(ValueError, match="not support multiple-choice heads"):
        out.write(package._replace(model=double), tmp_path / "out")
    with pytest.raises(ValueError, match="engine is 'ctranslate2', but it does not support this GPT2"):
        Generator(double, package.processors["text"]).use("ctranslate2")
    with pytest.raises(ValueError, match="engine is 'fast'; it must be auto, torch, native, int8 or ctranslate2"):
        Generator(package.model, package.processors["text"]).use("fast")
    assert not any(tmp_path.iterdir())


def test_a_folder_is_opened_with_the_engine(package, tmp_path):
    write_package(package, tmp_path / "model")
    own = heed.load(tmp_path / "model", "cpu", "ctranslate2")
    assert own.generate("the dog", length=5, sample=False)[0].text
    assert own.engine.shared.pools and heed.load(tmp_path / "model", "cpu").engine is None
    own.use("ctranslate2", "int8")
    rounded = own.score(["the dog"])[0].logp
    own.use("torch")
    assert (
        rounded == pytest.approx(own.score(["the dog"])[0].logp, abs=2.0) and rounded != own.score(["the dog"])[0].logp
    )


def test_the_engine_takes_plain_greedy_search_that_fits_its_positions():
    package = language_package("gpt2")
    engine = TextEngine(package.model.eval(), package.processors["text"])
    plain = DecodingConfig(beam=1, max_length=5)
    assert engine.takes(plain, 16) and not engine.takes(plain, 17)  # of twenty positions
    others = {"beam": 2, "min_length": 1, "no_repeat": 2, "repetition_penalty": 1.2, "sample": True}
    for name, value in others.items():
        assert not engine.takes(dataclasses.replace(plain, **{name: value}), 3), name
    package.model.train()
    assert not engine.takes(plain, 3)
