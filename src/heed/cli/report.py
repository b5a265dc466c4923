"""heed report"""

import argparse
from pathlib import Path

EXAMPLES = """\
examples:
  heed report runs/en-de                                    # writes runs/en-de/report.html
  heed report runs/en-de --source test.en --reference test.de --out report.html
  heed report runs/en-de --against runs/other
  heed report runs/many --to de --source test.en --reference test.de --out de.html    # one direction of a multilingual model

A self-contained page: curves, scores with their signatures, sentences from best to worst, common errors, how the run
was made, and what to try next (docs/guides/report.md). heed train writes it after training a translation model;
--no-report turns it off. By default the run is compared with the latest run in the same folder that was validated on
the same sentences.
"""


def add(parser: argparse.ArgumentParser) -> None:
    from heed.cli.common import add_device, add_direction

    option = parser.add_argument
    option("folder", type=Path, help="a run")
    option("--out", type=Path, metavar="FILE", help="where to write the page (default: report.html in the run)")
    option("--source", metavar="FILE", help="source side of a test set")
    option("--reference", metavar="FILE", help="reference translations of the test set")
    compared = parser.add_mutually_exclusive_group()
    compared.add_argument(
        "--against", metavar="RUN", help="another run, model folder or name on the hub to compare with"
    )
    compared.add_argument("--alone", action="store_true", help="do not compare with another run")
    option("--lowercase", action="store_true", help="lowercase before scoring")
    option(
        "--tokenize", default="13a", help="sacreBLEU's tokenizer: 13a, zh, ja-mecab, ko-mecab, intl, char, flores200"
    )
    add_direction(parser)
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    from heed.cli.common import errors
    from heed.evaluation.translation import metrics
    from heed.runs.report.collect import Options
    from heed.runs.report.write import write_report

    if not args.folder.is_dir():
        raise ValueError(f"{args.folder}: no such folder")
    metrics(args.lowercase, args.tokenize)  # a tokenizer that is not there is reported before anything is translated
    direction = args.from_language, args.to_language
    if any(direction) and not args.source:
        raise ValueError("--from and --to give the direction of a test set: add --source and --reference")
    against = "" if args.alone else args.against
    options = Options(_test(args), against, args.device, direction, args.lowercase, args.tokenize)
    if args.threads:
        import torch

        torch.set_num_threads(args.threads)
    with errors().status("reading") as status:
        path = write_report(args.folder, args.out, options, status.update)
    print(path)
    return 0


def _test(args: argparse.Namespace) -> tuple[list[str], list[str]] | None:
    from heed.cli.common import read_lines

    if not args.source and not args.reference:
        return None
    if not args.source or not args.reference:
        raise ValueError("a test set needs two files: give both --source FILE and --reference FILE")
    sources, references = read_lines(args.source), read_lines(args.reference)
    if len(sources) != len(references):
        raise ValueError(
            f"{args.source} has {len(sources):,} lines and {args.reference} {len(references):,}: they must correspond "
            "line by line"
        )
    return sources, references
