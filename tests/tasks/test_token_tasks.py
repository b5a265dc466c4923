"""Tagging and question answering: losses by transformers and in parts, what is left out and counted, thresholds, and the commands."""

import json

import numpy as np
import pytest
import torch
import transformers

from heed.cli.main import main
from heed.convert import huggingface
from heed.data.answers import collate_answers
from heed.data.batching import Batches
from heed.data.corpus import write_rows
from heed.data.tagged import collate_tagged
from heed.loading import load, open_package
from heed.runs import recipe as recipes
from heed.tasks import TASKS
from heed.tasks.question_answering import AnswerLoss
from heed.tasks.tagging import TagLoss
from heed.vocabularies.labels import Labels
from tests.contract.contract import train
from tests.convert.encoders import draw, package, vocabulary

SPECIAL = vocabulary("wordpiece").special, Labels.special
ROWS = draw(6, 9).tolist()
TAGS = [[(i * j) % 6 for j in range(9)] for i in range(6)]  # 0 does not count, 1 + label
TINY = {"model": {"name": "bert", "dim": 16, "heads": 2, "hidden": 24, "layers": 1, "max_length": 32}}
STEPS = {"steps": 2, "valid_every": 1, "batch_tokens": 200, "threads": 1, "device": "cpu", "samples": 2}


def batch(rows, targets, collate):
    return collate(rows, targets, SPECIAL)


@pytest.mark.parametrize("head", ["tokens", "answer"])
def test_losses_are_those_of_transformers(head, tmp_path):
    own = package("bert", head)
    huggingface.write(own, tmp_path / "out")
    kind = "TokenClassification" if head == "tokens" else "QuestionAnswering"
    theirs = getattr(transformers, f"AutoModelFor{kind}").from_pretrained(tmp_path / "out", dtype=torch.float64).eval()
    if head == "tokens":
        own_batch = batch(ROWS, TAGS, collate_tagged)
        labels = {"labels": torch.where(own_batch.labels < 0, -100, own_batch.labels)}
        loss = TagLoss()(own.model.double(), own_batch)
    else:
        own_batch = batch(ROWS, [[0, 0], [3, 5], [1, 1], [9, 10], [2, 8], [0, 0]], collate_answers)
        labels = {"start_positions": own_batch.labels[:, 0], "end_positions": own_batch.labels[:, 1]}
        loss = AnswerLoss()(own.model.double(), own_batch)
    segments = {} if own_batch.segments is None else {"token_type_ids": own_batch.segments}
    with torch.inference_mode():
        expected = theirs(input_ids=own_batch.source, **segments, **labels).loss
    torch.testing.assert_close(loss.total / loss.count, expected, rtol=0, atol=1e-10)
    assert loss.count == (sum(mark > 0 for row in TAGS for mark in row) if head == "tokens" else 6)


@pytest.mark.parametrize("head", ["tokens", "answer"])
def test_the_shares_of_processes_add_up_to_the_whole_and_padding_does_not_matter(head, tmp_path):
    model = package("bert", head).model.double()
    rows = [row[: 9 - i] for i, row in enumerate(ROWS)]
    targets = (
        [row[: len(own)] for row, own in zip(TAGS, rows, strict=True)]
        if head == "tokens"
        else [[i, 2] for i in range(6)]
    )
    collate, objective = (collate_tagged, TagLoss(0.1)) if head == "tokens" else (collate_answers, AnswerLoss())
    corpus = write_rows(tmp_path / "rows", zip(rows, targets, strict=True), 600, {})
    each = [objective(model, collate([row], [target], SPECIAL)) for row, target in zip(rows, targets, strict=True)]
    total, count = sum(own.total for own in each), sum(own.count for own in each)
    for world in (1, 2, 8):  # of eight, some have nothing
        found = []
        for rank in range(world):
            made = Batches(corpus, budget=1000, seed=1, special=SPECIAL, collate=collate, share=(rank, world))
            found.append(objective(model, next(made.start((0, 0)))[1]))
        torch.testing.assert_close(sum(own.total for own in found), total, rtol=0, atol=1e-9)
        assert sum(own.count for own in found) == count


def conll(folder, name, lines):
    (folder / name).write_text("\n".join(lines) + "\n", "utf-8")
    return [str(folder / name)]


SENTENCES = [
    f"{name} I-PER\nsees O\n{place} I-LOC\n. O\n" for name in ("Ann", "Bo", "Cho") for place in ("Seoul", "Bonn")
]


