"""heed plot"""

import argparse
from pathlib import Path

EXAMPLES = """\
examples:
  heed plot runs/en-de --out curves.png
  heed plot runs/a runs/b runs/c --out curves.svg
"""


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", nargs="+", type=Path, help="one or more runs")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="a .png or .svg file")


def run(args: argparse.Namespace) -> int:
    from heed.tasks import metric_labels
    from heed.training.curves import plot

    plot(args.folders, args.out, metric_labels())
    print(args.out)
    return 0
