"""The frame of the page: languages, light, width, errors, and what a machine can tell of accessibility."""

import re
import threading
from importlib.resources import files as resources
from urllib.parse import quote

from axe_playwright_python.base import AXE_SCRIPT

from heed.service import page as files
from tests.service.page.fake import MODELS
from tests.service.page.test_translate_view import TEXT, type_in

LACKING = """async () => {
  const { WORDS } = await import("./assets/words.js");
  const holes = (text) => [...new Set(text.match(/\\{\\d\\}/g))].sort().join();
  return Object.keys(WORDS).filter((key) => WORDS[key].length !== 2 || WORDS[key].includes("") || holes(WORDS[key][0]) !== holes(WORDS[key][1]));
}"""


def test_the_page_speaks_korean_and_remembers(visit):
    page = visit()
    type_in(page, TEXT)
    page.click("#locale")
    assert page.text_content("nav [aria-current]") == "번역" and page.evaluate("document.documentElement.lang") == "ko"
    assert page.text_content("#detected").startswith("감지된 언어: 한국어")
    page.reload()
    page.wait_for_selector("nav [aria-current]")
    assert page.title() == "번역 · Heed"
    assert page.evaluate(LACKING) == [], "every word is there in both languages"


def test_dark_is_asked_of_the_system_and_switched_by_hand(visit):
    page = visit(scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(18, 23, 26)"
    page.click("#theme")
    assert page.evaluate(background) == "rgb(246, 247, 245)"
    page.reload()
    assert page.evaluate(background) == "rgb(246, 247, 245)"


def test_narrow_screens_need_no_sideways_scrolling(visit):
    page = visit(width=320)
    type_in(page, TEXT)
    page.click("#target .word >> nth=1")
    page.wait_for_selector(".choice, .popover .muted.small")
    assert within(page, ".popover")
    page.keyboard.press("Escape")
    for view in ("translate", "look", "runs"):
        page.set_viewport_size({"width": 320, "height": 700})
        page.click(f"nav [data-view={view}]")
        page.wait_for_selector({"translate": "#target .word", "look": ".query-table", "runs": ".chart"}[view])
        if view == "look":
            page.click("#tour-start")
            for _ in range(10):
                page.keyboard.press("Enter")
            assert within(page, ".tour")
            page.wait_for_selector(".stations a[data-to=Steps][aria-current]")
            assert within(page, ".stations a[aria-current]"), "the station in sight is seen among the stations"
            page.keyboard.press("Escape")
        for width in (320, 390, 768):
            page.set_viewport_size({"width": width, "height": 700})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{view} at {width}"


def within(page, selector):
    """Whether all of a thing is between the sides of the window."""
    box, wide = page.locator(selector).bounding_box(), page.evaluate("document.documentElement.clientWidth")
    return box["x"] >= 0 and box["x"] + box["width"] <= wide


def test_all_can_be_reached_by_tab(visit):
    page = visit()
    type_in(page, TEXT)
    page.evaluate("document.activeElement.blur()")
    reached = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "document.activeElement.id || document.activeElement.className || document.activeElement.dataset.view || document.activeElement.tagName"
            )
        )
    assert {
        "skip",
        "translate",
        "locale",
        "theme",
        "mode-text",
        "from",
        "swap",
        "to",
        "source",
        "clear",
        "word",
        "copy",
    } <= {name.split(" ")[0] for name in reached}


def test_axe_finds_no_serious_fault_in_light_and_dark(visit):
    page = visit(width=1000)
    page.evaluate(AXE_SCRIPT)
    type_in(page, TEXT)
    page.click("#target .word >> nth=0")
    page.wait_for_selector(".choice, .popover .muted.small")
    faults = _faults(page, "body")
    page.keyboard.press("Escape")
    for name in ("glossary", "history", "code"):
        page.click(f"#tab-{name}")
        faults += _faults(page, f"#drawer-{name}")
    page.click("#mode-file")
    faults += _faults(page, "#file-panes")
    page.evaluate(
        "document.querySelector('#look-beam').value = 2"
    )  # a tree of the same kinds of nodes, and fewer of them
    page.click("nav [data-view=look]")
    page.wait_for_selector(".query-table")
    faults += _faults(page, "#main")
    page.click("nav [data-view=runs]")
    page.wait_for_selector(".sample")
    faults += _faults(page, "#main")
    assert faults == []


