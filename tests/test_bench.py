"""The arithmetic of bench/ is right, and each of its rows runs. How fast, no test asks."""

import dataclasses
import json

import ctranslate2 as ctranslate2_installed  # noqa: F401 (else half of this would be skipped unseen)
import pytest
import torch
from bench import __main__ as command
from bench import arithmetic, classify, data, models, report, rows, shared, turns
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from bench import ctranslate2_translate, heed_train, heed_translate, marian_train, marian_translate, torch_train  # isort: skip
from bench.arithmetic import Peaks, Phase
from bench.rows import ROWS, Shape, System, TrainRow, TranslateRow
from bench.turns import Measured, Plan, Turns, Worker

from heed.decoding.sample import stepwise_search
from heed.models.transformer import Transformer, TransformerConfig

SHAPE = Shape(vocab=50, dim=8, heads=2, hidden=12, layers=2, dropout=0.0)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def model(s):
    sizes = {"dim": s.dim, "heads": s.heads, "hidden": s.hidden, "encoder_layers": s.layers, "decoder_layers": s.layers}
    return Transformer(TransformerConfig(s.vocab, **sizes)).eval()


def counted(work):
    """The operations of all matrix products in `work`, as torch counts them."""
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH), torch.no_grad():
        work()
    return counter.get_total_flops()


# medians and ratios


def test_a_ratio_is_the_median_of_the_ratios_of_the_rounds():
    ours, theirs = [10.0, 40.0, 30.0], [5.0, 40.0, 10.0]
    assert arithmetic.ratio(ours, theirs) == 2.0  # of 2, 1 and 3; the medians alone would say 3


def test_speeds_are_tokens_over_seconds():
    assert arithmetic.speeds([{"tokens": 10, "seconds": 2.0}, {"tokens": 9, "seconds": 3.0}]) == [5.0, 3.0]


def test_the_best_peer_has_the_highest_median_and_heed_is_none():
    found = {"heed": [99.0, 99.0, 99.0], "one": [1.0, 50.0, 2.0], "other": [3.0, 3.0, 3.0]}
    assert arithmetic.best(found, ["one", "other", "absent"]) == "other"
    assert arithmetic.best(found, ["absent"]) is None


# floors


def test_a_floor_is_in_each_phase_the_slower_of_the_two():
    peaks = Peaks({"float32": 10.0}, 5.0)
    assert arithmetic.floor([Phase(20.0, 5.0), Phase(10.0, 15.0)], peaks, "float32") == 2.0 + 3.0


def test_no_format_is_slower_than_a_wider_one():
    assert arithmetic.widened({"float32": 3.0, "bfloat16": 1.0}) == {"float32": 3.0, "bfloat16": 3.0, "int8": 12.0}
    assert arithmetic.widened({"float32": 1.0, "bfloat16": 8.0})["int8"] == 16.0
    assert arithmetic.widened({"float32": 1.0, "int8": 5.0})["int8"] == 5.0


def test_weights_are_counted_as_the_model_has_them():
    assert arithmetic.weights(SHAPE) == sum(weight.numel() for weight in model(SHAPE).parameters())


def test_the_operations_of_training_are_those_torch_counts():
    source, target = 7, 5
    tokens = [torch.randint(4, SHAPE.vocab, (3, n)) for n in (source, target)]
    found = counted(lambda: model(SHAPE)(*tokens))
    row = TrainRow("any", SHAPE, 7, 21)
    forward = arithmetic.training(row, [(source, target)] * 3)[0].operations / 3
    unseen = 3 * SHAPE.layers * 2 * SHAPE.dim * target**2  # torch counts the future too, which no one may look at
    assert forward + unseen == found


def test_an_update_reads_four_numbers_a_weight_and_writes_three():
    update = arithmetic.training(TrainRow("any", SHAPE, 7, 7), [(7, 7)])[1]
    assert update == Phase(0.0, 28 * arithmetic.weights(SHAPE))


def test_the_operations_of_translating_are_those_torch_counts():
    row = TranslateRow("any", SHAPE, batch=3, beam=1, source=6, target=4)
    own, source = model(SHAPE), torch.randint(4, SHAPE.vocab, (3, 6))

    def work():
        stepwise_search(own, own.start(source), torch.full((3,), 4), first=2, last=-1)

    assert sum(phase.operations for phase in arithmetic.translating(row, "float32")) == counted(work)


