"""Image files: formats, what is wrong with them, prepared sets, and batches."""

import gzip
import json
import os
import tracemalloc
from contextlib import suppress
from threading import Barrier

import numpy as np
import pytest
import torch
from PIL import Image

from heed.data.images import prepare as images
from heed.data.images import sources
from heed.data.images.batches import ImageBatches
from heed.data.images.config import ImagesConfig
from heed.data.images.prepare import Form
from heed.data.images.sources import image_files, open_source
from heed.vocabularies.images import Images, UnreadableImage, _eight_bits, decode, fitted

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))


def pixels(count, size=8, channels=3, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, size, size, channels), dtype=np.uint8)


def image(array):
    return Image.fromarray(array[..., 0] if array.shape[-1] == 1 else array)


def idx(path, array):
    data = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def prepared(names, **settings):
    config = ImagesConfig([str(name) for name in names], **settings)
    form = Form(
        config.size, images.channels_of(config.images, config), config.fit or "crop", config.resample or "bilinear"
    )
    return images.prepare(config.images, config, form, None, lambda what, done: None)[1]


@pytest.fixture
def folders(tmp_path):
    """Six images of two classes."""
    own = pixels(6)
    for number, one in enumerate(own):
        path = tmp_path / "data" / ("cat" if number < 3 else "dog") / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        image(one).save(path)
    return tmp_path / "data", own


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_a_pipe_is_no_image_and_nobody_waits_for_its_writer(tmp_path, folders):
    pipe = tmp_path / "pipe.png"
    os.mkfifo(pipe)
    with pytest.raises(UnreadableImage, match=r"^is a pipe or a device: give a file$"):
        decode(pipe)
    with pytest.raises(UnreadableImage, match=r"^is a folder: give a file$"):
        decode(tmp_path)
    table = tmp_path / "images.csv"
    table.write_text("data/cat/0.png,cat\npipe.png,cat\ndata/dog/3.png,dog\n", "utf-8")
    found = prepared([table], broken="leave out", size=8)
    assert (len(found), found.facts["broken"]) == (2, [["pipe.png", "is a pipe or a device: give a file"]])
    os.mkfifo(tmp_path / "data_batch_1.png")
    (tmp_path / "train_lables.json").write_text("[0]", "utf-8")
    with pytest.raises(ValueError, match=r"data_batch_1\.png is a pipe or a device"):
        open_source(str(tmp_path / "train_lables.json"))


# the same images in every format


def test_folders_and_tables_are_the_same_set(folders, tmp_path):
    root, own = folders
    rows = [f"{path.relative_to(root).as_posix()},{path.parent.name}" for path in sorted(root.rglob("*.png"))]
    (root / "list.csv").write_text("\n".join(rows) + "\n", "utf-8")
    (root / "named.tsv").write_text("label\tpath\n" + "\n".join("\t".join(r.split(",")[::-1]) for r in rows), "utf-8")
    sets = [prepared([root / "list.csv"]), prepared([root / "named.tsv"], columns=["path", "label"]), prepared([root])]
    for found in sets:
        assert found.classes == ["cat", "dog"] and found.labels.tolist() == [0, 0, 0, 1, 1, 1]
        np.testing.assert_array_equal(found.pixels, own)
    assert sets[2].facts["others"] == 2 and "2 files that do not look like images" in sets[2].broken_summary()[0]


def test_numbers_in_tables_are_looked_up_in_the_classes_unless_they_are_names(folders):
    root, _ = folders
    rows = [(path.relative_to(root).as_posix(), path.parent.name == "dog") for path in sorted(root.rglob("*.png"))]
    (root / "list.csv").write_text("".join(f"{path},{int(dog)}\n" for path, dog in rows), "utf-8")
    found = prepared([root / "list.csv"], classes=["dog", "cat"])
    assert found.classes == ["dog", "cat"] and found.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert prepared([root / "list.csv"], classes=["1", "0"]).labels.tolist() == [1, 1, 1, 0, 0, 0]
    assert prepared([root / "list.csv"]).classes == ["0", "1"]
    (root / "list.csv").write_text(f"{rows[0][0]},{'9' * 5000}\n{rows[1][0]},2\n", "utf-8")
    with pytest.raises(ValueError, match=r"0\.png has label 9+, but data\.classes has 2 names, counted from 0"):
        prepared([root / "list.csv"], classes=["dog", "cat"])


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_idx_files_are_read_with_the_labels_beside_them(tmp_path, ending):
    own, labels = pixels(5, channels=1), np.array([3, 0, 1, 1, 2], np.uint8)
    idx(tmp_path / f"train-images-idx3-ubyte{ending}", own[..., 0])
    idx(tmp_path / f"train-labels-idx1-ubyte{ending}", labels)
    found = prepared([tmp_path / f"train-images-idx3-ubyte{ending}"], classes=["a", "b", "c", "d"])
    np.testing.assert_array_equal(found.pixels, own)
    assert found.labels.tolist() == labels.tolist() and found.classes == ["a", "b", "c", "d"]
    assert found.facts["channels"] == 1 and found.names()[4] == f"train-images-idx3-ubyte{ending}:4"


