"""The encoder views: fill masks, tag words, answer questions, classify and compare texts."""

from urllib.parse import urlencode

import pytest
from axe_playwright_python.base import AXE_SCRIPT

from heed.service.http.service import Service
from tests.service.encoders import served
from tests.service.http.conftest import RunningService
from tests.service.page.test_frame import _faults, within

TEXT = "the dog sees a red house, 나는 책을 읽어요."


TYPE = """(text) => {
  const field = document.querySelector("#tag-text");
  field.value = text;
  field.dispatchEvent(new Event("input"));
  return document.querySelector("#tag-out").classList.contains("stale");
}"""


@pytest.fixture(scope="module")
def encoders():
    return {own.name: own for own in served()}


@pytest.fixture(scope="module")
def readers(encoders):
    """A service without translators and language models."""
    running = RunningService(Service(list(encoders.values())))
    yield running
    running.stop()


@pytest.fixture
def start(visit, readers):
    def open_view(view="", **more):
        values = {name: more.pop(name) for name in list(more) if name not in ("width", "scheme", "quiet")}
        return visit(f"#{view}?{urlencode(values)}" if view else "", url=readers.url + "/", **more)

    return open_view


def percent(p):
    return ">99%" if 0.995 <= p < 1 else "<1%" if 0 < p < 0.005 else f"{round(100 * p)}%"


def texts(page, selector):
    return page.eval_on_selector_all(selector, "all => all.map((one) => one.textContent)")


def test_a_word_that_is_clicked_becomes_a_mask_and_another_is_put_in(start, encoders):
    page = start()
    assert page.text_content("nav [aria-current]") == "Fill" and not page.is_visible("nav [data-view=translate]")
    page.fill("#fill-text", "the dog sees a house.")
    assert texts(page, "#fill-out .word") == ["the", "dog", "sees", "a", "house", "."]
    page.click("#fill-out .word >> nth=1")
    page.wait_for_selector(".choice")
    [own] = encoders["filler"].product.fill(["the [MASK] sees a house."], top=8)
    begins = [guess.word if guess.piece.startswith("▁") else f"…{guess.word}" for guess in own.masks[0]]
    assert texts(page, ".choice-word") == begins
    assert texts(page, ".choice-share") == [percent(guess.probability) for guess in own.masks[0]]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    second = own.masks[0][1]
    put = f"the {second.word} sees a house." if begins[1] == second.word else f"the{second.word} sees a house."
    assert page.input_value("#fill-text") == put and page.locator(".popover").count() == 0
    assert page.evaluate("document.activeElement.classList.contains('word')"), "the keyboard stays at the text"


def test_a_blank_that_is_typed_is_filled_beside_others(start, encoders):
    page = start("fill", text="나는 [MASK]을 <mask>.")
    assert texts(page, "#fill-out .word") == ["나는", "blank", "을", "blank", "."]
    page.focus("#fill-out .word >> nth=0")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_selector(".choice")
    [own] = encoders["filler"].product.fill(["나는 [MASK]을 [MASK]."], top=8)
    assert [word.removeprefix("…") for word in texts(page, ".choice-word")] == [one.word for one in own.masks[1]]
    page.keyboard.press("Escape")
    assert page.locator(".popover").count() == 0


def test_entities_are_marked_in_their_text(start, encoders):
    page = start("tag", model="tagger", text="🙂 " + TEXT)
    page.wait_for_selector("#tag-out .read-bars")
    [own] = encoders["tagger"].product.tag(["🙂 " + TEXT])
    assert own.entities and texts(page, "#tag-out .entity .entity-type") == [one.type for one in own.entities]
    plain = page.evaluate(
        """() => { const text = document.querySelector('#tag-out .read-text').cloneNode(true);
          text.querySelectorAll('.entity-type').forEach((one) => one.remove());
          return [text.textContent, [...text.querySelectorAll('.entity')].map((one) => one.textContent)]; }"""
    )
    assert plain == ["🙂 " + TEXT, [one.text for one in own.entities]]
    assert texts(page, "#tag-out .choice-share") == [percent(one.probability) for one in own.entities]


def test_an_electra_marks_the_words_that_it_believes_replaced(start, encoders):
    page = start("tag", model="electra", text=TEXT)
    page.wait_for_selector("#tag-out .entity")
    [own] = encoders["electra"].product.tag([TEXT])
    assert texts(page, "#tag-out .entity") == [one.text for one in own.entities], "its one type is named once"
    assert texts(page, ".entity-legend > span") == [f"REPLACED {len(own.entities)}"]