def test_the_bytes_of_translating():
    row = TranslateRow("any", Shape(10, 2, 1, 3, 1, 0.0), batch=2, beam=3, source=5, target=2)
    read, first, second = arithmetic.translating(row, "int8")
    assert read.bytes == (4 * 4 + 2 * 2 * 3) + 2 * 4  # an encoder layer; keys and values of the memory
    matrices, memory = (6 * 4 + 2 * 2 * 3) + 10 * 2, 4 * 2 * 2 * (2 * 5)
    assert first.bytes == matrices + memory + 4 * 2 * 2 * (2 * 3) * 1
    assert second.bytes == matrices + memory + 4 * 2 * 2 * (2 * 3) * 2
    half = arithmetic.translating(row, "bfloat16")[1].bytes
    assert half == 2 * matrices + memory / 2 + 2 * 2 * 2 * (2 * 3) * 1


def test_the_share_of_the_floor_and_the_ratio_come_into_the_summary():
    row, peaks = rows.quick(ROWS["translate"][1]), Peaks({"float32": 1e9, "int8": 4e9}, 1e9)
    taking_part = [System("heed", "", ""), System("peer", "", "", "peer"), System("small", "", "", "peer", "int8")]
    rounds = {
        "heed": [{"tokens": 12, "seconds": s, "memory": 2**30} for s in (1.0, 2.0, 4.0)],
        "peer": [{"tokens": 12, "seconds": s, "memory": 2**31} for s in (2.0, 8.0, 4.0)],
        "small": [{"tokens": 12, "seconds": 9.0, "memory": 2**31}] * 3,
    }
    set_up = dict.fromkeys(rounds, 0.5)
    said = {"heed": [[5], [6], [7]], "peer": [[5], [6], [8]], "small": [[1], [2], [3]]}
    found = report.summary(row, taking_part, Measured(rounds, {}, set_up, said, {}, {}), peaks)
    ours, theirs, small = found["systems"]
    assert found["best_peer"] == "peer"
    assert (ours["tokens_per_second"], ours["ratio"], ours["memory_gib"], ours["same"]) == (6.0, 2.0, 1.0, 1.0)
    assert (theirs["tokens_per_second"], theirs["ratio"], theirs["same"]) == (3.0, 1.0, 2 / 3)
    assert small["same"] is None  # rounding may change what it says
    seconds = arithmetic.floor(arithmetic.translating(row, "float32"), peaks, "float32")
    assert ours["share"] == pytest.approx(6.0 * seconds / (row.batch * row.target))
    assert report.table(found, "translate").row_count == 3


# what is drawn


@pytest.mark.parametrize("row", ROWS["train"], ids=lambda row: row.name)
def test_batches_of_training_are_as_the_rows_say(row):
    for batch in data.sets(row)[:2]:
        each = [n for pair in data.lengths(batch) for n in pair]
        assert len(batch) * row.length == 25_600
        assert data.lengths(batch)[0] == (row.length, row.length)
        assert max(each) == row.length and min(each) >= 0.6 * row.length
        assert 0.78 * row.length < sum(each) / len(each) < 0.82 * row.length


def test_padded_arrays_hold_the_sentences_shifted_by_one():
    row = rows.quick(ROWS["train"][0])
    batch = data.sets(row)[0]
    sources, inputs, labels = data.padded(row, batch, ignored=-100)
    assert sources.shape == inputs.shape == labels.shape == (row.sentences, row.length)
    for (source, target), a, b, c in zip(batch, sources, inputs, labels, strict=True):
        assert a[a != rows.PAD].tolist() == [*source, rows.LAST]
        assert b[b != rows.PAD].tolist() == [rows.FIRST, *target]
        assert c[c != -100].tolist() == [*target, rows.LAST]


def test_rows_survive_the_way_to_another_process():
    for row in [*ROWS["train"], *ROWS["translate"]]:
        assert rows.unpacked(json.loads(json.dumps(rows.packed(row)))) == row


# each row runs


@pytest.mark.parametrize("row", ROWS["train"], ids=lambda row: row.name)
@pytest.mark.parametrize("module", [heed_train, marian_train, torch_train], ids=lambda module: module.__name__)
def test_each_row_of_training_runs_and_counts_the_target_tokens(row, module):
    row = rows.quick(row)
    run = module.build(row, "cpu", "eager")
    assert [run(2), run(1)] == [sum(map(data.target_tokens, data.sets(row)[a:b])) for a, b in ((0, 2), (2, 3))]


