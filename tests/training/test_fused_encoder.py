"""Encoders under the accelerated step, by Triton's interpreter: losses and gradients are those of the plain model."""

import pytest
import torch

from heed.kernels import fused_model
from heed.kernels.fused_encoder import row_mask
from heed.models import MODELS
from tests.interpreted import assert_same

pytest.importorskip("triton", reason="Triton comes with torch's GPU builds alone")

BEGIN = """
import torch
from torch import nn
from heed.data.labelled import CollateTexts, PackTexts
from heed.data.pretraining import MaskedBatch
from heed.kernels import fused_model, fused_stack, linear, reduce, residual_norm
from heed.models import MODELS
from heed.products.classifier import Classifier
from heed.tasks.masked import MaskedLoss
from heed.tasks.replaced_tokens import ReplacedTokensLoss
from heed.tasks.text_losses import LabelLoss, PackedTextLoss
from heed.training.accelerated.cuda_graph_step import CudaGraphStep
from heed.vocabularies.vocabulary import SpecialTokens
reduce.TILE["columns"] = 4096  # the interpreter is slow with many programs
residual_norm.program_count = linear.program_count = lambda rows, rows_each, limit: 1
generator = torch.Generator().manual_seed(0)
def made(name, **changes):
    sizes = dict(vocab_size=24, dim=16, heads=1, hidden=16, layers=1, max_length=16)
    off = dict.fromkeys(("dropout", "attention_dropout", "classifier_dropout"), 0.0)
    system = MODELS[name]
    model = system.model(system.config(**{**sizes, **off, **changes}))
    for weight in model.parameters(): nn.init.normal_(weight, std=0.2, generator=generator)
    return model
def masked(padded, labels=None):
    tokens, valid = torch.randint(5, 24, (3, 6), generator=generator), torch.arange(6) < torch.tensor([[6], [4], [1]])
    tokens = tokens.where(valid, 1) if padded else tokens
    segments = (torch.arange(6) > 2).long().expand(3, 6) * valid
    expected = torch.tensor([7, 9, -1, 11])
    return MaskedBatch(tokens, valid if padded else None, segments, torch.tensor([1, 4, 0, 8]), expected, labels, 3, 3, 11)
def compare(model, objective, batch):
    assert fused_model.supports(model)
    torch.manual_seed(5)
    with residual_norm.draw_seeds_at_once(torch.device("cpu")):  # as the fused step does before it samples
        wanted = objective(model, batch)
    wanted.total.backward()
    gradients = {name: weight.grad for name, weight in model.named_parameters()}
    model.zero_grad()
    passes = CudaGraphStep(model, objective, torch.float32)
    torch.manual_seed(5)
    found = passes(batch.clone())
    torch.testing.assert_close(found[:2], (wanted.total.detach(), wanted.nll), rtol=1e-5, atol=1e-4)
    assert found.count == wanted.count == batch.count and passes.gradients is not None
    assert (found.parts or {}).keys() == (wanted.parts or {}).keys()
    for name, part in (wanted.parts or {}).items():
        torch.testing.assert_close(found.parts[name].total, part.total, rtol=1e-5, atol=1e-4)
        assert found.parts[name].count == part.count
    for name, weight in model.named_parameters():
        old = torch.zeros_like(weight) if gradients[name] is None else gradients[name]
        most = float(old.abs().max() + 1)
        torch.testing.assert_close(weight.grad, old, rtol=1e-4, atol=1e-4 * most, msg=lambda text: name + text)
    return found
"""

MASKED = """
compare(made("bert", head="masked"), MaskedLoss(), masked(False))
compare(made("bert", head="pretraining"), MaskedLoss(2.0), masked(True, torch.tensor([1, 0, 1])))
compare(made("roberta", head="masked", pad=1), MaskedLoss(), masked(True))
shared = dict(head="pretraining", embedding=8, layers=4, groups=2)
compare(made("albert", **shared), MaskedLoss(2.0), masked(True, torch.tensor([1, 0, 1])))
fused_stack.SHORT = 2  # as rows of more than 128 tokens
compare(made("bert", head="masked", layers=2), MaskedLoss(), masked(True))
print("the same")
"""

