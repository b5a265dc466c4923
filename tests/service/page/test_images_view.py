"""The view of images: one is dropped, its classes are seen, and what each head looks at."""

import pytest
from axe_playwright_python.base import AXE_SCRIPT

from heed.service.http.image_models import ServedImageModel
from heed.service.http.service import Service
from tests.service.http.conftest import RunningService
from tests.service.image_models import image_classifier, png
from tests.service.page.test_frame import _faults


@pytest.fixture(scope="module")
def images():
    models = [ServedImageModel("vit", image_classifier()), ServedImageModel("mean", image_classifier("mean"))]
    running = RunningService(Service(models))
    yield running
    running.stop()


@pytest.fixture
def start(visit, images, tmp_path):
    def open_view(data=None, **more):
        page = visit("", url=images.url + "/", **more)
        if data is not None:
            (tmp_path / "image.png").write_bytes(data)
            page.set_input_files("#images-file", str(tmp_path / "image.png"))
        return page

    return open_view


def pixel(page, selector):
    """What is drawn on a canvas."""
    return page.eval_on_selector(selector, "node => node.toDataURL()")


def test_an_image_is_classified_and_looked_into(start):
    page = start(png())
    page.wait_for_selector("#images-inside:not([hidden])")
    assert page.text_content("nav [aria-current]") == "Images"
    expected = list(image_classifier().classify([png()])[0].probabilities)
    assert page.text_content(".read-label-found") == expected[0]
    assert page.eval_on_selector_all("#images-out .choice-word", "all => all.map((one) => one.textContent)") == expected
    assert "rollout" in page.text_content("#images-says").lower() and page.locator(".image-map").count() == 2
    rolled = pixel(page, "#images-canvas")
    page.click("#images-rollout")
    assert pixel(page, "#images-canvas") != rolled
    assert page.text_content("#images-says") == "Attention used for classification. Layer 3, the mean of all heads."
    page.click(".image-map >> nth=1")
    assert page.text_content("#images-says").endswith("Layer 3, head 2.")


def test_the_heads_of_a_layer_are_fetched_when_the_slider_moves(start):
    page, asked = start(png()), []
    page.wait_for_selector("#images-inside:not([hidden])")
    page.on("request", lambda request: asked.append(request.post_data_json) if "images/look" in request.url else None)
    last = pixel(page, ".image-map canvas")
    page.fill("#images-layer", "1")
    said = "which => document.querySelector('#images-says').textContent.includes(`Layer ${which},`)"
    page.wait_for_function(said, arg=1)
    assert page.text_content("#images-layer-name") == "Layer 1 of 3" and pixel(page, ".image-map canvas") != last
    page.fill("#images-layer", "3")
    page.wait_for_function(said, arg=3)
    assert pixel(page, ".image-map canvas") == last
    page.fill("#images-layer", "1")
    page.wait_for_function(said, arg=1)
    assert [one["layer"] for one in asked] == [1], "what is known is not asked for again"


def test_a_patch_is_pointed_at_kept_and_moved_with_the_keys(start):
    page = start(png())
    page.wait_for_selector("#images-inside:not([hidden])")
    before = pixel(page, ".image-map canvas")
    box = page.locator("#images-canvas").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.6)
    assert page.text_content("#images-says").startswith("Attention of the patch in row 3, column 2.")
    assert pixel(page, ".image-map canvas") != before
    page.mouse.move(1, 1)
    assert "rollout" in page.text_content("#images-says").lower() and pixel(page, ".image-map canvas") == before
    page.focus("#images-canvas")
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    assert page.text_content("#images-says").startswith("Attention of the patch in row 2, column 2.")
    page.keyboard.press("Escape")
    assert "rollout" in page.text_content("#images-says").lower()


def test_the_other_model_is_asked_with_the_same_image_and_an_error_is_said(start, tmp_path):
    page = start(png(), quiet=False)  # the browser tells of the refused request
    page.wait_for_selector("#images-inside:not([hidden])")
    page.select_option("#images-model", "mean")
    expected = image_classifier("mean").classify([png()])[0].label
    page.wait_for_function("name => document.querySelector('.read-label-found')?.textContent === name", arg=expected)
    (tmp_path / "text.png").write_text("no image", "utf-8")
    page.set_input_files("#images-file", str(tmp_path / "text.png"))
    page.wait_for_selector("#images-out .error")
    assert page.text_content("#images-out .error") == "the image is not an image that Pillow can read"
    assert not page.is_visible("#images-inside")


def test_the_view_speaks_korean_and_has_no_fault_of_accessibility(start):
    page = start(png())
    page.wait_for_selector("#images-inside:not([hidden])")
    page.click("#locale")
    assert page.text_content("nav [aria-current]") == "이미지" and "롤아웃" in page.text_content("#images-says")
    page.evaluate(AXE_SCRIPT)
    assert not _faults(page, "#view-images")
