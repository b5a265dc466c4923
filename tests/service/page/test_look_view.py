"""Looking inside on the page."""

import json
import re
import xml.etree.ElementTree as ElementTree
from urllib.parse import quote

import httpx
import numpy as np
import pytest

from heed.lab.attention import from_json

TEXT = "나는 학생이에요."
ADDRESS = f"#look?from=ko&to=en&text={quote(TEXT)}"


@pytest.fixture(scope="session")
def seen(service):
    """What the service tells of the sentence."""
    return httpx.post(
        f"{service.url}/v1/look", json={"text": TEXT, "source": "ko", "target": "en", "beam": 4}, timeout=120
    ).json()


@pytest.fixture
def inside(visit):
    page = visit(ADDRESS)
    page.wait_for_selector(".query-table")
    return page


def pixels(page, selector):
    return page.eval_on_selector(selector, "canvas => canvas.toDataURL()")


def texts(page, selector):
    return page.eval_on_selector_all(selector, "nodes => nodes.map(node => node.textContent)")


def test_the_walk_has_all_its_stations_and_a_tour_through_them(inside, seen):
    assert texts(inside, ".station h2") == [
        "Tokens", "Embeddings", "Positions", "Layers", "Attention", "One query", "Mixing the heads", "Residual",
        "Layer norm", "Feed-forward", "Probabilities", "Search",
    ]  # fmt: skip
    assert texts(inside, ".token-line >> nth=0 >> .chip-text") == [token.replace("▁", "·") for token in seen["source"]]
    assert "Attention is not explanation." in inside.text_content(".note")
    before = pixels(inside, "#station-Layers canvas >> nth=0")
    inside.fill("#layer", "1")
    assert pixels(inside, "#station-Layers canvas >> nth=0") != before
    inside.hover("#station-Embeddings canvas >> nth=0")
    assert "number" in inside.text_content("#unit-embeddings")
    inside.click("#tour-start")
    for number in range(1, 13):
        assert inside.text_content(".tour .number-text") == f"{number} of 12"
        inside.keyboard.press("Enter")
    assert inside.locator(".tour").count() == 0


def test_the_map_leads_to_the_parts_of_a_layer_and_lights_where_one_is(inside, service):
    lit = "() => [...document.querySelectorAll('.map .lit')].map(node => node.dataset.station)"
    inside.click(".map .box[data-station=Norm] >> nth=0")
    inside.wait_for_function(f"() => ({lit})().every(name => name === 'Norm') && ({lit})().length === 5")
    inside.wait_for_selector("#residual-body canvas")
    inside.select_option("#layer-part", "decoder")
    inside.wait_for_selector("#residual-body tbody tr >> nth=2")  # self-attention, cross attention, feed-forward
    token = {"part": "decoder", "layer": 0, "row": 0}
    body = {"text": TEXT, "source": "ko", "target": "en", "beam": 4, "token": token}
    found = httpx.post(f"{service.url}/v1/look/numbers", json=body, timeout=120).json()["token"]
    steps = ("before", "added", "sum", "after")
    shown = [f"{own['norms'][step]:.3f}" for own in found for step in steps]
    assert texts(inside, "#residual-body tbody td") == shown
    assert len(texts(inside, "#mixing-body tbody tr")) == sum(len(own.get("heads", ())) for own in found)
    assert f"{found[2]['hidden']['active']} of {found[2]['hidden']['size']}" in inside.text_content(
        "#feed-forward-body"
    )


def test_a_head_is_opened_and_its_values_read(inside, seen):
    assert inside.locator(".thumb").count() == 2 * (2 + 1)
    inside.click("#all")
    before = pixels(inside, "#map")
    inside.click('[data-layer="1"][data-head="0"]')
    assert inside.text_content("#detail-title").startswith("Cross attention · layer 2 · head 1")
    assert pixels(inside, "#map") != before
    inside.hover("#map")
    row, column = inside.evaluate(
        "async () => { const { chosen } = await import('./assets/look-data.js'); return [chosen.hover.row, chosen.hover.column]; }"
    )
    assert inside.text_content("#tip") == f"{seen['cross'][1][0][row][column]:.3f}"
    assert inside.text_content("#readout").endswith(inside.text_content("#tip"))
    inside.mouse.move(1, 1)
    inside.focus("#map")
    inside.keyboard.press("ArrowDown")
    inside.keyboard.press("ArrowRight")
    value = seen["cross"][1][0][0][1]
    assert inside.text_content("#readout").endswith(f": {value:.3f}")


