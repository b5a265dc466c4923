"""ViT beside transformers': weights, states, attentions, other resolutions, and how images are read; both ways."""

import json

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from transformers import AutoImageProcessor, ViTForImageClassification, ViTImageProcessorPil, ViTModel

from heed.cli.main import main
from heed.convert import huggingface, vit
from heed.loading import load, open_package, write_package
from heed.models.vit import ViTConfig
from heed.nn.pixels import Normalize, from_bytes

SIZES = {
    "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 24, "image_size": 12,
    "patch_size": 4,
}  # fmt: skip
SQUARE = {"size": {"height": 12, "width": 12}}
CUT = {  # the center of an image of another shape or size
    "shorter side": {"size": {"shortest_edge": 12}},
    "larger": {"size": {"shortest_edge": 15}},
    "stretched": {"size": {"height": 15, "width": 15}},
}
CUT = {name: {**own, "do_center_crop": True, "crop_size": SQUARE["size"]} for name, own in CUT.items()}


def theirs(kind=ViTForImageClassification, **changes):
    torch.manual_seed(0)
    settings = {**SIZES, **changes}
    if kind is ViTForImageClassification:
        settings |= {"id2label": {0: "cat", 1: "dog", 2: "owl"}, "label2id": {"cat": 0, "dog": 1, "owl": 2}}
    model = kind(transformers.ViTConfig(attn_implementation="eager", **settings)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, 0.2)
    return model.double()  # of weights that float32 has too


def saved(model, folder, **processing):
    model.save_pretrained(folder)
    size = model.config.image_size
    ViTImageProcessorPil(**{"size": {"height": size, "width": size}, **processing}).save_pretrained(folder)
    return folder


@pytest.fixture
def exact(monkeypatch):
    """Their softmax in the precision of its input, which they round to float32."""
    plain = torch.nn.functional.softmax
    monkeypatch.setattr(torch.nn.functional, "softmax", lambda x, dim, dtype=None: plain(x, dim=dim))


