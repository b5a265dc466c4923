"""heed summarize"""

import argparse

EXAMPLES = """\
examples:
  heed summarize runs/news < article.txt                 # the whole input is one article
  heed summarize google/pegasus-xsum < article.txt       # a model on the hub, or a downloaded folder
  heed summarize runs/news one.txt two.txt               # one summary per file
  heed summarize runs/news --lines < articles.txt > summaries.txt
  heed summarize runs/news --beam 8 --length-penalty 2.0 --no-repeat 3 < article.txt

An article with more subwords than the model can read is truncated with a warning; with --too-long refuse it is
rejected.
"""

DECODING = ("beam", "length_penalty", "min_length", "max_length", "no_repeat")


def add(parser: argparse.ArgumentParser) -> None:
    from heed.cli.common import add_batches, add_device, add_direction, split_names

    parser.add_argument("folder", type=split_names, help="a run, a model folder, or a name on the hub")
    parser.add_argument("files", nargs="*", metavar="FILE", help="article files (default: standard input)")
    parser.add_argument("--lines", action="store_true", help="treat each line as an article")
    parser.add_argument("--out", metavar="FILE", help="write summaries to a file, one per line")
    search = parser.add_argument_group("search (default: the model's settings)")
    search.add_argument("--beam", type=int, help="beam size; 1 is greedy search")
    search.add_argument(
        "--length-penalty", type=float, help="exponent alpha of the length penalty; larger favours longer output"
    )
    search.add_argument("--min-length", type=int, help="minimum number of tokens")
    search.add_argument("--max-length", type=int, help="maximum number of tokens")
    search.add_argument("--no-repeat", type=int, metavar="N", help="never repeat a sequence of N tokens")
    add_batches(parser, ["cut", "refuse"], "articles")
    add_direction(parser)
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    from heed.cli.common import errors, open_product, write_lines

    articles = _articles(args)
    summarizer = open_product(args, "summarize")
    options = {name: getattr(args, name) for name in DECODING if getattr(args, name) is not None}
    summaries = summarizer.summarize(articles, too_long=args.too_long, batch_tokens=args.batch_tokens, **options)
    for number, (article, summary) in enumerate(zip(articles, summaries, strict=True), 1):
        if unread := summarizer.unread(article, summary):
            errors().print(
                f"article {number}: its last {unread:,} of {len(article.split()):,} words were truncated: the model "
                "reads "
                f"{summarizer.max_source:,} subwords", highlight=False, soft_wrap=True,
            )  # fmt: skip
    write_lines((summary.text for summary in summaries), args.out)
    return 0


def _articles(args: argparse.Namespace) -> list[str]:
    """The articles, each on one line."""
    from heed.cli.common import read_lines

    files = [read_lines(path) for path in args.files or [None]]
    if args.lines:
        return [line for lines in files for line in lines]
    articles = [" ".join(" ".join(lines).split()) for lines in files]
    for path, article in zip(args.files or ["standard input"], articles, strict=True):
        if not article:
            raise ValueError(f"{path} contains no text to summarize")
    return articles
