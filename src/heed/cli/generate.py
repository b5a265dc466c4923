"""heed generate"""

import argparse
import sys

EXAMPLES = """\
examples:
  heed generate runs/wiki                                            # a text without a prompt
  heed generate runs/wiki --prompt "The history of" --length 200
  heed generate runs/wiki --prompt "The history of" --temperature 0.8 --top-k 40 --seed 7
  heed generate runs/wiki --prompt "The history of" --count 5 --one-line --scores
  heed generate runs/wiki --prompt "The history of" --greedy         # always the likeliest token
  heed generate runs/wiki --prompt "The history of" --beam 5 --length 20 --count 3
  heed generate runs/wiki --input prompts.txt --one-line --out texts.txt

Tokens are sampled, unless --greedy or --beam is given; the same seed gives the same text. Each text begins with its
prompt. Several texts are each followed by an empty line, unless --one-line is given.
"""
DECODING = ("temperature", "top_k", "top_p", "seed", "no_repeat", "min_length", "beam", "length_penalty")


def add(parser: argparse.ArgumentParser) -> None:
    from heed.cli.common import add_device

    parser.add_argument("folder", help="a run or a model folder of a language model")
    parser.add_argument("--prompt", help="what the text begins with (default: nothing)")
    parser.add_argument("--input", metavar="FILE", help="prompts, one a line (- is standard input)")
    parser.add_argument("--out", metavar="FILE", help="write to a file")
    parser.add_argument("--length", type=int, default=100, help="how many tokens to generate (100)")
    parser.add_argument("--count", type=int, default=1, help="how many texts for each prompt")
    parser.add_argument("--one-line", action="store_true", help="stop at the end of the line")
    parser.add_argument(
        "--scores", action="store_true", help="write the log probability of what was generated, and a tab, before it"
    )
    sampling = parser.add_argument_group("sampling")
    sampling.add_argument("--temperature", type=float, help="above 1: more varied; below 1: closer to the likeliest")
    sampling.add_argument("--top-k", type=int, help="sample from the K likeliest tokens")
    sampling.add_argument("--top-p", type=float, help="sample from the fewest tokens that hold P of the probability")
    sampling.add_argument("--seed", type=int, help="the same seed gives the same text (1)")
    search = parser.add_argument_group("search, instead of sampling")
    search.add_argument("--greedy", action="store_true", help="the likeliest token each time")
    search.add_argument("--beam", type=int, help="how many hypotheses are kept at each step")
    search.add_argument("--length-penalty", type=float, help="alpha, the exponent of the penalty: larger means longer")
    both = parser.add_argument_group("both")
    both.add_argument("--no-repeat", type=int, metavar="N", help="never repeat a sequence of N tokens")
    both.add_argument("--min-length", type=int, help="tokens before a line may end")
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    from heed.cli.common import errors, open_product, read_lines, write_lines

    if args.prompt is not None and args.input:
        raise ValueError("there are --prompt and --input: give one of the two")
    options = _options(args)
    prompts = read_lines(args.input) if args.input else [args.prompt or ""]
    generator = open_product(args, "generate")
    for prompt in prompts:
        if unknown := generator.unknown(prompt):
            words = ", ".join(dict.fromkeys(unknown))
            errors().print(f"The model does not know {words}.", style="dim", markup=False, highlight=False)
    single = len(prompts) == args.count == 1 and not (args.out or args.scores or args.beam)
    if single and sys.stdout.isatty():
        return _stream(generator, prompts[0], options)
    texts = (text for prompt in prompts for text in _texts(generator, prompt, args, options))
    write_lines(texts, args.out)
    return 0


def _options(args: argparse.Namespace) -> dict:
    options = {name: getattr(args, name) for name in DECODING if getattr(args, name) is not None}
    sampling = [name for name in ("temperature", "top_k", "top_p", "seed") if name in options]
    if args.greedy and args.beam:
        raise ValueError("--greedy and --beam: give one of the two")
    if (args.greedy or args.beam) and sampling:
        option = "--" + sampling[0].replace("_", "-")
        raise ValueError(f"{option} is for sampling: leave it out, or leave out --greedy and --beam")
    if args.greedy or args.beam:
        options["sample"] = False
    return options | {"length": args.length, "one_line": args.one_line}


def _texts(generator, prompt: str, args: argparse.Namespace, options: dict):
    """Each text with its prompt, followed by an empty line where it may have several lines itself."""
    found = generator.generate(prompt, count=args.count, **options)
    for continuation in found:
        score = f"{continuation.score:.4f}\t" if args.scores else ""
        text = prompt + continuation.text if prompt else continuation.text.lstrip(" ")
        text = f"{score}{text}".rstrip("\n")
        yield text if args.one_line or len(found) == 1 else f"{text}\n"


def _stream(generator, prompt: str, options: dict) -> int:
    """Print each part of the text as soon as it is known."""
    sys.stdout.write(prompt)
    for number, part in enumerate(generator.stream(prompt, **options)):
        sys.stdout.write(part.lstrip(" ") if not prompt and not number else part)
        sys.stdout.flush()
    sys.stdout.write("\n")
    return 0
