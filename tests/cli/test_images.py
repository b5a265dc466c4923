"""Image models from the command line: trained further, classes, vectors, scores and pictures."""

import json
import re

import numpy as np
import pytest
import torch
from PIL import Image

import heed
from heed.cli.main import main
from heed.evaluation.calibration import expected_calibration_error, label_ranks, rank_accuracy, reliability
from heed.kernels import int8
from heed.products import text_batches
from heed.products.image_classifier import ImageClassifier
from tests.integers import product_of_integers

TRAIN = [
    "--set", "model.name=vit", "--set", "model.patch=4", "--set", "model.dim=16", "--set", "model.heads=2",
    "--set", "model.hidden=24", "--set", "model.layers=1", "--set", "model.pooling=mean",
]  # fmt: skip
SHORT = [
    "--set", "training.steps=30", "--set", "training.valid_every=30", "--set", "training.batch_tokens=64",
    "--set", "training.rate=0.01", "--set", "training.warmup=3", "--set", "training.schedule=constant",
    "--set", "training.threads=1", "--set", "training.device=cpu", "--quiet",
]  # fmt: skip


def stripes(folder, count, kinds=("across", "down")):
    random = np.random.default_rng(count)
    for number in range(count):
        pixels = random.integers(0, 100, (8, 8, 3)).astype(np.uint8)
        (pixels[::2] if number % 2 else pixels[:, ::2])[:] += 150
        path = folder / kinds[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A classifier of stripes, and its images."""
    root = tmp_path_factory.mktemp("images")
    images = stripes(root / "train", 60)
    arguments = ["--set", f"data.images={images}", "--set", "data.size=8", "--set", "data.holdout=6"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEED_CACHE", str(root / "cache"))
        assert main(["train", *TRAIN, *SHORT, *arguments, "--out", str(root / "run")]) == 0
    return root / "run", stripes(root / "test", 12)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def able(monkeypatch):
    """As on a CPU that multiplies 8-bit integers."""
    if int8.unavailable():
        product_of_integers(monkeypatch)
    monkeypatch.setattr(int8, "unavailable", lambda: None)
    copies = []
    whole = int8.int8_copy
    monkeypatch.setattr(int8, "int8_copy", lambda model: copies.append(model) or whole(model))
    return copies


@pytest.mark.parametrize(
    ("given", "count"),
    [
        ([], 1),
        (["--engine", "int8"], 1),
        (["--engine", "torch"], 0),
        (["--precision", "float32"], 0),
        (["--precision", "float32", "--engine", "int8"], 1),
    ],
    ids=str,
)
def test_classes_are_quantized_unless_another_engine_or_a_precision_is_given(trained, able, capsys, given, count):
    run, test = trained
    assert main(["classify", str(run), str(test), "--top", "1", *given]) == 0
    assert len(able) == count and len(capsys.readouterr().out.splitlines()) == 12


def test_scores_are_those_of_the_model_itself(trained, able):
    run, test = trained
    assert main(["evaluate", str(run), "--images", str(test)]) == 0 and not able
    assert main(["evaluate", str(run), "--images", str(test), "--engine", "auto"]) == 0 and len(able) == 1


@pytest.mark.parametrize(
    ("given", "asked", "dtype"),
    [
        ([], None, torch.float32),
        (["--engine", "auto"], "auto", torch.float32),  # on a GPU, bfloat16
        (["--precision", "bfloat16"], "bfloat16", torch.bfloat16),
        (["--precision", "bfloat16", "--engine", "auto"], "bfloat16", torch.bfloat16),
        (["--precision", "float32", "--engine", "auto"], "float32", torch.float32),
    ],
    ids=str,
)
def test_scores_are_in_the_precision_that_is_given_or_as_classes(trained, monkeypatch, able, given, asked, dtype):
    run, test = trained
    names, dtypes = [], []
    plain, probabilities = text_batches.in_precision, ImageClassifier.probabilities
    monkeypatch.setattr(text_batches, "in_precision", lambda model, name: names.append(name) or plain(model, name))
    monkeypatch.setattr(
        ImageClassifier,
        "probabilities",
        lambda own, images: dtypes.append(own.model.head.weight.dtype) or probabilities(own, images),
    )
    words = ["--against", str(run), "--samples", "10", *given]
    assert main(["evaluate", str(run), "--images", str(test), *words]) == 0
    assert dtypes == [dtype] * 2 and names == ([asked] * 2 if asked else [])
    assert len(able) == 2 * (asked == "auto"), "with a precision nothing is quantized"


def test_a_cpu_that_cannot_is_told_so(trained, monkeypatch, capsys):
    run, test = trained
    monkeypatch.setattr(int8, "unavailable", lambda: "this CPU is too old")
    assert main(["classify", str(run), str(test), "--engine", "int8"]) == 1
    assert "engine is 'int8', but this CPU is too old: use torch" in " ".join(capsys.readouterr().err.split())


def test_classes_come_with_probabilities_the_likeliest_first(trained, capsys):
    run, test = trained
    one = test / "across" / "0.png"
    assert main(["classify", str(run), str(one), str(test / "down"), "--top", "2"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == 7 and rows[0][0] == str(one) and len(rows[0]) == 5
    assert all(float(row[2]) >= float(row[4]) for row in rows)
    assert [row[1] for row in rows] == ["across"] + ["down"] * 6
    found = heed.load(run, "cpu").classify([one])[0]
    assert found.label == "across" and f"{found.probabilities['across']:.4f}" == rows[0][2]
    assert heed.load(run, "cpu").classify([one.read_bytes()])[0].probabilities == found.probabilities


def test_other_files_in_a_folder_are_counted(trained, tmp_path, capsys):
    run, _ = trained
    images = stripes(tmp_path / "data", 4)
    (images / "down" / "photo.heic").write_bytes(b"")
    for words in (["classify"], ["embed", "--out", str(tmp_path / "v.npy")]):
        assert main([words[0], str(run), str(images), *words[1:]]) == 0
        said = capsys.readouterr().err
        assert (
            f"{images}: 1 files that do not look like images, by their endings, are skipped: down/photo.heic." in said
        )


def test_an_image_that_cannot_be_read_is_named_and_the_others_are_classified(trained, tmp_path, capsys):
    run, test = trained
    (tmp_path / "bad.jpg").write_bytes(b"\xff\xd8\xff")
    assert main(["classify", str(run), str(tmp_path / "bad.jpg"), str(test / "down" / "1.png")]) == 1
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 1 and "bad.jpg is " in said.err
    assert "1 of 2 images could not be read" in said.err


def test_the_largest_image_that_is_decoded_can_be_chosen(trained, tmp_path, capsys):
    run, test = trained
    one = str(test / "down" / "1.png")
    assert main(["classify", str(run), one, "--max-pixels", "63"]) == 1
    said = capsys.readouterr().err.replace("\n", " ")
    assert "has 8 × 8 pixels, and at most 63 are decoded: make it smaller, or raise --max-pixels" in said
    assert main(["classify", str(run), one, "--max-pixels", "64"]) == 0
    assert main(["embed", str(run), one, "--max-pixels", "63", "--out", str(tmp_path / "v.npy")]) == 1
    capsys.readouterr()
    assert main(["evaluate", str(run), "--images", str(test), "--max-pixels", "63"]) == 1
    assert "at most 63 are decoded: make it smaller, or raise max_pixels" in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["classify", "{run}", "none.png"], "none.png: no such file or folder"),
        (["classify", "{run}"], "give images, or folders of images"),
        (["classify", "{run}", "{tmp}"], "contains no images"),
        (["classify", "{run}", "{test}", "--top", "0"], "--top is 0; it must be at least 1"),
        (["classify", "{run}", "--input", "a.txt"], "--input is for texts, and"),
        (["classify", "{run}", "{test}", "--engine", "fp8"], "engine is 'fp8', but it only runs on a GPU"),
        (["evaluate", "{run}"], "is an image classifier: give images with --images"),
        (["embed", "{run}", "{test}", "--pool", "cls", "--out", "v.npy"], "--pool is for text models"),
        (["translate", "{run}", "text"], "is an image classifier: it cannot translate; use heed classify or evaluate"),
        (["evaluate", "{run}", "--images", "{other}"], "is of class 'left', which is not among the training classes"),
    ],
)
def test_what_is_wrong_is_said(trained, words, said, tmp_path, capsys):
    run, test = trained
    other = stripes(tmp_path / "other" / "data", 4, ("left", "right"))
    places = {"run": run, "test": test, "tmp": tmp_path / "cache" / "..", "other": other}
    if said == "contains no images":
        (tmp_path / "empty").mkdir()
        places["tmp"] = tmp_path / "empty"
    assert main([word.format(**places) for word in words]) == 1
    assert said in capsys.readouterr().err


def test_vectors_are_written_and_searched(trained, tmp_path, capsys):
    run, test = trained
    assert main(["embed", str(run), str(test), "--normalize", "--out", str(tmp_path / "v.npy")]) == 0
    vectors = np.load(tmp_path / "v.npy")
    assert vectors.shape == (12, 16) and np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert "v.txt" in capsys.readouterr().err
    one = test / "across" / "2.png"
    assert main(["embed", str(run), str(one), "--search", str(test), "--top", "3"]) == 0
    row = capsys.readouterr().out.strip().split("\t")
    assert row[:3] == [str(one), str(one), "1.0000"] and len(row) == 7


def test_the_rows_of_vectors_have_paths_also_after_an_image_that_cannot_be_read(trained, tmp_path):
    run, test = trained
    (tmp_path / "0.png").write_bytes(b"no image")
    given = [str(tmp_path), str(test / "down"), str(test / "across" / "2.png")]
    assert main(["embed", str(run), *given, "--out", str(tmp_path / "v.npy")]) == 1
    vectors, names = np.load(tmp_path / "v.npy"), (tmp_path / "v.txt").read_text("utf-8").splitlines()
    assert len(vectors) == len(names) == 7 and names[-1] == given[-1]
    for name, own in zip(names, vectors, strict=True):
        assert main(["embed", str(run), name, "--out", str(tmp_path / "one.npy")]) == 0
        assert np.allclose(np.load(tmp_path / "one.npy"), own, atol=1e-5)


def test_scores_have_intervals_and_pictures(trained, tmp_path, capsys):
    run, test = trained
    (test / "down" / "bad.png").write_bytes(b"no image")
    folder, facts = tmp_path / "report", tmp_path / "scores.json"
    arguments = ["--images", str(test), "--pictures", str(folder), "--json", str(facts), "--samples", "20"]
    assert main(["evaluate", str(run), *arguments]) == 0
    said = capsys.readouterr().out
    assert "accuracy" in said and "expected calibration error" in said and "down/bad.png is not an image" in said
    own = json.loads(facts.read_text("utf-8"))
    assert own["scores"]["accuracy"]["value"] == 100 and own["texts"] == 12 and own["broken"][0][0] == "down/bad.png"
    for name in ("confusion.png", "calibration.png", "mistakes.png"):
        with Image.open(folder / name) as image:
            assert image.width > 300
    (test / "down" / "bad.png").unlink()
    assert (folder / "mistakes.tsv").read_text("utf-8") == "image\tclass\tpredicted\tprobability\n"  # all are right


def test_mistakes_are_listed_with_their_files(trained, tmp_path):
    run, test = trained
    wrong = tmp_path / "wrong"
    for kind, other in (("across", "down"), ("down", "across")):
        (wrong / other).mkdir(parents=True)
        for path in (test / kind).glob("*.png"):
            (wrong / other / path.name).write_bytes(path.read_bytes())
    arguments = ["--images", str(wrong), "--pictures", str(tmp_path / "report"), "--samples", "20"]
    assert main(["evaluate", str(run), *arguments]) == 0
    rows = [line.split("\t") for line in (tmp_path / "report" / "mistakes.tsv").read_text("utf-8").splitlines()[1:]]
    assert {row[0] for row in rows} == {path.relative_to(wrong).as_posix() for path in wrong.rglob("*.png")}
    assert all(row[0].startswith(row[1]) and row[1] != row[2] for row in rows)
    sure = [float(row[3]) for row in rows]
    assert sure == sorted(sure, reverse=True)


def test_a_model_is_trained_further_at_another_size_with_other_classes(trained, tmp_path, capsys):
    run, _ = trained
    images = stripes(tmp_path / "data", 40, ("a", "b"))
    arguments = ["--from", str(run), "--set", "task.name=image-classification", "--set", f"data.images={images}"]
    assert main(["train", *arguments, *SHORT, "--set", "data.size=12", "--out", str(tmp_path / "tuned")]) == 0
    new, old = heed.load(tmp_path / "tuned", "cpu"), heed.load(run, "cpu")
    assert new.labels == ["a", "b"] and new.model.config.size == 12 and len(new.model.positions) == 9
    again = tmp_path / "zero"  # a step that changes nothing
    zero = ["--set", "training.steps=1", "--set", "training.rate=0.0", "--set", "training.valid_every=1"]
    assert main(["train", *arguments, *SHORT, *zero, "--set", "data.size=8", "--out", str(again)]) == 0
    kept = heed.load(again, "cpu").model.state_dict()
    same = {name for name, weight in old.model.state_dict().items() if torch.equal(weight, kept[name])}
    assert {"head.weight", "head.bias"} == kept.keys() - same  # as many classes, but others
    longer = ["--set", "data.size=12", "--set", "training.steps=40", "--out", str(tmp_path / "tuned"), "--resume"]
    assert main(["train", *arguments, *SHORT, *longer]) == 0  # it now starts from itself, whose classes are the same
    assert new.images.mean == old.images.mean  # the body goes on reading what it has learned to read
    assert main(["average", str(run), str(run), "--out", str(tmp_path / "mean")]) == 0
    assert main(["average", str(run), str(tmp_path / "tuned"), "--out", str(tmp_path / "mixed")]) == 1
    assert "have another size or colours of images: their average would be meaningless" in capsys.readouterr().err


def test_a_head_is_kept_for_the_same_classes_in_whatever_order(trained, tmp_path):
    run, _ = trained
    images = stripes(tmp_path / "data", 40)
    arguments = ["--from", str(run), "--set", "task.name=image-classification", "--set", f"data.images={images}"]
    zero = ["--set", "training.steps=1", "--set", "training.rate=0.0", "--set", "training.valid_every=1"]
    assert main(["train", *arguments, *SHORT, *zero, "--out", str(tmp_path / "same")]) == 0
    one, other = (heed.load(folder, "cpu").model.state_dict() for folder in (run, tmp_path / "same"))
    assert all(torch.equal(weight, other[name]) for name, weight in one.items())


def numbered(folder, labels, size=8):
    """An IDX file of grey images, each with a stripe at the place of its class."""
    folder.mkdir()
    random, count = np.random.default_rng(0), 72
    own = np.array([labels[i % len(labels)] for i in range(count)], np.uint8)
    pixels = random.integers(0, 60, (count, size, size)).astype(np.uint8)
    for i in range(count):
        place = i % len(labels)
        pixels[i, :, place] += 190
    for name, array in (("train-images-idx3-ubyte", pixels), ("train-labels-idx1-ubyte", own)):
        header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
        (folder / name).write_bytes(header + array.tobytes())
    return folder / "train-images-idx3-ubyte"


@pytest.mark.parametrize(
    ("labels", "classes", "more"),
    [
        (range(12), [], []),  # as texts, 10 is before 2
        ((1, 2, 3), [], []),
        ((0, 1), ["down", "across"], ["--from", "{run}"]),  # the head that is kept has another order
    ],
)
def test_a_numbered_label_is_the_same_class_in_training_and_in_evaluation(trained, tmp_path, labels, classes, more):
    images, out = numbered(tmp_path / "data", [*labels], 8 if more else 12), tmp_path / "run"
    start = [word.format(run=trained[0]) for word in more] or [*TRAIN, "--set", "training.steps=200"]
    names = ["--set", f"data.classes={json.dumps(classes)}"] if classes else []
    data = [
        "--set",
        "task.name=image-classification",
        "--set",
        f"data.images={images}",
        "--set",
        f"data.valid_images={images}",
    ]
    assert main(["train", *SHORT, *start, *data, *names, "--out", str(out)]) == 0
    assert main(["evaluate", str(out), "--images", str(images), "--json", str(tmp_path / "scores.json")]) == 0
    found = json.loads((tmp_path / "scores.json").read_text("utf-8"))["scores"]["accuracy"]["value"]
    log = [json.loads(line) for line in (out / "log.jsonl").read_text("utf-8").splitlines()]
    last = [line["accuracy"] for line in log if "accuracy" in line][-1]
    assert found == pytest.approx(last) and last > 60
    if not classes:
        assert heed.load(out, "cpu").labels == [str(label) for label in labels]


# drawing

DRAW = [
    "--set", "model.name=image-transformer", "--set", "model.dim=16", "--set", "model.heads=2",
    "--set", "model.hidden=24", "--set", "model.layers=1", "--set", "training.steps=2", "--set", "training.valid_every=2",
]  # fmt: skip


@pytest.fixture(scope="module")
def drawing(tmp_path_factory):
    """A folder of images without classes, a model that draws by class, and one that enlarges."""
    root = tmp_path_factory.mktemp("drawing")
    images = stripes(root / "train", 30)
    flat = root / "flat"
    flat.mkdir()
    for path in images.rglob("*.png"):
        path.rename(flat / path.name) if path.parent.name == "down" else None
    stripes(root / "train", 30)
    common = [*SHORT[4:], *DRAW, "--set", "data.size=8", "--set", "data.holdout=1"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEED_CACHE", str(root / "cache"))
        classes = ["--set", f"data.images={images}", "--set", "task.by_class=true", "--out", str(root / "classes")]
        enlarge = ["--set", f"data.images={flat}", "--set", "task.enlarge=2", "--out", str(root / "enlarge")]
        for more in (classes, enlarge):
            assert main(["train", *common, *more]) == 0
    return root


def tiles(path, size=8):
    """The images of a sheet, in order."""
    with Image.open(path) as image:
        pixels, scale = np.asarray(image.convert("RGB")), 96 // size
    if pixels.shape[0] == size:
        return pixels[None]
    step = size * scale + 2
    rows, columns = (side // step for side in pixels.shape[:2])
    each = [
        pixels[2 + r * step :, 2 + c * step :][: size * scale : scale, : size * scale : scale]
        for r in range(rows)
        for c in range(columns)
    ]
    return np.stack(each)


def test_images_are_drawn_by_class_and_the_same_seed_draws_the_same(drawing, tmp_path, capsys):
    run = str(drawing / "classes")
    for name, more in (("a", []), ("b", []), ("c", ["--seed", "2"])):
        out = str(tmp_path / f"{name}.png")
        assert main(["generate", run, "--count", "4", "--class", "down", "--class", "across", "--out", out, *more]) == 0
    one, two, other = (tiles(tmp_path / f"{name}.png") for name in "abc")
    assert one.shape == (4, 8, 8, 3) and (one == two).all() and (one != other).any()
    assert main(["evaluate", run, "--images", str(drawing / "train"), "--samples", "10"]) == 0
    assert re.search(r"bits/dim +\d+\.\d{3}  \d+\.\d{3} to ", capsys.readouterr().out)
    assert main(["evaluate", run, "--images", str(drawing / "train"), "--pictures", str(tmp_path / "p")]) == 1
    assert "--pictures shows the mistakes of a classifier" in capsys.readouterr().err
    assert main(["evaluate", run, "--images", str(drawing / "train"), "--precision", "bfloat16"]) == 1
    assert "--precision is for image classifiers, and" in capsys.readouterr().err


def test_one_image_is_written_as_it_is_and_many_to_a_folder(drawing, tmp_path, capsys, monkeypatch):
    run, words = str(drawing / "classes"), ["--seed", "0", "--class", "down", "--class", "across"]
    own = heed.load(run, "cpu")
    expected = own.generate(11, seed=0, labels=["down", "across"])
    monkeypatch.setattr("heed.products.image_generator.CACHE_BYTES", {"cpu": 4 * 8 * 1 * 64 * 16})  # for four images
    assert main(["generate", run, *words, "--count", "11", "--out", str(tmp_path / "many")]) == 0
    assert "11 images in" in capsys.readouterr().err
    paths = sorted((tmp_path / "many").iterdir())
    assert [path.name for path in paths] == [f"{number:02}.png" for number in range(1, 12)]
    assert (np.stack([np.asarray(Image.open(path)) for path in paths]) == expected).all()
    assert main(["generate", run, *words, "--count", "2", "--out", f"{tmp_path}/of.new/"]) == 0
    assert [path.name for path in sorted((tmp_path / "of.new").iterdir())] == ["1.png", "2.png"]
    (tmp_path / "file").write_text("", "utf-8")
    assert main(["generate", run, "--out", str(tmp_path / "file")]) == 1
    assert main(["generate", run, *words, "--out", str(tmp_path / "one.png")]) == 0
    assert (np.asarray(Image.open(tmp_path / "one.png")) == expected[0]).all()
    assert (own.generate(1, seed=1) != own.generate(1, seed=0)).any()
    assert [len(part) for part in own.parts(11)] == [4, 4, 3]


def test_broken_images_are_named_in_training_and_evaluation_of_a_model_that_draws(drawing, tmp_path, capsys):
    images, facts = stripes(tmp_path / "data", 4), tmp_path / "scores.json"
    (images / "down" / "bad.png").write_bytes(b"no image")
    data = ["--set", f"data.images={drawing / 'train'}", "--set", f"data.valid_images={images}", "--set", "data.size=8"]
    assert main(["train", *SHORT[4:-1], *DRAW, *data, "--out", str(tmp_path / "run")]) == 0
    said = capsys.readouterr()
    words = "1 images cannot be read and are skipped: down/bad.png is not an image"
    assert f"To validate on: {words}" in " ".join((said.out + said.err).split())
    more = ["--samples", "10", "--json", str(facts)]
    assert main(["evaluate", str(drawing / "classes"), "--images", str(images), *more]) == 0
    assert words in capsys.readouterr().out
    assert json.loads(facts.read_text("utf-8"))["broken"][0][0] == "down/bad.png"


def test_half_an_image_is_completed_and_a_small_one_enlarged(drawing, tmp_path):
    half = drawing / "train" / "down" / "1.png"
    out = tmp_path / "out.png"
    assert main(["generate", str(drawing / "classes"), "--complete", str(half), "--count", "3", "--out", str(out)]) == 0
    with Image.open(half) as image:
        kept = np.asarray(image)[:4]
    found = tiles(out)
    assert all((own[:4] == kept).all() for own in found[:3]) and (found[0][4:] != found[1][4:]).any()
    assert main(["generate", str(drawing / "enlarge"), "--enlarge", str(half), "--out", str(out)]) == 0
    assert tiles(out).shape == (1, 8, 8, 3)


@pytest.mark.parametrize(
    ("shape", "keep", "rows"), [((8, 4), [], 4), ((8, 6), [], 6), ((8, 6), ["0.25"], 2), ((16, 10), [], 5)]
)
def test_a_picture_wider_than_high_is_the_upper_part(drawing, tmp_path, capsys, shape, keep, rows):
    pixels = np.random.default_rng(1).integers(0, 256, (shape[1], shape[0], 3)).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "half.png")
    asked = ["--complete", str(tmp_path / "half.png"), *(["--keep", *keep] if keep else [])]
    assert main(["generate", str(drawing / "classes"), *asked, "--count", "2", "--out", str(tmp_path / "a.png")]) == 0
    found, said = tiles(tmp_path / "a.png"), capsys.readouterr().err.replace("\n", " ")
    expected = Image.fromarray(pixels).resize((8, shape[1] * 8 // shape[0]), Image.Resampling.BILINEAR)
    assert all((own[:rows] == np.asarray(expected)[:rows]).all() for own in found[:2])
    assert (found[0, rows:] != found[1, rows:]).any()
    assert f"{rows} of {expected.height} rows of the picture are kept" in said
    assert ("resized from 16 × 10 to 8 × 5 pixels" in said) == (shape[0] == 16)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["classes", "--out", "a.txt"],
            "images are written to a file or a folder: give --out samples.png or --out samples/",
        ),
        (
            ["classes", "--out", "a.png", "--class", "up"],
            "'up' is not a class of this model; its classes are across, down",
        ),
        (["classes", "--out", "a.png", "--enlarge", "x.png"], "the model does not enlarge images"),
        (["classes", "--out", "a.png", "--prompt", "x"], "--prompt is for texts, and"),
        (["classes", "--out", "a.png", "--greedy"], "--greedy is for texts, and"),
        (["classes", "--out", "a.png", "--length", "5"], "--length is for texts, and"),
        (["classes", "--out", "a.png", "--stop", "x"], "--stop is for texts, and"),
        (["classes", "--out", "a.png", "--typical", "0.5"], "--typical is for texts, and"),
        (
            ["classes", "--out", "a.png", "--keep", "0.5"],
            "--keep is the share of the image of --complete: add --complete",
        ),
        (["classes", "--out", "a.png", "--count", "0"], "0 images requested; it must be at least 1"),
        (["classes", "--out", "a.png", "--seed", "-1"], "seed is -1; it must be 0 or larger"),
        (["classes", "--out", "a.png", "--complete", "none.png"], "none.png does not exist"),
        (["classes", "--out", "a.png", "--temperature", "0"], "temperature is 0.0; it must be above 0"),
        (["enlarge", "--out", "a.png"], "the model enlarges images: set enlarge to a small image"),
        (["enlarge", "--out", "a.png", "--class", "up"], "the model has no classes: leave them out"),
    ],
)
def test_what_is_wrong_with_drawing_is_said(drawing, words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["generate", str(drawing / words[0]), *words[1:]]) == 1
    assert said in capsys.readouterr().err


# scores


def test_ranks_and_calibration_by_hand():
    found = np.array([[0.5, 0.3, 0.2], [0.4, 0.4, 0.2], [0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])
    labels = np.array([0, 1, 0, 2])
    assert label_ranks(found, labels).tolist() == [0, 1, 2, 2]
    assert rank_accuracy(3)(label_ranks(found, labels), labels) == {"accuracy": 25.0}
    assert set(rank_accuracy(6)(np.array([0, 4, 5]), np.zeros(3))) == {"accuracy", "top5"}
    own = reliability(found, labels, 10)
    assert own.counts.tolist() == [0, 0, 0, 1, 1, 1, 1, 0, 0, 0]
    expected = (abs(0.5 - 1) + 0.4 + 0.7 + 0.6) / 4
    assert expected_calibration_error(found, labels, 10) == pytest.approx(expected)
