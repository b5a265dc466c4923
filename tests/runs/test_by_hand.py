"""A run beside the same training written out by hand, sentence by sentence and formula by formula.

Two runs that agree (resumed, killed, of several processes, of one seed) may share a fault. This one shares only the forward pass.
"""

import io
import json
import shutil
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from rich.console import Console
from safetensors.torch import load_file

from heed.data.batching import plan
from heed.runs import models
from heed.runs import recipe as recipes
from heed.runs.train import run
from heed.training.report import Report
from tests import fixed_pairs
from tests.contract.contract import train

STEPS, ACCUMULATE, CLIP, RATE, WARMUP, BETAS, EPSILON, DECAY, SMOOTHING = (
    3,
    2,
    0.5,
    0.02,
    4,
    (0.9, 0.98),
    1e-3,
    0.3,
    0.1,
)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    pairs = list(fixed_pairs.pairs("train", 40))
    for side, name in enumerate(("ko", "en")):
        (folder / name).write_text("".join(f"{pair[side]}\n" for pair in pairs), "utf-8")
        (folder / f"valid.{name}").write_text("".join(f"{pair[side]}\n" for pair in pairs[:4]), "utf-8")
    data = {"source": [f"{folder}/ko"], "target": [f"{folder}/en"]}
    return recipes.parse(
        {
            "data": data | {f"valid_{side}": [f"{folder}/valid.{n}"] for side, n in (("source", "ko"), ("target", "en"))},
            "subwords": {"size": 600},
            "model": {"dim": 8, "heads": 2, "hidden": 12, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0},
            "task": {"label_smoothing": SMOOTHING},
            "training": {
                "steps": STEPS, "batch_tokens": 100, "accumulate": ACCUMULATE, "clip": CLIP, "schedule": "constant",
                "rate": RATE, "warmup": WARMUP, "beta1": BETAS[0], "beta2": BETAS[1], "epsilon": EPSILON, "ema": DECAY,
                "final": "ema", "valid_every": 1, "log_every": 1, "threads": 1, "device": "cpu", "samples": 1,
            },
            "decoding": {"max_length": 3},
        }
    )  # fmt: skip


def by_hand(recipe):
    """The weights after the last step, their moving average, and the loss of each step."""
    prepared = recipe.task.prepare(recipe, None, lambda what, done: None)
    torch.manual_seed(recipe.training.seed)
    model = models.build(recipe, None, prepared)
    corpus, special = prepared.train, next(iter(prepared.processors.values())).special
    lengths = corpus.source.lengths + 1, corpus.target.lengths + 1
    planned = plan(*lengths, recipe.training.batch_tokens, recipe.training.seed, 0)
    weights = list(model.parameters())
    first, second, average = ([own.detach() * scale for own in weights] for scale in (0, 0, 1))
    losses = []
    for step in range(1, STEPS + 1):
        rows = [int(row) for own in planned[ACCUMULATE * (step - 1) : ACCUMULATE * step] for row in own]
        total, plain, tokens = 0.0, 0.0, 0
        for row in rows:
            source, target = (side[row].tolist() for side in (corpus.source, corpus.target))
            expected = torch.tensor([*target, special.last])
            logits = model(torch.tensor([[*source, special.last]]), torch.tensor([[special.first, *target]]))[0]
            total = total + F.cross_entropy(logits, expected, label_smoothing=SMOOTHING, reduction="sum")
            plain, tokens = plain + F.cross_entropy(logits, expected, reduction="sum").item(), tokens + len(expected)
        losses.append(plain / tokens)
        gradients = torch.autograd.grad(total / tokens, weights)
        norm = torch.cat([own.flatten() for own in gradients]).norm()
        decay = min(DECAY, (1 + step) / (10 + step))
        for i, own in enumerate(gradients):
            own = own * min(1, CLIP / norm)
            first[i] = BETAS[0] * first[i] + (1 - BETAS[0]) * own
            second[i] = BETAS[1] * second[i] + (1 - BETAS[1]) * own**2
            m, v = first[i] / (1 - BETAS[0] ** step), second[i] / (1 - BETAS[1] ** step)
            with torch.no_grad():
                weights[i] -= RATE * step / WARMUP * m / (v.sqrt() + EPSILON)
            average[i] = decay * average[i] + (1 - decay) * weights[i].detach()
    names = [name for name, _ in model.named_parameters()]
    return dict(zip(names, weights, strict=True)), dict(zip(names, average, strict=True)), losses


@pytest.fixture(scope="module")
def written(recipe):
    return by_hand(recipe)


@pytest.fixture(scope="module")
def whole(recipe, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "whole"
    train(recipe, folder)
    return folder


def check(run, written):
    weights, average, losses = written
    kept = load_file(run / "checkpoints" / f"step-{STEPS:06d}" / "model.safetensors")
    final = load_file(run / "model" / "model.safetensors")
    for name, weight in weights.items():
        torch.testing.assert_close(kept[name], weight.detach(), rtol=0, atol=2e-5)
        torch.testing.assert_close(final[name], average[name], rtol=0, atol=2e-5)
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text("utf-8").splitlines()]
    logged = [line["loss"] for line in lines if line["kind"] == "step"]
    assert logged == pytest.approx(losses, abs=1e-4)


def test_a_run_is_the_training_written_out_by_hand(whole, written):
    check(whole, written)


def test_a_resumed_run_is_it_too(recipe, whole, written, tmp_path):
    """From the first step on, of which only the checkpoint is left."""
    again = shutil.copytree(whole, tmp_path / "again")
    for step in range(2, STEPS + 1):
        shutil.rmtree(again / "checkpoints" / f"step-{step:06d}")
    shutil.rmtree(again / "model")
    train(recipe, again, resume=True)
    check(again, written)


def test_the_mean_of_the_last_checkpoints_is_the_mean_by_hand(recipe, whole, tmp_path):
    """What a killed run ends with is compared with a whole one's; this is what both should end with."""
    last = replace(recipe, training=replace(recipe.training, final="average-last", average=2, ema=0.0))
    said = io.StringIO()
    run(last, tmp_path / "run", report=lambda start, steps: Report(Console(file=said, width=200), steps, start))
    assert "Final model:" in said.getvalue() and "missing" not in said.getvalue()
    kept = [load_file(tmp_path / "run" / "checkpoints" / f"step-{i:06d}" / "model.safetensors") for i in (2, 3)]
    for name, weight in load_file(tmp_path / "run" / "model" / "model.safetensors").items():
        torch.testing.assert_close(weight, (kept[0][name] + kept[1][name]) / 2, rtol=0, atol=1e-7)
    of_whole = load_file(whole / "checkpoints" / "step-000003" / "model.safetensors")
    assert all(torch.equal(weight, of_whole[name]) for name, weight in kept[1].items())
