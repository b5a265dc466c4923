"""Models by name: from a hub that stands in this process, from the cache, and from nowhere."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from huggingface_hub import constants

from heed.convert import hub

COMMIT = "a1b2c3d4" * 5
FILES = ["config.json", "source.spm", "target.spm", "vocab.json", "README.md", "preprocessor_config.json", ".gitattributes",
         "tf_model.h5", "rust_model.ot", "onnx/model.safetensors", "pytorch_model.bin"]  # fmt: skip


class Hub(BaseHTTPRequestHandler):
    """Answers as the hub does, as far as a download asks. `server.files` are its only model's; `server.given` what it gave."""

    def do_GET(self):
        self.answer(body=True)

    def do_HEAD(self):
        self.answer(body=False)

    def answer(self, body):
        path = self.path.split("?")[0]
        if path.startswith("/api/models/"):
            name, kind, revision = path.removeprefix("/api/models/").rsplit("/", 2)
            if refusal := self.refusal(name, revision):
                return self.send(*refusal, body=body)
            tree = [
                {"type": "file", "path": f, "size": len(f), "oid": f"{i:040d}"} for i, f in enumerate(self.server.files)
            ]
            info = {"id": name, "sha": COMMIT, "siblings": []}
            return self.send(200, {}, json.dumps(tree if kind == "tree" else info).encode(), body=body)
        file = path.split(f"/resolve/{COMMIT}/")[1]
        if body:
            self.server.given.append(file)
        headers = {"ETag": f'"{self.server.files.index(file):040d}"', "X-Repo-Commit": COMMIT}
        return self.send(200, headers, file.encode(), body=body)

    def refusal(self, name, revision):
        if name == "owner/broken":
            return 500, {}, b""
        if name == "owner/gated":
            return 403, {"X-Error-Code": "GatedRepo"}, b""
        if name != "owner/model":
            return 404, {"X-Error-Code": "RepoNotFound"}, b""
        if revision not in ("main", "v1", COMMIT):
            return 404, {"X-Error-Code": "RevisionNotFound"}, b""
        return None

    def send(self, code, headers, content, body):
        self.send_response(code)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, format, *args):
        pass


NOWHERE = "http://127.0.0.1:9"


def reach(monkeypatch, endpoint):
    """From now on the hub is there."""
    monkeypatch.setattr(constants, "ENDPOINT", endpoint)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", endpoint + "/{repo_id}/resolve/{revision}/{filename}")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and a hub that nobody can reach."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    reach(monkeypatch, NOWHERE)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no token"))
    return tmp_path / "cache"


