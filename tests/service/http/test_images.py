"""/v1/images: classes, what is looked at, and what is wrong with a request."""

import base64
import io

import httpx
import numpy as np
import pytest
import torch
from PIL import Image

from heed.products.image_trace import look, rollout
from heed.service.http.image_models import ServedImageModel
from heed.service.http.opening import open_models
from heed.service.http.service import Service
from tests.service.http.conftest import RunningService
from tests.service.image_models import CLASSES, image_classifier, png


@pytest.fixture(scope="module")
def service():
    models = [ServedImageModel("vit", image_classifier()), ServedImageModel("mean", image_classifier("mean"))]
    running = RunningService(Service(models))
    yield running
    running.stop()


def ask(service, path, body):
    return httpx.post(f"{service.url}/v1/images/{path}", json=body, timeout=60)


def encoded(data):
    return base64.b64encode(data).decode("ascii")


def test_classes_are_those_of_the_product_whatever_shares_the_batch(service):
    images = [png(seed) for seed in range(5)]
    answer = ask(service, "classify", {"image": [encoded(own) for own in images], "model": "vit", "top": 3}).json()
    for found, image in zip(answer["images"], images, strict=True):
        expected = list(image_classifier().classify([image])[0].probabilities.items())[:3]
        assert [one["label"] for one in found["classes"]] == [name for name, _ in expected]
        assert [one["probability"] for one in found["classes"]] == pytest.approx([own for _, own in expected], abs=1e-5)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_a_look_has_the_attention_of_every_head(service, pooling):
    name = "vit" if pooling == "cls" else "mean"
    found = ask(service, "look", {"image": "data:image/png;base64," + encoded(png()), "model": name}).json()
    expected = look(image_classifier(pooling), png())
    assert found["layer"] == found["layers"] == 3 and not found["mean_of_heads"]
    assert (
        ask(service, "look", {"image": encoded(png()), "model": name, "layer": 3}).json()["attention"]
        == found["attention"]
    )
    maps = np.frombuffer(base64.b64decode(found["attention"]), "<u2").reshape(expected.attention.shape) / 65535
    assert np.abs(maps - expected.attention).max() < 2e-5
    assert np.abs(maps.sum(axis=-1) - 1).max() < 1e-3
    assert (
        found["positions"] == 16 + (pooling == "cls")
        and found["rows"] == 4
        and found["class_token"] == (pooling == "cls")
    )
    pixels = np.frombuffer(base64.b64decode(found["pixels"]), np.uint8).reshape(16, 16, 3)
    assert (pixels == expected.pixels).all()
    assert found["rollout"] == pytest.approx(expected.rollout.reshape(-1).tolist()) and sum(
        found["rollout"]
    ) == pytest.approx(1)


def test_the_heads_of_each_layer_are_told_and_averaged_only_if_a_layer_is_too_large(service, monkeypatch):
    own = image_classifier()
    traced = own.model.trace(own.inputs(own.read([png()]))).maps
    for layer in (1, 2, 3):
        found = ask(service, "look", {"image": encoded(png()), "model": "vit", "layer": layer}).json()
        maps = np.frombuffer(base64.b64decode(found["attention"]), "<u2").reshape(2, 17, 17) / 65535
        assert found["layer"] == layer and np.abs(maps - traced[layer - 1][0].detach().numpy()).max() < 2e-5
    monkeypatch.setattr("heed.products.image_trace.MAX_WEIGHTS", 17 * 17)
    mean = look(own, png(), 1).attention
    assert mean.shape == (1, 17, 17) and np.allclose(mean[0], traced[0][0].detach().numpy().mean(axis=0))


