"""A model that begins with word vectors."""

import json
import shutil
from itertools import product

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from heed.cli.main import main
from heed.data.vectors import read, write
from heed.models.package import Package
from heed.models.transformer_xl import TransformerXL, TransformerXLConfig
from heed.runs.vectors import KnownRows, embeddings, fill, look_up
from heed.vocabularies.sentencepiece import SPECIAL_TOKENS
from heed.vocabularies.words import NAMES, Words

WHO = [("the Dog", "der Hund"), ("a child", "ein Kind"), ("my sister", "meine Schwester"), ("the man", "der Mann")]
DOES = [("sees", "sieht"), ("likes", "mag"), ("paints", "malt"), ("finds", "findet")]
WHAT = [("the sea", "das Meer"), ("a red house", "ein rotes Haus"), ("the street", "die Straße"), ("trees", "Bäume")]
PAIRS = [tuple(map(" ".join, zip(*parts, strict=True))) for parts in product(WHO, DOES, WHAT)]
DIM = 8
TINY = {
    "training.auto": "false",
    "data.holdout": 4, "subwords.kind": "words", "subwords.least": 1, "subwords.joint": "false", "model.dim": DIM,
    "model.heads": 2, "model.hidden": 16, "model.encoder_layers": 1, "model.decoder_layers": 1, "training.threads": 1,
    "training.steps": 4, "training.warmup": 1, "training.valid_every": 4, "training.checkpoint_every": 2,
    "training.batch_tokens": 200, "training.rate": 0.05, "training.weight_decay": 0.1, "training.device": "cpu",
    "decoding.max_length": 6,
}  # fmt: skip
ENGLISH = sorted({word for source, _ in PAIRS for word in source.split()} - {"sister"})


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))
    for name, side in (("train.en", 0), ("train.de", 1)):
        (tmp_path / name).write_text("".join(pair[side] + "\n" for pair in PAIRS))
    draw = np.random.default_rng(3)
    write(tmp_path / "en.vec", ENGLISH, draw.normal(0.3, 2, (len(ENGLISH), DIM)).astype(np.float32))
    return tmp_path


@pytest.fixture
def train(files, capsys):
    """A run with settings; (exit code, what was said)."""

    def train(out="run", *more, **settings):
        said = {**TINY, **{name.replace("__", "."): value for name, value in settings.items()}}
        sets = [word for name, value in said.items() for word in ("--set", f"{name}={value}")]
        names = [f"--source={files / 'train.en'}", f"--target={files / 'train.de'}", f"--out={files / out}"]
        code = main(["train", *names, *sets, *more])
        return code, " ".join(capsys.readouterr().err.split())

    return train


def english(folder):
    """The source words of a trained model by their vectors."""
    weights = load_file(folder / "model" / "model.safetensors")
    words = (folder / "model" / "source.words.txt").read_text().splitlines()[1:]
    return {line.split("\t")[0]: row for line, row in zip(words, weights["source_tokens.weight"], strict=True)}


def test_frozen_vectors_stay_as_they_are_and_the_rest_learns(files, train):
    code, said = train(vectors__source=files / "en.vec", vectors__frozen="true", vectors__scale=0.5)
    assert code == 0
    given, learned = read(files / "en.vec"), english(files / "run")
    for word, row in zip(given.words, given.matrix, strict=True):
        np.testing.assert_array_equal(learned[word].numpy(), 0.5 * row)
    lines = [json.loads(line) for line in (files / "run" / "log.jsonl").read_text().splitlines()]
    noted = next(line for line in lines if line["kind"] == "vectors")
    count, used = len(ENGLISH), sum(len(source.split()) for source, _ in PAIRS)
    assert (noted["words"], noted["of"], noted["side"]) == (count, count + 1, "source")
    assert 0.9 < noted["running"] / noted["of_running"] < 1 and noted["of_running"] < used
    share = f"{100 * noted['running'] / noted['of_running']:.1f} %"
    assert f"{count} of {count + 1} words ({share} of the running words) have vectors" in said
    first, last = (load_file(files / "run" / "checkpoints" / f"step-00000{i}" / "model.safetensors") for i in (2, 4))
    still = {name for name, weight in first.items() if torch.equal(weight, last[name])}
    assert still == {"source_tokens.weight"}


def test_vectors_that_are_not_frozen_learn(files, train):
    assert train(vectors__source=files / "en.vec", vectors__scale=0.5)[0] == 0
    given, learned = read(files / "en.vec"), english(files / "run")
    far = [np.abs(learned[word].numpy() - 0.5 * row).max() for word, row in zip(given.words, given.matrix, strict=True)]
    assert min(far) > 0


