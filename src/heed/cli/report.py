"""heed report"""

import argparse
from pathlib import Path

EXAMPLES = """\
examples:
  heed report runs/en-de                                    # writes runs/en-de/report.html
  heed report runs/en-de --source test.en --reference test.de --out report.html
  heed report runs/en-de --against runs/other
  heed report runs/many --to de --source test.en --reference test.de --out de.html    # one direction of several

One page that loads nothing from elsewhere: curves, scores with their signatures, sentences from best to worst, where
translations go wrong, what the run was made of, and what to try next (docs/guides/report.md). heed train writes it at the end
of a translator's training; --no-report leaves it out. Without --against the run is compared with the latest one beside
it that was validated on the same sentences.
"""


def add(parser: argparse.ArgumentParser) -> None:
    from heed.cli.common import add_device, add_direction

    option = parser.add_argument
    option("folder", type=Path, help="a run")
    option("--out", type=Path, metavar="FILE", help="where to write the page (default: report.html in the run)")
    option("--source", metavar="FILE", help="a test set: what to translate")
    option("--reference", metavar="FILE", help="its reference translations")
    compared = parser.add_mutually_exclusive_group()
    compared.add_argument(
        "--against", metavar="RUN", help="another run, model folder or name on the hub to compare with"
    )
    compared.add_argument("--alone", action="store_true", help="compare with no other run")
    option("--lowercase", action="store_true", help="score in lower case")
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
        raise ValueError("--from and --to say of which direction a test set is: name it with --source and --reference")
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
        raise ValueError("a test set has two files: name both --source FILE and --reference FILE")
    sources, references = read_lines(args.source), read_lines(args.reference)
    if len(sources) != len(references):
        raise ValueError(
            f"{args.source} has {len(sources):,} lines and {args.reference} {len(references):,}: line by line they go together"
        )
    return sources, references
