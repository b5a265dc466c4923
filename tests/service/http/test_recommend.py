"""Recommendations over HTTP: what is answered is what the product says, and requests share batches."""

import difflib
import threading
import time
from itertools import chain

import pytest
import torch

from heed.loading import write_package
from heed.models.package import Package
from heed.models.sasrec import SASRec, SASRecConfig
from heed.nn.attention import record
from heed.products.recommender import Recommender
from heed.service.http.limits import ApiKey, ApiKeys, Limits
from heed.service.http.opening import open_models
from heed.service.http.queue import Ticket
from heed.service.http.recommenders import ItemsAfter, ServedRecommender
from heed.service.http.service import Service, Settings
from heed.vocabularies.items import Items
from tests.service.http.conftest import RunningService
from tests.service.recommenders import ITEMS, USERS, recommender


@pytest.fixture(scope="module")
def shop():
    return ServedRecommender("shop", recommender())


@pytest.fixture(scope="module")
def client(shop):
    other = ServedRecommender("masked", recommender("bert4rec", with_histories=False))
    running = RunningService(Service([shop, other], Settings(limits=Limits(texts=30, characters=2_000))))
    with running.client() as client:
        yield client
    running.stop()


@pytest.fixture
def ask(client):
    def post(status=200, **body):
        answer = client.post("/v1/recommend", json={"model": "shop", **body})
        assert answer.status_code == status, answer.text
        return answer.json()

    return post


def said(results):
    return [[(one["item"], pytest.approx(one["score"], abs=1e-5)) for one in own["items"]] for own in results]


def own(found):
    return [[(one.item, one.score) for one in row] for row in found]


@pytest.mark.parametrize("exclude", [False, True])
def test_items_and_users_get_what_the_product_recommends(ask, shop, exclude):
    histories = [["tea", "Milk"], ["사과"], ITEMS[:9]]
    found = ask(items=histories, k=4, exclude_seen=exclude)
    assert own(shop.product.recommend(histories, 4, exclude_seen=exclude)) == said(found["results"])
    assert [one["history"] for one in found["results"]] == histories and found["model"] == "shop"
    users = ask(user=["ann", "bob"], k=20, exclude_seen=exclude)["results"]
    assert own(shop.product.recommend_users(["ann", "bob"], 20, exclude_seen=exclude)) == said(users)
    assert [one["user"] for one in users] == ["ann", "bob"]
    assert users[0]["history"] == [ITEMS[i] for i in USERS["ann"]]
    assert [len(one["items"]) for one in users] == ([9, 3] if exclude else [12, 12])
    assert ask(user="ann", k=20, exclude_seen=exclude)["results"] == [
        {**users[0], "items": [{**one, "score": pytest.approx(one["score"], abs=1e-5)} for one in users[0]["items"]]}
    ]


@pytest.mark.parametrize("kind", ["shop", "masked"])
def test_an_explanation_is_the_attention_and_what_scores_lose(ask, kind):
    history = ["tea", "사과", "bread", "soap", "towel", "Milk", "butter", "배"]
    [found] = ask(items=history, k=3, explain=True, model=kind)["results"]
    product = recommender("sasrec" if kind == "shop" else "bert4rec")
    model, longest = product.model, 6 - (kind == "masked")
    ids = product.items.encode(history)[-longest:] + [model.mask] * (kind == "masked")
    with torch.inference_mode(), record(model) as maps:
        model.item_states(torch.tensor([ids]))
    for layer, told in zip(maps, found["attention"], strict=True):
        assert told[: len(history) - longest] == [0.0] * (len(history) - longest)
        assert told[-longest:] == pytest.approx(layer[0, :, -1, :longest].mean(0).tolist(), abs=1e-5)
    for one in found["items"]:
        for place in range(len(history)):
            above = []
            for asked in (history, history[:place] + history[place + 1 :]):
                scores = {other.item: other.score for other in product.recommend([asked], 12)[0]}
                above.append(scores[one["item"]] - sum(scores.values()) / len(scores))
            assert one["influence"][place] == pytest.approx(above[0] - above[1], abs=1e-5)
    [alone] = ask(items=["tea"], k=1, explain=True, model=kind)["results"]
    scores = [other.score for other in product.recommend([["tea"]], 12)[0]]
    assert alone["items"][0]["influence"] == [pytest.approx(scores[0] - sum(scores) / 12, abs=1e-5)]