def test_sheets_hold_an_image_in_each_row(tmp_path):
    own = pixels(4, 32)
    for number in range(2):
        sheet = own[2 * number :][:2].reshape(2, 1024, 3)
        Image.fromarray(sheet).save(tmp_path / f"data_batch_{number + 1}.png")
    (tmp_path / "train_lables.json").write_text("[1, 0, 1, 1]", "utf-8")
    found = prepared([tmp_path / "train_lables.json"])
    np.testing.assert_array_equal(found.pixels, own)
    assert found.labels.tolist() == [1, 0, 1, 1] and found.classes == ["0", "1"]


def test_a_set_is_prepared_once_and_again_if_it_is_damaged(folders):
    root, own = folders
    first = prepared([root])
    place = first.folder / images.PIXELS
    stamp = place.stat().st_mtime_ns
    assert prepared([root]).folder == first.folder and place.stat().st_mtime_ns == stamp
    place.write_bytes(bytes(place.stat().st_size))
    np.testing.assert_array_equal(prepared([root]).pixels, own)
    image(own[1]).save(root / "cat" / "0.png")
    assert prepared([root]).folder != first.folder


def test_statistics_are_those_of_all_pixels(folders):
    root, own = folders
    mean, std = prepared([root]).statistics()
    np.testing.assert_allclose(mean, (own / 255).mean(axis=(0, 1, 2)))
    np.testing.assert_allclose(std, (own / 255).std(axis=(0, 1, 2)))


# what files may be


def test_images_of_every_kind_become_bytes_in_colour(tmp_path):
    grey = np.arange(64, dtype=np.uint16).reshape(8, 8) * 1040
    Image.fromarray(grey).save(tmp_path / "sixteen.png")
    np.testing.assert_array_equal(np.asarray(decode(tmp_path / "sixteen.png")), np.round(grey / 257))
    own = image(pixels(1)[0])
    own.convert("CMYK").save(tmp_path / "ink.jpg", quality=95)
    assert decode(tmp_path / "ink.jpg").mode == "RGB"
    clear = Image.new("RGBA", (4, 4), (0, 0, 0, 0))
    clear.save(tmp_path / "clear.png")
    assert decode(tmp_path / "clear.png").getpixel((0, 0)) == (255, 255, 255)
    own.quantize(16).save(tmp_path / "palette.gif")
    own.convert("1").save(tmp_path / "bits.png")
    assert decode(tmp_path / "palette.gif").mode == "RGB" and decode(tmp_path / "bits.png").mode == "L"


def test_a_set_is_grey_if_all_its_readable_images_are(tmp_path):
    for number, mode in enumerate(("L", "1", "LA", "I;16")):
        path = tmp_path / "data" / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new(mode, (8, 8)).save(path)
    (tmp_path / "data" / "a" / "bad.png").write_bytes(b"no image")
    table = tmp_path / "data" / "list.csv"
    table.write_text("a/0.png,x\nb/1.png,y\n", "utf-8")
    assert prepared([tmp_path / "data"]).facts["channels"] == prepared([table]).facts["channels"] == 1
    assert prepared([tmp_path / "data"], colours="rgb").facts["channels"] == 3
    Image.new("RGB", (8, 8)).save(tmp_path / "data" / "b" / "red.png")
    assert prepared([tmp_path / "data"]).facts["channels"] == 3
    assert prepared([table]).facts["channels"] == 1