def test_a_rollout_is_the_product_of_its_layers():
    maps = torch.rand(3, 5, 5, dtype=torch.float64).softmax(dim=-1)
    own = [0.5 * layer + 0.5 * torch.eye(5) for layer in maps]
    assert torch.allclose(rollout(maps), own[2] @ own[1] @ own[0])


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("classify", {}, 400, "image is missing"),
        ("classify", {"image": "!!", "model": "vit"}, 400, "image 1 is not base64"),
        ("classify", {"image": [encoded(png()), encoded(b"no image")], "model": "vit"}, 400, "image 2 is not an image that Pillow can read"),
        ("classify", {"image": []}, 400, "there are 0 images; a request may have 1 to 64"),
        ("classify", {"image": encoded(png())}, 400, "model is missing; choose one of vit, mean"),
        ("classify", {"image": encoded(png()), "model": "x"}, 404, "which is not a image classifier served here"),
        ("look", {"image": encoded(png()), "model": "vit", "layer": 4}, 400, "layer is 4; the model has layers 1 to 3"),
        ("look", {"image": encoded(b"\x89PNG"), "model": "vit"}, 400, "the image is not an image that Pillow can read"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(service, path, body, status, words):
    if body.get("image") == []:
        body = {**body, "model": "vit"}
    answer = ask(service, path, body)
    assert answer.status_code == status and words in answer.json()["error"]


def solid(width: int, height: int, form: str = "PNG") -> bytes:
    """An image of few bytes and many pixels."""
    out = io.BytesIO()
    Image.new("L", (width, height)).save(out, format=form)
    return out.getvalue()


def test_a_large_photo_is_classified(service):
    photo = png(size=900)
    assert len(photo) > 2_000_000  # more than a body without a file may have
    for path in ("classify", "look"):
        assert ask(service, path, {"image": encoded(photo), "model": "vit"}).status_code == 200


@pytest.mark.parametrize(
    ("images", "words"),
    [
        ([solid(4001, 4000)], "the image has 4,001 × 4,000 pixels, and at most 16,000,000 are decoded"),
        ([png(), solid(8000, 8000)], "image 2 has 8,000 × 8,000 pixels"),
        ([solid(4000, 4000)] * 5, "the images have 80,000,000 pixels; the limit per request is 64,000,000"),
        ([solid(8, 8, "EPS")], "the image is in the format EPS; use PNG, JPEG"),
    ],
)
def test_small_files_of_many_pixels_are_refused_by_their_headers(service, images, words, monkeypatch):
    monkeypatch.setattr(Image.Image, "load", None)  # nothing is decoded
    answer = ask(service, "classify", {"image": [encoded(own) for own in images], "model": "vit"})
    assert answer.status_code == 400 and words in answer.json()["error"]


def test_an_image_costs_by_its_pixels_too(service, monkeypatch):
    own = service.service.image_models["vit"]
    submitted, submit = [], own.worker.submit

    def seen(ticket, key, items, sizes, costs=None):
        submitted.append((sizes, costs or sizes))
        return submit(ticket, key, items, sizes, costs)

    monkeypatch.setattr(own.worker, "submit", seen)
    answer = ask(service, "classify", {"image": [encoded(png()), encoded(solid(1000, 1000))], "model": "vit"})
    assert answer.status_code == 200
    ask(service, "look", {"image": encoded(solid(1000, 1000)), "model": "vit"})
    [(sizes, costs), (looked, _)] = submitted
    assert sizes == [17, 17] and costs[0] < 17 + 1000 * 1500 / own.weights
    assert costs[1] - 17 == pytest.approx(1e6 * 750 / own.weights) and looked[0] == round(4 * 17 + costs[1] - 17)


def test_many_bytes_of_images_do_not_take_the_slot_of_short_requests(service, monkeypatch):
    gate = service.service.gate
    taken, enter = [], gate.enter
    monkeypatch.setattr(gate, "enter", lambda size, long=False: taken.append(long) or enter(size, long))
    for image in (png(), png(size=300)):
        ask(service, "classify", {"image": encoded(image), "model": "vit"})
    assert taken == [False, True]


def test_the_models_are_listed_with_their_classes(service):
    listed = httpx.get(f"{service.url}/v1/models").json()["images"]
    assert [one["name"] for one in listed] == ["vit", "mean"] and listed[0]["labels"] == CLASSES
    assert listed[0]["size"] == 16 and listed[0]["patch"] == 4


def test_a_folder_is_served_as_what_it_is(tmp_path):
    from heed.loading import write_package
    from heed.models.package import Package
    from heed.vocabularies.labels import Labels

    own = image_classifier()
    processors = {"images": own.images, "labels": Labels(own.labels)}
    write_package(Package(own.model, "image-classification", processors, {}), tmp_path / "vit")
    [model] = open_models([str(tmp_path / "vit")], "cpu", "auto")
    assert isinstance(model, ServedImageModel) and model.name == "vit"
