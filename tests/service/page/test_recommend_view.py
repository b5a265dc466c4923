"""The view of recommenders: items are picked, what comes next is seen, and what in the history it goes by."""

import json
from urllib.parse import urlencode

import pytest
from axe_playwright_python.base import AXE_SCRIPT

from heed.service.http.recommenders import ServedRecommender
from heed.service.http.service import Service
from tests.service.http.conftest import RunningService
from tests.service.page.test_frame import _faults, within
from tests.service.recommenders import ITEMS, USERS, recommender


@pytest.fixture(scope="module")
def shop():
    """The same model as the one that is served, which only its own thread may use."""
    return recommender()


@pytest.fixture(scope="module")
def recommenders():
    running = RunningService(
        Service(
            [
                ServedRecommender("shop", recommender()),
                ServedRecommender("masked", recommender("bert4rec", with_histories=False)),
            ]
        )
    )
    yield running
    running.stop()


@pytest.fixture
def start(visit, recommenders):
    def open_view(items=(), **more):
        address = f"#recommend?{urlencode({'model': 'shop', 'items': chr(10).join(items)})}" if items else ""
        page = visit(address, url=recommenders.url + "/", **more)
        if items:
            page.wait_for_selector(".recommended-one")
        return page

    return open_view


def texts(page, selector):
    return page.eval_on_selector_all(selector, "all => all.map((one) => one.textContent)")


def expected(shop, history, exclude=True):
    return shop.recommend([history], 10, exclude_seen=exclude)[0]


def shown(page, shop, history, exclude=True):
    """Waits until what is recommended after a history is seen."""
    found = expected(shop, history, exclude)
    page.wait_for_function(
        "names => JSON.stringify([...document.querySelectorAll('.recommended .choice-word')].map((one) => one.textContent)) === names",
        arg=json.dumps([one.item for one in found], ensure_ascii=False, separators=(",", ":")),
    )
    scores = [float(text.replace("−", "-")) for text in texts(page, ".recommended .choice-share")]
    assert scores == pytest.approx([one.score for one in found], abs=6e-3)
    assert texts(page, ".picked-name") == history


def test_items_are_searched_for_and_picked_and_what_comes_next_is_seen_at_once(start, shop):
    page = start()
    assert page.text_content("nav [aria-current]") == "Recommend" and not page.is_visible("nav [data-view=translate]")
    assert page.inner_text("#recommend-out") == "Pick items to see recommendations here."
    page.focus("#recommend-input")
    page.wait_for_selector("[role=option]")
    assert texts(page, "[role=option]") == ITEMS, "frequent items are suggested before anything is typed"
    page.fill("#recommend-input", "tea")
    page.wait_for_function("() => document.querySelectorAll('[role=option]').length === 3")
    assert texts(page, "[role=option]") == ["tea", "teapot", "green tea"]
    page.keyboard.press("ArrowDown")
    assert texts(page, "[role=option][aria-selected=true]") == ["teapot"]
    page.keyboard.press("Enter")
    shown(page, shop, ["teapot"])
    assert page.input_value("#recommend-input") == "" and page.is_hidden("#recommend-options")
    page.fill("#recommend-input", "사과 ")
    page.click("[role=option]:text-is('사과')")
    shown(page, shop, ["teapot", "사과"])
    page.click(".recommended-one >> nth=1 >> .small-x")
    history = ["teapot", "사과", expected(shop, ["teapot", "사과"])[1].item]
    shown(page, shop, history)
    page.click(".picked-one >> nth=1 >> button")
    shown(page, shop, [history[0], history[2]])
    page.uncheck("#recommend-unseen")
    shown(page, shop, [history[0], history[2]], exclude=False)
    page.focus("#recommend-input")
    page.keyboard.press("Backspace")
    shown(page, shop, history[:1], exclude=False)
    page.click("#recommend-clear")
    page.wait_for_selector("#recommend-out > .muted")
    assert page.locator(".picked-one").count() == 0 and page.is_disabled("#recommend-clear")
    page.fill("#recommend-input", "zzz")
    page.wait_for_selector(".item-note:text('No item has “zzz” in its name.')")
    page.keyboard.press("Escape")
    assert page.is_hidden(".item-box")


def number(text):
    return float(text.replace("−", "-"))


