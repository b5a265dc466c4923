"""Encoders in CTranslate2: the states and answers of torch, the program of the README, and what is refused."""

import re

import numpy as np
import pytest
import torch

from heed.cli.main import main
from heed.convert import ctranslate2 as out
from heed.convert import huggingface
from heed.data.batching import text_inputs
from heed.loading import load
from heed.products import ctranslate2_encoder
from heed.products.classifier import Classifier
from heed.products.ctranslate2_encoder import EncoderEngine, encoder_engine
from heed.products.embedder import Embedder
from heed.vocabularies.text_parts import TextParts
from tests.convert.encoders import package
from tests.convert.small import classifier

CASES = {
    "bert": ("bert", {}),
    "gelu_tanh": ("bert", {"activation": "gelu_tanh"}),
    "one-segment": ("bert", {"segments": 1}),
    "roberta": ("roberta", {}),
    "electra": ("electra", {"embedding": 24}),
}
TEXTS = [
    "나는 책을 읽어요.",
    ["one", "the cat reads a book, and sleeps"],
    "고양이",
    ["a", "b"],
    "a",
    "b c d e",
    "c",
    "d",
    "e f",
]


@pytest.fixture(autouse=True)
def cached(tmp_path, monkeypatch):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))


def product(own, engine):
    found = Classifier(own.model, own.processors["text"], own.processors["labels"].names)
    found.use(engine)
    return found


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("threads", [1, 2])
def test_answers_are_those_of_torch(case, threads):
    system, changes = CASES[case]
    own, before = package(system, "classification", **changes), torch.get_num_threads()
    expected = product(own, "torch").outputs(TEXTS)
    torch.set_num_threads(threads)  # with two, two batches at once
    try:
        for texts in (TEXTS, [*TEXTS, "책 <pad> 고양이 [PAD] a"]):
            found = product(own, "ctranslate2").outputs(texts)[: len(TEXTS)]
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
        rounded = product(own, "ctranslate2-int8").outputs(TEXTS)
    finally:
        torch.set_num_threads(before)
    assert 1e-5 < (rounded - expected).abs().max() < 0.3


@pytest.mark.parametrize("spelled", ["책 <pad> 고양이", "책 [PAD] 고양이"])
def test_padding_that_a_text_spells_changes_nothing(spelled):
    for system in ("bert", "roberta"):
        own = package(system, "classification")
        found, expected = (product(own, engine).outputs([spelled, "a"]) for engine in ("ctranslate2", "torch"))
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_choices_are_scored_too(tmp_path):
    huggingface.write(package("bert", "choice"), tmp_path / "model")
    questions = [["나는 책을", "읽어요.", "마셔요"], ["the cat", "sleeps", "책"]]
    found, expected = (
        load(tmp_path / "model", "cpu", engine).outputs(questions) for engine in ("ctranslate2", "torch")
    )
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_weights_that_change_are_converted_again():
    own = package("bert", "classification")
    found = product(own, "ctranslate2")
    before = found.outputs(TEXTS)
    own.model.tokens.weight.mul_(0.5)
    after, expected = found.outputs(TEXTS), product(own, "torch").outputs(TEXTS)
    assert not torch.allclose(before, after)
    torch.testing.assert_close(after, expected, rtol=0, atol=1e-5)


def test_few_texts_are_not_worth_a_conversion_unless_it_is_asked_for(monkeypatch):
    own = package("bert", "classification")
    found, asked = product(own, "auto"), product(own, "ctranslate2")
    assert not found.engine.takes(ctranslate2_encoder.LEAST_TOKENS - 1) and asked.engine.takes(1)
    assert found.engine.takes(ctranslate2_encoder.LEAST_TOKENS) and found.engine.name == "ctranslate2-float32"
    own.model.double()
    assert not asked.engine.takes(10**6)
    own.model.float()
    monkeypatch.setattr(ctranslate2_encoder, "LEAST_TOKENS", 1)
    monkeypatch.setattr(EncoderEngine, "open", lambda *_: 1 / 0)
    with pytest.warns(UserWarning, match="CTranslate2 cannot run this model, using torch instead: division by zero"):
        assert torch.equal(found.outputs(TEXTS), product(own, "torch").outputs(TEXTS))
    with pytest.raises(ValueError, match="CTranslate2 cannot run this model: division by zero; use engine torch"):
        asked.outputs(TEXTS)


