"""Segmentation of texts: the same in this process and in another, and a text made to be slow delays nobody else."""

import io
import os
import sys
import threading
import zipfile

import httpx
import pytest

from heed.service.http import segmenter, segmenter_pool
from heed.service.http.queue import Cancelled, Ticket
from heed.service.http.segmenter import ALIGN, TextTask, to_request
from heed.service.http.segmenter_pool import SegmenterPool
from heed.text import documents, markup, passages
from heed.text.inline import Translated
from heed.text.protected import Model, ModelRequest, translate_with
from tests.service.http.test_limits import block_model, wait_until

HELLO = "한국어는 쉬웠어요."
TEXT = f"# {HELLO}\r\n\r\n  - {HELLO} https://a.example {{name}} 😀\n\t{HELLO}\n"
PAGE = f'<p title="{HELLO}">한국어는 <b>쉬웠어요</b> &amp; <i>{HELLO}</i> {{name}}</p><script>x</script>'
WORD = '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:body></w:document>'


def docx() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", WORD.format(HELLO))
    return out.getvalue()


def said(text: str) -> str:
    """A translation that reverses words and drops braces, so that all ways to protect placeholders are tried."""
    return " ".join(word[::-1].strip("{}") for word in reversed(text.split()))


def links(source: str, target: str) -> list:
    most = len(source.split())
    return [(i, most - 1 - i) for i in range(most) if most == len(target.split())]


def run_task(step, task):
    """The output of a task with the answers of this translation."""
    known, rounds = {}, 0
    while (found := step(task, known)).missing:
        rounds += 1
        assert rounds < 30 and not set(found.missing) & set(known)
        for key in found.missing:
            kind, source, target = key
            known[key] = (
                links(source, target)
                if kind == ALIGN
                else f"So {said(source)}"
                if to_request(key).prefix
                else said(source)
            )
    return found.output


class Known(Model):
    """That translation as a model; a search for required parts finds nothing else."""

    can_require = True

    def translate(self, requests):
        return [said(request.text) for request in requests]

    def align(self, sources, targets):
        return list(map(links, sources, targets))


def aligned(texts):
    made = translate_with(Known(), [ModelRequest(text) for text in texts])
    return [Translated(one.text, links(text, one.text)) for text, one in zip(texts, made, strict=True)]


TASKS = [
    TextTask("plain", [TEXT, "", HELLO, "\n\n"], "ko", ["한국어는"]),
    TextTask("passages", [TEXT, HELLO, ""], "ko"),
    TextTask("passages", [TEXT, HELLO, ""], "ko", prefix="So"),
    TextTask("pages", [PAGE, PAGE[:40]], "ko"),
    TextTask("document", name="a.html", data=PAGE.encode(), language="ko"),
    TextTask("document", name="a.md", data=TEXT.encode()),
    TextTask("document", name="a.tsv", data=f"1\t{HELLO}\n".encode(), column=2),
    TextTask("document", name="a.docx", data=docx(), language="ko"),
]


@pytest.fixture(scope="module")
def pool():
    made = SegmenterPool()
    yield made
    made.close()


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"{task.kind} {task.name} {task.prefix}")
def test_a_process_gives_the_same_output_as_this_one(pool, task):
    ticket = Ticket()

    def elsewhere(task, known):
        return pool._run_in_process(task, known, ticket)

    assert run_task(elsewhere, task) == run_task(segmenter.run_step, task)
    assert len(pool.idle) == 1 and not ticket.workers