def test_an_image_is_turned_upright_by_its_exif_orientation(tmp_path):
    own, exif = image(pixels(1)[0][:4]), Image.Exif()
    exif[0x0112] = 6
    own.save(tmp_path / "turned.png", exif=exif)
    np.testing.assert_array_equal(np.asarray(decode(tmp_path / "turned.png")), np.rot90(np.asarray(own), -1))


def test_what_cannot_be_read_is_refused_in_words(tmp_path):
    own = image(pixels(1, 64)[0])
    own.save(tmp_path / "cut.jpg")
    (tmp_path / "cut.jpg").write_bytes((tmp_path / "cut.jpg").read_bytes()[:900])
    (tmp_path / "text.png").write_text("no image", "utf-8")
    Image.new("L", (2000, 2000)).save(tmp_path / "large.png")
    Image.new("1", (15_000, 15_000)).save(tmp_path / "bomb.png")  # Pillow itself refuses it
    Image.new("F", (2, 2)).save(tmp_path / "float.tiff")
    words = {
        "cut.jpg": r"is damaged \(.*truncated",
        "text.png": "is not an image that Pillow can read",
        "large.png": r"has 2,000 × 2,000 pixels, and at most 1,000,000 are decoded",
        "bomb.png": "has more pixels than Pillow decodes",
        "float.tiff": "floating-point values: save it with 8 or 16 bits",
        "none.png": "does not exist",
    }
    for name, said in words.items():
        with pytest.raises(UnreadableImage, match=said):
            decode(tmp_path / name, 1_000_000)


def test_a_damaged_header_cannot_claim_memory(tmp_path):
    image(pixels(1, 16)[0]).save(tmp_path / "a.png")
    data = bytearray((tmp_path / "a.png").read_bytes())
    data[33:35] = b"\xff\xff"  # the length of the image data: 4 GB
    (tmp_path / "a.png").write_bytes(data)
    tracemalloc.start()
    try:
        with suppress(UnreadableImage):  # Pillow may read it all the same
            decode(tmp_path / "a.png")
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()
    (tmp_path / "large.png").write_bytes(bytes(3_000_000))
    with pytest.raises(
        UnreadableImage, match="has 3,000,000 bytes, more than its pixels need, and at most 1,000 are decoded"
    ):
        decode(tmp_path / "large.png", 1_000)


def test_broken_images_are_left_out_counted_and_named(folders):
    root, _ = folders
    (root / "dog" / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    found = prepared([root])
    assert len(found) == 6 and found.facts["broken"][0][0] == "dog/bad.png"
    assert found.broken_summary()[0].startswith("1 images cannot be read and are skipped: dog/bad.png is ")
    with pytest.raises(ValueError, match=r"^dog/bad\.png is .*; or set data\.broken to 'leave out'$"):
        prepared([root], broken="refuse")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, Form(224, 3, "stretch", "bicubic", 256)),
        ({"size": 448}, Form(448, 3, "stretch", "bicubic", 512)),
        ({"fit": "crop"}, Form(224, 3, "crop", "bicubic")),  # the larger size belongs to another fit
        ({"resample": "box"}, Form(224, 3, "stretch", "box", 256)),
    ],
)
def test_images_are_read_as_the_base_reads_them_unless_the_recipe_says_otherwise(settings, expected):
    from heed.tasks.image_classification import prepared_form

    base = Images(224, 3, (0.5,) * 3, (0.5,) * 3, "stretch", "bicubic", 256)
    assert prepared_form(ImagesConfig(["images"], **settings), base) == expected


def test_images_of_another_size_are_refused_or_fitted(folders):
    root, own = folders
    image(pixels(1, 12)[0]).save(root / "dog" / "wide.png")
    with pytest.raises(ValueError, match=r"dog/wide\.png is 12 × 12 pixels, and the first image 8 × 8: set data\.size"):
        prepared([root])
    found = prepared([root], size=8)
    assert len(found) == 7 and found.pixels.shape[1:] == (8, 8, 3)
    np.testing.assert_array_equal(found.pixels[:6], own)


