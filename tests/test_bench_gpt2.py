"""The rows of `python -m bench gpt2` run, and all systems compute the same. How fast, no test asks."""

import dataclasses
import itertools
import json

import pytest
import torch
from bench import __main__ as command
from bench import gpt2, rows, text, text_ctranslate2, text_heed, text_torch, text_transformers
from bench.rows import TEXT_ROWS
from bench.turns import Measured
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from heed.kernels import native

TRAIN, ONE, MANY, SAMPLE = map(rows.quick, TEXT_ROWS)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def no_cache(monkeypatch):
    monkeypatch.setenv("HEED_CACHE", "")


@pytest.mark.parametrize("module", [text_heed, text_transformers, text_torch], ids=lambda module: module.__name__)
def test_each_who_trains_counts_its_tokens_and_changes_its_weights(module):
    row = dataclasses.replace(TRAIN, shape=dataclasses.replace(rows.TOY, dropout=0.1))
    run = module.build(row, "cpu", "eager")
    assert [run(2), run(1)] == [2 * row.batch * row.length, row.batch * row.length]


def test_all_who_train_minimize_the_same_loss():
    row = dataclasses.replace(TRAIN, shape=dataclasses.replace(rows.TOY, dropout=0.0))
    tokens, expected = text.batches(row)[0]
    ours = text.model(row)
    loss = text_heed.IndependentLoss()(ours, text_heed.Window(tokens, expected, True, tokens.numel()))
    theirs = text_transformers._objective(text_transformers.made(row), tokens, expected)
    plain = text_torch.Decoder(row.shape, 1024)
    with torch.no_grad():
        for own, block in zip(ours.stack.layers, plain.blocks, strict=True):
            a, m = own.attention.body, own.mlp.body
            for name in ("weight", "bias"):
                getattr(block.qkv, name).copy_(torch.cat([getattr(part, name) for part in (a.q, a.k, a.v)]))
                for one, two in ((block.out, a.out), (block.up, m.up), (block.down, m.down)):
                    getattr(one, name).copy_(getattr(two, name))
        plain.tokens.weight.copy_(ours.tokens.weight)
        plain.positions.weight.copy_(ours.positions.places.weight)
    found = torch.stack([theirs, text_torch._objective(plain, tokens, expected)])
    torch.testing.assert_close(found, (loss.total / loss.count).expand(2), rtol=0, atol=1e-5)


@pytest.mark.parametrize("row", [ONE, MANY], ids=lambda row: row.name)
def test_all_who_generate_say_the_same(row):
    systems = rows.text_systems(row, "cpu")
    modules = {"text_heed": text_heed, "text_transformers": text_transformers, "text_ctranslate2": text_ctranslate2}
    systems = [own for own in systems if own.number == "float32" and (own.how != "native" or not native.unavailable())]
    runs = [modules[own.module].build(row, "cpu", own.how) for own in systems]
    assert len(runs) >= 4 and {run(1) for run in runs} == {row.batch * row.length}
    assert all(run.said == runs[0].said for run in runs)


def test_windows_of_other_lengths_fill_the_same_batch():
    args = gpt2.parser().parse_args(["--device", "cuda", "--rows", "train", "1-greedy", "--length", "256", "4096"])
    found = [(row.name, row.batch, row.length) for row in gpt2.chosen_rows(args)]
    assert found == [("train-256", 128, 256), ("train-4096", 8, 4096), ("1-greedy", 1, 128)]
    assert text.model(dataclasses.replace(TRAIN, length=2048)).config.max_length == 2048


def test_sampled_rows_have_their_length():
    for module, how in ((text_heed, "auto"), (text_transformers, "dynamic"), (text_ctranslate2, "float32")):
        run = module.build(SAMPLE, "cpu", how)
        run(1)
        assert [len(own) for own in run.said] == [SAMPLE.length] * SAMPLE.batch


def test_the_operations_of_training_are_those_torch_counts():
    row = TRAIN
    tokens, model = text.batches(row)[0][0], text.model(row).eval().requires_grad_(False)
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH), torch.no_grad():
        model.project(model.hidden_states(tokens))
    unseen = row.shape.layers * 2 * row.shape.dim * row.length  # torch counts the future too, which no token sees
    assert gpt2.operations(row) / 3 + unseen == counter.get_total_flops() / tokens.numel()


def test_gpt2_has_the_published_size_and_text_rows_survive_the_way_to_another_process():
    s = rows.GPT2
    with torch.device("meta"):
        sizes = {"dim": s.dim, "heads": s.heads, "hidden": s.hidden, "layers": s.layers}
        model = text.GPT2(text.GPT2Config(s.vocab, **sizes))
    assert sum(weight.numel() for weight in model.parameters()) == 124_439_808
    for row in TEXT_ROWS:
        assert rows.unpacked(json.loads(json.dumps(rows.packed(row)))) == row


def test_the_summary_has_ratio_share_and_agreement():
    rounds = {
        "heed": [{"tokens": 12, "seconds": s, "memory": 2**30} for s in (1.0, 2.0, 4.0)],
        "torch": [{"tokens": 12, "seconds": s, "memory": 2**31} for s in (2.0, 8.0, 4.0)],
    }
    said = {"heed": [[5], [6]], "torch": [[5], [7]]}
    systems = [rows.System("heed", "", ""), rows.System("torch", "", "", "torch")]
    found = gpt2.summary(TRAIN, systems, Measured(rounds, {}, dict.fromkeys(rounds, 0.5), said, {}, {}), 1e-6)
    ours, theirs = found["systems"]
    assert (found["best_peer"], ours["ratio"], theirs["ratio"], ours["memory_gib"]) == ("torch", 2.0, 1.0, 1.0)
    assert ours["mfu"] == pytest.approx(6.0 * gpt2.operations(TRAIN) / 1e6) and (ours["same"], theirs["same"]) == (
        1.0,
        0.5,
    )
    assert gpt2.table(found).row_count == 2


def test_who_is_not_installed_is_named_and_what_is_not_there_refused(monkeypatch, capsys):
    monkeypatch.setattr(gpt2, "find_spec", lambda name: None if name == "ctranslate2" else object())
    there, without = gpt2.chosen_systems(ONE, gpt2.parser().parse_args([]))
    assert [own.name for own in there] == ["heed", "heed-native", "heed-torch", "heed-ctranslate2", "transformers"]
    assert "ctranslate2 is left out: ctranslate2 is not installed" in without
    with pytest.raises(SystemExit):
        command.main(["gpt2", "--rows", "beam"])
    assert "--rows has beam; there are train, 1-greedy, " in capsys.readouterr().err


def test_the_command_writes_what_it_measured(tmp_path, capsys, monkeypatch):
    """With workers that answer at once: those of other processes are tested with the other rows."""

    class Answering(gpt2.WarmedTogether):
        def measure(self, row, plan, folder=None):
            times = itertools.count(1)
            rounds = {own.name: [{"tokens": 1, "seconds": next(times), "memory": 1}] for own in self.systems}
            return Measured(rounds, {}, dict.fromkeys(rounds, 0.0), {}, {}, {})

    monkeypatch.setattr(gpt2, "WarmedTogether", Answering)
    path = tmp_path / "found.json"
    assert command.main(["gpt2", "--quick", "--rows", "train", "1-greedy", "--json", str(path)]) == 0
    found = json.loads(path.read_text("utf-8"))
    assert [row["row"]["name"] for row in found["rows"]] == ["train", "1-greedy"]
    assert found["command"][:4] == ["python", "-m", "bench", "gpt2"] and "GPT-2 1-greedy" in capsys.readouterr().out
