"""Language models under the accelerated step, by Triton's interpreter: losses and gradients are those of the plain model."""

import numpy as np
import pytest
import torch

from heed.data import packing
from heed.data.batching import plan_packed
from heed.data.documents import DocumentBatches, cut_documents
from heed.data.packing import padded_offsets
from heed.models.gpt2 import GPT2, GPT2Config
from heed.runs.execution_plan import plan_execution
from heed.tasks.language import LanguageModelling, LanguageSettings
from heed.tasks.language_loss import IndependentLoss, LanguageLoss
from heed.training import loss
from heed.training.config import TrainingConfig
from heed.training.distributed import SingleProcess
from tests.interpreted import assert_same

triton = pytest.importorskip("triton", reason="Triton comes with torch's GPU builds alone")

PROGRAM = """
import numpy as np
import torch
from heed.data import packing
from heed.data.documents import DocumentBatches, cut_documents
from heed.data.streams import Window
from heed.kernels import cross_entropy, fused_model
from heed.models.ctrl import CTRL, CTRLConfig
from heed.models.gpt import GPT, GPTConfig
from heed.models.gpt2 import GPT2, GPT2Config
from heed.tasks.language_loss import IndependentLoss, LanguageLoss
from heed.training.accelerated.cuda_graph_step import CudaGraphStep
from heed.training.loss_gradients import loss_and_gradient
packing.SEQUENCES = 4
generator = torch.Generator().manual_seed(0)
def draw(*shape): return torch.randint(0, 20, shape, generator=generator)
ids = draw(24).numpy()
pieces = cut_documents(ids, np.array([0, 3, 20, 21]), np.zeros(4, dtype=int), 12, 0)
exact, filled = (DocumentBatches(ids, pieces, budget=64, pad=0, slots=slots).make(np.arange(len(pieces))) for slots in (1, 32))
assert filled.shape == (32, 9, 16) and filled.count == exact.count == 24
window, long = (Window(draw(*shape), draw(*shape), True, shape[0] * shape[1]) for shape in ((3, 5), (1, 130)))
sizes = dict(vocab_size=20, dim=16, heads=1, hidden=24, layers=1, max_length=130, dropout=0.0)
cases = ((GPT2, GPT2Config, [(IndependentLoss(), exact, filled), (LanguageLoss(), long, long)]),
         (GPT, GPTConfig, [(LanguageLoss(0.1), window, window)]), (CTRL, CTRLConfig, [(IndependentLoss(), exact, filled)]))
for kind, config, batches in cases:
    model = kind(config(**sizes, **({} if kind is CTRL else {"attention_dropout": 0.0})))
    for weight in model.parameters(): torch.nn.init.normal_(weight, std=0.2, generator=generator)
    assert fused_model.supports(model)
    for objective, plain, batch in batches:
        model.zero_grad()
        wanted = objective(model, plain)
        wanted.total.backward()
        gradients = {name: weight.grad for name, weight in model.named_parameters()}
        model.zero_grad()
        passes = CudaGraphStep(model, objective, torch.float32)
        found = passes(batch.clone())
        torch.testing.assert_close(found.total, wanted.total.detach(), rtol=1e-5, atol=1e-3)
        assert found.count == wanted.count and passes.gradients is not None
        for name, weight in model.named_parameters():
            most = float(gradients[name].abs().max() + 1)
            torch.testing.assert_close(weight.grad, gradients[name], rtol=1e-4, atol=1e-4 * most, msg=lambda text: name + text)

scores, expected = torch.randn(1, 6, 64, generator=generator), torch.tensor([3, -1, 19, 0, 7, 7])
for block in (8, 8192):
    cross_entropy.LAUNCH["block"] = block
    found = cross_entropy.cross_entropy_gradients(scores.clone(), expected, 0.1, vocab=20)
    for one, two in zip(found, loss_and_gradient(scores[..., :20], expected, 0.1, 0.0, None), strict=True):
        torch.testing.assert_close(one[..., :20] if one.ndim else one, two, rtol=1e-5, atol=1e-5)
    assert not found[2][..., 20:].any()
print("the same")
"""


def test_a_fused_language_model_has_the_losses_and_gradients_of_the_plain_one():
    assert_same(PROGRAM)


