"""What verbs do with a language model, which knows no source: evaluate, score and look at a text."""

import argparse

NOT_WITH_TEXT = ("source", "reference", "sentences", "out", "gold", "rouge", "lowercase", "beam", "length_penalty")


def evaluate(args: argparse.Namespace) -> int:
    """Perplexity, a line of how it was reached for each model."""
    from rich.console import Console

    from heed.cli.common import open_product, read_lines
    from heed.evaluation.perplexity import measure_perplexity

    for name in NOT_WITH_TEXT:
        if getattr(args, name):
            raise ValueError(f"--{name.replace('_', '-')} is for translations: it does not go with --text")
    lines, console, found = read_lines(args.text), Console(), {}
    for system in [args.system, *([args.against] if args.against else [])]:
        generator = open_product(args, "generate", [system])
        found[system] = measure_perplexity(generator.model, generator.subwords, lines, args.rows)
        _show(console, system if args.against else "", found[system])
    one = found[args.system]
    console.print(
        f"[dim]{one.lines:,} lines, {one.words:,} words with the ends of lines, {one.bytes:,} bytes[/]", highlight=False
    )
    if args.json:
        _write_json(args, found)
    return 0


def score(args: argparse.Namespace) -> int:
    """The log probability of each line."""
    import math

    from heed.cli.common import errors, open_product, read_lines, score_line, write_lines

    if args.source or args.target:
        raise ValueError(
            "--text is what a language model scores, --source and --target what a translator does: not both"
        )
    if len(args.folder) > 1:
        raise ValueError(f"{','.join(args.folder)} are several: a language model scores alone")
    scores = open_product(args, "generate").score(read_lines(args.text))
    write_lines((score_line(one, args.token_scores) for one in scores), args.out)
    tokens, total = sum(len(one.tokens) for one in scores), sum(one.logp for one in scores)
    told = (
        f"{len(scores):,} lines, each by itself, {tokens:,} tokens, perplexity {math.exp(-total / max(tokens, 1)):.3f}"
    )
    errors().print(f"[dim]{told}[/]", highlight=False)
    return 0


def look(args: argparse.Namespace) -> int:
    """How surprising each token is, as a page, a picture or data."""
    from heed.cli.common import errors, open_product
    from heed.lab.fonts import describe_missing
    from heed.lab.surprisal import draw

    for name in ("target", "layer", "head", "beam"):
        if getattr(args, name) is not None:
            raise ValueError(
                f"--{name} is for translators: of a language model, heed shows what each word's surprise is"
            )
    generator = open_product(args, "generate")
    c = generator.model.config
    found = generator.look(args.text, name=f"{args.folder[0]} · {c.cell}, {c.layers} layers of {c.hidden}")
    if missing := draw(found, args.out):
        errors().print(describe_missing(missing), highlight=False, soft_wrap=True)
    errors().print(
        f"[dim]{found.bits:.2f} bits a token, perplexity {2**found.bits:.1f}: {args.out}[/]", highlight=False
    )
    return 0


def _show(console, name: str, found) -> None:
    what = found.unit.removesuffix("s")
    rows = [(f"perplexity a {what}", f"{found.per_token:.2f}", found.signature)]
    if found.tokens != found.words:
        label = "perplexity a word" if what == "subword" else "perplexity between spaces"
        rows.append((label, f"{found.per_word:.2f}", "words as spaces part them; the end of a line counts one"))
    rows.append(("bits a byte", f"{found.bits_per_byte:.4f}", "of UTF-8, line feeds included"))
    if name:
        console.print(f"[bold]{name}[/]", highlight=False, soft_wrap=True)
    for label, value, note in rows:
        console.print(f"{label:<26}[bold]{value:>10}[/]  {note}", highlight=False, soft_wrap=True)
    if found.unknown:
        share = 100 * found.unknown / found.tokens
        told = f"{found.unknown:,} tokens ({share:.1f} %) are the unknown word, which is foreseen as one"
        console.print(f"[dim]{told}[/]", highlight=False, soft_wrap=True)


def _write_json(args: argparse.Namespace, found: dict) -> None:
    import dataclasses

    from heed.models.folder import write_json

    names = ("per_token", "per_word", "bits_per_byte", "signature")
    each = {
        system: {**dataclasses.asdict(one), **{name: getattr(one, name) for name in names}}
        for system, one in found.items()
    }
    facts = {"system": args.system, "text": args.text, "perplexity": each[args.system]}
    if args.against:
        facts |= {"against": args.against, "perplexity_against": each[args.against]}
    write_json(args.json, facts)
