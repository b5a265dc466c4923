"""heed generate"""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain

EXAMPLES = """\
examples:
  heed generate runs/wiki                                            # without a prompt
  heed generate runs/wiki "The history of" --length 200
  heed generate runs/wiki "The history of" --temperature 0.8 --top-k 40 --seed 7
  heed generate runs/wiki "The history of" --min-p 0.05 --repetition-penalty 1.2
  heed generate runs/wiki "The history of" --count 5 --one-line --scores
  heed generate runs/wiki "Q: Who was she? A:" --stop "Q:" --stop "\\n"
  heed generate runs/wiki "The history of" --greedy                  # always the most likely token
  heed generate runs/wiki "The history of" --beam 5 --length 20 --count 3
  heed generate runs/wiki --input prompts.txt --one-line --out texts.txt
  heed generate runs/wiki --input prompts.txt --one-line --out texts.txt --resume   # after a crash, from where it stopped
  heed generate Salesforce/ctrl "Rating: 5.0" --code Reviews         # a CTRL model with a control code
  heed generate runs/pictures --count 16 --out samples.png           # an image model (docs/guides/images.md)
  heed generate runs/pictures --count 1000 --out samples/            # each image in its own file
  heed generate runs/pictures --complete half.png --count 4 --out completed.png

By default tokens are sampled (see --greedy and --beam); the same seed gives the same text. Each text begins with its
prompt, and ends before a --stop string. Several texts are separated by empty lines, except with --one-line.
In --stop, \\n is a newline. Logits are processed in this order: repetition penalty, --no-repeat
and --min-length, temperature, top-k, top-p, min-p, typical.
"""
SAMPLING = ("temperature", "top_k", "top_p", "min_p", "typical_p", "seed")
DECODING = (*SAMPLING, "repetition_penalty", "no_repeat", "min_length", "beam", "length_penalty")
IMAGES = ("complete", "keep", "enlarge", "class_name")  # options of models that draw
DRAWING = ("folder", "out", "count", "temperature", "seed", "engine", "device", "threads", *IMAGES)
NAMES = {"text": "a prompt", "typical_p": "--typical", "class_name": "--class"}  # of options called otherwise inside
CHUNK = 256  # prompts of a file that are continued before anything is written


def add(parser: argparse.ArgumentParser) -> None:
    from heed.bulk.command import add_resume
    from heed.cli.common import add_device, add_text_engine

    option = parser.add_argument
    option("folder", help="a run or a model folder of a language model, or a name on the hub")
    option("text", nargs="?", metavar="prompt", help="the prompt (default: none)")
    option("--prompt", help="the prompt, given as an option")
    option("--input", metavar="FILE", help="prompts, one per line (-: standard input)")
    option("--code", help="for CTRL: the control code, which sets the kind of text")
    option("--out", metavar="FILE", help="write to a file; several images also to a folder, each to its own file")
    add_resume(parser)
    option("--length", type=int, default=100, help="maximum number of tokens to generate (default: 100)")
    option("--count", type=int, default=1, help="number of texts per prompt, or of images")
    option("--one-line", action="store_true", help="stop at the end of the line")
    option("--stop", action="append", default=[], metavar="STRING", help="stop before this string; may be repeated")
    option("--stream", action="store_true", help="print text as it is generated (default on a terminal)")
    option("--scores", action="store_true", help="write the log probability and a tab before each generated text")
    option("--batch-tokens", type=int, default=4096, help="maximum number of prompt tokens per batch (default: 4096)")
    sampling = parser.add_argument_group("sampling")
    option = sampling.add_argument
    option("--temperature", type=float, help="above 1: more varied; below 1: closer to greedy")
    option("--top-k", type=int, metavar="K", help="sample from the K most likely tokens")
    option("--top-p", type=float, metavar="P", help="sample from the smallest set of tokens with total probability P")
    option(
        "--min-p", type=float, metavar="P", help="sample from tokens at least P times as likely as the most likely one"
    )
    option(
        "--typical",
        type=float,
        metavar="P",
        dest="typical_p",
        help="sample from the tokens whose surprisal is closest to the entropy, with total probability P",
    )
    option("--seed", type=int, help="random seed; the same seed gives the same text (default: 1)")
    _add_images(parser)
    _add_search(parser)
    add_text_engine(parser, searches=True)
    add_device(parser)