def test_a_run_that_goes_on_needs_the_file_no_more(files, train):
    settings = {"training__final": "ema", "training__ema": 0.9}
    settings |= {"vectors__source": files / "en.vec", "vectors__frozen": "true"}
    assert train("whole", **settings)[0] == 0
    shutil.copytree(files / "whole", files / "part")
    shutil.rmtree(files / "part" / "checkpoints" / "step-000004")
    (files / "en.vec").unlink()
    code, said = train("part", "--resume", **settings)
    assert code == 0 and "have vectors" not in said
    whole, part = (load_file(files / name / "model" / "model.safetensors") for name in ("whole", "part"))
    first = load_file(files / "part" / "checkpoints" / "step-000002" / "model.safetensors")
    assert torch.equal(whole["source_tokens.weight"], first["source_tokens.weight"])
    assert all(torch.equal(weight, part[name]) for name, weight in whole.items())
    kinds = [json.loads(line)["kind"] for line in (files / "part" / "log.jsonl").read_text().splitlines()]
    assert kinds.count("vectors") == 1


def test_a_run_without_a_whole_checkpoint_begins_with_the_vectors_again(files, train):
    settings = {"vectors__source": files / "en.vec", "vectors__frozen": "true", "vectors__scale": 1}
    assert train(**settings)[0] == 0
    for path in (files / "run" / "checkpoints").glob("*/training.safetensors"):
        path.write_bytes(b"")
    assert train("run", "--resume", **settings)[0] == 0
    np.testing.assert_array_equal(english(files / "run")["the"].numpy(), read(files / "en.vec", {"the"}).matrix[0])


def test_one_matrix_for_both_languages_takes_the_vectors_of_both(files, train):
    german = ["der", "die", "Bäume", "trees"]
    rows = np.random.default_rng(4).normal(size=(4, DIM)).astype(np.float32)
    write(files / "de.vec.gz", german, rows)
    both = {"vectors__source": files / "en.vec", "vectors__target": files / "de.vec.gz", "subwords__joint": "true"}
    assert train(training__rate=1e-12, training__weight_decay=0, vectors__scale=1, **both)[0] == 0
    lines = (files / "run" / "model" / "words.txt").read_text().splitlines()[1:]
    table = load_file(files / "run" / "model" / "model.safetensors")["tokens.weight"]
    learned = {line.split("\t")[0]: row.numpy() for line, row in zip(lines, table, strict=True)}
    np.testing.assert_allclose(learned["Bäume"], rows[2], atol=1e-6)
    np.testing.assert_allclose(learned["trees"], read(files / "en.vec", {"trees"}).matrix[0], atol=1e-6)


def test_a_language_model_and_its_frozen_words(files, capsys):
    left = ("model.heads", "model.encoder_layers", "model.decoder_layers", "subwords.joint", "decoding.max_length")
    settings = {name: value for name, value in TINY.items() if name not in left}
    settings |= {
        "model.name": "rnn-lm",
        "model.tied": "none",
        "vectors.text": files / "en.vec",
        "vectors.frozen": "true",
    }
    sets = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    assert main(["train", f"--source={files / 'train.en'}", f"--out={files / 'lm'}", *sets]) == 0
    assert f"vectors.text: {len(ENGLISH)} of {len(ENGLISH) + 1} words" in " ".join(capsys.readouterr().err.split())
    assert main(["vectors", str(files / "lm"), "--out", str(files / "own.vec")]) == 0
    given, own = read(files / "en.vec"), read(files / "own.vec", set(ENGLISH))
    own = own.matrix[[own.words.index(word) for word in given.words]]
    np.testing.assert_allclose(own / own.std(), given.matrix / given.matrix.std(), rtol=1e-5)


def test_the_words_of_a_model_with_clusters_have_vectors():
    words = vocabulary("the", "dog", "sees", "trees")
    model = TransformerXL(TransformerXLConfig(8, dim=8, heads=2, hidden=8, layers=1, cutoffs=[6], divisor=2)).eval()
    found = embeddings(Package(model, "language", {"text": words}, {}), None)
    assert found.words == ["the", "dog", "sees", "trees"]
    np.testing.assert_allclose(found.matrix, model.tokens(torch.arange(4, 8)).detach().numpy(), rtol=1e-6)


def test_a_model_without_a_matrix_of_words_takes_no_vectors(files, capsys):
    left = ("model.encoder_layers", "model.decoder_layers", "subwords.joint", "decoding.max_length")
    settings = {name: value for name, value in TINY.items() if name not in left}
    settings |= {"model.name": "transformer-xl", "model.layers": 1, "vectors.text": files / "en.vec"}
    sets = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    assert main(["train", f"--source={files / 'train.en'}", f"--out={files / 'lm'}", *sets]) == 1
    says = "vectors.text is set, but the model has no single embedding matrix: leave it out"
    assert says in " ".join(capsys.readouterr().err.split())


