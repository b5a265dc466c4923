"""Watching runs on the page."""

import json
import shutil
from types import SimpleNamespace

import pytest

from heed.tasks import TASKS
from heed.tasks.base import Metric
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
    assert page.text_content(".run-state .row p") == "BLEU 60.00 · chrF 80.00 · loss 1.000"
    assert "step 400 of 600" in page.text_content(".run-state") and "20 s left" in page.text_content(".run-state")


def test_a_run_with_a_time_shows_the_step_that_is_expected(visit, runs):
    """Not the bound of its recipe, 600 here."""
    folder = runs / "timed"
    write_run(folder, [step(100, 5.0)], {})
    try:
        (folder / "recipe.toml").write_text('[training]\nsteps = 600\ntime = "1h"\n', "utf-8")
        page = visit("#runs?run=timed")
        assert page.text_content(".run-state .small span") == "step 100"
        with (folder / "log.jsonl").open("a") as log:
            log.write(json.dumps({**step(200, 4.0), "steps": 250}) + "\n")
        page.wait_for_selector("text=step 200 of 250")
        assert page.get_attribute(".run-track", "aria-valuenow") == "80"
    finally:
        shutil.rmtree(folder)


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


@pytest.fixture
def of_task(runs):
    """Writes a run of another task, with these scores at its one validation."""
    written = []

    def write(task, **scores):
        written.append(runs / f"a-{task}")
        line = {"kind": "valid", "step": 200, "epoch": 0, "perplexity": 2.7, **scores}
        write_run(written[-1], [step(100, 5.0), step(200, 3.0), line], {}, task)
        return written[-1].name

    yield write
    for folder in written:
        shutil.rmtree(folder)


def shown(page):
    page.wait_for_selector(".chart")
    return texts(page, ".chart h2"), texts(page, ".chart .chart-legend"), texts(page, ".run-state .row p")


def test_charts_and_scores_are_those_that_the_task_declares(visit, of_task, monkeypatch):
    titles, hints, scores = shown(visit(f"#runs?run={of_task('classification', accuracy=91.25, loss=0.5)}"))
    assert titles == ["Loss", "Perplexity", "Accuracy", "Learning rate", "Tokens per second"]
    assert scores == ["accuracy 91.25 · loss 0.500"]
    assert hints == ["trainingvalidation", "trainingvalidation", "higher is better", "", ""]
    titles, _, scores = shown(visit(f"#runs?run={of_task('language', loss=3.25)}"))
    assert titles == ["Loss", "Perplexity", "Learning rate", "Tokens per second"] and scores == ["loss 3.250"]
    metrics = (Metric("hits", "HR@10", True, str, 4), Metric("rank", "mean rank", False, str, 1))
    monkeypatch.setitem(TASKS, "next-item", SimpleNamespace(metrics=metrics))  # one that the page has never heard of
    titles, hints, scores = shown(visit(f"#runs?run={of_task('next-item', hits=0.125, rank=17, loss=1.0)}"))
    assert titles == ["Loss", "Perplexity", "HR@10", "Mean rank", "Learning rate", "Tokens per second"]
    assert hints[2:4] == ["higher is better", "lower is better"] and scores == ["HR@10 0.1250 · mean rank 17.0"]


def test_runs_of_two_tasks_have_the_charts_of_both(visit, of_task):
    page = visit(f"#runs?run=first&with={of_task('classification', accuracy=91.25, loss=None)}")
    titles, _, scores = shown(page)
    assert titles == ["Loss", "Perplexity", "BLEU", "chrF", "Accuracy", "Learning rate", "Tokens per second"]
    assert scores == ["BLEU 60.00 · chrF 80.00 · loss 1.000", "accuracy 91.25"], "what is not a number is not told"
    lines = {
        name: page.locator(f".chart:has-text('{name}') path.line").count() for name in ("Loss", "BLEU", "Accuracy")
    }
    assert lines == {"Loss": 3, "BLEU": 1, "Accuracy": 1}
    page.click("#locale")
    page.wait_for_selector(".chart h2:has-text('정확도')")
    assert texts(page, ".run-state .row p") == ["BLEU 60.00 · chrF 80.00 · 손실 1.000", "정확도 91.25"]


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
    assert page.text_content("#runs-body") == "Start the service with --runs FOLDER to watch its training runs."
