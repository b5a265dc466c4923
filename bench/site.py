"""Hooks of MkDocs for `make docs`: navigation by docs/README.md, two languages, linked files of the repository as pages.

A build has one language, $HEED_DOCS (en or ko): a page `x.ko.md` takes the place of `x.md` in the Korean one.
"""

import os
import posixpath
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"(!?\[[^\]\n]*\])\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```|`[^`\n]+`", re.M | re.S)
LANGUAGES = {"en": "English", "ko": "한국어"}
KINDS = {".py": "python", ".toml": "toml", ".md": "", ".js": "javascript", ".tsv": "text", ".json": "json", "": "text"}
SOURCE = "source"  # the folder of pages that show files of the repository


def language() -> str:
    return os.environ.get("HEED_DOCS", "en")


def nav_of(index: str) -> list[dict[str, Any]]:
    """Sections and pages of the map, docs/README.md, in its order."""
    sections: list[dict[str, Any]] = []
    for line in index.splitlines():
        if heading := re.match(r"## (.+)", line):
            sections.append({heading[1]: []})
        elif row := re.match(r"\| \[(.+?)\]\(([\w./-]+\.md)\)", line):
            pages = next(iter(sections[-1].values()))
            pages.append({row[1].replace("`", ""): row[2].replace(".ko.md", ".md")})
    return [{"Heed": "README.md"}, *sections]


def on_config(config: Any) -> Any:
    own = language()
    page = "README.md" if own == "en" else f"README.{own}.md"
    config.nav = nav_of((ROOT / "docs" / page).read_text("utf-8"))
    config.theme["language"] = own
    up = "./" if own == "en" else "../"
    config.extra["alternate"] = [
        {"name": name, "link": up + ("" if code == "en" else f"{code}/"), "lang": code}
        for code, name in LANGUAGES.items()
    ]
    return config


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    from heed.lab.fonts import bundled_korean, subset

    own = language()
    for file in [*files]:
        code = re.search(r"\.(ko)\.md$", file.src_uri)
        if code:
            files.remove(file)
        if code and code[1] == own:
            plain = file.src_uri.replace(f".{own}.md", ".md")
            if files.get_file_from_path(plain):
                files.remove(files.get_file_from_path(plain))
            text = Path(file.abs_src_path).read_text("utf-8")
            files.append(File.generated(config, plain, content=text))
    for path in bundled_korean():  # the letters that the pages have
        letters = "".join(sorted({*"".join(page.read_text("utf-8") for page in (ROOT / "docs").rglob("*.md"))}))
        files.append(File.generated(config, "assets/hangul.woff", content=subset(path, letters)))
    for path in linked_files():
        files.append(File.generated(config, f"{SOURCE}/{path}.md", content=as_page(path)))
    return files


def linked_files() -> list[str]:
    """Files of the repository outside of docs that a page links; those that these link, too."""
    found: set[str] = set()
    waiting = [f"docs/{path.relative_to(ROOT / 'docs').as_posix()}" for path in (ROOT / "docs").rglob("*.md")]
    while waiting:
        page = waiting.pop()
        for _, target in LINK.findall(FENCE.sub("", (ROOT / page).read_text("utf-8"))):
            path = resolve(page, target)
            if path and not path.startswith("docs/") and path not in found and (ROOT / path).is_file():
                found.add(path)
                waiting += [path] if path.endswith(".md") else []
    return sorted(found)


def as_page(path: str) -> str:
    text = (ROOT / path).read_text("utf-8")
    if path.endswith(".md"):
        return text
    return f"# {path}\n\n````{KINDS.get(Path(path).suffix, 'text')}\n{text}\n````\n"


def resolve(page: str, target: str) -> str | None:
    """The path in the repository that a link of a page leads to; none for other hosts and for places of the page itself."""
    file = target.partition("#")[0]
    if not file or re.match(r"[a-z]+:", file):
        return None
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), file))


def relink(page: str, markdown: str, own: str) -> str:
    """The text of a page of the repository with its links as the site needs them; code stays as it is."""
    code: list[str] = []

    def keep(match: re.Match[str]) -> str:
        code.append(match[0])
        return f"\x00{len(code) - 1}\x00"

    def link(match: re.Match[str]) -> str:
        path, anchor = resolve(page, match[2]), "".join(match[2].partition("#")[1:])
        if not path:
            return match[0]
        other = "ko" if path.endswith(".ko.md") else "en" if match[1] == "[English]" else own
        if other != own:  # in the site of the other language: plain HTML, of which MkDocs asks nothing
            return f'<a href="{_across(page, path, own, other)}{anchor}">{match[1][1:-1]}</a>'
        if (ROOT / path).is_dir():
            return match[1][1:-1]
        return f"{match[1]}({posixpath.relpath(site_path(path), posixpath.dirname(site_path(page)) or '.')}{anchor})"

    linked = LINK.sub(link, FENCE.sub(keep, markdown))
    return re.sub("\x00(\\d+)\x00", lambda match: code[int(match[1])], linked)


def _across(page: str, path: str, own: str, other: str) -> str:
    """The address, from a page of one language, of a page of the other."""
    depth = len(Path(address(site_path(page))).parts) + (own != "en")
    return "../" * depth + ("" if other == "en" else f"{other}/") + address(site_path(path)) or "./"


def site_path(path: str) -> str:
    """Where a file of the repository is among the files of the site."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/").replace(".ko.md", ".md")
    return f"{SOURCE}/{path}.md"


def address(path: str) -> str:
    """The address of a page of the site, a folder."""
    plain = path.removesuffix(".md")
    return "" if plain == "README" else f"{plain}/"


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    uri = page.file.src_uri
    own = language()
    if uri.startswith(f"{SOURCE}/"):
        path = uri.removeprefix(f"{SOURCE}/").removesuffix(".md")
        return relink(path, markdown, own) if path.endswith(".md") else markdown
    path = f"docs/{uri}"
    translated = path.replace(".md", f".{own}.md")
    found = relink(translated if (ROOT / translated).is_file() else path, markdown, own)
    for mark, made in MARKS.items():
        if mark in found:
            found = found.replace(mark, made())
    return found


def help_of_verbs() -> str:
    """The help of every verb, as its page has it."""
    import contextlib
    import io

    from heed.cli.main import VERBS, parse

    parts = []
    os.environ["COLUMNS"] = "110"
    for verb in VERBS:
        with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit):
            parse(verb, ["--help"])
        parts.append(f"## heed {verb}\n\n```text\n{said.getvalue().rstrip()}\n```\n")
    return "\n".join(parts)


def all_settings() -> str:
    return f"## All settings\n\n```toml\n{(ROOT / 'recipes' / 'all-settings.toml').read_text('utf-8')}\n```\n"


MARKS: dict[str, Callable[[], str]] = {
    "<!-- help of every verb -->": help_of_verbs,
    "<!-- all settings -->": all_settings,
}
