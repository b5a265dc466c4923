"""`heed serve` as a process: it starts, answers, ends on a signal, and reports errors."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

from heed.cli.main import main
from heed.loading import load, write_package
from heed.models.package import Package
from heed.service.http.catalogue import Catalogue
from heed.service.http.models import ServedModel
from heed.service.http.opening import open_models

HELLO = "한국어는 쉬웠어요."


@pytest.fixture(scope="module")
def folder(ko_en, tmp_path_factory):
    """A model that knows its languages."""
    made = tmp_path_factory.mktemp("runs") / "small"
    facts = {"languages": {"source": "ko", "target": "en"}, "max_source": 48, "decoding": {"beam": 3, "max_length": 8}}
    write_package(Package(ko_en.model, "translation", {"source": ko_en.source, "target": ko_en.target}, facts), made)
    return made


@pytest.fixture
def served(folder, tmp_path, request):
    """A process that serves it, and its address."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "heed", "serve", str(folder), "--port", "0", "--engine", "torch", "--threads", "1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env)
    request.addfinalizer(process.stderr.close)
    request.addfinalizer(process.wait)
    request.addfinalizer(process.kill)
    for line in process.stderr:
        if found := re.match(r"(http://127\.0\.0\.1:\d+) ", line):
            return process, found[1]
    raise AssertionError("it did not start")


def listening(port: int) -> list[str]:
    """The addresses that are listened on at a port, as Linux writes them."""
    lines = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()]
    return [words[1] for words in lines if words[3] == "0A" and words[1].endswith(f":{port:04X}")]


def test_sigterm_finishes_what_is_in_flight_refuses_the_rest_and_leaves_with_0(served, folder, tmp_path, request):
    process, url = served
    port = int(url.rpartition(":")[2])
    assert listening(port) == [f"0100007F:{port:04X}"]  # 127.0.0.1 alone, and from when it says so
    texts = [f"한국어는 {i % 100}번 쉬웠어요." for i in range(120)]
    found = {}
    client = httpx.Client(base_url=url, timeout=60, verify=False)
    request.addfinalizer(client.close)

    def ask():
        found["long"] = client.post("/translate", json={"q": texts, "source": "ko", "target": "en"})

    httpx.post(
        f"{url}/translate_file", files={"file": ("a.txt", HELLO.encode())}, data={"source": "ko", "target": "en"}
    )
    assert [path for path in tmp_path.iterdir() if path.name.startswith("heed-serve-")]
    children = [int(own) for own in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    asking = threading.Thread(target=ask)
    asking.start()
    while "heed_inside 1" not in client.get("/metrics").text:
        assert asking.is_alive()
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    with pytest.raises(httpx.TransportError):
        for _ in range(2000):
            httpx.get(f"{url}/health", verify=False)
            time.sleep(0.005)
    asking.join(60)
    assert process.wait(20) == 0
    translator = load(folder, "cpu", "torch")
    assert found["long"].json()["translatedText"] == [one.text for one in translator.translate(texts)]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("heed-serve-")]
    assert not any(Path(f"/proc/{child}").exists() for child in children)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "no model given, and there is no runs/demo: create it with `make demo`, or train one with heed train"),
        (("nowhere",), "nowhere: no such folder"),
        (("FOLDER", "--runs", "nowhere"), "nowhere: no such folder of runs"),
        (("FOLDER", "FOLDER"), "small and small-2 both translate ko to en: serve one of them"),
        (("FOLDER", "--queue", "0"), "the limit of requests is 0; it must be above 0"),
        (("FOLDER", "--batch-tokens", "0"), "--batch-tokens is 0; it must be at least 1"),
        (("FOLDER", "--port", "99999"), "99999 is not a valid port"),
        (("FOLDER", "--api-keys", "nowhere"), "nowhere"),
    ],
)
def test_what_is_wrong_is_said_before_it_starts(folder, monkeypatch, tmp_path, capsys, words, sentence):
    monkeypatch.chdir(tmp_path)
    words = [str(folder) if word == "FOLDER" else word for word in words]
    assert main(["serve", *words, "--engine", "torch"]) == 1
    assert sentence in " ".join(capsys.readouterr().err.split())


def test_languages_of_a_model_can_be_given(folder, tmp_path):
    nameless = tmp_path / "nameless"
    nameless.mkdir()
    for path in folder.iterdir():
        (nameless / path.name).write_bytes(path.read_bytes())
    facts = json.loads((nameless / "config.json").read_text())
    del facts["sha256"]  # of what it said before
    (nameless / "config.json").write_text(json.dumps({**facts, "languages": {"source": None, "target": None}}))
    with pytest.raises(ValueError, match="does not specify its languages: prefix them, as in ko-en="):
        open_models([str(nameless)], "cpu", "torch")
    (model,) = open_models([f"fr-pt-BR={nameless}"], "cpu", "torch")
    assert (model.source, model.target) == ("fr", "pt-BR")


def test_routes_go_through_one_or_two_models(ko_en):
    catalogue = Catalogue([ServedModel(f"{a}-{b}", a, b, ko_en) for a, b in ("ab", "bc", "ba", "cd")])
    ways = {pair: [model.name for model in route] for pair, route in catalogue.pairs.items()}
    assert ways == {
        ("a", "b"): ["a-b"], ("b", "c"): ["b-c"], ("b", "a"): ["b-a"], ("c", "d"): ["c-d"],
        ("a", "c"): ["a-b", "b-c"], ("b", "d"): ["b-c", "c-d"],
    }  # fmt: skip
    assert catalogue.route("a", "a") == []