def _add_images(parser: argparse.ArgumentParser) -> None:
    drawing = parser.add_argument_group("images, for an image generator: --out samples.png --count 16")
    option = drawing.add_argument
    option("--complete", metavar="IMAGE", help="keep the upper part of an image and generate the rest")
    option(
        "--keep",
        type=float,
        metavar="SHARE",
        help="share of the image to keep (default: all of an image that is wider than it is tall, else half)",
    )
    option("--enlarge", metavar="IMAGE", help="a small image, for a super-resolution model (task.enlarge)")
    option(
        "--class",
        dest="class_name",
        action="append",
        metavar="NAME",
        help="generate an image of this class; may be repeated",
    )


def _add_search(parser: argparse.ArgumentParser) -> None:
    search = parser.add_argument_group("search instead of sampling")
    search.add_argument("--greedy", action="store_true", help="always take the most likely token")
    search.add_argument("--beam", type=int, help="beam size")
    search.add_argument(
        "--length-penalty", type=float, help="exponent alpha of the length penalty; larger favours longer output"
    )
    both = parser.add_argument_group("both")
    both.add_argument(
        "--repetition-penalty",
        type=float,
        metavar="X",
        help="make tokens that already occurred less likely (CTRL uses 1.2; 1 is off)",
    )
    both.add_argument("--no-repeat", type=int, metavar="N", help="never repeat a sequence of N tokens")
    both.add_argument("--min-length", type=int, help="minimum number of tokens before a line may end")


def run(args: argparse.Namespace) -> int:
    from heed.bulk.command import check_resume
    from heed.cli import drawing, images
    from heed.cli.common import open_product

    if images.reads_images(args.folder, args.verb):
        check_resume(args, False, "a model of texts, --input FILE")
        _refuse_text_options(args)
        return drawing.generate(args)
    if asked := next((name for name in IMAGES if getattr(args, name)), None):
        raise ValueError(
            f"{NAMES.get(asked, f'--{asked}')} is for image models, and {args.folder} writes text: leave it out"
        )
    check_resume(args, bool(args.input))
    prompts, options = _prompts(args), _options(args)
    generator = open_product(args, "generate")
    if args.input != "-":
        unknown = (word for prompt in prompts() for word in generator.unknown(prompt))
        _say(unknown, generator.beyond_positions(prompts(), args.length, args.code))
    single = args.count == 1 and not (args.input or args.out or args.scores or args.beam)
    if args.stream and not single:
        raise ValueError(
            "--stream needs a single text on standard output; it cannot be combined with --beam, --scores, --count or "
            "--input"
        )
    if single and (args.stream or sys.stdout.isatty()):
        return _stream(generator, next(prompts()), options)
    _generate(generator, prompts, args, options)
    return 0


def _refuse_text_options(args: argparse.Namespace) -> None:
    """Image models have no use for most options."""
    parser = argparse.ArgumentParser()
    add(parser)
    for name, usual in vars(parser.parse_args(["folder"])).items():
        if name not in DRAWING and getattr(args, name) != usual:
            option = NAMES.get(name, f"--{name.replace('_', '-')}")
            raise ValueError(f"{option} is for texts, and {args.folder} draws images: leave it out")


def _prompts(args: argparse.Namespace) -> Callable[[], Iterator[str]]:
    """What reads the prompts: again and again, but only once from standard input."""
    from heed.cli.common import input_lines

    given = [name for name in ("text", "prompt", "input") if getattr(args, name) is not None]
    if len(given) > 1:
        names = [{"text": "a prompt", "prompt": "--prompt", "input": "--input"}[name] for name in given]
        raise ValueError(f"give only one of {' and '.join(names)}")
    return partial(input_lines, args.input) if args.input else partial(iter, [args.text or args.prompt or ""])


