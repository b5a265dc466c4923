"""heed score"""

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

EXAMPLES = """\
examples:
  heed score runs/en-de --source test.en --target test.de
  heed score runs/en-de --source test.en --target test.de --token-scores > scores.tsv
  heed score runs/en-de --source corpus.en --target corpus.de --out scores.txt --resume   # from where a killed run stopped
  heed score runs/wiki --text lines.txt                  # a language model
  heed score runs/wiki --text corpus.txt --out scores.txt --resume
  heed score runs/ctrl --text lines.txt --code Reviews   # as a text with this control code
  heed score runs/ctrl --text lines.txt --codes          # under each code, and the most likely one
  heed score runs/ctrl --text book.txt --codes --document paragraph

Prints the log probability of each pair, one per line; with --token-scores, also that of each token. The overall
perplexity goes to standard error. Tokens that decoding forces at the beginning (BART's <s>) do not count.
"""


def add(parser: argparse.ArgumentParser) -> None:
    from heed.bulk.command import add_resume
    from heed.cli.common import add_device, add_direction, add_text_engine, split_names

    parser.add_argument(
        "folder", type=split_names, help="a run or a model folder; several, separated by commas: an ensemble"
    )
    parser.add_argument("--source", metavar="FILE", help="the texts")
    parser.add_argument("--target", metavar="FILE", help="their translations, line by line")
    parser.add_argument("--text", metavar="FILE", help="for a language model: lines to score, each separately")
    parser.add_argument("--code", help="the control code that each line of --text begins with")
    parser.add_argument("--codes", action="store_true", help="score each line of --text under every control code")
    documents = {"choices": ("line", "paragraph"), "help": "with --codes: score paragraphs, separated by blank lines"}
    parser.add_argument("--document", default="line", **documents)
    parser.add_argument("--token-scores", action="store_true", help="also print the log probability of each token")
    parser.add_argument("--out", metavar="FILE", help="write lines to a file")
    add_resume(parser, "--source and --target, or --text,")
    add_direction(parser)
    add_text_engine(parser)
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    from heed.bulk.command import check_resume
    from heed.cli.common import check_product, open_product
    from heed.loading import product_of

    for name in filter(os.path.isdir, args.folder):
        product_of(name, "score")  # one that gives texts no probability is refused, whatever is asked of it
    if args.text:
        check_resume(args, True, "--text FILE")
        from heed.cli.language import score

        return score(args)
    if args.code or args.codes:
        raise ValueError(f"--{'code' if args.code else 'codes'} is for language models: use it with --text")
    if args.engine == "ctranslate2":
        raise ValueError("--engine ctranslate2 is for language models (--text FILE): leave it out")
    args.engine = "torch"  # the model itself scores
    if args.source or args.target:
        check_product(args, args.folder, "translate", "--text FILE")
    if not (args.source and args.target):
        raise ValueError(
            "give something to score: --source FILE and --target FILE, or for a language model --text FILE"
        )
    check_resume(args, True, "--source FILE, --target FILE")
    pairs = _pairs(args)
    _score_files(open_product(args, "translate"), pairs, args)
    return 0


def _pairs(args: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """The texts and their translations. Files are read once in advance, so that errors appear before any output."""
    names = (args.source, args.target)
    if names == ("-", "-"):
        raise ValueError("--source and --target are both standard input: give a file for one of them")
    if "-" not in names:
        for _ in _matching(names):
            pass
    return _matching(names)


def _matching(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The lines of two files side by side; their numbers must match."""
    from heed.cli.common import stream_lines

    both = zip_longest(*map(stream_lines, names))
    for number, (source, target) in enumerate(both):
        if source is None or target is None:
            longer = number + 1 + sum(1 for _ in both)
            counts = (number, longer) if source is None else (longer, number)
            raise ValueError(f"{names[0]} has {counts[0]:,} lines and {names[1]} has {counts[1]:,}")
        yield source, target


def _score_files(translator, pairs: Iterator[tuple[str, str]], args: argparse.Namespace) -> None:
    from heed.bulk import command
    from heed.cli.score_lines import CHUNK, report, scored
    from heed.data.staged import Stages, chunks
    from heed.decoding.config import forced_start
    from heed.products.translator import stages

    forced = len(forced_start(translator.decoding, translator.special[1]))

    def prepare(chunk) -> tuple:
        sides = tuple(map(list, zip(*chunk.items, strict=True)))
        return *sides, stages.prepare_pairs(translator, *sides)

    def finish(prepared: tuple, found: list) -> command.Noted:
        scores = stages.finish_scores(translator, *prepared, found)
        return scored([_without_first(own, forced) for own in scores], args.token_scores)

    size = command.chunk_size(args, CHUNK, "-" if "-" in (args.source, args.target) else args.source)

    def settings() -> dict:
        return command.settings_of(
            translator, token_scores=args.token_scores, languages=translator.facts.get("languages"), chunk=size
        )

    own = Stages(prepare, lambda prepared: stages.score(translator, prepared[2]), finish)
    report(command.process(chunks(pairs, size), own, args, settings, [args.source, args.target]), "pairs")


def _without_first(score, count: int):
    """A score without its first tokens."""
    tokens, parts = score.tokens[count:], score.token_scores[count:]
    return replace(score, logp=sum(parts), tokens=tokens, token_scores=parts)