def tagging_recipe(folder, train_lines, valid_lines, **task):
    data = {"train": conll(folder, "train.conll", train_lines), "valid": conll(folder, "valid.conll", valid_lines)}
    return recipes.parse(
        {**TINY, "task": {"name": "tagging", **task}, "data": data, "subwords": {"size": 120}, "training": STEPS}
    )


def prepare(recipe):
    return recipe.task.prepare(recipe, None, lambda what, done: None)


def test_what_is_left_out_mended_or_split_is_counted(tmp_path):
    long = " ".join("Ann" for _ in range(60)).replace(" ", " O\n") + " O\n"
    lines = ["-DOCSTART- O\n", *SENTENCES, "\u200b O\nBonn I-LOC\n", long]
    recipe = tagging_recipe(tmp_path, lines, SENTENCES[:1])
    prepared = prepare(recipe)
    assert prepared.processors["labels"].names == ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    assert recipe.task.data_summary(prepared) == (
        "8 sentences to train on; 1 -DOCSTART- lines skipped; 1 words that cannot be encoded; "
        "1 sentences longer than a window, split."
    )
    note, seen = recipe.task.notes(recipe, prepared, None, 32)
    assert seen.startswith("1 of 1 validation texts are also in the training data, ignoring case")
    assert note == "The labels of the files are IOB1; the model learns BIO: O, B-LOC, I-LOC, B-PER, I-PER."
    counted = sum(int((prepared.train.target[i] > 0).sum()) for i in range(len(prepared.train)))
    assert counted == 6 * 4 + 1 + 60 and prepared.train.longest <= 30


