"""heed evaluate for speech recognizers: word and character error rates."""

import argparse
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any


def add_audio(parser: argparse.ArgumentParser) -> None:
    from heed.cli.speak import add_g2p
    from heed.cli.transcribe import add_search

    add_search(parser)
    group = parser.add_argument_group("recordings")
    group.add_argument(
        "--audio", nargs="+", metavar="FILE", help="tables of path and text, or folders (docs/guides/speech.md)"
    )
    add_g2p(group)
    group.add_argument("--split", default="test", help="for corpora with splits: test (default), train or all")


def evaluate(args: argparse.Namespace) -> int:
    from rich.console import Console

    from heed.cli.common import errors, open_product, write_lines
    from heed.cli.transcribe import open_language, search_options
    from heed.data.audio import manifests
    from heed.data.audio.prepare import computed
    from heed.evaluation.speech import score

    if not args.audio:
        raise ValueError(f"{args.system} is a speech recognizer: give recordings with their texts, --audio FILE")
    utterances = [own for name in args.audio for own in manifests.read(name, split=args.split)]
    recognizer = open_product(args, "transcribe", [args.system])
    references, began = [own.text for own in utterances], time.monotonic()
    frames = [computed(own, recognizer.sound)[0] for own in utterances]
    language = open_language(args, recognizer)
    found = recognizer.transcribe_frames(frames, recognizer.search(**search_options(args)), language)
    spent, seconds = time.monotonic() - began, sum(own.seconds for own in found)
    texts = [own.text for own in found]
    scores = score(texts, references, lowercase=args.lowercase, samples=args.samples)
    console = Console()
    _show(console, scores)
    translation = {}
    if recognizer.translates:
        from heed.evaluation.translation import score as score_translations

        own = score_translations(texts, [references], lowercase=args.lowercase)
        translation = {"bleu": asdict(own.bleu), "chrf": asdict(own.chrf)}
        for metric in own.bleu, own.chrf:
            console.print(f"{metric.name:<6}[bold]{metric.value:>7.2f}[/]  {metric.signature}", highlight=False)
    speed = f"{seconds / 60:.1f} minutes of audio in {spent:.1f} s, real-time factor {spent / seconds:.4f}"
    errors().print(f"[dim]{speed}[/]", highlight=False)
    if args.out:
        write_lines(texts, args.out)
    if args.sentences:
        _write_sentences(args.sentences, utterances, texts)
    if args.json:
        from heed.files import write_json

        facts = {
            "system": args.system,
            "scores": asdict(scores) | translation,
            "seconds": seconds,
            "real_time_factor": spent / seconds,
        }
        write_json(args.json, facts)
    return 0


def _show(console: Any, scores: Any) -> None:
    for name, own, unit in (("WER", scores.wer, "words"), ("CER", scores.cer, "characters")):
        parts = f"{own.substitutions:,} substitutions, {own.deletions:,} deletions, {own.insertions:,} insertions in {own.units:,} {unit}"
        interval = f"{own.low:.2f} to {own.high:.2f}"
        console.print(f"{name}  [bold]{own.rate:6.2f}[/] %  ({interval})  {parts}", highlight=False, soft_wrap=True)
    console.print(
        f"[dim]{scores.recordings:,} recordings, {scores.exact:.1f} % without errors; 95 % intervals, bootstrapped "
        "over recordings[/]",
        highlight=False, soft_wrap=True,
    )  # fmt: skip
    for expected, found, count in scores.confused[:10]:
        console.print(f"{count:>5}  {expected or '(nothing)'} → {found or '(nothing)'}", highlight=False, markup=False)


def _write_sentences(path: Path, utterances: list[Any], texts: list[str]) -> None:
    """A table of recordings, worst first, with the errors marked: [expected→found]."""
    from heed.evaluation.speech import align
    from heed.files import write_text

    rows = []
    for own, text in zip(utterances, texts, strict=True):
        edits = align(own.text.split(), text.split())
        marked = " ".join(e.found if e.right else f"[{e.expected or ''}→{e.found or ''}]" for e in edits)
        rows.append((sum(not e.right for e in edits), own.name, own.text, text, marked))
    rows.sort(key=lambda row: -row[0])
    lines = ["errors\trecording\treference\trecognized\tdifference", *("\t".join(map(str, row)) for row in rows)]
    write_text(path, "".join(f"{line}\n" for line in lines))
