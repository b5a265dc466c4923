"""Translating on the page, as a person would."""

import math
import re
from urllib.parse import quote

import httpx
import pytest

from heed.text import glossary

TEXT = "나는 학생이에요."
TWO = "나는 학생이에요. 너는 어디에 있어?"


@pytest.fixture
def ask(service):
    """What the service itself answers."""

    def post(path, **body):
        answer = httpx.post(f"{service.url}/v1/{path}", json={"source": "ko", "target": "en", **body}, timeout=120)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return post


def type_in(page, text):
    page.fill("#source", text)
    answered(page)


def answered(page):
    page.wait_for_function("() => !document.querySelector('#target.stale') && document.querySelector('#target .word')")


def paste(page, text):
    """A long text at once, with the caret after its first quarter or so."""
    page.focus("#source")
    page.eval_on_selector(
        "#source",
        """(node, text) => {
          node.value = text;
          node.setSelectionRange(text.length / 4, text.length / 4);
          node.dispatchEvent(new Event("input"));
        }""",
        text,
    )


def words(page, selector):
    return page.eval_on_selector_all(selector, "nodes => nodes.map(node => node.textContent)")


def said(page):
    return page.inner_text("#target")


def test_what_is_typed_is_translated(visit, ask):
    page = visit()
    type_in(page, TEXT)
    assert said(page) == ask("translate", text=TEXT, nbest=4)["translations"][0]["text"]
    assert page.text_content("#counter") == "9 / 100,000"
    assert page.text_content("#detected").startswith("Detected: Korean, ")
    assert page.eval_on_selector("#from", "node => node.selectedOptions[0].textContent") == "Korean (auto)"
    assert page.text_content("#target-said") == said(page)


def test_an_answer_to_what_was_typed_before_comes_too_late(visit):
    page, held = visit("#translate?from=ko&to=en"), []
    page.route("**/v1/translate", lambda route: held.append(route))
    page.fill("#source", TEXT)
    page.wait_for_function("() => !document.querySelector('#progress').hidden")
    while not held:
        page.wait_for_timeout(20)
    page.fill("#source", "학생")
    held[0].continue_()
    while len(held) < 2:
        page.wait_for_timeout(20)
    assert said(page) == "" and page.is_visible("#target.stale"), "nothing is said of a text that is gone"
    held[1].continue_()
    answered(page)
    page.unroute_all()


def begun_slowly(page):
    """The page anew, while the service has not yet said what it can; gives what lets it."""
    held = []
    page.route("**/v1/models", lambda route: held.append(route))
    page.reload()
    while not held:
        page.wait_for_timeout(20)
    return held[0].continue_


def test_what_is_done_before_the_service_has_said_what_it_can_is_not_lost(visit):
    page = visit(f"#translate?from=ko&to=en&text={quote(TWO)}")
    answered(page)
    go_on = begun_slowly(page)
    for one in ("#locale", "#locale", "#swap", "#share", "#tab-glossary"):
        page.click(one)
    page.fill("#term-source", "Heed")
    page.click("#term-form button")
    page.click("#mode-file")
    page.set_input_files("#file", files=[{"name": "a.txt", "mimeType": "text/plain", "buffer": b"x"}])
    page.click("#mode-text")
    go_on()
    answered(page)
    assert page.input_value("#source") == TWO, "the text of the link"
    assert "a.txt" in page.text_content("#file-state")
    go_on = begun_slowly(page)
    page.fill("#source", TEXT)
    go_on()
    answered(page)
    assert page.input_value("#source") == TEXT and quote(TEXT.split()[0]) in page.url, "what was typed is the later one"


def test_words_of_low_confidence_are_marked_and_all_are_copied(visit, ask):
    page = visit()
    type_in(page, TEXT)
    tokens = ask("translate", text=TEXT, nbest=4)["translations"][0]["sentences"][0]["tokens"]
    groups = []
    for token in tokens:
        if token["text"] == "</s>":
            continue
        if token["text"].startswith("▁") or not groups:
            groups.append(0.0)
        groups[-1] += token["score"]
    low = page.eval_on_selector_all("#target .word", "all => all.map(node => node.classList.contains('low'))")
    assert len(low) == len(groups) and low == [2.718281828**score < 0.5 for score in groups]
    page.click("#copy")
    page.wait_for_selector(".toast.shown")
    assert page.text_content("#toast") == "Copied"
    assert page.evaluate("navigator.clipboard.readText()") == said(page)


