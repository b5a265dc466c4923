"""heed tag"""

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

EXAMPLES = """\
examples:
  heed tag runs/names < texts.txt                        # each line with its entities in brackets
  heed tag runs/names "Ann lives in Seoul." --format json     # with the character offsets of each entity
  heed tag runs/names --conll test.conll --format conll  # pre-tokenized sentences: one word and label per line
  heed tag runs/names --input texts.txt --format table --out entities.tsv
  heed tag runs/names --input texts.txt --format table --out entities.tsv --resume   # after a crash, from where it stopped
  heed tag runs/electra "Ann drinks a book."             # a discriminator: the words it predicts were replaced
  heed tag dslim/bert-base-NER "Ann lives in Seoul."
  heed train recipes/tagging.toml --out runs/names
"""
FORMATS = ("inline", "conll", "json", "table")
HEADER = ("text", "type", "start", "end", "probability", "entity")


def add(parser: argparse.ArgumentParser) -> None:
    from heed.bulk.command import add_resume
    from heed.cli.common import add_device

    option = parser.add_argument
    option("folder", help="a run, a model folder, or a name on the hub")
    option("text", nargs="*", help="texts (default: lines of standard input)")
    option("--input", metavar="FILE", help="read lines from a file")
    add_conll(parser, "read tokenized sentences from a CoNLL file")
    option("--format", choices=FORMATS, default="inline", help="inline (default), conll, JSON lines, or a table")
    option("--pieces", action="store_true", help="label every subword instead of every word")
    option("--out", metavar="FILE", help="write to a file")
    add_resume(parser, "--input or --conll")
    option("--batch-tokens", type=int, default=4096, help="maximum number of subwords per batch")
    add_device(parser)