@pytest.fixture
def server(cache, monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.files, server.given = FILES, []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    reach(monkeypatch, f"http://127.0.0.1:{server.server_address[1]}")
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def said(name="owner/model", revision=None):
    with pytest.raises(ValueError) as error:
        hub.fetch(name, revision)
    return str(error.value)


def test_only_what_heed_reads_is_fetched(server):
    folder = hub.fetch("owner/model")
    wanted = {"config.json", "source.spm", "target.spm", "vocab.json", "README.md", "pytorch_model.bin"}
    wanted.add("preprocessor_config.json")
    assert {path.name for path in folder.iterdir()} == wanted
    assert sorted(server.given) == sorted(wanted)


@pytest.mark.parametrize(
    "safe",
    [
        ["model.safetensors"],
        ["model.safetensors.index.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"],
    ],
)
def test_a_pickle_is_not_fetched_where_there_are_safetensors(server, safe):
    server.files = FILES + safe
    folder = hub.fetch("owner/model")
    assert set(safe) < set(server.given)
    assert "pytorch_model.bin" not in server.given
    assert not (folder / "pytorch_model.bin").exists()


@pytest.mark.parametrize("revision", [None, "main", "v1", COMMIT])
def test_the_commit_is_known_whatever_the_revision_was_called(server, revision):
    assert hub.origin(hub.fetch("owner/model", revision)) == ("owner/model", COMMIT)


def test_a_second_time_nothing_is_fetched(server):
    folder = hub.fetch("owner/model")
    before = list(server.given)
    assert hub.fetch("owner/model") == folder
    assert server.given == before


@pytest.mark.parametrize("revision", [None, "main", COMMIT])
def test_offline_the_cache_gives_what_it_has(server, monkeypatch, revision):
    folder = hub.fetch("owner/model")
    reach(monkeypatch, NOWHERE)
    assert hub.fetch("owner/model", revision) == folder


def test_a_cache_that_another_program_has_filled(cache):
    own = cache / "models--owner--model"
    folder = own / "snapshots" / COMMIT
    folder.mkdir(parents=True)
    (own / "refs").mkdir()
    (own / "refs" / "main").write_text(COMMIT)
    (folder / "model.safetensors").write_bytes(b"weights")
    assert hub.fetch("owner/model") == folder


def test_no_network(cache):
    assert said() == (
        f"no network: the hub could not be reached for owner/model, and the cache ({cache}) does not contain all of "
        "it. Go online once, or give an existing folder"
    )
    assert "could not be reached for owner/model at 'v1', and" in said(revision="v1")


def test_no_network_and_only_a_part_in_the_cache(server, monkeypatch):
    folder = hub.fetch("owner/model")
    reach(monkeypatch, NOWHERE)
    (folder / "vocab.json").unlink()
    assert said().startswith("no network: the hub could not be reached for owner/model, and the cache")


def test_offline_by_its_variable(cache, monkeypatch):
    from huggingface_hub import close_session

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    close_session()
    assert said() == (
        f"HF_HUB_OFFLINE is set, and the cache ({cache}) does not contain all of it: owner/model. Unset it to download the model once, or give an existing folder"
    )
    close_session()


def test_no_such_model(server):
    assert said("owner/nothing") == (
        f"there is no model owner/nothing on the hub, and no such local folder: search at {constants.ENDPOINT}/models, and if it is private, log in with: "
        "hf auth login"
    )


def test_a_model_with_terms(server):
    assert said("owner/gated") == (
        f"owner/gated requires accepting its terms: do so at {constants.ENDPOINT}/owner/gated, then "
        "log in with: hf auth login"
    )


def test_no_such_revision(server):
    assert said(revision="v9") == "owner/model has no revision 'v9' on the hub; the default is main"


def test_a_hub_in_trouble(server):
    assert said("owner/broken").startswith("the hub could not serve owner/broken (Server error '500")


def test_whatever_else_goes_wrong_is_said(cache, monkeypatch):
    def fails(*args, **kwargs):
        raise RuntimeError("the wire is cut.\nand more")

    monkeypatch.setattr("huggingface_hub.snapshot_download", fails)
    assert said() == "owner/model could not be downloaded from the hub: the wire is cut"


@pytest.mark.parametrize("name", ["Helsinki-NLP/opus-mt-ko-en", "facebook/bart-large-cnn", "a/b", "google/pegasus_x.1"])
def test_names(name):
    assert hub.is_name(name)


@pytest.mark.parametrize("name", ["gpt2", "openai-gpt", "ctrl", "roberta-base", "albert-xxlarge-v2"])
def test_an_old_name_is_fetched_from_its_owner(name, server):
    assert hub.is_name(name)
    assert said(name).startswith(f"there is no model {hub.FULL_NAMES[name]} on the hub, and no such local folder")


@pytest.mark.parametrize(
    "text",
    [
        "model",
        "gpt3",
        "./a/b",
        "/a/b",
        "../a",
        "a/b/c",
        "a/../b",
        "a//b",
        "~/a",
        "a/b.git",
        "a--b/c",
        "나/b",
        "a/b\n",
        "a/",
    ],
)
def test_what_is_no_name(text, cache):
    assert not hub.is_name(text)
    assert (
        said(text)
        == f"{text!r} is not a valid hub name; it should look like owner/name, for example Helsinki-NLP/opus-mt-ko-en"
    )


@pytest.mark.parametrize("path", ["/", ".", "models--a--b/snapshots", "a/snapshots/b", "models--a--b/blobs/c"])
def test_a_folder_outside_the_cache_has_no_origin(path):
    assert hub.origin(Path(path)) is None
