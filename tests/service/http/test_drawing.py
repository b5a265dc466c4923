"""/v1/images/draw: what is streamed is what is drawn, and what is wrong with a request is said."""

import base64
import io
import json

import httpx
import numpy as np
import pytest
from PIL import Image

from heed.service.http.image_models import ServedImageGenerator
from heed.service.http.opening import open_models
from heed.service.http.service import Service
from tests.service.http.conftest import RunningService
from tests.service.image_models import CLASSES, image_generator, png

KINDS = {
    "classes": {},
    "plain": {"labels": 0, "attention": "1d", "output": "logistic", "query_block": 9},
    "enlarge": {"labels": 0, "small": 2, "small_layers": 1},
}


@pytest.fixture(scope="module")
def service():
    running = RunningService(
        Service([ServedImageGenerator(name, image_generator(**kind)) for name, kind in KINDS.items()])
    )
    yield running
    running.stop()


def encoded(data):
    return base64.b64encode(data).decode("ascii")


def ask(service, **body):
    return httpx.post(f"{service.url}/v1/images/draw", json=body, timeout=60)


def whole(service, **body):
    images = [base64.b64decode(own) for own in ask(service, **body).json()["images"]]
    return np.stack([np.asarray(Image.open(io.BytesIO(own))) for own in images])


def events(answer):
    parts = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line]
    assert parts[-1] == "[DONE]"
    return [json.loads(part) for part in parts[:-1]]


def streamed(service, **body):
    """Images put together from the events of a stream."""
    head, *rest = events(ask(service, stream=True, **body))
    offsets = np.frombuffer(base64.b64decode(head["offsets"]), "<u4")
    images, turn = np.zeros((head["count"], head["size"] ** 2 * head["channels"]), np.uint8), 0
    for one in rest:
        assert one["turn"] == turn
        values = np.frombuffer(base64.b64decode(one["values"]), np.uint8).reshape(-1, head["count"], head["values"])
        for own in values:
            images[:, offsets[turn] : offsets[turn] + head["values"]] = own
            turn += 1
    assert turn == head["turns"] == len(offsets)
    return images.reshape(head["count"], head["size"], head["size"], head["channels"]), head


@pytest.mark.parametrize("name", KINDS)
def test_a_stream_and_whole_images_and_the_product_draw_the_same(service, name):
    given = {"count": 2, "seed": 5, "temperature": 0.7}
    more = {"enlarge": png()} if name == "enlarge" else {}
    expected = image_generator(**KINDS[name]).generate(**given, **more)
    sent = {**given, "model": name, **{key: encoded(value) for key, value in more.items()}}
    assert (whole(service, **sent) == expected).all() and (streamed(service, **sent)[0] == expected).all()


def test_a_class_is_drawn_and_the_upper_part_of_an_image_stays(service):
    own = image_generator()
    found = whole(service, model="classes", label=CLASSES[2], seed=1, complete=encoded(png()), keep=0.34)
    expected = own.generate(1, labels=[CLASSES[2]], seed=1, complete=png(), keep=0.34)
    assert (found == expected).all() and (found[0, :2] == own.read([png()])[0, :2]).all()


def test_what_is_kept_of_a_half_is_told(service):
    half = np.random.default_rng(0).integers(0, 256, (3, 6, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(half).save(out, format="PNG")
    asked = {"model": "plain", "seed": 1, "complete": encoded(out.getvalue())}
    assert (whole(service, **asked)[0, :3] == half).all() and (streamed(service, **asked)[0][0, :3] == half).all()
    said = "3 of 3 rows of the picture are kept; 3 are generated"
    assert ask(service, **asked).json()["kept"] == said == events(ask(service, stream=True, **asked))[0]["kept"]


def test_without_a_seed_one_is_drawn_and_told(service):
    found, head = streamed(service, model="plain")
    assert (whole(service, model="plain", seed=head["seed"]) == found).all()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({}, 400, "model is missing; choose one of classes, plain, enlarge"),
        ({"model": "x"}, 404, "which is not a model that draws images served here"),
        ({"model": "plain", "count": 17}, 400, "count"),
        ({"model": "plain", "temperature": 0}, 400, "temperature"),
        ({"model": "plain", "label": "cat"}, 400, "the model has no classes"),
        ({"model": "classes", "label": "x"}, 400, "'x' is not a class of this model"),
        ({"model": "classes", "complete": "!!"}, 400, "image 1 is not base64"),
        ({"model": "classes", "complete": encoded(b"no")}, 400, "the image is not an image that Pillow can read"),
        ({"model": "classes", "complete": encoded(png()), "keep": 1}, 400, "keep"),
        ({"model": "classes", "enlarge": encoded(png())}, 400, "the model does not enlarge images"),
        ({"model": "enlarge"}, 400, "the model enlarges images: set enlarge to a small image"),
        ({"model": "enlarge", "enlarge": encoded(b"no")}, 400, "the image is not an image that Pillow can read"),
    ],
)
def test_what_is_wrong_is_said(service, body, status, words, stream):
    answer = ask(service, **body, stream=stream)
    assert answer.status_code == status and words in answer.json()["error"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_drawing_reads_its_image_in_a_long_slot_within_the_limit(service, monkeypatch, stream):
    gate = service.service.gate
    taken, enter = [], gate.enter
    monkeypatch.setattr(gate, "enter", lambda size, long=False: taken.append(long) or enter(size, long))
    assert ask(service, model="classes", complete=encoded(png(size=900)), stream=stream).status_code == 200
    huge = io.BytesIO()
    Image.new("L", (4001, 4000)).save(huge, format="PNG")
    answer = ask(service, model="classes", complete=encoded(huge.getvalue()), stream=stream)
    assert answer.status_code == 400 and "the image has 4,001 × 4,000 pixels" in answer.json()["error"]
    assert taken == [True, True]


def test_the_models_are_listed(service):
    listed = httpx.get(f"{service.url}/v1/models").json()["image_generators"]
    assert [one["name"] for one in listed] == [*KINDS] and listed[0]["labels"] == CLASSES[:3]
    assert [one["enlarges"] for one in listed] == [0, 0, 2] and listed[1]["size"] == 6


def test_a_folder_is_served_as_what_it_is(tmp_path):
    from heed.loading import write_package
    from heed.models.package import Package

    own = image_generator(**KINDS["plain"])
    write_package(Package(own.model, "image-generation", {"images": own.images}, {}), tmp_path / "draw")
    [model] = open_models([str(tmp_path / "draw")], "cpu", "auto")
    assert isinstance(model, ServedImageGenerator) and model.name == "draw"
