"""Which texts are validated on: never none, none longer than those trained on, and none trained on without a word."""

import pytest

from heed.data.prepare import TextFiles
from heed.data.readers import Line
from heed.runs.recipe import parse
from heed.tasks.validation import within_limits
from tests import fixed_pairs

LONG = "나는 학생이다 . " * 100


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Writes a corpus of 60 pairs and these to validate on; returns the [data] section."""
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))
    pairs = [(one.source, one.target) for one in fixed_pairs.pairs("train", 60)]

    def write(valid: list[tuple[str, str]]) -> dict:
        texts = {"source": pairs, "target": pairs, "valid_source": valid, "valid_target": valid}
        for name, own in texts.items():
            side = name.endswith("target")
            (tmp_path / name).write_text("".join(pair[side] + "\n" for pair in own), "utf-8")
        return {name: [str(tmp_path / name)] for name in texts}

    write.pairs = pairs
    return write


def notes(data: dict, **sections) -> tuple:
    recipe = parse({"data": data, "model": {"name": "transformer"}, "subwords": {"kind": "words"}, **sections})
    prepared = recipe.task.prepare(recipe, None, lambda what, done: None)
    return prepared, recipe.task.notes(recipe, prepared, recipe.task.validation(recipe, prepared), 512)


def test_a_long_line_and_an_empty_one_are_not_validated_on_and_that_is_told(files):
    good = [(one.source, one.target) for one in fixed_pairs.pairs("valid", 3)]
    prepared, told = notes(files([*good, (LONG, "I am ."), ("", "nothing")]), filters={"max_length": 50})
    assert [line[:2] for line in prepared.valid] == good
    assert (
        "2 of 5 validation pairs are not used: 1 for a side longer than filters.max_length, 1 for an empty side."
        in told
    )


def test_nothing_but_long_lines_is_refused(files):
    with pytest.raises(ValueError, match=r"no validation pair can be used \(2 for a side longer than filters\."):
        notes(files([(LONG, "I am ."), ("나는 간다 .", "I " * 60)]), filters={"max_length": 50})


def test_a_corpus_of_several_keeps_a_pair_to_validate_on():
    class Letters:
        def clean(self, text):
            return text

        def encode(self, texts):
            return [list(text) for text in texts]

    filters = parse({"data": {"source": ["a"], "target": ["b"]}, "filters": {"max_length": 6}}).filters
    lines = [Line("abc", "abc", "", 0), Line("abcde", "a", "", 1), Line("abcdef", "a", "", 1)]
    kept, left_out = within_limits(lines, (Letters(), Letters()), filters, [[], []])
    assert (kept, dict(left_out)) == (lines[:2], {"length": 1})
    with pytest.raises(ValueError, match=r"no validation pair of corpus 2 can be used"):
        within_limits(lines, (Letters(), Letters()), filters, [[], [7]])  # its tag counts, as it does in training


@pytest.mark.parametrize("rows", ["\n\n", " \n\t\n"])
def test_files_of_empty_lines_are_nothing_to_validate_on(files, rows):
    data = files([])
    for name in ("valid_source", "valid_target"):
        with open(data[name][0], "w", encoding="utf-8") as file:
            file.write(rows)
    recipe = parse({"data": data})
    with pytest.raises(ValueError, match=r"valid_source and .*valid_target: there is nothing to validate on"):
        TextFiles(recipe.data, one_sided=False).valid()


def test_a_table_of_a_header_alone_is_not_replaced_by_held_out_pairs(tmp_path):
    for name, text in (("train.tsv", "ko\ten\n가\tgo\n"), ("valid.tsv", "ko\ten\n")):
        (tmp_path / name).write_text(text, "utf-8")
    data = {"tsv": [str(tmp_path / "train.tsv")], "columns": ["ko", "en"], "valid_tsv": [str(tmp_path / "valid.tsv")]}
    with pytest.raises(ValueError, match=r"valid\.tsv: there is nothing to validate on"):
        TextFiles(parse({"data": data}).data, one_sided=False).valid()


def test_validation_texts_that_are_trained_on_are_taken_out_or_mentioned(files):
    new = [(one.source, one.target) for one in fixed_pairs.pairs("valid", 2)]
    data = files([files.pairs[3], *new])
    prepared, told = notes(data)
    assert files.pairs[3] not in [line[:2] for line in prepared.valid[1:]]
    assert prepared.train.report.taken["overlap"] >= 1 and not any("also in the training data" in one for one in told)
    assert any("are excluded from training because one side is also in the validation set" in one for one in told)
    told = notes(data, filters={"overlap": False})[1]
    assert any(one.startswith("1 of 3 validation texts are also in the training data") for one in told)


def test_a_corpus_of_both_directions_without_saying_so(files):
    """Whole pairs are compared the other way round, and one direction is taken for a mistake, which is said."""
    pairs = files.pairs
    files.pairs[40:] = [pair[::-1] for pair in pairs[:10]]
    data = files([pairs[3], ("여우가 잔다 .", "a fox sleeps .")])
    told = notes(data)[1]
    says = "Warning: 10 of 50 pairs are filtered as swapped. If the corpus has both directions on purpose, give each as"
    assert any(one.startswith(says) for one in told)
    prepared, told = notes(data, filters={"swapped": False})
    assert not any("filtered as swapped" in one for one in told)
    says = "1 pairs are excluded from training because they are in the validation set in the other direction"
    assert any(one.startswith(says) for one in told) and not any("also in the training data" in one for one in told)
    assert prepared.earlier_keys == [], "an earlier version trained on that pair"
    told = notes(data, filters={"swapped": False, "overlap": False})[1]
    assert any(one.startswith("1 of 2 validation texts are also in the training data") for one in told)


def test_a_language_model_is_told_of_lines_that_it_trains_on(tmp_path, monkeypatch):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))
    lines = [f"Line {i} of a text that is long enough to tell." for i in range(20)]
    (tmp_path / "train").write_text("\n".join(lines) + "\n", "utf-8")
    (tmp_path / "valid").write_text(f"{lines[4]}\nAnother line that nobody has ever read before.\nShort\n", "utf-8")
    data = {"source": [str(tmp_path / "train")], "valid_source": [str(tmp_path / "valid")]}
    recipe = parse(
        {"data": data, "task": {"name": "language"}, "model": {"name": "rnn-lm"}, "subwords": {"kind": "words"}}
    )
    prepared = recipe.task.prepare(recipe, None, lambda what, done: None)
    (told,) = recipe.task.trained_too(recipe, prepared)
    assert told.startswith("1 of 2 validation texts are also in the training data, ignoring case")


def test_a_corpus_of_empty_lines_is_told_in_words(files):
    data = files([("나는 간다 .", "I go .")])
    for name in ("source", "target"):
        with open(data[name][0], "w", encoding="utf-8") as file:
            file.write("\n \n\n")
    for kind in ("bpe", "words"):
        with pytest.raises(ValueError, match=r"^data: there is no text to train on: all 3 lines are empty$"):
            notes(data, subwords={"kind": kind})