def test_a_padded_vocabulary_changes_no_loss_and_no_gradient(monkeypatch):
    generator = torch.Generator().manual_seed(1)
    states, weight, bias = (
        torch.randn(*shape, dtype=torch.float64, generator=generator).requires_grad_()
        for shape in ((9, 4), (13, 4), (13,))
    )
    expected = torch.tensor([1, 12, -1, 0, 3, 3, 12, 5, -1])
    results = []
    for columns in (13, 64):
        for most in (2**20, 40):  # at once, and in chunks
            monkeypatch.setattr(loss, "padded_vocab", lambda vocab, dtype, device, columns=columns: columns)
            monkeypatch.setitem(loss.MAX_LOGITS, "cpu", most)
            total, nll = loss.chunked_cross_entropy(states, weight, bias, expected, 0.1)
            results.append([total, nll, *torch.autograd.grad(total, (states, weight, bias))])
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            torch.testing.assert_close(one, two, rtol=0, atol=1e-12)


def test_only_rows_that_tensor_cores_cannot_take_are_padded():
    cuda, half = torch.device("cuda"), torch.bfloat16
    assert loss.padded_vocab(50_257, half, cuda) == 50_304
    for unchanged in ((32_000, half, cuda), (50_257, torch.float32, cuda), (50_257, half, torch.device("cpu"))):
        assert loss.padded_vocab(*unchanged) == unchanged[0]


def test_filled_up_documents_are_the_documents_and_nothing_to_predict(monkeypatch):
    monkeypatch.setattr(packing, "SEQUENCES", 8)
    ids, starts = np.arange(1, 41), np.array([0, 3, 20, 21])
    pieces = cut_documents(ids, starts, np.zeros(4, dtype=int), 12, 99)
    plain, filled = (DocumentBatches(ids, pieces, budget=64, pad=0, slots=slots) for slots in (1, 128))
    one, two = (own.make(np.arange(len(pieces))) for own in (plain, filled))
    assert two.tokens.shape == (1, 128) and one.count == two.count == 40
    assert torch.equal(two.tokens[:, :40], one.tokens) and torch.equal(two.expected[:, :40], one.expected)
    assert (two.expected[:, 40:] == -1).all() and not two.tokens[:, 40:].any()
    assert two.offsets.longest == 16 and (len(two.offsets.starts) - 1) % 8 == 0
    assert torch.equal(two.offsets.starts[: len(pieces) + 1], one.offsets.starts)
    assert int(two.offsets.starts.diff().max()) <= 12 and int(two.offsets.starts[-1]) == 128
    nothing = filled.make(np.array([], dtype=int))
    assert nothing.tokens.shape == (1, 128) and nothing.count == 0 and (nothing.expected == -1).all()


def test_documents_may_fill_all_positions_of_a_model():
    pieces = cut_documents(np.arange(40), np.array([0]), np.zeros(1, dtype=int), 20, 0)
    batches = DocumentBatches(np.arange(40), pieces, budget=64, pad=0, slots=128, most=20)
    assert batches.make(np.arange(2)).offsets.longest == 20  # 32 for kernels
    assert DocumentBatches(np.arange(40), pieces, budget=64, pad=0, slots=128).make(np.arange(2)).offsets.longest == 32


def test_offsets_are_filled_up_to_whole_slots():
    for lengths in ([5], [128], [1, 127], [100, 200, 3]):
        offsets = padded_offsets(np.array(lengths), 128)
        assert int(offsets.starts[-1]) == -(-sum(lengths) // 128) * 128 == len(offsets.positions)
        assert padded_offsets(np.array(lengths), 128, max(lengths)).longest <= offsets.longest
        assert padded_offsets(np.array(lengths), 128, max(lengths)).longest == max(lengths)


@pytest.mark.parametrize(("objective", "reading"), [(LanguageLoss(), "stream"), (IndependentLoss(), "random")])
def test_on_a_gpu_a_gpt2_trains_by_the_accelerated_step_whatever_it_reads(monkeypatch, objective, reading):
    monkeypatch.setattr("heed.runs.execution_plan.gpu_multiplies_bfloat16", lambda: True)
    monkeypatch.setattr("heed.runs.execution_plan.find_spec", lambda name: name)
    model = GPT2(GPT2Config(vocab_size=20, dim=32, heads=2, hidden=32, layers=1, max_length=20))
    task, worker = LanguageModelling(LanguageSettings(reading=reading)), SingleProcess(torch.device("cuda"))
    found = plan_execution(TrainingConfig(batch_tokens=4096), model, task, objective, worker)
    assert (
        found.accelerated and found.precision == "bfloat16" and (found.grouping is plan_packed) == (reading != "stream")
    )
    assert found.slots == (256 if reading != "stream" else 1)
    assert not plan_execution(TrainingConfig(packed=False), model, task, objective, worker).accelerated
    on_cpu = plan_execution(TrainingConfig(), model, task, objective, SingleProcess())
    assert not on_cpu.accelerated and on_cpu.slots == 1