def test_a_recommendation_lights_what_it_goes_by(start, shop):
    history = ["tea", "bread", "soap", "Milk"]
    page = start(history)
    assert page.is_hidden("#recommend-options"), "no suggestions over a history that came with the link"
    found = expected(shop, history)
    ids = shop.items.encode
    trace = shop.trace(ids(history), ids([one.item for one in found]))
    attention = [f"{round(100 * float(own))}%" for own in trace.attention.mean(dim=(0, 1))]
    assert texts(page, ".picked-number") == attention and "Attention" in page.text_content("#recommend-goes-by")
    for place in (0, 3):
        page.hover(f".recommended-one >> nth={place} >> .choice")
        influence = trace.influence[place].tolist()
        assert list(map(number, texts(page, ".picked-number"))) == pytest.approx(influence, abs=6e-3)
        marks = page.eval_on_selector_all(
            ".picked-one", "all => all.map((one) => one.classList.contains('for') - one.classList.contains('against'))"
        )
        assert marks == [1 if own > 0 else -1 for own in influence]
        assert (
            page.text_content("#recommend-goes-by")
            == f"How much the score of “{found[place].item}” drops without each item."
        )
    page.click(".recommended-one >> nth=3 >> .choice")
    page.hover("#recommend-about")
    assert page.get_attribute(".recommended-one >> nth=3 >> .choice", "aria-pressed") == "true"
    assert number(texts(page, ".picked-number")[0]) == pytest.approx(float(trace.influence[3, 0]), abs=6e-3)
    page.click(".recommended-one >> nth=3 >> .choice")
    page.evaluate("document.activeElement.blur()")
    page.hover("#recommend-about")
    assert texts(page, ".picked-number") == attention


def test_a_user_of_the_log_has_a_history_and_a_link_is_a_link(start, shop, recommenders, visit):
    page = start(["tea"])
    page.fill("#recommend-user", "bob")
    page.keyboard.press("Enter")
    history = [ITEMS[i] for i in USERS["bob"]]
    shown(page, shop, history)
    address = page.evaluate("location.hash")
    other = visit(address, url=recommenders.url + "/")
    shown(other, shop, history)
    other.select_option("#recommend-model", "masked")
    assert other.is_hidden("#recommend-user-form") and other.locator(".picked-one").count() == 0


def test_what_is_wrong_is_said_in_its_place(start):
    page = start(quiet=False)
    page.fill("#recommend-user", "eve")
    page.click("#recommend-user-form button")
    page.wait_for_selector("#recommend-out .error")
    assert "'eve' is not one of the 3 users" in page.text_content("#recommend-out .error")
    page.evaluate("location.hash = '#recommend?items=unknown'")
    page.wait_for_selector("#recommend-out .error:text('unknown')")
    assert texts(page, ".picked-name") == ["unknown"], "it can be removed"
    page.route("**/v1/items*", lambda route: route.abort())
    page.focus("#recommend-input")
    page.wait_for_selector(".item-note.error")
    page.route("**/v1/recommend", lambda route: route.abort())
    page.click(".picked-one button")
    page.wait_for_selector("#recommend-out > .muted")
    page.evaluate("location.hash = '#recommend?items=tea'")
    page.wait_for_selector("#recommend-out .error:text('The service is not responding')")


def test_while_it_is_asked_the_old_answer_is_pale_and_the_last_one_wins(start, shop):
    page = start(["tea"])
    held = []
    page.route("**/v1/recommend", lambda route: held.append(route) if not held else route.continue_())
    page.click(".recommended-one >> nth=0 >> .small-x")
    page.wait_for_selector("#recommend-out.stale")
    assert page.text_content("#recommend-status") == "Loading …"
    page.click("#recommend-clear")
    page.wait_for_selector("#recommend-out:not(.stale) > .muted")
    assert page.locator(".recommended-one").count() == 0


def test_it_is_korean_narrow_and_without_serious_faults_in_light_and_dark(start, shop):
    page = start(["tea", "사과 주스", "bread"], width=320)
    page.evaluate(AXE_SCRIPT)
    faults = []
    for _ in range(2):
        page.click(".recommended-one >> nth=0 >> .choice")
        faults += _faults(page, "#view-recommend")
        page.click("#theme")
    page.focus("#recommend-input")
    page.wait_for_selector("[role=option]")
    faults += _faults(page, "#view-recommend")
    assert faults == [] and page.evaluate("document.documentElement.scrollWidth") <= 320
    page.click("#locale")
    assert page.text_content("nav [aria-current]") == "추천" and "어텐션" in page.text_content("#recommend-goes-by")
    assert within(page, "#recommend-out")