WRONG = [
    ({"model__dim": 16}, "vectors.source: {}/en.vec has 8 numbers per word, but the model's embeddings have 16: set model.dim to 8"),
    ({"subwords__kind": "bpe"}, "but subwords.kind is 'bpe', and subwords have no word vectors: set subwords.kind to \"words\""),
    ({"vectors__source": "{}/other.vec"}, "none of the 16 words of the vocabulary (the, a, Dog, …) is in {}/other.vec: is it for another"),
    ({"vectors__source": "{}/broken.vec"}, "{}/broken.vec, line 3 is broken: 'the 1 2 3' is not a word followed by 8 numbers"),
    ({"vectors__source": "{}/none.vec"}, "{}/none.vec: no such file"),
    ({"vectors__target": "{}/en.vec", "vectors__frozen": "true"}, "the matrix of vectors.target is also the output layer, which must be trained"),
    ({"vectors__text": "{}/en.vec", "vectors__source": ""}, "but the task is translation: use vectors.source or vectors.target"),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "sentence"), WRONG)
def test_what_cannot_be_is_said_in_a_sentence(files, train, settings, sentence):
    row = " ".join(["1"] * DIM)
    (files / "other.vec").write_text(f"1 {DIM}\n서울 {row}\n")
    (files / "broken.vec").write_text(f"a {row}\nsees {row}\nthe 1 2 3\n")
    settings = {name: str(value).replace("{}", str(files)) for name, value in settings.items()}
    if settings.get("subwords__kind"):
        settings |= {"subwords__least": 2, "subwords__size": 300}
    code, said = train(**{"vectors__source": files / "en.vec", **settings})
    assert code == 1
    assert sentence.replace("{}", str(files)) in said
    assert not (files / "run" / "recipe.toml").exists()


# the parts


def vocabulary(*words):
    return Words([*((name, 0) for name in NAMES), *((word, 1) for word in words)])


def test_coverage_counts_words_and_running_words(tmp_path):
    rows = np.arange(8, dtype=np.float32).reshape(4, 2)
    write(tmp_path / "v.vec", ["paris", "The", "the", "house"], rows)
    own = vocabulary("the", "The", "Paris", "unseen", "HOUSE", "elsewhere")
    counts = np.array([0, 5, 9, 9, 40, 10, 20, 3, 22, 0])
    found, coverage = look_up("source", str(tmp_path / "v.vec"), own, counts, lowercase=False)
    assert found.ids.tolist() == [4, 5]
    np.testing.assert_array_equal(found.matrix, rows[[2, 1]])
    assert coverage[2:6] == (2, 5, 50, 100)
    assert coverage.summary() == (
        "vectors.source: 2 of 5 words (50.0 % of the running words) have vectors in "
        f"{tmp_path / 'v.vec'}; the others are initialized around the mean of these."
    )
    found, coverage = look_up("source", str(tmp_path / "v.vec"), own, counts, lowercase=True)
    assert found.ids.tolist() == [4, 5, 6, 8]
    np.testing.assert_array_equal(found.matrix, rows[[2, 1, 0, 3]])
    assert coverage[2:6] == (4, 5, 92, 100)


def test_capitals_of_the_file_are_passed_over_too(tmp_path):
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    write(tmp_path / "v.vec", ["SEOUL", "Seoul", "busan"], rows)
    found, _ = look_up("text", str(tmp_path / "v.vec"), vocabulary("seoul", "Busan"), np.ones(6, int), lowercase=True)
    np.testing.assert_array_equal(found.matrix, rows[[0, 2]])


@pytest.mark.parametrize("std", [0.02, 1.0])
def test_vectors_are_as_large_as_the_model_would_draw_them_and_the_others_are_like_them(std):
    torch.manual_seed(1)
    table = nn.Embedding(4000, 20).double()
    nn.init.normal_(table.weight, std=std)
    drawn = float(table.weight.std().detach())
    matrix = np.random.default_rng(1).normal(3, 7, (2000, 20)).astype(np.float32)
    matrix[:, 0] += 50  # word vectors have a direction that all of them share
    ids = np.random.default_rng(2).permutation(4000)[:2000]
    fill(table, [KnownRows(ids, matrix)], None)
    weight = table.weight.detach()
    known = weight[torch.from_numpy(ids)]
    factor = drawn / matrix.astype(np.float64).std()
    np.testing.assert_allclose(known.numpy(), matrix * factor, rtol=1e-5)
    others = weight[[i for i in range(4000) if i not in set(ids.tolist())]]
    np.testing.assert_allclose(others.mean(0).numpy(), known.mean(0).numpy(), atol=0.15 * float(known.std()))
    assert float((others - others.mean(0)).std()) == pytest.approx(float((known - known.mean(0)).std()), rel=0.02)


def test_a_scale_that_is_named_is_what_vectors_are_multiplied_by():
    table = nn.Embedding(6, 2)
    fill(table, [KnownRows(np.array([4, 5]), np.array([[1, 2], [3, 4]], np.float32))], 2.0)
    assert table.weight[4:].tolist() == [[2, 4], [6, 8]]
    assert SPECIAL_TOKENS.last == 3


def test_a_file_of_zeros_does_not_divide_by_them():
    table = nn.Embedding(6, 2)
    fill(table, [KnownRows(np.array([4]), np.zeros((1, 2), np.float32))], None)
    assert table.weight[4].tolist() == [0, 0]
    assert torch.isfinite(table.weight).all()
