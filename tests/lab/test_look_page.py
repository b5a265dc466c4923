"""The page in a real browser."""

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from heed.lab.attention import Candidate, from_json, to_json
from heed.lab.draw import draw
from heed.lab.words import words
from tests.chromium import chromium


@pytest.fixture(scope="module")
def browser():
    """Return a Chromium without a window."""
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def contexts(browser):
    """Return the browser's windows by width and colour scheme; they are made when asked for."""
    made = {}
    yield made
    for context in made.values():
        context.close()


@pytest.fixture
def visit(browser, contexts, tmp_path):
    """Return a way to open a look as a page; at the end nothing may have gone wrong or out."""
    pages, troubles = [], []

    def open_page(look, width=1280, scheme="light", **choice):
        path = tmp_path / "look.html"
        assert draw(look, path, **choice) == ""
        if (width, scheme) not in contexts:
            size = {"width": width, "height": 900}
            contexts[width, scheme] = browser.new_context(viewport=size, color_scheme=scheme, offline=True)
        page = contexts[width, scheme].new_page()
        pages.append(page)
        page.set_default_timeout(120_000)
        page.on("console", lambda message: troubles.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        inside = (path.as_uri(), "data:", "blob:")
        page.on("request", lambda r: r.url.startswith(inside) or troubles.append(f"request: {r.url}"))
        page.goto(path.as_uri())
        page.evaluate("document.fonts.ready.then(() => new Promise(requestAnimationFrame))")
        return page

    yield open_page
    for page in pages:
        page.close()
    assert troubles == []


def title(page):
    return page.text_content("#detail-title")


def pixels(page, selector):
    return page.eval_on_selector(selector, "canvas => canvas.toDataURL()")


def lit(page, line):
    """Return the chips of a line as (text, percent shown)."""
    pair = "[chip.firstChild.textContent, chip.classList.contains('lit') ? chip.lastChild.textContent : '']"
    return page.eval_on_selector_all(f"#{line}-line .chip", f"chips => chips.map(chip => {pair})")


def merged(weights, rows, columns):
    return np.array([[weights[np.ix_(row, column)].sum(1).mean() for column in columns] for row in rows])


def test_the_page_shows_both_texts_and_all_heads(look, visit):
    page = visit(look)
    assert [text for text, _ in lit(page, "source")] == [
        "투",
        "빅",
        "아",
        ",",
        "나는",
        "너를",
        "많이",
        "사랑해",
        ".",
        "</s>",
    ]
    assert [text for text, _ in lit(page, "target")][:4] == ["To", "big", "s", ","]
    assert page.locator(".thumb").count() == 3 * (4 + 1)
    assert page.text_content("#model") == look.model
    assert "Attention is not explanation." in page.text_content("footer")
    assert title(page) == "Cross attention · mean of all 12 heads"


def test_hangul_comes_from_the_font_inside_the_page(look, visit):
    page = visit(look)
    faces = page.evaluate("[...document.fonts].map(face => [face.family, face.status])")
    assert faces == [["Heed glyphs", "loaded"]] or faces == [['"Heed glyphs"', "loaded"]]


def test_heads_say_what_they_do_as_it_was_measured(look, visit):
    decoder = np.tile(np.tri(len(look.inputs)) / np.arange(1, len(look.inputs) + 1)[:, None], (3, 4, 1, 1))
    decoder[0, 1] = np.eye(len(look.inputs), k=-1)
    decoder[0, 1, 0, 0] = 1
    page = visit(replace(look, decoder=decoder.astype(np.float32)), part="decoder")
    names = page.eval_on_selector_all(
        ".thumb", "all => all.map(one => one.ariaLabel).filter(name => name.includes(':'))"
    )
    assert names == ["Layer 1, head 2: previous token, 100%"] == page.locator("#roles button").all_text_contents()
    page.click("#roles button")
    assert title(page) == "Decoder self-attention · layer 1 · head 2 · previous token, 100%"
    page.click("#parts [data-name=cross]")
    roles = json.loads(to_json(look))["roles"]["cross"]
    assert page.locator("#roles button").count() == min(
        8, sum(own["role"] is not None for heads in roles for own in heads)
    )


def test_clicking_a_thumbnail_changes_the_detail(look, visit):
    page = visit(look)
    before = pixels(page, "#map")
    page.click('[data-layer="1"][data-head="2"]')
    assert title(page).startswith("Cross attention · layer 2 · head 3")
    assert pixels(page, "#map") != before
    assert page.get_attribute('[data-layer="1"][data-head="2"]', "aria-pressed") == "true"
    page.click("#all")
    assert pixels(page, "#map") == before


def test_a_page_opens_on_the_map_that_was_asked_for(look, visit):
    assert title(visit(look, part="decoder", layer=3, head=1)) == "Decoder self-attention · layer 3 · head 1"


def test_pointing_at_a_target_token_lights_what_it_looks_at_and_back(look, visit):
    page = visit(look, layer=1, head=2)
    page.hover("#target-line .chip >> nth=6")
    row = look.cross[0, 1, 6]
    shown = [share for _, share in lit(page, "source")]
    assert shown[int(row.argmax())] == f"{100 * row.max():.0f}%"
    assert all(share == "" for share, weight in zip(shown, row, strict=True) if weight < 0.02)
    assert "“you”" in page.text_content("#readout")
    page.hover("#source-line .chip >> nth=5")
    column = look.cross[0, 1, :, 5]
    assert lit(page, "target")[int(column.argmax())][1] == f"{100 * column.max():.0f}%"
    assert not any(share for _, share in lit(page, "source"))


def test_whole_words_sum_what_is_seen_and_average_who_sees(look, visit):
    page = visit(look, layer=2, head=1)
    page.check("#merged")
    together = merged(look.cross[1, 0], words(look.target), words(look.source))
    assert np.allclose(together.sum(1), 1, atol=1e-5)
    assert [text for text, _ in lit(page, "source")] == ["투빅아,", "나는", "너를", "많이", "사랑해.", "</s>"]
    for number in (0, 3, 5):
        page.hover(f"#target-line .chip >> nth={number}")
        best = int(together[number].argmax())
        assert int(lit(page, "source")[best][1].strip("%")) == pytest.approx(100 * together[number, best], abs=0.6)


def test_a_cell_tells_both_tokens_and_the_weight(look, visit):
    page = visit(look, layer=3, head=4)
    stage = page.locator("#map")
    box = stage.bounding_box()
    stage.hover(position={"x": box["width"] - 20, "y": box["height"] - 15})
    assert page.text_content("#readout") == f"“</s>” attends to “</s>”: {round(float(look.cross[2, 3, -1, -1]), 4):.3f}"


def test_arrow_keys_move_layer_and_head(look, visit):
    page = visit(look)
    page.keyboard.press("ArrowRight")
    assert "layer 1 · head 1" in title(page)
    page.focus('[data-layer="0"][data-head="0"]')
    for key, where in [
        ("ArrowDown", "layer 2 · head 1"),
        ("ArrowRight", "layer 2 · head 2"),
        ("ArrowUp", "layer 1 · head 2"),
        ("ArrowUp", "mean of all 12 heads"),
        ("ArrowUp", "mean of all 12 heads"),
    ]:
        page.keyboard.press(key)
        assert where in title(page)


def test_parts_and_views_are_switched(look, visit):
    page = visit(look)
    seen = {pixels(page, "#map")}
    for name in ("Encoder", "Decoder", "Lines", "Cross", "Heat map"):
        page.click(f"button:text-is('{name}')")
        seen.add(pixels(page, "#map"))
    assert len(seen) == 5
    page.click("button:text-is('Decoder')")
    assert [text for text, _ in lit(page, "target")][:2] == ["<s>", "To"]
    page.hover("#target-line .chip >> nth=3")
    assert not any(share for _, share in lit(page, "target")[4:]), "the decoder saw the future"


def test_steps_show_predictions_and_the_search_its_chosen_path(look, visit):
    page = visit(look)
    for _ in range(4):
        page.click("#next")
    assert page.text_content("#so-far-title") == "Step 5 of 11"
    assert page.text_content("#so-far") == "Tobigs, I"
    bars = page.eval_on_selector_all("#bars li", "bars => bars.map(bar => bar.firstChild.textContent)")
    assert bars == ["I", "my", "you", "er"], "what is below 0.5 % is hidden"
    assert page.text_content("#bars .written .token") == "I"
    chosen = page.eval_on_selector_all("#lattice li.chosen", "nodes => nodes.map(node => node.firstChild.textContent)")
    assert chosen == ["To", "big", "s", ",", "I", "love", "you", "so", "much", ".", "</s>"]
    assert page.locator("#lattice path.chosen").count() == 10
    assert page.text_content("#hypothesis") == "chosen: “Tobigs, I love you so much.”, the most likely of its step"
    assert page.locator("#lattice li").count() == sum(len(step) for step in look.search)


def test_parents_are_counted_among_those_that_were_kept(make, visit):
    small = make(["▁a", "</s>"], ["▁b", "▁c", "</s>"], 1, 1, ("a", "b c"))
    first = [Candidate("</s>", -0.1, -1, "ended"), Candidate("▁x", -0.2, -1, "kept"), Candidate("▁b", -0.3, -1, "kept")]
    second = [Candidate("▁c", -0.4, 0, "dropped"), Candidate("▁y", -0.5, 1, "ended"), Candidate("▁c", -0.6, 1, "kept")]
    page = visit(replace(small, search=[first, second, [Candidate("</s>", -0.7, 0, "ended")]]))
    assert page.text_content("#hypothesis") == "chosen: “b c”, the most likely of its step"
    page.hover("#lattice li >> nth=3")
    assert page.text_content("#hypothesis") == "dropped: “x c”, the most likely of its step"
    page.hover("#lattice li >> nth=5")
    assert page.text_content("#hypothesis") == "kept: “b c”, 82% as likely as the best of its step"
    shown = page.eval_on_selector_all("#lattice li .number", "nodes => nodes.map(node => node.textContent)")
    assert shown == ["100%", "90%", "82%", "100%", "90%", "82%", "100%"]


def test_without_a_search_its_section_is_not_there(look, visit):
    page = visit(replace(look, search=[], alignment=[]))
    assert not page.is_visible("#beam") and not page.is_visible("#outlines-label")


def test_exports_are_real_files(look, visit, tmp_path):
    page = visit(look, layer=1, head=1)
    for kind in ("png", "svg", "json"):
        with page.expect_download() as download:
            page.click(f"#save-{kind}")
        download.value.save_as(tmp_path / f"saved.{kind}")
    assert download.value.suggested_filename == "attention.json"
    with Image.open(tmp_path / "saved.png") as picture:
        assert picture.width > 800 and len(picture.convert("RGB").getcolors(1 << 24)) > 50
    text = (tmp_path / "saved.svg").read_text("utf-8")
    assert "사랑해" in "".join(ElementTree.fromstring(text).itertext()) and "font/woff" in text
    assert from_json((tmp_path / "saved.json").read_text("utf-8")).source == look.source


def test_dark_is_asked_of_the_system_and_switched_by_hand(look, visit):
    page = visit(look, scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(18, 23, 26)"
    dark = pixels(page, "#map")
    page.click("#theme")
    assert page.evaluate(background) == "rgb(246, 247, 245)"
    assert pixels(page, "#map") != dark


def test_a_phone_needs_no_sideways_scrolling(look, visit):
    page = visit(look, width=390)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.locator(".detail").bounding_box()["y"] < page.locator(".heads").bounding_box()["y"]


def test_no_text_can_become_script(look, visit, tmp_path):
    bad = "</title></script><img src=x onerror=window.hit=1><script>window.hit=1</script>{{script}}&lt;\u2028<!--"
    target = [bad, *look.target[1:]]
    page = visit(
        replace(
            look,
            source_text=f"{bad} b c d e",
            source=[bad, *look.source[1:]],
            target=target,
            inputs=["<s>", *target[:-1]],
            predictions=[[(bad, 0.5)], *look.predictions[1:]],
            search=[[Candidate(bad, -1.0, -1, "kept")]],
            model=bad,
        )
    )
    assert page.evaluate("window.hit") is None
    assert page.locator("img").count() == 0 and page.locator("script").count() == 3
    assert page.text_content("#model") == bad
    assert lit(page, "source")[0][0] == bad
    assert page.title().startswith("</title></script><img")
    assert json.loads(page.text_content("#look"))["model"] == bad


def test_a_change_of_the_script_is_not_run(look, browser, tmp_path):
    draw(look, tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text("utf-8").replace("</footer>", "</footer><script>window.hit = 1</script>")
    (tmp_path / "b.html").write_text(text, encoding="utf-8")
    page = browser.new_page()
    page.goto((tmp_path / "b.html").as_uri())
    assert page.evaluate("window.hit") is None and page.locator(".thumb").count() == 15
    page.close()