def test_what_cannot_be_run_is_refused_with_a_sentence(monkeypatch, tmp_path):
    def refusal(own, engine):
        with pytest.raises(ValueError) as error:
            encoder_engine(own.model, own.processors["text"], engine)
        return str(error.value)

    assert "does not support this BigBird; use torch" in refusal(package("bigbird", "classification"), "ctranslate2")
    assert "support this Electra" in refusal(package("electra", "classification"), "ctranslate2")
    assert "it only supports encoders, and this is a Bart: use torch" in refusal(classifier(), "ctranslate2-int8")
    bert = package("bert", "classification")
    assert refusal(bert, "x") == "engine is 'x'; it must be auto, torch, ctranslate2 or ctranslate2-int8"
    for own in (package("bigbird", "classification"), package("albert", "classification"), classifier()):
        assert encoder_engine(own.model, own.processors["text"], "auto") is None
    with pytest.raises(
        ValueError, match="does not support embeddings narrower or wider than its layers, which this Ele"
    ):
        out.write(package("electra", "classification"), tmp_path / "out")
    with pytest.raises(ValueError, match="does not support a causal head, which this Bert has"):
        out.write(package("bert", "causal"), tmp_path / "out")
    monkeypatch.setattr(bert.model, "parameters", lambda: iter([torch.empty(1, device="meta")]))
    assert "it only runs on the CPU here, and the model is on meta: use torch" in refusal(bert, "ctranslate2")


@pytest.mark.parametrize(
    "case", [("bert", "classification"), ("roberta", "classification"), ("bert", "choice"), ("bert", "masked"), ("roberta", "none")]
)  # fmt: skip
def test_the_program_in_the_readme_says_what_heed_says(case, tmp_path, monkeypatch):
    own = package(*case)
    out.write(own, tmp_path / "out")
    text = (tmp_path / "out" / "README.md").read_text("utf-8")
    [code] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert ("head.safetensors" in text) is (case[1] != "none") is (tmp_path / "out" / "head.safetensors").is_file()
    monkeypatch.chdir(tmp_path / "out")
    printed = []
    exec(code.replace('"A text.")', '"나는 책을", "읽어요.")', 1), {"print": printed.append})
    tokens, valid, *segments = text_inputs(
        TextParts(own.processors["text"]).encode(["나는 책을\x1f읽어요."]), own.processors["text"].special
    )
    states = own.model.encode_text(tokens, valid, *segments)
    expected = own.model.classify_first(states) if case[1] in ("classification", "choice") else states
    torch.testing.assert_close(torch.from_numpy(printed[0]), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@pytest.mark.parametrize("system", ["bert", "roberta"])
def test_vectors_are_those_of_torch(system, pooling):
    own, texts = package(system, "masked"), [own for own in TEXTS if isinstance(own, str)]
    embedder = Embedder(own.model.eval(), own.processors["text"], pooling)
    expected = embedder.embed(texts)
    embedder.use("ctranslate2")
    torch.testing.assert_close(*map(torch.from_numpy, (embedder.embed(texts), expected)), rtol=0, atol=1e-5)
    found = embedder.embed_ids(embedder.read(texts).ids)
    torch.testing.assert_close(*map(torch.from_numpy, (found, expected)), rtol=0, atol=1e-5)


def test_heed_embed_knows_the_engine(tmp_path, capsys):
    huggingface.write(package("bert", "masked"), tmp_path / "model")
    (tmp_path / "in").write_text("a\nb c\n나는 책을 읽어요.\n", encoding="utf-8", newline="\n")
    words, found = ["embed", str(tmp_path / "model"), "--device", "cpu"], {}
    for engine in ("torch", "ctranslate2", "ctranslate2-int8"):
        out = tmp_path / f"{engine}.npy"
        assert main([*words, "--engine", engine, "--input", str(tmp_path / "in"), "--out", str(out)]) == 0
        found[engine] = np.load(out)
        assert main([*words, "--engine", engine, "--search", str(tmp_path / "in"), "a", "--top", "1"]) == 0
    assert [line.split("\t")[1:] for line in capsys.readouterr().out.splitlines()] == [["1", "a"]] * 3
    assert 0 < np.abs(found["ctranslate2-int8"] - found["torch"]).max() < 0.5
    assert np.abs(found["ctranslate2"] - found["torch"]).max() < 1e-5
    kept = list((tmp_path / "cache").glob("embeddings-*.npy"))
    assert len(kept) == 2  # with 8 bits vectors are others


def test_heed_classify_and_convert_know_the_engine(tmp_path, capsys):
    huggingface.write(package("bert", "classification"), tmp_path / "model")
    lines = []
    for engine in ("torch", "ctranslate2", "ctranslate2-int8"):
        assert main(["classify", str(tmp_path / "model"), "a\tb", "c", "--engine", engine, "--device", "cpu"]) == 0
        lines.append(capsys.readouterr().out)
    assert lines[0] == lines[1] and len(lines[2].splitlines()) == 2
    command = [
        "convert",
        str(tmp_path / "model"),
        "--to",
        "ctranslate2",
        "--quantize",
        "int8",
        "--out",
        str(tmp_path / "fast"),
    ]
    assert main(command) == 0
    assert "for CTranslate2, with weights in int8 (BERT as a classifier)" in " ".join(capsys.readouterr().err.split())
    assert main(["classify", str(tmp_path / "fast"), "a"]) == 1
    assert "is a CTranslate2 folder, which heed can export but not read" in " ".join(capsys.readouterr().err.split())
