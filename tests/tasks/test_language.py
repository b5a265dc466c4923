"""Learning from one text, window after window."""

from pathlib import Path

import numpy as np
import pytest
import torch

from heed.data.batching import DataPosition
from heed.data.streams import Windows
from heed.models.rnn_lm import RNNLanguageModel, RNNLanguageModelConfig
from heed.models.transformer_xl import TransformerXL, TransformerXLConfig
from heed.tasks.language import LanguageLoss
from heed.training import loop
from heed.training.checkpoints import TrainingState
from heed.training.distributed import SingleProcess
from heed.training.recurrent_state import RecurrentState

IDS = np.random.default_rng(0).integers(4, 12, 101)


def build(cell="lstm", **changes) -> RNNLanguageModel:
    torch.manual_seed(0)
    model = RNNLanguageModel(RNNLanguageModelConfig(vocab_size=12, cell=cell, dim=5, hidden=5, **changes)).double()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, 0.2)
    return model


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_windows_with_carried_state_give_the_loss_of_one_long_pass(cell):
    model = build(cell).eval()
    tokens = torch.tensor([[3, *IDS[:-1].tolist()]])
    due = torch.from_numpy(IDS)
    logp = model(tokens)[0].log_softmax(dim=-1)
    plain = -sum(logp[i, due[i]] for i in range(len(IDS)))
    for length in (1, 7, 101, 200):
        windows, objective = Windows(IDS, 3, rows=1, length=length), LanguageLoss()
        parts = [objective(model, windows.make(DataPosition(0, i))) for i in range(len(windows))]
        assert sum(part.count for part in parts) == len(IDS)
        assert abs(sum(part.nll for part in parts) - plain) < 1e-9


@pytest.mark.parametrize("cutoffs", [[], [6, 9]])
def test_windows_with_carried_memory_give_the_loss_of_one_long_pass(cutoffs):
    config = {"dim": 8, "heads": 2, "hidden": 12, "layers": 2, "memory": 9, "same_length": True, "divisor": 2}
    torch.manual_seed(0)
    model = TransformerXL(TransformerXLConfig(vocab_size=12, cutoffs=cutoffs, **config)).double().eval()
    plain = float(LanguageLoss()(model, Windows(IDS, 3, rows=1, length=101).make(DataPosition(0, 0))).nll)
    for length in (1, 7, 40):
        windows, objective = Windows(IDS, 3, rows=1, length=length), LanguageLoss()
        parts = [objective(model, windows.make(DataPosition(0, i))) for i in range(len(windows))]
        assert abs(sum(float(part.nll) for part in parts) - plain) < 1e-9
        assert {part.shape for part in objective.recurrent_state().values()} == {(1, 9, 8)}
    with pytest.raises(ValueError, match=r"task\.label_smoothing is for models with a plain softmax"):
        LanguageLoss(0.1)(model, windows.make(DataPosition(0, 0)))


def test_the_next_epoch_remembers_nothing():
    model, objective = build().eval(), LanguageLoss()
    windows = Windows(IDS, 3, rows=3, length=10)
    first = objective(model, windows.make(DataPosition(0, 0))).nll
    objective(model, windows.make(DataPosition(0, 1)))
    assert objective(model, windows.make(DataPosition(0, 0))).nll == first


def test_no_gradient_goes_back_into_the_window_before():
    model, objective = build().eval(), LanguageLoss()
    windows = Windows(IDS, 3, rows=3, length=10)
    objective(model, windows.make(DataPosition(0, 0))).total.backward()
    model.zero_grad()
    objective(model, windows.make(DataPosition(0, 1))).total.backward()  # a graph that was freed cannot be walked again
    assert all(not part.requires_grad for part in objective.recurrent_state().values())


DROPPED = {"dropout": 0.3, "weight_dropout": 0.2, "word_dropout": 0.1}


