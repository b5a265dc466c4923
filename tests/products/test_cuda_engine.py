"""The CUDA engine, here with a machine that needs no GPU: which searches it takes, and what it finds."""

import pytest
import torch

from heed.decoding.config import DecodingConfig
from heed.decoding.cuda import weights
from heed.decoding.cuda.search import SearchRunner, rounded
from heed.products.translator.engines import cuda as module
from heed.products.translator.engines.cuda import CudaEngine, round_down
from heed.products.translator.engines.engine import TorchEngine


@pytest.fixture
def built(monkeypatch):
    """As if there were a GPU; the machines that were built for it."""
    found = []

    def build(self):
        found.append(SearchRunner(weights.read(self.bundle.model, self.dtype)))
        return found[-1]

    monkeypatch.setattr(module, "supports_device", lambda device: True)
    monkeypatch.setattr(CudaEngine, "_build", build)
    monkeypatch.setattr(CudaEngine, "_fitting", lambda self, beams, length, asked: min(asked, 3))
    return found


@pytest.fixture
def both(make):
    """One translator with a GPU, and one without."""
    one, other = make(16, max_source=48), make(16, max_source=48)
    one.engines = [CudaEngine(one.bundle, torch.float64), TorchEngine(one.bundle)]
    other.engines = [TorchEngine(other.bundle)]
    return one, other


def spoken(translations):
    return [[(c.text, c.tokens) for c in t.nbest] for t in translations]


@pytest.mark.parametrize(
    "asked",
    [
        {}, {"beam": 1}, {"beam": 4, "nbest": 3, "min_length": 3, "force_end": True},
        {"stopping": "heuristic", "penalty": "length", "renormalize": True, "max_length": None, "max_growth": 0.3},
    ],
)  # fmt: skip
def test_it_translates_as_the_plain_search_does(built, both, texts, asked):
    one, other = both
    found, wanted = one.translate(texts, **asked), other.translate(texts, **asked)
    assert one.engine(**asked) == "cuda"
    assert spoken(found) == spoken(wanted)
    assert [t.score for t in found] == pytest.approx([t.score for t in wanted], abs=1e-10)
    assert len(built) == 1


@pytest.mark.parametrize("asked", [{"sample": True}, {"no_repeat": 2}, {"beam": 17}])
def test_the_plain_search_does_what_it_does_not_support(built, both, texts, asked):
    one, other = both
    assert one.engine(**asked) == "torch"
    assert spoken(one.translate(texts[:2], **asked)) == spoken(other.translate(texts[:2], **asked))
    assert spoken(one.translate(texts[:2], prefix="A")) == spoken(other.translate(texts[:2], prefix="A"))
    assert built == [] or not built[0].buffers


def test_ensembles_and_models_in_training_are_refused(built, make):
    asked = DecodingConfig(), []
    assert not CudaEngine(make(1, 2).bundle).takes(*asked)
    single = make(1)
    assert CudaEngine(single.bundle).takes(*asked)
    single.model.train()
    assert not CudaEngine(single.bundle).takes(*asked)


def test_only_the_automatic_choice_of_engines_includes_it(make):
    translator = make(1)
    assert not any(isinstance(engine, CudaEngine) for engine in translator.engines)
    translator.use("auto")
    assert any(isinstance(engine, CudaEngine) for engine in translator.engines)
    translator.use("torch")
    assert not any(isinstance(engine, CudaEngine) for engine in translator.engines)


def test_weights_that_change_are_copied_to_the_same_memory(built, both, texts):
    one, other = both
    before = one.translate(texts)
    places = [own.data_ptr() for own in weights._leaves(built[0].weights) if isinstance(own, torch.Tensor)]
    for change in (lambda model: model.decoder.layers[0].mlp.body.up.weight.mul_(-1), swap_layers):
        for translator in both:
            with torch.no_grad():
                change(translator.model)
        assert spoken(one.translate(texts)) == spoken(other.translate(texts)) != spoken(before)
        before = one.translate(texts)
    assert len(built) == 1
    assert places == [own.data_ptr() for own in weights._leaves(built[0].weights) if isinstance(own, torch.Tensor)]


def swap_layers(model):
    model.decoder.layers[1].mlp = model.decoder.layers[0].mlp


@pytest.mark.parametrize("change", ["activation", "shape", "norm"])
def test_a_model_of_another_kind_needs_another_machine(built, both, texts, change):
    one, other = both
    one.translate(texts)
    old = [own.clone() for own in weights._leaves(built[0].weights) if isinstance(own, torch.Tensor)]
    for model in (one.model, other.model):
        body = model.decoder.layers[0].mlp.body
        if change == "activation":
            body.activation = weights.ACTIVATIONS["gelu" if body.activation is weights.ACTIVATIONS["relu"] else "relu"]
        elif change == "shape":
            with torch.no_grad():
                body.up.weight, body.up.bias = (torch.nn.Parameter(own[:40]) for own in (body.up.weight, body.up.bias))
                body.down.weight = torch.nn.Parameter(body.down.weight[:, :40])
        else:
            model.decoder.norm.eps = 0.1
    assert not weights.refresh(built[0].weights, one.model)
    new = [own for own in weights._leaves(built[0].weights) if isinstance(own, torch.Tensor)]
    assert all(map(torch.equal, old, new))
    other.translate(texts)
    if change == "shape":  # the snapshot does not know settings, which never change in a run
        assert spoken(one.translate(texts)) == spoken(other.translate(texts))
        assert len(built) == 2


def test_batches_fill_buffers_exactly(built, both):
    card = both[0].engines[0]
    assert card.takes(DecodingConfig(), [])
    sources = [[5] * n for n in (4, 9, 2, 7, 7, 1, 3)]
    batches = list(card._batches(sources, [8] * 7, beams=2, budget=18))
    assert batches == [[1, 3], [4, 0], [6, 2, 5]]
    assert all(round_down(n) <= n and rounded(round_down(n)) == round_down(n) for n in range(1, 3000))


def test_a_batch_that_does_not_fit_is_halved(built, both, texts, monkeypatch):
    one, other = both
    tried, usual = [], module.run

    def narrow(machine, batch, *more):
        tried.append(len(batch.lengths))
        if len(batch.lengths) > 2:
            raise torch.OutOfMemoryError("too much")
        return usual(machine, batch, *more)

    def full(*parts):
        raise torch.OutOfMemoryError("too much")

    monkeypatch.setattr(module, "run", narrow)
    monkeypatch.setattr(CudaEngine, "_fitting", lambda self, beams, length, asked: asked)
    assert spoken(one.translate(texts)) == spoken(other.translate(texts))
    assert tried == [5, 2, 3, 1, 2]
    monkeypatch.setattr(module, "run", full)
    with pytest.raises(torch.OutOfMemoryError, match="too much"):
        one.translate(texts[0])


def test_without_a_gpu_it_takes_nothing(both):
    assert not both[0].engines[0].takes(DecodingConfig(), [])
    assert both[0].engine() == "torch"


def test_a_gpu_that_fails_is_not_used_again(monkeypatch, both, texts):
    def fail(model, dtype):
        raise RuntimeError("no compiler\nat all")

    monkeypatch.setattr(module, "supports_device", lambda device: True)
    monkeypatch.setattr(module.weights, "read", fail)
    one, other = both
    with pytest.warns(UserWarning, match="fast GPU decoding is unavailable, using the standard search: "):
        found = one.translate(texts)
    assert spoken(found) == spoken(other.translate(texts))
    assert spoken(one.translate(texts)) == spoken(found)  # and says so once