def test_parts_lines_words_marks_threshold_and_mask_change_the_map(inside):
    shown = {pixels(inside, "#map")}
    for click in ("[data-name=encoder]", "[data-name=decoder]", "#mask", "[data-name=lines]", "[data-name=cross]"):
        inside.click(click)
        shown.add(pixels(inside, "#map"))
    inside.click("[data-name=map]")
    for box in ("#merged", "#no-special"):
        inside.check(box)
        shown.add(pixels(inside, "#map"))
    inside.fill("#least", "0.5")
    shown.add(pixels(inside, "#map"))
    assert len(shown) == 9
    for box in ("#merged", "#no-special"):
        inside.uncheck(box)
    inside.click("[data-name=decoder]")
    inside.focus("#map")
    inside.keyboard.press("ArrowDown")
    inside.keyboard.press("ArrowRight")
    assert "it comes later" in inside.text_content("#readout")
    inside.wait_for_selector(".query-table .closed")
    assert texts(inside, ".query-table .closed .weight")[0] == "masked"


def test_one_query_is_computed_before_your_eyes(inside, seen):
    inside.click('[data-layer="0"][data-head="1"]')
    inside.select_option("#query-row", "1")
    first = f"{seen['cross'][0][1][1][0]:.3f}"
    inside.wait_for_function("first => document.querySelector('.query-table .weight').textContent === first", arg=first)
    assert inside.text_content("#query-where") == "Cross attention, layer 1, head 2"
    shown = [float(text) for text in texts(inside, ".query-table tbody .weight")]
    assert np.allclose(shown, seen["cross"][0][1][1], atol=6e-4) and "sum 1.000" in inside.text_content("tfoot")
    scores = np.array([float(text) for text in texts(inside, ".query-table tbody td:nth-child(3)")])
    assert np.allclose(np.exp(scores) / np.exp(scores).sum(), shown, atol=0.01)
    inside.hover("#query-body canvas >> nth=1")
    assert "number" in inside.text_content("#unit-query")
    inside.check("#as-numbers")
    q, k, v, mixed = (numbers(inside, place) for place in range(4))
    assert np.allclose(k @ q[0] / np.sqrt(q.shape[1]), scores, atol=0.1)
    assert np.allclose(np.array(shown) @ v, mixed[0], atol=0.05)


def numbers(page, place):
    """A table of numbers as it can be read."""
    rows = page.locator(".figures").nth(place).locator("tr").all()
    return np.array([[float(cell) for cell in row.locator("td").all_text_contents()] for row in rows])


def test_the_search_is_stepped_through_and_drawn_from(inside, seen):
    assert inside.locator("#lattice li").count() == sum(len(step) for step in seen["search"])
    visible = "all => all.filter(node => getComputedStyle(node).visibility === 'visible').length"
    assert inside.eval_on_selector_all("#lattice li", visible) == len(seen["search"][0])
    inside.click("#next")
    assert inside.text_content("#so-far-title") == f"Step 2 of {len(seen['target'])}"
    assert inside.eval_on_selector_all("#lattice li", visible) == sum(len(step) for step in seen["search"][:2])
    assert inside.text_content("#hypothesis").startswith(f"chosen: “{seen['target_text']}”")
    written, likely = seen["target"][1], seen["predictions"][1]
    shown = [token.removeprefix("▁") or "␣" for token, p in likely if p >= 0.005 or token == written]
    assert texts(inside, "#bars .token") == shown
    p, other = np.exp(seen["scores"][1]), next(one for one in likely if one[0] != written)
    assert f"{max(p / other[1], other[1] / p):.1f} times as likely" in inside.text_content("#step-score")
    heights = inside.eval_on_selector_all("#strip .bar", "all => all.map(node => node.getBoundingClientRect().height)")
    assert np.allclose(heights, [max(2, 64 * np.exp(score)) for score in seen["scores"]], atol=0.5)
    while inside.is_enabled("#tree-next"):
        inside.click("#tree-next")
    assert inside.text_content("#so-far-title") == f"Step {len(seen['target'])} of {len(seen['target'])}"
    assert inside.eval_on_selector_all("#lattice li", visible) == sum(len(step) for step in seen["search"])
    inside.click("#strip button >> nth=0")
    own = texts(inside, "#bars .number")
    inside.fill("#draw-temperature", "0.5")
    inside.wait_for_function("() => document.querySelector('#drawn').textContent")
    assert texts(inside, "#bars .number")[0] != own[0]
    inside.fill("#draw-top_k", "2")
    inside.wait_for_function("() => document.querySelector('#drawn').textContent.includes(' 2 tokens')")
    assert texts(inside, "#bars .number")[2:4] == ["0%", "0%"]