REPLACED = """
def compare_joint(batch, **changes):
    sizes = dict(head="joint", embedding=8, heads=2, dim=32, generator_fraction=0.5)
    return compare(made("electra", **{**sizes, **changes}), ReplacedTokensLoss(5.0, 1), batch)
compare_joint(masked(False)._replace(segments=None), layers=2)
compare_joint(masked(False), embedding=16)  # as wide as the generator
compare_joint(masked(False), embedding=32)  # as wide as the discriminator
batch = masked(True)
begun = generator.get_state()
padded = compare_joint(batch)
generator.set_state(begun)
torch.testing.assert_close(compare_joint(batch.packed()).total, padded.total)  # the same words are drawn
fused_stack.SHORT = 2  # as rows of more than 128 tokens
compare_joint(batch)
print("the same")
"""

LABELLED = """
special = (SpecialTokens(0, 1, 2, 3, before=(2,), delimiter=(3,), segments=True), SpecialTokens(0, 1, 2, 3))
batch = PackTexts(CollateTexts())([[5, 6, 3, 7], [8], [9, 10, 11]], [[0], [2], [1]], special)
for name in ("bert", "albert", "roberta", "electra"):
    compare(made(name, labels=3), PackedTextLoss(LabelLoss(0.1), Classifier.combine), batch)
print("the same")
"""

TOKENS = """
from heed.tasks.question_answering import AnswerLoss, QuestionAnswering
from heed.tasks.tagging import Tagging, TagLoss
special = (SpecialTokens(0, 1, 2, 3, before=(2,), delimiter=(3,), segments=True), SpecialTokens(0, 1, 2, 3))
batch = Tagging.pack([[5, 6, 7, 8], [9], [10, 11, 12]], [[1, 0, 3, 2], [2], [0, 1, 0]], special, slots=32)
compare(made("bert", head="tokens", labels=3), TagLoss(0.1), batch)
batch = QuestionAnswering.pack([[5, 6, 3, 7], [8, 3, 9, 10]], [[4, 4], [0, 0]], special, slots=32)
compare(made("roberta", head="answer"), AnswerLoss(), batch)
print("the same")
"""


@pytest.mark.parametrize(
    "program", [MASKED, REPLACED, LABELLED, TOKENS], ids=["masked", "replaced", "labelled", "tokens"]
)
def test_a_fused_encoder_computes_what_the_plain_one_computes(program):
    assert_same(BEGIN + program)


def test_rows_with_padding_are_two_sequences_each():
    valid = torch.arange(5) < torch.tensor([[5], [3], [1]])
    queries, keys = row_mask(valid)
    assert queries is keys and queries.longest >= 5
    assert queries.starts.tolist() == [0, 5, 5, 8, 10, 11, 15]
    assert queries.positions.tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 0, 1, 0, 0, 1, 2, 3]


def test_a_weight_of_an_odd_size_leaves_the_others_aligned():
    from heed.training.accelerated.cuda_graph_step import CudaGraphStep

    system = MODELS["electra"]
    sizes = {"vocab_size": 21, "dim": 32, "heads": 2, "hidden": 32, "layers": 1, "embedding": 8, "max_length": 16}
    step = CudaGraphStep(system.model(system.config(**sizes, generator_fraction=0.5, head="joint")), None)
    own = {name: weight for name, weight in step.half.named_parameters() if weight.dtype == torch.bfloat16}
    first = step.half_weights.flat.data_ptr()
    away = {name for name, weight in own.items() if (weight.data_ptr() - first) % 16}
    assert len(own) > 30 and away <= {"head.replaced.out.bias", "generator.words.bias"}


@pytest.mark.parametrize(
    ("name", "changes", "fused"),
    [
        ("bert", {"head": "answer"}, True),
        ("bert", {"head": "causal"}, False),
        ("albert", {"layers": 4, "groups": 2}, True),
        ("bigbird", {}, False),
        ("electra", {"head": "joint"}, True),
    ],
)
def test_encoders_are_fused_where_the_kernels_have_all_their_parts(name, changes, fused):
    system = MODELS[name]
    with torch.device("meta"):
        sizes = {"vocab_size": 20, "dim": 64, "heads": 2, "hidden": 24, "layers": 1, "max_length": 32}
        assert fused_model.supports(system.model(system.config(**{**sizes, **changes}))) is fused