def test_a_link_brings_the_text_back(visit):
    page = visit()
    type_in(page, TEXT)
    page.click("#share")
    link = page.evaluate("navigator.clipboard.readText()")
    other = visit(link.split("/", 3)[3])
    other.wait_for_selector("#target .word")
    assert other.input_value("#source") == TEXT and said(other) == said(page)


def test_pointing_lights_what_goes_together_both_ways(visit, ask):
    page = visit()
    type_in(page, TWO)
    found = ask("translate", text=TWO, nbest=4)["translations"][0]
    pairs = [(link["source"]["start"], link["target"]["start"]) for s in found["sentences"] for link in s["alignment"]]
    assert len(pairs) > 1
    spoken, written = found["text"].split(), TWO.split()
    word_at = {found["text"].index(word, sum(map(len, spoken[:i]))): i for i, word in enumerate(spoken)}
    source_at = {TWO.index(word): i for i, word in enumerate(written)}
    for start, goal in pairs[:3]:
        page.hover(f"#target .word >> nth={word_at[goal]}")
        lit = page.eval_on_selector_all(
            "#mirror span", "all => all.flatMap((n, i) => n.classList.contains('lit') ? [i] : [])"
        )
        assert source_at[start] in lit and len(lit) == len({s for s, t in pairs if t == goal})
        box = page.locator(f"#mirror span >> nth={source_at[start]}").bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        lit = page.eval_on_selector_all(
            "#target .word", "all => all.flatMap((n, i) => n.classList.contains('lit') ? [i] : [])"
        )
        assert lit == sorted(word_at[t] for s, t in pairs if s == start)


def test_a_click_on_a_word_offers_others_and_the_rest_is_written_again(visit, ask):
    page = visit()
    type_in(page, TWO)
    sentences = ask("translate", text=TWO, nbest=4)["translations"][0]["sentences"]
    first, second = (one["target"]["text"] for one in sentences)
    offers = ask("alternatives", text=sentences[0]["source"]["text"], translation=first, word=1, count=6)[
        "alternatives"
    ]
    likely = [one for one in offers if one["current"] or one["probability"] >= 0.005]
    offers = likely if len(likely) > 1 else offers
    page.click("#target .word >> nth=1")
    page.wait_for_selector(".choice")
    assert words(page, ".choice-word") == [one["word"] or "(the sentence ends)" for one in offers]
    number, other = next((i, one) for i, one in enumerate(offers) if not one["current"])
    with page.expect_response("**/v1/translate"):
        page.click(f".choice >> nth={number}")
        page.wait_for_function("() => !document.querySelector('.popover')")
        assert said(page) == f"{other['text']} {second}"
    assert said(page) == f"{other['text']} {second}", "what was chosen stays"


def test_other_words_by_keyboard(visit):
    page = visit()
    type_in(page, TEXT)
    before = said(page)
    page.focus("#target .word >> nth=0")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_selector(".choice")
    page.keyboard.press("Escape")
    assert page.locator(".popover").count() == 0
    assert page.evaluate("document.activeElement.dataset.word") == "1"
    page.keyboard.press("Enter")
    page.wait_for_selector(".choice:focus")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_function("() => !document.querySelector('.popover')")
    assert said(page) != before


def test_other_words_on_a_way_through_another_language(visit, ask):
    page = visit(f"#translate?from=ko&to=de&text={quote(TEXT)}")
    page.wait_for_selector("#target .word")
    assert page.text_content("#quality").startswith("through English · ")
    middle = ask("translate", text=TEXT)["translations"][0]["text"]
    asked = {"source": "en", "target": "de", "text": middle, "translation": said(page), "word": 0, "count": 6}
    page.click("#target .word >> nth=0")
    page.wait_for_selector(".choice")
    assert words(page, ".choice-word") == [one["word"] for one in ask("alternatives", **asked)["alternatives"]]


