"""What fuzzing has found (make check-fuzz): each was a traceback, or an error that named no file."""

import json
import re
import tracemalloc

import numpy as np
import pytest
import torch
from safetensors.numpy import save

from heed import loading
from heed.cli.main import MOST, main, one_line
from heed.convert import generation, sentence_transformers, weights
from heed.data import conll, contamination
from heed.data.vectors import reading, store
from heed.evaluation import alignment
from heed.models import MODELS
from heed.models.gpt2 import GPT2Config
from heed.models.package import Package
from heed.runs import final_validation, recipe
from heed.runs.final_validation import FinalValidation
from heed.runs.report.log import read_training
from heed.service.http import limits, runs
from heed.text import glossary
from heed.vocabularies import folder as vocabularies
from heed.vocabularies import sentencepiece, words
from heed.vocabularies.charsmap import precompiled
from heed.vocabularies.files import File, charsmap, check_ids, load_sentencepiece
from heed.vocabularies.labels import Labels
from heed.vocabularies.sentencepiece import SubwordsConfig

FILES = {
    "a.align": alignment.read_gold,
    "a.conll": lambda path: conll.find_scheme(conll.read(path).sentences),
    "a.vec": reading.read,
    "a.json": glossary.read,
    "keys": limits.read_keys,
    "a.toml": lambda path: recipe.read(path, []),
    "recipe.toml": lambda path: recipe.read(path, [], saved=True),
    "words.txt": words.load,
}


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.align", b"0-0\n\xff\n", "a.align, line 2 is not UTF-8"),
        ("a.align", b"0-" + b"1" * 5000, "a.align, line 1: '0-111"),
        ("a.conll", b"Seoul S-{x}\nis I-{}\n", "line 2: I-{} follows S-{x}"),
        (
            "a.conll",
            b"Seoul I-{label}{}\nis E-X\nnow I-Y\n",
            "line 1: I-{label}{} follows the beginning of the sentence",
        ),
        ("a.vec", b"4 3", "a.vec contains no words"),
        ("a.vec", b"cat 1.0 1e39\n", "line 1 is broken"),
        ("a.json", b'{"a": ' + b"1" * 5000 + b"}", "a.json, 'a': a term must be a string, not inf"),
        ("keys", b"abc " + b"9" * 5000, "keys, line 1: a line is a key"),
        ("a.toml", b"[task]\nname = [1]\n", "task.name: [1] is none of 'translation'"),
        ("a.toml", b"[model]\nname = {}\n", "model.name: {} is"),
        ("a.toml", b"[training]\nsteps = " + b"9" * 5000, "a.toml is not valid TOML: Exceeds the limit"),
        ("a.toml", b"[model]\ndropout = " + b"9" * 400, "model.dropout: the number is too large"),
        ("a.vec", b"4 999999999999\ncat 1.0", "a.vec declares vectors of 999999999999 numbers"),
        ("a.vec", b"4 " + b"9" * 5000, "a.vec"),
        ("recipe.toml", b"task = 1\n", "task: 1 is a value; this is a section, [task]"),
        ("recipe.toml", b'[task]\nname = "x"\n[filters]\n', "task.name: 'x' is none of"),
        ("recipe.toml", b"[task]\nname = [1]\nbptt = 3\n", "task.name: [1] is none of"),
        ("recipe.toml", b"[training]\nr_drop = 1.0\n[model]\nname = [1]\n", "model.name: [1] is"),
        (
            "words.txt",
            b"heed-words\tcut=spaces\tlower=true\n<pad>\t" + b"9" * 5000,
            "line 2: the count of '<pad>' has 5,000 digits, and the limit is 18: copy the file again",
        ),
    ],
)
def test_a_damaged_file_is_said_in_a_sentence(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(says)) as caught:
        FILES[name](tmp_path / name)
    assert caught.type is ValueError  # and none of a library's


