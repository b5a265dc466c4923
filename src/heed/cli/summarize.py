"""heed summarize"""

import argparse
from collections.abc import Iterator
from dataclasses import asdict

EXAMPLES = """\
examples:
  heed summarize runs/news < article.txt                 # the whole input is one article
  heed summarize google/pegasus-xsum < article.txt       # a model on the hub, or a downloaded folder
  heed summarize runs/news one.txt two.txt               # one summary per file
  heed summarize runs/news --lines < articles.txt > summaries.txt
  heed summarize runs/news --lines articles.txt --out summaries.txt --resume   # after a crash, from where it stopped
  heed summarize runs/news --beam 8 --length-penalty 2.0 --no-repeat 3 < article.txt

An article with more subwords than the model can read is truncated with a warning; with --too-long refuse it is
rejected.
"""

CHUNK = 500  # articles that are summarized together
DECODING = ("beam", "length_penalty", "min_length", "max_length", "no_repeat", "avoid_loops")


def add(parser: argparse.ArgumentParser) -> None:
    from heed.bulk.command import add_resume
    from heed.cli.common import add_batches, add_device, add_direction, add_guards, split_names

    parser.add_argument("folder", type=split_names, help="a run, a model folder, or a name on the hub")
    parser.add_argument("files", nargs="*", metavar="FILE", help="article files (default: standard input)")
    parser.add_argument("--lines", action="store_true", help="treat each line as an article")
    parser.add_argument("--out", metavar="FILE", help="write summaries to a file, one per line")
    add_resume(parser, "FILE")
    search = parser.add_argument_group("search (default: the model's settings)")
    search.add_argument("--beam", type=int, help="beam size; 1 is greedy search")
    search.add_argument(
        "--length-penalty", type=float, help="exponent alpha of the length penalty; larger favours longer output"
    )
    search.add_argument("--min-length", type=int, help="minimum number of tokens")
    search.add_argument("--max-length", type=int, help="maximum number of tokens")
    search.add_argument("--no-repeat", type=int, metavar="N", help="never repeat a sequence of N tokens")
    add_guards(search, ["loops"])
    add_batches(parser, ["cut", "refuse"], "articles")
    add_direction(parser)
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    from heed.bulk.command import check_resume
    from heed.cli.common import open_product

    check_resume(args, bool(args.files), "FILE")
    if args.files and not args.lines:
        for _ in _articles(args):  # an empty file is reported before the model is opened
            pass
    summarizer = open_product(args, "summarize")
    _summarize(summarizer.toward() if summarizer.bundle.undirected else summarizer, args)
    return 0


def _summarize(summarizer, args: argparse.Namespace) -> None:
    from heed.bulk import command
    from heed.data.staged import chunks
    from heed.products.product import as_texts
    from heed.products.translator import stages
    from heed.text.glossary import Glossary

    chosen = {name: getattr(args, name) for name in DECODING if getattr(args, name) is not None}
    config, given = summarizer.search_config(chosen), {"too_long": args.too_long, "batch_tokens": args.batch_tokens}

    def prepare(chunk) -> tuple:
        return chunk.start, stages.prepare(summarizer, as_texts(chunk.items), config, Glossary(), **given)

    def finish(prepared: tuple, found: list) -> bytes:
        before, work = prepared
        summaries = stages.finish(summarizer, work, found)
        for number, (article, summary) in enumerate(zip(work.texts, summaries, strict=True), before + 1):
            _warn_unread(summarizer, number, article, summary)
        return command.as_bytes(summary.text for summary in summaries)

    size = command.chunk_size(args, CHUNK, args.files)

    def settings() -> dict:
        search = {"engine": summarizer.engine(**chosen), "decoding": asdict(config)}
        languages = summarizer.facts.get("languages")
        return command.settings_of(summarizer, **given, **search, lines=args.lines, languages=languages, chunk=size)

    own = stages.searching(summarizer, prepare, finish, lambda prepared: prepared[1])
    command.process(chunks(_articles(args), size), own, args, settings, args.files)


def _warn_unread(summarizer, number: int, article: str, summary) -> None:
    from heed.cli.common import errors

    if unread := summarizer.unread(article, summary):
        errors().print(
            f"article {number}: its last {unread:,} of {len(article.split()):,} words were truncated: the model reads "
            f"{summarizer.max_source:,} subwords", highlight=False, soft_wrap=True,
        )  # fmt: skip


def _articles(args: argparse.Namespace) -> Iterator[str]:
    """The articles, each in one line."""
    from heed.cli.common import read_lines, stream_lines

    for path in args.files or [None]:
        if args.lines:
            yield from stream_lines(path)
            continue
        article = " ".join(" ".join(read_lines(path)).split())
        if not article:
            raise ValueError(f"{path or 'standard input'} contains no text to summarize")
        yield article