def test_a_long_text_has_panes_that_scroll_and_the_alternatives_of_one_sentence(visit):
    page = visit("#translate?from=ko&to=en")
    gap = "\n" * 100
    paste(page, gap.join([TWO] * 5))
    page.wait_for_selector("#target .word")
    assert page.locator("#source").bounding_box()["height"] < 800
    assert words(page, ".nbest-of") == ["Sentence 3"] and "at the cursor" in page.text_content("#nbest-note")
    page.keyboard.press("Control+Home")
    assert words(page, ".nbest-of") == ["Sentence 1"]
    page.eval_on_selector(
        "#source", "node => (node.scrollTop = document.querySelectorAll('#mirror span')[10].offsetTop - 90)"
    )
    page.wait_for_function(
        "() => document.querySelector('#mirror').scrollTop === document.querySelector('#source').scrollTop"
    )
    box = page.locator("#mirror span >> nth=11").bounding_box()
    page.mouse.move(box["x"] + 8, box["y"] + 8)
    assert page.eval_on_selector_all("#mirror span", "all => all.findIndex(n => n.matches('.asked'))") == 11
    paste(page, gap * 50)
    page.click("#share")
    page.wait_for_function("() => document.querySelector('#toast').textContent.includes('without the text')")


def test_swapping_takes_the_translation_back(visit):
    page = visit("#translate?from=ko&to=en")
    type_in(page, TEXT)
    there = said(page)
    page.click("#swap")
    assert page.input_value("#source") == there
    assert (page.input_value("#from"), page.input_value("#to")) == ("en", "ko")


def test_alternatives_with_scores_can_be_taken(visit, ask):
    page = visit()
    type_in(page, TEXT)
    offered = words(page, ".nbest-one span:first-child")
    found = ask("translate", text=TEXT, nbest=4)["translations"][0]["sentences"][0]["nbest"]
    assert offered == list(dict.fromkeys(one["text"] for one in found)) and len(offered) > 2, "each text once"
    second = next(one for one in found if one["text"] == offered[1])
    likely = 100 * math.exp(second["score"] - max(one["score"] for one in found))
    shown = words(page, ".nbest-one .number-text")
    assert "100%" in shown and shown[1] in ("<1%", ">99%", f"{math.floor(likely)}%", f"{math.ceil(likely)}%")
    assert said(page) == offered[0]
    page.click(".nbest-one >> nth=2")
    assert said(page) == offered[2]
    assert page.get_attribute(".nbest-one >> nth=2", "aria-pressed") == "true"


def test_a_term_is_sent_and_kept(visit):
    page = visit()
    type_in(page, TEXT)
    page.click("#tab-glossary")
    page.fill("#term-source", "학생")
    page.fill("#term-target", "pupil")
    with page.expect_request("**/v1/translate") as request:
        page.click("#term-form button")
    assert request.value.post_data_json["glossary"] == {"학생": "pupil"}
    page.reload()
    answered(page)  # the text of the address, which is asked again
    page.click("#tab-glossary")
    assert words(page, "#terms li span") == ["학생", "→", "pupil"]
    page.fill("#term-source", "Heed")
    with page.expect_request("**/v1/translate") as request:
        page.click("#term-form button")
    assert request.value.post_data_json["keep"] == ["Heed"], "what becomes nothing stays"
    type_in(page, "Heed 학생")
    assert "Heed" in said(page) and "pupil" in said(page)
    with page.expect_request("**/v1/alternatives") as request:
        page.click("#target .word >> nth=0")
    asked = request.value.post_data_json
    assert (asked["glossary"], asked["keep"]) == ({"학생": "pupil"}, ["Heed"]), "other words keep to the terms too"
    page.keyboard.press("Escape")
    with page.expect_download() as download:
        page.click("#terms-save")
    saved = download.value.path().read_text("utf-8")
    assert glossary.parse(saved).terms == {"학생": "pupil", "Heed": "Heed"}
    for term in ("학생", "Heed"):
        page.click(f"[aria-label='Remove {term}']")
    assert page.text_content("#terms") == "No terms yet."
    page.set_input_files("#terms-file", files=[{"name": "a.tsv", "mimeType": "text/plain", "buffer": saved.encode()}])
    page.wait_for_selector("#terms .small-x")
    assert words(page, "#terms li span") == ["학생", "→", "pupil", "Heed", "keep as is"]


