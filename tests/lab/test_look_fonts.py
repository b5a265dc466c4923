"""Fonts: every character is shown, or said to be missing."""

import io
import subprocess
import sys

from fontTools.ttLib import TTFont

from heed.lab.fonts import bundled_korean, characters_of, default_font, describe_missing, find_fonts, may_embed, subset


def test_latin_needs_the_default_font_only():
    assert find_fonts("Grüße, I love you. </s>").needed.keys() == {default_font()}


def test_hangul_comes_from_the_bundled_font():
    fonts = find_fonts("너를 love")
    assert fonts.needed == {default_font(): "elov", bundled_korean()[0]: "너를"}
    assert fonts.missing == ""


def test_what_no_font_has_is_returned_and_described(monkeypatch):
    monkeypatch.setattr("heed.lab.fonts.bundled_korean", list)
    monkeypatch.setattr("heed.lab.fonts.system_fonts", tuple)
    assert find_fonts("너를 love").missing == "너를"
    assert "U+B108" in describe_missing("너를")
    assert describe_missing("") == ""


def test_system_fonts_are_asked_last(monkeypatch):
    monkeypatch.setattr("heed.lab.fonts.system_fonts", lambda: (default_font(), *bundled_korean()))
    monkeypatch.setattr("heed.lab.fonts.bundled_korean", list)
    assert list(find_fonts("너 a").needed.values()) == ["a", "너"]


def test_a_file_that_is_no_font_has_no_characters(tmp_path):
    (tmp_path / "no.ttf").write_bytes(b"nothing")
    assert characters_of(tmp_path / "no.ttf") == frozenset()


def test_a_subset_has_the_characters_and_is_small():
    data = subset(bundled_korean()[0], "너를")
    with TTFont(io.BytesIO(data)) as font:
        assert font.flavor == "woff"
        assert set(font.getBestCmap()) == {ord("너"), ord("를")}
    assert len(data) < 20_000
    assert may_embed(bundled_korean()[0])


def test_finding_the_korean_font_does_not_import_its_package():
    code = "import sys, heed.lab.fonts as f; f.find_fonts('너'); print('koreanize_matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