def test_an_error_is_one_line_that_controls_no_terminal(tmp_path, capsys):
    """A file may have anything in it that an error quotes."""
    assert one_line("a\nb\x1b[2J한\u202e\ud800") == r"a\nb\x1b[2J한\u202e\ud800"
    assert len(one_line("x" * 10_000)) < MOST + 10
    (tmp_path / "a.toml").write_text('[data]\n"x\\u001b[31m\\ny' + "z" * 9999 + '" = 1\n', "utf-8")
    assert main(["train", str(tmp_path / "a.toml"), "--out", str(tmp_path / "run")]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "\x1b" not in said and len(said) < MOST + 100


def test_ngrams_of_other_word_vectors_are_refused(tmp_path):
    (tmp_path / "a.vec").write_text("1 3\ncat 1.0 2.0 3.0\n", "utf-8")
    (tmp_path / "a.ngrams.bin").write_text("1 2\n<d 1.0 2.0\n", "utf-8")
    with pytest.raises(ValueError, match=r"a\.ngrams\.bin has vectors of 2 numbers, but .*a\.vec of 3"):
        store.neighbours(store.from_file(tmp_path / "a.vec"), ["dog"], 1)


def test_a_log_with_values_of_other_types_is_read(tmp_path):
    lines = [{"kind": "step", "step": 1, "epoch": []}, {"kind": "end", "weights": 3, "cooldown_from": "x"}]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    found = read_training(tmp_path, ["loss"])
    assert (found.epochs, found.weights, found.cooldown_from, found.finished) == (1, "", 0, True)


@pytest.mark.parametrize(
    "values",
    [{"outputs": [["a", "b"]]}, {"outputs": [["a", "b", 3]]}, {"directions": {"ko-en": "2"}}, {"directions": {"ko-en": -1}}, {"directions": {"ko-en": 2}}, {"scores": []}, {"data": {"a": 1}}],
)  # fmt: skip
def test_a_damaged_validation_is_said_to_be(tmp_path, values):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").write_bytes(b"x")
    final_validation.write(tmp_path, FinalValidation({"bleu": 1.0}, [("a", "b", "c")], {"a": "b"}, {}))
    assert final_validation.read(tmp_path).outputs == [("a", "b", "c")]
    path = tmp_path / final_validation.FILE
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **values}), "utf-8")
    with pytest.raises(ValueError, match=r"validation\.json is damaged: remove it"):
        final_validation.read(tmp_path)


@pytest.mark.parametrize(
    ("arrays", "ends"),
    [({"source": np.ones(3, np.float32)}, {}), ({"source": np.ones(2, np.uint64)}, {}), ({}, {"source": "9" * 400})],
)
def test_trained_texts_that_are_no_hashes_are_said_to_be_damaged(tmp_path, arrays, ends):
    (tmp_path / "a.safetensors").write_bytes(save(arrays, metadata=ends))
    with pytest.raises(ValueError, match=r"a\.safetensors is damaged \(it contains values"):
        contamination.read(tmp_path / "a.safetensors")


def test_pieces_that_are_no_text_are_refused(tmp_path):
    model = sentencepiece.learn(["a cat and a dog"] * 9, SubwordsConfig(), 280).model
    path = tmp_path / "a.spm"
    path.write_bytes(model.replace("▁a".encode(), b"\xff\xff\xff" + b"a"))
    with pytest.raises(ValueError, match=r"a\.spm is damaged: it has pieces that are not UTF-8"):
        sentencepiece.load(path)
    with pytest.raises(ValueError, match=r"a\.spm is damaged: it has pieces that are not UTF-8"):
        load_sentencepiece(File(str(path), path.read_bytes()))


