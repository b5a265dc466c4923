"""Writing with a language model on the page, as a person would."""

from urllib.parse import quote

import pytest
from axe_playwright_python.base import AXE_SCRIPT

from heed.service.http.language_models import ServedLanguageModel
from heed.service.http.service import Service
from tests.service.http.conftest import RunningService
from tests.service.language_models import ctrl, gpt2, rnn
from tests.service.page.test_frame import _faults, within

HOW = {"temperature": 0.7, "top_p": 0.95, "seed": 1}
OPEN = "#write?model={}&text=" + quote("the cat")


TYPE = """(text) => {
  const field = document.querySelector("#write-text");
  field.value = text;
  field.dispatchEvent(new Event("input"));
  return document.querySelector(".continuation").classList.contains("stale");
}"""


@pytest.fixture(scope="module")
def models():
    return {"gpt2": gpt2(), "ctrl": ctrl(), "rnn": rnn()}


@pytest.fixture(scope="module")
def writer(models):
    """A service without translators."""
    running = RunningService(Service([ServedLanguageModel(*each) for each in models.items()]))
    yield running
    running.stop()


@pytest.fixture
def start(visit, writer):
    return lambda address="", **more: visit(address, url=writer.url + "/", **more)


def done(page, columns=1):
    page.wait_for_function(
        """(count) => { const all = [...document.querySelectorAll('.continuation')];
          return all.length === count && all.every((one) => one.querySelector('.tok') && !one.hasAttribute('aria-busy') && !one.classList.contains('stale')); }""",
        arg=columns,
    )


def texts(page):
    return page.eval_on_selector_all(
        ".continuation",
        "all => all.map(one => [...one.children].map(own => own.textContent.replaceAll('\u23ce', '')).join(''))",
    )


def test_the_text_goes_on_as_one_types_and_a_text_that_is_gone_is_given_up(start, models):
    page = start()
    assert page.text_content("nav [aria-current]") == "Write" and not page.is_visible("nav [data-view=translate]")
    with page.expect_request("**/v1/completions") as first:
        page.fill("#write-text", "the")
    assert page.evaluate(TYPE, "the cat"), "at once, before it is asked for"
    done(page)
    assert texts(page) == [models["gpt2"].generate("the cat", length=40, **HOW)[0].text]
    assert first.value.post_data_json["prompt"] == "the"
    page.click("#write-again")
    done(page)
    assert texts(page) == [models["gpt2"].generate("the cat", length=40, **{**HOW, "seed": 2})[0].text]
    page.press("#write-text", "Control+Enter")
    assert page.input_value("#write-text").startswith("the cat")
    page.click("#write-clear")
    assert page.inner_text(".continuation") == "The continuation appears here"


def test_another_token_turns_the_text(start, models):
    page, model = start(OPEN.format("gpt2")), models["gpt2"]
    done(page)
    token = page.locator('.tok[data-index="3"]')
    before = page.evaluate("[...document.querySelectorAll('.tok')].slice(0, 3).map((one) => one.textContent).join('')")
    token.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".choice")
    assert page.locator(".choice").count() >= 8 and page.locator(".choice.current").count() == 1
    ids = [*model.encode("the cat" + before.replace("\u23ce", ""))]
    best = model.trace(model.decode(ids), likely=8).predictions[-1]
    shares = page.eval_on_selector_all(".choice-share", "all => all.map((one) => one.textContent)")
    assert shares[0] == f"{round(100 * best[0][1])}%", "the likeliest comes first"
    other = page.locator(".choice:not(.current) .choice-word").first
    chosen = other.text_content().replace("\u2423", " ")
    other.click()
    done(page)
    assert page.text_content(".tok.kept").startswith("\u23ce" if "\u23ce" in chosen else chosen)
    page.wait_for_function("() => document.querySelectorAll('.tok').length === 44")
    ids += [model.special.last] if "\u23ce" in chosen else model.encode(chosen)
    went_on = model.generate_ids(ids, length=40, **HOW)[0].text
    assert texts(page)[0].endswith(went_on)


def test_codes_stand_side_by_side(start, models):
    page = start(OPEN.format("ctrl"))
    done(page, 2)
    own = [models["ctrl"].generate("the cat", code=code, length=40, **HOW)[0].text for code in ("Tales", "Letters")]
    assert texts(page) == own
    assert page.eval_on_selector_all(".column-code", "all => all.map((one) => one.textContent)") == ["Tales", "Letters"]
    page.click("#codes button >> nth=0")
    done(page, 1)
    assert texts(page) == own[1:] and page.is_hidden(".several")


def test_attention_over_the_text_is_seen_and_a_model_without_says_so(start, writer):
    page = start(OPEN.format("gpt2"))
    done(page)
    page.click("#write-look")
    page.wait_for_selector("#grid .thumb")
    assert page.locator("#grid .thumb").count() == 2 * 3, "two layers, two heads and their mean"
    assert page.is_hidden("#look-languages") and page.is_hidden("#look-beam-label")
    shown = page.text_content("#look-body")
    assert "predicts each token from those before it" in shown and "Alternatives at this position" in shown
    assert (
        "Self-attention" in shown and "ecoder" not in shown
    )  # a language model has no encoder and calls nothing a decoder
    page.select_option("#look-model", "rnn")
    page.wait_for_function("() => document.querySelector('#station-Heads')?.textContent.includes('no attention')")
    assert "carries from token to token" in page.text_content("#station-Heads")


def test_it_is_korean_narrow_and_without_serious_faults(start):
    page = start(OPEN.format("ctrl"), width=320)
    done(page, 2)
    page.click(".tok >> nth=1")
    page.wait_for_selector(".choice")
    assert within(page, ".popover")
    page.evaluate(AXE_SCRIPT)
    assert _faults(page, "body") == []
    page.keyboard.press("Escape")
    page.click("#locale")
    assert page.text_content("nav [aria-current]") == "글쓰기" and "본문에 넣기" in page.inner_text("#columns")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_an_error_is_said_in_its_place(start):
    page = start(OPEN.format("gpt2"), quiet=False)
    done(page)
    page.fill("#write-text", "日本")
    page.wait_for_selector(".continuation .error")
    assert page.inner_text(".continuation .error").startswith("the model knows no word of '日本'")
    assert page.locator(".tok").count() == 0
