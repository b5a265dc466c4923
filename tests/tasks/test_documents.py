"""Documents do not see each other: packed, padded or alone, their loss is the same."""

import numpy as np
import pytest
import torch

from heed.data.batching import plan, plan_packed
from heed.data.documents import DocumentBatches, PackedDocuments, cut_documents
from heed.data.packing import offsets_of
from heed.kernels import fused_model
from heed.models import MODELS
from heed.runs.execution_plan import plan_execution
from heed.tasks.language import LanguageModelling, LanguageSettings
from heed.tasks.language_loss import IndependentLoss, LanguageLoss
from heed.training.config import TrainingConfig
from heed.training.distributed import SingleProcess

SIZES, WINDOW, LAST, CODE = [5, 1, 12, 7, 3, 8, 2], 8, 3, 19
IDS = np.random.default_rng(0).integers(4, 18, sum(SIZES))
STARTS = np.cumsum([0, *SIZES[:-1]])
TASK = LanguageModelling(LanguageSettings())
PACKED = ["gpt", "gpt2", "ctrl"]
SHAPE = {
    "dim": 8,
    "heads": 2,
    "hidden": 12,
    "layers": 2,
    "max_length": 8,
    "memory": 5,
    "dropout": 0.0,
    "attention_dropout": 0.0,
}


def build(name: str) -> torch.nn.Module:
    config = MODELS[name].config
    known = {setting: value for setting, value in SHAPE.items() if setting in config.__dataclass_fields__}
    torch.manual_seed(0)
    model = MODELS[name].model(config(vocab_size=20, **known)).double()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, 0.2)
    return model


def batches(grouping, codes=()) -> list:
    pieces = cut_documents(IDS, STARTS, np.zeros(len(SIZES), dtype=int), WINDOW, LAST, codes)
    made = DocumentBatches(IDS, pieces, budget=24, pad=0, grouping=grouping)
    return [made.make(rows) for rows in made.plan(0)]


def alone(model, code=None) -> torch.Tensor:
    """-log p of all documents, each window by itself and without anything that packs or pads."""
    total = 0
    for start, size in zip(STARTS, SIZES, strict=True):
        for first in range(start, start + size, WINDOW):
            ids = IDS[first : min(first + WINDOW, start + size)].tolist()
            before = code or (LAST if first == start else int(IDS[first - 1]))
            logits = model.project(model.hidden_states(torch.tensor([[before, *ids[:-1]]])))[0]
            total = total - sum(logits.log_softmax(dim=-1)[i, token] for i, token in enumerate(ids))
    return total


@pytest.mark.parametrize("code", [None, CODE])
@pytest.mark.parametrize("name", [*PACKED, "rnn-lm", "transformer-xl"])
def test_the_loss_is_that_of_each_document_alone(name, code):
    model, objective = build(name).train(), IndependentLoss()
    expected = alone(model, code)
    expected.backward()
    gradients = {key: weight.grad.clone() for key, weight in model.named_parameters() if weight.grad is not None}
    for grouping in [plan, plan_packed] if name in PACKED else [plan]:
        model.zero_grad()
        found = [objective(model, batch) for batch in batches(grouping, [code])]
        assert all(isinstance(batch, PackedDocuments) == (grouping is plan_packed) for batch in batches(grouping))
        assert sum(loss.count for loss in found) == sum(SIZES)
        assert abs(sum(loss.nll for loss in found) - expected) < 1e-10
        sum(loss.total for loss in found).backward()
        assert all((model.get_parameter(key).grad - value).abs().max() < 1e-10 for key, value in gradients.items())


def test_joined_documents_would_see_each_other():
    model, tokens = build("gpt2").eval(), torch.from_numpy(IDS[None, :7])
    two, one = offsets_of(np.array([3, 4])), offsets_of(np.array([7]))
    apart, joined = (model.packed_hidden_states(tokens, offsets) for offsets in (two, one))
    assert torch.allclose(apart[:, :3], joined[:, :3], atol=1e-12)
    assert (apart[:, 3:] - joined[:, 3:]).abs().max() > 1e-3
    other = tokens.clone()
    other[:, :3] = LAST
    assert torch.equal(model.packed_hidden_states(other, two)[:, 3:], apart[:, 3:])
    assert model.packed_hidden_states(torch.zeros(1, 8, dtype=torch.long), offsets_of(np.array([8]))).shape[1] == 8
    with pytest.raises(ValueError, match="a text has 9 tokens, but the model has 8 positions"):
        model.packed_hidden_states(torch.zeros(1, 9, dtype=torch.long), offsets_of(np.array([9])))


@pytest.mark.parametrize("name", [*PACKED, "transformer-xl"])
def test_documents_are_packed_where_the_model_can(name):
    model = build(name)
    assert fused_model.supports_packing(model) == (name in PACKED)
    chosen = {
        packed: plan_execution(TrainingConfig(packed=packed), model, TASK, IndependentLoss(), SingleProcess()).grouping
        for packed in (None, False)
    }
    assert chosen == {None: plan_packed if name in PACKED else plan, False: plan}
    assert plan_execution(TrainingConfig(), model, TASK, LanguageLoss(), SingleProcess()).grouping is plan
    with pytest.raises(ValueError, match=r"training\.packed is true, but language with these settings does not"):
        plan_execution(TrainingConfig(packed=True), model, TASK, LanguageLoss(), SingleProcess())


def test_a_process_without_a_document_predicts_nothing():
    model = build("gpt2")
    for grouping in (plan, plan_packed):
        pieces = cut_documents(IDS, STARTS, np.zeros(len(SIZES), dtype=int), WINDOW, LAST)
        empty = DocumentBatches(IDS, pieces, budget=24, pad=0, grouping=grouping, share=(1, 2)).make(np.array([0]))
        loss = IndependentLoss()(model, empty)
        assert (loss.count, float(loss.nll), float(loss.total.detach())) == (0, 0.0, 0.0)