def test_what_is_saved_can_be_read(inside, seen, tmp_path):
    for kind in ("png", "svg", "json"):
        with inside.expect_download() as download:
            inside.click(f"#save-{kind}")
        download.value.save_as(tmp_path / f"saved.{kind}")
    assert (tmp_path / "saved.png").read_bytes().startswith(b"\x89PNG")
    words = "".join(ElementTree.fromstring((tmp_path / "saved.svg").read_text("utf-8")).itertext())
    assert "".join(token.removeprefix("▁") or "␣" for token in seen["source"]) in words
    assert from_json((tmp_path / "saved.json").read_text("utf-8")).source == seen["source"]


def test_a_recurrent_model_shows_its_alignment_and_its_states(visit):
    page = visit("#look?from=en&to=de&text=I am a student.")
    page.wait_for_selector("#state-maps canvas")
    assert texts(page, ".station h2") == [
        "Tokens", "Embeddings", "Hidden states", "Attention", "Probabilities", "Search",
    ]  # fmt: skip
    assert page.is_hidden("#grid") and page.is_visible("#map"), "one map needs no choice"
    page.hover("#state-maps canvas >> nth=0")
    assert page.text_content("#state-readout").startswith("After “")
    own = texts(page, "#bars .number")
    page.fill("#draw-temperature", "0.5")
    page.wait_for_function("() => document.querySelector('#drawn').textContent")
    assert texts(page, "#bars .number") != own
    page.click("#tour-start")
    for _ in range(6):
        assert page.text_content(".tour p")
        page.keyboard.press("Enter")
    assert page.locator(".tour").count() == 0


def test_each_model_can_be_looked_into(visit):
    """What was translated is looked into; of a way through another language, the first model."""
    page = visit("#translate?from=de&to=ko&text=Ich bin da.")
    page.wait_for_selector("#see:not([disabled])")
    page.click("nav [data-view=look]")
    page.wait_for_selector("#state-maps canvas")
    assert page.input_value("#look-text") == "Ich bin da."
    assert (page.input_value("#look-from"), page.input_value("#look-to")) == ("de", "en")
    assert page.text_content("#look-status").startswith("de-en · 1+1 layers")
    assert "This model has no attention" in page.text_content("#station-Heads") and page.locator("#map").count() == 0
    page.select_option("#look-from", "en")
    page.select_option("#look-to", "ko")
    page.wait_for_selector(".query-table")
    assert page.text_content("#look-status").startswith("en-ko · 1+2 layers") and "from=en&to=ko" in page.url


def test_a_row_of_the_map_is_taken_marked_and_shown(inside, seen):
    inside.click('[data-layer="0"][data-head="1"]')
    plain = pixels(inside, "#map")
    box = inside.locator("#map").bounding_box()
    inside.mouse.click(box["x"] + box["width"] - 12, box["y"] + box["height"] - 12)  # in the last row
    inside.mouse.move(1, 1)
    last = len(seen["target"]) - 1
    inside.wait_for_function("last => document.querySelector('#query-row').value === String(last)", arg=last)
    inside.wait_for_function("() => document.activeElement.id === 'station-Query'")
    assert pixels(inside, "#map") != plain
    first = f"{seen['cross'][0][1][last][0]:.3f}"
    inside.wait_for_function("first => document.querySelector('.query-table .weight').textContent === first", arg=first)


