"""heed noise"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from itertools import chain

EXAMPLES = """\
examples:
  heed noise "투빅아, 나는 너를 많이 사랑해. 그래서 매일 편지를 써."
  heed noise "The cat sat on the mat. It purred. Then it slept." --kind infill --rate 0.5 --seed 7
  heed noise --model runs/bart "Subwords of a model are masked instead of words."
  heed noise --json < texts.txt > corrupted.jsonl

kinds: mask, delete, infill, permute and rotate come from BART, gaps (gap sentences) from Pegasus, and bert masks
80/10/10 like BERT. The default is all of them. Each text (a line of standard input) may have several sentences.
"""
STYLES = {
    "deleted": "strike red",
    "masked": "bold yellow",
    "inserted": "bold green",
    "moved": "bold cyan",
    "replaced": "bold magenta",
    "chosen": "underline",
}
PLAIN = {
    "deleted": "[-{was}-]",
    "masked": "[{was} → {now}]",
    "inserted": "[+{now}+]",
    "moved": "[~{now}~]",
    "replaced": "[{was} ⇒ {now}]",
    "chosen": "[={now}=]",
}
MEANING = {"chosen": "unchanged, but to be predicted"}


def add(parser: argparse.ArgumentParser) -> None:
    from heed.data.corruption import CORRUPTIONS

    parser.add_argument("text", nargs="*", help="texts (default: lines of standard input)")
    parser.add_argument(
        "--kind",
        nargs="+",
        choices=CORRUPTIONS,
        metavar="KIND",
        help=f"which corruptions: {', '.join(CORRUPTIONS)} (default: all)",
    )
    parser.add_argument(
        "--rate", type=float, metavar="SHARE", help="share of tokens or sentences to corrupt (default: 0.3; bert: 0.15)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="random seed; the same seed gives the same corruption (default: 0)"
    )
    parser.add_argument("--model", metavar="FOLDER", help="corrupt the subwords of this model instead of words")
    parser.add_argument("--json", action="store_true", help="print JSON, one object per text and kind")


def run(args: argparse.Namespace) -> int:
    from heed.cli.common import input_lines
    from heed.data.corruption import CORRUPTIONS, corrupt

    kinds = list(dict.fromkeys(args.kind or CORRUPTIONS))
    if args.seed < 0:
        raise ValueError(f"--seed is {args.seed}; it must be 0 or more")
    if args.rate is not None and all(CORRUPTIONS[kind].rate is None for kind in kinds):
        raise ValueError(f"--rate does not apply to {' and '.join(kinds)}: leave it out")
    lines = (line for line in args.text or input_lines(None) if line.strip())
    if (first := next(lines, None)) is None:
        raise ValueError("no text given: pass one, or lines on standard input")
    for text in _tokenize(chain([first], lines), args.model):
        found = {kind: corrupt(kind, text, args.seed, args.rate) for kind in kinds}
        if args.json:
            for kind, changes in found.items():
                print(json.dumps(_facts(kind, changes, args, text), ensure_ascii=False))
        else:
            _show(found, text)
        sys.stdout.flush()
    return 0


def _tokenize(texts: Iterable[str], folder: str | None) -> Iterator:
    from heed.data.corruption import Text

    if folder is None:
        yield from map(Text.of_words, texts)
        return
    from heed.data.masking import ordinary_ids
    from heed.loading import open_package

    vocabulary = open_package(folder).vocabularies[0]
    words = {number: vocabulary.pieces([number])[0] for number in ordinary_ids(vocabulary).nonzero()[0].tolist()}
    shown = {**words, vocabulary.special.unknown: "<unk>"}
    for text in texts:
        (ids,) = vocabulary.encode([text])
        yield Text([shown.get(i, "?") for i in ids], ids, words)


def _facts(kind: str, changes, args: argparse.Namespace, text) -> dict:
    from dataclasses import asdict

    from heed.data.corruption import CORRUPTIONS, source_of

    usual = CORRUPTIONS[kind].rate
    rate = usual if args.rate is None or usual is None else args.rate
    facts = {"kind": kind, "title": CORRUPTIONS[kind].title, "seed": args.seed, "rate": rate}
    return {**facts, "text": text.tokens, "source": source_of(changes), "changes": [asdict(own) for own in changes]}


def _show(found, text) -> None:
    """Print the corrupted text, and the same with the changes marked."""
    from rich.console import Console
    from rich.text import Text as Line

    from heed.data.corruption import CORRUPTIONS, source_of

    console, seen = Console(highlight=False, soft_wrap=True), dict.fromkeys(STYLES, False)
    coloured = console.is_terminal and not console.no_color
    console.print(" ".join(text.tokens), markup=False)
    for kind, changes in found.items():
        console.print()
        console.print(Line(CORRUPTIONS[kind].title, style="bold"))
        if all(change.kind == "kept" for change in changes):
            console.print("  nothing changed" + _reason(kind, text), markup=False)
            continue
        console.print("  " + " ".join(source_of(changes)), markup=False)
        marked = Line("  ")
        for change in _joined(changes):
            seen[change.kind] = True
            marked.append_text(_coloured(change) if coloured else Line(_plain(change))).append(" ")
        marked.rstrip()
        console.print(marked)
    shown = [kind for kind in STYLES if seen.get(kind)]
    if shown:
        marks = [
            Line(MEANING.get(kind, kind), style=STYLES[kind]) if coloured else Line(_legend(kind)) for kind in shown
        ]
        console.print()
        console.print(Line(", ").join(marks))


def _joined(changes):
    """Adjacent moved or deleted tokens as one change, which is easier to read."""
    from heed.data.corruption import Change

    found = []
    for change in changes:
        before = found[-1] if found else change
        if found and change.kind == before.kind and change.kind in ("moved", "deleted"):
            now = f"{before.now} {change.now}".strip()
            found[-1] = Change(change.kind, (*before.was, *change.was), now)
        else:
            found.append(change)
    return found


def _reason(kind: str, text) -> str:
    from heed.data.noise import sentence_ends, sentences

    alone = len(sentences(range(len(text.tokens)), sentence_ends(text.tokens))) < 2
    return ": the text has one sentence" if alone and kind in ("permute", "gaps") else " with this seed and rate"


def _coloured(change):
    from rich.text import Text as Line

    if change.kind == "kept":
        return Line(change.now)
    line = Line(change.now or " ".join(change.was), style=STYLES[change.kind])
    if change.kind in ("masked", "replaced"):
        line.append(" ").append(" ".join(change.was), style="strike dim not bold")
    return line


def _plain(change) -> str:
    return PLAIN.get(change.kind, "{now}").format(was=" ".join(change.was), now=change.now)


def _legend(kind: str) -> str:
    return f"{PLAIN[kind].format(was='word', now='word' if kind in ('moved', 'chosen') else '…')} {MEANING.get(kind, kind)}"
