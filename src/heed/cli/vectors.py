"""heed vectors"""

import argparse
from functools import partial
from pathlib import Path

EXAMPLES = """\
examples:
  heed vectors cc.ko.300.vec.gz                                # describe the file
  heed vectors cc.ko.300.vec.gz --near 왕 서울 --count 5        # the words nearest to a word
  heed vectors glove.6B.100d.txt --analogy man king woman      # man is to king as woman is to …
  heed vectors cc.ko.300.vec.gz --analogy 남자 왕 여자 --picture map.png
  heed vectors runs/en-de --near house --side source           # the embeddings of a model
  heed vectors runs/en-de --out words.vec                      # export its embeddings in word2vec format; .bin: binary
  heed vectors train text.txt --out words.vec                  # learn word vectors (heed vectors train --help)

Reads word2vec (text and binary), GloVe and fastText .vec, plain or gzipped, whatever their extension; also runs,
model folders and names on the hub. For fastText, unknown words get a vector from their n-grams, if words.ngrams.bin
is next to words.vec. Files are streamed, never loaded into memory as a whole. docs/learn/vectors.md shows how to
train a model with such vectors.
"""

COMMANDS = {"train": ("vectors_train", "learn word vectors from a text: skip-gram, GloVe or fastText")}


def add(parser: argparse.ArgumentParser) -> None:
    option = parser.add_argument
    option("file", help="a file of word vectors, a run, a model folder, or a name on the hub")
    option("--near", nargs="+", action="extend", default=[], metavar="WORD", help="find similar words")
    option(
        "--analogy", nargs=3, action="append", default=[], metavar=("A", "B", "C"), help="a is to b as c is to what?"
    )
    option("--count", type=int, default=10, help="how many words to find (default: 10)")
    option("--info", action="store_true", help="describe the file (the default without other options)")
    option("--side", choices=["source", "target"], help="which vocabulary, for a model with two")
    option("--out", type=Path, metavar="FILE", help="write all vectors: .vec as text, .bin as binary, either with .gz")
    option("--picture", type=Path, metavar="FILE", help="plot the words in two dimensions, as .png or .svg")
    option("--words", nargs="+", default=[], metavar="WORD", help="words to plot, instead of those found")


def run(args: argparse.Namespace) -> int:
    from rich.console import Console

    from heed.cli.common import errors
    from heed.data.vectors import store as stores

    if args.count < 1:
        raise ValueError(f"--count is {args.count}; it must be at least 1")
    if args.words and not args.picture:
        raise ValueError("--words selects words to plot: add --picture FILE")
    store, facts = _open(args)
    console = Console()
    if args.info or not (args.near or args.analogy or args.out or args.picture):
        _info(console, store, facts)
    tell = partial(errors().print, highlight=False, soft_wrap=True, markup=False)
    near = stores.neighbours(store, args.near, args.count, tell) if args.near else []
    fourth = stores.analogies(store, args.analogy, args.count, tell) if args.analogy else []
    for word, found in zip(args.near, near, strict=True):
        _show(console, f"near {word}", found)
    for (a, b, c), found in zip(args.analogy, fourth, strict=True):
        _show(console, f"{a} : {b} = {c} : ?", found)
    if args.picture:
        _picture(args, store, near, fourth)
    if args.out:
        _write(args, store)
    return 0


def _open(args: argparse.Namespace):
    """The vectors, and what is known about them before they are read."""
    from heed.data.vectors import layout, store

    path = Path(args.file)
    if path.is_file():
        if args.side:
            raise ValueError(f"--side is for models; {path} is a file")
        format = layout.detect_layout(path)
        facts = {"file": str(path), "format": format.name, "dimension": str(format.dim)}
        header = {} if format.count is None else {"words according to its header": f"{format.count:,}"}
        return store.from_file(path), facts | header
    if not path.exists() and path.suffix in (".vec", ".txt", ".bin", ".gz", ".xz"):
        raise ValueError(f"{path}: no such file")
    from heed.loading import open_package
    from heed.runs.vectors import embeddings

    found = embeddings(open_package(args.file), args.side)
    facts = {"model": args.file, "dimension": str(found.matrix.shape[1])}
    return store.from_memory(args.file, found), facts


def _info(console, store, facts: dict[str, str]) -> None:
    import numpy as np
    from rich.markup import escape
    from rich.table import Table

    from heed.data.vectors.layout import detect_layout
    from heed.data.vectors.reading import Tally, blocks

    tally, count, first, squares, lengths = Tally(), 0, [], 0.0, 0.0
    for block in blocks(Path(facts["file"]), None, tally) if "file" in facts else store.blocks(None):
        first = first or block.words[:8]
        norms = np.linalg.norm(block.matrix.astype(np.float64), axis=1)
        count, lengths, squares = count + len(norms), lengths + float(norms.sum()), squares + float((norms**2).sum())
    table = Table(show_header=False, box=None, padding=(0, 2))
    size = (squares / count / int(facts["dimension"])) ** 0.5
    more = {"words": f"{count:,}", "the first": "  ".join(first), "mean length": f"{lengths / count:.3f}",
            "typical magnitude": f"{size:.4f} (root mean square)"}  # fmt: skip
    for name, value in (facts | more).items():
        table.add_row(f"[dim]{name}[/]", escape(value))
    console.print(table)
    for sentence in tally.notes(Path(facts["file"]), detect_layout(Path(facts["file"]))) if "file" in facts else ():
        console.print(sentence, highlight=False, soft_wrap=True, markup=False)


def _show(console, title: str, found) -> None:
    from rich.markup import escape
    from rich.table import Table

    console.print(f"[bold]{escape(title)}[/]", highlight=False, soft_wrap=True)
    table = Table(box=None, padding=(0, 2), header_style="dim")
    table.add_column("word", overflow="fold")
    table.add_column("cosine", justify="right")
    for word, cosine in found:
        table.add_row(escape(word), f"{cosine:.3f}")
    console.print(table)


def _picture(args: argparse.Namespace, store, near, fourth) -> None:
    """A plot of the given words, or of those found; arrows show analogies."""
    from heed.cli.common import errors
    from heed.data.vectors.store import look_up
    from heed.lab.fonts import describe_missing
    from heed.lab.word_map import draw

    words = list(args.words)
    if not words:
        words = [word for given, found in zip(args.near, near, strict=True) for word in (given, *(w for w, _ in found))]
    answers = [(*three, found[0][0]) for three, found in zip(args.analogy, fourth, strict=True) if found]
    words = list(dict.fromkeys([*words, *(word for four in answers for word in four)]))
    if not words:
        raise ValueError("--picture: choose the words to plot with --words, --near or --analogy")
    found = look_up(store, words)
    at = {word: i for i, word in enumerate(words)}
    arrows = [(at[x], at[y]) for a, b, c, d in answers for x, y in ((a, b), (c, d))]
    missing = draw(args.picture, words, found.matrix, arrows, title=f"{len(words)} words of {Path(args.file).name}")
    if missing:
        errors().print(describe_missing(missing), highlight=False, soft_wrap=True)
    errors().print(f"[dim]Map: {args.picture}[/]", highlight=False, soft_wrap=True)


def _write(args: argparse.Namespace, store) -> None:
    import numpy as np

    from heed.cli.common import errors
    from heed.data.vectors import write

    blocks = list(store.blocks(None))
    words = [word for block in blocks for word in block.words]
    write(args.out, words, np.concatenate([block.matrix for block in blocks]))
    errors().print(f"[dim]{len(words):,} vectors: {args.out}[/]", highlight=False, soft_wrap=True)
