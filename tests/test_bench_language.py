"""The perplexity of language models by context, and the comparison on WikiText-2."""

import itertools
import json
import math

import numpy as np
import pytest
import torch
from bench import context, wikitext

from heed.evaluation.perplexity import evaluation_memory
from heed.models.gpt2 import GPT2, GPT2Config
from heed.models.rnn_lm import RNNLanguageModel, RNNLanguageModelConfig
from heed.models.transformer_xl import TransformerXL, TransformerXLConfig

SIZES = {"vocab_size": 12, "dim": 8, "heads": 2, "hidden": 16, "layers": 1}
MODELS = {
    "LSTM": lambda: RNNLanguageModel(RNNLanguageModelConfig(vocab_size=12, dim=8, hidden=8)),
    "GPT-2": lambda: GPT2(GPT2Config(**SIZES, max_length=7)),
    "Transformer-XL": lambda: TransformerXL(TransformerXLConfig(**SIZES, memory=2)),
}
CONTEXTS = (1, 2, 4, 8)


def nll(model, ids, at, reach):
    """That of one token, after at most `reach` tokens, from a pass of its own."""
    before = torch.tensor([[0, *ids][at - reach + 1 : at + 1]])
    return -model.project(model.hidden_states(before))[0, -1].log_softmax(-1)[ids[at]].item()


@pytest.mark.parametrize("name", MODELS)
def test_each_token_is_scored_with_its_context_and_up_to_a_quarter_more(name):
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    ids = np.random.default_rng(0).integers(12, size=24)
    with torch.no_grad():
        found = context.by_context(model, ids, 0, CONTEXTS, 8)
        expected = {}
        for reach in found:
            stride = max(1, reach // 4)  # the input of the expected token itself is read too
            values = [nll(model, ids, at, reach + 1 + (at - 8) % stride) for at in range(8, 16)]
            expected[reach] = math.exp(np.mean(values))
    assert list(found) == ([1, 2, 4] if name == "GPT-2" else [1, 2, 4, 8])  # as far as it has positions
    assert found == pytest.approx(expected, rel=1e-4)


def transformer_xl(**changes):
    torch.manual_seed(0)
    model = TransformerXL(TransformerXLConfig(**SIZES | changes)).double().eval().requires_grad_(False)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return model, np.random.default_rng(0).integers(12, size=60)


def against_sliding(model, ids, memory, contexts, tokens):
    """Both ways, by windows of 5 tokens with the memory, so that neither the first token nor the last is at an edge."""
    ticks = itertools.count()
    found = context.against_sliding(model, ids, 0, memory, 5, contexts, tokens, lambda: 2 ** next(ticks))
    return found, {one: own["perplexity"] for one, own in found["sliding"].items()}


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_memory_is_worth_windows_of_its_reach(layers):
    """With `same_length` a layer attends to memory - 1 tokens before, so `layers` times as many are in reach."""
    model, ids = transformer_xl(layers=layers, same_length=True)
    with evaluation_memory(model, 4):
        nll = -model.project(model.hidden_states(torch.tensor([[0, *ids[:-1]]]))[0]).log_softmax(-1)
    expected = math.exp(nll[range(13, 45), ids[13:45]].mean())  # in one pass
    reach = 3 * layers
    found, sliding = against_sliding(model, ids, 4, [reach - 1, reach, 13], 32)
    assert found["perplexity"] == pytest.approx(expected, abs=1e-9)
    assert sliding[reach] == pytest.approx(expected, abs=1e-9) == sliding[13]
    assert abs(sliding[reach - 1] - expected) > 1e-6
    found, sliding = against_sliding(model, ids, 5, [reach, 13], 32)  # a longer memory is not
    assert abs(sliding[reach] - found["perplexity"]) > 1e-6


def test_a_memory_of_the_whole_text_is_worth_a_window_of_it():
    model, ids = transformer_xl(layers=2)
    found, sliding = against_sliding(model, ids, 60, [7, 48], 1)
    assert sliding[48] == pytest.approx(found["perplexity"], abs=1e-9)
    assert abs(sliding[7] - sliding[48]) > 1e-2


def test_the_time_of_both_ways_is_compared():
    model, ids = transformer_xl()
    found, _ = against_sliding(model, ids, 4, [2, 6], 8)
    assert (found["seconds"], found["sliding"][2]["seconds"], found["sliding"][6]["seconds"]) == (1, 4, 16)
    assert [own["speed-up"] for own in found["sliding"].values()] == [4, 16]
    assert [own["difference"] for own in found["sliding"].values()] == [
        own["perplexity"] - found["perplexity"] for own in found["sliding"].values()
    ]


def test_the_picture_has_all_models(tmp_path):
    path = tmp_path / "context.png"
    context.draw({"LSTM": {1: 90.0, 2: 70.0}, "GPT-2": {1: 80.0, 2: 60.0}}, path)
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.fixture
def options(tmp_path):
    return wikitext.parser().parse_args(["--data", "wikitext-2", "--out", str(tmp_path), "--time", "30s"])


def finished(folder, losses):
    (folder / "model").mkdir(parents=True)
    rows = [{"kind": "valid", "step": 10 * i, "loss": loss} for i, loss in enumerate(losses, 1)]
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8", newline="\n")


def test_the_best_of_each_kind_by_validation_is_tested(options, tmp_path):
    finished(tmp_path / "gpt", [5.0, 4.6])
    finished(tmp_path / "gpt-heavy", [5.0, 4.5, 4.7])
    finished(tmp_path / "lstm", [4.4])
    (tmp_path / "transformer-xl").mkdir()  # it failed
    chosen = wikitext.best(options)
    assert chosen == {"lstm": "lstm", "gpt": "gpt-heavy"}
    jobs = {job.name: job.command for job in wikitext.evaluations(options, chosen)}
    assert jobs["gpt-heavy-test-1"][-2:] == ("--stride", "32") and "gpt-test-0" not in jobs
    assert f"GPT-2={tmp_path / 'gpt-heavy'}" in jobs["context-lstm-gpt-heavy"]
    for number, value in enumerate((84.0, 82.5)):
        text = json.dumps({"perplexity": {"per_token": value}})
        (tmp_path / f"gpt-heavy-test-{number}.json").write_text(text, encoding="utf-8", newline="\n")
    rows = wikitext.table(options, chosen)
    assert rows[3:] == ["| gpt | 20 | 99.48 |  |", "| gpt-heavy | 30 | 90.02 | 84.00; 82.50, --stride 32 |"]


def test_every_candidate_has_its_recipe_and_time(options):
    jobs = {job.name: job.command for job in wikitext.trainings(options)}
    assert list(jobs) == ["lstm", "gpt", "gpt-heavy", "transformer-xl", "transformer-xl-light"]
    assert all("30s" in command for command in jobs.values())
    assert jobs["transformer-xl-light"][4] == "recipes/wikitext2-transformer-xl.toml"
