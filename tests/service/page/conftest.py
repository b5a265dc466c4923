"""The page in a real browser, on a real service with two small models and a folder of runs."""

import json

import pytest

from heed.service.http.models import ServedModel
from heed.service.http.service import Service, Settings
from tests.chromium import chromium
from tests.service.http.conftest import RunningService
from tests.service.page.fake import Fake
from tests.service.page.recurrent import recurrent


def step(number, loss):
    return {
        "kind": "step", "step": number, "epoch": 0, "loss": loss, "perplexity": 2.718**loss, "rate": 0.001,
        "gradient": 1.0, "tokens_per_second": 4000.0, "seconds": number / 10, "seconds_left": (600 - number) / 10,
    }  # fmt: skip


def valid(number, bleu):
    return {
        "kind": "valid",
        "step": number,
        "epoch": 0,
        "loss": 1.0,
        "perplexity": 2.7,
        "bleu": bleu,
        "chrf": bleu + 20,
    }


def write_run(folder, lines, said, task="translation"):
    (folder / "samples").mkdir(parents=True)
    (folder / "recipe.toml").write_text(f'[task]\nname = "{task}"\n\n[training]\nsteps = 600\n', "utf-8")
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    for number, text in said.items():
        block = f"한국어는 쉬웠어요.\n= Korean was easy.\n> {text}\n\n"
        (folder / "samples" / f"step-{number:06}.txt").write_text(block, "utf-8")


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("watched")
    lines = [step(100, 5.0), step(200, 3.0), valid(200, 20.0), step(300, 2.0), step(400, 1.5), valid(400, 60.0)]
    write_run(folder / "first", lines, {200: "Was was was.", 400: "Korean was easy."})
    write_run(folder / "second", lines[:3], {200: "The cat."})
    return folder


@pytest.fixture(scope="session")
def service(make, vocabulary, runs):
    """Korean to English and back, and recurrent ones to German and back; they say different things, and know nothing."""
    models = [
        ServedModel("ko-en", "ko", "en", make(16, max_source=48)),
        ServedModel("en-ko", "en", "ko", make(17, max_source=48)),
        ServedModel("en-de", "en", "de", recurrent(vocabulary)),
        ServedModel("de-en", "de", "en", recurrent(vocabulary, "off")),
    ]
    running = RunningService(Service(models, Settings(runs=runs)))
    yield running
    running.stop()


@pytest.fixture
def fake():
    own = Fake()
    yield own
    own.close()


@pytest.fixture(scope="package")
def window():
    """A browser window; it is closed before tests of other folders run, since it keeps an event loop of its own."""
    with chromium() as browser:
        yield browser.new_context(locale="en-GB", permissions=["clipboard-read", "clipboard-write"])


REST = """() => {
    localStorage.clear(); window.stop();
    for (let i = setTimeout(() => {}); i; i--) clearTimeout(i);
    window.fetch = () => new Promise(() => {});  // an answer on its way may set a new timer
}"""


class Tab:
    """A page that tests use one after another, and what went wrong on it."""

    def __init__(self, window):
        self.page, self.troubles, self.url, self.quiet, self.number = window.new_page(), [], "", True, 0
        self.page.set_default_timeout(120_000)
        self.page.on("console", lambda message: self.quiet and self.troubles.append(f"console: {message.text}"))
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("request", self._asked)

    def _asked(self, request):
        if not request.url.startswith((self.url, "blob:", "data:", "about:")):
            self.troubles.append(f"request: {request.url}")

    def open(self, url, address, width, scheme, quiet):
        self.url, self.quiet, self.troubles = url, quiet, []
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        self.number += 1  # another address: the same with another hash would be the same document
        self.page.goto(url + (address if address.startswith("?") else f"?{self.number}{address}"))
        self.page.wait_for_selector("#to option, #columns section, nav [aria-current]", state="attached")
        return self.page

    def leave(self):
        """What went wrong. The page is stopped but not left: for a blank page the browser would start a new process."""
        self.page.unroute_all()
        self.page.evaluate(REST)
        return self.troubles


@pytest.fixture(scope="package")
def first(window):
    return Tab(window)


@pytest.fixture
def visit(window, first, service):
    """Opens the page as a new visitor; at the end there must be no errors, and no requests to other hosts."""
    used = []

    def open_page(address="", width=1280, scheme="light", url=None, quiet=True):
        used.append(Tab(window) if used else first)
        return used[-1].open(url or service.url + "/", address, width, scheme, quiet)

    yield open_page
    troubles = [trouble for tab in used for trouble in tab.leave()]
    for tab in used[1:]:
        tab.page.close()  # a tab behind another is drawn once a second
    assert troubles == []