LAST_NORM = {
    marian_train: lambda model: model.model.decoder.layers[-1].final_layer_norm,
    torch_train: lambda model: model.body.decoder.layers[-1].norm3,
}


def test_all_who_train_minimize_the_same_loss(monkeypatch):
    """Of a model that says the same whatever it reads, the loss is in the labels and the smoothing alone."""
    row = dataclasses.replace(rows.quick(ROWS["train"][1]), shape=dataclasses.replace(rows.TOY, dropout=0.0))
    batch = data.sets(row)[0]
    arrays, found = [torch.from_numpy(part) for part in data.padded(row, batch, ignored=-100)], []
    for module, last in LAST_NORM.items():
        monkeypatch.setattr(
            module.plain,
            "trainer",
            lambda model, objective, *rest, last=last: found.append(objective(stubborn(model, last(model)), *arrays)),
        )
        module.build(row, "cpu", "eager")
    ours = model(row.shape)
    loss = heed_train.CrossEntropy(rows.SMOOTHING)(
        stubborn(ours, ours.decoder.layers[-1].mlp.norm), heed_train.collate(*zip(*batch, strict=True))
    )
    torch.testing.assert_close(torch.stack(found), (loss.total / loss.count).expand(2), rtol=0, atol=1e-5)


@torch.no_grad()
def stubborn(model, norm):
    """All weights zero but the embeddings and the bias of the last norm."""
    torch.manual_seed(3)
    tokens = torch.randn(rows.TOY.vocab, rows.TOY.dim)
    for weight in model.parameters():
        weight.copy_(tokens) if weight.shape == tokens.shape else weight.zero_()
    norm.bias.copy_(torch.randn(rows.TOY.dim))
    return model.eval()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("shared")
    shared.write(path, rows.TOY, ["transformers", "ctranslate2"])
    return path


@pytest.mark.parametrize("row", ROWS["translate"], ids=lambda row: row.name)
def test_each_row_of_translating_runs_and_all_say_the_same(row, folder, monkeypatch):
    monkeypatch.setenv("HEED_CACHE", "")  # which is set for the bench's own process
    row = rows.quick(row)
    sources, said = data.sources(row), []
    for module in (heed_translate, marian_translate, ctranslate2_translate):
        said.append(module.build(folder, "cpu", "float32")(sources, row))
    for how in ("auto", "shortlist"):
        found = heed_translate.build(folder, "cpu", how)(sources, row)
        assert [len(tokens) for tokens in found] == [row.target] * row.batch
    assert all(len(tokens) == row.target for tokens in said[0])
    assert len({tuple(tokens) for tokens in said[0]}) == row.batch  # else to agree would be no art
    assert said[0] == said[1] == said[2]


# turns


def test_turns_alternate_and_who_fails_leaves_with_a_sentence():
    row, told = rows.quick(ROWS["train"][0]), []
    there = [System("torch", "torch_train", "eager", "torch"), System("broken", "plain", "eager", "torch")]
    at_work = Turns(there, lambda system: Worker(system, "cpu", 1, turns.sys.executable, 300.0), told.append)
    found = at_work.measure(row, Plan(rounds=2, warm=0, before=0, amount=2, seconds=0.0, patience=300.0))
    assert list(found.rounds) == ["torch"] and len(found.rounds["torch"]) == 2
    sizes = list(map(data.target_tokens, data.sets(row)))
    assert [own["tokens"] for own in found.rounds["torch"]] == [
        sum(sizes[1:3]),
        sum(sizes[3:5]),
    ]  # one step was warm-up
    assert told == ["base-32: broken failed: AttributeError: module 'bench.plain' has no attribute 'build'"]
    assert not at_work.workers


def test_names_that_there_are_not_are_refused(capsys):
    for option in ("rows", "systems"):
        with pytest.raises(SystemExit):
            command.main(["train", f"--{option}", "fairseq"])
        assert f"--{option} has fairseq; there are" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--device", "cuda", "device is 'cuda', but torch finds no GPU; use --device cpu"),
        ("--joeynmt", "joey/python", "--joeynmt is joey/python, and no such program is there: name the python of its"),
    ],
)
def test_a_gpu_or_a_python_that_is_not_there_is_said_in_a_sentence(monkeypatch, capsys, option, value, said):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit):
        command.main(["train", "--quick", "--systems", "heed", "--rows", "base-32", option, value])
    assert said in capsys.readouterr().err


