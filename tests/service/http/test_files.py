"""Uploaded files: those that cannot be translated are clearly refused, and none is written outside the temporary folder."""

import io
import os
import socket
import subprocess
import sys
import tempfile
import zipfile

import pytest

from heed.service.http.files import FileStore, OpenFile
from tests.service.http.test_limits import wait_until
from tests.service.http.test_security import ATTACKS, HELLO, SCRIPT, assert_harmless


def send(client, name, data, **fields):
    return client.post("/translate_file", files={"file": (name, data)}, data={"source": "ko", "target": "en", **fields})


def bomb() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b"<w>" + b"0" * (64 << 20))
    return out.getvalue()


@pytest.mark.parametrize("field", ["source", "target", "column", "api_key", "glossary", "keep"])
def test_every_field_beside_a_file_stays_text(client, field):
    for evil in ATTACKS[:4]:
        assert_harmless(send(client, "a.txt", HELLO.encode(), **{field: evil}))


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("a.docx", bomb(), "would unpack to"),
        ("a.docx", b"PK not a zip", "not a Word document"),
        ("a.exe", b"MZ", "heed translates .txt"),
        ("a", b"text", "has no extension"),
        ("a.txt", b"\xff\xfe\xfd\xfc\x00", "not UTF-16"),
        ("a.txt", "가".encode() + b"\xff", "line 1 is not UTF-8"),
        ("a.tsv", b"x", "choose the column"),
    ],
)
def test_bad_files_are_refused_in_a_sentence(client, name, data, sentence):
    said = send(client, name, data)
    assert said.status_code == 400
    assert sentence in said.json()["error"]


def test_no_file_and_too_many_files(client):
    assert (
        client.post("/translate_file", data={"source": "ko", "target": "en"}).json()["error"]
        == "Invalid request: missing file parameter"
    )
    assert (
        "file is missing"
        in client.post("/translate_file", data={"file": "x", "source": "ko", "target": "en"}).json()["error"]
    )
    two = [("file", ("a.txt", b"a")), ("file", ("b.txt", b"b"))]
    assert client.post("/translate_file", files=two, data={"source": "ko", "target": "en"}).status_code == 400
    broken = client.post(
        "/translate_file", content=b"--x\r\nbroken", headers={"content-type": "multipart/form-data; boundary=x"}
    )
    assert broken.status_code == 400


@pytest.mark.parametrize(
    "name",
    [
        "../../../evil.txt",
        "/etc/evil.txt",
        "..\\..\\evil.txt",
        "C:\\evil.txt",
        "a\r\nX-Evil: 1.txt",
        f"{SCRIPT}.txt",
        "....txt",
        "\x00.txt",
    ],
)
def test_a_path_in_a_files_name_goes_nowhere(start, monkeypatch, tmp_path, name):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "own"))
    (tmp_path / "own").mkdir()
    running = start(both=False)
    with running.client() as client:
        said = send(client, name, HELLO.encode())
        assert said.status_code == 200, said.text
        fetched = client.get(said.json()["translatedFileUrl"])
        assert fetched.status_code == 200
        shown = fetched.headers["content-disposition"].removeprefix("attachment; filename*=UTF-8''")
        assert (
            "/" not in shown and "%2F" not in shown and "%5C" not in shown and "%0D" not in shown and "%00" not in shown
        )
        assert "x-evil" not in fetched.headers and "sandbox" in fetched.headers["content-security-policy"]
    (folder,) = (tmp_path / "own").iterdir()
    assert len(list(folder.iterdir())) == 1
    running.stop()
    assert not list((tmp_path / "own").iterdir())
    assert [path.name for path in tmp_path.iterdir()] == ["own"]


def test_a_body_of_a_gigabyte_is_refused_before_it_comes(running):
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as link:
        link.sendall(
            b"POST /translate_file HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 1073741824\r\n\r\n"
        )
        said = b""
        while part := link.recv(4096):
            said += part
    assert said.startswith(b"HTTP/1.1 413 ") and b"10,485,760 bytes" in said


@pytest.mark.parametrize(
    ("allowed", "host", "place"),
    [
        ((), "LOCALHOST.:80", "http://LOCALHOST.:80/download_file/"),
        (("a.example",), "A.example:80", "http://A.example:80/download_file/"),
        (("*",), 'x"><script>', "/download_file/"),
        ((), "a.example:80", None),
    ],
)
def test_the_host_that_a_client_names_is_allowed_and_an_address_or_nothing(start, allowed, host, place):
    with start(allowed_hosts=allowed).client() as client:
        sent = {"files": {"file": ("a.txt", b"a")}, "data": {"source": "en", "target": "de"}}
        said = client.post("/translate_file", **sent, headers={"Host": host})
    if place is None:
        assert said.status_code == 421 and "--allowed-host NAME" in said.json()["error"]
    else:
        assert said.json()["translatedFileUrl"].startswith(place)


