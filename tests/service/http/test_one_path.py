"""The service, the command and the library translate a text in one way; numbers and other spans stay in their sentences."""

import pytest

from heed.text.protect import find

NUMBERS = ["한국어는 3,000원이에요.", "한국어는 0.3% 쉬웠어요.", "{name}님, 한국어는 쉬웠어요."]
TEXTS = [
    "가.", "한국어는 쉬웠어요. 가. 한국어는 쉬웠어요!", "1. 한국어는 쉬웠어요.", "가. 한국어는", "https://a.example 한국어는 쉬웠어요 😀", "", "...", "12",
    *NUMBERS, "- 한국어는 <b>쉬웠어요</b> `f(x)`. 한국어는 2,024년이에요.",
]  # fmt: skip


def test_what_the_service_says_is_what_the_library_says(client, ko_en):
    pair = {"source": "ko", "target": "en"}
    ours = [one.text for one in ko_en.translate(TEXTS, sentences=True)]
    assert client.post("/translate", json={"q": TEXTS, **pair}).json()["translatedText"] == ours
    found = client.post("/v1/translate", json={"text": TEXTS, **pair}).json()["translations"]
    assert [one["text"] for one in found] == ours
    one_by_one = [ko_en.translate(text, sentences=True).text for text in TEXTS]
    assert one_by_one == ours


@pytest.mark.parametrize("text", NUMBERS)
def test_a_sentence_with_a_number_is_one_sentence_with_scores_tokens_and_links(client, text):
    one = client.post("/v1/translate", json={"text": text, "source": "ko", "target": "en"}).json()["translations"][0]
    (sentence,) = one["sentences"]
    assert sentence["source"]["text"] == text and sentence["target"]["text"] == one["text"]
    assert isinstance(sentence["score"], float) and one["score"] == sentence["score"]
    assert sentence["tokens"] and sentence["alignment"] and len(sentence["nbest"]) == 1
    assert [span.text for span in find(one["text"], ["3,000", "0.3%"])] == [
        span.text for span in find(text, ["3,000", "0.3%"])
    ]