def add_conll(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--conll", metavar="FILE", help=what)
    line = "the column of the {}, counted from 1, or from -1 at the end (default: as in training)"
    for name in ("word", "label"):
        parser.add_argument(f"--{name}-column", type=int, metavar="N", help=line.format(name))


def column(args: argparse.Namespace, product: Any, name: str) -> int:
    """The column given, else the one used in training, else the first or the last."""
    given = getattr(args, f"{name}_column")
    if given == 0:
        raise ValueError(f"--{name}-column is 0; columns are counted from 1, or from -1 at the end")
    return given or product.facts.get("columns", {}).get(name) or {"word": 1, "label": -1}[name]


def run(args: argparse.Namespace) -> int:
    from heed.bulk.command import check_resume
    from heed.cli.common import errors, open_product, stream_lines
    from heed.data import conll

    if bool(args.text) + bool(args.input) + bool(args.conll) > 1:
        raise ValueError("give only one of texts, --input and --conll")
    if args.conll and args.pieces:
        raise ValueError("--pieces labels the subwords of plain text and cannot be combined with --conll")
    check_resume(args, bool(args.input or args.conll), "--input FILE or --conll FILE")
    tagger, skipped = open_product(args, "tag"), Counter()
    between = _separator(tagger.labels)
    if args.conll:
        path, words = Path(args.conll), column(args, tagger, "word")
        for one in conll.stream(path, words, None, skipped):  # once in advance: errors appear before any output
            between = between if between == "\t" else _separator(one.words)
        sentences = (one.words for one in conll.stream(path, words, None))
        notes = _tag(tagger, sentences, tagger.read_words, args, {"word": words}, between)
    else:
        texts, read = args.text or stream_lines(args.input), partial(tagger.read, pieces=args.pieces)
        notes = _tag(tagger, texts, read, args, {"pieces": args.pieces}, between)
    total = map(sum, zip(*notes, strict=True)) if notes else (0, 0, 0)
    for sentence in remarks(*total, skipped):
        errors().print(f"[dim]{sentence}[/]", highlight=False)
    return 0


def _separator(cells: Iterable[str]) -> str:
    """What separates the columns of CoNLL: tabs if a cell contains a space."""
    return "\t" if any(" " in cell for cell in cells) else " "


def _tag(
    tagger: Any, items: Iterable[Any], read: Callable, args: argparse.Namespace, options: dict, between: str
) -> list:
    """Tag texts, or sentences of words; what `counts` finds in each chunk."""
    from heed.bulk import command
    from heed.data.staged import Stages, chunks
    from heed.products.text_batches import CHUNK

    def finish(prepared: tuple, found: Any) -> command.Noted:
        before, own = prepared
        tagged = tagger.finish(own, found)
        return command.Noted(command.as_bytes(_lines(tagged, args.format, before, between)), counts(tagged))

    size = command.chunk_size(args, CHUNK, args.text or args.input or args.conll)

    def settings() -> dict:
        asked = {"format": args.format, "batch_tokens": args.batch_tokens}
        return command.settings_of(tagger, **options, **asked, chunk=size)

    stages = Stages(
        lambda chunk: (chunk.start, read(chunk.items)),
        lambda prepared: tagger.logits(prepared[1].ids, args.batch_tokens),
        finish,
    )
    head = command.as_bytes(["\t".join(HEADER)]) if args.format == "table" else b""
    inputs = list(filter(None, (args.input, args.conll)))
    return command.process(chunks(items, size), stages, args, settings, inputs, head=head)


def counts(tagged: list) -> tuple[int, int, int]:
    """How many texts there are, how many were read in windows, and how many words could not be read."""
    return len(tagged), sum(one.windows > 1 for one in tagged), sum(one.unread for one in tagged)


def remarks(texts: int, split: int, unread: int, skipped: Mapping[str, int]) -> list[str]:
    """What the user should know of how texts were read."""
    from heed.data import conll

    found = [f"{split:,} of {texts:,} texts are too long for the model and were read in windows."] if split else []
    if unread:
        found.append(f"{unread:,} words cannot be encoded with the model's vocabulary and have no label.")
    return found + [f"{skipped[name]:,} {what} were skipped." for name, what in conll.SKIPPED.items() if skipped[name]]


def _lines(tagged: list, form: str, before: int = 0, between: str = " ") -> Iterator[str]:
    """The lines of texts; `before` is the number of texts before them, `between` separates the columns of CoNLL."""
    from heed.products.tagger import mark

    for number, one in enumerate(tagged, before + 1):
        if form == "inline":
            yield mark(one.text, [(own.start, own.end, own.type) for own in one.entities])
        elif form == "json":
            yield json.dumps(_fields(one), ensure_ascii=False)
        elif form == "conll":
            yield from (f"{word.text}{between}{word.label}" for word in one.words)
            yield ""
        else:
            for own in one.entities:
                cells = (number, own.type, own.start, own.end, f"{own.probability:.4f}", " ".join(own.text.split()))
                yield "\t".join(map(str, cells))


def _fields(one: Any) -> dict[str, Any]:
    names = ("type", "text", "start", "end", "probability")
    return {"text": one.text, "entities": [{name: getattr(own, name) for name in names} for own in one.entities]}


def evaluate(args: argparse.Namespace) -> int:
    """Score a tagger."""
    from heed.cli.common import errors, open_product, write_lines
    from heed.cli.scores import show_scores
    from heed.cli.seen import show_seen_texts
    from heed.data import conll
    from heed.data.entities import UNCHANGED
    from heed.evaluation.tagging import count, measure, type_scores

    if not args.conll:
        raise ValueError(f"{args.system} is a tagger: give sentences and their labels with --conll FILE")
    names = [name for name in (args.system, args.against) if name]
    taggers = [open_product(args, "tag", [name]) for name in names]
    first = taggers[0]
    read = conll.read(Path(args.conll), column(args, first, "word"), column(args, first, "label"))
    repair, repaired = args.repair or bool(first.facts.get("repair")), 0
    if any(own.scheme != UNCHANGED for own in taggers):
        scheme = conll.find_scheme(read.sentences, repair, "give --repair (read as {})")
        repaired = conll.check_scheme(read.sentences, scheme, repair)
    seen = show_seen_texts(names, [" ".join(one.words) for one in read.sentences])
    expected = [[conll.relabelled(one, own.scheme, own.labels) for one in read.sentences] for own in taggers]
    tagged = [own.tag_words([one.words for one in read.sentences]) for own in taggers]
    found = [[one.labels for one in own] for own in tagged]
    found_counts = [count(*pair) for pair in zip(found, expected, strict=True)]
    kinds = type_scores(found[0], expected[0])
    words = sum(len(one.words) for one in read.sentences)
    what = f"{len(read.sentences):,} sentences, {words:,} words"
    more = {"types": kinds, "trained_on": seen, "repaired": repaired}
    show_scores(args, measure, found_counts, found_counts[0], what, more)
    _show_types(kinds)
    if args.out:
        cells = chain(first.labels, *(one.words for one in read.sentences))
        write_lines(_lines(tagged[0], "conll", between=_separator(cells)), args.out)
    notes = remarks(*counts(tagged[0]), read.skipped)
    if repaired:
        how = "--repair" if args.repair else "as in training, task.repair"
        notes.append(f"{repaired:,} of {len(read.sentences):,} sentences have repaired labels ({how}).")
    for sentence in notes:
        errors().print(f"[dim]{sentence}[/]", highlight=False)
    return 0


def _show_types(kinds: dict[str, dict[str, float]]) -> None:
    from rich.console import Console

    for kind, own in kinds.items():
        scores = "  ".join(f"{name} {own[name]:.2f}" for name in ("f1", "precision", "recall"))
        Console().print(f"[dim]{kind}: {scores}, {own['entities']:,} entities[/]", highlight=False, soft_wrap=True)
