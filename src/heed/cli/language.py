"""heed evaluate, score and look for language models, which have a text but no source."""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from itertools import groupby

NOT_WITH_TEXT = ("source", "reference", "sentences", "out", "gold", "rouge", "lowercase", "beam", "length_penalty")

CONTEXT = ("window", "stride", "memory", "code", "document")


def add_context(parser: argparse.ArgumentParser) -> None:
    """The options of heed evaluate --text: the context of each token."""
    group = parser.add_argument_group("the context of each token of --text, and the windows of --squad")
    option = group.add_argument
    option("--rows", type=int, default=1, help="number of parts read in parallel with carried state; 1 is exact")
    line = "tokens read at once (default: as in training); with --squad, those of a question and its context"
    option("--window", type=int, metavar="N", help=line)
    option(
        "--stride",
        type=int,
        metavar="N",
        help="a window begins every N tokens; 1: every token sees a full window (slow). With --squad: context tokens that two windows share",
    )
    option("--memory", type=int, metavar="N", help="memory length in tokens (Transformer-XL; default: as in training)")
    option("--code", help="the control code that the text begins with")
    option("--document", choices=("file", "paragraph", "line"), help="read each document separately")


def check_context(args: argparse.Namespace, used: Sequence[str] = ()) -> None:
    """Refuse options for --text without --text, but for those that are `used`."""
    rest = [name for name in CONTEXT if name not in used]
    given = [name for name in rest if getattr(args, name) is not None] + ["rows"] * (args.rows != 1)
    if given:
        raise ValueError(f"--{given[0]} is for language models: use it with --text")


def refuse_for_text(args: argparse.Namespace, context: bool = False) -> None:
    """Refuse options that cannot be combined with --text; with `context` also those for causal language models."""
    from heed.cli.common import RERANKING

    given = [name for name in RERANKING if getattr(args, name) is not None]
    if given:
        off = getattr(args, given[0]) is False
        flag = given[0].replace("avoid_", "allow-" if off else "avoid-").replace("_", "-")
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
    from heed.evaluation.classification import intervals
    from heed.evaluation.line_counts import measure_lines
    from heed.evaluation.perplexity import Context

    refuse_for_text(args)
    systems = [args.system, *([args.against] if args.against else [])]
    check_product(args, systems, "generate", "--source FILE and --reference FILE")
    lines, console, results, ranges = read_lines(args.text), Console(), {}, {}
    seen = show_seen_lines(systems, lines)
    for system in systems:
        generator = open_product(args, "generate", [system])
        context = Context(**{name: getattr(args, name) for name in CONTEXT}, rows=args.rows)
        results[system] = generator.perplexity(lines, context)
        by_line = results[system].by_line
        ranges[system] = intervals(measure_lines, by_line, by_line, args.samples)
        _show(console, system if args.against else "", results[system], ranges[system])
    compared = _compared(*results.values(), args.samples) if len(results) > 1 else {}
    _show_differences(console, compared)
    first = results[args.system]
    counts = f"{first.lines:,} lines, {first.words:,} words including line ends, {first.bytes:,} bytes; 95 % intervals from {args.samples:,} bootstrap samples of lines"
    console.print(f"[dim]{counts}{'; p of a paired bootstrap' if compared else ''}[/]", highlight=False, soft_wrap=True)
    if args.json:
        _write_json(args, results, ranges, seen, compared)
    return 0


def score(args: argparse.Namespace) -> int:
    """The log probability of each line."""
    from heed.bulk import command
    from heed.cli.common import check_product, open_product, stream_lines
    from heed.cli.score_lines import CHUNK, report, scored
    from heed.data.staged import Stages, chunks
    from heed.products.product import as_texts
    from heed.products.text_stages import Scoring

    if args.source or args.target:
        raise ValueError(
            "--text is for language models, --source and --target are for translation models: give one or the other"
        )
    check_product(args, args.folder, "generate", "--source FILE and --target FILE")
    generator = open_product(args, "generate")
    if args.codes:
        return _attribute(args, generator)
    if args.document != "line":
        raise ValueError("--document needs --codes: without it, each line is scored separately")
    generator = generator.with_code(args.code) if args.code else generator

    size = command.chunk_size(args, CHUNK, args.text)

    def settings() -> dict:
        given = {"token_scores": args.token_scores, "code": args.code, "engine": generator.engine_name}
        return command.settings_of(generator, **given, chunk=size)

    scoring = Scoring(generator)
    stages = Stages(
        lambda chunk: scoring.prepare(as_texts(chunk.items)),
        scoring.score,
        lambda lines, found: scored(scoring.finish(lines, found), args.token_scores),
    )
    source = chunks(stream_lines(args.text), size)
    report(command.process(source, stages, args, settings, [args.text]), "lines, each scored separately")
    return 0


