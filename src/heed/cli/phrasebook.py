"""heed phrasebook"""

import argparse
from pathlib import Path

EXAMPLES = """\
examples:
  heed phrasebook --out phrasebook --train 60000
  heed train --source phrasebook/train.ko --target phrasebook/train.en --out runs/ko-en
  heed phrasebook --grammar --join 5 --out long-lines --train 12000
  heed phrasebook --articles --out articles --train 20000
  heed phrasebook --world --out world                    # a text for word vectors: heed vectors train world/train.txt
  heed phrasebook --shop --out shop                      # a log of purchases: heed train shop --out runs/shop

Writes train, valid and test (.ko, .en), and gold word alignments of valid and test (.align). A small grammar,
patterns by topic (introductions, numbers, prices, dates, times, weather, restaurant, shop, directions, travel, phone,
health) and set expressions generate all sentences. No combination of words in a test sentence is in the training
data; set expressions occur only in the training data. --articles writes English articles with their summaries instead
(.article, .summary), generated in the same way. --world writes train.txt, plain English sentences about a small world
(ice and steam, kings and queens, countries), whose statistics are stated in src/heed/data/synthetic/world.py. --shop
writes log.csv, the purchases of a small shop's customers, for training a recommender; its rules are in
src/heed/data/synthetic/shop.py.
"""
PAIRS, CUSTOMERS = 60_000, 3_000


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where the files are written")
    parser.add_argument("--articles", action="store_true", help="articles with summaries, to train a summarizer")
    parser.add_argument("--world", action="store_true", help="sentences about a small world, to train word vectors")
    parser.add_argument("--shop", action="store_true", help="customers' purchases, to train a recommender")
    parser.add_argument(
        "--train",
        type=int,
        help="number of training pairs (default: 60,000) or, with --shop, of customers (default: 3,000)",
    )
    parser.add_argument("--valid", type=int, default=500, help="number of validation pairs")
    parser.add_argument("--test", type=int, default=500, help="number of test pairs")
    parser.add_argument(
        "--join", type=int, default=1, help="up to this many sentences per line, for long texts (default: 1)"
    )
    parser.add_argument(
        "--grammar",
        action="store_true",
        help="complete sentences from the grammar only: a smaller domain, faster to learn",
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed; the same seed gives the same pairs")


def run(args: argparse.Namespace) -> int:
    from heed.data.synthetic import articles, phrasebook, shop, world

    chosen = [name for name in ("articles", "world", "shop") if getattr(args, name)]
    if len(chosen) > 1:
        raise ValueError(f"--{chosen[0]} and --{chosen[1]} are different corpora: write each with its own command")
    for given, name in ((args.join != 1, "join"), (args.grammar, "grammar")):
        if chosen and given:
            raise ValueError(f"--{name} is for sentences: leave it out with --{chosen[0]}")
    count = args.train if args.train is not None else CUSTOMERS if args.shop else PAIRS
    if count < 1:
        raise ValueError(f"--train is {count}; it must be at least 1")
    if args.world or args.shop:
        corpus, name = (world, "train.txt") if args.world else (shop, "log.csv")
        corpus.write(args.out / name, count, args.seed)
        print(args.out / name)
        return 0
    sizes = {"train": count, "valid": args.valid, "test": args.test, "seed": args.seed}
    shape = {} if args.articles else {"join": args.join, "complete": args.grammar}
    written = (articles if args.articles else phrasebook).write(args.out, **sizes, **shape)
    for path in written.values():
        print(path)
    return 0
