"""The perplexity of language models by context, and the comparison on WikiText-2."""

import json
import math

import numpy as np
import pytest
import torch
from bench import context, wikitext

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