def test_it_begins_at_the_head_that_aligns_best_and_heads_are_named_by_what_they_do(visit, seen):
    roles = json.loads(json.dumps(seen["roles"]))
    roles["cross"][1][0] = {"role": "aligned", "share": 0.934, "aligned": 0.934}
    roles["encoder"][0][1] = {"role": "previous", "share": 0.6, "aligned": 0.0}
    page = visit()
    page.route("**/v1/look", lambda route: route.fulfill(json={**seen, "roles": roles}))
    page.goto(f"{page.url.partition('#')[0]}{ADDRESS}")
    page.wait_for_selector(".query-table")
    assert page.text_content("#detail-title") == "Cross attention · layer 2 · head 1 · aligned word, 93%"
    assert page.get_attribute('[data-layer="1"][data-head="0"]', "title") == "Layer 2, head 1: aligned word, 93%"
    assert page.get_attribute('[data-layer="1"][data-head="0"]', "aria-pressed") == "true"
    page.click("[data-name=encoder]")
    page.click('[aria-label="Layer 1, head 2: previous token, 60%"]')
    assert page.text_content("#detail-title").endswith("head 2 · previous token, 60%")


def test_what_is_unlikely_is_hidden(visit, seen):
    token = seen["target"][0]
    likely = [["▁one", 0.9], ["▁few", 0.006], ["▁rare", 0.0049], [token, 0.001]]
    found = {
        **seen,
        "predictions": [likely, *seen["predictions"][1:]],
        "scores": [float(np.log(0.001)), *seen["scores"][1:]],
    }
    page = visit()
    page.route("**/v1/look", lambda route: route.fulfill(json=found))
    page.goto(f"{page.url.partition('#')[0]}{ADDRESS}")
    page.wait_for_selector("#bars li")
    assert texts(page, "#bars .token") == ["one", "few", token.removeprefix("▁")]
    assert page.text_content("#bars .rest") == "All others: less than 0.5% each"
    assert page.text_content("#step-score") == "<1%: “one” was 900 times as likely"
    assert page.get_attribute("#step-score", "title").startswith("log probability -6.908")


def test_the_query_of_a_mean_has_its_weights_and_bars_are_of_one(inside, seen):
    inside.click("#all")
    inside.wait_for_function("() => document.querySelector('#query-where').textContent.includes('mean of all')")
    mean = np.mean([head for layer in seen["cross"] for head in layer], axis=0)[0]
    assert np.allclose([float(text) for text in texts(inside, ".query-table tbody .weight")], mean, atol=6e-4)
    assert "mean of all" in inside.text_content("#query-where") and "no query of its own" in inside.text_content(
        "#query-body"
    )
    widths = inside.eval_on_selector_all(".query-table .bar", "all => all.map(node => node.style.width)")
    assert np.allclose([float(width.rstrip("%")) for width in widths], 100 * mean, atol=0.1)


def test_both_scores_of_a_sentence_are_told_with_the_length_penalty(inside, service, seen):
    asked = {"text": TEXT, "source": "ko", "target": "en", "beam": 4}
    one = httpx.post(f"{service.url}/v1/translate", json=asked, timeout=120).json()["translations"][0]
    shown = inside.text_content("#whole-score").replace("−", "-")
    assert f"log probability {sum(seen['scores']):.3f}, divided by" in shown
    assert f"{np.exp(np.mean(seen['scores'])):.0%} a token on average" in shown.replace("<1%", "0%")
    assert f"is the score {one['score']:.3f} by which" in shown
    logp, penalty, score = (float(own) for own in re.findall(r"-?\d+\.\d+", shown))
    assert abs(logp / penalty - score) < 5e-3  # three decimals of each


def test_the_tour_does_not_cover_what_it_explains(inside):
    inside.click("#tour-start")
    for _ in range(6):
        inside.click(".tour .strong")
    assert inside.text_content(".tour h3") == "Mixing the heads"
    inside.click(".tour .quiet >> text=Back")
    assert "project to q, k and v" in inside.text_content(".tour p")
    tour, heading = (inside.locator(name).bounding_box() for name in (".tour", "#title-Query"))
    assert heading["y"] + heading["height"] < tour["y"]
    inside.keyboard.press("Escape")
    assert not inside.eval_on_selector("body", "node => node.classList.contains('touring')")