def test_steps_give_the_same_output_as_a_direct_translation():
    def plain(text, keep=()):
        return passages.translate([text], Known(), language="ko", keep=keep)[0][0]

    plainly, _, begun, pages, html, *_ = TASKS
    assert run_task(segmenter.run_step, plainly) == [plain(text, ["한국어는"]) for text in plainly.texts]
    assert run_task(segmenter.run_step, pages) == [
        markup.translate(page, aligned, language="ko") for page in pages.texts
    ]
    whole = f"So {said(HELLO)}"
    passage = passages.Passage(HELLO, 0, 10, whole, 0, 13, ModelRequest(HELLO, "So"))
    assert run_task(segmenter.run_step, begun)[1] == (whole, [passage])
    assert run_task(segmenter.run_step, html) == documents.translate(html.data, "a.html", aligned, language="ko")


def test_errors_in_a_process_are_reported(pool):
    with pytest.raises(ValueError, match=r"a\.exe ends in \.exe"):
        pool._run_in_process(TextTask("document", name="a.exe"), {}, Ticket())
    with pytest.raises(RuntimeError, match="TypeError"):
        pool._run_in_process(
            TextTask("document", name="a.txt", data=b"\xea\xb0\x80"), {(segmenter.TRANSLATE, "가", ""): 5}, Ticket()
        )
    assert run_task(lambda *both: pool._run_in_process(*both, Ticket()), TASKS[1])


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def slow(monkeypatch):
    """Processes that never answer."""
    monkeypatch.setattr(segmenter_pool, "COMMAND", [sys.executable, "-c", "import time; time.sleep(600)"])


def test_a_step_that_takes_too_long_is_killed(slow, monkeypatch):
    pool = SegmenterPool(seconds=0.5)
    with pytest.raises(ValueError, match="takes too much time or memory to process: send less at once"):
        pool.run_step(TextTask("document", name="a.html"), {}, Ticket())
    assert not pool.idle
    pool.seconds = 20
    monkeypatch.undo()
    assert run_task(lambda *both: pool._run_in_process(*both, Ticket()), TASKS[1])
    (process,) = pool.idle
    process.cancel(Ticket())  # too late: it no longer works for this ticket
    assert process.process.poll() is None and not process.killed
    pool.close()
    assert not alive(process.process.pid)


def test_a_process_that_has_died_is_replaced(monkeypatch):
    pool = SegmenterPool()
    monkeypatch.setattr(segmenter_pool, "COMMAND", [sys.executable, "-c", "raise SystemExit(3)"])
    with pytest.raises(ValueError, match="memory to process"):
        pool._run_in_process(TASKS[0], {}, Ticket())
    assert not pool.idle
    monkeypatch.undo()
    made = run_task(lambda *both: pool._run_in_process(*both, Ticket()), TASKS[0])
    pool.idle[0].process.kill()
    pool.idle[0].process.wait()
    assert run_task(lambda *both: pool._run_in_process(*both, Ticket()), TASKS[0]) == made
    pool.close()


def test_a_request_cancelled_while_waiting_for_a_process_ends_at_once(slow):
    pool, first, second = SegmenterPool(max_processes=1), Ticket(), Ticket()
    busy = threading.Thread(target=_expect_cancelled, args=(pool, first))
    busy.start()
    wait_until(lambda: first.workers)
    waits = threading.Thread(target=_expect_cancelled, args=(pool, second))
    waits.start()
    second.cancel()
    waits.join(10)
    assert not waits.is_alive() and busy.is_alive()
    first.cancel()
    busy.join(10)
    assert not busy.is_alive()


def _expect_cancelled(pool, ticket):
    with ticket.slots, pytest.raises(Cancelled):
        pool.run_step(TextTask("document", name="a.html"), {}, ticket)


def test_a_cancelled_request_kills_its_process(slow):
    pool, ticket, found = SegmenterPool(), Ticket(), []

    def work():
        try:
            with ticket.slots:
                pool.run_step(TextTask("document", name="a.html"), {}, ticket)
        except Cancelled:
            found.append("cancelled")

    thread = threading.Thread(target=work)
    thread.start()
    wait_until(lambda: ticket.workers)
    (process,) = ticket.workers
    ticket.cancel()
    thread.join(10)
    assert found == ["cancelled"] and not pool.idle and not alive(process.process.pid)
    with pytest.raises(Cancelled):
        pool.run_step(TextTask("document", name="a.md"), {}, ticket)


