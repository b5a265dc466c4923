"""heed fill, and heed evaluate with a masked language model"""

import argparse
import json
from dataclasses import asdict

EXAMPLES = """\
examples:
  heed fill runs/bert "나는 [MASK]을 읽어요."
  heed fill runs/bert "I [MASK] a [MASK]." --top 10
  heed fill runs/roberta --input texts.txt --json > words.jsonl
  heed fill runs/roberta --input texts.txt --json --out words.jsonl --resume   # after a crash, from where it stopped
  heed fill google-bert/bert-base-uncased "Paris is the [MASK] of France."

[MASK] and <mask> are interchangeable for every model. The first output line of each text is the text with the most
likely words; then comes a line for each mask, with the most likely words and their probabilities. Several masks are
filled independently.
"""


def add(parser: argparse.ArgumentParser) -> None:
    from heed.bulk.command import add_resume
    from heed.cli.common import add_device

    parser.add_argument("folder", help="a run, a model folder, or a name on the hub")
    parser.add_argument("text", nargs="*", help="texts with [MASK] (default: lines of standard input)")
    parser.add_argument("--input", metavar="FILE", help="read lines from a file")
    parser.add_argument("--top", type=int, default=5, metavar="K", help="number of words per mask (default: 5)")
    parser.add_argument("--json", action="store_true", help="print JSON, one object per text")
    parser.add_argument("--out", metavar="FILE", help="write to a file")
    add_resume(parser)
    parser.add_argument("--batch-tokens", type=int, default=4096, help="maximum number of subwords per batch")
    add_device(parser)


def run(args: argparse.Namespace) -> int:
    from heed.bulk import command
    from heed.cli.common import open_product, stream_lines
    from heed.data.staged import Stages, chunks
    from heed.products.product import as_texts
    from heed.products.text_batches import CHUNK

    if args.text and args.input:
        raise ValueError("give either texts or --input, not both")
    command.check_resume(args, bool(args.input))
    filler = open_product(args, "fill")

    def finish(prepared: tuple, found: list) -> bytes:
        filled = filler.finish(*prepared, found)
        return command.as_bytes(line for one in filled for line in _lines(one, args.json))

    size = command.chunk_size(args, CHUNK, args.text or args.input)

    def settings() -> dict:
        return command.settings_of(filler, top=args.top, json=args.json, batch_tokens=args.batch_tokens, chunk=size)

    stages = Stages(
        lambda chunk: (chunk.items, filler.read(as_texts(chunk.items), chunk.start)),
        lambda prepared: filler.guess(prepared[1], args.top, args.batch_tokens),
        finish,
        numbered=True,
    )
    source = chunks(args.text or stream_lines(args.input), size)
    command.process(source, stages, args, settings, [args.input] if args.input else [])
    return 0


def _lines(one, as_json: bool) -> list[str]:
    if as_json:
        return [json.dumps(asdict(one), ensure_ascii=False)]
    masks = ("  ".join(f"{guess.word} {guess.probability:.4f}" for guess in own) for own in one.masks)
    return [one.filled, *(f"  {line}" for line in masks)]


def evaluate(args: argparse.Namespace) -> int:
    """The masked-word scores of one or two models."""
    from rich.console import Console

    from heed.cli.common import open_product, read_lines
    from heed.cli.language import refuse_for_text
    from heed.cli.seen import show_seen_lines
    from heed.files import write_json

    if not args.text:
        raise ValueError(f"{args.system} is a masked language model: give a text to evaluate it on with --text FILE")
    refuse_for_text(args, context=True)
    systems = [args.system, *([args.against] if args.against else [])]
    lines, console, results = read_lines(args.text), Console(highlight=False, soft_wrap=True), []
    seen = show_seen_lines(systems, lines)
    for system in systems:
        filler = open_product(args, "fill", [system])
        results.append(filler.evaluate(lines, samples=args.samples))
        _show(console, system if args.against else "", results[-1], args.samples)
    compared = results[0].against(results[1], args.samples) if args.against else None
    if args.against:
        _show_differences(console, compared)
    if args.json:
        facts = {"system": args.system, "text": args.text, "masked": _facts(results[0]), "trained_on": seen}
        if args.against:
            facts |= {"against": args.against, "masked_against": _facts(results[1])}
        if compared:
            facts["differences"] = {name: own._asdict() for name, own in compared.items()}
        write_json(args.json, facts)
    return 0


def _facts(result) -> dict:
    facts = {name: getattr(result, name) for name in ("signature", "rows", "hidden")}
    return facts | {"scores": {name: own._asdict() for name, own in result.scores.items()}}


def _metrics() -> dict:
    from heed.tasks import TASKS

    return {metric.name: metric for task in ("replaced-tokens", "masked") for metric in TASKS[task].metrics}


def _show(console, name: str, result, samples: int) -> None:
    metrics = _metrics()
    if name:
        console.print(f"[bold]{name}[/]")
    for metric, value in result.scores.items():
        label, digits = metrics[metric].label, metrics[metric].decimals
        line = f"{label:<24}[bold]{value.value:>10.{digits}f}[/]  {value.low:.{digits}f} to {value.high:.{digits}f}"
        console.print(line)
    counts = f"{result.hidden:,} hidden tokens in {result.rows:,} rows; {result.signature}; 95 % intervals from {samples:,} bootstrap samples of rows"
    console.print(f"[dim]{counts}[/]")


def _show_differences(console, compared: dict | None) -> None:
    """The second model minus the first."""
    if compared is None:
        line = "no p-values: the two models do not read the same masked tokens (other vocabulary or settings)"
        console.print(f"[dim]{line}[/]")
        return
    console.print("[bold]difference[/]")
    for metric, own in compared.items():
        label, digits = _metrics()[metric].label, _metrics()[metric].decimals
        console.print(f"{label:<24}{own.value:>+10.{digits}f}  p = {own.p_value:.4f}")
    console.print("[dim]the second model minus the first; p of a paired bootstrap[/]")