@pytest.mark.parametrize(
    ("train_lines", "valid_lines", "task", "says"),
    [
        (["a B-X\nb I-Y\n"], ["a B-X\n"], {}, r"train\.conll, line 2: I-Y follows B-X"),
        (["a B-X\nb\n"], ["a B-X\n"], {}, r"train\.conll, line 2 has 1 column"),
        (["a B-X\nb c O\n"], ["a B-X\n"], {"repair": True}, r"train\.conll, line 2 has 3 columns, but line 1 has 2"),
        (["a I-X\nb B-Y\n"], ["a B-X\n"], {"scheme": "plain"}, r"valid\.conll, line 1: 'B-X' is not a label of this model; its labels are B-Y, I-X"),
        (["a B-X\n"], ["a B-X\n", "b B-Z\n"], {}, r"valid\.conll, line 3: 'B-Z' is not a label of this model; its labels are O, B-X, I-X"),
        (["a B-X\n"], ["a I-X\n"], {}, r"valid\.conll, line 1: I-X follows the beginning"),
        (["a B-X\n"], ["-DOCSTART- O\n"], {}, r"valid\.conll has no sentences: each line should be"),
        (["a O\n"], ["a O\n"], {}, r"data\.train has only O: a tagger needs at least two labels"),
        (["a B-X\n"], ["a B-X\n"], {"max_length": 99}, r"task\.max_length is 99, but the model has 32 positions"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_conll_file_is_told_with_its_line(tmp_path, train_lines, valid_lines, task, says):
    with pytest.raises(ValueError, match=says):
        recipe = tagging_recipe(tmp_path, train_lines, valid_lines, **task)
        recipe.task.validation(recipe, prepare(recipe))


CHUNKS = [f"{name} I-NP\nsees B-VP\n{name} B-NP\n. O\n" for name in ("Ann", "Bo", "Cho")]


def test_plain_labels_with_prefixes_are_learned_as_they_are(tmp_path, capsys):
    recipe = tagging_recipe(tmp_path, CHUNKS * 4, CHUNKS, scheme="plain")
    prepared = prepare(recipe)
    names = prepared.processors["labels"].names
    assert names == ["B-NP", "B-VP", "I-NP", "O"]
    read = [[names[mark - 1] for mark in prepared.train.target[i] if mark] for i in range(len(prepared.train))]
    assert sorted(read) == [["I-NP", "B-VP", "B-NP", "O"]] * 12
    note = recipe.task.notes(recipe, prepared, None, 32)[0]
    assert (
        note
        == "The labels have prefixes, which task.scheme = 'plain' leaves as they are; the model learns B-NP, B-VP, I-NP, O."
    )
    assert recipe.task.validation(recipe, prepared).expected == [["I-NP", "B-VP", "B-NP", "O"]] * 3
    run = tmp_path / "run"
    assert train(recipe, run).how == "finished"
    assert main(["evaluate", str(run), "--conll", recipe.data.valid[0], "--samples", "9"]) == 0
    assert "3 sentences, 12 words" in capsys.readouterr().out
    further = tagging_recipe(tmp_path, CHUNKS, CHUNKS).task.read(recipe, open_package(run))
    assert further.scheme == "unchanged" and further.reading  # a tagger that is trained further keeps its scheme
    (tmp_path / "bio.conll").write_text("Ann B-NP\nAnn I-NP\n", "utf-8")
    assert main(["evaluate", str(run), "--conll", str(tmp_path / "bio.conll"), "--samples", "9"]) == 0
    (tmp_path / "other.conll").write_text("Ann B-PP\n", "utf-8")
    assert main(["evaluate", str(run), "--conll", str(tmp_path / "other.conll")]) == 1
    assert "other.conll, line 1: 'B-PP' is not a label of this model" in capsys.readouterr().err


def test_what_was_repaired_in_training_is_repaired_in_evaluation_and_counted(tmp_path, capsys):
    broken = ["Ann B-PER\nBonn I-LOC\n", *SENTENCES]
    recipe = tagging_recipe(tmp_path, broken * 2, broken, repair=True)
    prepared = prepare(recipe)
    summary = recipe.task.data_summary(prepared)
    assert summary == "14 sentences to train on; 14 sentences with repaired labels (task.repair)."
    assert "7 validation sentences with repaired labels (task.repair)." in recipe.task.notes(recipe, prepared, None, 32)
    run, path = str(tmp_path / "run"), recipe.data.valid[0]
    assert train(recipe, tmp_path / "run").how == "finished"
    capsys.readouterr()
    words = ["evaluate", run, "--conll", path, "--samples", "9", "--json", str(tmp_path / "scores.json")]
    assert main(words) == 0
    said = "7 of 7 sentences have repaired labels (as in training, task.repair)."
    assert said in " ".join(capsys.readouterr().err.split())
    assert json.loads((tmp_path / "scores.json").read_text("utf-8"))["repaired"] == 7
    assert train(tagging_recipe(tmp_path, SENTENCES, SENTENCES), tmp_path / "strict").how == "finished"
    conll(tmp_path, "valid.conll", broken)
    words = ["evaluate", str(tmp_path / "strict"), *words[2:]]
    assert main(words) == 1
    assert (
        "valid.conll, line 2: I-LOC follows B-PER, and cannot begin an entity in BIO; fix the label, or give --repair (read as BIO)"
        in capsys.readouterr().err
    )
    assert main([*words, "--repair"]) == 0
    assert "7 of 7 sentences have repaired labels (--repair)." in " ".join(capsys.readouterr().err.split())


CONTEXT = "Ann sees Seoul. Bo sees Bonn."


def article(questions, context=CONTEXT):
    return {"version": "x", "data": [{"title": "t", "paragraphs": [{"context": context, "qas": questions}]}]}


def asked(name, text, answer, start=None):
    answers = [{"text": answer, "answer_start": CONTEXT.index(answer) if start is None else start}] if answer else []
    return {"id": name, "question": text, "answers": answers, "is_impossible": not answer}


GOOD = [asked("a", "Who sees Seoul?", "Ann"), asked("b", "Who sees Bonn?", "Bo"), asked("c", "Who sees Rome?", "")]


def answering_recipe(folder, questions, **data):
    paths = {}
    for name in ("train", "valid"):
        (folder / f"{name}.json").write_text(json.dumps(article(questions if name == "train" else GOOD)), "utf-8")
        paths[name] = [str(folder / f"{name}.json")]
    task = {"name": "question-answering", "stride": 2, "max_question": 8}
    return recipes.parse(
        {**TINY, "task": task, "data": {**paths, **data}, "subwords": {"size": 120}, "training": STEPS}
    )


def test_an_answer_that_is_not_where_it_says_is_left_out_or_refused(tmp_path):
    questions = [*GOOD, asked("d", "Where?", "Bonn", 3)]
    recipe = answering_recipe(tmp_path, questions)
    prepared = prepare(recipe)
    summary = recipe.task.data_summary(prepared)
    assert summary.startswith("3 questions to train on; 1 skipped because the answer is not at the stated position")
    note, seen = recipe.task.notes(recipe, prepared, None, 32)
    assert (
        note == "Skipped, for example: train.json, question d: its answer is 'Bonn', but at 3 the context has ' see'."
    )
    assert seen.startswith("4 of 4 validation texts are also in the training data")
    with pytest.raises(ValueError, match=r"train\.json, question d: its answer is 'Bonn'.*\(such questions: 1\)"):
        prepare(answering_recipe(tmp_path, questions, misaligned="refuse"))
    (tmp_path / "test.json").write_text(json.dumps(article([{"id": "e", "question": "Who?"}])), "utf-8")
    with pytest.raises(ValueError, match=r"test\.json, question e has no answers: it comes from a test set"):
        prepare(answering_recipe(tmp_path, GOOD, valid=[str(tmp_path / "test.json")]))


def test_all_answers_that_are_elsewhere_are_told_as_what_they_are(tmp_path):
    questions = [asked("d", "Where?", "Bonn", 3), asked("e", "Who?", "Ann", 5)]
    says = r"train\.json, question d: its answer is 'Bonn', but at 3 .* it is the same with all 2 training questions"
    for more in ({}, {"valid": []}):
        with pytest.raises(ValueError, match=says):
            prepare(answering_recipe(tmp_path, questions, **more))
    with pytest.raises(
        ValueError, match=r"3 examples \(and 1 were skipped\) are too few to set any aside: set data\.valid"
    ):
        prepare(answering_recipe(tmp_path, [*GOOD, questions[0]], valid=[]))


def test_answers_that_are_elsewhere_are_counted_in_validation_and_evaluation(tmp_path, capsys):
    recipe = answering_recipe(tmp_path, GOOD)
    (tmp_path / "valid.json").write_text(json.dumps(article([*GOOD, asked("d", "Where?", "Bonn", 3)])), "utf-8")
    said = (
        "1 of 4 questions have an answer that is not at the stated position, for example question d: its answer is 'Bonn', "
        "but at 3 the context has ' see'; they count"
    )
    notes = recipe.task.notes(recipe, prepare(recipe), None, 32)
    assert f"Validation: {said} towards the scores, not towards the loss." in notes
    assert train(recipe, tmp_path / "run").how == "finished"
    capsys.readouterr()
    assert main(["evaluate", str(tmp_path / "run"), "--squad", str(tmp_path / "valid.json"), "--samples", "9"]) == 0
    assert f"{said}, since scores compare texts." in " ".join(capsys.readouterr().err.split())


def test_a_threshold_is_chosen_on_validation_and_kept_and_scores_say_both_kinds(tmp_path, capsys):
    recipe = answering_recipe(tmp_path, GOOD * 1)
    assert train(recipe, tmp_path / "run").how == "finished"
    facts = open_package(tmp_path / "run").facts
    names = {"exact", "f1", "exact_HasAns", "f1_HasAns", "exact_NoAns", "f1_NoAns", "loss"}
    assert {name.removeprefix("valid_") for name in facts["trained"] if name.startswith("valid_")} == names
    validation = recipe.task.validation(recipe, prepare(recipe))
    model = load(tmp_path / "run", "cpu")
    assert facts["no_answer_threshold"] == pytest.approx(validation.facts(model.model)["no_answer_threshold"])
    found = validation.run(model.model)
    answers = model.answer([(one["question"], CONTEXT) for one in GOOD])
    assert found.scores["exact"] == pytest.approx(
        100
        * np.mean(
            [one.text == (own["answers"] or [{"text": ""}])[0]["text"] for one, own in zip(answers, GOOD, strict=True)]
        )
    )
    assert "| exact match HasAns | " in (tmp_path / "run/model/README.md").read_text("utf-8")
    path, out = tmp_path / "valid.json", tmp_path / "predictions.json"
    assert main(["answer", str(tmp_path / "run"), "--squad", str(path), "--out", str(out)]) == 0
    assert json.loads(out.read_text("utf-8")) == {own["id"]: one.text for own, one in zip(GOOD, answers, strict=True)}
    (tmp_path / "c.txt").write_text(CONTEXT + "\n", "utf-8")
    words = [
        "answer",
        str(tmp_path / "run"),
        "--context",
        str(tmp_path / "c.txt"),
        "Who sees Bonn?",
        "--json",
        "--n",
        "2",
    ]
    capsys.readouterr()
    assert main([*words, "--threshold", "1e9"]) == 0
    best = json.loads(capsys.readouterr().out)["answers"]
    assert len(best) == 2 and CONTEXT[best[0]["start"] : best[0]["end"]] == best[0]["text"]
    against = [
        "--squad",
        str(path),
        "--against",
        str(tmp_path / "run"),
        "--samples",
        "20",
        "--json",
        str(tmp_path / "s.json"),
    ]
    assert main(["evaluate", str(tmp_path / "run"), *against]) == 0
    assert "exact match NoAns" in capsys.readouterr().out
    kept = json.loads((tmp_path / "s.json").read_text())
    assert kept["differences"]["f1"] == {"value": 0.0, "p_value": 1.0}
    assert kept["trained_on"][str(tmp_path / "run")] == {
        "texts": len(GOOD), "total": len(GOOD), "share": 1.0, "before": 0,
    }  # fmt: skip
    assert facts["max_length"] == 384 and model.sizes.max_length == 32
    check_windows(tmp_path, capsys)
    assert main(["answer", str(tmp_path / "run"), "no tab"]) == 1
    assert "line 1 has no tab: put one between the question and its context" in capsys.readouterr().err


def check_windows(tmp_path, capsys):
    """Both commands read contexts in the windows that are asked for, and say so."""
    long = ["answer", str(tmp_path / "run"), f"Who?\t{CONTEXT * 3}", "--window"]
    assert main([*long, "24", "--stride", "4"]) == 0
    assert capsys.readouterr().err.startswith("1 of 1 questions have a context longer than a window of 24 tokens")
    assert main(["answer", str(tmp_path / "run"), f"Who? {CONTEXT * 3}\t{CONTEXT}", "--window", "17"]) == 0
    assert "questions are longer than 7 subwords and were truncated" in " ".join(capsys.readouterr().err.split())
    assert main([*long, "33"]) == 1
    assert "window is 33; it must be at least 16, and at most 32, the positions" in capsys.readouterr().err
    (tmp_path / "long.json").write_text(json.dumps(article(GOOD, CONTEXT * 3)), "utf-8")
    scored = ["evaluate", str(tmp_path / "run"), "--squad", str(tmp_path / "long.json"), "--samples", "20"]
    assert main([*scored, "--window", "16", "--stride", "2"]) == 0
    assert "read in several (--window)" in " ".join(capsys.readouterr().err.split())
    assert main([*scored, "--memory", "16"]) == 1
    assert "--memory is for language models: use it with --text" in capsys.readouterr().err


def test_the_forms_of_heed_tag_say_the_same(tmp_path, capsys):
    lines = conll(tmp_path, "train.conll", SENTENCES * 3)
    data = {"train": lines, "holdout": 2}
    recipe = recipes.parse(
        {**TINY, "task": {"name": "tagging"}, "data": data, "subwords": {"size": 120}, "training": STEPS}
    )
    run = str(tmp_path / "run")
    assert train(recipe, tmp_path / "run").how == "finished"
    text = "Ann sees Seoul. Bo sees Bonn."
    [tagged] = load(run, "cpu").tag([text])

    def said(*words):
        capsys.readouterr()
        assert main(["tag", run, *words]) == 0
        return capsys.readouterr().out

    found = json.loads(said(text, "--format", "json"))["entities"]
    assert [(own["start"], own["end"], own["type"]) for own in found] == [
        (one.start, one.end, one.type) for one in tagged.entities
    ]
    assert all(text[own["start"] : own["end"]] == own["text"] for own in found)
    assert said(text).count("[") == len(found) and len(said(text, "--format", "table").splitlines()) == 1 + len(found)
    assert said(text, "--format", "conll").split("\n")[:-2] == [f"{word.text} {word.label}" for word in tagged.words]
    gold = conll(tmp_path, "words.conll", SENTENCES[:2])[0]
    rows = said("--conll", gold, "--format", "conll").splitlines()
    assert [row.split()[0] for row in rows if row] == [
        row.split()[0] for row in "\n".join(SENTENCES[:2]).split("\n") if row
    ]
    json_path = tmp_path / "scores.json"
    options = ["--conll", gold, "--against", run, "--samples", "20", "--json", str(json_path)]
    assert main(["evaluate", run, *options]) == 0
    kept = json.loads(json_path.read_text())
    assert (
        kept["scores"].keys() == {"f1", "precision", "recall", "accuracy"} and kept["differences"]["f1"]["value"] == 0
    )
    assert kept["types"]["PER"]["entities"] == 2
    assert kept["trained_on"][run] == {"texts": 2, "total": 2, "share": 1.0, "before": 0}
    assert "was trained on 2 of the 2 test texts" in " ".join(capsys.readouterr().err.split())
    for words, says in (
        (["tag", run, "x", "--conll", gold], "give only one of texts, --input and --conll"),
        (["evaluate", run], "is a tagger: give sentences and their labels with --conll FILE"),
        (["answer", run, "x"], "is a tagger: it cannot answer; use heed tag or evaluate"),
    ):
        assert main(words) == 1 and says in capsys.readouterr().err


def test_a_window_has_at_most_the_positions_of_the_model():
    task = TASKS["tagging"](TASKS["tagging"].Settings(max_length=64))
    assert task.window(64) == task.window(65) == 64
    with pytest.raises(ValueError, match=r"task\.max_length is 64, but the model has 63 positions: lower it, or"):
        task.window(63)
    assert TASKS["tagging"](TASKS["tagging"].Settings()).window(63) == 63
