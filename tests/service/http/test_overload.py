"""More than the service can take: every answer is right or a refusal, and afterwards all is as it was."""

import asyncio
import random

import httpx


def test_under_ten_times_its_load_every_answer_is_right_or_a_refusal(start, ko_en, pairs):
    running = start(both=False, limits={"requests": 3})
    texts = [pair.source for pair in pairs[:40]]
    right = {text: one.text for text, one in zip(texts, ko_en.translate(texts), strict=True)}
    found: list[int] = []

    async def client(number: int, http: httpx.AsyncClient) -> None:
        chance = random.Random(number)
        for _ in range(3):
            own = chance.sample(texts, chance.randint(1, 3))
            said = await http.post("/translate", json={"q": own, "source": "ko", "target": "en"})
            found.append(said.status_code)
            if said.status_code == 200:
                assert said.json() == {"translatedText": [right[text] for text in own]}
            else:
                assert said.status_code == 503 and said.headers["retry-after"]

    async def everyone() -> None:
        limits = httpx.Limits(max_connections=30)
        async with httpx.AsyncClient(base_url=running.url, timeout=30, limits=limits, verify=False) as http:
            await asyncio.gather(*(client(number, http) for number in range(30)))

    asyncio.run(everyone())
    assert found.count(200) >= 3 and found.count(503) >= 3
    assert len(found) == 90
    assert not running.service.gate.active and not running.service.gate.characters
    worker = running.service.catalogue.models[0].worker
    assert worker.waiting_tokens == 0 and not worker.waiting and not worker.received
    figures = running.service.metrics.text()
    assert 'status="503"' in figures
    assert sum(running.service.metrics.batch_sentences.values[(("model", "ko-en"),)][0][1:]) > 0  # some went together
