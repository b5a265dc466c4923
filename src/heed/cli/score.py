"""heed score"""

import argparse
import os
from dataclasses import replace

EXAMPLES = """\
examples:
  heed score runs/en-de --source test.en --target test.de
  heed score runs/en-de --source test.en --target test.de --token-scores > scores.tsv
  heed score runs/wiki --text lines.txt                  # a language model
  heed score runs/ctrl --text lines.txt --code Reviews   # as a text with this control code
  heed score runs/ctrl --text lines.txt --codes          # under each code, and the likeliest one
  heed score runs/ctrl --text book.txt --codes --document paragraph

One line for each pair: its log probability; with --token-scores also each token with its own. The last line, on
standard error, is the perplexity of all. Tokens that the search forces at the beginning (BART's <s>) do not count.
"""


def add(parser: argparse.ArgumentParser) -> None:
    from heed.cli.common import add_device, add_direction, add_text_engine, split_names

    parser.add_argument("folder", type=split_names, help="a run or a model folder; several with commas: an ensemble")
    parser.add_argument("--source", metavar="FILE", help="the texts")
    parser.add_argument("--target", metavar="FILE", help="their translations, line by line")
    parser.add_argument("--text", metavar="FILE", help="for a language model: lines to score, each by itself")
    parser.add_argument("--code", help="the control code that each line of --text begins with")
    parser.add_argument("--codes", action="store_true", help="score each line of --text under every control code")
    documents = {"choices": ("line", "paragraph"), "help": "with --codes: score paragraphs, which blank lines end"}
    parser.add_argument("--document", default="line", **documents)
    parser.add_argument("--token-scores", action="store_true", help="also the log probability of each token")
    parser.add_argument("--out", metavar="FILE", help="write lines to a file")
    add_direction(parser)
    add_text_engine(parser)
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    from heed.cli.common import check_product, open_product, read_lines, write_scores
    from heed.decoding.config import forced_start
    from heed.loading import product_of

    for name in filter(os.path.isdir, args.folder):
        product_of(name, "score")  # one that gives texts no probability is refused, whatever is asked of it
    if args.text:
        from heed.cli.language import score

        return score(args)
    if args.code or args.codes:
        raise ValueError(f"--{'code' if args.code else 'codes'} is for language models: it goes with --text")
    if args.engine == "ctranslate2":
        raise ValueError("--engine ctranslate2 is for language models (--text FILE): leave it out")
    args.engine = "torch"  # the model itself scores
    if args.source or args.target:
        check_product(args, args.folder, "translate", "--text FILE")
    if not (args.source and args.target):
        raise ValueError("name what to score: --source FILE and --target FILE, or for a language model --text FILE")
    sources, targets = read_lines(args.source), read_lines(args.target)
    if len(sources) != len(targets):
        raise ValueError(f"{args.source} has {len(sources):,} lines and {args.target} has {len(targets):,}")
    translator = open_product(args, "translate")
    forced = len(forced_start(translator.decoding, translator.special[1]))
    write_scores(args, [_without_first(score, forced) for score in translator.score(sources, targets)], "pairs")
    return 0


def _without_first(score, count: int):
    """A score without its first tokens."""
    tokens, parts = score.tokens[count:], score.token_scores[count:]
    return replace(score, logp=sum(parts), tokens=tokens, token_scores=parts)
