"""Watching runs on the page."""

import json
import shutil

from tests.service.page.conftest import step, write_run


def texts(page, selector):
    return page.eval_on_selector_all(selector, "nodes => nodes.map(node => node.textContent)")


def test_curves_and_samples_over_time(visit, runs):
    (runs / "first" / "log.jsonl").touch()  # of one without news for minutes something else is told
    page = visit("#runs?run=first")
    page.wait_for_selector(".sample")
    assert texts(page, ".chart h2") == ["Loss", "Perplexity", "BLEU", "chrF", "Learning rate", "Tokens per second"]
    assert texts(page, ".sample-said") == ["Korean was easy."]
    assert texts(page, ".chart:first-child .tick")[:2] == ["2", "4"]
    page.fill("#moment", "0")
    assert texts(page, ".sample-said") == ["Was was was."]
    page.focus(".chart svg >> nth=0")
    page.keyboard.press("ArrowLeft")
    assert page.text_content(".chart-said >> nth=0") == "step 400: 1.500 ◦\u00a01.000"
    assert page.get_attribute(".run-track", "aria-valuenow") == "67"
    assert "step 400 of 600" in page.text_content(".run-state") and "20 s left" in page.text_content(".run-state")


def test_two_runs_are_compared(visit):
    page = visit("#runs?run=first")
    page.wait_for_selector(".sample")
    page.select_option("#run-second", "second")
    page.wait_for_selector(".run-state.run-1")
    page.wait_for_selector(".line.run-1")
    assert texts(page, ".run-state h2") == ["first", "second"]
    assert texts(page, ".sample-said") == ["first: Korean was easy.", "second: The cat.step 200"], "each with its step"
    assert "with=second" in page.url
    high = page.locator(".chart >> nth=0").bounding_box()["height"]
    page.focus(".chart svg >> nth=0")
    page.keyboard.press("ArrowLeft")
    assert page.text_content(".chart-said >> nth=0") == "step 400: first 1.500 ◦\u00a01.000 · second 3.000 ◦\u00a01.000"
    assert page.locator(".chart >> nth=0").bounding_box()["height"] == high, "nothing jumps when something is said"


def test_a_run_is_followed_as_it_goes_on(visit, runs, request):
    write_run(runs / "third", [step(100, 5.0), step(200, 3.0)], {})
    request.addfinalizer(lambda: shutil.rmtree(runs / "third"))
    page = visit("#runs?run=third")
    page.wait_for_selector(".chart")
    assert "step 200 of 600" in page.text_content(".run-state")
    with (runs / "third" / "log.jsonl").open("a", encoding="utf-8") as log:
        log.write(json.dumps(step(300, 2.5)) + "\n")
    page.wait_for_function("() => document.querySelector('.run-state').textContent.includes('step 300 of 600')")


def test_without_a_folder_it_says_how(visit, fake):
    from tests.service.page.fake import MODELS

    fake.answers["/v1/models"] = lambda body: {**MODELS, "runs": False}
    page = visit("#runs", url=fake.url)
    assert page.text_content("#runs-body") == "Start the service with --runs FOLDER to watch the runs in it."
