"""The view that draws: pixels appear as they come, it can be stopped, and what is drawn is what the model draws."""

import base64
import io
import threading

import numpy as np
import pytest
from axe_playwright_python.base import AXE_SCRIPT
from PIL import Image

from heed.products.image_generator import ImageGenerator
from heed.service.http import asked_model
from heed.service.http.image_models import ServedImageGenerator
from heed.service.http.service import Service
from tests.service.http.conftest import RunningService
from tests.service.image_models import CLASSES, image_generator, png
from tests.service.page.test_frame import _faults

PAUSE = 40  # of 108 turns


class Paused(ImageGenerator):
    """Draws no further than some turns until it may."""

    go_on = threading.Event()

    def draw(self, *given, **options):
        for turn, values in enumerate(super().draw(*given, **options)):
            if turn == PAUSE:
                self.go_on.wait()
            yield values


@pytest.fixture(scope="module")
def drawing():
    models = [image_generator(), image_generator(labels=0, small=2, small_layers=1), image_generator(Paused)]
    named = zip(("classes", "enlarge", "paused"), models, strict=True)
    running = RunningService(Service([ServedImageGenerator(name, own) for name, own in named]))
    yield running
    Paused.go_on.set()
    running.stop()


@pytest.fixture
def start(visit, drawing, tmp_path):
    def open_view(model="classes", given=None, **more):
        page = visit("#draw", url=drawing.url + "/", **more)
        page.select_option("#drawing-model", model)
        if given is not None:
            (tmp_path / "given.png").write_bytes(given)
            page.set_input_files("#drawing-file", str(tmp_path / "given.png"))
        return page

    return open_view


def drawn(page):
    """What is on the canvas, with its alpha."""
    data = page.eval_on_selector("#drawing-canvas", "node => node.toDataURL()").split(",")[1]
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGBA"))


def done(page):
    page.click("#drawing-go")
    page.wait_for_selector("#drawing-download:not([hidden])")


def test_what_is_drawn_is_what_the_model_draws_by_class_and_seed(start):
    page = start()
    assert page.text_content("#drawing-empty") == "The image appears here, pixel by pixel."
    assert page.eval_on_selector_all("#drawing-class option", "all => all.map((one) => one.value)") == [
        "",
        *CLASSES[:3],
    ]
    page.select_option("#drawing-class", CLASSES[1])
    page.select_option("#drawing-count", "4")
    page.fill("#drawing-seed", "12")
    done(page)
    expected = image_generator().generate(4, labels=[CLASSES[1]], seed=12)
    found = drawn(page)
    assert found.shape == (14, 14, 4)
    assert (found[:6, :6, :3] == expected[0]).all() and (found[8:, 8:, :3] == expected[3]).all()
    assert page.text_content("#drawing-status").endswith("with seed 12.") and not page.is_visible("#drawing-stop")
    assert page.get_attribute("#drawing-canvas", "aria-label") == "The image, 100% drawn"
    with page.expect_download() as download:
        page.click("#drawing-download")
    assert download.value.suggested_filename == "classes-12.png"
    saved = np.asarray(Image.open(download.value.path()).convert("RGB"))
    assert saved.shape == (14 * 36, 14 * 36, 3) and (saved[18, 18] == expected[0, 0, 0]).all()


def test_an_image_is_completed_from_its_upper_part(start):
    page = start(given=png())
    page.wait_for_selector("#drawing-given:not([hidden])")
    assert page.text_content("#drawing-keep-name") == "Keep the upper 50%"
    page.fill("#drawing-seed", "3")
    done(page)
    expected = image_generator().generate(1, seed=3, complete=png(), keep=0.5)
    assert (drawn(page)[..., :3] == expected[0]).all()
    page.click("#drawing-remove")
    assert not page.is_visible("#drawing-given")


def test_all_of_a_picture_wider_than_high_is_kept(start):
    half = np.random.default_rng(0).integers(0, 256, (6, 12, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(half).save(out, format="PNG")
    page = start(given=out.getvalue())
    page.wait_for_selector("#drawing-given:not([hidden])")
    assert page.text_content("#drawing-keep-name") == "Keep 3 of 3 rows"
    assert page.text_content("#drawing-given-size") == "Resized from 12 × 6 to 6 × 3 pixels"
    page.fill("#drawing-seed", "3")
    done(page)
    assert (drawn(page)[..., :3] == image_generator().generate(1, seed=3, complete=out.getvalue())[0]).all()
    page.fill("#drawing-keep", "17")
    assert page.text_content("#drawing-keep-name") == "Keep 1 of 3 rows"


def test_a_model_that_enlarges_asks_for_an_image(start):
    page = start("enlarge")
    assert page.text_content("#drawing-drop-title") == "Drop an image to enlarge it"
    page.click("#drawing-go")
    assert page.text_content("#drawing-error") == "This model enlarges images: drop one first."
    page.set_input_files("#drawing-file", {"name": "a.png", "mimeType": "image/png", "buffer": png()})
    page.wait_for_selector("#drawing-given:not([hidden])")
    page.fill("#drawing-seed", "3")
    done(page)
    own = image_generator(labels=0, small=2, small_layers=1)
    assert (drawn(page)[..., :3] == own.generate(1, seed=3, enlarge=png())[0]).all()


def test_pixels_appear_as_they_come_and_drawing_is_stopped(start, monkeypatch):
    monkeypatch.setattr(asked_model, "SLICE_SECONDS", 0)
    Paused.go_on.clear()
    page = start("paused")
    page.click("#drawing-go")
    try:
        page.wait_for_function("share => document.querySelector('#drawing-progress').value === share", arg=PAUSE / 108)
        assert page.is_visible("#drawing-stop") and page.text_content("#drawing-status") == "Drawing …"
        assert (drawn(page)[..., 3] > 0).sum() == -(-PAUSE // 3), "a pixel has three turns"
        page.click("#drawing-stop")
        assert page.text_content("#drawing-status").startswith("Stopped at 37%. Seed ")
        assert not page.is_visible("#drawing-stop") and page.is_visible("#drawing-download")
    finally:
        Paused.go_on.set()
    done(page)
    assert (drawn(page)[..., 3] > 0).all()


def test_what_cannot_be_read_is_said(start):
    page = start(given=b"no image")
    page.wait_for_selector("#drawing-error:not([hidden])")
    assert page.text_content("#drawing-error") == "The browser cannot read this image file."
    done(page)
    assert not page.is_visible("#drawing-error")


def test_an_error_of_the_service_is_said(start):
    page = start(quiet=False)  # the browser tells of the refused request
    page.route("**/v1/images/draw", lambda route: route.fulfill(status=503, json={"error": "the queue is full"}))
    page.click("#drawing-go")
    page.wait_for_selector("#drawing-error:not([hidden])")
    assert page.text_content("#drawing-error") == "the queue is full" and not page.is_visible("#drawing-stop")


def test_the_view_speaks_korean_fits_a_phone_and_has_no_fault_of_accessibility(start):
    page = start(given=png(), width=320)
    page.wait_for_selector("#drawing-given:not([hidden])")
    done(page)
    page.click("#locale")
    assert page.text_content("nav [aria-current]") == "그리기" and "시드" in page.text_content("#drawing-status")
    assert page.text_content("#drawing-keep-name") == "위쪽 50% 유지"
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.evaluate(AXE_SCRIPT)
    assert not _faults(page, "#view-draw")
