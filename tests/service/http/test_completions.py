"""OpenAI's completions: what is answered is what the model gives, whole and as a stream."""

import json
import threading

import openai
import pytest

from heed.service.http import asked_model
from heed.service.http.language_models import ServedLanguageModel
from heed.service.http.limits import Limits
from heed.service.http.models import ServedModel
from heed.service.http.service import Service, Settings
from tests.service.http.conftest import RunningService
from tests.service.language_models import ctrl, gpt2, rnn

HOW = {"seed": 3, "temperature": 0.8, "top_p": 0.9}


@pytest.fixture(scope="module")
def models():
    return {"gpt2": gpt2(), "ctrl": ctrl(), "rnn": rnn()}


@pytest.fixture(scope="module")
def running(models, ko_en):
    served = [ServedModel("ko-en", "ko", "en", ko_en), *(ServedLanguageModel(*each) for each in models.items())]
    running = RunningService(Service(served, Settings(limits=Limits(requests=6))))
    yield running
    running.stop()


@pytest.fixture(scope="module")
def client(running):
    with running.client() as client:
        yield client


@pytest.fixture
def complete(client):
    def post(model="gpt2", **body):
        answer = client.post("/v1/completions", json={"model": model, **body})
        assert answer.status_code == 200, answer.text
        return answer.json()

    return post


