"""The command `heed`: a verb and its arguments. Heavy imports wait until the verb runs."""

import argparse
import importlib
import os
import sys
import time
from collections.abc import Sequence

from heed.cli.garbage import postpone
from heed.cli.parsing import Formatter, Parser
from heed.config import meant
from heed.version import __version__

VERBS = {
    "train": "train a translator, summarizer, language model, encoder (BERT) or classifier, from scratch or from an existing model",
    "translate": "translate text with a trained model",
    "serve": "serve models with a web page and three APIs: LibreTranslate's, OpenAI's and Heed's",
    "evaluate": "evaluate a model: BLEU, chrF and TER with signatures; perplexity; accuracy and correlation",
    "report": "write an HTML report on a run: curves, scores, common errors, and what to try next",
    "summarize": "summarize articles",
    "classify": "classify texts, predict numbers, or choose an answer",
    "tag": "tag words, and find names and other entities",
    "answer": "find the answers to questions in a text",
    "embed": "embed texts as vectors, and search a file for similar lines",
    "transcribe": "transcribe recordings, with word timings",
    "speak": "speak a text with a trained voice",
    "recommend": "recommend the next items for a user or a history",
    "generate": "continue a text with a language model",
    "fill": "fill in the masked words of a text",
    "noise": "show how BART, Pegasus and BERT corrupt a text for pre-training",
    "look": "visualize the attention of a translation",
    "lab": "measure and plot what each part of a Transformer is for",
    "score": "score given translations or texts",
    "backtranslate": "make training pairs from monolingual text in the target language",
    "distill": "train a smaller, faster translator from a trained one",
    "convert": "import Hugging Face models, and export to Hugging Face and CTranslate2",
    "average": "average the weights of checkpoints or models",
    "info": "describe a run or a model folder",
    "doctor": "find problems with this installation, and print what a bug report needs",
    "completion": "print a shell completion script for bash, zsh or fish",
    "vectors": "find similar words in word vectors or a model; train word vectors",
    "recipes": "list the built-in recipes, show one, or copy one to edit",
    "plot": "plot the training curves of one or more runs",
    "speak-corpus": "generate speech training data with espeak-ng, in several voices and speeds",
    "phonemes": "show the phonemes of a text, or write files to train a pronunciation model",
    "phrasebook": "write the built-in corpora to files: Korean-English phrases, articles with summaries",
}

EXAMPLES = """\
from two text files to a translation model:
  heed train --source train.en --target train.de --valid-source val.en --valid-target val.de --out runs/en-de
  heed translate runs/en-de < test.en > test.hyp
  heed evaluate runs/en-de --source test.en --reference test.de
  heed look runs/en-de "A man is sleeping." --out attention.html

heed VERB --help lists the options and shows examples.
"""
MOST = 2_000  # characters of an error


def parser() -> Parser:
    """All verbs by name, without their options."""
    description = "Train, evaluate and serve Transformer models, and see what happens inside."
    top = Parser("heed", description=description, epilog=EXAMPLES, formatter_class=Formatter)
    top.add_argument("--version", action="version", version=f"heed {__version__}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", title="verbs")
    for name, line in VERBS.items():
        verbs.add_parser(name, help=line)
    return top


def command_parser(verb: str, second: str | None = None) -> Parser:
    """The parser of a verb or of one of its subcommands, which have their own options."""
    module, line, name = importlib.import_module(f"heed.cli.{verb.replace('-', '_')}"), VERBS[verb], f"heed {verb}"
    if second is not None:
        (verb, line), name = module.COMMANDS[second], f"{name} {second}"
        module = importlib.import_module(f"heed.cli.{verb}")
    description = line[0].upper() + line[1:] + "."
    own = Parser(name, description=description, epilog=module.EXAMPLES, formatter_class=Formatter)
    own.set_defaults(verb=verb)
    module.add(own)
    return own


def parse(verb: str, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments. Texts and files may come before, after and between options."""
    commands = getattr(importlib.import_module(f"heed.cli.{verb.replace('-', '_')}"), "COMMANDS", {})
    second = arguments[0] if arguments and arguments[0] in commands else None
    own = command_parser(verb, second)
    nested = any(action.nargs == argparse.PARSER for action in own._actions)  # argparse mixes none of these
    known = own.parse_known_args if nested else own.parse_known_intermixed_args
    args, extra = known(arguments[1:] if second else arguments)
    if extra:
        own.refuse_unknown(extra)
    return args


def main(arguments: Sequence[str] | None = None) -> int:
    began = time.monotonic()
    if arguments is None:  # the process is this command
        arguments = sys.argv[1:]
        postpone()
    arguments = list(arguments)
    if not arguments or arguments[0] not in VERBS:
        return _without_verb(arguments)
    args = parse(arguments[0], arguments[1:])
    args.began = began  # a time budget counts from here, imports included
    try:
        return importlib.import_module(f"heed.cli.{args.verb.replace('-', '_')}").run(args) or 0
    except BrokenPipeError:  # the reader of the output, such as head, has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        print("heed: interrupted", file=sys.stderr)
        return 130
    except (ValueError, OSError) as error:
        print(f"heed: {one_line(str(error))}", file=sys.stderr)
        return 1


def _without_verb(arguments: Sequence[str]) -> int:
    if arguments and not arguments[0].startswith("-"):
        near = meant(arguments[0], VERBS)
        hint = f"did you mean heed {near}? " if near else ""
        print(f"heed: {one_line(arguments[0])}: no such verb; {hint}heed --help lists the verbs", file=sys.stderr)
        return 2
    parser().parse_args(arguments)  # --help and --version end here
    parser().print_help()
    return 2


def one_line(text: str) -> str:
    """An error that is safe for a terminal: content of a damaged file cannot fill the screen or send control codes."""
    if len(text) > MOST:
        text = f"{text[: MOST // 2]} … {text[-MOST // 2 :]}"
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
