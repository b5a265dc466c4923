"""AdamW from rounded gradients, run by Triton's interpreter: it does what clipping and torch's AdamW do."""

import pytest

from tests.interpreted import assert_same

pytest.importorskip("triton", reason="Triton comes with torch's GPU builds alone")

BEGIN = """
import copy
import torch
from heed.data.packing import pack
from heed.models.transformer import Transformer, TransformerConfig
from heed.kernels.multi_tensor import squared_norm
from heed.tasks.sequence_loss import CrossEntropy
from heed.training import loop
from heed.training.accelerated import cuda_graph_step
from heed.training.config import TrainingConfig, make_optimizer
from heed.training.accelerated.fused_adamw import FusedAdamW, supports
"""

ALONE = """
torch.manual_seed(0)
even, odd = [(16, 8), (24,), (5000,), (8,)], [(3, 5), (9000,), (7,), (1,)]
for sizes, decay, clip, number in ((even, 0.0, 0.5, 3), (odd, 0.1, 0.0, 3), (odd, 0.0, 1e3, 4), (even, 0.1, 0.5, 0)):
    ours = [torch.nn.Parameter(torch.randn(*size)) for size in sizes]
    theirs = [torch.nn.Parameter(own.detach().clone()) for own in ours]
    config = TrainingConfig(weight_decay=decay)
    one, two, three = (make_optimizer(config, own) for own in (ours, theirs, ours[:2]))
    found = [torch.zeros(sum(own.numel() for own in part)) for part in (ours[:number], ours[number:])]
    assert not supports(one, ours) and not one.state  # before its first step
    for turn in range(4):
        for part in found: part.normal_()
        parts = torch.cat(found).split([own.numel() for own in ours])
        for optimizer, weights in ((one, ours), (two, theirs)):
            loop.set_learning_rate(optimizer, 1e-2)
            for weight, part in zip(weights, parts, strict=True): weight.grad = part.view_as(weight).clone()
            if turn == 3: optimizer.state[weights[1]]["step"].fill_(1)  # as if it had come later
        size = loop.average_and_clip([weight.grad for weight in theirs], 7, clip)
        two.step()
        if turn:
            assert supports(one, ours) and not supports(three, ours) and not supports(one, ours[:2])
            before = [own._version for own in ours]
            own = FusedAdamW(one, ours, tuple(found), number)
            assert own.current(one) and not own.current(two)
            torch.testing.assert_close(own(sum(map(squared_norm, found)), 7, clip), size)
            assert all(own._version > old for own, old in zip(ours, before, strict=True))  # caches of weights rely on it
        else:
            loop.average_and_clip([weight.grad for weight in ours], 7, clip)
            one.step()
        for weight, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(weight, other, rtol=1e-5, atol=1e-6)
            for name in ("step", "exp_avg", "exp_avg_sq"):
                torch.testing.assert_close(one.state[weight][name], two.state[other][name], rtol=1e-5, atol=1e-8)
    assert not supports(torch.optim.SGD(ours), ours) and not supports(torch.optim.AdamW([{"params": ours[:1]}, {"params": ours[1:]}]), ours)
print("the same")
"""

LEARNED = """
batches = [pack([[5], [8]], [[9], []], slots=1), pack([[10]], [[12, 13]], slots=1)]
class ReadsGradients(cuda_graph_step.CudaGraphStep):  # reads the float32 gradients after each batch
    def __call__(self, batch):
        loss = super().__call__(batch)
        assert self.gradients.abs().sum() > 0 and self.weights[0].grad is not None
        return loss

def begun(kind):
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(vocab_size=20, dim=16, heads=1, hidden=24, encoder_layers=1, decoder_layers=1, max_length=40,
                                          dropout=0.0 if kind is None else 0.1, norm="pre"))
    model.encoder.norm.weight.requires_grad_(False)
    optimizer = make_optimizer(TrainingConfig(weight_decay=0.1, epsilon=1e-3), [w for w in model.parameters() if w.requires_grad])
    return model, optimizer

def go(model, optimizer, kind, steps, accumulate=1):
    passes = kind(model, CrossEntropy(0.1), torch.float32) if isinstance(kind, type) else kind  # the interpreter's bfloat16 products are wrong
    sizes, given = [], ((i, batches[i % 2]) for i in range((steps[0] - 1) * accumulate, 99))
    loop.train(model, given, CrossEntropy(0.1), optimizer, lambda step: 1e-2 / step, steps=steps, clip=0.3, accumulate=accumulate,
               forward_backward=passes, after_step=[lambda p: sizes.append(float(p.gradient_norm))])
    assert all(w.grad is None for w in model.parameters())
    return sizes, passes

def facts(model, optimizer):
    moments = [optimizer.state[w][name] for w in model.parameters() if w.requires_grad for name in ("step", "exp_avg", "exp_avg_sq")]
    return [*(w.detach() for w in model.parameters()), *moments]

whole = begun(cuda_graph_step.CudaGraphStep)
sizes, passes = go(*whole, cuda_graph_step.CudaGraphStep, [1, 2])
assert passes.optimizer_step is not None  # it was used
asked = begun(ReadsGradients)
first, passes = go(*asked, ReadsGradients, [1])
kept = copy.deepcopy([part.state_dict() for part in asked])
resumed = begun(cuda_graph_step.CudaGraphStep)  # in another process, fused from its first step
for part, state in zip(resumed, kept, strict=True): part.load_state_dict(state)
assert supports(resumed[1], [w for w in resumed[0].parameters() if w.requires_grad])
for model, optimizer, kind in ((*asked, ReadsGradients), (*resumed, cuda_graph_step.CudaGraphStep)):
    last, passes = go(model, optimizer, kind, [2])
    assert passes.optimizer_step is not None and first + last == sizes
    for one, two in zip(facts(*whole), facts(model, optimizer), strict=True): assert torch.equal(one, two)
assert passes.optimizer_step.current(optimizer) and not passes.optimizer_step.current(whole[1])
optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))  # a checkpoint: other tensors for the moments
assert not passes.optimizer_step.current(optimizer) and supports(optimizer, passes.weights)
go(model, optimizer, passes, [3])
optimizer.param_groups[0]["betas"] = (0.8, 0.9)
assert not passes.optimizer_step.current(optimizer)
optimizer.param_groups[0]["betas"] = passes.optimizer_step.betas
assert all(float(state["step"]) == 3 for state in optimizer.state.values()) and passes.optimizer_step.current(optimizer)
"""

PLAIN = """
for accumulate in (1, 2):
    plain, quick = begun(None), begun(None)
    wanted, _ = go(*plain, None, [1, 2], accumulate)
    found, passes = go(*quick, cuda_graph_step.CudaGraphStep, [1, 2], accumulate)
    assert (passes.optimizer_step is None) == (accumulate == 2)  # sums of several batches are in float32
    torch.testing.assert_close(torch.tensor(found), torch.tensor(wanted), rtol=1e-4, atol=1e-5)
    for (name, one), two in zip(quick[0].named_parameters(), plain[0].parameters(), strict=True):
        if not name.endswith("k.bias"):  # its gradient is only rounding error
            torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5, msg=lambda text: name + text)
"""


def test_one_pass_does_what_clipping_and_adamw_do():
    assert_same(BEGIN + ALONE)


def test_resumed_and_inspected_steps_are_bit_identical_and_learn_what_plain_ones_learn():
    assert_same(BEGIN + LEARNED + PLAIN + 'print("the same")')
