"""The views that listen and speak."""

import numpy as np
import pytest
from axe_playwright_python.base import AXE_SCRIPT

from heed.audio.files import read, wav_bytes
from heed.service.http.recognizers import ServedRecognizer
from heed.service.http.service import Service
from heed.service.http.voices import ServedVoice
from tests.service.http.conftest import RunningService
from tests.service.http.test_audio import SOUND, recognizer, voice
from tests.service.page.test_frame import _faults


@pytest.fixture(scope="module")
def ears():
    return recognizer()


@pytest.fixture(scope="module")
def running(ears):
    """A service that listens and speaks, and does nothing else."""
    service = RunningService(Service([ServedRecognizer("ears", ears), ServedVoice("mouth", voice())]))
    yield service
    service.stop()


@pytest.fixture
def sound(tmp_path):
    path = tmp_path / "a.wav"
    path.write_bytes(SOUND)
    return path


def test_a_recording_is_written_down_with_its_words_over_the_picture(visit, running, ears, sound):
    page = visit("", url=running.url + "/")
    page.set_input_files("#listen-file", sound)
    page.wait_for_selector(".listen-word")
    (expected,) = ears.transcribe([read(sound)])
    assert page.inner_text("#listen-text") == expected.text
    words = page.query_selector_all(".listen-word")
    assert [word.inner_text() for word in words] == [word.text for word in expected.words]
    before = page.evaluate("document.querySelector('#listen-canvas').toDataURL()")
    words[0].click()
    assert words[0].get_attribute("aria-pressed") == "true"
    assert page.evaluate("document.querySelector('#listen-canvas').toDataURL()") != before  # where it looked
    page.click("#locale")
    assert page.inner_text("nav [aria-current]") == "받아쓰기" and len(page.query_selector_all(".listen-word")) == len(
        words
    )


def test_what_is_no_sound_and_silence_are_told(visit, running, tmp_path):
    page = visit("#listen", url=running.url + "/")
    (tmp_path / "text.wav").write_text("I am a text.", "utf-8")
    page.set_input_files("#listen-file", tmp_path / "text.wav")
    page.wait_for_selector("#listen-status.error")
    assert page.inner_text("#listen-status") == "The browser cannot read this audio file."
    (tmp_path / "silence.wav").write_bytes(wav_bytes(np.zeros(8000), 16_000))
    page.set_input_files("#listen-file", tmp_path / "silence.wav")
    page.wait_for_selector("#listen-text:has-text('(no words)')")


def test_a_sentence_is_spoken(visit, running):
    page = visit("#say", url=running.url + "/", quiet=False)
    page.fill("#say-text", "hello.")
    page.select_option("#say-speaker", "bob")
    page.press("#say-text", "Enter")
    page.wait_for_selector("#say-found:not([hidden])")
    assert page.get_attribute("#say-audio", "src").startswith("blob:")
    page.fill("#say-text", "!!")
    page.click("#say-go")
    page.wait_for_selector("#say-status.error")
    assert "nothing the model can speak" in page.inner_text("#say-status")


@pytest.mark.parametrize("width", [360, 1100])
@pytest.mark.parametrize("view", ["listen", "say"])
def test_everything_fits_and_can_be_reached(visit, running, sound, width, view):
    page = visit(f"#{view}", url=running.url + "/", width=width)
    if view == "listen":
        page.set_input_files("#listen-file", sound)
        page.wait_for_selector(".listen-word")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    if width == 1100:
        page.evaluate(AXE_SCRIPT)
        assert _faults(page, f"#view-{view}") == []