def test_refused_files_leave_nothing_behind(start, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "own"))
    (tmp_path / "own").mkdir()
    with start(both=False).client() as client:
        for name, data in (
            ("a.docx", bomb()),
            ("a.exe", b"MZ"),
            ("../../a.tsv", b"x"),
            ("a.txt", "가".encode() * 100_001),
        ):
            assert send(client, name, data).status_code == 400
    assert not list((tmp_path / "own").iterdir())


def test_what_a_file_holds_is_counted_in_characters(client):
    said = send(client, "a.txt", ("가" * 99 + ". ").encode() * 1001)
    assert said.status_code == 400 and "characters; the limit per request is 100,000" in said.json()["error"]


def test_a_file_is_removed_when_its_time_is_up(monkeypatch):
    files = FileStore()
    token = files.put("a.txt", b"a")
    (path,) = files.folder.iterdir()
    assert read(files, token) == ("a.txt", b"a")
    assert path.stat().st_mode & 0o077 == 0 or path.parent.stat().st_mode & 0o077 == 0  # nobody else reads it
    monkeypatch.setattr("heed.service.http.files.KEEP_SECONDS", -1.0)
    files.remove_expired()
    assert not path.exists() and files.open(token) is None
    files.close()
    assert not path.parent.exists()


@pytest.mark.parametrize("told", [True, False])
def test_a_client_that_sends_a_gigabyte_reads_why_it_was_refused(running, tmp_path, told):
    """With curl, with and without an announced length, and with a client that reads only after it has sent everything."""
    large = tmp_path / "large.txt"
    with large.open("wb") as file:
        file.truncate(1 << 30)
    chunked = ["-H", "Transfer-Encoding: chunked", "-H", "Expect:"]
    words = ["-F", f"file=@{large}", "-F", "source=ko", "-F", "target=en", *([] if told else chunked)]
    made = subprocess.run(
        ["curl", "-s", "-w", "%{http_code}", f"{running.url}/translate_file", *words], capture_output=True
    )
    assert made.stdout.endswith(b"413") and b"exceeds the limit of 10,485,760 bytes" in made.stdout
    with socket.create_connection(("127.0.0.1", running.port), timeout=30) as link:
        size = 100 << 20
        link.sendall(
            b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            % size
        )
        for _ in range(100):
            link.sendall(bytes(1 << 20))
        said = b"".join(iter(lambda: link.recv(4096), b""))
    assert said.startswith(b"HTTP/1.1 413 ") and b"exceeds the limit of 2,248,576 bytes" in said


def test_what_a_killed_service_left_is_removed_at_the_next_start_and_nothing_else(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    running, abandoned = FileStore(), tmp_path / "heed-serve-abandoned"
    token = running.put("a.txt", b"mine")
    abandoned.mkdir()
    (abandoned / "secret").write_bytes(b"a text")
    (tmp_path / "other").mkdir()
    (tmp_path / "heed-serve-link").symlink_to(tmp_path / "other")
    started = FileStore()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["heed-serve-link", "other", running.folder.name])
    assert read(running, token) == ("a.txt", b"mine")
    started.put("b.txt", b"")
    for store in (running, started):
        store.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["heed-serve-link", "other"]


def test_the_lock_of_a_killed_process_is_gone(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = (
        "import os; from heed.service.http.files import FileStore; FileStore().put('a', b'a'); os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(tmp_path)})
    assert killed.returncode == -9 and [path.name[:11] for path in tmp_path.iterdir()] == ["heed-serve-"]
    FileStore()
    assert not list(tmp_path.iterdir())


def read(files, token):
    file = files.open(token)
    with file.stream:
        return file.name, file.stream.read()


def test_a_download_is_sent_as_it_is_read_and_outlives_its_file(running, monkeypatch):
    """A slow reader takes no memory, and gets the whole file although it was removed meanwhile."""
    data = bytes(range(256)) * 40_000  # ten megabytes
    token = running.service.files.put("a.txt", data)
    most, seen = 0, []
    chunks = OpenFile.chunks

    async def noted(self):
        async for part in chunks(self):
            seen.append(len(part))
            yield part

    monkeypatch.setattr(OpenFile, "chunks", noted)
    with socket.create_connection(("127.0.0.1", running.port), timeout=20) as link:
        link.sendall(
            f"GET /download_file/{token}/a.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
        )
        found = link.recv(1000)
        assert f"content-length: {len(data)}".encode() in found.lower()
        wait_until(lambda: sum(seen) > 0)
        most = sum(seen)
        running.service.files.files[token].path.unlink()
        while part := link.recv(1 << 20):
            found += part
    assert found.endswith(data) and sum(seen) == len(data) and max(seen) <= 1 << 16
    assert most < len(data)  # not all of it was read before the client had taken some