def test_history_is_kept_used_and_cleared(visit):
    page = visit()
    type_in(page, TEXT)
    page.click("#tab-history")
    page.wait_for_selector(".past-one")
    page.click("#clear")
    assert page.input_value("#source") == "" and said(page) == ""
    page.click(".past-one")
    page.wait_for_selector("#target .word")
    assert page.input_value("#source") == TEXT
    page.uncheck("#keep-history")


def test_the_request_as_code_gives_the_same(visit, service, tmp_path):
    import subprocess
    import sys

    page = visit()
    text = 'true, 나는 "학생"이에요. it\'s'
    type_in(page, text)
    page.click("#tab-code")
    run = subprocess.run(
        [sys.executable, "-c", page.text_content("#python")], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == said(page)
    run = subprocess.run(
        ["bash", "-c", f"printf '%s\\n' {page.text_content('#curl')}"], capture_output=True, text=True, check=True
    )
    import json

    assert json.loads(run.stdout.splitlines()[-1])["text"] == text


def test_a_file_comes_back_translated(visit, ask):
    page = visit("#translate?from=ko&to=en")
    page.click("#mode-file")
    page.set_input_files("#file", files=[{"name": "a.exe", "mimeType": "text/plain", "buffer": b"x"}])
    assert "a.exe has an unsupported format" in page.text_content("#file-state")
    page.set_input_files("#file", files=[{"name": "a.txt", "mimeType": "text/plain", "buffer": f"{TEXT}\n".encode()}])
    page.click("#file-go")
    with page.expect_download() as download:
        page.click(".download")
    assert download.value.path().read_text("utf-8") == ask("translate", text=TEXT)["translations"][0]["text"] + "\n"


def test_the_progress_of_a_file_is_counted_by_the_service(visit):
    page, held = visit("#translate?from=ko&to=en"), []
    page.route("**/translate_file", lambda route: held.append(route))
    page.route("**/v1/progress/*", lambda route: route.fulfill(json={"done": 12, "total": 40}))
    page.click("#mode-file")
    page.set_input_files("#file", files=[{"name": "a.txt", "mimeType": "text/plain", "buffer": f"{TEXT}\n".encode()}])
    with page.expect_request("**/v1/progress/*") as asked:
        page.click("#file-go")
    page.wait_for_selector("#file-count:text-is('12 of 40 parts · 30%')")
    bar = page.locator("#file-state [role=progressbar]")
    assert bar.get_attribute("aria-valuenow") == "30" and "measured" in bar.get_attribute("class")
    job = asked.value.url.rpartition("/")[2]
    assert re.fullmatch("[0-9a-f]{32}", job) and job.encode() in held[0].request.post_data_buffer
    held[0].continue_()
    page.wait_for_selector(".download")
    assert "strong" not in page.get_attribute("#file-go", "class"), "the download is what is next"


def test_a_text_in_another_language_is_translated_only_if_that_is_asked_for(visit):
    page = visit("#translate?to=en", quiet=False)  # a refusal is written into the console
    page.fill("#source", "Hello, how are you today?")
    page.wait_for_selector(".notice")
    assert "This looks like English; no model here translates from it." in said(page)
    assert page.text_content("#detected").startswith("Detected: English, ")
    assert words(page, ".offers button")[:2] == ["Translate it as Korean", "Translate it as German"]
    assert page.is_disabled("#copy")
    page.click(".offers button >> nth=0")
    answered(page)
    assert page.input_value("#from") == "ko" and not page.query_selector(".notice")


def test_a_link_for_a_pair_that_is_not_served_says_so(visit):
    asked = []
    page = visit(f"#translate?from=ja&to=en&text={quote(TEXT)}")
    page.on("request", lambda request: asked.append(request.url) if "/v1/translate" in request.url else None)
    page.wait_for_selector(".notice")
    assert "No model here translates Japanese into English." in said(page)
    assert page.input_value("#source") == TEXT and not asked
    assert "Korean → English" in words(page, ".offers button")
    page.click("text=Korean → English")
    answered(page)
    assert (page.input_value("#from"), page.input_value("#to")) == ("ko", "en")


def test_a_chosen_word_stays_while_its_sentence_is_unchanged(visit, ask):
    page = visit("#translate?from=ko&to=en")
    type_in(page, TEXT)
    first = said(page)
    page.click("#target .word >> nth=1")
    page.wait_for_selector(".choices .choice")
    chosen = page.text_content(".choices .choice >> nth=1 >> .choice-text") or ""
    page.click(".choices .choice >> nth=1")
    page.wait_for_selector("#target .word.chosen")
    own = said(page)
    assert own != first and own.endswith(chosen.strip()[-3:])
    assert page.eval_on_selector("#target .word.chosen", "node => node.title") == "your choice"
    assert not page.query_selector("#target .word.chosen.low")
    page.fill("#source", TWO)  # appended
    page.wait_for_function("own => document.querySelector('#target').innerText.length > own.length", arg=own)
    answered(page)
    assert said(page).startswith(own) and page.query_selector("#target .word.chosen")
    page.click("#undo")
    assert (
        not said(page).startswith(own) and not page.query_selector("#target .word.chosen") and page.is_hidden("#reset")
    )
    page.fill("#source", TEXT)
    page.wait_for_function("first => document.querySelector('#target').innerText === first", arg=first)
    page.click("#nbest .nbest-one >> nth=1")
    page.wait_for_selector("#target .word.chosen")
    page.click("#reset")
    assert said(page) == first
    page.click("#undo")  # the reset
    assert page.query_selector("#target .word.chosen")


def test_the_glossary_of_a_file_can_be_seen(visit):
    page = visit("#translate?from=ko&to=en")
    page.click("#mode-file")
    assert page.is_visible("#term-form") and page.is_visible("#tab-glossary") and page.is_hidden("#tab-history")
    page.click("#mode-text")
    assert page.is_visible("#tab-history")


LONG = "\n\n".join(f"{'나는 학생이에요. 너는 어디에 있어? ' * 12}{i}번이에요." for i in range(9))


def test_a_long_text_is_translated_in_parts_and_shown_as_they_come(visit):
    page, held, free = visit("#translate?from=ko&to=en"), [], []
    page.route("**/v1/translate", lambda route: route.continue_() if free else held.append(route))
    paste(page, LONG)
    while not held:
        page.wait_for_timeout(20)
    held[0].continue_()
    page.wait_for_selector("#progress.measured")
    assert 0 < float(page.eval_on_selector("#progress", "node => node.style.getPropertyValue('--share')")) < 1
    assert page.query_selector("#target .word") and not page.query_selector("#target.stale")
    while len(held) < 2:
        page.wait_for_timeout(20)
    free.append(True)
    held[1].continue_()
    page.wait_for_function("() => document.querySelector('#progress').hidden")
    assert LONG.startswith("".join(route.request.post_data_json["text"] for route in held))


def test_the_parts_of_a_long_text_make_one_whole(visit, ask):
    page = visit()
    found = page.evaluate(
        """async (text) => {
          const { translate } = await import("./assets/parts.js");
          const all = [];
          for await (const one of translate({ text, source: "ko", target: "en", nbest: 1 })) all.push(one);
          return all;
        }""",
        LONG,
    )
    own = ask("translate", text=LONG)["translations"][0]
    whole = found[-1]["translation"]
    assert len(found) > 2 and found[-1]["share"] == 1 and whole["text"] == own["text"]
    for name in ("source", "target", "alignment"):
        assert [one[name] for one in whole["sentences"]] == [one[name] for one in own["sentences"]]
    assert abs(whole["score"] - own["score"]) < 1e-6


def test_what_may_work_the_next_time_can_be_tried_again(visit):
    page, broken = visit("#translate?from=ko&to=en", quiet=False), [True]

    def answer(route):
        if broken.pop() if broken else False:
            return route.fulfill(status=503, content_type="application/json", body='{"error": "too many"}')
        return route.continue_()

    page.route("**/v1/translate", answer)
    page.fill("#source", TEXT)
    page.wait_for_selector("#target .error")
    page.click("#target button >> text=Try again")
    answered(page)
    assert not page.query_selector("#target .error")


def test_one_can_type_at_once(visit):
    page = visit()
    assert page.evaluate("document.activeElement.id") == "source"