def test_requests_that_wait_together_share_a_batch():
    batches, ready = [], threading.Event()

    class Watched(ServedRecommender):
        def run(self, key, items):
            ready.wait(20)
            batches.append((key, len(items)))
            return super().run(key, items)

    model = Watched("shop", recommender())
    model.start(lambda *of: None, max_wait=0, max_tokens=1024, max_jobs=64)
    asked = [ItemsAfter((i,), 1 + i) for i in range(9)]
    found = {}
    threads = [
        threading.Thread(target=lambda i=i: found.update({i: model.recommend(Ticket(), [asked[i]], False)}))
        for i in range(9)
    ]
    for number, thread in enumerate(threads):
        thread.start()
        while len(model.worker.running) + model.worker.waiting_jobs < number + 1:
            time.sleep(0.001)
    ready.set()
    for thread in threads:
        thread.join(20)
    model.worker.close()
    assert sum(size for _, size in batches) == 9 and len(batches) <= 2, "some may be taken before the others come"
    for i, [one] in found.items():
        assert own(model.product.recommend([[ITEMS[i]]], 1 + i)) == said([one])


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "give either items or user"),
        ({"items": ["tea"], "user": "ann"}, "give either items or user"),
        ({"items": ["Tea"]}, "'Tea' is not one of the 12 items the model was trained on"),
        ({"items": [["tea"], ["?"]]}, "'?' is not one of the 12 items the model was trained on"),
        ({"items": [["tea"], ["?"]], "unknown": "leave_out"}, "history 2 has no items that the model knows"),
        ({"user": "eve"}, "'eve' is not one of the 3 users the model was trained on: give items instead"),
        ({"user": "new"}, "history 1 has no items that the model knows"),
        ({"user": "ann", "model": "masked"}, "the model folder has no user histories (task.histories): give items instead"),
        ({"items": ["tea"], "k": 0}, "k is 0: input should be greater than or equal to 1"),
        ({"items": []}, "items is []: "),
        ({"items": [["tea"]] * 31}, "there are 31 texts; the limit per request is 30"),
        ({"items": ["tea"] * 700}, "there are 2,100 characters; the limit per request is 2,000"),
        ({"items": [["tea"]] * 21, "explain": True}, "explain supports at most 20 histories per request"),
        ({"items": [["tea"]] * 101, "k": 1000}, "101,000 recommendations requested; the limit per request is 100,000"),
    ],
)  # fmt: skip
def test_what_cannot_be_answered_is_said_in_a_sentence(ask, body, says):
    assert says in ask(400, **body)["error"]


def test_an_unknown_item_is_refused_without_a_search_for_similar_ones(ask, monkeypatch):
    monkeypatch.setattr(difflib, "get_close_matches", None)  # it would take seconds of the slot of short requests
    assert ask(400, items=["Tea"])["error"].endswith("the model was trained on")


def test_an_unknown_item_is_left_out_on_request(ask, shop):
    found = ask(items=["?", "tea", "!"], unknown="leave_out", k=2)["results"]
    assert found[0]["history"] == ["tea"] and said(found) == own(shop.product.recommend([["tea"]], 2))


def test_items_are_found_by_name_in_pages(client, ask):
    def items(**query):
        answer = client.get("/v1/items", params={"model": "shop", **query})
        assert answer.status_code == 200, answer.text
        return answer.json()

    assert items() == {"items": ITEMS, "total": 12, "next": None, "model": "shop"}
    assert items(q="tea")["items"] == ["tea", "teapot", "green tea"], "what begins with it comes first"
    assert items(q=" TEAPOT ")["items"] == ["teapot"] and items(q="milk")["items"] == ["Milk"]
    assert items(q="사과")["items"] == ["사과", "사과 주스"] and items(q="사과")["items"] == ["사과", "사과 주스"]
    pages, after = [], 0
    while after is not None:
        found = items(limit=5, after=after)
        pages.append(found["items"])
        after = found["next"]
    assert [*chain(*pages)] == ITEMS and list(map(len, pages)) == [5, 5, 2]
    assert items(q="nothing") == {"items": [], "total": 0, "next": None, "model": "shop"}
    wrong = client.get("/v1/items", params={"limit": 101, "model": "shop"})
    assert wrong.status_code == 400 and wrong.json()["error"].startswith("limit: ")
    assert "model is missing; choose one of shop, masked" in client.get("/v1/items").json()["error"]


def test_models_say_how_many_items_and_users_they_have(client):
    found = client.get("/v1/models").json()
    facts = [(one["name"], one["kind"], one["items"], one["users"]) for one in found["recommenders"]]
    assert facts == [("shop", "sasrec", 12, 3), ("masked", "bert4rec", 12, 0)] and found["encoders"] == []


def test_keys_are_asked_for_and_another_service_has_no_recommender(running):
    keys = ApiKeys([ApiKey(b"", None, None)])
    own_service = RunningService(Service([ServedRecommender("shop", recommender())], keys=keys))
    with own_service.client() as client:
        assert client.get("/v1/items").status_code == 403
        assert client.post("/v1/recommend", json={"items": ["tea"]}).status_code == 403
    own_service.stop()
    with running.client() as client:
        answer = client.post("/v1/recommend", json={"items": ["tea"]})
        assert answer.status_code == 404 and "no recommender is served here" in answer.json()["error"]


def test_a_folder_of_a_recommender_is_served(tmp_path):
    product = recommender()
    processors = {"items": product.items, "histories": product.histories}
    write_package(Package(product.model, "recommendation", processors, {}), tmp_path / "shop")
    [served] = open_models([str(tmp_path / "shop")], "cpu", "torch")
    assert isinstance(served, ServedRecommender) and served.name == "shop"
    served.warm_up()
    assert Service([served]).listing.endswith("recommend: shop")
    served.worker.close()
    with pytest.raises(ValueError, match="is a recommender, which has no languages"):
        open_models([f"ko-en={tmp_path / 'shop'}"], "cpu", "torch")


def test_a_shop_with_one_item_is_served():
    torch.manual_seed(3)
    model = SASRec(SASRecConfig(items=1, dim=4, heads=1, hidden=4, layers=1, max_length=3)).eval()
    shop = ServedRecommender("shop", Recommender(model, Items(["tea"])))
    shop.warm_up()
    assert shop.product.items.search("TE").tolist() == [0] and shop.product.items.search("milk").tolist() == []
