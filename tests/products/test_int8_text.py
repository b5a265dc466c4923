"""Copies of a language model for searches on a CPU, in C code and in 8-bit integers: every search runs on the copy, what
measures a model does not, and what is said where there is no copy.
"""

import pytest
import torch
from torch import nn

from heed.kernels import int8, native
from heed.kernels.int8_text import Int8Weights
from heed.kernels.native_text import NativeInt8Weights, NativeTextModel, NativeWeights
from heed.kernels.text_model import SameWeights, TextModel
from heed.models import MODELS
from heed.products import int8_text
from heed.products.generator import Generator
from heed.vocabularies import words
from heed.vocabularies.sentencepiece import SubwordsConfig
from tests.integers import product_of_integers

LINES = ["the cat sat on the mat , it was warm", "a dog saw the cat and she never found the street"]
SIZES = {"dim": 32, "heads": 4, "hidden": 64, "layers": 2, "max_length": 24}
WAYS = [
    {"sample": False},
    {"sample": False, "beam": 3, "count": 2},
    {"sample": False, "beam": 2, "no_repeat": 2, "repetition_penalty": 1.3},
    {"seed": 5, "count": 2, "temperature": 0.8, "top_p": 0.9, "top_k": 9, "min_p": 0.01, "typical_p": 0.95},
    {"seed": 2, "one_line": True, "min_length": 3},
]


compiled = pytest.mark.skipif(native.unavailable() is not None, reason="there is no C code here")
NO_COMPILER = "there is no C compiler (install gcc)"


@pytest.fixture(autouse=True)
def able(monkeypatch):
    """As on a CPU with the instructions."""
    if int8.unavailable():
        product_of_integers(monkeypatch)
    monkeypatch.setattr(int8, "unavailable", lambda: None)


@pytest.fixture(params=["C", "torch"])
def compiler(request, monkeypatch):
    """With a compiler for C, and without."""
    if request.param == "C" and (reason := native.unavailable()):
        pytest.skip(reason)
    if request.param == "torch":
        monkeypatch.setattr(native, "unavailable", lambda: NO_COMPILER)
    return request.param


def without_compiler(monkeypatch):
    monkeypatch.setattr(native, "unavailable", lambda: NO_COMPILER)


def generator(engine="int8", name="gpt2", **changes) -> Generator:
    vocabulary, system = words.learn(LINES, SubwordsConfig(kind="words", least=1)), MODELS[name]
    torch.manual_seed(3)
    model = system.model(system.config(vocab_size=len(vocabulary), **{**SIZES, **changes}))
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.3)
    own = Generator(model.requires_grad_(False), vocabulary)
    own.use(engine)
    return own


def reference(own: Generator) -> Generator:
    """The copy as the model of a generator that knows nothing of copies."""
    made = TextModel(own.model, Int8Weights) if native.unavailable() else NativeTextModel(own.model, NativeInt8Weights)
    made.eval()
    return Generator(made, own.vocabulary)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("name", ["gpt", "gpt2"])
def test_every_search_runs_on_the_copy(way, name, compiler):
    own = generator(name=name)
    prompts = ["the cat", "a dog saw", "it"]
    assert own.generate_many(prompts, length=9, **way) == reference(own).generate_many(prompts, length=9, **way)
    exact = generator("torch", name).generate_many(prompts, length=9, **way)
    assert own.generate_many(prompts, length=9, **way) != exact, "at least scores differ"


def test_stop_strings_and_streams_are_those_of_the_copy():
    own = generator()
    whole = own.generate("the cat", length=12, seed=3)[0].text
    assert "".join(own.stream("the cat", length=12, seed=3)) == whole
    word = whole.split()[3]
    stopped = own.generate("the cat", length=12, seed=3, stop=[word])[0].text
    assert stopped == whole[: whole.index(word)]


def test_a_window_slides_beyond_the_positions():
    own = generator()
    assert own.generate("the cat", length=40, seed=1) == reference(own).generate("the cat", length=40, seed=1)


def test_texts_do_not_depend_on_their_batch_and_the_same_seed_gives_the_same():
    own, prompts = generator(), ["the cat sat", "a dog saw", "on the street"]

    def texts(model, given, way):  # scores may differ in their last bits, as attention is in float32
        return [[one.text for one in found] for found in model.generate_many(given, length=9, **way)]

    for way in (WAYS[0], WAYS[3]):
        together = texts(own, prompts, way)
        assert texts(own, prompts[::-1], way)[::-1] == together
        assert [texts(own, [prompt], way)[0] for prompt in prompts] == together
        assert texts(generator(), prompts, way) == together


