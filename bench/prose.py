"""Sentences of prose out of folders of documentation: one a line, a blank line between documents.

python -m bench.prose FOLDER... --out text.txt
"""

import argparse
import gzip
import html
import lzma
import re
from collections.abc import Iterator
from multiprocessing import Pool
from pathlib import Path

from heed.text.sentences import split

SUFFIXES = {".html", ".htm", ".xhtml", ".page", ".xml", ".txt", ".rst", ".pod", ""}
MARKUP = {".html", ".htm", ".xhtml", ".page", ".xml"}
NO_PROSE = re.compile(r"<(script|style|pre|nav|head|table)\b.*?</\1>", re.S | re.I)
BLOCK_END = re.compile(r"</(p|div|h[1-6]|li|dd|dt|td|title|section)>|<br\s*/?>|<(p|li|dd|dt)\b", re.I)
MOST = 5000  # characters of a paragraph; what is longer is a list or a table
TAG = re.compile(r"<[^<>]*>")
WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?")
COMMON = frozenset(
    [
        "the",
        "of",
        "to",
        "and",
        "a",
        "in",
        "is",
        "that",
        "it",
        "for",
        "as",
        "with",
        "be",
        "by",
        "this",
        "are",
        "or",
        "on",
        "can",
        "not",
        "you",
        "if",
        "from",
        "an",
        "which",
    ]
)


def main(arguments: list[str] | None = None) -> None:
    """Read the folders and write the text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    seen: set[int] = set()
    documents = sentences = 0
    with Pool() as pool, options.out.open("w", encoding="utf-8", newline="\n") as out:
        for found in pool.imap(document, list(files(options.folders)), chunksize=32):
            fresh = [line for line in found if hash(line) not in seen]
            seen.update(map(hash, fresh))
            if len(fresh) >= 3:
                out.write("\n".join(fresh) + "\n\n")
                documents, sentences = documents + 1, sentences + len(fresh)
    print(f"{documents:,} documents, {sentences:,} sentences, {options.out.stat().st_size:,} bytes")


def files(folders: list[Path]) -> Iterator[Path]:
    """Give the files that may hold prose, in one order on every machine."""
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            plain = path.with_suffix("") if path.suffix in {".gz", ".xz"} else path
            if path.is_file() and not path.is_symlink() and plain.suffix in SUFFIXES:
                yield path


def document(path: Path) -> list[str]:
    """Give the English sentences of one file."""
    opened = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    with opened(path, "rb") as file:
        raw = file.read(5_000_000)
    if b"\0" in raw[:4096]:
        return []
    text = raw.decode("utf-8", errors="replace")
    plain = path.with_suffix("") if path.suffix in {".gz", ".xz"} else path
    if plain.suffix in MARKUP or text.lstrip()[:1] == "<":
        text = html.unescape(TAG.sub("", BLOCK_END.sub("\n\n", NO_PROSE.sub(" ", text))))
    found = []
    for paragraph in re.split(r"\n\s*\n", text):
        joined = " ".join(paragraph[:MOST].split())
        found += [sentence for sentence in split(joined, "en") if is_prose(sentence)]
    return found


def is_prose(sentence: str) -> bool:
    """Whether a sentence is made of English words, and neither code nor a heading."""
    words = WORD.findall(sentence)
    if not 6 <= len(words) <= 80 or not sentence[0].isupper() or sentence[-1] not in ".!?:\"')":
        return False
    letters = sum(map(len, words))
    return letters > 0.72 * len(sentence) and sum(word.lower() in COMMON for word in words) >= 0.15 * len(words)


if __name__ == "__main__":
    main()
