"""heed vectors train"""

import argparse
from dataclasses import MISSING, fields
from pathlib import Path

EXAMPLES = """\
examples:
  heed vectors train text.txt --out words.vec                       # skip-gram with negative sampling
  heed vectors train text.txt --method glove --out words.vec --window 10 --epochs 25
  heed vectors train text.txt --method fasttext --out words.vec     # and words.ngrams.bin, for unknown words
  heed phrasebook --world --out world && heed vectors train world/train.txt --out world/words.vec --min-count 1
  heed vectors world/words.vec --near king --analogy man king woman

Each line is a sentence or a paragraph; windows do not cross line ends. The output is in word2vec format, which heed
vectors, [vectors] in a recipe and most other programs read; .bin is binary, and .gz after either is gzipped. "-"
reads from standard input.
"""
OPTIONS = {
    "dim": "dimension",
    "window": "context size: words on either side",
    "epochs": "training epochs; for glove, passes over its counts, 25 unless given",
    "rate": "the learning rate of AdaGrad",
    "batch": "word pairs per step",
    "negatives": "negative samples per pair (not glove)",
    "subsample": "drop frequent words: a word of frequency f is kept with probability √(SUBSAMPLE / f); 0 keeps all (not glove)",
    "cap": "count above which all pairs have the same weight (glove)",
    "shortest": "minimum n-gram length (fasttext)",
    "longest": "maximum n-gram length (fasttext)",
    "seed": "random seed; the same seed gives the same vectors",
}
GLOVE_EPOCHS = 25


def add(parser: argparse.ArgumentParser) -> None:
    from heed.training.word_vectors_config import WordVectorsConfig

    option = parser.add_argument
    option("text", nargs="+", help="text files, one sentence or paragraph per line; - is standard input")
    option(
        "--out",
        type=Path,
        required=True,
        metavar="FILE",
        help="the file to write: .vec or .txt, .bin, or these with .gz",
    )
    option(
        "--method", choices=["skipgram", "glove", "fasttext"], default="skipgram", help="how the vectors are learned"
    )
    option("--min-count", type=int, default=5, help="drop words that occur less often (default: 5)")
    option("--lowercase", action="store_true", help="lowercase all words")
    option(
        "--cut",
        choices=["punctuation", "spaces"],
        default="punctuation",
        help="how to split words (default: punctuation)",
    )
    for field in fields(WordVectorsConfig):
        if field.name in OPTIONS and field.default is not MISSING:
            line = f"{OPTIONS[field.name]} (default: {field.default:g})"
            option(f"--{field.name}", type=type(field.default), default=None, help=line)
    option("--threads", type=int, help="number of CPU threads (default: all cores)")


def run(args: argparse.Namespace) -> int:
    import torch

    from heed.cli.common import errors
    from heed.cli.progress import progress
    from heed.data.vectors import write
    from heed.data.vectors.store import ngram_file
    from heed.training.word_vectors import train_vectors
    from heed.training.word_vectors_config import WordVectorsConfig

    given = {name: getattr(args, name) for name in OPTIONS if getattr(args, name) is not None}
    if args.method == "glove":
        given = {"epochs": GLOVE_EPOCHS} | given
    config = WordVectorsConfig(args.method, **given)
    for name, value in (("--min-count", args.min_count), ("--threads", args.threads)):
        if value is not None and value < 1:
            raise ValueError(f"{name} is {value}; it must be at least 1")
    if args.out.is_dir():
        raise ValueError(f"--out {args.out} is a folder; give a file name, for example {args.out / 'words.vec'}")
    if args.threads:
        torch.set_num_threads(args.threads)
    text, console = _read(args), errors()
    with progress(console, "words") as tell:
        total = len(text.ids) * config.epochs
        trained = train_vectors(text, config, lambda epochs: tell(args.method, round(epochs * len(text.ids)), total))
    write(args.out, text.words, trained.matrix)
    console.print(
        f"loss per pair by epoch: {'  '.join(f'{loss:.3f}' for loss in trained.losses)}",
        highlight=False,
        soft_wrap=True,
    )
    console.print(f"[dim]{len(text.words):,} vectors: {args.out}[/]", highlight=False, soft_wrap=True)
    if trained.ngrams is None:
        ngram_file(args.out).unlink(missing_ok=True)  # those of an earlier fastText would not fit these vectors
    else:
        write(ngram_file(args.out), trained.ngrams, trained.ngram_matrix)
        console.print(
            f"[dim]{len(trained.ngrams):,} n-grams: {ngram_file(args.out)}[/]", highlight=False, soft_wrap=True
        )
    return 0


def _read(args: argparse.Namespace):
    """The words of all files; reports what was read and what was dropped."""
    from itertools import chain

    from heed.cli.common import errors, stream_lines
    from heed.data.vectors.word_text import read_words

    try:
        text = read_words(
            chain.from_iterable(map(stream_lines, args.text)), args.min_count, cut=args.cut, lower=args.lowercase
        )
    except ValueError as error:
        if str(error).startswith("there are no words"):
            raise ValueError(f"{', '.join(args.text)}: {error}") from None
        if str(error).startswith("no word occurs"):
            raise ValueError(f"{', '.join(args.text)}: {error}; --min-count is {args.min_count}") from None
        raise
    lines = f"{text.line_count:,} lines ({text.empty_lines:,} of them empty), {len(text.ids) + text.rare_count:,} words"
    kept = f"{len(text.words):,} different words occur at least {args.min_count} times"
    rare = f"{text.rare_words:,} rarer ones are dropped ({text.rare_count:,} running words)"
    errors().print(f"{lines}; {kept}, {rare}", highlight=False, soft_wrap=True)
    return text
