"""heed evaluate, score and look for language models, which have a text but no source."""

import argparse
from dataclasses import asdict

NOT_WITH_TEXT = ("source", "reference", "sentences", "out", "gold", "rouge", "lowercase", "beam", "length_penalty")

CONTEXT = ("window", "stride", "memory", "code", "document")


def add_context(parser: argparse.ArgumentParser) -> None:
    """The options of heed evaluate --text: the context of each token."""
    group = parser.add_argument_group("the context of each token of --text")
    option = group.add_argument
    option("--rows", type=int, default=1, help="number of parts read in parallel with carried state; 1 is exact")
    option("--window", type=int, metavar="N", help="tokens read at once (default: as in training)")
    option(
        "--stride",
        type=int,
        metavar="N",
        help="a window begins every N tokens; 1: every token sees a full window (slow)",
    )
    option("--memory", type=int, metavar="N", help="memory length in tokens (Transformer-XL; default: as in training)")
    option("--code", help="the control code that the text begins with")
    option("--document", choices=("file", "paragraph", "line"), help="read each document separately")


def check_context(args: argparse.Namespace) -> None:
    """Refuse options for --text without --text."""
    given = [name for name in CONTEXT if getattr(args, name) is not None] + ["rows"] * (args.rows != 1)
    if given:
        raise ValueError(f"--{given[0]} is for language models: use it with --text")


def refuse_for_text(args: argparse.Namespace, context: bool = False) -> None:
    """Refuse options that cannot be combined with --text; with `context` also those for causal language models."""
    from heed.cli.common import RERANKING

    given = [name for name in RERANKING if getattr(args, name) is not None]
    if given:
        flag = given[0].replace("avoid_", "allow-").replace("_", "-")
        raise ValueError(f"--{flag} is for translations: it cannot be combined with --text")
    for name in NOT_WITH_TEXT:
        if getattr(args, name):
            raise ValueError(f"--{name.replace('_', '-')} is for translations: it cannot be combined with --text")
    given = [name for name in CONTEXT if context and getattr(args, name) is not None]
    if given or (context and args.rows != 1):
        raise ValueError(f"--{(given or ['rows'])[0]} is for models that continue a text: leave it out")


def evaluate(args: argparse.Namespace) -> int:
    """The perplexity of one or two models, and how it was computed."""
    from rich.console import Console

    from heed.cli.common import check_product, open_product, read_lines
    from heed.cli.seen import show_seen_lines
    from heed.evaluation.perplexity import Context

    refuse_for_text(args)
    systems = [args.system, *([args.against] if args.against else [])]
    check_product(args, systems, "generate", "--source FILE and --reference FILE")
    lines, console, results = read_lines(args.text), Console(), {}
    seen = show_seen_lines(systems, lines)
    for system in systems:
        generator = open_product(args, "generate", [system])
        context = Context(**{name: getattr(args, name) for name in CONTEXT}, rows=args.rows)
        results[system] = generator.perplexity(lines, context)
        _show(console, system if args.against else "", results[system])
    first = results[args.system]
    counts = f"{first.lines:,} lines, {first.words:,} words including line ends, {first.bytes:,} bytes"
    console.print(f"[dim]{counts}[/]", highlight=False)
    if args.json:
        _write_json(args, results, seen)
    return 0


def score(args: argparse.Namespace) -> int:
    """The log probability of each line."""
    from heed.cli.common import check_product, open_product, read_lines, write_scores

    if args.source or args.target:
        raise ValueError(
            "--text is for language models, --source and --target are for translation models: give one or the other"
        )
    check_product(args, args.folder, "generate", "--source FILE and --target FILE")
    generator, lines = open_product(args, "generate"), read_lines(args.text)
    if args.codes:
        return _attribute(args, generator, lines)
    if args.document != "line":
        raise ValueError("--document needs --codes: without it, each line is scored separately")
    generator = generator.with_code(args.code) if args.code else generator
    write_scores(args, generator.score(lines), "lines, each scored separately")
    return 0


def _attribute(args: argparse.Namespace, generator, lines: list[str]) -> int:
    """Each line or paragraph with its most likely control code, and its log probability under each code."""
    from collections import Counter
    from itertools import groupby

    from heed.cli.common import errors, write_lines

    if args.code or args.token_scores:
        raise ValueError(
            f"--{'code' if args.code else 'token-scores'} cannot be combined with --codes, which tries them all"
        )
    if args.document == "paragraph":
        lines = ["\n".join(own) for blank, own in groupby(lines, lambda line: not line.strip()) if not blank]
    found = generator.attribute(lines)
    head = "\t".join(["code", *generator.codes])
    write_lines(
        [head, *("\t".join([one.code, *(f"{logp:.4f}" for logp in one.logp.values())]) for one in found)], args.out
    )
    counts = ", ".join(f"{code} {count:,}" for code, count in Counter(one.code for one in found).most_common())
    errors().print(f"[dim]{len(found):,} {args.document}s: {counts}[/]", highlight=False, soft_wrap=True)
    return 0


def look(args: argparse.Namespace, generator) -> int:
    """The surprisal of each token, as a page, an image or data."""
    from heed.cli.common import errors, model_shape
    from heed.lab.fonts import describe_missing
    from heed.lab.surprisal import draw

    for name in ("target", "layer", "head", "beam"):
        if getattr(args, name) is not None:
            raise ValueError(
                f"--{name} is for translation models: for a language model, heed look shows the surprisal of each token"
            )
    c = generator.model.config
    surprisal = generator.look(args.text, name=f"{args.folder[0]} · {model_shape(c)}")
    if missing := draw(surprisal, args.out):
        errors().print(describe_missing(missing), highlight=False, soft_wrap=True)
    bits = surprisal.bits
    errors().print(f"[dim]{bits:.2f} bits per token, perplexity {2**bits:.1f}: {args.out}[/]", highlight=False)
    return 0


def _show(console, name: str, result) -> None:
    unit = result.unit.removesuffix("s")
    rows = [(f"perplexity a {unit}", f"{result.per_token:.2f}", result.signature)]
    if result.tokens != result.words:
        label = "perplexity between spaces" if unit == "word" else "perplexity a word"
        rows.append((label, f"{result.per_word:.2f}", "words between spaces; the end of a line counts as one"))
    rows.append(("bits a character", f"{result.bits_per_character:.4f}", "line feeds included"))
    rows.append(("bits a byte", f"{result.bits_per_byte:.4f}", "of UTF-8, line feeds included"))
    if name:
        console.print(f"[bold]{name}[/]", highlight=False, soft_wrap=True)
    for label, value, note in rows:
        console.print(f"{label:<26}[bold]{value:>10}[/]  {note}", highlight=False, soft_wrap=True)
    if result.unknown:
        share = 100 * result.unknown / result.tokens
        note = f"{result.unknown:,} tokens ({share:.1f} %) are unknown, and all predicted as a single token"
        console.print(f"[dim]{note}[/]", highlight=False, soft_wrap=True)


def _write_json(args: argparse.Namespace, results: dict, seen: dict) -> None:
    from heed.files import write_json

    def perplexity(system: str) -> dict:
        names = ("per_token", "per_word", "bits_per_character", "bits_per_byte", "signature")
        return asdict(results[system]) | {name: getattr(results[system], name) for name in names}

    facts = {"system": args.system, "text": args.text, "perplexity": perplexity(args.system), "trained_on": seen}
    if args.against:
        facts |= {"against": args.against, "perplexity_against": perplexity(args.against)}
    write_json(args.json, facts)