def test_what_measures_the_model_stays_in_float32():
    own, exact = generator(), generator("torch")
    own.generate("the cat", length=2)
    assert own.score(LINES) == exact.score(LINES) and own.look("the cat") == exact.look("the cat")
    assert own.perplexity(LINES) == exact.perplexity(LINES)
    assert (own.trace("the cat").attention == exact.trace("the cat").attention).all()
    assert list(own.read_prompt(own.prompt("the cat"), 2)) == list(exact.read_prompt(exact.prompt("the cat"), 2))
    assert (own.engine_name, own.search_engine_name) == ("torch", "int8")


@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_a_small_model_runs_in_float32(engine, monkeypatch):
    if engine == "auto":
        without_compiler(monkeypatch)
    own = generator(engine)
    assert type(own.searched.output) is SameWeights and own.search_engine_name == "torch"
    plain = Generator(own.model, own.vocabulary)
    plain.copies = []
    for way in WAYS:
        assert own.generate("the cat", length=40, **way) == plain.generate("the cat", length=40, **way)


@compiled
@pytest.mark.parametrize("name", ["gpt", "gpt2"])
def test_with_a_compiler_a_small_model_runs_in_c(name):
    own, exact = generator("auto", name), generator("torch", name)
    assert type(own.searched.output) is NativeWeights and (own.engine_name, own.search_engine_name) == (
        "torch",
        "native",
    )
    for way in WAYS:
        found, expected = (model.generate("the cat", length=40, **way) for model in (own, exact))
        assert [one.text for one in found] == [one.text for one in expected]
        assert [one.score for one in found] == pytest.approx([one.score for one in expected], abs=1e-4)
        assert generator("native", name).generate("the cat", length=40, **way) == found
    assert own.score(LINES) == exact.score(LINES)


@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_a_model_in_training_runs_as_it_is(engine):
    own = generator(engine)
    own.model.train()
    assert own.searched is own.model


@compiled
def test_a_large_model_is_copied_without_being_asked(monkeypatch):
    monkeypatch.setattr(int8_text, "LARGE", sum(weight.numel() for weight in generator().model.parameters()))
    own = generator("auto")
    assert isinstance(own.searched.output, NativeInt8Weights) and own.search_engine_name == "int8"
    assert own.generate("the cat", length=9, seed=4) == generator().generate("the cat", length=9, seed=4)
    assert own.score(LINES) == generator("torch").score(LINES)
    exact = generator("torch")
    assert type(exact.searched.output) is SameWeights and exact.search_engine_name == "torch"
    without_compiler(monkeypatch)
    other = generator("auto")
    assert type(other.searched.output) is Int8Weights and other.search_engine_name == "int8 in torch"
    monkeypatch.setattr(int8, "unavailable", lambda: "this CPU is too old")
    assert type(own.searched.output) is SameWeights and own.search_engine_name == "torch"


@compiled
def test_a_large_model_that_cannot_be_copied_runs_as_it_is(monkeypatch):
    def fail(*given):
        raise RuntimeError("no memory")

    monkeypatch.setattr(int8_text, "LARGE", 0)
    monkeypatch.setattr(int8, "pack", fail)
    own = generator("auto")
    with pytest.warns(UserWarning, match="the model cannot be quantized, using float32, which is slower: no memory"):
        found = own.generate("the cat", length=5, seed=4)
    assert found == generator("native").generate("the cat", length=5, seed=4)


def test_the_copy_is_made_once_and_again_after_the_weights_have_changed():
    own = generator()
    assert own.copies[0].copy is None, "not before the first search"
    first = own.searched
    assert own.searched is first
    with torch.no_grad():
        own.model.tokens.weight.mul_(2)
    assert own.searched is not first


def test_without_the_instructions_it_is_refused(monkeypatch):
    monkeypatch.setattr(int8, "unavailable", lambda: "this CPU is too old")
    with pytest.raises(ValueError, match=r"^engine is 'int8', but this CPU is too old: use torch$"):
        generator()


def test_without_a_compiler_c_is_refused(monkeypatch):
    without_compiler(monkeypatch)
    with pytest.raises(
        ValueError, match=r"^engine is 'native', but there is no C compiler \(install gcc\): use torch$"
    ):
        generator("native")


def test_models_without_a_copy_are_refused():
    system = MODELS["rnn-lm"]
    vocabulary = words.learn(LINES, SubwordsConfig(kind="words", least=1))
    own = Generator(system.model(system.config(vocab_size=len(vocabulary), dim=8, hidden=8)), vocabulary)
    with pytest.raises(
        ValueError, match=r"^engine is 'int8', but it does not support this RNNLanguageModel: use torch$"
    ):
        own.use("int8")
    with pytest.raises(ValueError, match=r"^engine is 'int4'; it must be auto, torch, native, int8 or ctranslate2$"):
        own.use("int4")


def test_a_model_that_cannot_be_copied_is_refused(monkeypatch):
    def fail(*given):
        raise RuntimeError("no memory\nand more")

    monkeypatch.setattr(int8, "pack", fail)
    with pytest.raises(ValueError, match=r"^the model cannot be quantized: no memory; use engine torch$"):
        generator().generate("the cat", length=2)
