"""heed generate"""

import argparse
import sys

EXAMPLES = """\
examples:
  heed generate runs/wiki                                            # a text from nothing
  heed generate runs/wiki --prompt "The history of" --length 200
  heed generate runs/wiki --prompt "The history of" --temperature 0.8 --top-k 40 --seed 7
  heed generate runs/wiki --prompt "The history of" --count 5 --one-line --scores
  heed generate runs/wiki --prompt "The history of" --greedy         # always the likeliest word
  heed generate runs/wiki --prompt "The history of" --beam 5 --length 20 --count 3
  heed generate runs/wiki --input prompts.txt --one-line --out texts.txt

Words are drawn by chance unless --greedy or --beam is said; the same seed gives the same text. A prompt stands before what
follows it; of several texts each ends with an empty line, unless --one-line.
"""
CHANCE = ("temperature", "top_k", "top_p", "seed", "no_repeat", "min_length", "beam", "length_penalty")


def add(parser: argparse.ArgumentParser) -> None:
    from heed.cli.common import add_device

    parser.add_argument("folder", help="a run or a model folder of a language model")
    parser.add_argument("--prompt", help="what the text begins with; nothing, unless said")
    parser.add_argument("--input", metavar="FILE", help="prompts, one a line (- is standard input)")
    parser.add_argument("--out", metavar="FILE", help="write to a file")
    parser.add_argument("--length", type=int, default=100, help="how many tokens follow (100)")
    parser.add_argument("--count", type=int, default=1, help="how many texts for each prompt")
    parser.add_argument("--one-line", action="store_true", help="no further than the end of the line")
    parser.add_argument(
        "--scores", action="store_true", help="the log probability of what follows, and a tab, before it"
    )
    chance = parser.add_argument_group("chance")
    chance.add_argument("--temperature", type=float, help="above 1 bolder, below 1 more careful")
    chance.add_argument("--top-k", type=int, help="from the K likeliest tokens")
    chance.add_argument("--top-p", type=float, help="from the fewest tokens that hold P of the probability")
    chance.add_argument("--seed", type=int, help="the same seed, the same text (1)")
    search = parser.add_argument_group("without chance")
    search.add_argument("--greedy", action="store_true", help="the likeliest token each time")
    search.add_argument("--beam", type=int, help="how many beginnings are kept at each step")
    search.add_argument("--length-penalty", type=float, help="alpha, the power of the penalty; the larger the longer")
    both = parser.add_argument_group("both")
    both.add_argument("--no-repeat", type=int, metavar="N", help="no run of N tokens twice")
    both.add_argument("--min-length", type=int, help="no end of a line before so many tokens")
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    from heed.cli.common import errors, open_product, read_lines, write_lines

    if args.prompt is not None and args.input:
        raise ValueError("there are --prompt and --input: give one of the two")
    how = _how(args)
    prompts = read_lines(args.input) if args.input else [args.prompt or ""]
    generator = open_product(args, "generate")
    for prompt in prompts:
        if unknown := generator.unknown(prompt):
            words = ", ".join(dict.fromkeys(unknown))
            errors().print(f"The model does not know {words}.", style="dim", markup=False, highlight=False)
    alone = len(prompts) == args.count == 1 and not (args.out or args.scores or args.beam)
    if alone and sys.stdout.isatty():
        return _as_it_comes(generator, prompts[0], how)
    texts = (line for prompt in prompts for line in _texts(generator, prompt, args, how))
    write_lines(texts, args.out)
    return 0


def _how(args: argparse.Namespace) -> dict:
    how = {name: getattr(args, name) for name in CHANCE if getattr(args, name) is not None}
    drawn = [name for name in ("temperature", "top_k", "top_p", "seed") if name in how]
    if args.greedy and args.beam:
        raise ValueError("--greedy and --beam: give one of the two")
    if (args.greedy or args.beam) and drawn:
        option = "--" + drawn[0].replace("_", "-")
        raise ValueError(f"{option} is for what is drawn by chance: leave it out, or --greedy and --beam")
    if args.greedy or args.beam:
        how["sample"] = False
    return how | {"length": args.length, "one_line": args.one_line}


def _texts(generator, prompt: str, args: argparse.Namespace, how: dict):
    """Each text with its prompt, and an empty line after it where it may have several lines itself."""
    found = generator.generate(prompt, count=args.count, **how)
    for number, one in enumerate(found, 1):
        score = f"{one.score:.4f}\t" if args.scores else ""
        text = f"{score}{_joined(prompt, one.text)}".rstrip("\n")
        yield text if args.one_line or (number == len(found) == 1) else f"{text}\n"


def _joined(prompt: str, text: str) -> str:
    return prompt + text if prompt else text.lstrip(" ")


def _as_it_comes(generator, prompt: str, how: dict) -> int:
    sys.stdout.write(prompt)
    for number, part in enumerate(generator.stream(prompt, **how)):
        sys.stdout.write(part.lstrip(" ") if not prompt and not number else part)
        sys.stdout.flush()
    sys.stdout.write("\n")
    return 0