def test_an_image_is_fitted_by_its_middle_by_all_of_it_or_with_black():
    wide = Image.fromarray(np.repeat(np.arange(8, dtype=np.uint8)[None] * 30, 4, axis=0))
    assert np.asarray(fitted(wide, 4, "crop", "nearest"))[0].tolist() == [60, 90, 120, 150]
    assert np.asarray(fitted(wide, 4, "stretch", "nearest"))[0].tolist() == [30, 90, 150, 210]
    padded = np.asarray(fitted(wide, 8, "pad", "nearest"))
    assert not padded[:2].any() and not padded[-2:].any() and (padded[3] == np.asarray(wide)[0]).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda root: [path.unlink() for path in (root / "dog").iterdir()], "all 3 images are of one class, 'cat'"),
        (lambda root: image(pixels(1)[0]).save(root / "alone.png"), "1 images outside the class folders, such as"),
        (lambda root: [path.rename(root / path.name) for path in root.glob("*/*.png")], "has images, but no subfolders"),
        (lambda root: [path.unlink() for path in root.glob("*/*.png")], "has no images"),
        (lambda root: [path.write_text("x") for path in root.glob("*/*.png")], "no image can be read of 6, for"),
    ],
)  # fmt: skip
def test_a_folder_that_is_not_what_it_should_be_is_refused(folders, make, words):
    root, _ = folders
    make(root)
    with pytest.raises(ValueError, match=words):
        prepared([root])


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("list.csv", "a.png\n", "line 1 has 1 columns; data.columns requires"),
        ("list.csv", "a.png,\n", "line 1 has no label"),
        ("a-images-idx3-ubyte", "xx", "be in a-labels-idx1-ubyte next to it, which does not exist"),
        ("train_lables.json", "[1]", r"the sheets for these labels, data_batch\*\.png, are not next to it"),
        ("list.txt", "", "images can be read from a folder per class"),
        ("none.csv", None, "no such file or folder of images"),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_refused(tmp_path, name, content, words):
    if content is not None:
        (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(ValueError, match=words):
        prepared([tmp_path / name])


def test_images_are_decoded_in_several_threads_and_stay_in_order(tmp_path, monkeypatch):
    """The second image waits for the first: with one thread this would never end."""
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    own, both, read = pixels(12), Barrier(2, timeout=30), sources.decode
    lines = [f"{number}.png,{'ab'[number % 2]}\n" for number in range(12)]
    for number, one in enumerate(own):
        image(one).save(tmp_path / f"{number}.png")
    (tmp_path / "5.png").write_bytes(b"no image")
    (tmp_path / "list.csv").write_text("".join(lines), "utf-8")

    def decode(*given):
        both.wait()
        return read(*given)

    monkeypatch.setattr(sources, "decode", decode)
    found = prepared([tmp_path / "list.csv"], size=8)
    expected = [number for number in range(12) if number != 5]
    assert (found.pixels == own[expected]).all() and found.names() == [f"{number}.png" for number in expected]
    assert [name for name, _ in found.facts["broken"]] == ["5.png"]


def test_idx_files_without_labels_are_enough_without_classes(tmp_path):
    own = pixels(3, channels=1)
    idx(tmp_path / "t-images-idx3-ubyte", own[..., 0])
    config, form = ImagesConfig([str(tmp_path / "t-images-idx3-ubyte")]), Form(None, 1, "crop", "bilinear")
    _, found = images.prepare(config.images, config, form, None, lambda what, done: None, labelled=False)
    assert (found.pixels == own).all() and not found.labels.any()


def test_damaged_idx_files_and_labels_are_refused(tmp_path):
    path, beside = tmp_path / "t-images-idx3-ubyte", tmp_path / "t-labels-idx1-ubyte"
    idx(path, pixels(3, channels=1)[..., 0])
    idx(beside, np.zeros(2, np.uint8))
    with pytest.raises(ValueError, match="has 3 images, but t-labels-idx1-ubyte 2 labels"):
        prepared([path])
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="is truncated or too long: its header states 3 × 8 × 8 bytes"):
        prepared([path])
    path.write_bytes(b"hello, hello, hello")
    with pytest.raises(ValueError, match="is not an IDX file of bytes with 3 axes"):
        prepared([path])
    idx(path, pixels(2, channels=1)[..., 0])
    idx(beside, np.array([0, 4], np.uint8))
    with pytest.raises(ValueError, match=r"has label 4, but data\.classes has 2 names"):
        prepared([path], classes=["a", "b"])


def test_hidden_files_are_no_images(folders):
    root, _ = folders
    (root / "cat" / "._0.png").write_bytes(b"")
    (root / ".git").mkdir()
    assert len(image_files(root)[0]) == 6 and not open_source(str(root)).others


