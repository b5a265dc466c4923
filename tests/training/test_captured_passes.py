"""The passes that CUDA graphs hold are those of the plain step; here without a graph, on the CPU."""

import copy
from functools import partial

import pytest
import torch

from heed.data.pretraining import MaskedBatch
from heed.data.streams import IGNORED, Window
from heed.models.bert import Bert, BertConfig
from heed.models.gpt2 import GPT2, GPT2Config
from heed.models.transformer_xl import TransformerXL, TransformerXLConfig
from heed.tasks.language_loss import IndependentLoss, LanguageLoss
from heed.tasks.masked import MaskedLoss
from heed.training import loop
from heed.training.accelerated.captured_passes import CapturedPasses
from heed.training.schedule import constant

SIZES = {"vocab_size": 30, "dim": 16, "heads": 2, "hidden": 24, "layers": 2, "dropout": 0.2, "word_dropout": 0.2}
MODELS = {
    "transformer-xl": (partial(TransformerXL, TransformerXLConfig(**SIZES, memory=7)), LanguageLoss),
    "gpt2": (partial(GPT2, GPT2Config(**SIZES, max_length=8)), IndependentLoss),
}


def windows(count):
    torch.manual_seed(3)
    for number in range(count):
        tokens = torch.randint(30, (2, 9))
        yield number, Window(tokens[:, :-1], tokens[:, 1:], number in (0, 5), 16)


def trained(name, captured, accumulate=1):
    """Weights, losses and what is carried after some steps, the sixth batch of which begins a text."""
    build, make = MODELS[name]
    torch.manual_seed(0)
    model, objective = build().double(), make()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    passes, losses = CapturedPasses(model, objective) if captured else None, []
    steps = range(1, 8 // accumulate + 1)
    options = {"steps": steps, "accumulate": accumulate, "clip": 1.0, "forward_backward": passes}
    after = [lambda progress: losses.append(float(progress.nll))]
    loop.train(model, windows(8), objective, optimizer, constant(0.01, 0), **options, after_step=after)
    state = objective.recurrent_state() if name == "transformer-xl" else {}
    return [copy.deepcopy(model.state_dict()), losses, state]


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("name", MODELS)
def test_it_learns_what_the_plain_step_learns_to_the_bit(name, accumulate):
    plain, captured = (trained(name, own, accumulate) for own in (False, True))
    torch.testing.assert_close(captured, plain, rtol=0, atol=0)
    assert bool(plain[2]) == (name == "transformer-xl")


def test_what_was_restored_is_saved_again_before_the_next_batch():
    objective, state = LanguageLoss(), {"0.0": torch.ones(2, 3, 4), "1.0": torch.zeros(2, 3, 4)}
    objective.restore_recurrent_state(state)
    assert objective.recurrent_state().keys() == state.keys()
    assert all(objective.recurrent_state()[name] is own for name, own in state.items())


def test_the_parts_of_a_loss_count_as_in_the_plain_step():
    objective = MaskedLoss(pair_weight=3.0)
    model = Bert(BertConfig(vocab_size=40, dim=16, heads=2, hidden=24, layers=2, max_length=12, head="pretraining"))
    found = {}
    for captured in (False, True):
        torch.manual_seed(0)
        own = copy.deepcopy(model).double()
        passes, seen = CapturedPasses(own, objective) if captured else None, []
        optimizer = torch.optim.AdamW(own.parameters(), lr=0.01)
        options = {"steps": range(1, 5), "forward_backward": passes, "parts": objective.parts}
        after = [lambda progress, seen=seen: seen.append((float(progress.nll), progress.parts))]
        loop.train(own, masked_rows(4), objective, optimizer, constant(0.01, 0), **options, after_step=after)
        found[captured] = own.state_dict(), seen
    torch.testing.assert_close(found[True][0], found[False][0], rtol=0, atol=0)
    assert found[True][1] == found[False][1]
    counts = [{name: count for name, (_, count) in parts.items()} for _, parts in found[True][1]]
    assert counts == [{"masked_words": 3 + number, "pairs": 2} for number in range(4)]


def masked_rows(number):
    torch.manual_seed(5)
    for index in range(number):
        tokens, positions = torch.randint(5, 40, (2, 12)), torch.randperm(24)[:8]
        expected = torch.where(torch.arange(8) < 3 + index, tokens.flatten()[positions], IGNORED)
        segments, labels = torch.arange(12).expand(2, 12) // 6, torch.tensor([0, 1])
        yield index, MaskedBatch(tokens, None, segments, positions, expected, labels, 3 + index, 2, 24)
