"""heed phrasebook"""

import argparse
from pathlib import Path

EXAMPLES = """\
examples:
  heed phrasebook --out phrasebook --train 40000
  heed train --source phrasebook/train.ko --target phrasebook/train.en --out runs/ko-en
  heed phrasebook --join 5 --out long-lines --train 12000
  heed phrasebook --articles --out articles --train 20000
  heed phrasebook --world --out world                    # a text for word vectors: heed vectors train world/train.txt

Writes train, valid and test (.ko, .en), and gold word alignments of valid and test (.align). A small grammar generates
all sentences; no combination of words in a test sentence is in the training data. --articles writes English articles
with their summaries instead (.article, .summary), generated in the same way. --world writes train.txt, plain English sentences about
a small world (ice and steam, kings and queens, countries), whose statistics are stated in src/heed/data/synthetic/world.py.
"""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where the files are written")
    parser.add_argument("--articles", action="store_true", help="articles with summaries, to learn to summarize")
    parser.add_argument("--world", action="store_true", help="sentences about a small world, to learn word vectors")
    parser.add_argument("--train", type=int, default=40_000, help="how many pairs to train on")
    parser.add_argument("--valid", type=int, default=500, help="how many to validate on")
    parser.add_argument("--test", type=int, default=500, help="how many to test on")
    parser.add_argument("--join", type=int, default=1, help="lines of 1 to this many sentences, for long texts (1)")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same pairs")


def run(args: argparse.Namespace) -> int:
    from heed.data.synthetic import articles, phrasebook, world

    if args.articles and args.world:
        raise ValueError("--articles and --world are two corpora: write them one after the other")
    if (args.articles or args.world) and args.join != 1:
        raise ValueError(f"--join is for sentences: leave it out with --{'world' if args.world else 'articles'}")
    if args.world:
        world.write(args.out / "train.txt", args.train, args.seed)
        print(args.out / "train.txt")
        return 0
    sizes = {"train": args.train, "valid": args.valid, "test": args.test, "seed": args.seed}
    written = (
        articles.write(args.out, **sizes) if args.articles else phrasebook.write(args.out, **sizes, join=args.join)
    )
    for path in written.values():
        print(path)
    return 0