def test_rows_of_other_lengths():
    args = command.parser().parse_args(
        ["train", "--device", "cuda", "--length", "256", "4096", "--rows", "base-256", "big-4096"]
    )
    assert [(row.name, row.length, row.slots) for row in command.chosen_rows(args, "train")] == [
        ("base-256", 256, 25_600),
        ("big-4096", 4096, 25_600),
    ]
    args = command.parser().parse_args(["train", "--length", "2048", "--quick"])
    for row in command.chosen_rows(args, "train"):
        assert [max(map(max, data.lengths(batch))) for batch in data.full(row)] == [512] * data.SETS


@pytest.mark.parametrize("words", ["translate --length 256", "train --length 1", "train --length 64 --rows base-32"])
def test_a_length_that_makes_no_row_is_refused(words, capsys):
    with pytest.raises(SystemExit):
        command.main(words.split())
    assert "--length is for train, and at least 2" in (said := capsys.readouterr().err) or "--rows has base-32" in said


def test_who_is_not_installed_is_left_out_with_a_line(monkeypatch):
    monkeypatch.setattr(command, "find_spec", lambda name: None if name == "ctranslate2" else object())
    monkeypatch.setattr(command.machine, "has_bf16", lambda: False)
    args = command.parser().parse_args(["translate"])
    there, without = command.chosen_systems(args, "translate")
    assert [system.name for system in there] == ["heed", "heed-shortlist", "heed-torch", "marian"]
    assert "ctranslate2-int8 is left out: ctranslate2 is not installed" in without
    assert "heed-bf16 is left out: this CPU has no bfloat16" in without


def test_the_command_writes_what_it_measured(tmp_path, capsys):
    path = tmp_path / "found.json"
    words = "translate --quick --rows 1-greedy --systems heed-torch --threads 1 --json"
    asked = [*words.split(), str(path)]
    assert command.main(asked) == 0
    found = json.loads(path.read_text("utf-8"))
    (row,) = found["translate"]["rows"]
    (own,) = row["systems"]
    assert (row["row"]["name"], row["best_peer"], own["name"], own["ratio"], own["same"]) == ("1-greedy", None, "heed-torch", None, 1.0)  # fmt: skip
    assert found["versions"]["torch"] == torch.__version__ and found["date"] and found["device"]
    assert "1-greedy" in capsys.readouterr().out


def test_models_are_compared_on_texts_of_ones_own(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HEED_CACHE", "")
    texts, path = tmp_path / "texts", tmp_path / "found.json"
    texts.write_text("나는 학생이에요.\n너는 어디에 있어?\n안녕.\n", "utf-8")
    same = (
        f"{folder}/heed --source {texts} --reference {texts} --lines 2 --rounds 2 --threads 1 --beam 2 --engine torch"
    )
    models.main([f"{folder}/heed-shortlist", *same.split(), "--json", str(path)])
    first, other = json.loads(path.read_text("utf-8"))["rows"]
    assert (first["model"], other["model"]) == (f"{folder}/heed-shortlist", f"{folder}/heed")
    assert first["ratio"] == 1.0 and first["bleu"] == other["bleu"] and len(other["rounds"]) == 2
    assert "2 texts of texts" in capsys.readouterr().out
    (tmp_path / "fewer").write_text("one\n", "utf-8")
    (tmp_path / "none").write_text("\n", "utf-8")
    own = str(folder / "heed")
    for words, sentence in [
        ([own, "--source", str(texts), "--reference", str(tmp_path / "fewer")], "fewer has 1 lines, "),
        ([own, "--source", str(tmp_path / "none")], "none has no text: name a file"),
        ([own, "--source", str(tmp_path / "gone")], "gone: no such file"),
        ([str(tmp_path / "gone"), "--source", str(texts)], "gone"),
    ]:
        with pytest.raises(SystemExit):
            models.main(words)
        assert sentence in capsys.readouterr().err


def test_engines_and_transformers_classify_the_same_texts(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path))
    monkeypatch.setitem(classify.PRESETS, "tiny", {"dim": 16, "heads": 2, "hidden": 24, "layers": 1})
    monkeypatch.setattr("sys.argv", ["classify", "--preset", "tiny", "--texts", "9", "--rounds", "1", "--threads", "1"])
    classify.main()
    found = [line.split("  ")[0] for line in capsys.readouterr().out.splitlines()]
    assert found[1:] == ["torch", "ctranslate2", "ctranslate2-int8", "transformers", "transformers, sorted"]
