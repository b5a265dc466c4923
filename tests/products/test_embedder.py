"""heed embed: vectors are those of transformers' states pooled, and search finds what a full comparison finds."""

import json
import re
from functools import cache

import numpy as np
import pytest
import torch
import transformers

from heed.cli.main import main
from heed.convert import huggingface
from heed.evaluation.retrieval import nearest_rows, ranks, retrieval_scores, unit_rows
from heed.loading import load, product_of, write_package
from heed.products import text_batches, vector_cache
from heed.products.embedder import Embedder
from heed.products.text_batches import in_precision
from tests.convert.encoders import OWN, package

TEXTS = ["나는 책을 읽어요.", "one", "the cat reads a book, and sleeps", "고양이", "책이 있어요.", "one", ""]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    @cache
    def make(system, head="none"):
        folder = tmp_path_factory.mktemp(f"{system}-{head}") / "model"
        huggingface.write(package(system, head), folder)
        return folder

    return make


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))


def pooled(folder, name):
    """By transformers and the definition, each text alone."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder, dtype=torch.float64).eval()
    with torch.inference_mode():
        states = [model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0] for text in TEXTS]
    how = {"mean": lambda x: x.mean(dim=0), "cls": lambda x: x[0], "max": lambda x: x.amax(dim=0)}[name]
    return torch.stack([how(own) for own in states]).numpy()


@pytest.mark.parametrize("system", OWN)
def test_vectors_are_transformers_states_pooled(folders, system):
    own = load(folders(system), "cpu")
    own.model.double()
    for own.pooling in ("mean", "cls", "max"):
        expected = pooled(folders(system), own.pooling)
        found = own.embed(TEXTS, batch_tokens=20)
        assert found.dtype == np.float32 and np.abs(found - expected).max() < 1e-6
        assert np.array_equal(found, own.embed(TEXTS, batch_tokens=20))
    own.normalize = True
    assert np.abs(own.embed(TEXTS) - unit_rows(expected)).max() < 1e-6


def test_texts_are_read_in_chunks_and_come_back_in_their_order(folders, monkeypatch):
    own = load(folders("bert"), "cpu")
    whole = own.embed(TEXTS)
    monkeypatch.setattr(text_batches, "CHUNK", 3)
    assert np.allclose(own.embed(TEXTS), whole, atol=1e-6)
    assert own.embed([]).shape == (0, own.dim)


def test_any_encoder_embeds_whatever_its_head(folders, tmp_path):
    bodies = [load(folders("bert", head), "cpu", verb="embed") for head in ("none", "masked", "classification")]
    assert [type(own) for own in bodies] == [Embedder] * 3
    write_package(package("bert", "classification")._replace(task="classification"), tmp_path / "heed")
    assert type(load(tmp_path / "heed", "cpu", verb="embed")) is Embedder
    assert product_of(tmp_path / "heed").noun == "a classifier"


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")
def test_bfloat16_is_asked_for_and_near(folders):
    own = load(folders("bert"), "cpu")
    exact = own.embed(TEXTS)
    assert in_precision(own.model, "auto") is own.model and np.array_equal(own.embed(TEXTS), exact)
    in_precision(own.model, "bfloat16")
    cosines = (unit_rows(own.embed(TEXTS)) * unit_rows(exact)).sum(axis=1)
    assert next(own.model.parameters()).dtype is torch.bfloat16 and cosines.min() > 0.99


def test_a_text_too_long_is_refused_or_cut(folders, capsys, tmp_path):
    own, long = load(folders("bert"), "cpu"), "one " * 600
    with pytest.raises(ValueError, match=r"^text 2 has \d+ subwords, and the model reads at most \d+: shorten it, or"):
        own.embed(["one", long])
    pieces = len(own.vocabulary.encode(["one"])[0])
    most = (own.most - 2) // pieces
    assert (own.most - 2) % pieces == 0
    assert np.allclose(own.embed([long], too_long="cut"), own.embed(["one " * most]), atol=1e-6)
    out = tmp_path / "vectors.npy"
    assert main(["embed", str(folders("bert")), long, "--out", str(out), "--device", "cpu"]) == 1
    assert "text 1 has" in capsys.readouterr().err and not out.exists()


def test_the_command_writes_vectors_cosines_and_similar_lines(folders, tmp_path, capsys):
    folder, lines, out = str(folders("bert")), tmp_path / "lines.txt", tmp_path / "vectors.npy"
    lines.write_text("".join(f"{text}\n" for text in TEXTS[:5]), "utf-8")
    own = load(folder, "cpu")
    assert main(["embed", folder, "--input", str(lines), "--out", str(out), "--pool", "cls", "--normalize"]) == 0
    own.pooling = "cls"
    assert np.allclose(np.load(out), unit_rows(own.embed(TEXTS[:5])), atol=1e-6)
    assert main(["embed", folder, TEXTS[2], "--search", str(lines), "--top", "2"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"1.0000\t3\t{TEXTS[2]}" and float(second.split("\t")[0]) < 1
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text(f"{TEXTS[0]}\t{TEXTS[0]}\n{TEXTS[0]}\t{TEXTS[1]}\n", "utf-8")
    assert main(["embed", folder, "--pairs", str(pairs)]) == 0
    own.pooling = "mean"
    one, other = unit_rows(own.embed(TEXTS[:2]).astype(float))
    assert capsys.readouterr().out.splitlines() == ["1.000000", f"{one @ other:.6f}"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "vectors are written to a file: give --out vectors.npy"),
        (["one", "--out", "vectors.txt"], "vectors are written in NumPy format: name it vectors.npy"),
        (["one", "--input", "x", "--out", "v.npy"], "give either texts or --input, not both"),
        (["one", "--pairs", "x"], "--pairs already contains texts"),
        (["one", "--search", "x", "--top", "0"], "--top is 0; it must be at least 1"),
    ],
)
def test_words_that_contradict_each_other_are_refused(folders, words, said, capsys):
    assert main(["embed", str(folders("bert")), *words]) == 1
    assert said in capsys.readouterr().err


def test_a_model_that_is_no_encoder_is_refused(tmp_path, capsys):
    from tests.convert.small import classifier

    write_package(classifier(), tmp_path / "bart")
    assert main(["embed", str(tmp_path / "bart"), "one", "--out", "v.npy"]) == 1
    assert "is a classifier: it cannot embed; use heed classify" in capsys.readouterr().err


def test_the_vectors_of_a_file_are_kept_and_found_again(folders, monkeypatch):
    own = load(folders("bert"), "cpu")
    first = vector_cache.cached_vectors(own, TEXTS)
    own.pooling = "cls"
    other = vector_cache.cached_vectors(own, TEXTS)
    monkeypatch.setattr(Embedder, "embed", lambda *_, **__: pytest.fail("the vectors are in the cache"))
    assert np.array_equal(vector_cache.cached_vectors(own, TEXTS), other) and not np.array_equal(first, other)


@pytest.mark.parametrize("place", [-1, -40, 100])
def test_vectors_that_are_damaged_are_computed_again(folders, place, monkeypatch, tmp_path):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path))
    own = load(folders("bert"), "cpu")
    right = vector_cache.cached_vectors(own, TEXTS)
    (path,) = tmp_path.glob("embeddings-*.npy")
    assert np.array_equal(np.load(path), right), "numpy reads it"
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    assert np.array_equal(vector_cache.cached_vectors(own, TEXTS), right)
    other = path.with_name(f"embeddings-{'0' * 24}.npy")
    path.rename(other)
    with pytest.raises(ValueError, match="is damaged"):
        vector_cache._read(other)  # of other texts


def test_nearest_rows_are_those_of_a_full_comparison_whatever_the_block():
    random = np.random.default_rng(0)
    vectors, queries = random.normal(size=(50, 6)), random.normal(size=(4, 6))
    vectors[7] = vectors[3]  # of equals, the first
    queries[0] = vectors[3]
    cosines = unit_rows(queries) @ unit_rows(vectors).T
    for block in (7, 50, 100):
        rows, found = nearest_rows(queries, vectors, 5, block)
        assert rows[0, 0] == 3 and rows[0, 1] == 7
        assert np.allclose(found, -np.sort(-cosines, axis=1)[:, :5])
    assert nearest_rows(queries, vectors[:2], 5)[0].shape == (4, 2)


def test_ranks_count_different_texts_alone_and_collapsed_vectors_find_nothing():
    queries = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]])
    targets = np.array([[0.9, 0.1], [0.9, 0.1], [0.0, 1.0]])
    assert ranks(queries, targets, ["a", "a", "b"]).tolist() == [1, 1, 1]
    assert ranks(queries[[2, 1, 0]], targets, ["a", "a", "b"]).tolist() == [2, 1, 2]
    same = np.ones((3, 2))
    assert retrieval_scores(ranks(same, same, ["a", "b", "c"], block=2)) == {
        "recall@1": 0.0,
        "mrr": pytest.approx(100 / 3),
    }


def test_evaluate_compares_cosines_with_numbers_and_texts_with_their_counterparts(folders, tmp_path):
    folder, own = str(folders("bert")), load(folders("bert"), "cpu")
    numbers, out = [5.0, 1.0, 3.0, 2.0, 4.0, 0.0], tmp_path / "scores.json"
    table, one, other = (tmp_path / name for name in ("sts.tsv", "one", "other"))
    pairs = list(zip(TEXTS[:-1], reversed(TEXTS[:-1]), numbers, strict=True))
    table.write_text("".join(f"{a}\t{b}\t{number}\n" for a, b, number in pairs), "utf-8")
    assert (
        main(["evaluate", folder, "--tsv", str(table), "--json", str(out), "--samples", "10", "--device", "cpu"]) == 0
    )
    cosines = own.similarity([pair[0] for pair in pairs], [pair[1] for pair in pairs])
    found = json.loads(out.read_text())["scores"]
    assert found["pearson"]["value"] == pytest.approx(100 * np.corrcoef(cosines, numbers)[0, 1])
    one.write_text("\n".join(TEXTS[:4]), "utf-8")
    other.write_text("\n".join(TEXTS[1:5]), "utf-8")
    words = ["evaluate", folder, "--source", str(one), "--reference", str(other), "--against", folder]
    assert main([*words, "--json", str(out), "--samples", "10", "--device", "cpu"]) == 0
    found = json.loads(out.read_text())
    expected = retrieval_scores(ranks(own.embed(TEXTS[:4]), own.embed(TEXTS[1:5]), TEXTS[1:5]))
    assert {name: own["value"] for name, own in found["scores"].items()} == pytest.approx(expected)
    assert found["differences"]["mrr"]["value"] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "is an embedding model: give pairs of texts with a score each"),
        (["--tsv", "{t}", "--columns", "1", "2"], "--columns has 2; three are needed: two texts and a number"),
        (["--tsv", "{t}"], "line 1: .* a line must have two texts and a number"),
        (["--source", "{t}", "--reference", "{u}"], "has 1 lines and .* 2: they must correspond line by line"),
    ],
)
def test_what_evaluate_cannot_compare_is_said(folders, tmp_path, capsys, words, said):
    (tmp_path / "t").write_text("one\ttwo\tthree\n", "utf-8")
    (tmp_path / "u").write_text("one\ntwo\n", "utf-8")
    named = [word.format(t=tmp_path / "t", u=tmp_path / "u") for word in words]
    assert main(["evaluate", str(folders("bert")), *named, "--device", "cpu"]) == 1
    assert re.search(said, capsys.readouterr().err.replace("\n", " "))
