"""The load generator of the bench: what it counts as right, wrong, refused and broken."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def load(running, texts, expected, **plan):
    bodies = [{"q": text, "source": "ko", "target": "en"} for text in texts]
    whole = {
        "port": running.port,
        "path": "/translate",
        "bodies": bodies,
        "expected": expected,
        "field": "translatedText",
    }
    words = [sys.executable, "-m", "bench.serving_load"]
    made = subprocess.run(words, input=json.dumps(whole | plan), capture_output=True, text=True, check=True, cwd=ROOT)
    return json.loads(made.stdout)


@pytest.mark.parametrize("rate", [0, 40])
def test_answers_are_compared_with_what_is_expected_of_their_own_question(start, ko_en, texts, rate):
    running = start(both=False)
    right = [one.text for one in ko_en.translate(texts)]
    found = load(running, texts, right, connections=4, seconds=0.5, rate=rate)
    assert found["answered"] and not found["wrong"] and not found["broken"] and not found["refused"]
    mixed = load(running, texts, [*right[1:], right[0]], connections=4, seconds=0.3, rate=rate)
    assert len(mixed["wrong"]) == len(mixed["answered"]) > 0


def test_refusals_and_faults_are_told_apart(start, texts):
    running = start(both=False, limits={"characters": 1})
    found = load(running, texts, texts, connections=2, seconds=0.2)
    assert found["broken"] and not found["answered"] and "the limit per request is 1" in found["broken"][0]
    running.service.gate.closing = True
    refused = load(running, texts, texts, connections=2, seconds=0.2)
    assert refused["refused"] and not refused["no_retry"] and not refused["broken"] and not refused["answered"]
