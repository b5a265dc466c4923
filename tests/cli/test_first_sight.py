"""Small things that a newcomer stumbles over."""

import re
from base64 import b64decode
from io import BytesIO

import pytest
from fontTools.ttLib import TTFont

from heed.service.http import reference


def test_a_setting_that_is_wrong_on_the_command_line_is_not_blamed_on_the_recipe(heed, tmp_path):
    words = ["train", "recipes/phrasebook.toml", "--out", tmp_path / "run"]
    code, _, err = heed(*words, "--set", "training.stps=3")
    assert code != 0 and err == "heed: training.stps: no such setting; did you mean steps?"
    code, _, err = heed(*words, "--set", "trainin.steps=3")
    assert code != 0 and err.startswith("heed: trainin: no such setting; did you mean training?")
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("[data]\nphrasebook = 100\n[training]\nstps = 3\n", "utf-8")
    code, _, err = heed("train", wrong, "--out", tmp_path / "run", "--set", "training.steps=3")
    assert code != 0 and err == f"heed: {wrong}: training.stps: no such setting; did you mean steps?"


def test_info_shows_as_many_digits_as_anyone_reads(heed, trained):
    code, out, _ = heed("info", trained, "--all")
    assert code == 0 and "valid_loss" in out
    assert not re.findall(r"\d\.\d{6,}", out)


@pytest.fixture(scope="module")
def korean():
    return "나는 책을 읽어요."


def glyphs(page):
    """The characters of the fonts that a page embeds."""
    found = re.findall(r"src: url\(data:font/woff;base64,([^)]*)\)", page)
    return {chr(code) for data in found for code in TTFont(BytesIO(b64decode(data))).getBestCmap()}


def test_the_page_of_sentences_embeds_its_glyphs(heed, trained, tmp_path, korean):
    source, reference_file, page = tmp_path / "a.ko", tmp_path / "a.en", tmp_path / "a.html"
    source.write_text(f"{korean}\n", "utf-8")
    reference_file.write_text("I read books.\n", "utf-8")
    code, _, err = heed("evaluate", trained, "--source", source, "--reference", reference_file, "--sentences", page)
    assert code == 0, err
    text = page.read_text("utf-8")
    assert {char for char in korean if char > "가"} <= glyphs(text)
    assert "font-src data:" in text and '"Heed glyphs"' in text


def test_the_reference_of_the_api_has_a_korean_font():
    assert 'url("/assets/korean.ttf")' in reference.STYLE and reference.STYLE.count('"Heed glyphs"') == 3