def _faults(page, where):
    """All that axe knows; in the dark, where all but the colours is the same, what it knows of colours."""
    colours = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
    found = []
    for scheme, options in (("dark", colours), ("light", {})):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        asked = [where, {"resultTypes": ["violations"], **options}]
        violations = page.evaluate("asked => axe.run(...asked).then((found) => found.violations)", asked)
        found += [
            f"{scheme}, {one['id']}: {one['help']} {[node['target'] for node in one['nodes']][:3]}"
            for one in violations
            if one["impact"] in ("serious", "critical")
        ]
    return found


def answer(text, source):
    sentence = {
        "source": {"text": source, "start": 0, "end": len(source)}, "target": {"text": text, "start": 0, "end": len(text)},
        "score": -1.0, "tokens": [], "alignment": [], "nbest": [{"text": text, "score": -1.0}, {"text": text, "score": -1.5}],
    }  # fmt: skip
    own = {
        "text": text,
        "source": "ko",
        "target": "en",
        "detected": None,
        "models": ["ko-en"],
        "score": -1.0,
        "sentences": [sentence],
    }
    return {"translations": [own], "seconds": 0.1}


def test_the_last_text_wins_and_old_requests_are_given_up(visit, fake):
    go_on = threading.Event()

    def slow(body):
        go_on.wait(300 if body["text"] == "하나" else 0)
        return answer(f"<{body['text']}>", body["text"])

    fake.answers["/v1/translate"] = slow
    page = visit(url=fake.url)
    with page.expect_request("**/v1/translate") as first:
        page.fill("#source", "하나")
    page.wait_for_selector("#progress:not([hidden])", state="attached")
    with page.expect_event("requestfailed", lambda request: request == first.value) as given_up:
        page.fill("#source", "하나 둘")
    page.wait_for_selector("#target .word")
    go_on.set()
    assert page.inner_text("#target") == "<하나 둘>" and given_up.value.failure == "net::ERR_ABORTED"
    page.wait_for_selector("#progress", state="hidden")


def test_text_never_becomes_markup(visit, fake):
    bad = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>'
    fake.answers["/v1/translate"] = lambda body: answer(bad, body["text"])
    page = visit(url=fake.url)
    type_in(page, bad)
    assert page.inner_text("#target") == bad and page.locator("main img").count() == 0
    assert page.locator(".nbest-one").count() == 1, "what was cut in two ways is one text"
    assert page.evaluate("window.hit") is None


def test_an_error_is_said_in_its_place_and_so_is_a_service_that_is_gone(visit, fake):
    fake.answers["/v1/translate"] = lambda body: {"status": 400, "error": "no model translates ko to xx"}
    page = visit(url=fake.url, quiet=False)  # a browser logs an answer of 400 itself
    page.fill("#source", TEXT)
    page.wait_for_selector("#target .error")
    assert page.inner_text("#target") == "no model translates ko to xx"
    page.route("**/v1/**", lambda route: route.abort())
    page.fill("#source", TEXT + TEXT)
    page.wait_for_function("() => document.querySelector('#target').innerText.includes('Is heed serve still running?')")
    page.unroute_all()
    fake.answers["/v1/translate"] = lambda body: answer("there again", body["text"])
    type_in(page, TEXT)
    assert page.inner_text("#target") == "there again"


def test_the_page_names_no_other_host():
    space = "http://www.w3.org/2000/svg"
    for one in resources("heed.service.page").iterdir():
        if one.suffix in (".html", ".css", ".js", ".svg"):
            text = files.asset(one.name)[0].decode().replace(space, "")
            assert not re.search(r"//[\w-]+\.\w|@import", text), one.name


def test_nothing_but_the_page_is_given(service):
    import httpx

    for name in ("__init__.py", "..%2f__init__.py", "words.pyc", ""):
        assert httpx.get(f"{service.url}/assets/{name}").status_code == 404
    answer = httpx.get(f"{service.url}/")
    assert answer.headers["content-security-policy"].startswith("default-src 'self'") and "<script>" not in answer.text


def test_a_key_is_asked_for_and_sent(visit, fake):
    def guarded(body):
        known = body.get("api_key") == "secret"
        return answer("open", body["text"]) if known else {"status": 403, "error": "this key is not known"}

    fake.answers["/v1/models"] = lambda body: {**MODELS, "keys": True}
    fake.answers["/v1/translate"] = guarded
    page = visit(f"#translate?from=ko&to=en&text={quote(TEXT)}", url=fake.url, quiet=False)
    page.wait_for_selector("#target .error")
    for key in ("wrong", "secret"):
        page.fill("#key", key)
        page.click("#trouble button")
        page.wait_for_selector(".word" if key == "secret" else "#target .error")
    assert page.inner_text("#target") == "open" and not page.is_visible("#trouble")