def test_an_answer_is_marked_in_its_context_and_another_where_it_stands(start, encoders):
    page = start("answer", question="who sees?", context=TEXT)
    page.wait_for_selector("#answer-out .read-bars")
    [own] = encoders["answerer"].product.answer([("who sees?", TEXT)], n=5)
    names = [one.text or "(no answer in the text)" for one in own.best]
    assert texts(page, "#answer-out .choice-word") == names
    for place, one in enumerate(own.best):
        page.click(f"#answer-out .choice >> nth={place}")
        assert texts(page, "#answer-out .answer-found") == ([one.text] if one.text else [])
        assert page.text_content("#answer-out .read-text") == TEXT
        assert page.get_attribute(f"#answer-out .choice >> nth={place}", "aria-pressed") == "true"


def test_labels_numbers_and_choices_have_what_they_need(start, encoders):
    page = start("classify", model="classifier", text=TEXT)
    page.wait_for_selector("#classify-out .read-bars")
    [own] = encoders["classifier"].product.classify([[TEXT]])
    order = sorted(own.probabilities, key=own.probabilities.get, reverse=True)
    assert texts(page, "#classify-out .choice-word") == order and page.is_hidden("#classify-other")
    assert page.text_content(".read-label-found") == own.label == order[0]
    page.select_option("#classify-model", "pairs")
    page.fill("#classify-other", "a dog")
    page.wait_for_selector(".read-number")
    [own] = encoders["pairs"].product.classify([[TEXT, "a dog"]])
    assert float(page.text_content(".read-number")) == pytest.approx(own.number, abs=6e-4)
    page.select_option("#classify-model", "choices")
    page.fill("#classify-choices", "sees\n\n a house ")
    page.wait_for_selector("#classify-out .read-bars")
    [own] = encoders["choices"].product.classify([[TEXT, "sees", "a house"]])
    assert page.text_content(".read-label-found") == ["sees", "a house"][int(own.label)]
    assert page.is_hidden("#classify-other")


def test_sentences_are_compared(start, encoders):
    page = start("similarity", text="the dog", others="the dog\n책을 읽어요")
    page.wait_for_selector("#similarity-out .read-bars")
    cosines = encoders["embedder"].product.similarity(["the dog"] * 2, ["the dog", "책을 읽어요"])
    assert texts(page, "#similarity-out .choice-word") == ["the dog", "책을 읽어요"]
    assert list(map(float, texts(page, "#similarity-out .choice-share"))) == pytest.approx(cosines.tolist(), abs=6e-4)


def test_a_text_that_is_gone_is_given_up_and_an_error_is_said_in_its_place(start):
    page = start("fill", text="the dog " * 90, quiet=False)
    page.click("#fill-out .word >> nth=0")
    page.wait_for_selector(".popover .error")
    assert "the model has only 70 positions" in page.text_content(".popover .error")
    page.click("nav [data-view=tag]")
    assert page.locator(".popover").count() == 0
    assert page.evaluate(TYPE, TEXT), "at once, before it is asked for"
    page.wait_for_selector("#tag-out .read-bars")
    page.fill("#tag-text", " ")
    page.wait_for_selector("#tag-out > .muted:only-child")
    assert page.inner_text("#tag-out") == "Entities found in the text are highlighted here."


def test_attention_over_a_text_is_seen(start):
    page = start("tag", model="electra", text=TEXT)
    page.wait_for_selector("#tag-out .read-text")
    page.click("#tag-look")
    page.wait_for_selector("#grid .thumb")
    assert page.locator("#grid .thumb").count() == 2 * 4, "two layers, three heads and their mean"
    chips = texts(page, ".chip-text")
    assert (chips[0], chips[-1]) == ("[CLS]", "[SEP]")
    assert page.locator(".chip.special").count() == sum(chip.startswith("[") for chip in chips)
    assert page.text_content("#reading").startswith("Each row is a token") and page.locator(".token-line").count() == 1
    assert texts(page, ".stations li a") == ["1Tokens", "2Attention"]


VIEWS = {
    "fill": {"text": TEXT + " [MASK]"},
    "tag": {"text": TEXT},
    "answer": {"question": "who?", "context": TEXT},
    "classify": {"model": "choices", "text": TEXT, "choices": "a\nb"},
    "similarity": {"text": "x", "others": "y\nz"},
}


def test_they_are_korean_narrow_and_without_serious_faults_in_light_and_dark(start):
    page, faults = start(width=320), []
    page.evaluate(AXE_SCRIPT)
    for view, values in VIEWS.items():
        page.evaluate("hash => { location.hash = hash; }", f"#{view}?{urlencode(values)}")
        page.wait_for_selector(f"#{view}-out :is(.read-text, .read-bars)")
        faults += _faults(page, f"#view-{view}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 320, view
        page.click("#theme")
    assert faults == []
    page.click("#locale")
    assert page.text_content("nav [aria-current]") == "비교" and page.text_content("nav [data-view=tag]") == "개체 찾기"
    assert within(page, "#similarity-out")