def images(size=12, channels=3):
    return torch.randn(2, channels, size, size, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("changes", [{}, {"qkv_bias": False, "hidden_act": "gelu_pytorch_tanh"}, {"num_channels": 1}])
def test_logits_states_and_attentions_are_theirs(tmp_path, exact, changes):
    other = theirs(**changes)
    processing = {"image_mean": [0.3], "image_std": [0.2]} if changes.get("num_channels") == 1 else {}
    own = open_package(saved(other, tmp_path, **processing)).model.double()
    x = images(channels=changes.get("num_channels", 3))
    with torch.no_grad():
        found, expected = own.trace(x), other(x, output_hidden_states=True, output_attentions=True)
    assert torch.allclose(found.logits, expected.logits, rtol=0, atol=1e-10)
    assert torch.allclose(own.classify_images(x), expected.logits, rtol=0, atol=1e-10)
    for ours, hf in zip([*found.states, *found.maps], [*expected.hidden_states, *expected.attentions], strict=True):
        assert torch.allclose(ours, hf, rtol=0, atol=1e-10)


@pytest.mark.parametrize("size", [8, 20, 24])
def test_positions_are_interpolated_as_theirs(tmp_path, exact, size):
    other = theirs()
    own = open_package(saved(other, tmp_path)).model.double()
    with torch.no_grad():
        expected = other(images(size), interpolate_pos_encoding=True).logits
        assert torch.allclose(own.classify_images(images(size)), expected, rtol=0, atol=1e-10)


def test_a_body_without_a_head_embeds_and_can_be_written_again(tmp_path, exact):
    other = theirs(ViTModel)
    package = open_package(saved(other, tmp_path / "theirs"))
    own = package.model.double()
    with torch.no_grad():
        states = own.image_states(images())
        assert torch.allclose(states, other(images()).last_hidden_state, rtol=0, atol=1e-10)
    huggingface.write(package, tmp_path / "ours")
    again = ViTModel.from_pretrained(tmp_path / "ours", add_pooling_layer=False).double()
    with torch.no_grad():
        assert torch.allclose(states, again(images()).last_hidden_state, rtol=0, atol=1e-10)
    assert load(tmp_path / "theirs", "cpu", verb="embed").noun == "an image model"


def test_a_body_without_a_head_is_described_converted_and_refused_where_it_lacks_classes(tmp_path, capsys):
    from heed.service.http.opening import open_models

    saved(theirs(ViTModel), tmp_path / "theirs")
    assert main(["convert", str(tmp_path / "theirs"), "--out", str(tmp_path / "heed")]) == 0
    Image.new("RGB", (12, 12), "red").save(tmp_path / "red.png")
    capsys.readouterr()
    for name in ("theirs", "heed"):
        folder = str(tmp_path / name)
        assert main(["info", folder]) == 0
        out = capsys.readouterr().out
        assert "an image model" in out and f"heed embed {folder} images --out vectors.npy" in out
        assert main(["info", folder, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["images"]["size"] == 12
        assert load(folder, "cpu").embed([tmp_path / "red.png"]).shape == (1, 16)
        assert main(["classify", folder, str(tmp_path / "red.png")]) == 1
        error = " ".join(capsys.readouterr().err.split())
        assert f"{folder} is an image model: it cannot classify; use heed embed" in error
        for given in (folder, f"embed={folder}"):
            with pytest.raises(ValueError, match=rf"{folder} cannot be served: .* use heed embed {folder}"):
                open_models([given], "cpu", "auto")


def test_a_folder_goes_to_heed_and_back(tmp_path, exact, capsys):
    other = theirs()
    saved(other, tmp_path / "theirs", resample=3)
    assert main(["convert", str(tmp_path / "theirs"), "--out", str(tmp_path / "heed")]) == 0
    assert main(["convert", str(tmp_path / "heed"), "--to", "huggingface", "--out", str(tmp_path / "back")]) == 0
    assert main(["info", str(tmp_path / "heed")]) == 0
    assert "owl" in capsys.readouterr().out
    back = ViTForImageClassification.from_pretrained(tmp_path / "back").double()
    assert back.config.id2label == {0: "cat", 1: "dog", 2: "owl"}
    with torch.no_grad():
        assert torch.allclose(back(images()).logits, other(images()).logits, rtol=0, atol=1e-10)
    for name in ("config.json", "preprocessor_config.json"):
        one, two = (json.loads((tmp_path / folder / name).read_text("utf-8")) for folder in ("theirs", "back"))
        ignored = {"transformers_version", "encoder_stride", "pooler_act", "pooler_output_size", "dtype"}
        assert {k: v for k, v in one.items() if k not in ignored} == {k: v for k, v in two.items() if k not in ignored}
    assert "AutoImageProcessor" in (tmp_path / "back" / "README.md").read_text("utf-8")


@pytest.mark.parametrize("shape", [(12, 12), (37, 50), (9, 30), (200, 100)])
@pytest.mark.parametrize("resample", [0, 1, 2, 3])
@pytest.mark.parametrize("size", [SQUARE, *CUT.values()])
def test_images_are_read_as_theirs(shape, resample, size, tmp_path):
    processing = {"resample": resample, "image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.25, 0.3], **size}
    processor = ViTImageProcessorPil(**processing)
    processor.save_pretrained(tmp_path)
    assert_read_as(processor, read_settings(tmp_path), shape)


def read_settings(folder):
    return json.loads((folder / "preprocessor_config.json").read_text("utf-8"))


def assert_read_as(processor, settings, shape):
    """Every byte of a picture is the same, and so are the numbers that the model reads."""
    own = vit.to_ours(settings, ViTConfig(size=12, patch=4))
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8))
    raw = np.array(processor(image, do_rescale=False, do_normalize=False)["pixel_values"][0])
    assert np.array_equal(own.pixels(image), raw.transpose(1, 2, 0))
    expected = torch.from_numpy(np.array(processor(image)["pixel_values"]))
    found = Normalize(own.mean, own.std)(from_bytes(torch.from_numpy(own.pixels(image).copy())[None], torch.float64))
    assert torch.allclose(found, expected.double(), atol=2e-6)


@pytest.mark.parametrize("shape", [(12, 12), (15, 15), (37, 50), (9, 30)])
@pytest.mark.parametrize("kind", ["DeiTFeatureExtractor", "DeiTImageProcessor", "ViTFeatureExtractor"])
def test_published_preprocessors_of_deit_are_read_as_by_transformers(tmp_path, kind, shape):
    """The settings of facebook/deit-base-patch16-224 at another size; what is left out has the defaults of its class."""
    settings = {"size": 15, "crop_size": 12, "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
    settings["feature_extractor_type" if "Feature" in kind else "image_processor_type"] = kind
    if kind.startswith("ViT"):
        settings |= {"do_center_crop": True, "resample": 3}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(settings), "utf-8")
    theirs(num_labels=3).config.save_pretrained(tmp_path)
    assert_read_as(AutoImageProcessor.from_pretrained(tmp_path, backend="pil"), settings, shape)


@pytest.mark.parametrize("fit", CUT)
def test_a_larger_size_that_images_are_first_resized_to_goes_to_heed_and_back(tmp_path, fit):
    saved(theirs(), tmp_path / "theirs", **CUT[fit])
    package = open_package(tmp_path / "theirs")
    write_package(package, tmp_path / "heed")
    assert open_package(tmp_path / "heed").processors["images"] == package.processors["images"]
    huggingface.write(open_package(tmp_path / "heed"), tmp_path / "back")
    assert read_settings(tmp_path / "back") == read_settings(tmp_path / "theirs")


def test_a_tuned_model_reads_images_as_the_one_it_was_tuned_from(tmp_path, monkeypatch):
    monkeypatch.setenv("HEED_CACHE", str(tmp_path / "cache"))
    saved(theirs(), tmp_path / "theirs", resample=3, **CUT["stretched"])
    for number in range(20):
        path = tmp_path / "data" / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (30, 20), (12 * number, 0, 0)).save(path)
    choices = {
        "task.name": "image-classification", "data.images": tmp_path / "data", "data.size": 24, "training.steps": 1,
        "training.valid_every": 1, "training.threads": 1, "training.device": "cpu",
    }  # fmt: skip
    options = [word for name, value in choices.items() for word in ("--set", f"{name}={value}")]
    run = str(tmp_path / "run")
    assert main(["train", "--from", str(tmp_path / "theirs"), *options, "--quiet", "--out", run]) == 0
    own = open_package(run).processors["images"]
    assert (own.size, own.fit, own.resample, own.resize) == (24, "stretch", "bicubic", 30)  # 15 for 12


def test_what_is_written_is_read_by_their_image_processor(tmp_path):
    package = open_package(saved(theirs(), tmp_path / "theirs"))
    huggingface.write(package, tmp_path / "ours")
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (30, 20, 3), dtype=np.uint8))
    image.save(tmp_path / "image.png")
    processor = AutoImageProcessor.from_pretrained(tmp_path / "ours", backend="pil")
    other = ViTForImageClassification.from_pretrained(tmp_path / "ours")
    with torch.no_grad():
        expected = other(torch.from_numpy(np.array(processor(image)["pixel_values"]))).logits.softmax(dim=1)[0]
    found = load(tmp_path / "ours", "cpu", engine="torch").classify([tmp_path / "image.png"])[0]
    for i, name in enumerate(("cat", "dog", "owl")):
        assert found.probabilities[name] == pytest.approx(expected[i].item(), abs=1e-5)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"size": {"height": 10, "width": 12}}, "size is .*; heed's images are square"),
        ({"size": {"height": 16, "width": 16}}, "images are resized to 16 pixels, but the model expects 12"),
        ({"size": {"shortest_edge": 14}}, "the shorter side is resized to 14, without a center crop"),
        ({"size": 10, "do_center_crop": True, "crop_size": 12}, "crop_size is 12 and size 10; .* beyond the image"),
        (
            {"size": {"shortest_edge": "x"}, "do_center_crop": True, "crop_size": 12},
            "size is 'x'; it must be an integer",
        ),
        ({"size": 14, "do_center_crop": True, "crop_size": {"height": 12}}, "crop_size is .* are square"),
        (
            {"do_resize": False, "do_center_crop": True, "crop_size": 12},
            "do_resize is false with a center crop; heed resizes",
        ),
        ({"rescale_factor": 0.5}, "rescale_factor is 0.5; heed always divides by 255"),
        ({"resample": 9}, "resample is 9; it must be one of Pillow's numbers"),
        ({"image_std": [0.0, 1.0, 1.0]}, "must be a list of 3 numbers above zero"),
    ],
)
def test_what_heed_cannot_do_is_refused(tmp_path, changes, words):
    saved(theirs(), tmp_path)
    path = tmp_path / "preprocessor_config.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | changes), "utf-8")
    with pytest.raises(ValueError, match=rf"preprocessor_config\.json: .*{words}"):
        open_package(tmp_path)


def test_a_model_without_a_counterpart_stays_with_heed(tmp_path):
    package = open_package(saved(theirs(), tmp_path / "theirs"))
    from heed.models.vit import ViT, ViTConfig

    own = ViT(ViTConfig(labels=3, size=12, patch=4, dim=16, heads=2, hidden=24, layers=1, pooling="mean"))
    with pytest.raises(ValueError, match=r"transformers has no equivalent of a ViT .*: it cannot be exported"):
        huggingface.write(package._replace(model=own), tmp_path / "ours")
