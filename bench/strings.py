"""Every text that a person can meet, to be read again: `python -m bench.strings` prints place, kind and text with tabs.

Kinds: help of the command line, errors, what commands say, pictures and reports, and the page in both languages. Docstrings that
make the Python reference come with --docstrings, those of the HTTP reference always.
"""

import argparse
import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "heed"
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
}  # keywords
SAID = {"print", "tell", "say", "warn", "write", "info", "warning", "error", "new_figure", "Metric", "Column", "add_column", "set_title", "set_xlabel", "set_ylabel"}  # fmt: skip
WORD = re.compile(r"[A-Za-z가-힣]{2,}")


class Text(NamedTuple):
    place: str
    kind: str
    text: str


def texts(docstrings: bool = False) -> Iterator[Text]:
    """All of them, file by file."""
    for path in sorted(SOURCE.rglob("*.py")):
        yield from python_texts(path, docstrings)
    for folder in PAGES:
        for path in sorted((SOURCE / folder).glob("words*.js")):
            yield from page_texts(path)
        for path in sorted((SOURCE / folder).glob("*.html")):
            for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
                found = " ".join(re.sub(r"<[^>]*>", " ", line).split())
                if WORD.search(found) and "{" not in found:
                    yield Text(_place(path, number), "page", found)


def python_texts(path: Path, docstrings: bool) -> Iterator[Text]:
    """Those of a module: errors, help, what is said, and constants with examples."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield from _strings(path, "error", node.exc.args)
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            yield from _strings(path, "help", [one.value for one in node.keywords if one.arg in NAMED])
            if name in SAID:
                yield from _strings(path, "said", node.args)
        elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "").endswith("EXAMPLES"):
            yield from _strings(path, "help", [node.value])
        documented = isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef) and ast.get_docstring(node)
        if documented and (
            docstrings or path.name.endswith("routes.py") or path.name in ("v1.py", "libretranslate.py")
        ):
            yield Text(_place(path, node.lineno), "docstring", " ".join(documented.split()))


def page_texts(path: Path) -> Iterator[Text]:
    """What the page says: English, then Korean."""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        for kind, found in zip(("page", "page, Korean"), re.findall(r'"((?:[^"\\]|\\.)*)"', line), strict=False):
            if WORD.search(found):
                yield Text(_place(path, number), kind, found)


def _strings(path: Path, kind: str, values: Iterable[ast.expr]) -> Iterator[Text]:
    for value in values:
        found = " ".join(_written(value).split())
        if WORD.search(found) and " " in found:
            yield Text(_place(path, value.lineno), kind, found)


def _written(node: ast.expr) -> str:
    """A text as it is written, with {…} for what is filled in."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_written(part) if isinstance(part, ast.Constant) else "{…}" for part in node.values)
    if isinstance(node, ast.BinOp):
        return _written(node.left) + _written(node.right)
    if isinstance(node, ast.IfExp):
        return f"{_written(node.body)} / {_written(node.orelse)}"
    return ""


def _place(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT).as_posix()}:{line}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docstrings", action="store_true", help="docstrings of all classes and functions, too")
    parser.add_argument("--kind", help="one kind alone: help, error, said, page, docstring")
    parser.add_argument("--like", help="those that match a regular expression, for example '\\bunless said\\b'")
    options = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    for one in texts(options.docstrings):
        if options.kind in (None, one.kind) and (not options.like or re.search(options.like, one.text, re.I)):
            counts[one.kind] += 1
            print("\t".join(one))
    print(", ".join(f"{count:,} {kind}" for kind, count in counts.most_common()) or "none", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
