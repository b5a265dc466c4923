"""heed phrasebook"""

import argparse
from pathlib import Path

EXAMPLES = """\
examples:
  heed phrasebook --out phrasebook --train 40000
  heed train --source phrasebook/train.ko --target phrasebook/train.en --out runs/ko-en

Writes train, valid and test (.ko, .en), and gold word alignments of valid and test (.align). Every sentence is made
by a small grammar; no test sentence is a combination that training has seen.
"""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where the files are written")
    parser.add_argument("--train", type=int, default=40_000, help="how many pairs to train on")
    parser.add_argument("--valid", type=int, default=500, help="how many to validate on")
    parser.add_argument("--test", type=int, default=500, help="how many to test on")
    parser.add_argument("--seed", type=int, default=0, help="the same seed, the same pairs")


def run(args: argparse.Namespace) -> int:
    from heed.data import phrasebook

    for path in phrasebook.write(args.out, train=args.train, valid=args.valid, test=args.test, seed=args.seed).values():
        print(path)
    return 0