def trained(steps: int, from_tensors=None, place=DataPosition(), first: int = 1, dropped=DROPPED):  # noqa: B008
    """A model after so many steps, with what a checkpoint keeps of it."""
    model = build(**dropped)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    objective = LanguageLoss()
    learner = TrainingState(model, optimizer, None, RecurrentState(objective, SingleProcess()))
    if from_tensors:
        learner.restore(*from_tensors, Path("here"))
    windows = Windows(IDS, 3, rows=4, length=5, seed=1)
    seen = []
    loop.train(model, windows.start(place), objective, optimizer, lambda step: 0.01, steps=range(first, steps + 1),
               seed=1, clip=0.25, after_step=[lambda p: seen.append(p.position)])  # fmt: skip
    parts = [{name: tensor.clone() for name, tensor in own.items()} for own in learner.tensors()]
    return parts, seen[-1]


@pytest.mark.parametrize("stop", [3, 6, 7])
def test_a_resumed_run_is_the_uninterrupted_one_to_the_bit(stop):
    whole, _ = trained(14)
    half, place = trained(stop)
    again, _ = trained(14, half, place, stop + 1)
    for one, other in zip(whole, again, strict=True):
        assert one.keys() == other.keys()
        assert all(torch.equal(one[name], other[name]) for name in one)
    assert {name for name in whole[1] if name.startswith("carried")} == {
        f"carried.{i}.{j}" for i in (0, 1) for j in (0, 1)
    }


def test_it_is_the_training_written_out_by_hand_whole_or_resumed():
    """Two runs that agree may share a fault: here rows, windows, carried states, clipping and AdamW are formulas."""
    model = build(dropout=0.0).eval()
    weights = dict(model.named_parameters())
    first, second = ({name: torch.zeros_like(own) for name, own in weights.items()} for _ in range(2))
    rows = [IDS[start : start + 26].tolist() for start in range(0, 101, 26)]
    read = [[3, *IDS[:25]], *([IDS[start - 1], *row] for start, row in zip((26, 52, 78), rows[1:], strict=True))]
    states = [model.start(1) for _ in rows]
    for step in (1, 2, 3):
        total = 0.0
        for row, tokens, state in zip(rows, read, states, strict=True):
            for place in range(5 * (step - 1), 5 * step):
                total = total - model.step(torch.tensor([int(tokens[place])]), state).log_softmax(-1)[0, row[place]]
        gradients = dict(zip(weights, torch.autograd.grad(total / 20, weights.values()), strict=True))
        norm = sum(float((own**2).sum()) for own in gradients.values()) ** 0.5
        assert norm > 0.25  # it is clipped
        states = [state.detach() for state in states]
        for name, own in gradients.items():
            first[name] = 0.9 * first[name] + 0.1 * own * 0.25 / norm
            second[name] = 0.999 * second[name] + 0.001 * (own * 0.25 / norm) ** 2
            change = first[name] / (1 - 0.9**step) / ((second[name] / (1 - 0.999**step)).sqrt() + 1e-8)
            with torch.no_grad():
                weights[name] -= 0.01 * (0.01 * weights[name] + change)
    half, place = trained(2, dropped={"dropout": 0.0})
    for found in (trained(3, dropped={"dropout": 0.0})[0][0], trained(3, half, place, 3, {"dropout": 0.0})[0][0]):
        assert found.keys() == weights.keys()
        for name, weight in weights.items():
            torch.testing.assert_close(found[name], weight.detach(), rtol=0, atol=1e-7)


def test_without_what_was_carried_it_would_not_be():
    whole, _ = trained(14)
    half, place = trained(3)
    half[1] = {name: tensor for name, tensor in half[1].items() if not name.startswith("carried")}
    again, _ = trained(14, half, place, 4)
    assert not torch.equal(whole[0]["tokens.weight"], again[0]["tokens.weight"])


class Two(SingleProcess):
    """The second of two processes, as far as rows go."""

    rank, world = 1, 2


def test_each_process_goes_on_with_its_own_rows():
    objective = LanguageLoss()
    rows = torch.arange(8.0).view(4, 2)
    RecurrentState(objective, Two()).restore({"carried.0.0": rows, "carried.0.1": rows + 100, "optimizer.x": rows})
    assert [part.tolist() for part in objective.kept[0]] == [[[4, 5], [6, 7]], [[104, 105], [106, 107]]]
    assert RecurrentState(lambda model, batch: None, Two()).tensors() == {}
