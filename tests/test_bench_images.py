"""python -m bench.images: the peers are the same model and make the same steps."""

import json

import numpy as np
import pytest
import torch
from bench import image_systems, images

pytest.importorskip("transformers")
SHAPE, CPU = images.QUICK, torch.device("cpu")


def classified(model, logits):
    return image_systems.peer_classifier(model, logits, 4, CPU)(SHAPE.pixels(6))


@pytest.mark.parametrize("peer", image_systems.PEERS)
def test_a_peer_is_the_same_model_before_and_after_training(peer):
    make, logits = image_systems.PEERS[peer]
    ours, theirs = SHAPE.model(), make(SHAPE.model())
    product = image_systems.heed_classifier(SHAPE, CPU, "torch")
    before = product.probabilities(SHAPE.pixels(6))
    assert np.abs(classified(theirs, logits) - before).max() < 1e-6
    image_systems.heed_training(ours, SHAPE, CPU, steps=3)()
    image_systems.peer_training(theirs, logits, SHAPE, CPU, steps=3)()
    product.model = product.fused.model = ours
    after = product.probabilities(SHAPE.pixels(6))
    assert np.abs(after - before).max() > 1e-4
    assert np.abs(classified(theirs, logits) - after).max() < 1e-5


def test_images_are_the_same_without_a_cache():
    from heed.models.image_transformer import ImageTransformer, ImageTransformerConfig
    from heed.products.image_generator import ImageGenerator
    from heed.vocabularies.images import Images

    torch.manual_seed(0)
    model = ImageTransformer(ImageTransformerConfig(size=4, dim=16, heads=2, hidden=16, layers=1)).double().eval()
    product = ImageGenerator(model, Images(4, 3, (0.5,) * 3, (0.5,) * 3))
    assert (image_systems.draw_without_cache(model, 2, seed=3) == product.generate(2, seed=3)).all()


def test_rows_are_measured_and_written(tmp_path, capsys):
    words = ["--quick", "--rounds", "2", "--rows", "train-cifar", "classify-base", "--systems", "heed", "torch"]
    assert images.main([*words, "--json", str(tmp_path / "found.json")]) == 0
    found = json.loads((tmp_path / "found.json").read_text("utf-8"))
    assert [row["row"] for row in found["rows"]] == ["train-cifar", "classify-base"]
    for row in found["rows"]:
        assert [own["name"] for own in row["systems"]] == ["heed", "torch"] and row["best_peer"] == "torch"
        assert len(row["systems"][0]["rates"]) == 2 and row["ratio"] > 0 and "bar" not in row
    assert "images a second" in capsys.readouterr().out


def test_on_the_cpu_nothing_is_compiled_unless_it_is_named():
    names, without = images.chosen(images.parser().parse_args([]), training=True)
    assert names == ["heed", "transformers", "torch"] and len(without) == 2
    assert images.chosen(images.parser().parse_args([]), training=False)[0][:2] == ["heed", "heed-float32"]
    args = images.parser().parse_args(["--device", "cuda"])
    assert images.chosen(args, training=True)[0][:2] == ["heed", "heed-captured"]
    names, _ = images.chosen(args, training=False)
    assert names[:2] == ["heed", "heed-bf16"] and "torch-compiled" in names


def test_sheets_show_what_was_given_what_was_drawn_and_where_it_came_from(tmp_path, capsys):
    from bench import image_sheets
    from PIL import Image

    from heed.loading import write_package
    from heed.models.image_transformer import ImageTransformer, ImageTransformerConfig
    from heed.models.package import Package
    from heed.vocabularies.images import Images

    for name, small in (("draw", 0), ("enlarge", 2)):
        torch.manual_seed(1)
        config = ImageTransformerConfig(size=4, small=small, dim=16, heads=2, hidden=16, layers=1, small_layers=1)
        processors = {"images": Images(4, 3, (0.5,) * 3, (0.5,) * 3)}
        write_package(Package(ImageTransformer(config), "image-generation", processors, {}), tmp_path / name)
    runs = ["--draw", str(tmp_path / "draw"), "--enlarge", str(tmp_path / "enlarge"), "--device", "cpu"]
    assert image_sheets.main([*runs, "--out", str(tmp_path / "sheets"), "--images", "2", "--variants", "2"]) == 0
    assert capsys.readouterr().out.count(" images\n") == 3
    again = [*runs[2:], "--samples", str(tmp_path / "sheets" / "images-samples.png"), "--out", str(tmp_path / "again")]
    assert image_sheets.main([*again, "--images", "2", "--variants", "2"]) == 0
    assert len({(tmp_path / own / "images-enlarged.png").read_bytes() for own in ("sheets", "again")}) == 1
    with pytest.raises(SystemExit):
        image_sheets.main(runs[2:])
    assert "add either --draw or --samples" in capsys.readouterr().err
    scale = 16  # of 4 pixels

    def cell(name, row, column):
        own = np.asarray(Image.open(tmp_path / "sheets" / f"images-{name}.png"))
        top, left = (2 + number * (4 * scale + 2) for number in (row, column))
        return own[top : top + 4 * scale : scale, left : left + 4 * scale : scale].astype(int)

    for row in range(2):
        given, one, other, sample = (cell("completed", row, column) for column in range(4))
        assert (sample == cell("samples", 0, row)).all() and (given[2:] == 128).all()
        assert all((image[:2] == sample[:2]).all() for image in (given, one, other)) and (one != other).any()
        small, *_, sample = (cell("enlarged", row, column) for column in range(4))
        mean = sample.reshape(2, 2, 2, 2, 3).mean(axis=(1, 3)).round()
        assert np.abs(small[::2, ::2] - mean).max() <= 1 and (small[::2, ::2] == small[1::2, 1::2]).all()
