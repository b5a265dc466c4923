"""Models that read texts, over HTTP: what is answered is what their products say."""

import base64
import hashlib
from dataclasses import asdict

import numpy as np
import pytest
import torch

from heed.loading import write_package
from heed.nn.attention import record
from heed.service.http.encoders import ServedEncoder
from heed.service.http.limits import ApiKey, ApiKeys, Limits
from heed.service.http.opening import open_models
from heed.service.http.queue import Cancelled, Ticket
from heed.service.http.service import Service, Settings
from tests.convert.encoders import package
from tests.convert.small import classifier
from tests.service.encoders import LABELS, served
from tests.service.http.conftest import RunningService

TEXT = "the dog sees a red house, 나는 책을 읽어요."


@pytest.fixture(scope="module")
def encoders():
    return {own.name: own for own in served()}


@pytest.fixture(scope="module")
def client(encoders):
    running = RunningService(Service(list(encoders.values()), Settings(limits=Limits(texts=20, characters=15_000))))
    with running.client() as client:
        yield client
    running.stop()


@pytest.fixture
def ask(client):
    def post(path, status=200, **body):
        answer = client.post(f"/v1/{path}", json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    return post


def close(found, expected):
    """Equal but for the rounding of numbers, which depends on the batch."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        return all(close(found[name], own) for name, own in expected.items())
    if isinstance(expected, list | tuple):
        return len(found) == len(expected) and all(map(close, found, expected))
    return found == (pytest.approx(expected, abs=1e-5) if isinstance(expected, float) else expected)


def test_masks_are_filled_as_by_the_product(ask, encoders):
    texts = ["the [MASK] sees a house", "나는 <mask> [MASK]"]
    found = ask("fill", text=texts, top=3)
    assert close(found["texts"], [asdict(one) for one in encoders["filler"].product.fill(texts, top=3)])
    assert found["model"] == "filler" and [len(one["masks"]) for one in found["texts"]] == [1, 2]
    assert ask("fill", text=texts[0])["texts"][0]["filled"] == found["texts"][0]["filled"]


def test_words_are_tagged_and_questions_answered_as_by_the_products(ask, encoders):
    assert close(
        ask("tag", text=[TEXT, "x"], model="tagger")["texts"],
        [asdict(o) for o in encoders["tagger"].product.tag([TEXT, "x"])],
    )
    [own] = encoders["answerer"].product.answer([("who sees?", TEXT)], n=5)
    found = ask("answer", question="who sees?", context=TEXT, n=5)
    assert close(found["answers"], [asdict(one) for one in own.best]) and found["windows"] == own.windows
    assert "" in [one["text"] for one in found["answers"]], "that there is no answer is one"


def test_texts_pairs_and_choices_are_classified_as_by_the_products(ask, encoders):
    cases = {"classifier": [[TEXT], ["x"]], "pairs": [["a dog", TEXT]], "choices": [["a dog", "sees", "a house"]]}
    for name, texts in cases.items():
        found = ask("classify", text=texts, model=name)["texts"]
        assert close(found, [asdict(one) for one in encoders[name].product.classify(texts)]), name
    assert ask("classify", text=TEXT, model="classifier")["texts"][0]["probabilities"].keys() == set(LABELS)
    mixed = [["a", "b", "c"], ["a", "b", "c", "d"]]
    found = ask("classify", text=mixed, model="choices")["texts"]
    assert [len(one["probabilities"]) for one in found] == [2, 3], "questions with more choices are read by themselves"


def test_vectors_are_those_of_the_product_in_openais_shape(ask, encoders, client):
    texts = ["the dog", TEXT, "책"]
    vectors = encoders["embedder"].product.embed(texts)
    data = ask("embeddings", input=texts)["data"]
    assert [one["index"] for one in data] == [0, 1, 2]
    np.testing.assert_allclose([one["embedding"] for one in data], vectors, atol=1e-5)
    packed = ask("embeddings", input=texts[0], encoding_format="base64")["data"][0]["embedding"]
    np.testing.assert_allclose(np.frombuffer(base64.b64decode(packed), "<f4"), vectors[0], atol=1e-5)
    cosines = ask("similarity", text=texts[0], others=texts)["cosines"]
    expected = encoders["embedder"].product.similarity([texts[0]] * 3, texts)
    assert cosines == pytest.approx(expected.tolist(), abs=1e-5) and cosines[0] == pytest.approx(1)
    refused = client.post("/v1/embeddings", json={"input": ""}).json()["error"]
    assert refused["message"] == "text 1 is empty: send at least a word"


def test_texts_that_may_share_a_batch_have_one_key_and_one_that_is_refused_spoils_no_other(encoders):
    class Worker:
        """Keeps the jobs that it is given; all fail."""

        def __init__(self):
            self.jobs = []

        def submit(self, ticket, key, items, sizes):
            self.jobs.append((key, *items))
            raise Cancelled

    own, worker = encoders["filler"], Worker()
    for text, top in (("a [MASK]", 2), ("no mask", 2), ("the [MASK]", 3)):
        with pytest.raises(Cancelled):
            ServedEncoder("x", own.product, "fill", worker).read(Ticket(), [text], top=top)
    (one, _), (same, _), (other, _) = worker.jobs
    assert one == same != other
    for parts in (["a", "b", "c"], ["a", "b", "c", "d"]):
        with pytest.raises(Cancelled):
            ServedEncoder("x", encoders["choices"].product, "classify", worker).read(Ticket(), [parts])
    assert worker.jobs[-1][0] != worker.jobs[-2][0], "as many parts share a batch"
    with pytest.raises(ValueError):
        own.run(one, ["a [MASK]", "no mask"])  # the worker then runs each alone
    [(found, nothing)], [(none, error)] = own.run(one, ["a [MASK]"]), own.run(one, ["no mask"])
    assert (nothing, none) == (None, None) and len(found.masks[0]) == 2 and isinstance(error, ValueError)


def test_attention_is_that_of_the_encoder(ask, encoders):
    found, own = ask("look/text", text=TEXT, model="tagger"), encoders["tagger"].product
    vocabulary = own.vocabulary
    ids = [vocabulary.special.first, *vocabulary.encode([TEXT])[0], vocabulary.special.last]
    with record(own.model) as maps, torch.inference_mode():
        own.model.encode_text(torch.tensor([ids]))
    assert found["ids"] == ids and found["inputs"][0] == "[CLS]" and found["predictions"] == found["scores"] == []
    np.testing.assert_allclose(found["attention"], torch.cat(maps).numpy(), atol=6e-5)
    assert ask("look/text", 400, text="x", model="tagger", code="Tales") == {
        "error": "tagger has no control codes: leave code out"
    }
    assert ask("look/text", 400, text="the dog " * 90, model="tagger")["error"].startswith("the text has ")


def test_what_is_wrong_is_said_in_a_sentence(ask):
    wrong = {
        ("fill", 400): (
            {"text": ["a [MASK]", "no mask"]},
            "text 2 has no [MASK]: put it where a word should be filled in",
        ),
        ("classify", 400): ({"text": "x"}, "model is missing; choose one of classifier, pairs, choices"),
        ("classify", 404): (
            {"text": "x", "model": "tagger"},
            "model is 'tagger', which is not a model that can classify served here; choose one of classifier, pairs, choices",
        ),
        ("tag", 400): (
            {"text": "a" * 10_001, "model": "tagger"},
            "text 1 has 10,001 characters; the limit per text is 10,000: split it",
        ),
        ("answer", 400): ({"question": " ", "context": "x"}, "text 1 is empty: send at least a word"),
        ("similarity", 400): (
            {"text": "x", "others": ["y"] * 20},
            "there are 21 texts; the limit per request is 20",
        ),
    }
    for (path, status), (body, sentence) in wrong.items():
        assert ask(path, status, **body) == {"error": sentence}
    pair = ask("classify", 400, text=[["a", "b"], "x"], model="pairs")["error"]
    assert pair == "text 2 has 1 part, but the model expects 2 parts: separate parts with tabs"
    assert ask("classify", 400, text=[[]], model="choices")["error"].startswith("text")
    long = ask("fill", 400, text="the dog " * 90 + "[MASK]")["error"]
    assert long.startswith("text 1 has ") and "the model has only 70 positions" in long
    long = {"text": "the dog " * 90, "model": "classifier"}
    assert "shorten it, or allow truncation (too_long='cut'" in ask("classify", 400, **long)["error"]
    assert ask("classify", too_long="cut", **long)["texts"][0]["label"] in LABELS
    assert "no translation model is served here" in ask("translate", 404, text="x", target="en")["error"]


def test_a_key_is_asked_for_and_charged(encoders):
    own = [one for one in served() if one.name == "tagger"]
    keys = ApiKeys([ApiKey(hashlib.sha256(b"sesame").digest(), None, 10)])
    running = RunningService(Service(own, keys=keys))
    with running.client() as client:
        assert client.post("/v1/tag", json={"text": "x"}).status_code == 403
        for status in (200, 429):
            assert client.post("/v1/tag", json={"text": "the dog", "api_key": "sesame"}).status_code == status
    running.stop()


def test_folders_are_served_by_what_they_can_do_or_by_what_is_said(tmp_path):
    own = package("bert", "masked")
    write_package(own._replace(task="masked"), tmp_path / "bert")
    folder = str(tmp_path / "bert")
    first, second = open_models([folder, f"embed={folder}"], "cpu", "torch")
    assert [(one.name, one.verb) for one in (first, second)] == [("bert", "fill"), ("bert-2", "embed")]
    for one in (first, second):
        one.warm_up()
    service = Service([first, second])
    assert service.listing == "fill: bert\nembed: bert-2"
    service.close()
    with pytest.raises(ValueError, match="is a masked language model, which has no languages: give its name only"):
        open_models([f"ko-en={folder}"], "cpu", "torch")
    with pytest.raises(ValueError, match="is a masked language model: it cannot tag; use heed fill or evaluate"):
        open_models([f"tag={folder}"], "cpu", "torch")


def test_a_classifier_that_is_no_encoder_is_served_without_a_look_inside(tmp_path):
    own = classifier()
    write_package(own, tmp_path / "bart")
    [model] = open_models([str(tmp_path / "bart")], "cpu", "torch")
    model.warm_up()
    assert (model.verb, model.facts()["layers"], model.facts()["attention"]) == ("classify", None, False)
    running = RunningService(Service([model]))
    with running.client() as client:
        found = client.post("/v1/classify", json={"text": "책"}).json()["texts"][0]
        assert found["probabilities"].keys() == set(own.processors["labels"].names)
        refused = client.post("/v1/look/text", json={"text": "책"})
        assert refused.status_code == 404
        assert refused.json() == {"error": "no model to look into is served here; see /v1/models"}
    running.stop()


def test_models_say_what_they_are_asked(client, encoders):
    known = {one["name"]: one for one in client.get("/v1/models").json()["encoders"]}
    assert {name: one["verb"] for name, one in known.items()} == {name: one.verb for name, one in encoders.items()}
    assert known["classifier"]["labels"] == LABELS and known["pairs"]["texts"] == 2 and known["choices"]["choices"]
    assert (known["filler"]["kind"], known["filler"]["layers"], known["filler"]["positions"]) == ("bert", 2, 72)
    for one in encoders.values():
        one.warm_up()
