"""Text by steps in a cache of fixed size: the same as by the plain model, whose cache grows. On the CPU, in float64."""

import pytest
import torch
from torch import nn

from heed.decoding.cuda import weights
from heed.decoding.cuda.text import Sampling, TextRules, TextRunner, generate
from heed.models import MODELS
from heed.models.gpt2 import GPT2
from heed.models.transformer import Transformer, TransformerConfig
from heed.products import cuda_text
from heed.products.generator import Generator
from heed.products.text_window import read
from heed.vocabularies import gpt2
from tests.data.mixed import training
from tests.interpreted import assert_same

SIZES = {"vocab_size": 37, "dim": 32, "heads": 2, "hidden": 48, "layers": 2, "max_length": 24}
PROMPTS = [[5], [7, 8, 9, 1, 2, 3], [36, 0], [4, 4, 4]]


@torch.no_grad()
def build(name, **changes):
    system = MODELS[name]
    torch.manual_seed(4)
    model = system.model(system.config(**{**SIZES, **changes})).double().eval().requires_grad_(False)
    for own, weight in model.named_parameters():
        nn.init.normal_(weight, mean=1.0 if "norm.weight" in own else 0.0, std=0.4)
    return model


def plain(model, prompt, rules, uniform=None):
    """Token by token with a cache that grows."""
    state, token, ids, scores = read(model, [prompt[:-1]]), prompt[-1], [], []
    while (len(ids) < rules.length and token != rules.last) or not ids:
        logp = model.step(torch.tensor([token]), state).log_softmax(dim=-1)
        logp[:, list(rules.never)] = -torch.inf
        chosen = logp.argmax(dim=-1) if rules.sampling is None else rules.sampling.choose(logp, uniform[len(ids)][None])
        token = int(chosen)
        ids.append(token)
        scores.append(float(logp[0, token]))
    return ids, scores