def test_a_file_made_to_be_slow_delays_nobody_else(start, slow, ko_en):
    running = start(both=False, limits={"seconds": 1.5})
    data = {"source": "ko", "target": "en"}
    with running.client() as client:
        late = client.post("/translate_file", files={"file": ("a.html", b"a")}, data=data)
        assert late.status_code == 503 and "timed out after 1.5 seconds" in late.json()["error"]
        wait_until(lambda: not running.service.gate.active)
        assert not running.service.segmenters.idle
        one = client.post("/translate", json={"q": HELLO, **data}).json()
        assert one["translatedText"] == ko_en.translate(HELLO).text


def test_processes_end_with_the_service(start):
    running = start(both=False)
    with running.client() as client:
        sent = {"file": ("a.txt", HELLO.encode())}
        assert client.post("/translate_file", files=sent, data={"source": "ko", "target": "en"}).status_code == 200
    (process,) = running.service.segmenters.idle
    running.stop()
    assert not alive(process.process.pid)


def test_short_requests_do_not_wait_for_long_ones(start, monkeypatch, ko_en):
    running = start(both=False)
    held_up, free = threading.Event(), threading.Event()
    parts = ko_en.parts

    def slow(text):
        if len(text) > 400:
            held_up.set()
            assert free.wait(30)
            return []
        return parts(text)

    monkeypatch.setattr(running.service.catalogue.models[0].translator, "parts", slow)
    long = threading.Thread(target=_send, args=(running, "가" * 3000))
    long.start()
    assert held_up.wait(10)
    others = [threading.Thread(target=_send, args=(running, "나" * 3000)) for _ in range(3)]
    for other in others:
        other.start()
    wait_until(lambda: len(running.service.gate.active) == 4)
    with running.client() as client:
        said = client.post("/translate", json={"q": HELLO, "source": "ko", "target": "en"}).json()
    assert said["translatedText"] == ko_en.translate(HELLO).text
    free.set()
    for thread in (long, *others):
        thread.join(30)


def _send(running, text):
    httpx.post(f"{running.url}/translate", json={"q": text, "source": "ko", "target": "en"}, timeout=60)


@pytest.mark.parametrize("form", ["text", "html"])
def test_the_texts_of_a_list_share_their_batches(start, monkeypatch, ko_en, pairs, form):
    running = start(both=False)
    texts = list(dict.fromkeys(pair.source for pair in pairs))[:30]
    free, begun = block_model(running, monkeypatch)
    first = threading.Thread(target=_send, args=(running, HELLO))
    first.start()
    assert begun.wait(10)
    found = []
    asked = {
        "q": [f"<b>{text}</b>" for text in texts] if form == "html" else texts,
        "source": "ko",
        "target": "en",
        "format": form,
    }
    second = threading.Thread(
        target=lambda: found.append(httpx.post(f"{running.url}/translate", json=asked, timeout=60).json())
    )
    second.start()
    worker = running.service.catalogue.models[0].worker
    wait_until(lambda: worker.waiting_jobs == 30)  # all of them wait together
    free.set()
    for thread in (first, second):
        thread.join(30)
    right = [one.text for one in ko_en.translate(texts)]
    assert found[0]["translatedText"] == ([f"<b>{text}</b>" for text in right] if form == "html" else right)
    with running.client() as client:
        ours = client.post("/v1/translate", json={"text": texts, "source": "ko"}).json()
    assert [one["text"] for one in ours["translations"]] == right


def test_a_word_that_could_be_a_list_mark_is_translated_as_the_command_does():
    missing = segmenter.run_step(segmenter.TextTask("plain", ["가."], "ko"), {}).missing
    assert missing == [(segmenter.TRANSLATE, "가.", "")]