def test_linked_folders_are_read_and_loops_are_not(folders):
    root, own = folders
    (root / "dog").rename(root.parent / "elsewhere")
    (root / "dog").symlink_to(root.parent / "elsewhere", target_is_directory=True)
    (root / "cat" / "loop").symlink_to(root, target_is_directory=True)
    (root / "cat" / "gone.png").symlink_to(root / "nowhere.png")
    found = prepared([root])
    assert found.classes == ["cat", "dog"] and found.labels.tolist() == [0, 0, 0, 1, 1, 1]
    np.testing.assert_array_equal(found.pixels, own)
    assert found.facts["broken"] == [["cat/gone.png", "does not exist"]]


def test_files_with_other_endings_are_counted_and_some_are_named(folders):
    root, own = folders
    image(own[0]).save(root / "cat" / "more.jfif", format="JPEG")
    image(own[0]).save(root / "cat" / "more.tga")
    for number in range(6):
        (root / "dog" / f"{number}.heic").write_bytes(b"")
    found = prepared([root])
    assert len(found) == 8
    named = ", ".join(f"dog/{number}.heic" for number in range(5))
    said = f"6 files that do not look like images, by their endings, are skipped: {named} and 1 more."
    assert found.broken_summary() == [said]
    for path in image_files(root)[0]:
        path.unlink()
    with pytest.raises(ValueError, match=r"has no images \(files with other endings, such as dog/0\.heic, do not"):
        prepared([root])


def test_a_processor_comes_back_from_what_config_json_says(tmp_path):
    own = Images(28, 1, (0.5,), (0.25,), "pad", "bicubic")
    facts = json.loads(json.dumps(own.write(tmp_path)))
    assert Images.read_facts(facts, "here") == own
    for change in (
        {"size": 0},
        {"channels": True},
        {"fit": "bend"},
        {"mean": [0.1, 0.2]},
        {"std": [0.0]},
        {"std": [10**400]},
    ):
        with pytest.raises(ValueError, match=rf"^here\.{next(iter(change))} is "):
            Images.read_facts(facts | change, "here")


# batches


def batches(found, size=4, **more):
    def draw(random, count):
        return random.uniform(0, 1, (count, 2)).astype(np.float32)

    return ImageBatches(found, size, seed=3, draw=draw, draw_mixing=draw, **more)


def rows_of(made, count):
    return [batch.rows for _, batch in zip(range(count), (own for _, own in made.start()), strict=False)]


def test_batches_are_equal_and_every_image_is_in_every_epoch(folders):
    made = batches(prepared([folders[0]]))
    rows = rows_of(made, 6)
    assert all(len(own) == 4 for own in rows)
    flat = np.concatenate(rows)
    for start in range(0, 24, 6):
        assert sorted(flat[start : start + 6]) == [0, 1, 2, 3, 4, 5]


def test_batches_go_on_from_any_position(folders):
    made = batches(prepared([folders[0]]))
    stream = made.start()
    seen = [next(stream) for _ in range(7)]
    for number, (after, _) in enumerate(seen[:-1]):
        again = next(batches(prepared([folders[0]])).start(after))
        for one, other in zip(again[1].to(CPU), seen[number + 1][1].to(CPU), strict=True):
            assert torch.equal(one, other)


def test_shares_of_processes_are_the_whole_batch_with_the_same_partners(folders):
    found = prepared([folders[0]])
    whole = next(batches(found, 5).start())[1].to(CPU)
    for rank in range(2):
        part = next(batches(found, 5, share=(rank, 2)).start())[1].to(CPU)
        mine = torch.arange(5)[rank::2]
        assert torch.equal(part.images[: part.count], whole.images[mine])
        assert torch.equal(part.mixing, whole.mixing[mine])
        for side in ("images", "labels", "draws"):
            assert torch.equal(getattr(part, side)[part.partners], getattr(whole, side)[whole.partners[mine]])


def test_sixteen_bits_are_rounded_to_eight():
    sixteen = Image.fromarray(np.array([[0, 128, 129, 65406, 65407, 65535]], np.uint16))
    assert np.asarray(_eight_bits(sixteen)).tolist() == [[0, 0, 1, 254, 255, 255]]
