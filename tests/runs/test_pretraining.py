"""Encoders that are pre-trained on a text, and what becomes of them: filled masks, scores, classifiers, folders for transformers."""

import dataclasses
import json
import tomllib

import pytest
import torch
import transformers
from rich.console import Console
from safetensors.torch import load_file

import heed
from heed.cli.main import main
from heed.loading import open_package
from heed.runs.recipe import parse
from heed.training.config import TrainingConfig
from tests import fixed_pairs
from tests.contract.contract import SMALL, TRAINING, check_same, resume, train

BODY = ("tokens.", "positions.", "segments.", "norm.", "stack.", "widen.")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A text in documents of four lines, and a table of texts with labels."""
    folder, lines = tmp_path_factory.mktemp("files"), [pair.target for pair in fixed_pairs.pairs("train", 120)]
    text = [line for i, own in enumerate(lines) for line in ([own] if i % 4 else ["", own])]
    (folder / "text.txt").write_text("\n".join(text) + "\n")
    rows = [f"{line}\t{int(line.endswith('?'))}" for line in lines[:40]]
    (folder / "table.tsv").write_text("\n".join(["sentence\tlabel", *rows]) + "\n")
    return folder


def pretraining(files, name, task, **settings):
    text = {"source": [str(files / "text.txt")], "valid_source": [str(files / "text.txt")]}
    sizes = {**{size: SMALL[size] for size in ("dim", "heads", "hidden", "layers")}, "max_length": 64}
    sizes |= {"embedding": 8, "generator_fraction": 0.5} if name == "electra" else {}
    return parse({
        "data": text, "task": {"name": task, "length": 32, **settings}, "training": TRAINING, "subwords": {"size": 300},
        "model": {"name": name, **sizes},
    })  # fmt: skip


@pytest.fixture(scope="module")
def runs(files, tmp_path_factory):
    """A BERT with pairs, and an ELECTRA."""
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("runs")
        patch.setenv("HEED_CACHE", str(root / "cache"))
        train(pretraining(files, "bert", "masked", pair="next"), root / "bert")
        train(pretraining(files, "electra", "replaced-tokens", cut_sentences=True), root / "electra")
    return root


def test_a_run_with_rows_of_several_lengths_resumes_to_the_bit(files, runs, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HEED_CACHE", str(runs / "cache"))
    recipe = pretraining(files, "electra", "replaced-tokens", cut_sentences=True, halvings=2)
    train(recipe, tmp_path / "one", console=Console(width=200))
    assert "Batches have rows of 32, 16 and 8 tokens in turn." in capsys.readouterr().out
    resume(recipe, tmp_path / "one", tmp_path / "again")
    check_same(tmp_path / "one", tmp_path / "again")


def test_a_run_with_pairs_resumes_to_the_bit_and_measures_pairs(files, runs, tmp_path, monkeypatch):
    monkeypatch.setenv("HEED_CACHE", str(runs / "cache"))  # with the vocabulary that was learned
    resume(pretraining(files, "bert", "masked", pair="next"), runs / "bert", tmp_path / "again")
    check_same(runs / "bert", tmp_path / "again")
    lines = [json.loads(line) for line in (runs / "bert" / "log.jsonl").read_text().splitlines()]
    step, valid = (next(line for line in lines if line["kind"] == kind) for kind in ("step", "valid"))
    assert step["loss"] == pytest.approx(step["loss_masked_words"]) and step["loss_pairs"] > 0
    assert 0 <= valid["pairs"] <= 100 and 0 <= valid["accuracy"] <= 100
    assert "accuracy of pairs" in (runs / "bert" / "model" / "README.md").read_text()
    assert open_package(runs / "bert").model.config.head == "pretraining"


@pytest.mark.parametrize("name", ["bert", "electra"])
def test_a_pretrained_encoder_is_fine_tuned_from_its_body(files, runs, name, tmp_path, capsys):
    table = {
        "tsv": [str(files / "table.tsv")],
        "valid_tsv": [str(files / "table.tsv")],
        "columns": ["sentence", "label"],
    }
    recipe = parse({
        "data": table, "task": {"name": "classification"}, "training": {**TRAINING, "rate": 0.0},
        "model": {"folder": str(runs / name)}, "filters": {"overlap": False, "max_length": 40},
    })  # fmt: skip
    assert train(recipe, tmp_path / "run").how == "finished"
    before, after = (load_file(folder / "model" / "model.safetensors") for folder in (runs / name, tmp_path / "run"))
    body = [weight for weight in before if weight.startswith(BODY)]
    assert len(body) > 15 and all(torch.equal(before[weight], after[weight]) for weight in body)
    assert {weight for weight in after if weight not in before} == {
        weight for weight in after if weight.startswith("head.text")
    }
    assert not any(weight.startswith("generator.") for weight in after)
    assert main(["classify", str(tmp_path / "run"), "Who is it?"]) == 0
    assert capsys.readouterr().out in ("0\n", "1\n")


def longer(files, runs, positions, **task):
    text = {"source": [str(files / "text.txt")], "valid_source": [str(files / "text.txt")]}
    return parse({
        "data": text, "task": {"name": "masked", "length": 150, **task}, "training": TRAINING,
        "model": {"folder": str(runs / "bert"), "max_length": positions},
    })  # fmt: skip


def test_pretraining_goes_on_with_longer_texts_and_resumes_to_the_bit(files, runs, tmp_path):
    still = dataclasses.replace(longer(files, runs, 160), training=TrainingConfig(**{**TRAINING, "rate": 0.0}))
    train(still, tmp_path / "still")
    before, after = (open_package(folder).model for folder in (runs / "bert", tmp_path / "still"))
    assert after.config == dataclasses.replace(before.config, max_length=160, head="masked")
    first, more = before.positions(0, 64), after.positions(0, 160)
    assert torch.equal(more, torch.cat([first, first, first[:32]]))
    train(longer(files, runs, 160), tmp_path / "whole")
    resume(longer(files, runs, 160), tmp_path / "whole", tmp_path / "again")
    check_same(tmp_path / "whole", tmp_path / "again")
    assert (
        parse(tomllib.loads((tmp_path / "whole" / "recipe.toml").read_text("utf-8"))).model.settings["max_length"]
        == 160
    )


def test_a_model_does_not_get_fewer_positions(files, runs, tmp_path):
    with pytest.raises(
        ValueError, match=r"model\.max_length is 40, but .* has 64: the architecture of a trained model"
    ):
        train(longer(files, runs, 40, length=32), tmp_path / "run")


def test_pretraining_goes_on_from_a_folder_with_another_objective(files, runs, tmp_path):
    text = {"source": [str(files / "text.txt")], "valid_source": [str(files / "text.txt")]}
    recipe = parse({
        "data": text, "task": {"name": "masked", "length": 32, "pair": "order"}, "training": {**TRAINING, "rate": 0.0},
        "model": {"folder": str(runs / "electra")},
    })  # fmt: skip
    assert train(recipe, tmp_path / "run").how == "finished"
    before, after = open_package(runs / "electra"), open_package(tmp_path / "run")
    assert after.model.config.head == "pretraining" and torch.equal(
        before.model.tokens.weight, after.model.tokens.weight
    )
    assert before.processors["text"].key() == after.processors["text"].key()


def test_masks_are_filled_with_the_likeliest_words_of_transformers(runs, tmp_path, capsys):
    filler = heed.load(runs / "bert", "cpu")
    texts = ["I [MASK] a <mask> .", "Who [MASK] it ?"]
    found = filler.fill(texts, top=4)
    assert [len(one.masks) for one in found] == [2, 1] and [one.text for one in found] == texts
    assert (
        filler.fill(texts, top=4, batch_tokens=1)[1] == filler.fill(texts[1:], top=4)[0]
    )  # what shares a batch does not matter
    assert main(["convert", str(runs / "bert"), "--out", str(tmp_path / "out")]) == 0
    theirs = transformers.BertForPreTraining.from_pretrained(tmp_path / "out").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    inputs = tokenizer(["I [MASK] a [MASK] .", "Who [MASK] it ?"], return_tensors="pt", padding=True)
    with torch.inference_mode():
        logits = theirs(**inputs).prediction_logits[inputs.input_ids == tokenizer.mask_token_id]
    best = logits.softmax(dim=-1).topk(4)
    guesses = [own for one in found for own in one.masks]
    for own, ids, values in zip(guesses, best.indices.tolist(), best.values.tolist(), strict=True):
        assert [guess.piece for guess in own] == filler.vocabulary.pieces(ids)
        assert [guess.probability for guess in own] == pytest.approx(values, abs=1e-5)
    first = [own[0].piece.replace("▁", "") for own in found[0].masks]
    assert all(word in found[0].filled for word in first) and "[MASK]" not in found[0].filled


def test_fill_reads_arguments_and_lines_and_writes_json(runs, tmp_path, capsys):
    (tmp_path / "texts.txt").write_text("I [MASK] it.\nWho is [MASK]?\n")
    words = ["fill", str(runs / "electra"), "--top", "2"]
    assert main([*words, "I [MASK] it.", "Who is [MASK]?"]) == 0
    shown = capsys.readouterr().out
    assert main([*words, "--input", str(tmp_path / "texts.txt")]) == 0
    assert capsys.readouterr().out == shown and len(shown.splitlines()) == 4
    assert main([*words, "--input", str(tmp_path / "texts.txt"), "--json", "--out", str(tmp_path / "out.jsonl")]) == 0
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [one["text"] for one in found] == ["I [MASK] it.", "Who is [MASK]?"] and len(found[0]["masks"][0]) == 2
    assert set(found[0]["masks"][0][0]) == {"word", "probability", "piece"}
    line = "  ".join(f"{guess['word']} {guess['probability']:.4f}" for guess in found[0]["masks"][0])
    assert shown.splitlines()[:2] == [found[0]["filled"], f"  {line}"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["I read."], "text 1 has no [MASK]: put it where a word should be filled in"),
        (["[MASK]", "I " * 80 + "[MASK]"], "text 2 has 81 subwords, and the model has only 62 positions: shorten it"),
        (["[MASK]", "--top", "0"], "top is 0; it must be at least 1, and at most the vocabulary, 300"),
        (["[MASK]", "--input", "x"], "give either texts or --input, not both"),
    ],
)
def test_texts_that_cannot_be_filled_are_refused(runs, words, says, capsys):
    assert main(["fill", str(runs / "bert"), *words]) == 1
    assert says in capsys.readouterr().err


def test_evaluate_says_what_was_hidden_and_repeats_the_validation(files, runs, tmp_path, capsys):
    for name, metrics in (
        ("bert", {"loss", "accuracy", "pairs"}),
        ("electra", {"loss", "generator", "discriminator", "replaced", "original"}),
    ):
        out = tmp_path / f"{name}.json"
        words = ["--text", str(files / "text.txt"), "--against", str(runs / name), "--json", str(out)]
        assert main(["evaluate", str(runs / name), *words]) == 0
        shown, facts = capsys.readouterr().out, json.loads(out.read_text())
        trained = json.loads((runs / name / "model" / "config.json").read_text())["trained"]
        assert facts["masked"] == facts["masked_against"] and set(facts["masked"]["scores"]) == metrics
        for metric, own in facts["masked"]["scores"].items():
            assert own["value"] == pytest.approx(trained[f"valid_{metric}"], abs=1e-4)
            assert own["low"] <= own["value"] <= own["high"], metric
        assert facts["differences"] == {metric: {"value": 0.0, "p_value": 1.0} for metric in metrics}
        assert "15% hidden, tokens: " in shown and "rows of 32; seed 0; 95 % intervals from" in shown
    assert main(["evaluate", str(runs / "bert")]) == 1
    assert "is a masked language model: give a text to evaluate it on with --text FILE" in capsys.readouterr().err
    assert main(["evaluate", str(runs / "bert"), "--text", "x", "--stride", "3"]) == 1
    assert "--stride is for models that continue a text: leave it out" in capsys.readouterr().err


def test_two_masked_models_are_compared_on_the_same_hidden_words_only(files, runs, tmp_path, capsys):
    lines = (files / "text.txt").read_text().splitlines()
    first = heed.load(runs / "bert", "cpu")
    other = heed.load(runs / "bert", "cpu")
    with torch.no_grad():
        other.model.head["words"].bias += torch.linspace(0, 9, len(other.model.head["words"].bias))
    one, two = (own.evaluate(lines, samples=200) for own in (first, other))
    assert one.digest == two.digest and one.scores["loss"].value < two.scores["loss"].value
    found = one.against(two, 200)
    assert found["loss"].value == pytest.approx(two.scores["loss"].value - one.scores["loss"].value)
    assert found["loss"].p_value < 0.02 and found["pairs"] == (0.0, 1.0)
    assert one.against(other.evaluate(lines[:50], samples=2), 2) is None  # other rows
    words = ["evaluate", str(runs / "bert"), "--text", str(files / "text.txt"), "--samples", "9"]
    assert main([*words, "--against", str(runs / "electra")]) == 0
    assert "no p-values: the two models do not read the same masked tokens" in capsys.readouterr().out
    first.facts = {"pretraining": {"length": 32, "share": 0.0}}
    with pytest.raises(ValueError, match="the text is too short: no token of it was hidden"):
        first.evaluate(lines)


def test_pairs_are_classified_by_the_head_of_pre_training(runs, tmp_path, capsys):
    pairs = [("Who is it?", "I read a book."), ("I see a dog.", "Who is it?")]
    lines = ["\t".join(own) for own in pairs]
    assert main(["classify", str(runs / "bert"), *lines, "--scores", "--device", "cpu"]) == 0
    shown = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert main(["convert", str(runs / "bert"), "--out", str(tmp_path / "out")]) == 0
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    theirs = transformers.BertForPreTraining.from_pretrained(tmp_path / "out").eval()
    with torch.inference_mode():
        for pair, (probability, label) in zip(pairs, shown, strict=True):
            logits = theirs(**tokenizer(*pair, return_tensors="pt")).seq_relationship_logits[0]
            assert label == ("next", "not next")[int(logits.argmax())]
            assert float(probability) == pytest.approx(float(logits.softmax(dim=0).max()), abs=1e-4)
    transformers.BertForNextSentencePrediction.from_pretrained(tmp_path / "out").save_pretrained(tmp_path / "pair")
    tokenizer.save_pretrained(tmp_path / "pair")
    capsys.readouterr()
    assert main(["classify", str(tmp_path / "pair"), *lines, "--scores", "--device", "cpu"]) == 0
    again = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [label for _, label in again] == [label for _, label in shown]
    assert main(["classify", str(tmp_path / "pair"), "One text."]) == 1
    assert "text 1 has 1 part, but the model expects 2 parts: separate parts with tabs" in capsys.readouterr().err
    assert main(["classify", str(runs / "electra"), *lines]) == 1
    assert "is a masked language model: it cannot classify" in capsys.readouterr().err


def test_an_electra_is_written_as_two_folders_of_transformers(runs, tmp_path, capsys):
    assert main(["convert", str(runs / "electra"), "--out", str(tmp_path / "out")]) == 0
    assert f"beside it {tmp_path / 'out' / 'generator'}" in capsys.readouterr().err
    model, tokens = open_package(runs / "electra").model.eval(), torch.arange(10, 30)[None]
    discriminator = transformers.AutoModelForPreTraining.from_pretrained(tmp_path / "out").eval()
    generator = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "out" / "generator").eval()
    with torch.inference_mode():
        torch.testing.assert_close(model.detect_replaced(tokens), discriminator(tokens).logits, rtol=0, atol=1e-5)
        words = torch.nn.functional.linear(model.generator_states(tokens), *model.generator_weights())
        torch.testing.assert_close(words, generator(tokens).logits, rtol=0, atol=1e-4)
    assert main(["fill", str(tmp_path / "out" / "generator"), "I [MASK] it."]) == 0
    alone = capsys.readouterr().out
    assert main(["fill", str(runs / "electra"), "I [MASK] it."]) == 0
    assert capsys.readouterr().out == alone
    assert main(["fill", str(tmp_path / "out"), "I [MASK] it."]) == 1
    assert (
        "has no language-modelling head (its head is 'replaced'): it cannot fill masks; heed train --from"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"task": {"length": 128}}, "task.length is 128; it must be at most model.max_length, 64"),
        ({"training": {"metric": "pairs"}}, "training.metric is 'pairs', but task.pair is 'none': set one of the two"),
        (
            {"data": {"target": ["x"]}},
            "data.target is set, but masked needs only plain text: set data.source",
        ),
        ({"filters": {"max_length": 10}}, "filters: masked has no such section; there are data, subwords"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(files, changes, says):
    values = {
        "data": {"source": [str(files / "text.txt")]},
        "task": {"name": "masked"},
        "model": {"name": "bert", "max_length": 64},
    }
    values["task"]["length"] = 32
    for section, own in changes.items():
        values[section] = values.get(section, {}) | own
    with pytest.raises(ValueError) as error:
        parse(values)
    assert str(error.value) == says
