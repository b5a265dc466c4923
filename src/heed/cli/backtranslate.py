"""heed backtranslate"""

import argparse
from pathlib import Path

EXAMPLES = """\
examples:
  heed backtranslate runs/en-ko mono.en --out synthetic.tsv       # for a model from ko to en
  heed backtranslate runs/en-ko mono.en.gz --out synthetic.tsv --sample --top-k 10 --tag "<bt>"

MODEL translates in the opposite direction: from the language that the new model will produce. Each line of the result
is a translation, a tab and the line itself, so the file can be used as a corpus for the new model
(docs/guides/data.md):

  [[data.corpora]]
  tsv = "synthetic.tsv"
  tag = "<bt>"

Beam search, the default, works better with little parallel text; with a million pairs or more, sampling does
(Edunov et al., 2018). After Ctrl-C, a crash or kill -9 the same command continues, and the result is the same.
"""


def add(parser: argparse.ArgumentParser) -> None:
    from heed.cli.common import add_device, add_direction, add_engine, add_guards, split_names

    names = "a run, a model folder, or a name on the hub; several, separated by commas, form an ensemble"
    parser.add_argument("folder", metavar="MODEL", type=split_names, help=names)
    parser.add_argument(
        "mono", metavar="FILE", type=Path, help="text in the model's source language: plain, .gz or .xz"
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="the TSV file of pairs; OUT.part until it is complete"
    )
    parser.add_argument("--tag", default="", help="a tag to put before each translation, such as <bt>")
    parser.add_argument("--beam", type=int, help="beam size; 1 is greedy search")
    parser.add_argument(
        "--length-penalty", type=float, help="exponent alpha of the length penalty; larger favours longer output"
    )
    add_guards(parser)
    parser.add_argument("--sample", action="store_true", default=None, help="sample each token instead of searching")
    parser.add_argument("--temperature", type=float, help="above 1: more varied; below 1: closer to greedy")
    parser.add_argument("--top-k", type=int, help="sample from the K most likely tokens")
    parser.add_argument("--top-p", type=float, help="sample from the smallest set of tokens with total probability P")
    parser.add_argument("--seed", type=int, help="random seed; the same seed gives the same translations")
    parser.add_argument("--batch-tokens", type=int, default=4096, help="maximum number of subwords per batch")
    parser.add_argument("--quiet", action="store_true", help="print errors only")
    add_direction(parser)
    add_device(parser)
    add_engine(parser)


DECODING = ("beam", "length_penalty", "sample", "temperature", "top_k", "top_p", "seed")


def run(args: argparse.Namespace) -> int:
    from heed.cli.common import GUARDS, errors, open_product, warn_on
    from heed.cli.progress import progress
    from heed.runs import backtranslate

    decoding = {name: getattr(args, name) for name in (*DECODING, *GUARDS) if getattr(args, name) is not None}
    if not args.sample:
        for name in ("temperature", "top_k", "top_p", "seed"):
            if name in decoding:
                raise ValueError(f"--{name.replace('_', '-')} is for sampling: add --sample")
    job = backtranslate.BackTranslation(args.mono, args.out, args.tag, args.batch_tokens, {"nbest": 1, **decoding})
    translator = open_product(args, "translate")
    console = errors()
    console.quiet, console.soft_wrap = args.quiet, True
    if wrong := _wrong_direction(args.mono, translator.facts.get("languages") or {}):
        console.print(wrong, highlight=False)
    try:
        with progress(console) as tell:
            counts = backtranslate.run(job, translator, tell, warn_on(console))
    except KeyboardInterrupt:
        console.print(f"Interrupted; finished translations are kept in {job.part}. Run the same command to continue.")
        return 130
    console.print(f"{args.out}: {counts.describe()}", highlight=False)
    return 0


def _wrong_direction(mono: Path, languages: dict) -> str:
    """A warning if the text is not in the language that the model translates from, by its name; else nothing."""
    from heed.text.language_codes import base
    from heed.text.languages import language_of_files, name

    found, source = language_of_files([str(mono)]), languages.get("source")
    if not (found and source) or base(found) == base(source):
        return ""
    return (
        f"Warning: by its name, {mono.name} is in {name(found)}, but the model translates from {name(source)}: "
        "back-translation needs a model for the opposite direction."
    )