@pytest.mark.parametrize("name", ["gpt", "gpt2", "ctrl"])
@pytest.mark.parametrize("sampling", [None, Sampling(0.7, top_k=12, top_p=0.9, min_p=0.01, typical_p=0.95)])
def test_a_cache_of_fixed_size_changes_no_token(name, sampling):
    model = build(name)
    assert weights.supports_text(model)
    runner = TextRunner(weights.read_text(model, torch.float64))
    uniform = torch.rand(len(PROMPTS), 18, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    ends = plain(model, PROMPTS[1], TextRules(18, -1, (3,), sampling), uniform[1])[0][9]  # some text ends with it
    for last in (-1, ends):
        rules = TextRules(18, last, (3,), sampling)
        with torch.inference_mode():
            wanted = [plain(model, own, rules, drawn) for own, drawn in zip(PROMPTS, uniform, strict=True)]
        assert last < 0 or any(len(ids) < 18 for ids, _ in wanted)
        for _ in range(2):  # the second time in the buffers of the first
            found = generate(runner, PROMPTS, rules, uniform)
            assert [ids for ids, _ in found] == [ids for ids, _ in wanted]
            for one, two in zip(found, wanted, strict=True):
                torch.testing.assert_close(torch.tensor(one[1]), torch.tensor(two[1]), rtol=0, atol=1e-6)
        assert generate(runner, PROMPTS[1:2], rules, uniform[1:2])[0][0] == wanted[1][0]  # alone as in a batch


def test_sampled_tokens_follow_the_distribution():
    logp = torch.randn(1, 12, generator=torch.Generator().manual_seed(1)).log_softmax(dim=-1)
    sampling, draws = Sampling(0.8, top_k=7), 20_000
    uniform = (torch.arange(draws, dtype=torch.float64) + 0.5) / draws  # evenly spread: frequencies are probabilities
    counts = torch.bincount(sampling.choose(logp.expand(draws, -1), uniform), minlength=12)
    kept = logp.masked_fill(logp < logp.topk(7).values[:, -1:], -torch.inf) / 0.8
    torch.testing.assert_close(counts / draws, kept.softmax(dim=-1)[0], rtol=0, atol=2 / draws)
    assert int(sampling.choose(logp, torch.zeros(1, dtype=torch.float64))) == int((kept > -torch.inf)[0].int().argmax())


def test_only_declared_decoders_of_plain_parts_are_taken():
    class Other(GPT2):
        pass

    assert not weights.supports_text(Other(build("gpt2").config))
    assert not weights.supports_text(Transformer(TransformerConfig(vocab_size=20, dim=32, heads=2, hidden=32)))
    assert not weights.supports(build("gpt2"))
    assert not weights.supports_text(build("gpt2", dim=24, heads=1))  # no kernel has heads of 24


@pytest.fixture
def on_a_gpu(monkeypatch):
    """A CPU that passes for a GPU, whose steps are not captured."""
    monkeypatch.setattr(cuda_text, "supports_device", lambda device: True)

    def runner(own):
        return TextRunner(weights.read_text(own.model, torch.float64))

    monkeypatch.setattr(cuda_text.CudaTextEngine, "_build", runner)


def test_a_generator_says_the_same_by_this_engine_and_follows_new_weights(on_a_gpu):
    vocabulary = gpt2.learn(training(), 500)[0]
    model = build("gpt2", vocab_size=len(vocabulary))
    ours, torchs = Generator(model, vocabulary), Generator(model, vocabulary)
    ours.use("auto")
    torchs.use("torch")
    prompts = ["a", "the dog", "", "no"]
    for changes in (
        {"one_line": True},
        {"min_length": 3},
        {"beam": 2},
        {"length": 40},
    ):  # the engine leaves some to torch
        options = {"length": 12, "sample": False, **changes}
        assert [[one.text for one in each] for each in ours.generate_many(prompts, **options)] == [
            [one.text for one in each] for each in torchs.generate_many(prompts, **options)
        ]
    assert ours.engine.runner is not None
    drawn = ours.generate("the", length=6, count=3, seed=5)
    assert [one.text for one in drawn] == [one.text for one in ours.generate("the", length=6, count=3, seed=5)]
    assert len({one.text for one in drawn}) > 1
    before = ours.generate("the", length=12, sample=False)[0]
    with torch.no_grad():
        model.tokens.weight.neg_()
    after = [own.generate("the", length=12, sample=False)[0] for own in (ours, torchs)]
    assert after[0].text == after[1].text != before.text
    assert after[0].score == pytest.approx(after[1].score, abs=1e-5)


def test_where_it_cannot_be_built_torch_answers_after_one_warning(monkeypatch):
    monkeypatch.setattr(cuda_text, "supports_device", lambda device: True)
    vocabulary = gpt2.learn(training(), 500)[0]
    own = Generator(build("gpt2", vocab_size=len(vocabulary)), vocabulary)
    own.use("auto")
    with pytest.warns(UserWarning, match="fast GPU decoding is unavailable, using the standard search: "):
        first = own.generate("a", length=3, sample=False)
    assert own.generate("a", length=3, sample=False) == first


def test_where_a_step_fails_torch_goes_on_after_one_warning(on_a_gpu, monkeypatch):
    def broken(self, buffers, sampling):
        raise RuntimeError("an error of CUDA\nand much more")

    monkeypatch.setattr(TextRunner, "step", broken)
    vocabulary = gpt2.learn(training(), 500)[0]
    own = Generator(build("gpt2", vocab_size=len(vocabulary)), vocabulary)
    own.use("auto")
    with pytest.warns(
        UserWarning, match="fast GPU decoding failed, falling back to the standard search: an error of CUDA$"
    ):
        first = own.generate("a", length=3, sample=False)
    assert own.generate("a", length=3, sample=False) == first


KERNELS = """
import torch
from heed.decoding.cuda import weights
from heed.decoding.cuda.kernels import LargeBatchOps, MediumBatchOps, SmallBatchOps
from heed.decoding.cuda.text import TextRules, TextRunner, generate, text_step
from heed.models.gpt2 import GPT2, GPT2Config
torch.manual_seed(0)
model = GPT2(GPT2Config(vocab_size=37, dim=32, heads=2, hidden=48, layers=1, max_length=24)).eval()
for name, weight in model.named_parameters():
    torch.nn.init.normal_(weight, mean=1.0 if "norm.weight" in name else 0.0, std=0.4)
plain, prompts, rules = TextRunner(weights.read_text(model, torch.float32)), [[5, 6, 7], [8]], TextRules(5, -1)
wanted = generate(plain, prompts, rules)
for ops in (LargeBatchOps(), MediumBatchOps(), SmallBatchOps()):
    ops.self_block = (64, 4)
    runner = TextRunner(plain.weights)
    runner.reading = LargeBatchOps()
    runner.step = lambda buffers, sampling: text_step(runner.weights, ops, buffers, sampling)
    found = generate(runner, prompts, rules)
    assert [ids for ids, _ in found] == [ids for ids, _ in wanted]
    torch.testing.assert_close(torch.tensor([own for _, own in found]), torch.tensor([own for _, own in wanted]), rtol=1e-4, atol=1e-4)
print("the same")
"""


def test_the_kernels_compute_what_torch_does():
    pytest.importorskip("triton", reason="Triton comes with torch's GPU builds alone")
    assert_same(KERNELS)
