"""heed recommend"""

import argparse
import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

EXAMPLES = """\
examples:
  heed recommend runs/sasrec --user 42                           # what comes next for a user of the log
  heed recommend runs/sasrec --items "shampoo,soap" --n 5        # for somebody who was never seen: what they did, the last thing last
  heed recommend runs/sasrec --user 42 --user 43 --exclude-seen --format json
  heed recommend runs/sasrec --users users.txt --out next.tsv    # a user a line; a table of user, rank, item and score
  heed recommend runs/sasrec --histories carts.txt --out next.tsv     # a history a line, items with commas between
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
        help="a user of the log that the model was trained on; may be repeated",
    )
    option("--items", action="append", metavar="A,B,C", help="the items of a history, oldest first; may be repeated")
    option("--users", metavar="FILE", help="users, one a line")
    option("--histories", metavar="FILE", help="histories, one a line, with commas between items")
    option("--n", type=int, default=10, help="how many items to recommend (default: 10)")
    option("--exclude-seen", action="store_true", help="recommend nothing that is in the history")
    option("--leave-out-unknown", action="store_true", help="skip and count items that the model does not know")
    option(
        "--format",
        choices=["table", "json"],
        default="table",
        help="user, rank, item and score with tabs, or JSON lines",
    )
    option(
        "--search",
        choices=["exact", "faiss"],
        default="exact",
        help="faiss: approximate; for many users and a million items several times as fast",
    )
    option("--out", metavar="FILE", help="write to a file")
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    from heed.cli.common import errors, open_product, stream_lines, write_chunks

    given = [name for name in ("user", "items", "users", "histories") if getattr(args, name)]
    if len(given) != 1:
        raise ValueError("say for whom: --user, --items, --users FILE or --histories FILE, one of them")
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
        errors().print(f"[dim]{left_out[0]:,} items that the model does not know were left out.[/]", highlight=False)
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