def events(client, **body):
    with client.stream("POST", "/v1/completions", json={"stream": True, **body}) as answer:
        assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/event-stream")
        lines = [line.removeprefix("data: ") for line in answer.iter_lines() if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


def test_the_texts_are_those_of_generate(complete, models):
    for name in ("gpt2", "rnn"):
        answer = complete(name, prompt=["the cat", "it was"], max_tokens=12, n=2, min_p=0.01, **HOW)
        many = models[name].generate_many(["the cat", "it was"], length=12, count=2, min_p=0.01, **HOW)
        assert [one["text"] for one in answer["choices"]] == [own.text for each in many for own in each]
        assert [one["index"] for one in answer["choices"]] == [0, 1, 2, 3]
        assert {one["finish_reason"] for one in answer["choices"]} == {"length"}
        assert answer["object"] == "text_completion" and answer["model"] == name and answer["seed"] == 3
        assert answer["usage"] == {"prompt_tokens": 13, "completion_tokens": 48, "total_tokens": 61}


def test_a_stream_is_the_whole_in_parts(client, complete):
    for more in ({}, {"stop": ["t"], "logprobs": 2}, {"echo": True, "n": 2}, {"return_token_ids": True, "logprobs": 0}):
        body = {"model": "rnn", "prompt": "the cat", "max_tokens": 14, **HOW, **more}
        whole, parts = complete(**body), events(client, **body, stream_options={"include_usage": True})
        assert parts.pop()["usage"] == whole["usage"]
        for choice in whole["choices"]:
            own = [part["choices"][0] for part in parts if part["choices"][0]["index"] == choice["index"]]
            assert "".join(part["text"] for part in own) == choice["text"]
            assert [part["finish_reason"] for part in own] == [None] * (len(own) - 1) + [choice["finish_reason"]]
            if choice["logprobs"]:
                for name, values in choice["logprobs"].items():
                    assert [value for part in own for value in part["logprobs"][name]] == values, name


def test_a_stop_string_ends_a_text_and_is_not_in_it(complete):
    free = complete(prompt="the cat", max_tokens=40, **HOW)["choices"][0]["text"]
    stop = free[10:12]
    choice = complete(prompt="the cat", max_tokens=40, stop=stop, **HOW)["choices"][0]
    assert choice["text"] == free[: free.index(stop)] and choice["finish_reason"] == "stop"


def test_a_line_end_ends_a_text_only_with_one_line(complete):
    texts = {seed: complete(prompt="the", max_tokens=40, seed=seed)["choices"][0]["text"] for seed in range(4)}
    seed, length = next((seed, text.index("\n") + 1) for seed, text in texts.items() if "\n" in text)
    for one_line, most, reason in ((False, length, "length"), (True, length, "stop"), (True, 40, "stop")):
        found = complete(prompt="the", max_tokens=most, seed=seed, one_line=one_line)["choices"][0]
        assert found["text"] == texts[seed][:length] and found["finish_reason"] == reason


def test_logprobs_are_those_of_generate_and_of_the_prompt_those_of_score(complete, models):
    answer = complete(prompt="the cat", max_tokens=5, temperature=0, logprobs=3, echo=True, return_token_ids=True)
    [choice], model = answer["choices"], models["gpt2"]
    found, own = choice["logprobs"], model.generate("the cat", length=5, sample=False)[0]
    assert found["token_logprobs"][7:] == pytest.approx(own.token_scores)
    assert found["token_logprobs"][:7] == pytest.approx(model.score(["the cat"])[0].token_scores[:7])
    assert "".join(found["tokens"]) == choice["text"] == "the cat" + own.text
    assert [
        choice["text"][i:].startswith(token) for i, token in zip(found["text_offset"], found["tokens"], strict=True)
    ]
    for token, logp, top in zip(
        found["tokens"][7:], found["token_logprobs"][7:], found["top_logprobs"][7:], strict=True
    ):
        assert len(top) == 3 and max(top.values()) == top[token] == logp
    assert choice["prompt_token_ids"] == model.encode("the cat") and len(choice["token_ids"]) == 12


def test_ids_go_on_as_their_text_and_from_another_token(complete):
    first = complete(prompt="the cat", max_tokens=6, logprobs=2, return_token_ids=True, **HOW)["choices"][0]
    again = complete(prompt=first["prompt_token_ids"], max_tokens=6, **HOW)["choices"][0]
    assert again["text"] == first["text"]
    other = next(one for one in first["logprobs"]["top_tokens"][2] if one["id"] != first["token_ids"][2])
    ids = [*first["prompt_token_ids"], *first["token_ids"][:2], other["id"]]
    text = complete(prompt=ids, max_tokens=3, echo=True, **HOW)["choices"][0]["text"]
    assert text.startswith("the cat" + first["text"][:2] + other["text"])


def test_a_prompt_can_be_scored_without_writing(complete):
    choice = complete(prompt="the cat", max_tokens=0, echo=True, logprobs=1)["choices"][0]
    assert choice["text"] == "the cat" and len(choice["logprobs"]["tokens"]) == 7
    assert choice["finish_reason"] == "length"


def test_a_prompt_is_read_in_slices(complete, running, monkeypatch):
    own = running.service.language_models["rnn"]
    kinds, ask = [], own.ask
    monkeypatch.setattr(
        own, "ask", lambda ticket, kind, call, size: kinds.append(kind) or ask(ticket, kind, call, size)
    )
    monkeypatch.setattr(asked_model, "SLICE_SECONDS", 0.0)
    choice = complete(prompt="the cat", model="rnn", max_tokens=0, echo=True, logprobs=1)["choices"][0]
    assert "".join(choice["logprobs"]["tokens"]) == "the cat"
    assert kinds == ["read"] * (len(choice["logprobs"]["tokens"]) + 1)  # the last one is empty


def test_a_control_code_changes_what_is_likely(complete, models):
    scores = []
    for code in ("Tales", "Letters"):
        found = complete("ctrl", prompt="the", code=code, max_tokens=9, logprobs=0, **HOW)["choices"][0]
        own = models["ctrl"].generate("the", code=code, length=9, **HOW)[0]
        assert found["text"] == own.text and found["logprobs"]["token_logprobs"] == pytest.approx(own.token_scores)
        scores.append(own.token_scores)
    assert scores[0] != scores[1]


@pytest.mark.parametrize(("body", "status", "words"), [
    ({"presence_penalty": 0.5}, 400, "presence_penalty is 0.5: this penalty is not supported: leave it out, or use repetition_penalty"),
    ({"suffix": "end"}, 400, "suffix is 'end': this is not supported: leave it out"),
    ({"model": "gpt5"}, 404, "model is 'gpt5', which is not a language model served here; choose one of gpt2, ctrl, rnn"),
    ({"model": None}, 400, "model is missing; choose one of gpt2, ctrl, rnn"),
    ({"model": "ctrl"}, 400, "texts of this model begin with a control code, but the prompt is empty: give one of Letters, Tales"),
    ({"model": "ctrl", "code": "tale"}, 400, "the model has no control code 'tale'; did you mean Tales?"),
    ({"n": 3, "temperature": 0}, 400, "n is 3, but at temperature 0 there is only one text: raise the temperature"),
    ({"prompt": [4, 999]}, 400, "prompt contains the token id 999; valid ids are 0 to 24"),
    ({"prompt": []}, 400, "prompt is an empty list: give at least one text"),
    ({"prompt": ["a"] * 20, "n": 2}, 400, "20 prompts with n 2 are 40 texts; the limit per request is 32"),
    ({"best_of": 5}, 400, "best_of is 5: it is not supported unless it equals n, which is 1"),
    ({"stop": [""]}, 400, "a stop string is empty"),
    ({"stream": True, "stop": [""]}, 400, "a stop string is empty"),
    ({"echo": True, "logprobs": 1, "prompt": "cat " * 30}, 400, "but the model has only 64 positions"),
])  # fmt: skip
def test_what_is_wrong_is_said_in_their_shape(client, body, status, words):
    answer = client.post("/v1/completions", json={"model": "gpt2", **body})
    error = answer.json()["error"]
    assert answer.status_code == status and error.keys() == {"message", "type", "param", "code"}
    assert words in error["message"]


def test_models_are_listed_for_their_clients_and_ours(client):
    known = client.get("/v1/models").json()
    assert known["object"] == "list" and [one["id"] for one in known["data"]] == ["gpt2", "ctrl", "rnn"]
    assert [one["name"] for one in known["models"]] == ["ko-en"], "clients of translators find what they know"
    assert known["language_models"][1]["codes"] == ["Tales", "Letters"]
    assert client.get("/v1/models/rnn").json() == known["data"][2]
    assert client.get("/v1/models/none").json()["error"]["code"] == "model_not_found"


def test_a_text_is_seen_from_inside(client, models):
    for name, layers in (("gpt2", 2), ("rnn", 0)):
        look = client.post("/v1/look/text", json={"text": "the cat", "model": name}).json()
        assert len(look["attention"]) == layers and len(look["inputs"]) == 8
        assert look["scores"] == pytest.approx(models[name].score(["the cat"])[0].token_scores[:7])
        for row, weights in enumerate(look["attention"][0][0] if layers else []):
            assert sum(weights) == pytest.approx(1, abs=1e-3) and not any(weights[row + 1 :])
    answer = client.post("/v1/look/text", json={"text": "the cat" * 200, "model": "gpt2"})
    assert answer.json() == {"error": "the text has 1,401 tokens; the limit for inspection is 64: shorten it"}


def test_a_long_text_lets_others_through_and_ends_when_its_client_leaves(running, client, complete):
    long = {"model": "rnn", "prompt": "the", "max_tokens": 4096, "n": 8, "stream": True}
    with running.client().stream("POST", "/v1/completions", json=long) as answer:
        lines = answer.iter_lines()  # one that is dropped would close the connection
        assert next(lines).startswith("data: ")
        assert len(complete("rnn", prompt="the", max_tokens=4)["choices"]) == 1, "another is answered meanwhile"
        assert len(running.service.gate.active) == 1, "and the long one goes on"
    while running.service.gate.active:
        threading.Event().wait(0.01)
    written = running.service.metrics.generated.values[("model", "rnn"),]
    assert written < 8 * 4096 and "heed_generated_tokens_total" in client.get("/metrics").text


def test_a_request_that_fails_takes_no_tokens_of_another(models):
    found = models["gpt2"].write([models["gpt2"].prompt("the")], length=2)

    def fail():
        raise ValueError("no")

    [(first, none), (nothing, error)] = ServedLanguageModel("x", models["gpt2"]).run(
        ("write",), [lambda: next(found), fail]
    )
    assert len(first) == 1 and none is nothing is None and str(error) == "no"
    assert len(list(found)) == 1, "the first was run once"


def test_without_a_translator_translations_are_refused_with_a_sentence(models):
    running = RunningService(Service([ServedLanguageModel("gpt2", models["gpt2"])]))
    with running.client() as client:
        assert client.post("/v1/completions", json={"prompt": "the", "max_tokens": 2}).status_code == 200
        for path, body in (
            ("/v1/translate", {"text": "a"}),
            ("/translate", {"q": "a", "source": "en", "target": "de"}),
        ):
            answer = client.post(path, json=body)
            assert answer.status_code == 404 and answer.json() == {
                "error": "no translation model is served here; see /v1/models"
            }
        assert client.get("/languages").json() == [] and client.get("/frontend/settings").status_code == 200
        assert client.get("/openapi.json").status_code == 200
    running.stop()


def test_the_official_client_reads_all_of_it(running):
    own = openai.OpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0)
    assert [one.id for one in own.models.list()] == ["gpt2", "ctrl", "rnn"]
    assert own.models.retrieve("rnn").owned_by == "heed"
    body = {"model": "gpt2", "prompt": "the cat", "max_tokens": 8, "seed": 2}
    whole = own.completions.create(**body, logprobs=2, extra_body={"min_p": 0.02})
    assert len(whole.choices[0].logprobs.top_logprobs) == 8 and whole.usage.completion_tokens == 8
    parts = list(own.completions.create(**body, stream=True, extra_body={"min_p": 0.02}))
    assert "".join(part.choices[0].text for part in parts) == whole.choices[0].text
    with pytest.raises(openai.BadRequestError, match="this penalty is not supported"):
        own.completions.create(**body, frequency_penalty=1)
    with pytest.raises(openai.NotFoundError, match="not a language model"):
        own.completions.create(**{**body, "model": "gpt5"})