def _attribute(args: argparse.Namespace, generator) -> int:
    """Each line or paragraph with the control code that it is likeliest under, and its log probability under each."""
    from collections import Counter

    from heed.bulk import command
    from heed.cli.common import errors, stream_lines
    from heed.cli.score_lines import CHUNK
    from heed.data.staged import Stages, chunks

    if args.code or args.token_scores:
        raise ValueError(
            f"--{'code' if args.code else 'token-scores'} cannot be combined with --codes, which tries them all"
        )
    texts = stream_lines(args.text)

    def finish(chunk, found: list) -> command.Noted:
        rows = ("\t".join([one.code, *(f"{logp:.4f}" for logp in one.logp.values())]) for one in found)
        return command.Noted(command.as_bytes(rows), Counter(one.code for one in found))

    size = command.chunk_size(args, CHUNK, args.text)
    source = chunks(_paragraphs(texts) if args.document == "paragraph" else texts, size)
    stages = Stages(lambda chunk: chunk, lambda chunk: generator.attribute(chunk.items), finish)
    settings = partial(command.settings_of, generator, codes=generator.codes, document=args.document, chunk=size)
    head = command.as_bytes(["\t".join(["code", *generator.codes])])
    counted = sum(map(Counter, command.process(source, stages, args, settings, [args.text], head=head)), Counter())
    counts = ", ".join(f"{code} {count:,}" for code, count in counted.most_common())
    errors().print(f"[dim]{counted.total():,} {args.document}s: {counts}[/]", highlight=False, soft_wrap=True)
    return 0


def _paragraphs(lines: Iterable[str]) -> Iterator[str]:
    return ("\n".join(own) for blank, own in groupby(lines, lambda line: not line.strip()) if not blank)


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


def _labels(result) -> dict[str, tuple[str, int, str]]:
    """What is shown: by the names of scores, labels, decimals and notes."""
    unit = result.unit.removesuffix("s")
    between = "perplexity between spaces" if unit == "word" else "perplexity per word"
    word = {"per_word": (between, 2, "words between spaces; the end of a line counts as one")}
    return {
        "per_token": (f"perplexity per {unit}", 2, result.signature),
        **(word if result.tokens != result.words else {}),
        "bits_per_character": ("bits per character", 4, "line feeds included"),
        "bits_per_byte": ("bits per byte", 4, "of UTF-8, line feeds included"),
    }


def _show(console, name: str, result, found: dict) -> None:
    if name:
        console.print(f"[bold]{name}[/]", highlight=False, soft_wrap=True)
    for score, (label, digits, note) in _labels(result).items():
        value, low, high = (f"{number:.{digits}f}" for number in found[score])
        line = f"{label:<26}[bold]{value:>10}[/]  {low} to {high}  [dim]{note}[/]"
        console.print(line, highlight=False, soft_wrap=True)
    if result.unknown:
        share = 100 * result.unknown / result.tokens
        note = f"{result.unknown:,} tokens ({share:.1f} %) are unknown, and all predicted as a single token"
        console.print(f"[dim]{note}[/]", highlight=False, soft_wrap=True)


def _compared(first, second, samples: int) -> dict:
    """The scores of the second model minus those of the first; those per token only if both have the same tokens."""
    from heed.evaluation.classification import differences
    from heed.evaluation.line_counts import measure_lines

    found = differences(measure_lines, first.by_line, second.by_line, first.by_line, samples)
    if (first.by_line[:, 1] != second.by_line[:, 1]).any():
        found.pop("per_token")
    return {name: (_labels(first)[name], own) for name, own in found.items() if name in _labels(first)}


def _show_differences(console, compared: dict) -> None:
    if compared:
        console.print("[bold]difference[/]", highlight=False)
    for (label, digits, _), own in compared.values():
        console.print(f"{label:<26}{own.value:>+10.{digits}f}  p = {own.p_value:.4f}", highlight=False, soft_wrap=True)


def _write_json(args: argparse.Namespace, results: dict, ranges: dict, seen: dict, compared: dict) -> None:
    from heed.files import write_json

    def perplexity(system: str) -> dict:
        own = results[system]
        names = ("per_token", "per_word", "bits_per_character", "bits_per_byte", "signature")
        facts = {name: value for name, value in asdict(own).items() if name != "by_line"}
        facts["intervals"] = {name: [value.low, value.high] for name, value in ranges[system].items()}
        return facts | {name: getattr(own, name) for name in names}

    facts = {"system": args.system, "text": args.text, "perplexity": perplexity(args.system), "trained_on": seen}
    if args.against:
        facts |= {"against": args.against, "perplexity_against": perplexity(args.against)}
        facts["differences"] = {name: own._asdict() for name, (_, own) in compared.items()}
    write_json(args.json, facts)
