"""heed evaluate of a question-answering model: scores are shown, and answers are written where asked."""

import json
from argparse import Namespace
from types import SimpleNamespace

import pytest

from heed.cli import answer, common, scores, seen

CONTEXT = "the dog sees a red house"
QUESTIONS = [
    {"id": "a", "question": "who?", "answers": [{"text": "the dog", "answer_start": 0}]},
    {"id": "b", "question": "what?", "answers": [{"text": "a red house", "answer_start": 13}]},
]


@pytest.mark.parametrize("out", [False, True])
def test_answers_are_written_to_a_file_only_if_one_is_named(out, tmp_path, monkeypatch, capsys):
    file, shown = tmp_path / "questions.json", []
    file.write_text(json.dumps({"data": [{"paragraphs": [{"context": CONTEXT, "qas": QUESTIONS}]}]}), "utf-8")

    def give(pairs):
        return [SimpleNamespace(text=f"{question} {len(context)}", cut=False, windows=1) for question, context in pairs]

    model = SimpleNamespace(answer=give, use_windows=lambda *sizes: None, sizes=None)
    monkeypatch.setattr(common, "open_product", lambda args, verb, names: model)
    monkeypatch.setattr(seen, "show_seen_texts", lambda systems, texts: None)
    monkeypatch.setattr(scores, "show_scores", lambda *given: shown.append(given[4]))
    context = dict.fromkeys(("window", "stride", "memory", "code", "document"), None) | {"rows": 1}
    args = Namespace(
        squad=str(file), system="model", against=None, out=str(tmp_path / "out.json") if out else None, **context
    )
    assert answer.evaluate(args) == 0
    assert shown == ["2 questions"] and capsys.readouterr().out == ""
    assert (tmp_path / "out.json").is_file() == out
    if out:
        assert json.loads((tmp_path / "out.json").read_text("utf-8")) == {"a": "who? 24", "b": "what? 24"}


@pytest.mark.parametrize("json_lines", [False, True])
def test_answers_of_json_lines_are_written_chunk_by_chunk(json_lines, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(answer, "CHUNK", 1)
    file, written = tmp_path / "questions.json", []
    file.write_text(json.dumps({"data": [{"paragraphs": [{"context": CONTEXT, "qas": QUESTIONS}]}]}), "utf-8")

    def give(pairs, **options):
        written.append(capsys.readouterr().out)
        return [SimpleNamespace(text=question, best=[], cut=question == "what?", windows=1) for question, _ in pairs]

    args = Namespace(squad=str(file), out=None, json=json_lines, n=1, threshold=None, batch_tokens=4096)
    product = SimpleNamespace(answer=give, longest_question=3)
    assert answer._squad(args, product) == 0
    out, err = capsys.readouterr()
    assert err.startswith("1 of 2 questions are longer than 3 subwords and were truncated.")
    if json_lines:
        assert [json.loads(line)["id"] for line in (written[1], out)] == ["a", "b"]
    else:
        assert written == ["", ""] and json.loads(out) == {"a": "who?", "b": "what?"}
