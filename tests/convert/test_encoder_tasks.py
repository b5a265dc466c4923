"""Regression and multiple choice with encoders of transformers: the same answers here and there."""

import json

import pytest
import torch
import transformers

from heed.cli.main import main
from heed.convert import huggingface, labels
from heed.loading import load, open_package, write_package
from heed.vocabularies.labels import Labels, Numbers
from tests.convert.encoders import OWN, package

QUESTIONS = [["나는 책을", "읽어요.", "마셔요, 물을"], ["the cat", "sleeps on a red house .", "책"]]
PAIRS = [["나는 책을 읽어요.", "책이 있어요."], ["one", "the cat reads a book, and sleeps"]]


def opened(folder):
    found = load(folder, "cpu")
    found.model.double()
    return found


def theirs(kind, folder):
    model = getattr(transformers, kind).from_pretrained(folder, dtype=torch.float64).eval()
    return model, transformers.AutoTokenizer.from_pretrained(folder)


@pytest.mark.parametrize("system", OWN)
def test_choices_of_a_folder_of_transformers_have_its_scores(system, tmp_path, capsys):
    huggingface.write(package(system, "choice"), tmp_path / "model")
    model, tokenizer = theirs("AutoModelForMultipleChoice", tmp_path / "model")
    flat = [[own[0], choice] for own in QUESTIONS for choice in own[1:]]
    inputs = tokenizer(*map(list, zip(*flat, strict=True)), padding=True, return_tensors="pt")
    with torch.inference_mode():
        expected = model(**{name: part.unflatten(0, (2, 2)) for name, part in inputs.items()}).logits
    torch.testing.assert_close(opened(tmp_path / "model").outputs(QUESTIONS), expected, rtol=0, atol=1e-10)
    capsys.readouterr()
    assert main(["classify", str(tmp_path / "model"), *map("\t".join, QUESTIONS)]) == 0
    assert capsys.readouterr().out.split() == [str(best) for best in expected.argmax(dim=1).tolist()]


def test_a_folder_that_does_not_say_how_many_choices_there_are_takes_as_many_as_there_are(tmp_path, capsys):
    huggingface.write(package("bert", "choice"), tmp_path / "model")
    found = load(tmp_path / "model", "cpu")
    assert len(found.classify([["a", "b", "c", "d"]])[0].probabilities) == 3
    for texts, says in (
        ([["a", "b", "c"], ["a", "b", "c", "d"]], "text 2 has 3 choices, but text 1 has 2: every question must have the same number"),
        ([["a", "b"]], "text 1 has 2 parts: give the context and at least two choices, separated by tabs"),
    ):  # fmt: skip
        with pytest.raises(ValueError) as error:
            found.classify(texts)
        assert str(error.value) == says
    (tmp_path / "test.tsv").write_text("a\tb\tc\t1\nb\tc\ta\t0\n")
    command = [
        "evaluate",
        str(tmp_path / "model"),
        "--tsv",
        str(tmp_path / "test.tsv"),
        "--columns",
        "1",
        "2",
        "3",
        "4",
    ]
    assert main([*command, "--samples", "10", "--device", "cpu"]) == 0
    assert "2 texts" in capsys.readouterr().out


def test_a_multiple_choice_model_goes_to_transformers_and_back(tmp_path):
    own = package("roberta", "choice")
    own = own._replace(task="multiple-choice", processors={**own.processors, "labels": Labels(["0", "1"])})
    write_package(own, tmp_path / "ours")
    huggingface.write(open_package(tmp_path / "ours"), tmp_path / "theirs")
    found, back = load(tmp_path / "ours", "cpu"), load(tmp_path / "theirs", "cpu")
    assert found.labels == ["0", "1"] and torch.equal(found.outputs(QUESTIONS), back.outputs(QUESTIONS))


def regression(system, tmp_path):
    own = package(system, "classification", labels=1)
    own = own._replace(task="regression", processors={**own.processors, "labels": Numbers()})
    huggingface.write(own, tmp_path / "theirs")
    return own


@pytest.mark.parametrize("system", OWN)
def test_a_regression_model_has_the_numbers_of_transformers(system, tmp_path):
    own = regression(system, tmp_path)
    model, tokenizer = theirs("AutoModelForSequenceClassification", tmp_path / "theirs")
    assert (model.config.problem_type, model.config.num_labels) == ("regression", 1)
    with torch.inference_mode():
        inputs = tokenizer(*map(list, zip(*PAIRS, strict=True)), padding=True, return_tensors="pt")
        expected = model(**inputs).logits
    found = opened(tmp_path / "theirs")
    assert found.noun == "a regression model"
    torch.testing.assert_close(found.outputs(PAIRS), expected, rtol=0, atol=1e-10)
    write_package(own, tmp_path / "ours")
    torch.testing.assert_close(opened(tmp_path / "ours").outputs(PAIRS), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("problem", [None, "regression"])
def test_one_label_is_a_number_also_where_config_json_names_no_problem(problem, tmp_path, capsys):
    regression("bert", tmp_path)
    path = tmp_path / "theirs" / "config.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({**settings, "problem_type": problem}))
    assert main(["classify", str(tmp_path / "theirs"), "a\tb"]) == 0
    assert float(capsys.readouterr().out)
    assert main(["info", str(tmp_path / "theirs")]) == 0
    assert "a regression model" in capsys.readouterr().out
    path.write_text(json.dumps({**settings, "problem_type": "single_label_classification"}))
    assert main(["classify", str(tmp_path / "theirs"), "a\tb"]) == 1
    assert "needs at least two labels" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("settings", "task"),
    [
        ({"num_labels": 1}, "regression"),
        ({"num_labels": 1, "problem_type": "regression"}, "regression"),
        ({"num_labels": 2, "problem_type": "single_label_classification"}, "classification"),
        ({"num_labels": 1, "problem_type": "single_label_classification"}, "num_labels is 1; a classifier needs"),
        ({"num_labels": 2, "problem_type": "regression"}, "heed's regression predicts one number"),
    ],
)
def test_one_label_is_a_number_unless_the_folder_says_otherwise(settings, task):
    if task in ("regression", "classification"):
        assert labels.task(settings) == task
        return
    with pytest.raises(ValueError, match=task):
        labels.task(settings)