def _options(args: argparse.Namespace) -> dict:
    options = {name: getattr(args, name) for name in DECODING if getattr(args, name) is not None}
    sampling = [name for name in SAMPLING if name in options]
    if args.greedy and args.beam:
        raise ValueError("give either --greedy or --beam, not both")
    if (args.greedy or args.beam) and sampling:
        option = "--" + sampling[0].removesuffix("_p" if sampling[0] == "typical_p" else "").replace("_", "-")
        raise ValueError(f"{option} is for sampling: leave it out, or leave out --greedy and --beam")
    if args.greedy or args.beam:
        options["sample"] = False
    stop = [own.replace("\\n", "\n") for own in args.stop]
    return options | {"length": args.length, "one_line": args.one_line, "code": args.code, "stop": stop}


def _say(unknown: Iterable[str], beyond: str | None) -> None:
    """What the user should know of the prompts, on standard error: unknown words, and whether they fit."""
    from heed.cli.common import errors

    notes = []
    if words := dict.fromkeys(unknown):
        notes.append(f"The model does not know {', '.join(words)}.")
    if beyond:
        notes.append(beyond)
    for note in notes:
        errors().print(note, style="dim", markup=False, highlight=False, soft_wrap=True)


def _generate(generator, prompts: Callable[[], Iterator[str]], args: argparse.Namespace, options: dict) -> None:
    from heed.bulk import command
    from heed.data.staged import Stages, chunks
    from heed.products.prompts import count_overflow, describe_overflow
    from heed.products.text_stages import Generation

    code, given = options["code"], {name: own for name, own in options.items() if name != "code"}
    generation = Generation(generator, count=args.count, batch_tokens=args.batch_tokens, **given)

    once, most = args.input == "-", generator.model.config.max_length

    def finish(prepared: tuple, found: list) -> bytes | command.Noted:
        texts, ids = prepared
        data = command.as_bytes(_texts(texts, generation.finish(ids, found), args))
        if not once:
            return data
        unknown = dict.fromkeys(word for text in texts for word in generator.unknown(text))
        return command.Noted(data, (list(unknown), count_overflow(ids, args.length, most)))

    size = command.chunk_size(args, CHUNK, args.input or [args.text or args.prompt or ""])

    def settings() -> dict:
        names = ("count", "scores", "batch_tokens")
        asked = {name: getattr(args, name) for name in names} | {"engine": generator.search_engine_name}
        return command.settings_of(generator, **options, **asked, chunk=size)

    stages = Stages(
        lambda chunk: (chunk.items, generation.prepare(chunk.items, code)),
        lambda prepared: generation.search(prepared[1]),
        finish,
    )
    notes = command.process(chunks(prompts(), size), stages, args, settings, [args.input] if args.input else [])
    notes = list(filter(None, notes))  # an earlier version noted nothing
    if once and notes:  # all of standard input is known only now
        counts = map(sum, zip(*(counted for _, counted in notes), strict=True))
        _say(chain.from_iterable(unknown for unknown, _ in notes), describe_overflow(counts, most))


def _texts(prompts: list[str], found: list, args: argparse.Namespace) -> Iterator[str]:
    """Each text with its prompt, followed by an empty line where it may have several lines itself."""
    for prompt, continuations in zip(prompts, found, strict=True):
        for continuation in continuations:
            score = f"{continuation.score:.4f}\t" if args.scores else ""
            text = prompt + continuation.text if prompt else continuation.text.lstrip(" ")
            text = f"{score}{text}".rstrip("\n")
            yield text if args.one_line or len(continuations) == 1 else f"{text}\n"


def _stream(generator, prompt: str, options: dict) -> int:
    """Print each part of the text as soon as it is generated."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    sys.stdout.write(prompt)
    for number, part in enumerate(generator.stream(prompt, **options)):
        sys.stdout.write(part.lstrip(" ") if not prompt and not number else part)
        sys.stdout.flush()
    sys.stdout.write("\n")
    return 0
