"""The container file, as far as no container is needed: what it copies exists, and what it starts can be started."""

import json
import re
from pathlib import Path

import pytest

from heed.cli.main import parse

ROOT = Path(__file__).parent.parent
LINES = re.sub(r"\\\n\s*", "", (ROOT / "Containerfile").read_text("utf-8")).splitlines()


def said(word: str) -> list[str]:
    return [line.removeprefix(word).strip() for line in LINES if line.startswith(f"{word} ")]


def test_what_is_copied_exists_and_is_not_ignored():
    allowed = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines()}
    copied = [name for line in said("COPY") if "--from" not in line for name in line.split()[:-1]]
    assert copied and all((ROOT / name).exists() for name in copied)
    assert set(copied) <= allowed


def test_what_is_installed_is_locked_and_reads_every_sound_file():
    (install,) = (line for line in said("RUN") if "pip install" in line)
    assert "--constraint constraints.txt" in install and install.endswith('".[audio]"')


@pytest.mark.parametrize("name", ["Containerfile", "docs/guides/deploy.md"])
def test_podman_is_told_to_keep_the_health_check(name):
    builds = re.findall("podman build.*", (ROOT / name).read_text("utf-8"))
    assert builds and all("--format docker" in line for line in builds)


def test_the_service_is_started_as_a_user_without_rights():
    (user,) = said("USER")
    assert min(map(int, user.split(":"))) > 0
    (entry,), (more,) = said("ENTRYPOINT"), said("CMD")
    program, verb, *options = json.loads(entry) + json.loads(more)
    assert program == "heed"
    args = parse(verb, options)
    assert (args.folder, args.host, args.port) == (["."], "0.0.0.0", 8000)
    assert said("EXPOSE") == [str(args.port)] and said("VOLUME") == said("WORKDIR")[-1:] == ["/models"]


def test_the_health_check_asks_the_service(monkeypatch):
    (check,) = said("HEALTHCHECK")
    program, option, code = json.loads(check.partition("CMD ")[2])
    asked = []
    monkeypatch.setattr("urllib.request.urlopen", lambda address, timeout: asked.append(address))
    exec(compile(code, "HEALTHCHECK", "exec"))
    assert (program, option, asked) == ("python", "-c", ["http://127.0.0.1:8000/health"])
