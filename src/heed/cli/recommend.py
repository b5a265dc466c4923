"""heed recommend"""

import argparse
import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

EXAMPLES = """\
examples:
  heed recommend runs/sasrec --user 42                           # recommendations for a user in the log
  heed recommend runs/sasrec --items "shampoo,soap" --n 5        # for a new user: a history, oldest item first
  heed recommend runs/sasrec --user 42 --user 43 --exclude-seen --format json
  heed recommend runs/sasrec --users users.txt --out next.tsv    # one user per line; writes a table of user, rank, item and score
  heed recommend runs/sasrec --histories carts.txt --out next.tsv     # one history per line, items separated by commas
  heed train recipes/sasrec.toml --set data.interactions=log.csv --out runs/sasrec
"""
CHUNK = 4096  # users whose recommendations are written at one time


def add(parser: argparse.ArgumentParser) -> None:
    from heed.cli.common import add_device

    option = parser.add_argument
    option("folder", help="a run or a model folder")
    option(
        "--user",
        action="append",
        metavar="USER",
        help="a user in the training log; may be repeated",
    )
    option("--items", action="append", metavar="A,B,C", help="a history of items, oldest first; may be repeated")
    option("--users", metavar="FILE", help="users, one per line")
    option("--histories", metavar="FILE", help="histories, one per line, items separated by commas")
    option("--n", type=int, default=10, help="how many items to recommend (default: 10)")
    option("--exclude-seen", action="store_true", help="do not recommend items that are in the history")
    option("--leave-out-unknown", action="store_true", help="skip items the model does not know, and report how many")
    option(
        "--format",
        choices=["table", "json"],
        default="table",
        help="TSV of user, rank, item and score, or JSON lines",
    )
    option(
        "--search",
        choices=["exact", "faiss"],
        default="exact",
        help="faiss: approximate, but several times faster for many users and a million items",
    )
    option("--out", metavar="FILE", help="write to a file")
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    from heed.cli.common import errors, open_product, stream_lines, write_chunks

    given = [name for name in ("user", "items", "users", "histories") if getattr(args, name)]
    if len(given) != 1:
        raise ValueError("choose one of --user, --items, --users FILE or --histories FILE")
    recommender = open_product(args, "recommend")
    recommender.use(args.search)
    asked: Iterable[str] = (
        stream_lines(getattr(args, given[0])) if given[0] in ("users", "histories") else args.items or args.user
    )
    left_out = [0]

    def chunks() -> Iterator[list[str]]:
        rest, number = iter(asked), 0
        while part := list(islice(rest, CHUNK)):
            yield list(_lines(args, recommender, part, given[0], number, left_out))
            number += len(part)

    write_chunks(chunks(), args.out)
    if left_out[0]:
        errors().print(f"[dim]{left_out[0]:,} unknown items were skipped.[/]", highlight=False)
    return 0


def _lines(
    args: argparse.Namespace, recommender: Any, asked: Sequence[str], kind: str, number: int, left_out: list[int]
) -> Iterator[str]:
    options = {"count": args.n, "exclude_seen": args.exclude_seen}
    if kind in ("user", "users"):
        names, found = list(asked), recommender.recommend_users(asked, **options)
    else:
        histories = [[item.strip() for item in next(csv.reader([line]), [])] for line in asked]
        left_out[0] += sum(item not in recommender.items.ids for own in histories for item in own)
        unknown = "leave out" if args.leave_out_unknown else "refuse"
        names = [str(number + i) for i in range(1, len(asked) + 1)]
        found = recommender.recommend(histories, unknown=unknown, **options)
    for name, own in zip(names, found, strict=True):
        if args.format == "json":
            who = {"user": name} if kind in ("user", "users") else {"history": int(name)}
            yield json.dumps({**who, "items": [vars(one) for one in own]}, ensure_ascii=False)
        else:
            yield from (f"{name}\t{rank}\t{one.item}\t{one.score:.4f}" for rank, one in enumerate(own, 1))
