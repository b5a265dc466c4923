"""Pictures: the right file, the right size, every token readable."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from heed.lab.attention import from_json
from heed.lab.attention_map import weights
from heed.lab.canvas import COLORS, DPI, Canvas
from heed.lab.colors import LIGHT_RAMP
from heed.lab.draw import draw
from heed.lab.fonts import find_fonts
from heed.lab.picture import Detail

SVG = "{http://www.w3.org/2000/svg}"


def test_another_suffix_is_refused_with_the_four_that_are_right(look, tmp_path):
    with pytest.raises(ValueError, match=r"'a.pdf' must end in one of \.html, \.png, \.svg, \.json"):
        draw(look, tmp_path / "a.pdf")


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"part": "both"}, "part is 'both'; it should be one of encoder, decoder, cross"),
        ({"layer": 0}, "no layer 0 in the cross; layers are counted from 1 to 3"),
        ({"layer": 1, "head": 5}, "no head 5 in the cross; heads are counted from 1 to 4"),
        ({"head": 1}, "Head 1 of which layer"),
    ],
)
def test_what_is_not_there_is_refused(look, tmp_path, choice, words):
    with pytest.raises(ValueError, match=words):
        draw(look, tmp_path / "a.png", **choice)
    assert not (tmp_path / "a.png").exists()


def test_one_map_has_the_size_and_the_colours_of_its_weights(look, tmp_path):
    path = tmp_path / "one.PNG"
    assert draw(look, path, layer=2, head=3) == ""
    with Image.open(path) as picture:
        assert picture.format == "PNG"
        pixels = np.asarray(picture.convert("RGB")).astype(int)
    detail = Detail(look, "cross", 2, 3)
    assert pixels.shape[1] == pytest.approx((detail.size[0] + 1.1) * DPI, abs=2)
    assert pixels.shape[0] > detail.size[1] * DPI
    strongest = np.array([int(LIGHT_RAMP[-1][k : k + 2], 16) for k in (1, 3, 5)])
    assert (np.abs(pixels - strongest).max(-1) < 6).sum() > (0.4 * DPI) ** 2  # the cell of the highest weight


def test_the_overview_is_wider_and_every_map_is_in_it(look, tmp_path):
    draw(look, tmp_path / "all.svg")
    root = ElementTree.parse(tmp_path / "all.svg").getroot()
    assert len(root.findall(f".//{SVG}image")) == 3 * 3 * 4 + 1  # all maps and the scale
    draw(look, tmp_path / "all.png", part="encoder")
    draw(look, tmp_path / "one.png", part="encoder", layer=1)
    with Image.open(tmp_path / "all.png") as wide, Image.open(tmp_path / "one.png") as narrow:
        assert wide.width > narrow.width + 4 * DPI
        assert len(wide.convert("RGB").getcolors(1 << 24)) > 500


def test_hangul_is_drawn_as_outlines(look, tmp_path):
    draw(look, tmp_path / "a.svg", layer=1)
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    glyphs = {path.get("id"): path.get("d") for path in root.findall(f".//{SVG}defs/{SVG}path")}
    korean = [name for name in glyphs if name and name.startswith("NanumGothic")]
    assert len(korean) == len(set("투빅아나는너를많이사랑해"))
    assert all(len(glyphs[name]) > 100 for name in korean)
    assert not root.findall(f".//{SVG}text")


def test_what_no_font_has_is_a_square_and_is_returned(look, tmp_path):
    odd = "\U000f1234"
    assert draw(replace(look, model=f"odd {odd}"), tmp_path / "a.png", layer=1) == odd


def test_text_is_text_and_no_mathematics(look, tmp_path):
    target = [r"▁$\frac{$", "}$", *look.target[2:]]
    odd = replace(
        look, target=target, inputs=["<s>", *target[:-1]], source_text="$x^ 나는\n너를\t많이 $사랑해.", model="a\x00b"
    )
    assert draw(odd, tmp_path / "a.svg") == ""


def test_the_same_look_gives_the_same_bytes_and_no_setting_changes(look, tmp_path):
    before = dict(matplotlib.rcParams)
    for name in ("a.svg", "b.svg", "a.png", "b.png"):
        draw(look, tmp_path / name, layer=1, head=1)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("count", [6, 18, 40])
def test_tokens_do_not_touch_each_other(make, count):
    source = [*(["▁Wörter", "사랑", "x"] * count)[: count - 1], "</s>"]
    long = make(source, source, 1, 2, (" ".join(source), " ".join(source)))
    canvas = Canvas(14, 14, find_fonts("".join(source)))
    Detail(long, "cross", None, None).draw(canvas, 0.5, 0.5)
    canvas.axes.set(xlim=(0, 14), ylim=(14, 0))
    renderer = FigureCanvasAgg(canvas.figure).get_renderer()
    texts = [text for text in canvas.axes.texts if text.get_text() in {"Wörter", "사랑", "x", "</s>"}]
    rows, columns = texts[:count], texts[count:]
    assert len(columns) == count
    for above, below in pairwise(rows):
        assert above.get_window_extent(renderer).y0 >= below.get_window_extent(renderer).y1 - 3
    if columns[0].get_rotation() == 45:
        return  # slanted boxes overlap though the letters do not: the distance of their lines decides
    for left, right in pairwise(columns):
        assert left.get_window_extent(renderer).x1 <= right.get_window_extent(renderer).x0 + 3


def test_slanted_tokens_have_room_for_their_height(make):
    source = [*["▁Wörterbuch"] * 23, "</s>"]
    detail = Detail(make(source, source, 1, 1, ("a", "b")), "cross", None, None)
    assert detail.tilt == 45
    assert detail.cell * 72 * 0.7071 > detail.letters


def test_means_and_heads_are_chosen_from_one(look):
    assert np.array_equal(weights(look, "cross", 2, 3), look.cross[1, 2])
    assert np.allclose(weights(look, "cross", 2, None), look.cross[1].mean(0))
    assert np.allclose(weights(look, "encoder", None, None), look.encoder.mean((0, 1)))


def test_the_colours_get_darker_in_even_steps_from_white():
    red, green, blue = COLORS(np.linspace(0, 1, 11))[:, :3].T
    lightness = np.cbrt(0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2)
    assert lightness[0] > 0.98
    assert (np.diff(lightness) < -0.04).all() and (np.diff(lightness) > -0.09).all()


def test_json_is_the_whole_look(look, tmp_path):
    assert draw(look, tmp_path / "a.json") == ""
    assert from_json((tmp_path / "a.json").read_text("utf-8")).target == look.target