def test_a_damaged_character_normalization_map_is_refused(tmp_path):
    """The library would read it, and panic over some text; SentencePiece refuses only the last two."""
    own = vocabularies.learn("albert", ["a cat and a dog"] * 9, 60)[0]
    vocabularies.write(tmp_path, (own, own))
    model, path = own.files["spiece.model"].content, tmp_path / "spiece.model"
    whole = charsmap(model)
    size = int.from_bytes(whole[:4], "little")
    units = np.frombuffer(whole, "<u4", size // 4, 4)
    broken = np.array(units)
    broken[units[0] >> 10 ^ ord("r")] |= 1 << 8  # "r" alone is not replaced, so that its child has no value
    path.write_bytes(model.replace(whole, whole[:4] + broken.tobytes() + whole[4 + size :]))
    says = r"spiece\.model is damaged: its character normalization map refers to what it does not have; copy it again"
    with pytest.raises(ValueError, match=says):
        vocabularies.read(tmp_path, {"kind": "albert"})
    value, node = np.flatnonzero(units >> 31)[0], np.flatnonzero(units & 1 << 8)[0]
    for unit, number in ((value, (1 << 31) + len(whole)), (node, units[node] | 0x7FFF_FC00)):
        broken = np.array(units)
        broken[unit] = number
        with pytest.raises(ValueError, match=says):
            precompiled(whole[:4] + broken.tobytes() + whole[4 + size :], "spiece.model")
    assert precompiled(whole, "spiece.model").normalize_str("ｃａｔ") == "cat"


def test_a_pickle_with_odd_names_is_said_to_be_damaged(tmp_path):
    torch.save({"a": torch.ones(2)}, tmp_path / "pytorch_model.bin")
    data = (tmp_path / "pytorch_model.bin").read_bytes()
    (tmp_path / "pytorch_model.bin").write_bytes(data.replace(b"data.pkl", b"data.\x80kl"))
    with pytest.raises(ValueError, match=r"pytorch_model\.bin is damaged or truncated \("):
        weights.read(tmp_path)


def test_a_pickle_that_states_gigabytes_takes_no_memory(tmp_path):
    path = tmp_path / "pytorch_model.bin"
    torch.save({"weight": torch.ones(2)}, path, _use_new_zipfile_serialization=False)
    assert weights.read(tmp_path)["weight"].tolist() == [1, 1]
    data = path.read_bytes()
    path.write_bytes(data.replace(b"X\x06\0\0\0weight", b"X\xff\xff\xff\x7fweight"))
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"pytorch_model\.bin is damaged or truncated"):
        weights.read(tmp_path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 100 << 20


def test_ids_and_settings_of_others_are_checked(tmp_path):
    with pytest.raises(ValueError, match="the id of 'a' is 1000000000000; an id must be a number from 0 to 16,777,215"):
        check_ids({"a": 10**12}, "vocab.json")
    special = sentencepiece.SPECIAL_TOKENS
    for name, value, what in (
        ("num_beams", "4", "an integer"), ("length_penalty", [1], "a number"), ("do_sample", 1, "true or false"),
        ("max_length", 2.5, "an integer"), ("bad_words_ids", [3], "a list of lists of ids"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=re.escape(f"{name} is {value!r}; it must be {what}")):
            generation.to_ours({name: value}, special)
    for values in ({"labels": 10**30}, {"labels": -1}):
        with pytest.raises(ValueError, match=r"labels is .*; it must be from 0 to"):
            GPT2Config(vocab_size=9, **values)
    with pytest.raises(ValueError, match="init_std is -1"):
        GPT2Config(vocab_size=9, init_std=-1)


def test_whatever_a_tokenizer_says_is_said_to_be_damaged(tmp_path):
    """Each was a TypeError of the library that builds the tokenizer."""
    vocabularies.write(tmp_path, vocabularies.learn("wordpiece", ["a cat and a dog"], 60))
    path = tmp_path / "tokenizer_config.json"
    kept = json.loads(path.read_text("utf-8"))
    for values in (
        {"do_lower_case": []},
        {"extra_special_tokens": True},
        {"added_tokens_decoder": {"0": {"content": "x", "lstrip": 0.5}}},
    ):
        path.write_text(json.dumps({**kept, **values}), "utf-8")
        with pytest.raises(
            ValueError, match=r"the vocabulary in .* \(wordpiece\) is damaged or in the wrong format \(TypeError"
        ):
            vocabularies.read(tmp_path, {"kind": "wordpiece"})


@pytest.mark.parametrize(
    ("file", "values", "says"),
    [
        ("sentence_bert_config.json", {"max_seq_length": [3]}, r"max_seq_length is \[3\]"),
        ("1_Pooling/config.json", {"pooling_mode": {}}, r"pools by \{\}; heed has"),
        ("1_Pooling/config.json", {"pooling_mode": [[]]}, r"pools by \[\]; heed has"),
    ],
)
def test_settings_of_sentence_transformers_are_checked(tmp_path, file, values, says):
    rows = [
        {"idx": i, "path": path, "type": f"x.{name}"}
        for i, (path, name) in enumerate([("", "Transformer"), ("1_Pooling", "Pooling")])
    ]
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "modules.json").write_text(json.dumps(rows), "utf-8")
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": "mean"}), "utf-8")
    assert sentence_transformers.read(tmp_path, 30) == {"pooling": "mean", "normalize": False, "max_source": 30}
    (tmp_path / file).write_text(json.dumps(values), "utf-8")
    with pytest.raises(ValueError, match=says):
        sentence_transformers.read(tmp_path, 30)


def test_a_log_is_served_whatever_is_in_it(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "log.jsonl").write_text(
        '{"kind": "step", "step": 1, "loss": NaN, "a": [[NaN]], "b": [1]}', "utf-8"
    )
    (line,) = runs.read_run(tmp_path, "run", 0)["lines"]
    assert line == {"kind": "step", "step": 1, "loss": None, "a": None, "b": [1]}


def test_a_run_is_listed_whose_recipe_is_nested_too_deeply(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "log.jsonl").write_text(json.dumps({"kind": "start"}), "utf-8")
    (tmp_path / "run" / "recipe.toml").write_text("a = " + "[" * 5000, "utf-8")
    assert runs.list_runs(tmp_path)[0]["steps"] is None


def test_samples_that_are_no_text_are_shown_as_far_as_they_are(tmp_path):
    (tmp_path / "run" / "samples").mkdir(parents=True)
    (tmp_path / "run" / "log.jsonl").write_text(json.dumps({"kind": "start"}), "utf-8")
    (tmp_path / "run" / "samples" / "step-000001.txt").write_bytes(b"a\xff\n= b\n> c\n\n")
    assert runs.read_samples(tmp_path, "run")[0]["of"] == [{"source": "a�", "reference": "b", "translation": "c"}]


def test_a_model_folder_put_together_from_two_is_refused(tmp_path):
    own = vocabularies.learn("wordpiece", ["a cat and a dog"], 60)[0]
    config = MODELS["bert"].config(
        vocab_size=len(own), dim=8, heads=2, hidden=8, layers=1, max_length=16, head="classification", labels=2
    )
    package = Package(MODELS["bert"].model(config), "classification", {"text": own, "labels": Labels(["a", "b"])}, {})
    loading.write_package(package, tmp_path)
    loading.load(tmp_path, "cpu", "torch")
    path = tmp_path / "config.json"
    facts = json.loads(path.read_text("utf-8"))
    del facts["sha256"]  # as someone does who has changed the file
    sides = {side: {"kind": "wordpiece"} for side in ("source", "target")}
    for values, says in (
        (
            {"task": {"name": "translation"}, "processors": sides},
            "its task is 'translation', which a Bert does not support",
        ),
        (
            {"processors": sides},
            "a classifier needs text, and its config.json lists no text in processors: it is damaged",
        ),
        ({"model": {**facts["model"], "layers": 1000}}, "layers is 1000, but there are only"),
        ({"languages": {"source": []}}, "config.json: languages.source is []; it must be the code of a language"),
        ({"directions": ["ko-en"]}, "config.json: directions is ['ko-en']; it must be a list of pairs of languages"),
        ({"processors": {"labels": {"kind": "labels", "names": ["a", "b"]}}}, "lists no text in processors"),
    ):
        path.write_text(json.dumps({**facts, **values}), "utf-8")
        with pytest.raises(ValueError, match=re.escape(says)):
            loading.load(tmp_path, "cpu", "torch")
