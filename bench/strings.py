"""Lists every text a user can see, so that all of them can be reviewed: `python -m bench.strings`.

Prints place, kind and text, separated by tabs. Kinds: help (command line and API), error, said (printed or logged), other
(any other string of three words or more), docstring (HTTP API; with --docstrings, all), setting, page, and page, Korean.
With --since GITREF it counts the texts that are new or were rewritten since that revision, by kind and folder.
"""

import argparse
import ast
import io
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
SOURCE = Path("src", "heed")
SETTINGS = Path("recipes", "all-settings.toml")
PAGES = ("service/page", "lab/page")
NAMED = {
    "help",
    "description",
    "epilog",
    "title",
    "summary",
    "caption",
    "label",
    "noun",
    "doc",
    "why",
    "reason",
}  # keyword arguments
SAID = {"print", "tell", "say", "warn", "write", "info", "warning", "error", "new_figure", "Metric", "Column", "add_column", "set_title", "set_xlabel", "set_ylabel"}  # fmt: skip
WORD = re.compile(r"[A-Za-z가-힣]{2,}")


class Text(NamedTuple):
    place: str
    kind: str
    text: str


def texts(docstrings: bool = False, root: Path = ROOT) -> Iterator[Text]:
    """All texts of a checkout, file by file."""
    source = root / SOURCE
    paths = [*sorted(source.rglob("*.py"))]
    for folder in PAGES:
        paths += [*sorted((source / folder).glob("words*.js")), *sorted((source / folder).glob("*.html"))]
    for path in [*paths, root / SETTINGS]:
        place = path.relative_to(root).as_posix()
        content = path.read_text("utf-8")
        if path.suffix == ".py":
            found = python_texts(content, docstrings or path.name.endswith(("routes.py", "v1.py", "libretranslate.py")))
        else:
            found = {".html": html_texts, ".js": page_texts, ".toml": setting_texts}[path.suffix](content)
        yield from (Text(f"{place}:{line}", kind, text) for line, kind, text in found)


def python_texts(content: str, docstrings: bool) -> Iterator[tuple[int, str, str]]:
    """Line, kind and text of the strings in a module."""
    tree = ast.parse(content)
    seen: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield from _strings("error", node.exc.args, seen)
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            yield from _strings("help", [one.value for one in node.keywords if one.arg in NAMED], seen)
            if name in SAID:
                yield from _strings("said", node.args, seen)
        elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "").endswith("EXAMPLES"):
            yield from _strings("help", [node.value], seen)
        elif isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            found = [*_strings("docstring", _docstring(node), seen)]
            yield from found if docstrings else []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in seen:
            yield from (one for one in _strings("other", [node], seen) if len(WORD.findall(one[2])) > 2)


def _docstring(node: ast.Module | ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef) -> list[ast.expr]:
    return [node.body[0].value] if ast.get_docstring(node) and isinstance(node.body[0], ast.Expr) else []


def setting_texts(content: str) -> Iterator[tuple[int, str, str]]:
    """The descriptions in recipes/all-settings.toml."""
    for number, line in enumerate(content.splitlines(), 1):
        if " = " in line and "  # " in line:
            yield number, "setting", line.rpartition("  # ")[2]


def page_texts(content: str) -> Iterator[tuple[int, str, str]]:
    """The page's texts: English, then Korean."""
    for number, line in enumerate(content.splitlines(), 1):
        for found in re.findall(r'"((?:[^"\\]|\\.)*)"', line):
            if WORD.search(found) and not found.startswith("./"):
                yield number, "page, Korean" if re.search("[가-힣]", found) else "page", found


def html_texts(content: str) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(content.splitlines(), 1):
        found = " ".join(re.sub(r"<[^>]*>", " ", line).split())
        if WORD.search(found) and "{" not in found:
            yield number, "page", found


def _strings(kind: str, values: Iterable[ast.expr], seen: set[int]) -> Iterator[tuple[int, str, str]]:
    for value in values:
        if id(value) not in seen:
            seen.update(id(node) for node in ast.walk(value))
            found = " ".join(_written(value).split())
            if WORD.search(found) and " " in found:
                yield value.lineno, kind, found


def _written(node: ast.expr) -> str:
    """A text as it is written, with {…} for placeholders."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_written(part) if isinstance(part, ast.Constant) else "{…}" for part in node.values)
    if isinstance(node, ast.BinOp):
        return _written(node.left) + _written(node.right)
    if isinstance(node, ast.IfExp):
        return f"{_written(node.body)} / {_written(node.orelse)}"
    return ""


def rewritten(docstrings: bool, revision: str) -> dict[str, Counter[str]]:
    """By kind and by folder: how many texts there are, and how many of them are not in the revision."""
    archive = subprocess.run(
        ["git", "archive", revision, SOURCE.as_posix(), SETTINGS.as_posix()], cwd=ROOT, check=True, capture_output=True
    ).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
            packed.extractall(folder, filter="data")
        before = Counter(one.text for one in texts(docstrings, Path(folder)))
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for one in texts(docstrings):
        new = not before[one.text]
        before[one.text] -= not new
        for group in ("all", one.kind, re.split("[/:]", one.place)[-2 if one.kind == "setting" else 2]):
            counts[group].update(texts=1, rewritten=int(new))
    return counts


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docstrings", action="store_true", help="include docstrings of all classes and functions")
    parser.add_argument("--kind", help="only one kind: help, error, said, other, page, docstring")
    parser.add_argument("--like", help="only texts that match a regular expression, such as '\\bunless said\\b'")
    parser.add_argument("--since", metavar="GITREF", help="count the texts rewritten since a git revision")
    options = parser.parse_args(arguments)
    if options.since:
        for group, count in rewritten(options.docstrings, options.since).items():
            print(f"{group}\t{count['texts']:,} texts\t{count['rewritten']:,} new or rewritten")
        return 0
    counts: Counter[str] = Counter()
    for one in texts(options.docstrings):
        if options.kind in (None, one.kind) and (not options.like or re.search(options.like, one.text, re.I)):
            counts[one.kind] += 1
            print("\t".join(one))
    print(", ".join(f"{count:,} {kind}" for kind, count in counts.most_common()) or "none", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
