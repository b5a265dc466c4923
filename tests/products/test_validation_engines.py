"""Validation by the GPU's search, here with a machine that needs no GPU: it finds what the plain search finds."""

import warnings
from contextlib import nullcontext

import pytest
import torch

from heed.data.readers import Line
from heed.decoding.config import DecodingConfig
from heed.decoding.cuda import weights
from heed.decoding.cuda.search import SearchRunner
from heed.products.translator.engines import cuda, validation
from heed.products.translator.engines.cuda import CudaEngine
from heed.products.translator.engines.validation import ValidationEngines, only_torch
from heed.runs.stopping import GivenUp
from heed.tasks.length_penalty import hypotheses
from heed.tasks.translation import TranslationValidation
from heed.training.average import EMA, temporary_weights

SEARCH = DecodingConfig(beam=1, max_length=8)


@pytest.fixture
def built(monkeypatch):
    """As if there were a GPU; the machines that were built for it."""
    found = []

    def build(self):
        found.append(SearchRunner(weights.read(self.bundle.model, self.dtype)))
        return found[-1]

    monkeypatch.setattr(cuda, "supports_device", lambda device: True)
    monkeypatch.setattr(validation, "DTYPES", (torch.float64,))
    monkeypatch.setattr(CudaEngine, "_build", build)
    monkeypatch.setattr(CudaEngine, "_fitting", lambda self, beams, length, asked: min(asked, 3))
    return found


@pytest.fixture
def model(make):
    return make(16).model.requires_grad_(True)


@pytest.fixture
def both(pairs, vocabulary):
    """The same validation by the fast search, and by the plain one."""
    lines = [Line(pair.source, pair.target, "") for pair in pairs[:5]]
    given = {"search": SEARCH, "max_source": None, "budget": 99, "samples": 2}
    return [
        TranslationValidation(lines, (vocabulary, vocabulary), **given, engines=own)
        for own in (ValidationEngines(), only_torch)
    ]


def test_it_finds_what_the_plain_search_finds_whatever_the_weights(built, both, model):
    fast, plain = both
    average, seen = EMA(model, 0.5), set()
    for step in range(3):
        with torch.no_grad():
            for weight in model.parameters():
                weight.mul_(-1 if step % 2 else 0.7)
        average.update(model, 100)
        for own in (None, average.weights):  # the trained weights, and their average in their place
            before = torch.get_rng_state()
            with nullcontext() if own is None else temporary_weights(model, own):
                found, wanted = fast.run(model), plain.run(model)
            assert found == wanted
            assert torch.equal(torch.get_rng_state(), before)
            seen.add(str(found.outputs))
    assert len(seen) == 6
    assert len(built) == 1, "its graphs and buffers are kept"
    assert fast.engines.shared.snapshot is None, "the model is not"


def test_another_model_of_the_same_kind_needs_no_other_machine(built, both, make):
    """A sharded run validates a copy, a new one each time."""
    fast, plain = both
    for seed in (16, 17):
        model = make(seed).model
        assert fast.run(model).outputs == plain.run(model).outputs
    assert len(built) == 1


def test_a_search_with_beams_for_the_length_penalty(built, both, model, vocabulary, pairs):
    config = DecodingConfig(beam=4, nbest=4, max_length=8, stopping="heuristic")
    texts = [(pair.source, pair.target) for pair in pairs[:4]]
    given = model, (vocabulary, vocabulary), texts, config, 99
    (found, _), (wanted, _) = hypotheses(*given, both[0].engines), hypotheses(*given)
    assert [[h.tokens for h in own] for own in found] == [[h.tokens for h in own] for own in wanted]
    assert len(built) == 1


@pytest.mark.parametrize("why", ["dtype", "autocast", "model", "device"])
def test_what_it_does_not_support_is_searched_plainly_without_a_word(built, both, model, monkeypatch, why):
    context = nullcontext()
    if why == "dtype":
        model.float()
    elif why == "autocast":
        context = torch.autocast("cpu", dtype=torch.bfloat16)
    elif why == "model":
        monkeypatch.setattr(weights, "supports", lambda model: False)
    else:
        monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with context:
            found, wanted = (own.run(model) for own in both)
    assert found == wanted
    assert built == []


def test_it_computes_in_the_dtype_of_the_context(built, both, model, monkeypatch):
    seen, usual = set(), SearchRunner.step

    def step(self, buffers):
        seen.add(torch.is_autocast_enabled("cpu"))
        usual(self, buffers)

    monkeypatch.setattr(SearchRunner, "step", step)
    monkeypatch.setattr(validation, "DTYPES", (torch.float64, torch.bfloat16))
    both[0].run(model)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        both[0].run(model)
    assert [own.weights.dtype for own in built] == [torch.float64, torch.bfloat16]
    assert seen == {False}, "the engine casts, not autocast"


def test_a_search_that_fails_is_not_tried_again(built, both, model, monkeypatch):
    def fail(*of):
        raise RuntimeError("no kernel\nat all")

    fast, plain = both
    monkeypatch.setattr(cuda, "run", fail)
    with pytest.warns(UserWarning, match="search on the GPU failed, validating with the standard search: no kernel$"):
        found = fast.run(model)
    assert found == plain.run(model)
    monkeypatch.undo()
    assert fast.run(model) == found
    assert len(built) == 1
    assert fast.engines.shared.machine is None, "its memory is free"


def test_a_machine_that_cannot_be_built_is_not_tried_again(built, both, model, monkeypatch):
    monkeypatch.setattr(CudaEngine, "_build", lambda self: built.append(None))
    for _ in range(2):
        assert both[0].run(model) == both[1].run(model)
    assert built == [None]


def test_a_signal_ends_the_search_at_once(built, both, model, monkeypatch):
    """And nothing is left locked or broken."""
    fast, plain = both
    steps, usual = [], SearchRunner.step

    def step(self, buffers):
        steps.append(1)
        if len(steps) == 3:
            raise GivenUp
        usual(self, buffers)

    monkeypatch.setattr(SearchRunner, "step", step)
    with pytest.raises(GivenUp):
        fast.run(model)
    assert fast.run(model) == plain.run(model)
    assert len(built) == 1


def test_it_is_remembered_what_a_search_has_compiled(built, both, model, monkeypatch, tmp_path):
    """Once for each number of beams, when the search has run."""
    noted = []
    monkeypatch.setattr(cuda.compiled, "remember", lambda *of: noted.append(of))
    fast, _ = both
    fast.run(model)
    fast.run(model)
    assert noted == [(model.config, torch.float64, 1, torch.device("cpu"))]
    monkeypatch.setattr(cuda, "run", lambda *of: 1 / 0)
    fast.engines.shared.compiled.clear()
    with pytest.warns(UserWarning, match="validating with the standard search"):
        fast.run(model)
    assert len(noted) == 1, "a search that fails has compiled nothing"
