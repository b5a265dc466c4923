"""What the page says of a model's data: examples to begin with, what it was trained on, a warning beyond that."""

import copy
import math

import pytest

from tests.service.page.fake import MODELS

EXAMPLES = ["안녕하세요", "얼마예요?"]
TRAINED = "Trained on 60,000 pairs of the built-in phrasebook"


def translation(*sure):
    """An answer of as many words as there are probabilities."""
    words = [f"word{i}" for i in range(len(sure))]
    sentence = {
        "source": {"text": "안녕", "start": 0, "end": 2},
        "target": {"text": " ".join(words), "start": 0, "end": len(" ".join(words))},
        "score": -1.0,
        "tokens": [{"text": f"▁{word}", "score": math.log(p)} for word, p in zip(words, sure, strict=True)],
        "alignment": [],
        "nbest": [],
    }
    found = {"text": " ".join(words), "source": "ko", "target": "en", "detected": None, "models": ["ko-en"]}
    return {"translations": [found | {"sentences": [sentence]}]}


@pytest.fixture
def trained(fake):
    models = copy.deepcopy(MODELS)
    models["models"][0] |= {"trained": {"pairs": 60000, "corpus": "phrasebook"}, "examples": EXAMPLES}
    fake.answers["/v1/models"] = lambda body: models
    fake.answers["/v1/translate"] = lambda body: translation(0.9, 0.9)
    fake.models = models
    return fake


def texts(page):
    return page.eval_on_selector_all("#examples .example", "nodes => nodes.map(node => node.textContent)")


def test_an_empty_page_offers_examples_and_says_what_the_model_was_trained_on(visit, trained):
    page = visit("#translate?from=ko&to=en", url=trained.url)
    page.wait_for_selector("#examples .example")
    assert texts(page) == EXAMPLES
    assert TRAINED in page.text_content("#examples")
    page.click("#examples .example >> nth=1")
    page.wait_for_selector("#target .word")
    assert page.input_value("#source") == EXAMPLES[1] and page.is_hidden("#examples")
    assert trained.bodies("/v1/translate")[-1]["text"] == EXAMPLES[1]
    page.click("#clear")
    page.wait_for_selector("#examples .example")
    page.click("#locale")
    page.wait_for_function("() => document.querySelector('#examples').textContent.includes('내장 회화집')")


def test_other_models_offer_what_their_run_translates_as_the_reference(visit, trained):
    (model,) = trained.models["models"]
    model |= {"trained": {"pairs": 29000}, "examples": []}
    right = {"source": "나는 학생이에요.", "reference": "I am a student.", "translation": "I am a student."}
    samples = [{"step": 1, "of": []}, {"step": 2, "of": [right, right | {"source": "네", "translation": "No."}]}]
    trained.answers["/v1/runs/ko-en/samples"] = lambda body: {"samples": samples}
    page = visit("#translate?from=ko&to=en", url=trained.url)
    page.wait_for_selector("#examples .example")
    assert texts(page) == ["나는 학생이에요."]
    assert "Trained on 29,000 pairs of texts." in page.text_content("#examples")


def test_a_model_that_says_nothing_of_its_data_offers_nothing(visit, fake):
    fake.answers["/v1/translate"] = lambda body: translation(0.1)
    page = visit("#translate?from=ko&to=en", url=fake.url)
    page.fill("#source", "가")
    page.wait_for_selector("#target .word")
    assert page.is_hidden("#examples") and "Trained" not in page.text_content("#doubt")


@pytest.mark.parametrize("sure, warned", [((0.1, 0.2, 0.9), True), ((0.1, 0.9), False), ((0.9, 0.8), False)])
def test_where_most_words_are_unsure_the_page_says_so(visit, trained, sure, warned):
    trained.answers["/v1/translate"] = lambda body: translation(*sure)
    page = visit("#translate?from=ko&to=en", url=trained.url)
    page.fill("#source", "안녕")
    page.wait_for_selector("#target .word")
    assert page.is_visible("#doubt") == warned
    if warned:
        said = page.text_content("#doubt")
        assert said.startswith("The model is unsure of most words here. " + TRAINED)
        assert said.endswith("Other kinds of text are not translated well.")
        page.click("#clear")
        page.wait_for_selector("#doubt", state="hidden")
